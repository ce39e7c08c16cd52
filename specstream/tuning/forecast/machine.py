"""The virtual machine: so many cores, and the runtime's own code (``stm_native/forecast/``)."""

from __future__ import annotations

import threading
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, Any

from specstream.declarations.limits import Limits
from specstream.declarations.options import integer, one_of
from specstream.errors import InputError, SpecstreamError
from specstream.tuning.forecast.costs import Costs
from specstream.tuning.forecast.trace import Trace

if TYPE_CHECKING:
    from specstream._forecast import replay_load_p
    from specstream._native import CData

__all__ = ["Outcome", "replay"]

# Of the events, one in so many runs before it is measured.
WARM = 10
# As many as an engine may have.
MOST_THREADS = 256
_one_at_a_time = threading.Lock()


@dataclass(frozen=True)
class Outcome:
    """What a replayed run did.

    Attributes:
        nanoseconds: of the machine's clock, from the start of the measured events to their end.
        events: that were measured.
        speculative_runs: of them so many.
        aborts: speculative runs that were dropped.
        transfers: cache lines that went from core to core.
        accesses: of all cores, by which what the replay took to compute can be foretold.
        parks: times that a thread went to sleep.
    """

    nanoseconds: int
    events: int
    speculative_runs: int
    aborts: int
    transfers: int
    accesses: int
    parks: int


def replay(
    trace: Trace,
    threads: int,
    horizon: int,
    chunk: int = 1,
    *,
    protocol: str = "value",
    most: int | None = None,
    forced: bool = False,
    held: float = 0.0,
    costs: Costs | None = None,
) -> Outcome:
    """Replays events on a machine of as many cores as threads. The same each time.

    Args:
        trace: the events.
        threads: of the engine, each on a core of its own.
        horizon: how many transactions may start ahead of the head; 0: plain.
        chunk: events in one transaction.
        protocol: "value" or "eager".
        most: transactions that are replayed, at most.
        forced: the head is never run in place at its first try.
        held: share of an event's time that holds the lock of the interpreter; 0: of compiled ones.
        costs: of the machine.

    Raises:
        ConfigurationError: an option has a value that it cannot have.
        InputError: an event takes less than no time.
        MemoryError: there is no memory for the machine.
        SpecstreamError: this installation has no machine, or the state that the events have left is
            not the one that was recorded.

    >>> from specstream.tuning.forecast.events import Access, Event
    >>> events = [Event(5e3, 5e3, [Access(64 * n, 0)], [Access(64 * n, 1)]) for n in range(400)]
    >>> apart = Trace(events)
    >>> replay(apart, 1, 0).nanoseconds > 3 * replay(apart, 4, 16).nanoseconds
    True
    """
    try:
        from specstream._forecast import ffi, lib
    except ImportError as error:
        raise SpecstreamError(
            "this installation has no virtual machine for forecasts: it was built with "
            "SPECSTREAM_FORECAST=0, as `make demo` does, or with a sanitizer; leave --cores out, "
            "or install again, in a checkout by: pip install --no-deps --editable ."
        ) from error
    threads = integer("threads", threads, 1, MOST_THREADS)
    horizon = integer("horizon", horizon, 0)
    chunk = integer("chunk", chunk, 1)
    protocol = one_of("protocol", protocol, ("value", "eager"))
    count = len(trace)
    if most is not None:
        count = min(count, integer("most", most, 1, other=" or None") * chunk)
    warm = count // WARM // chunk * chunk
    limits = Limits()
    nanoseconds = astuple(Costs() if costs is None else costs)
    picoseconds = ffi.new("int64_t[]", [round(1000 * cost) for cost in nanoseconds])

    def array(kind: str, of: Any) -> CData:
        pointer: CData = ffi.cast(f"{kind} *", of.ctypes.data)
        return pointer

    load: replay_load_p = ffi.new(
        "struct replay_load *",
        {
            "threads": threads,
            "horizon": horizon,
            "chunk": chunk,
            "is_eager": protocol == "eager",
            "is_forced": forced,
            "held": round(1000 * held),
            "count": count,
            "warm": warm,
            "read_limit": limits.reads,
            "redo_limit": limits.writes,
            "row_limit": 8 * limits.rows,
            "events": array("struct replay_event", trace.events),
            "accesses": array("struct replay_access", trace.accesses),
            "state_words": trace.state_words,
            "regions": array("uint64_t", trace.regions),
            "region_count": len(trace.regions) // 2,
            "words": array("uint64_t", trace.words),
            "before": array("uint64_t", trace.before),
            "behind": array("uint64_t", trace.behind),
            "word_count": len(trace.words),
            "costs": picoseconds,
        },
    )
    with _one_at_a_time:
        result = lib.replay_run(load)
    if result.nanoseconds == lib.REPLAY_BAD_EVENT:
        event = trace.events[result.bad_event]
        raise InputError(
            f"event {result.bad_event} takes {event['plain']} ns in place and "
            f"{event['speculative']} ns of a speculative run; expected durations of at least 0"
        )
    if result.nanoseconds < 0:
        raise MemoryError(f"no memory for a virtual machine of {threads} cores")
    if result.wrong and count == len(trace) and trace.replays_all:
        raise SpecstreamError(
            f"replayed on {threads} cores, horizon {horizon}, chunk {chunk}, {protocol}: "
            f"{result.wrong} of {len(trace.words)} words are not what was recorded. This is a "
            "defect of specstream: please report it, with the operator"
        )
    return Outcome(
        result.nanoseconds,
        count - warm,
        result.speculative_runs,
        result.dropped,
        result.transfers,
        result.accesses,
        result.parks,
    )
