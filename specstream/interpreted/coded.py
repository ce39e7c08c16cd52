"""What containers of interpreted operators hold, as values and as words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from specstream.declarations.containers import Container, Shape
from specstream.declarations.options import shown
from specstream.interpreted.values import Texts, stored

__all__ = ["Begin", "Coded", "ElementsOf", "full"]

ElementsOf = Callable[[str, Any], Any]
Begin = list[Callable[[], None]]


class Coded:
    """Values of a shape and the words that they are."""

    def __init__(self, shape: Shape, what: str, elements_of: ElementsOf) -> None:
        self.shape, self.what = shape, what
        self._convert = [stored(part) for part in shape.parts]
        self._words = [elements_of("state", part) for part in shape.parts]

    def parts(self, value: Any) -> tuple[Any, ...]:
        """The parts of a value, checked."""
        convert, what = self._convert, self.what
        if not self.shape.is_tuple:
            return (convert[0](value, what),)
        if not isinstance(value, tuple) or len(value) != len(convert):
            raise TypeError(
                f"{what} is declared {self.shape} and gets {shown(value)} "
                f"({type(value).__name__}): give a tuple of {len(convert)}"
            )
        return tuple([one(part, what) for one, part in zip(convert, value, strict=True)])

    def codes(self, parts: tuple[Any, ...]) -> tuple[int, ...]:
        """The words of a key."""
        return tuple(
            [
                words.code(part) if isinstance(words, Texts) else int(part)
                for words, part in zip(self._words, parts, strict=True)
            ]
        )

    def of_codes(self, codes: tuple[int, ...]) -> Any:
        """A key, of its words."""
        parts = [
            words.text(code)
            if isinstance(words, Texts)
            else bool(code)
            if of.number == "bool"
            else code
            for words, of, code in zip(self._words, self.shape.parts, codes, strict=True)
        ]
        return tuple(parts) if self.shape.is_tuple else parts[0]

    def load(self, word: int) -> Any:
        if not self.shape.is_tuple:
            return self._words[0][word]
        return tuple([words[word + at] for at, words in enumerate(self._words)])

    def store(self, word: int, parts: tuple[Any, ...]) -> None:
        for at, (words, part) in enumerate(zip(self._words, parts, strict=True)):
            words[word + at] = part


def full(name: str, of: Container) -> NoReturn:
    raise OverflowError(
        of.full
        or f"state.{name} is full: it holds limit={of.limit} entries: declare a larger limit=, or "
        "remove some"
    )
