"""Late events: those below their source's frontier, or of a source that has ended.

They are refused, left out, or kept for whoever asks for them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from specstream.columns.conversion import order_values, time_at
from specstream.columns.events import Events, some_rows
from specstream.columns.rejected_rows import take_together
from specstream.engine.order_times import OrderTimes
from specstream.engine.sources import Late, Name, Source, Sources, checked_late
from specstream.errors import InputError

__all__ = ["LateEvents"]


class LateEvents:
    """Those of one engine.

    Args:
        policy: what happens to them.
        sources: of the events.
        times: of the events.
        what: names the operator in messages.

    Attributes:
        policy: what happens to them.
        side: those of policy "side" that nobody has fetched.
        batch_id: of a feed, whose rows are read; None: of none.
    """

    def __init__(self, policy: Late, sources: Sources, times: OrderTimes, what: str) -> None:
        self.policy: Late = checked_late(policy)
        self._sources = sources
        self._times = times
        self._what = what
        self.side: list[pa.Table] = []
        self.batch_id: int | None = None

    @property
    def count(self) -> int:
        """How many there have been."""
        return self._sources.late + sum(source.late for source in self._sources)

    def take(self) -> pa.Table | None:
        """Those of policy "side" since the last call."""
        return take_together(self.side)

    def sort_out(
        self, table: pa.Table, events: Events, source: Name | None, order_by: str
    ) -> list[tuple[Source, Events]]:
        """The events of a table that are not late, by source.

        Args:
            table: which the events were read from.
            events: in order.
            source: of all of them; None: they name their own.
            order_by: column of the times.

        Raises:
            InputError: there are late ones, and the policy is "error".
        """
        pieces = []
        late: list[tuple[Source, Events]] = []
        for name, rows in _by_source(events, source):
            known = self._sources.get(name)
            mine = events if rows is None else events.take(rows)
            count = mine.count if known.ended else 0
            if known.frontier is not None and not known.ended:
                count = int(np.searchsorted(mine.columns[0], known.frontier, side="left"))
            if count:
                late.append((known, mine.take(np.arange(count))))
                mine = mine.take(np.arange(count, mine.count))
            if mine.count:
                pieces.append((known, mine))
        if late and self.policy == "error":
            raise self._refusal(late, order_by)
        for known, below in late:
            known.late += below.count
        if late and self.policy == "side":
            self.side.append(self._rows(table, late))
        return pieces

    def _refusal(self, late: list[tuple[Source, Events]], order_by: str) -> InputError:
        known, below = late[0]
        frontier, time_type = known.frontier, self._times.type
        why = "which has ended" if known.ended or frontier is None else "below its frontier"
        found = (
            f"{sum(some.count for _, some in late)} event(s) are late, the first of source "
            f"{known.name!r} at {order_by}={time_at(below.keys[0], 0)}, {why}"
        )
        if self.batch_id is None:
            return InputError(
                f"{self._what}: {found}: nothing was submitted; send events before advance(), or "
                'use late="drop" or late="side"'
            )
        if time_type is not None and frontier is not None and not known.ended:
            found += f" {time_at(order_values(np.array([frontier]), time_type), 0)}"
        return InputError(
            f"{self._what}, batch {self.batch_id}: {found}: nothing of the batch is applied; start "
            'again with late="drop", or late="side" and late_to=; a longer watermark= helps later '
            "events only"
        )

    def _rows(self, table: pa.Table, late: list[tuple[Source, Events]]) -> pa.Table:
        """The rows of the table that are late, as they were given."""
        positions = np.concatenate([below.positions for _, below in late])
        which = np.zeros(table.num_rows, np.bool_)
        which[positions] = True
        return some_rows(table, which, self._what)


def _by_source(
    events: Events, source: Name | None
) -> Iterator[tuple[Name, npt.NDArray[np.int64] | None]]:
    """Names of sources, each with the rows of its events; None: all of them."""
    if source is not None:
        yield source, None
        return
    codes, first, which = np.unique(events.columns[1], return_index=True, return_inverse=True)
    for number, row in enumerate(first):
        name = events.keys[1][int(row)].as_py()
        yield name, None if len(codes) == 1 else np.flatnonzero(which == number)
