"""Formatted strings that are emitted as their parts, and put together when rows become a table.

What ``emit(f"{event.item}: {state.total:.2f}")`` makes of a state's values is known only when the
event runs, where there are no texts. So a row has, behind all else, words for each column that gets
such strings: which of the program's forms it is and of which kinds its parts are, and the parts.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from specstream._native import lib

__all__ = [
    *("ERROR_WORDS", "KINDS", "MOST_PARTS", "MOST_TOLD"),
    *("Form", "head_of", "kinds_of", "number_of", "packed_kinds"),
]

KINDS = ("int", "uint", "float", "bool", "str", "error")
"""Of a part; each takes three bits."""

MOST_PARTS = 15

MOST_TOLD = int(lib.SS_ERROR_WORDS) - 1
"""Parts of the text of an exception."""
ERROR_WORDS = 1 + int(lib.SS_ERROR_WORDS)
"""Of a part that is a caught exception: its status, the kinds of what it is made of, and that."""

_SAMPLES = {
    "int": 1,
    "uint": 1,
    "float": 1.5,
    "bool": True,
    "str": "a",
    "error": Exception("a"),
}
_BITS = 3
_SHIFT = 16


@dataclass(frozen=True)
class Form:
    """A formatted string.

    Attributes:
        text: its source, for messages.
        column: of the emitted rows.
        count: number of its parts.
        function: from the parts to the text.
        errors: which of the parts are caught exceptions.
        asking: which of them what is made of it may raise for, like error.args[1].
        made: makes such a one again, of its status and what it is made of.
        status: what compiled code raises where one cannot say its text.
    """

    text: str
    column: str
    count: int
    function: Callable[..., str] = field(compare=False, repr=False)
    errors: tuple[int, ...] = ()
    asking: frozenset[int] = frozenset()
    made: Callable[[int, Sequence[Any]], Exception] | None = field(
        default=None, compare=False, repr=False
    )
    status: Callable[[Exception], int] | None = field(default=None, compare=False, repr=False)

    @property
    def words(self) -> int:
        """Of a row that its parts take."""
        return self.count + (ERROR_WORDS - 1) * len(self.errors)

    @property
    def where(self) -> str:
        """Its place in the source, and it."""
        code: Any = getattr(self.function, "__code__", None)
        line = f"{code.co_filename}:{code.co_firstlineno}: " if code is not None else ""
        return line + self.text

    def place(self, part: int) -> int:
        """Which of these words a part begins with."""
        return part + (ERROR_WORDS - 1) * sum(one < part for one in self.errors)

    def check(self, kinds: tuple[str, ...]) -> None:
        """Looks whether parts of these kinds have the formats that the text says.

        Raises:
            ValueError: one has not.
        """
        with contextlib.suppress(*([IndexError] if self.asking else [])):  # a sample has few args
            self.function(*(_SAMPLES[kind] for kind in kinds))


def head_of(number: int, kinds: tuple[str, ...]) -> int:
    """The word that says which form it is; 0 stands for none.

    >>> kinds_of(head_of(3, ("float", "str")), 2)
    ('float', 'str')
    """
    return number + 1 | packed_kinds(kinds)


def packed_kinds(kinds: tuple[str, ...]) -> int:
    """The same without the form."""
    return sum(KINDS.index(kind) << (_BITS * at) for at, kind in enumerate(kinds)) << _SHIFT


def number_of(head: int) -> int:
    """Which form a word says."""
    return (head & ((1 << _SHIFT) - 1)) - 1


def kinds_of(head: int, count: int) -> tuple[str, ...]:
    """Of which kinds the parts are."""
    packed = head >> _SHIFT
    return tuple(KINDS[packed >> (_BITS * at) & ((1 << _BITS) - 1)] for at in range(count))
