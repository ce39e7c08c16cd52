"""Formatted strings that are emitted as their parts, and put together when rows become a table.

What ``emit(f"{event.item}: {state.total:.2f}")`` makes of a state's values is known only when the
event runs, where there are no texts. So a row has, behind all else, words for each column that gets
such strings: which of the program's forms it is and of which kinds its parts are, and the parts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

__all__ = ["KINDS", "MOST_PARTS", "Form", "head_of", "kinds_of", "number_of"]

KINDS = ("int", "uint", "float", "bool", "str")
"""Of a part; each takes three bits."""

MOST_PARTS = 15

_SAMPLES = {"int": 1, "uint": 1, "float": 1.5, "bool": True, "str": "a"}
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
    """

    text: str
    column: str
    count: int
    function: Callable[..., str] = field(compare=False, repr=False)

    def check(self, kinds: tuple[str, ...]) -> None:
        """Looks whether parts of these kinds have the formats that the text says.

        Raises:
            ValueError: one has not.
        """
        self.function(*(_SAMPLES[kind] for kind in kinds))


def head_of(number: int, kinds: tuple[str, ...]) -> int:
    """The word that says which form it is; 0 stands for none.

    >>> kinds_of(head_of(3, ("float", "str")), 2)
    ('float', 'str')
    """
    packed = sum(KINDS.index(kind) << (_BITS * at) for at, kind in enumerate(kinds))
    return number + 1 | packed << _SHIFT


def number_of(head: int) -> int:
    """Which form a word says."""
    return (head & ((1 << _SHIFT) - 1)) - 1


def kinds_of(head: int, count: int) -> tuple[str, ...]:
    """Of which kinds the parts are."""
    packed = head >> _SHIFT
    return tuple(KINDS[packed >> (_BITS * at) & ((1 << _BITS) - 1)] for at in range(count))
