"""Event time across micro-batches: which events wait for the next one, and for how long.

Events of one micro-batch may come before, in time, those of an earlier one. So an event is not
applied when it comes. Each source has a *frontier*, its largest time seen less the watermark, and
the least of them is the stream's. What lies above it is handed to the engine, which runs it ahead
of its turn; it commits with the batch that brings the frontier past it.

Frontiers move at the end of a batch only, and by nothing but the events themselves. Inside a batch
nothing is late whatever its order, and a batch that is run again after a crash, hours later, emits
the same rows. That is why a source is called idle by the time that the *other* sources have
reached, and never by a clock on the wall, which would have moved on in between. When all sources
are silent, nothing is idle; :meth:`BatchFeed.finish` ends such a stream.
"""

from __future__ import annotations

import datetime
import math
import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pyarrow as pa

from specstream.arrivals import END, Late, Name, Sources
from specstream.columns import order_key
from specstream.engine import Engine
from specstream.errors import ConfigurationError, InputError
from specstream.spark.delivery import Sink, is_sink

__all__ = ["Amount", "Delay", "EventTime", "Frontiers", "check_late"]

Amount = str | datetime.timedelta | int | float

_NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_LEAST = -(2**63)


class Delay:
    """A length of event time: a duration, or a number in the order column's own unit.

    Args:
        option: names it in messages.
        amount: a duration such as ``"10 seconds"``, ``"1 minute 30 seconds"`` or a ``timedelta``,
            for columns of timestamps and dates; a number for columns of numbers.

    Raises:
        ConfigurationError: it is none of these, or below zero.

    >>> delay = Delay("watermark", "1.5 s")
    >>> delay.before(10_000, pa.timestamp("ms"), "time")
    8500
    >>> Delay("watermark", 3).before(10, pa.int64(), "time")
    7
    """

    def __init__(self, option: str, amount: Amount) -> None:
        self._option = option
        self._amount = amount
        self._shown = f"{option}={amount!r}"
        self._nanoseconds: int | None = None
        if isinstance(amount, str | datetime.timedelta):
            self._nanoseconds = _nanoseconds(option, amount)
            length: float = self._nanoseconds
        elif isinstance(amount, int | float) and not isinstance(amount, bool):
            length = amount
        else:
            raise ConfigurationError(
                f'{option}={amount!r}; expected a duration such as "10 seconds", or a number in '
                "the unit of an order column of numbers"
            )
        if not 0 <= length < math.inf:
            raise ConfigurationError(f"{option}={amount!r}; expected zero or more")

    def describe(self) -> dict[str, Any]:
        """As plain data."""
        return {"amount": self._amount_in_numbers, "is_time": self.is_time, "shown": self._shown}

    @classmethod
    def described(cls, option: str, plain: Mapping[str, Any]) -> Delay:
        """What :meth:`describe` gave.

        >>> Delay.described("watermark", Delay("watermark", "3 s").describe()).is_time
        True
        """
        delay = cls(option, plain["amount"])
        delay._nanoseconds = plain["amount"] if plain["is_time"] else None
        delay._shown = plain["shown"]
        return delay

    @property
    def is_time(self) -> bool:
        """Whether it is a duration, and not a number."""
        return self._nanoseconds is not None

    @property
    def _amount_in_numbers(self) -> int | float:
        if self._nanoseconds is not None:
            return self._nanoseconds
        assert isinstance(self._amount, int | float)
        return self._amount

    def before(self, key: int, of: pa.DataType, column: str) -> int:
        """The order key that lies so much before another one.

        Args:
            key: as the engine has it: the column's value, of floats their image in order.
            of: type of the order column.
            column: its name.

        Raises:
            InputError: the column has another kind of unit, or no times at all.
        """
        amount = self._in_unit_of(of, column)
        if not pa.types.is_floating(of):
            return max(key - int(amount), _LEAST)
        bits = key if key >= 0 else key ^ (2**63 - 1)
        value = struct.unpack("<d", struct.pack("<q", bits))[0] - amount
        return int(order_key(pa.array([value], pa.float64()), column, self._option)[0])

    def _in_unit_of(self, of: pa.DataType, column: str) -> int | float:
        """The amount in ticks of an order column; what is between two ticks is rounded up."""
        found = f"{self._shown}: order column {column!r} has type {of}"
        if pa.types.is_temporal(of):
            if self._nanoseconds is None:
                raise InputError(f'{found}; expected a duration such as "10 seconds"')
            tick = _DAY if of == pa.date32() else _NANOSECONDS[getattr(of, "unit", "ms")]
            return -(-self._nanoseconds // tick)
        if not (pa.types.is_integer(of) or pa.types.is_floating(of)):
            raise InputError(f"{found}; expected timestamps, dates or numbers: cast it")
        if self._nanoseconds is not None:
            raise InputError(
                f"{found}; expected a number in the column's own unit, or a column of timestamps: "
                "cast it"
            )
        if pa.types.is_integer(of) and not isinstance(self._amount, int):
            raise InputError(f"{found}; expected an integer in the column's own unit")
        assert isinstance(self._amount, int | float)
        return self._amount


_DAY = 24 * 60 * 60 * 10**9


def _nanoseconds(option: str, amount: str | datetime.timedelta) -> int:
    import pandas  # of the Spark extra; slow to import

    try:
        # A plain number in quotes would be nanoseconds to pandas; here it has no unit.
        if isinstance(amount, str) and not any(map(str.isalpha, amount)):
            raise ValueError("it has no unit")
        parsed = pandas.Timedelta(amount)
        if parsed is pandas.NaT:
            raise ValueError("it is no time")
    except (ValueError, OverflowError) as error:
        raise ConfigurationError(
            f'{option}={amount!r} is no duration ({error}); expected one such as "10 seconds", '
            '"1 minute 30 seconds", "500 ms" or "2 days"'
        ) from None
    return int(parsed.value)


class Frontiers:
    """How the frontiers of sources move with a micro-batch.

    Args:
        order_by: column of the event time.
        watermark: how far a source's frontier stays behind its largest time.
        idle_timeout: see :class:`EventTime`.
    """

    def __init__(self, order_by: str, watermark: Delay, idle_timeout: Delay | None) -> None:
        self._order_by = order_by
        self._watermark = watermark
        self._idle_timeout = idle_timeout

    def describe(self) -> dict[str, Any]:
        """The delays as plain data."""
        idle_timeout = self._idle_timeout
        return {
            "watermark": self._watermark.describe(),
            "idle_timeout": None if idle_timeout is None else idle_timeout.describe(),
        }

    @classmethod
    def described(cls, order_by: str, plain: Mapping[str, Any]) -> Frontiers:
        """What :meth:`describe` gave."""
        idle_timeout = plain["idle_timeout"]
        return cls(
            order_by,
            Delay.described("watermark", plain["watermark"]),
            None if idle_timeout is None else Delay.described("idle_timeout", idle_timeout),
        )

    def take_in(
        self, sources: Sources, table: pa.Table, submit: Callable[[], object]
    ) -> dict[Name, int]:
        """Has a batch's rows submitted, and moves nothing yet.

        Args:
            sources: that the rows are of, and those before.
            table: the rows.
            submit: takes them in.

        Returns:
            How far each source has come; one that holds back the stream is not among them.

        Raises:
            InputError: the time column has not the unit of the delays.
            Exception: what ``submit`` raised.
        """
        if not table.num_rows:
            return {}
        of = _type_of(table, self._order_by)
        if of is not None:
            self._check(of)
        submit()
        return {} if of is None else self._reached(sources, of)

    def _check(self, of: pa.DataType) -> None:
        """Whether the delays are of the column's kind, before anything is submitted."""
        for delay in (self._watermark, self._idle_timeout):
            if delay is not None:
                delay.before(0, of, self._order_by)

    def _reached(self, sources: Sources, of: pa.DataType) -> dict[Name, int]:
        if sources.highest is None or sources.lowest is None:
            return {}  # all rows were late or bad
        reached, idle = {}, []
        limit = None
        if self._idle_timeout is not None:
            limit = self._idle_timeout.before(sources.highest[0], of, self._order_by)
        for source in sources:
            has_sent = source.next_sequence > 0
            if limit is not None and (source.last if has_sent else sources.lowest) < limit:
                idle.append(source)
            if has_sent:
                reached[source.name] = self._watermark.before(source.last, of, self._order_by)
        names = {source.name for source in idle}
        # The source of the highest time is not idle.
        least = min(to for name, to in reached.items() if name not in names)
        for source in idle:
            reached[source.name] = max(reached.get(source.name, least), least)
        return reached


class EventTime:
    """What an engine does with micro-batches in event time.

    Args:
        engine: the engine; it may have events pending.
        order_by: column of the event time.
        watermark: how far a source's frontier stays behind its largest time.
        source: column that names each event's source; without it all are one source.
        idle_timeout: a source over which another one has got ahead by more than this does not hold
            back the stream; None: every source does for ever.
        sources: that hold back the stream from the start, though they have sent nothing.
        late: as of the engine; None: as the engine has it.

    Raises:
        ConfigurationError: an argument is not what it must be.

    >>> import specstream as ss
    >>> class Seen(ss.State):
    ...     count = ss.scalar(int)
    >>> @ss.operator(state=Seen, event={"x": int}, emits={"x": int, "place": int})
    ... def number(state, event, emit):
    ...     state.count += 1
    ...     emit(event.x, state.count)
    >>> with ss.Engine(number) as engine:
    ...     event_time = EventTime(engine, order_by="time", watermark=10)
    ...     for times in ([30, 10], [25, 41], [50]):
    ...         table = pa.table({"time": times, "x": times})
    ...         print(event_time.run(table)["x"].to_pylist())
    ...     print(event_time.finish()["x"].to_pylist())
    [10]
    [25, 30]
    []
    [41, 50]
    """

    def __init__(
        self,
        engine: Engine,
        *,
        order_by: str,
        watermark: Amount,
        source: str | None = None,
        idle_timeout: Amount | None = None,
        sources: Iterable[Name] = (),
        late: Late | None = None,
    ) -> None:
        self._engine = engine
        self._order_by = order_by
        self._frontiers = Frontiers(
            order_by,
            Delay("watermark", watermark),
            None if idle_timeout is None else Delay("idle_timeout", idle_timeout),
        )
        self._source = source
        if isinstance(sources, str):
            raise ConfigurationError(f"sources={sources!r}; expected a list of sources' names")
        engine._expect(tuple(sources), late)

    def run(self, table: pa.Table) -> pa.Table:
        """Takes in a micro-batch; the rows of all events that are below the frontier then.

        Raises:
            InputError: the table does not fit, its time column has not the unit of ``watermark``,
                or it has late events and the policy is "error".
            Exception: what the operator raised.
        """
        engine = self._engine
        reached = self._frontiers.take_in(
            engine._arrivals.sources,
            table,
            lambda: engine.submit(table, order_by=self._order_by, source_column=self._source),
        )
        if reached:
            engine._advance_all(reached)
        return engine.poll(timeout=None)

    def describe(self) -> dict[str, Any]:
        """What decides, beside the rows, which events a batch commits; as plain data."""
        engine = self._engine
        return {
            **self._frontiers.describe(),
            "sources": [n if isinstance(n, str) else int(n) for n in engine._declared],
            "late": engine._late,
        }

    def finish(self) -> pa.Table:
        """Ends all sources; the rows of all events that were still waiting."""
        engine = self._engine
        ends = {source.name: END for source in engine._arrivals.sources}
        if ends:
            engine._advance_all(ends)
        return engine.poll(timeout=None)


def check_late(late: Late, late_to: Sink | None) -> None:
    """Whether late rows have somewhere to go.

    Raises:
        ConfigurationError: they have not, or there are none to go there.
    """
    if late_to is not None and not is_sink(late_to):
        raise ConfigurationError(
            f"late_to={late_to!r}: expected a sink such as ss.spark.parquet_sink(path), or any "
            "function (pyarrow.Table, batch_id)"
        )
    if late == "side" and late_to is None:
        raise ConfigurationError(
            'late="side" without late_to: give late_to=, the sink that gets the late rows, or use '
            'late="drop"'
        )
    if late != "side" and late_to is not None:
        raise ConfigurationError(
            f'late_to= gets the late rows of late="side"; expected that, and late is {late!r}'
        )


def _type_of(table: pa.Table, column: str) -> pa.DataType | None:
    """None: there is no such column, or nothing in it."""
    of = table.schema.field(column).type if column in table.column_names else None
    return None if of is None or pa.types.is_null(of) else of
