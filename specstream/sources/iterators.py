"""Whatever can be iterated over, with ``for`` or ``async for``, as a source."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterable, Iterable, Mapping
from concurrent.futures import Future
from typing import Any

import pyarrow as pa

from specstream.declarations.options import refused, refuses_unknown, shown
from specstream.errors import InputError
from specstream.sources.buffer import Buffer
from specstream.sources.decoding import ERROR, Decoder
from specstream.sources.loop import LoopThread
from specstream.sources.source import Position, Rows, Source, Wanted

__all__ = ["IteratorSource", "iterate", "pieces"]


def pieces(table: pa.Table, rows: int) -> list[pa.Table]:
    """A table as parts of so many rows at most, which are views of it."""
    return [table.slice(at, rows) for at in range(0, table.num_rows, rows)]


class IteratorSource(Source):
    """Events from an iterator; see :func:`iterate`."""

    can_replay = False

    @refuses_unknown
    def __init__(self, items: Any, columns: Mapping[str, Any] | None = None) -> None:
        if not isinstance(items, AsyncIterable | Iterable) or isinstance(
            items, str | bytes | Mapping
        ):
            raise refused("items", items, "an iterator, asynchronous or not, of events")
        self._items: Any = items
        self._columns = columns
        self.name = f"the iterator {type(items).__name__}"
        self._buffer = Buffer(1)
        self._loop: LoopThread | None = None
        self._pump: Future[None] | None = None
        self._left: deque[Any] = deque()
        self._count = 0

    def open(self, wanted: Wanted, position: Position | None) -> None:
        self._wanted = wanted
        self._decoder = Decoder(wanted, columns=self._columns, adds=(ERROR,))
        self._buffer = Buffer(wanted.rows)
        if not isinstance(self._items, AsyncIterable):
            # A daemon: an iterator may never come back from waiting for its next item.
            pull = threading.Thread(target=self._pull, name="specstream-source", daemon=True)
            pull.start()
            return
        loop = wanted.loop
        if loop is None:
            self._loop = LoopThread("specstream-source")
            loop = self._loop.loop
        self._pump = asyncio.run_coroutine_threadsafe(self._pull_async(), loop)

    def _pull(self) -> None:
        try:
            for item in self._items:
                if not self._put(item):
                    return
            self._buffer.end()
        except BaseException as error:
            self._buffer.end(error)

    async def _pull_async(self) -> None:
        try:
            async for item in self._items:
                # Only where it is full a thread has to wait.
                if not self._offer(item) and not await asyncio.to_thread(self._put, item):
                    return
            self._buffer.end()
        except BaseException as error:
            self._buffer.end(error)
            raise

    def _offer(self, item: Any) -> bool:
        return isinstance(item, Mapping) and self._buffer.offer(item, 1)

    def _put(self, item: Any) -> bool:
        """Puts an item in, as one row or as tables; False: nobody wants it any more."""
        if isinstance(item, Mapping):
            return self._buffer.put(item, 1)
        if isinstance(item, list):
            return all(self._put(row) for row in item)
        if isinstance(item, pa.RecordBatch):
            item = pa.Table.from_batches([item])
        if not isinstance(item, pa.Table):
            raise InputError(
                f"{self._wanted.what}: {self.name} gave {shown(item)}; expected a dict for each "
                "event, a list of such, or a RecordBatch or Table of pyarrow"
            )
        return all(self._buffer.put(part, part.num_rows) for part in self._pieces(item))

    def _pieces(self, table: pa.Table) -> list[pa.Table]:
        return pieces(self._wanted.chosen(table), self._wanted.rows)

    def read(self, rows: int, wait: float, idle: float) -> Rows | None:
        if not self._buffer.refill(self._left, rows, wait, idle):
            return None
        if not self._left:
            return Rows(pa.table({}))
        first = self._count
        is_table = isinstance(self._left[0], pa.Table)
        table = self._table() if is_table else self._rows()
        self._count += table.num_rows
        return Rows(table, None, f"events {first} to {self._count - 1} of {self.name}")

    def _table(self) -> pa.Table:
        """The first tables, as long as they have the same columns."""
        tables = [self._left.popleft()]
        while self._left and isinstance(self._left[0], pa.Table):
            if self._left[0].schema != tables[0].schema:
                break
            tables.append(self._left.popleft())
        return pa.concat_tables(tables)

    def _rows(self) -> pa.Table:
        rows = []
        while self._left and isinstance(self._left[0], Mapping):
            rows.append(self._left.popleft())
        return self._decoder.rows(rows, lambda at: f"event {self._count + at} of {self.name}")

    def stop(self) -> None:
        # What was taken from the iterator cannot be had again: it is run.
        self._buffer.close()

    def close(self) -> None:
        self._buffer.close()
        if self._pump is not None:
            self._pump.cancel()
        if self._loop is not None:
            self._loop.close()


@refuses_unknown
def iterate(
    items: AsyncIterable[Any] | Iterable[Any], *, columns: Mapping[str, Any] | None = None
) -> IteratorSource:
    """Events from an iterator, asynchronous or not.

    It is asked for the next item as long as less than ``max_rows`` rows wait. What it has given
    cannot be had again: when the process is killed, what was not in a recorded batch is lost.

    Args:
        items: gives dicts, one for each event; or lists of such; or pyarrow's tables and record
            batches, which are not copied: do not write into the memory of one that was given.
            Values are Python's or JSON's: a time is a ``datetime``, ISO 8601, or a whole number in
            the unit of its column. An asynchronous one runs in the event loop of :func:`arun`, or
            in one of its own.
        columns: types of columns that the operator does not declare, and ``order_by`` or ``source``
            names.

    Raises:
        ConfigurationError: it cannot be iterated over.

    >>> import specstream as ss
    >>> class Seen(ss.State):
    ...     count = ss.scalar(int)
    >>> @ss.operator(state=Seen, event={"x": int}, emits={"x": int, "place": int})
    ... def number(state, event, emit):
    ...     state.count += 1
    ...     emit(event.x, state.count)
    >>> async def events():
    ...     for x in (7, 8, 9):
    ...         yield {"x": x}
    >>> places = []
    >>> with ss.Engine(number) as engine:
    ...     stats = ss.sources.run(
    ...         engine,
    ...         ss.sources.iterate(events()),
    ...         to=lambda rows, batch_id: places.extend(rows["place"].to_pylist()),
    ...     )
    >>> places, stats.events
    ([1, 2, 3], 3)
    """
    return IteratorSource(items, columns)
