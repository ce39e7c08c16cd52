"""One operator of the corpus, its stream, and what comes out by other means."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

import specstream as ss

CASES: list[Case] = []


@dataclass
class Case:
    """An operator as somebody would write it.

    Attributes:
        about: what it does, in a line.
        function: the operator's function, as it stands in its module.
        options: what ``ss.operator`` is given.
        stream: makes the table of events from a generator of random numbers.
        expected: the rows that come out, from the table and without the function; or None.
        pending: why it is known not to work yet; it has to fail until then.
        raises: whether events of the stream raise; then ``expected`` leaves them out as well.
        defect: what the language or its message does wrong today; it has to fail until then.
        replaced: what functions of whole columns are to the third witness, which has rows.
        are_none: whether the function asks for null by ``is None`` before it uses the value.
    """

    about: str
    function: Callable[..., None]
    options: dict[str, Any]
    stream: Callable[[np.random.Generator], pa.Table]
    expected: Callable[[pa.Table], list[tuple[Any, ...]]] | None = None
    pending: str = ""
    raises: bool = False
    defect: str = ""
    are_none: bool = False
    replaced: dict[Any, Any] | None = None

    @property
    def name(self) -> str:
        return f"{self.function.__module__.rpartition('.')[2]}.{self.function.__name__}"

    @property
    def number(self) -> int:
        """Chooses what only some of the cases do; the same everywhere and every day."""
        return zlib.crc32(self.name.encode())

    @cached_property
    def operator(self) -> ss.Operator:
        """Declared when it is asked for: one that is refused leaves the others alone."""
        made: ss.Operator = ss.operator(**self.options)(self.function)
        return made

    @cached_property
    def table(self) -> pa.Table:
        return self.stream(np.random.default_rng(self.number))


def case(
    about: str,
    stream: Callable[[np.random.Generator], pa.Table],
    expected: Callable[[pa.Table], list[tuple[Any, ...]]] | None = None,
    *,
    pending: str = "",
    raises: bool = False,
    defect: str = "",
    are_none: bool = False,
    replaced: dict[Any, Any] | None = None,
    **options: Any,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Stands where ``ss.operator`` stands in a user's file, and keeps the function for later."""

    def keep(function: Callable[..., None]) -> Callable[..., None]:
        CASES.append(
            Case(
                about,
                function,
                options,
                stream,
                expected,
                pending=pending,
                raises=raises,
                defect=defect,
                are_none=are_none,
                replaced=replaced,
            )
        )
        return function

    return keep
