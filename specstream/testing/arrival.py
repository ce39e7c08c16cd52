"""Events that come out of order: a table in pieces, with the frontiers that hold behind each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from specstream.columns import compute as pc
from specstream.columns.tables import as_table
from specstream.declarations.options import integer, refuses_unknown
from specstream.engine.engine import Engine
from specstream.errors import ConfigurationError

__all__ = ["Arrival", "arrivals", "ranks", "shuffled"]


@dataclass(frozen=True)
class Arrival:
    """Events that come together.

    Attributes:
        table: their rows.
        order_by: column of their times.
        source: column of their sources; None: there is one.
        frontiers: of each source that this piece moves, the time below which no event of it comes
            any more, as Arrow's scalar; None: it has ended. The first piece has those of all
            sources, so that the engine waits also for those whose first event comes later.
    """

    table: pa.Table
    order_by: str
    source: str | None
    frontiers: Mapping[Any, Any]

    def submit_to(self, engine: Engine) -> None:
        """Hands the events in to ``engine``, and moves its frontiers."""
        engine.submit(self.table, order_by=self.order_by, source_column=self.source)
        for source, to in self.frontiers.items():
            engine.advance(source, to)


@refuses_unknown
def shuffled(
    table: Any, *, order_by: str, source: str | None = None, disorder: int = 16, seed: int = 0
) -> pa.Table:
    """The rows of a table in an order in which they could arrive.

    Args:
        table: as for :meth:`specstream.Engine.process`.
        order_by: column of the times.
        source: column of the sources.
        disorder: about how many later events may come before an event. 0: those of all sources
            come in the order of their times.
        seed: of the order.

    Rows of one time and source keep their order, which is part of their key. So an operator makes
    the same of them as of the table in order.

    >>> import specstream as ss
    >>> late = ss.testing.shuffled({"t": range(8)}, order_by="t", disorder=3, seed=1)
    >>> late["t"].to_pylist(), sorted(late["t"].to_pylist()) == list(range(8))
    ([0, 2, 1, 4, 5, 3, 7, 6], True)
    """
    found = as_table(table, "shuffled")
    return pc.without_views(found).take(pa.array(_order(found, order_by, source, disorder, seed)))


@refuses_unknown
def arrivals(
    table: Any,
    *,
    order_by: str,
    source: str | None = None,
    disorder: int = 16,
    rows: int = 8,
    seed: int = 0,
) -> list[Arrival]:
    """A table as it could arrive: :func:`shuffled`, cut into pieces, with the frontiers.

    Args:
        table: as for :meth:`specstream.Engine.process`.
        order_by: column of the times.
        source: column of the sources; None: all rows are of source 0.
        disorder: see :func:`shuffled`.
        rows: of a piece.
        seed: of the order.

    >>> import specstream as ss
    >>> class Seen(ss.State):
    ...     count = ss.scalar(int)
    >>> @ss.operator(state=Seen, event={"t": int}, emits={"t": int, "place": int})
    ... def number(state, event, emit):
    ...     state.count += 1
    ...     emit(event.t, state.count)
    >>> with ss.Engine(number, threads=2) as engine:
    ...     for arrival in ss.testing.arrivals({"t": range(0, 50, 10)}, order_by="t", rows=2):
    ...         arrival.submit_to(engine)
    ...     engine.poll(timeout=None)["t"].to_pylist()
    [0, 10, 20, 30, 40]
    """
    rows = integer("rows", rows, 1)
    found = as_table(table, "arrivals")
    order = pa.array(_order(found, order_by, source, disorder, seed))
    late = pc.without_views(found).take(order)
    times = late[order_by]
    names = [0] * len(times) if source is None else late[source].to_pylist()
    # From behind: what is still to come of each source decides how far its frontier is.
    pieces: list[Arrival] = []
    to_come: dict[Any, int] = {}
    rank = ranks(times)
    for start in range((max(len(rank), 1) - 1) // rows * rows, -1, -rows):
        here = range(start, min(start + rows, len(rank)))
        moved = dict.fromkeys(names[at] for at in here)
        frontiers = {name: times[to_come[name]] if name in to_come else None for name in moved}
        if start == 0:
            # First of all: those of the piece alone would let commit what belongs behind others.
            silent = {name: times[at] for name, at in to_come.items() if name not in moved}
            frontiers = silent | frontiers
        pieces.append(Arrival(late.slice(start, rows), order_by, source, frontiers))
        for at in here:
            known = to_come.get(names[at])
            if known is None or rank[at] < rank[known]:
                to_come[names[at]] = at
    return pieces[::-1]


def _order(
    table: pa.Table, order_by: str, source: str | None, disorder: int, seed: int
) -> npt.NDArray[np.int64]:
    """The rows, in the order in which they come."""
    disorder = integer("disorder", disorder, 0)
    for name in (order_by, source):
        if name is not None and name not in table.column_names:
            raise ConfigurationError(
                f"the table has no column {name!r}; it has {', '.join(table.column_names)}"
            )
    rank = ranks(table[order_by])
    in_order = np.argsort(rank, kind="stable")
    random = np.random.default_rng(seed)
    places = np.arange(len(in_order)) + random.random(len(in_order)) * (disorder + 1)
    late = in_order[np.argsort(places, kind="stable")]
    # Events of one time and source keep their order: they take their places in turn.
    of = np.zeros(len(late), np.int64) if source is None else ranks(table[source])
    same = np.lexsort((np.arange(len(late)), of[late], rank[late]))
    given = np.lexsort((late, of[late], rank[late]))
    kept = np.empty_like(late)
    kept[same] = late[given]
    return kept


def ranks(column: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """Numbers in the order of the values, equal where these are."""
    values, inverse = np.unique(column.to_numpy(), return_inverse=True)
    return inverse.astype(np.int64) if len(values) else np.zeros(0, np.int64)
