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

from collections.abc import Iterable

import pyarrow as pa

from specstream.checkpoint.run.delivery import Sink
from specstream.checkpoint.run.frontiers import Amount, Delay, Frontiers, PlainFrontiers
from specstream.engine.engine import Engine
from specstream.engine.sources import Late, Name
from specstream.errors import ConfigurationError

__all__ = ["Amount", "Delay", "EventTime", "PlainEventTime", "check_late"]


class PlainEventTime(PlainFrontiers):
    """What decides which events a batch commits, as plain data."""

    sources: list[int | str]
    late: Late


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
        engine.durable.expect(sources, late)

    def run(self, table: pa.Table, batch_id: int = 0) -> pa.Table:
        """Takes in a micro-batch; the rows of all events that are below the frontier then.

        Args:
            table: its rows.
            batch_id: names it in errors.

        Raises:
            InputError: the table does not fit, its time column has not the unit of ``watermark``,
                or it has late events and the policy is "error".
            Exception: what the operator raised.
        """
        engine = self._engine
        pending = engine.durable.pending
        pending.late.batch_id = batch_id
        try:
            reached = self._frontiers.take_in(
                pending.sources,
                table,
                lambda: engine.submit(table, order_by=self._order_by, source_column=self._source),
            )
        finally:
            pending.late.batch_id = None
        if reached:
            engine.durable.advance(reached)
        return engine.poll_whole(timeout=None)

    def describe(self) -> PlainEventTime:
        """What decides, beside the rows, which events a batch commits; as plain data."""
        engine = self._engine
        return {
            **self._frontiers.describe(),
            "sources": [n if isinstance(n, str) else int(n) for n in engine.durable.sources],
            "late": engine.durable.late,
        }

    def finish(self) -> pa.Table:
        """Ends all sources; the rows of all events that were still waiting."""
        engine = self._engine
        ends = {source.name: None for source in engine.durable.pending.sources}
        if ends:
            engine.durable.advance(ends)
        return engine.poll_whole(timeout=None)


def check_late(late: Late, late_to: Sink | None) -> None:
    """Whether late rows have somewhere to go.

    Raises:
        ConfigurationError: they have not, or there are none to go there.
    """
    if late == "side" and late_to is None:
        raise ConfigurationError(
            'late="side" without late_to: give late_to=, the sink that gets the late rows, or use '
            'late="drop"'
        )
    if late != "side" and late_to is not None:
        raise ConfigurationError(
            f'late_to= gets the late rows of late="side"; expected that, and late is {late!r}'
        )
