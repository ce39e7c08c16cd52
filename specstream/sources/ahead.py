"""Events one by one for a caller: read ahead by a thread, or only when the caller asks for one.

The reader adds events, and numbers them. The caller looks at the first event that is not done, and
says how many are done; looking takes nothing out, so an event that was about to be used when a
signal handler raised is still there. Whatever the caller does may be begun anew, as any step of the
main thread's code may be interrupted (``engine/interrupts.py``).

The two wake each other by locks that serve as signals. The conditions of ``threading`` are written
in Python: a handler that raises inside of one may leave its lock as nobody expects it.
"""

from __future__ import annotations

import contextlib
import threading
from _thread import LockType
from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from specstream.columns.events import order_key
from specstream.columns.tables import one_array
from specstream.errors import ConfigurationError, InputError, is_of_signal_handler
from specstream.sources.source import IDLE, Position, Rows, Source, Wanted

__all__ = ["PATIENCE", "Ahead", "End", "Event", "Reading", "is_interrupt"]

# Seconds that closing waits for an iterator, which may never come back with its next item.
PATIENCE = 1.0
_NOTHING = Rows(pa.table({}))


def is_interrupt(error: BaseException) -> bool:
    """Whether a signal handler has raised it; that of Ctrl-C is not written in Python."""
    return isinstance(error, KeyboardInterrupt) or is_of_signal_handler(error)


def _wake(signal: LockType) -> None:
    """Lets whoever waits for the lock go on, or the next one who does."""
    try:  # noqa: SIM105
        signal.release()
    except RuntimeError:  # it was released before
        pass


class Event(NamedTuple):
    """An event that was read.

    Attributes:
        number: how many came before it.
        source: its source's name, where there are several.
        table: the row.
        place: where it stood, for messages.
    """

    number: int
    source: str | None
    table: pa.Table
    place: str


class End(NamedTuple):
    """Why no event follows.

    Attributes:
        error: what the source has raised.
        is_whole: the source has come to its end; else the caller wants no more.
    """

    error: BaseException | None = None
    is_whole: bool = False


class Reading:
    """One source, and what it has given. Each step may be begun anew.

    Args:
        name: of the source, where there are several.
        source: the source.
        wanted: what is wanted of it.

    Attributes:
        received: how many rows it has given.
        has_ended: it has no more.
        at: number of the next event among the rows that it gave last.
        types: of the columns that decide between sources.
        key: what they say of the next event; None: nobody has looked.
    """

    def __init__(self, name: str | None, source: Source, wanted: Wanted) -> None:
        self.name, self.source, self.wanted = name, source, wanted
        self.received, self.at = 0, 0
        self.has_ended = False
        self.types: list[pa.DataType] = []
        self.key: tuple[Any, ...] | None = None
        self._rows = _NOTHING
        self._came: Rows | None = _NOTHING  # and is not counted yet
        self._position: Position | None = None
        self._is_open = self._is_closed = False

    def open(self) -> None:
        """Begins to read, or goes on behind what was read."""
        try:
            self.source.open(self.wanted, self._position)
        except ConfigurationError:
            self._is_closed = True  # nothing was begun; perhaps others are reading it
            raise
        self._is_open = True

    def read(self) -> None:
        """Waits a moment for the next rows; there may be none yet."""
        if self._came is _NOTHING and not self._is_open:
            self.source.close()
            self.open()
        if self._came is _NOTHING:
            try:
                self._came = self.source.read(1, 0, IDLE)
            except BaseException:
                # What it had in hand may be lost: where it can, it goes back to its position.
                self._is_open = not self.source.can_replay
                raise
        came = self._came
        if came is None:
            self.has_ended = True
            return
        count = came.table.num_rows
        position = came.position if count else self._position
        received = self.received + count
        # No call from here to the end: all of it, or none.
        self._rows, self.at, self.key = came, 0, None
        self._position, self.received, self._came = position, received, _NOTHING

    @property
    def has_event(self) -> bool:
        """Whether an event is there."""
        return self.at < int(self._rows.table.num_rows)

    def event(self, number: int) -> Event:
        """The next event."""
        rows, at = self._rows, self.at
        place = rows.place if rows.row is None else rows.row(at)
        return Event(number, self.name, rows.table.slice(at, 1), place)

    def look(self, names: Sequence[str], what: str) -> None:
        """Sets the key of the next event. An event without one comes first: the engine says what
        is wrong with it."""
        values = [self._value(name) for name in names]
        key: tuple[Any, ...] = (False,)
        if all(map(len, values)):
            with contextlib.suppress(InputError):
                time = int(order_key(values[0], names[0], what)[0])
                key = (True, time, *(value[0].as_py() for value in values[1:]))
        self.types = [value.type for value in values]
        self.key = key

    def _value(self, name: str) -> pa.Array:
        """What the next event has in a column; empty: there is no such column, or a null."""
        table = self._rows.table
        if table.column_names.count(name) != 1:
            return pa.nulls(0)
        value = one_array(table[name].slice(self.at, 1)).drop_null()
        return value.dictionary_decode() if pa.types.is_dictionary(value.type) else value

    def close(self) -> None:
        """Ends the reading; once, whatever comes of it."""
        if not self._is_closed:
            try:
                self.source.close()
            except BaseException as error:
                self._is_closed = not is_interrupt(error)
                raise
            self._is_closed = True


class Ahead:
    """The events of a source, or of several in the order of their times.

    Args:
        readings: of the sources, in the order in which events of one time run.
        most: how many events a thread reads ahead; 0: the caller reads them.
        names: the columns that order the events of several sources.
        what: the operator, for messages.

    Attributes:
        done: how many events the caller has done with; it sets this.
        closed: it wants no more.
    """

    def __init__(
        self, readings: Sequence[Reading], most: int, names: Sequence[str], what: str
    ) -> None:
        self.done = 0
        self.closed = False
        self._readings, self._most = readings, most
        self._names, self._what = names, what
        self._given = 0
        self._events: deque[Event] = deque()
        self._here: Event | None = None  # read by the caller
        self._raised: BaseException | None = None  # meanwhile
        self._end: End | None = None
        self._room, self._news = threading.Lock(), threading.Lock()
        self._room.acquire()
        self._news.acquire()
        self._thread: threading.Thread | None = None
        self._of_closing: BaseException | None = None

    @property
    def pending(self) -> int:
        """How many events were read and are not done."""
        return sum(one.received + one.source.waiting for one in self._readings) - self.done

    def start(self) -> None:
        """Opens the sources, and begins to read ahead."""
        for one in self._readings:
            one.open()
        if self._most:
            # A daemon: an iterator may never come back from waiting for its next item.
            self._thread = threading.Thread(target=self._run, name="specstream-pull", daemon=True)
            self._thread.start()

    # ---- for the caller ----

    def event(self) -> Event | End:
        """The first event that is not done, or the end; waits for it. May be begun anew.

        Raises:
            BaseException: what a signal handler raises.
        """
        while not self.closed:
            end = self._end  # first: once it is set, no event is added
            if self._here is not None and self._here.number >= self.done:
                return self._here
            while self._events and self._events[0].number < self.done:
                self._events.popleft()
            if self._events:
                return self._events[0]
            if end is not None:
                return end
            if self._most:
                self.go_on()
                self._news.acquire()
            else:
                self._read_here()
        return End()

    def go_on(self) -> None:
        """Has the thread look whether there is room."""
        _wake(self._room)

    def _read_here(self) -> None:
        if self._raised is None:
            try:
                self._here = self._next()
            except BaseException as error:
                self._raised = error  # before all else: a source may raise it once only
        if self._raised is not None:
            if is_interrupt(self._raised):
                raise self._interrupt()
            self._end = End(self._raised)
        elif self._here is None:
            self._end = self._last()
        if self._end is not None:
            self._raised = None
            self._close_sources()

    def _interrupt(self) -> BaseException:
        """What a signal handler has raised; it is not kept."""
        raised, self._raised = self._raised, None
        assert raised is not None
        return raised

    def forget(self) -> None:
        """Drops the source's error: its traceback knows the callers that it was raised to."""
        self._end = End()

    # ---- the reader ----

    def _run(self) -> None:
        end: End | None = None
        try:
            while end is None:
                if self._given - self.done >= self._most and not self.closed:
                    self._room.acquire()
                    continue
                event = self._next()
                if event is None:
                    end = self._last()
                else:
                    self._events.append(event)
                    _wake(self._news)
        except BaseException as error:
            end = End(error)
        try:
            self._close_sources()
        except BaseException as error:
            self._of_closing = error
            if end.error is None:
                end = End(error)
        self._end = end
        _wake(self._news)

    def _next(self) -> Event | None:
        """Reads the next event; None: there is none, or the caller wants no more."""
        for one in self._readings:
            while not one.has_event and not one.has_ended and not self.closed:
                one.read()
        there = [one for one in self._readings if one.has_event]
        if self.closed or not there:
            return None
        first = there[0] if len(self._readings) == 1 else self._earliest(there)
        event = first.event(self._given)
        # No call from here to whoever keeps it: it is given, or still there.
        first.at, first.key, self._given = first.at + 1, None, self._given + 1
        return event

    def _earliest(self, readings: Sequence[Reading]) -> Reading:
        """The one whose event is the next in order.

        Raises:
            InputError: their times are of several types.
        """
        for one in readings:
            if one.key is None:
                one.look(self._names, self._what)
        for at, name in enumerate(self._names):
            types = {one.name: of for one in readings if not pa.types.is_null(of := one.types[at])}
            if len(set(types.values())) > 1:
                listed = ", ".join(f"{of} from {source!r}" for source, of in types.items())
                raise InputError(
                    f"{self._what}: column {name!r} has several types, {listed}: cast it to one"
                )
        return min(readings, key=lambda one: one.key or ())

    def _last(self) -> End:
        return End(is_whole=not self.closed and all(one.has_ended for one in self._readings))

    # ---- the end ----

    def stop(self) -> None:
        """Reads no more. The thread ends when its source returns."""
        self.closed = True
        self.go_on()
        _wake(self._news)

    def leave(self) -> None:
        """Reads no more, and closes the sources, if no thread does."""
        self.stop()
        if self._thread is None:
            self._close_sources()

    def close(self) -> None:
        """Closes the sources, while the caller reads none of them.

        Raises:
            BaseException: what a source has raised when it was closed halfway.
        """
        self.leave()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(PATIENCE)
        error, self._of_closing = self._of_closing, None
        if error is not None:
            raise error

    def _close_sources(self, first: int = 0) -> None:
        """Closes all from ``first`` on, also if one of them raises."""
        if first < len(self._readings):
            try:
                self._readings[first].close()
            finally:
                self._close_sources(first + 1)
