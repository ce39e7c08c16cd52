"""Values that Python derives from the columns of an event, before the operator sees the event.

Of ``event.key.startswith("EU")`` an operator has a hidden column of bools. The compiler finds such
expressions (:mod:`specstream.compiler.staging.staging`) and makes a function of each;
:mod:`specstream.columns.derived` calls it once for each distinct combination of its inputs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

__all__ = ["Derived", "Part", "Place", "Scalar", "name_of", "numbers_of"]

Scalar = Literal["int", "float", "bool", "str"]


@dataclass(frozen=True)
class Part:
    """A hidden column, or one of a few that hold a tuple.

    Attributes:
        kind: what an operator sees of it; of a list the column holds the address.
        nullable: whether it may be None.
        items: what an element of a list has in it; a list has an address there.
        is_tuple: an element of a list is a tuple of the items, and not the only one.
        raising: which items may have raised: in front of each lies what compiled code raises, or 0.
    """

    kind: Literal["int", "float", "bool", "str", "list"]
    nullable: bool = False
    items: tuple[Scalar | Part, ...] = ()
    is_tuple: bool = False
    raising: frozenset[int] = frozenset()

    @property
    def words(self) -> tuple[Scalar | Part, ...]:
        """What the words of a list's element are."""
        words: list[Scalar | Part] = []
        for at, item in enumerate(self.items):
            words += ["int", item] if at in self.raising else [item]
        return tuple(words)

    @property
    def dtypes(self) -> list[type[Any]]:
        """Of its arrays: the values, and where they are None."""
        values: dict[str, type[Any]] = {"float": np.float64, "bool": np.uint8}
        return [values.get(self.kind, np.int64), *([np.uint8] if self.nullable else [])]


@dataclass(frozen=True)
class Derived:
    """One derived value.

    Attributes:
        text: its source, for messages.
        inputs: what the function takes: columns by their names, and derived values before this one
            by their numbers.
        parts: the hidden columns; none for a value that no column can hold, and that only goes into
            others.
        is_tuple: the value is a tuple of the parts.
        is_seen: the operator gets to it: in front of its parts it has an array of int64, 0 where
            the function did not raise, and elsewhere what compiled code raises.
        is_batch: the function takes whole columns.
        in_place: places of inputs that the function asks for where it gets to them, by
            :func:`specstream.columns.derived.given_in_place`: of another one that was not computed
            nothing is.
        function: makes the value, of the inputs.
        status: what compiled code raises in place of an exception.
        tells: behind the array of what is raised there is one of what that says
            (:mod:`specstream.columns.exception_texts`).
    """

    text: str
    inputs: tuple[str | int, ...]
    parts: tuple[Part, ...] = ()
    is_tuple: bool = False
    is_seen: bool = True
    is_batch: bool = False
    function: Callable[..., Any] = field(default=lambda: None, compare=False, repr=False)
    status: Callable[[Exception], int] = field(default=lambda _: 1, compare=False, repr=False)
    tells: bool = False
    in_place: tuple[int, ...] = ()

    @property
    def dtypes(self) -> list[type[Any]]:
        """Of its arrays, in the order in which they lie behind those of the columns."""
        if not self.is_seen:
            return []
        told = [np.int64] if self.tells else []
        return [np.int64, *told, *(dtype for part in self.parts for dtype in part.dtypes)]


@dataclass(frozen=True)
class Place:
    """Where a part of a derived value lies.

    Attributes:
        number: of the derived value.
        raised: number of the array that says where its function raised.
        part: which part; None: that nothing was raised is all that is asked.
        values: number of the array of the part's values; that of its nulls is the next.
        tells: whether the array behind ``raised`` has what that says.
    """

    number: int
    raised: int
    part: Part | None
    values: int
    tells: bool = False


_PREFIX = "__ss_derived_"


def name_of(number: int, part: int | None = None) -> str:
    """The attribute of an event by which code reads a derived value; no user can write it.

    >>> name_of(3, 0), name_of(3)
    ('__ss_derived_3_0', '__ss_derived_3')
    """
    return f"{_PREFIX}{number}" if part is None else f"{_PREFIX}{number}_{part}"


def numbers_of(name: str) -> tuple[int, int | None] | None:
    """What such a name says; None: it is none."""
    if not name.startswith(_PREFIX):
        return None
    number, _, part = name.removeprefix(_PREFIX).partition("_")
    return int(number), int(part) if part else None
