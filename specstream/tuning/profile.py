"""Where an operator's conflicts are, on the user's data: ``ss.profile``, ``specstream profile``."""

from __future__ import annotations

from typing import Any

from specstream.declarations.options import instance, refuses_unknown
from specstream.definition.operator import Operator
from specstream.engine.engine import Engine
from specstream.errors import ConfigurationError
from specstream.profiling import Profile
from specstream.tuning.stream import Stream, as_stream

__all__ = ["profile", "profile_on"]


@refuses_unknown
def profile(
    operator: Operator,
    events: Any,
    *,
    order_by: str | None = None,
    source: str | None = None,
    threads: int = 2,
    horizon: int = 8,
    chunk: int = 8,
    protocol: str = "value",
) -> Profile:
    """Shows which words of an operator's state make its runs conflict, and on which lines.

    The operator runs over the events speculatively, even if that is slower, as ``specstream
    profile`` does it.

    Args:
        operator: what to run; a pipeline, too.
        events: as for :meth:`specstream.Engine.process`.
        order_by: column of the event time; None: the rows are in order.
        source: column that tells sources apart; breaks ties.
        threads: of the engine.
        horizon: transactions that may start ahead of the next to commit.
        chunk: events in one transaction.
        protocol: how conflicts are found, "value" or "eager".

    Raises:
        ConfigurationError: an option has a value that it cannot have, or the operator is declared
            with ``speculate=False``.
        InputError: a column is missing or has the wrong type, or there are no events.
        Exception: what the operator raises on these events.

    >>> import specstream as ss
    >>> class Seen(ss.State):
    ...     total = ss.scalar(int)
    >>> @ss.operator(state=Seen, event={"x": int}, emits={})
    ... def add_up(state, event, emit):
    ...     state.total += event.x
    >>> found = ss.profile(add_up, {"x": range(1000)})
    >>> found.events, found.operator
    (1000, 'add_up')
    """
    instance("operator", operator, Operator, "an operator or a pipeline")
    stream = as_stream(events, operator, order_by, source)
    return profile_on(
        operator, stream, threads=threads, horizon=horizon, chunk=chunk, protocol=protocol
    )


def profile_on(operator: Operator, stream: Stream, **setting: Any) -> Profile:
    """:func:`profile` of events that have been read; ``setting`` are options of the engine."""
    if not operator.speculates:
        raise ConfigurationError(
            f"operator {operator.name!r} is declared with speculate=False: its events run one "
            "after the other, and none conflicts"
        )
    with Engine(operator, **setting, execution="speculate", profile=True) as engine:
        engine.process(stream.table, **stream.order)
        return engine.profile()
