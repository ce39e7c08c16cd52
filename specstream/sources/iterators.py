"""Whatever can be iterated over, with ``for`` or ``async for``, as a source.

A thread, or an event loop, asks the iterator ahead of the run, and waits while the buffer is full.
Where nothing is to be read ahead, the caller asks it, item by item.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections import deque
from collections.abc import AsyncIterable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from typing import Any

import pyarrow as pa

from specstream.declarations.options import refused, refuses_unknown, shown
from specstream.errors import ConfigurationError, InputError, SourceError
from specstream.sources.buffer import Buffer
from specstream.sources.decoding import ERROR, Decoder
from specstream.sources.loop import LoopThread
from specstream.sources.source import Position, Rows, Source, Wanted

__all__ = ["IteratorSource", "iterate", "pieces"]


def pieces(table: pa.Table, rows: int) -> list[pa.Table]:
    """A table as parts of so many rows at most, which are views of it."""
    return [table.slice(at, rows) for at in range(0, table.num_rows, rows)]


class _Waiting(Iterator[Any]):
    """An asynchronous iterator as one that waits: its event loop runs while it is asked."""

    def __init__(self, items: AsyncIterable[Any]) -> None:
        self._items = aiter(items)
        self._loop = asyncio.new_event_loop()

    def __next__(self) -> Any:
        try:
            return self._loop.run_until_complete(self._next())
        except StopAsyncIteration:
            raise StopIteration from None

    async def _next(self) -> Any:
        return await anext(self._items)

    def close(self) -> None:
        if self._loop.is_closed():
            return
        close = getattr(self._items, "aclose", None)
        try:
            if close is not None:
                self._loop.run_until_complete(close())
        finally:
            self._loop.close()


_NOTHING: Any = object()  # as an item may be None, which is no event


def _parts(item: Any) -> Iterator[Any]:
    """An item itself, or what is in a list, and in the lists inside it."""
    if isinstance(item, list):
        for one in item:
            yield from _parts(one)
    else:
        yield item


def _count(part: Any) -> int:
    return part.num_rows if isinstance(part, pa.Table | pa.RecordBatch) else 1


class _Items:
    """The items of an iterator, one by one, with lists taken apart.

    A signal handler may raise at any step. Then the item is still there for the next call.

    Attributes:
        at: number of the next part of the item; the caller moves it on, and ``rows`` with it.
        rows: how many are in that part and in those behind it.
    """

    def __init__(self, items: Iterable[Any]) -> None:
        self.at, self.rows = 0, 0
        self._parts: list[Any] = []
        self._iterator = iter(items)
        self._item = _NOTHING  # that was given, and is not in parts yet
        self._raised: type[BaseException] | None = None

    def look(self) -> Any:
        """The next part of an item, the same until it is taken; nothing: there is none."""
        while self.at == len(self._parts):
            if self._item is _NOTHING:
                iterator = self._iterator
                try:
                    # Not next(): Python looks for signals behind a call, and what a handler
                    # raises there would take the place of the item.
                    for self._item in iterator:
                        break
                except BaseException as error:
                    # Not the error itself: its traceback would keep the frames of the caller.
                    self._raised = error.__class__
                    raise
            if self._item is _NOTHING:
                return _NOTHING
            parts = list(_parts(self._item))
            rows = sum(map(_count, parts))
            # No call from here to the end.
            self._parts, self.at, self.rows, self._item = parts, 0, rows, _NOTHING
        return self._parts[self.at]

    @property
    def ended_by(self) -> type[BaseException] | None:
        """The class of an error behind which it cannot go on: a generator that was interrupted is
        over, and others of Python's own, such as map(), may have lost an item."""
        is_pythons = type(self._iterator).__module__ in ("builtins", "itertools")
        return self._raised if is_pythons else None

    def close(self) -> None:
        close = getattr(self._iterator, "close", None)
        if close is not None:
            close()


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
        self.needs_thread = isinstance(items, AsyncIterable)
        self._has_begun = False
        self._one_by_one: _Items | None = None
        self._buffer = Buffer(1)
        self._loop: LoopThread | None = None
        self._pump: Future[None] | None = None
        self._left: deque[Any] = deque()
        self._count = 0

    def open(self, wanted: Wanted, position: Position | None) -> None:
        self._wanted = wanted
        self._decoder = Decoder(wanted, columns=self._columns, adds=(ERROR,))
        if not wanted.ahead:
            self._check_unused()
        self._has_begun, self._one_by_one = True, None
        self._buffer = Buffer(wanted.rows)
        if not wanted.ahead:
            is_async = isinstance(self._items, AsyncIterable)
            self._one_by_one = _Items(_Waiting(self._items) if is_async else self._items)
            self._count = 0
            return
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

    def _check_unused(self) -> None:
        """Refuses an iterator that was read before: it would seem to have no events.

        Raises:
            ConfigurationError: it was.
        """
        items, what = self._items, f"{self._wanted.what}: {self.name}"
        if self._has_begun and isinstance(items, AsyncIterable | Iterator):
            raise ConfigurationError(
                f"{what} was read before, and what it has given is gone; expected a source that "
                "was not used: ss.sources.iterate(...) of an iterator that begins anew"
            )
        if (inspect.isgenerator(items) and items.gi_frame is None) or (
            inspect.isasyncgen(items) and items.ag_frame is None
        ):
            raise ConfigurationError(
                f"{what} has ended already; expected one with events to come: call the function "
                "that makes the generator again"
            )

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
        parts = pieces(self._wanted.chosen(self._as_table(item)), self._wanted.rows)
        return all(self._buffer.put(part, part.num_rows) for part in parts)

    def _as_table(self, item: Any) -> pa.Table:
        if isinstance(item, pa.RecordBatch):
            return pa.Table.from_batches([item])
        if not isinstance(item, pa.Table):
            raise InputError(
                f"{self._wanted.what}: {self.name} gave {shown(item)}; expected a dict for each "
                "event, a list of such, or a RecordBatch or Table of pyarrow"
            )
        return item

    def read(self, rows: int, wait: float, idle: float) -> Rows | None:
        if self._one_by_one is not None:
            return self._read_one(self._one_by_one)
        if not self._buffer.refill(self._left, rows, wait, idle):
            return None
        if not self._left:
            return Rows(pa.table({}))
        first = self._count
        is_table = isinstance(self._left[0], pa.Table)
        table = self._table() if is_table else self._rows()
        self._count += table.num_rows
        return Rows(table, None, f"events {first} to {self._count - 1} of {self.name}")

    def _read_one(self, items: _Items) -> Rows | None:
        """The rows of the next item, whatever their number."""
        if (ended_by := items.ended_by) is not None:
            raise SourceError(
                f"{self._wanted.what}: {self.name} was interrupted by a {ended_by.__name__}, and "
                "does not go on behind that: have a thread read it, which no signal interrupts "
                "(prefetch=1 or more)"
            )
        item, first = items.look(), self._count
        if item is _NOTHING:
            return None

        def row(at: int) -> str:
            return f"event {first + at} of {self.name}"

        if isinstance(item, Mapping):
            table = self._decoder.rows([item], row)
        else:
            table = self._wanted.chosen(self._as_table(item))
        count, left = first + table.num_rows, items.rows - table.num_rows
        found = Rows(table, None, f"events {first} to {count - 1} of {self.name}", row)
        # No call from here to the caller: it has the item, or the item is still there.
        self._count, items.at, items.rows = count, items.at + 1, left
        return found

    @property
    def waiting(self) -> int:
        """How many rows of the item that was read last wait."""
        return 0 if self._one_by_one is None else self._one_by_one.rows

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
        if self._one_by_one is not None:
            self._one_by_one.close()
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
