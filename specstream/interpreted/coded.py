"""Values of interpreted operators: Python's own, and the words that they are."""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from specstream.columns.strings import StringTable
from specstream.compiler.oracle_objects.codec import Codec
from specstream.declarations.containers import Shape
from specstream.declarations.element_types import Storage
from specstream.declarations.options import shown
from specstream.declarations.ordered_set import OrderedSet
from specstream.declarations.plain_values import plain
from specstream.interpreted.values import Texts, stored

__all__ = ["Begin", "Coded", "ElementsOf", "PlainCodec", "as_read"]

ElementsOf = Callable[[str, Any], Any]
Begin = list[Callable[[], None]]


def as_read(value: Any) -> Any:
    """A value of its own: nobody can tell a NaN by being the same one, in no run."""
    if isinstance(value, tuple):
        return tuple(map(as_read, value))
    return value if value == value else float("nan")


class PlainCodec(Codec):
    """Python's own numbers and strings.

    Args:
        strings: table that has the strings which the state holds.
    """

    integer = int

    def __init__(self, strings: StringTable) -> None:
        self._texts = Texts(None, strings)

    def text(self, code: int) -> str:
        return self._texts.text(code)

    def code(self, text: str) -> int:
        return self._texts.code(text)

    def part(self, storage: Storage, what: str) -> Callable[[Any], Any]:
        convert, code = stored(storage), self.code
        if storage.number != "str":
            return lambda value: convert(value, what)

        def known(value: Any) -> Any:
            found = convert(value, what)
            code(found)
            return found

        return known

    def misfit(self, what: str, shape: Shape, value: Any) -> str:
        return (
            f"{what} is declared {shape} and gets {shown(value)} ({type(value).__name__}): give a "
            f"tuple of {shape.words}"
        )

    def missing(self, key: Any, held: Any) -> KeyError:
        return KeyError(key)

    def index(self, index: Any, store: Any) -> int:
        if store.of.kind == "deque" and isinstance(index, slice):
            raise TypeError("sequence index must be integer, not 'slice'")
        try:
            return operator.index(plain(index))
        except TypeError:
            raise TypeError(
                f"state.{store.name} is a {store.of.kind} and is indexed with {shown(index)} "
                f"({type(index).__name__}); expected an int: write int(x)"
            ) from None

    def order(self, keys: list[Any], reverse: Any) -> list[int]:
        return sorted(range(len(keys)), key=keys.__getitem__, reverse=bool(reverse))

    def dict_of(self, given: Any) -> Any:
        return dict(given)

    def set_of(self, elements: Iterable[Any]) -> Any:
        return OrderedSet(elements)

    def list_of(self, values: Iterable[Any]) -> Any:
        return list(values)

    def deque_of(self, values: Iterable[Any], maxlen: Any) -> Any:
        return deque(values, maxlen)

    def refuse_of_deque(self, what: str, name: str) -> None:
        """They have all that Python's have."""

    def default(self, value: Any, check: Callable[[Any], Any]) -> Any:
        return value

    def maker(self, shape: Shape) -> Callable[[Any], Any] | None:
        has_floats = any(part.number == "float" for part in shape.parts)
        return as_read if has_floats else None


class Coded:
    """Values of a shape that lie in words."""

    def __init__(self, shape: Shape, elements_of: ElementsOf) -> None:
        self._is_tuple = shape.is_tuple
        self._words = [elements_of("state", part) for part in shape.parts]

    def load(self, word: int) -> Any:
        if not self._is_tuple:
            return self._words[0][word]
        return tuple([words[word + at] for at, words in enumerate(self._words)])

    def store(self, word: int, value: Any) -> None:
        """Puts a value there that was checked."""
        parts = value if self._is_tuple else (value,)
        for at, (words, part) in enumerate(zip(self._words, parts, strict=True)):
            words[word + at] = part
