"""Entries that expire after a duration, and the unit of the times that they are written at.

``event.timestamp`` is a number, and ``expire_after="1 hour"`` says nothing of its unit; the type of
the order column does. So the first order column that a state meets settles the unit of its
containers: nanoseconds from one time to the next, a word of each header. That word is part of the
state: it goes into snapshots and savepoints, and comes back with them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from specstream._native import lib
from specstream.columns.conversion import tick_of
from specstream.declarations.durations import duration_text
from specstream.declarations.state_layout import Field, Layout
from specstream.errors import InputError

__all__ = ["check_unit", "is_settled", "settle_unit"]

Words = npt.NDArray[np.int64]


def check_unit(layout: Layout, words: Words, of: pa.DataType, whose: str, what: str) -> None:
    """Looks whether entries of a state can expire by times of a type; changes nothing.

    Args:
        layout: of the state.
        words: the state.
        of: the type.
        whose: what has the type, like "order column 'time'".
        what: names the operator.

    Raises:
        InputError: it counts no time, or in another unit than the times before; names the field.
    """
    tick = tick_of(of)
    for field in layout.lasting:
        assert field.container is not None
        lasts = duration_text(field.container.expires)
        known = int(words[_at(field)])
        if tick is None:
            raise InputError(
                f"{what}: entries of field {field.name!r} expire after {lasts}, and {whose} has "
                f"type {of}, of which nobody knows what it counts: declare expire_after= as an int "
                "in the unit of the order column, or cast the column to a timestamp"
            )
        if known not in (0, tick):
            raise InputError(
                f"{what}: entries of field {field.name!r} expire after {lasts}, by times that "
                f"count in units of {duration_text(known)}, and {whose} has type {of}, which "
                f"counts in units of {duration_text(tick)}: cast it to the type that the events "
                "before had"
            )


def is_settled(layout: Layout, words: Words) -> bool:
    """Whether the unit is known, or no entry asks for it."""
    return all(words[_at(field)] for field in layout.lasting)


def settle_unit(layout: Layout, words: Words, of: pa.DataType) -> None:
    """Settles the unit, if it is not yet: that of the type, which :func:`check_unit` has let pass;
    one that counts no time, as that of no events, settles none."""
    tick = tick_of(of)
    if tick is not None:
        for field in layout.lasting:
            words[_at(field)] = tick


def _at(field: Field) -> int:
    return field.offset + int(lib.SS_HEADER_TICK)
