"""What the rows have in common: rules of texts, runs, interleaved rounds, and rows that stop.

What an event takes is ``process`` of an Arrow table with all rows out, on one thread unless it is
said, in a new engine each time, whose code is compiled before. Rows have as many digits as count.
"""

from __future__ import annotations

import linecache
import math
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

import specstream as ss
from bench.chapter4.margin import quartiles

__all__ = [
    "ONE_THREAD",
    "Amount",
    "DiffersError",
    "SlowError",
    "affordable",
    "compared",
    "interleaved",
    "nanoseconds",
    "process",
    "rule_of",
    "short",
    "stopped",
    "table",
    "told",
    "within_time",
]

Columns = Mapping[str, np.ndarray]
# Rounds of a row that takes longer than it should: medians and quartiles need some.
_FEWEST = 5
# Events that show whether a rule is much too slow.
_FEW = 2_000
ONE_THREAD: dict[str, Any] = {"threads": 1, "horizon": 0}


@dataclass(frozen=True)
class Amount:
    """How much to measure.

    Attributes:
        events: of a run of ours.
        rounds: beside what we have written ourselves.
        beside: rounds beside another monitor.
        seconds: that a run of ours takes at most; it gets fewer events where it must.
        peer: likewise a run of another monitor.
        row: seconds after which a row begins no further round, if it has had five.
        bounds: of *Timescales*.
        reaches: bounds of robustness.
        sizes: events and values of logs with data.
        mixed: events of a trace at random, on which verdicts are compared as well.
        heavy: events of five microseconds each.
        orders: through Spark.
        files: of them, each a micro-batch.
    """

    events: int
    rounds: int
    beside: int
    seconds: float
    peer: float
    row: float
    bounds: tuple[int, ...]
    reaches: tuple[int, ...]
    sizes: tuple[tuple[int, int], ...]
    mixed: int
    heavy: int
    orders: int
    files: int


class SlowError(Exception):
    """A rule takes so long that it is measured no further."""


class DiffersError(AssertionError):
    """Two that should say the same do not: no time of theirs is worth anything."""


def rule_of(
    text: str,
    name: str,
    event: Mapping[str, type],
    report: str | None = "violations",
    **options: Any,
) -> ss.Operator:
    """A rule of a module with ``def rule(e)``."""
    file = f"<{name} {report}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    space: dict[str, Any] = {"__name__": f"bench.rules.{name}"}
    exec(compile(text, file, "exec", dont_inherit=True), space)
    made: ss.Operator = ss.rule(event=dict(event), name=name, report=report, **options)(
        space["rule"]
    )
    return made


def table(columns: Columns, unit: str | None = None) -> pa.Table:
    """For an engine; ``unit``: the column ``time`` has times of it."""
    made = {
        name: pa.array(column.tolist() if column.dtype.kind == "U" else column)
        for name, column in columns.items()
    }
    if unit is not None:
        made["time"] = made["time"].cast(pa.timestamp(unit))
    return pa.table(made)


def process(operator: Any, data: Any, options: Mapping[str, Any] = ONE_THREAD) -> tuple[Any, float]:
    """Rows, and seconds: of an operator or a pipeline, to the end of all time."""
    with ss.Engine(operator, **options) as engine:
        began = time.perf_counter()
        rows = engine.process(data, order_by="time", end=True)
        seconds = time.perf_counter() - began
    return rows, seconds


def told(rows: pa.Table, events: int) -> np.ndarray:
    """The verdicts of a rule that reports all, by the times of the events, which are positions.

    Raises:
        DiffersError: an event was told twice or not at all.
    """
    times = rows["time"].to_numpy()
    if not np.array_equal(np.sort(times), np.arange(events)):
        raise DiffersError(f"{len(times):,} verdicts of {events:,} events")
    verdicts = np.empty(events, dtype=bool)
    verdicts[times] = rows["verdict"].to_numpy(zero_copy_only=False)
    return verdicts


def interleaved(
    contestants: Mapping[str, Callable[[], float]], rounds: int, most: float = math.inf
) -> dict[str, list[float]]:
    """Seconds of each in rounds, in which one begins after the other.

    Args:
        contestants: what runs, and says how long it has taken.
        rounds: at most.
        most: seconds after which no round begins, if there have been five.
    """
    end = time.perf_counter() + most
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    order = list(contestants.items())
    for number in range(rounds):
        if number >= _FEWEST and time.perf_counter() > end:
            break
        first = number % len(order)
        for name, run in order[first:] + order[:first]:
            seconds[name].append(run())
    return seconds


def short(value: float) -> float:
    """With four digits: rounds differ by more."""
    return float(f"{value:.4g}")


def nanoseconds(seconds: Sequence[float], events: int) -> float:
    """An event, by the median of the rounds."""
    return short(1e9 * statistics.median(seconds) / events)


def compared(
    ours: Sequence[float], other: Sequence[float], events: int, others: int | None = None
) -> dict[str, Any]:
    """How many times as long an event of the other one takes: the ratio of the medians.

    Args:
        ours: seconds of each round.
        other: likewise.
        events: of ours.
        others: events of the other one, if not as many.
    """
    more = events / (others or events)
    low, _, high = quartiles([more * there / here for here, there in zip(ours, other, strict=True)])
    middle = more * statistics.median(other) / statistics.median(ours)
    return {
        "ours": nanoseconds(ours, events),
        "other": nanoseconds(other, others or events),
        "ratio": [short(one) for one in (min(low, middle), middle, max(high, middle))],
        "rounds": len(ours),
    }


def affordable(most: int, least: int, seconds: float, run: Callable[[int], float]) -> int:
    """As many events as take so long: all, a quarter of them, a sixteenth, but not too few."""
    sizes = [most]
    while sizes[-1] // 4 >= least and len(sizes) < 6:
        sizes.append(sizes[-1] // 4)
    chosen = sizes.pop()
    took = run(chosen)
    # What comes takes four times as long, or sixteen times.
    while sizes and 4 * took <= seconds:
        took = run(sizes[-1])
        if took > seconds:
            break
        chosen = sizes.pop()
    return chosen


def within_time(
    operator: Any, make: Callable[[int], pa.Table], most: int, least: int, seconds: float
) -> pa.Table:
    """A table that an operator takes in that time, if it must of fewer events.

    Raises:
        SlowError: the least of them would take ten times as long.
    """
    process(operator, make(min(least, _FEW)))
    tables: dict[int, pa.Table] = {}
    took: dict[int, float] = {}

    def run(events: int) -> float:
        tables[events] = make(events)
        took[events] = process(operator, tables[events])[1]
        return took[events]

    def check(events: int, all_together: float) -> None:
        if all_together > 10 * seconds:
            each = f"{1e6 * took[events] / tables[events].num_rows:,.0f} µs"
            raise SlowError(f"an event takes {each} of {events:,}: not compared")

    few = min(least, _FEW)
    check(few, run(few) * least / few)
    chosen = affordable(most, least, seconds, run)
    check(chosen, took[chosen])
    return tables[chosen]


def stopped(name: Mapping[str, Any], measure: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """A row, or why there is none: verdicts differ, or a rule is refused or much too slow."""
    try:
        return {**name, **measure()}
    except (DiffersError, SlowError, ss.SpecstreamError) as error:
        said = " ".join(str(error).split())
        print(f"{', '.join(map(str, name.values()))}: {said}", file=sys.stderr, flush=True)
        return {**name, "stopped": said[:300]}
