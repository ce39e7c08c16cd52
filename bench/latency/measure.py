"""What is measured: calls with one row, and events that arrive at given times whatever happens.

Arrivals are drawn before, with exponential intervals, and nothing delays them: the latency of an
event is the time from its *arrival* to the moment when the program has its row. Where the program
is late to submit it, because earlier events keep it busy, that counts as well; one that waited for
each answer before it sent the next event would leave out just the events that had to wait.

Capacity is what the same program reaches when all events have arrived already. Beside each latency
stands that of an ideal machine, whose program and engine take no time: as many threads, events as
long, the same arrivals, commits in order.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import specstream as ss
from bench.chapter4.margin import quartiles
from bench.chapter4.paced_sources import LOOK
from bench.chapter4.slowed import SlowedEngine, busy_rounds
from bench.options import Say

__all__ = [
    *("CALLS", "FULL", "LOADS", "QUICK", "SETTINGS", "Amount", "Setting"),
    *("arrivals", "calls", "count", "ideal", "load", "paced"),
]

Times = npt.NDArray[np.float64]

# Parts of the capacity.
LOADS = (0.1, 0.5, 0.9)
COUNTS = 100


class Counts(ss.State):
    """A hundred counters, as in Listing 4.2 of Brito 2010."""

    counts = ss.array(int, COUNTS)


@ss.operator(state=Counts, event={"x": int}, emits={"x": int, "count": int})
def count(state, event, emit):  # type: ignore[no-untyped-def]
    """Counts one of a hundred."""
    state.counts[event.x % COUNTS] += 1
    emit(event.x, state.counts[event.x % COUNTS])


@dataclass(frozen=True)
class Setting:
    """An engine, and the work of its events.

    Attributes:
        options: of the engine.
        seconds: that an event takes.
        is_asleep: it sleeps so long; else it works.
    """

    options: Mapping[str, Any]
    seconds: float
    is_asleep: bool

    @property
    def threads(self) -> int:
        return int(self.options["threads"])

    @property
    def work(self) -> dict[str, Any]:
        """As :meth:`SlowedEngine.pace` takes it."""
        if self.is_asleep:
            return {"sleep": self.seconds}
        return {"rounds": round(self.seconds * busy_rounds())}


SETTINGS = {
    "1 thread": Setting({"threads": 1, "horizon": 0}, 200e-6, False),
    "2 threads": Setting({"threads": 2, "horizon": 8, "chunk": 1}, 200e-6, False),
    "16 threads, asleep": Setting({"threads": 16, "horizon": 32, "chunk": 1}, 4e-3, True),
}


@dataclass(frozen=True)
class Amount:
    """How much to measure.

    Attributes:
        calls: of each kind, in each round.
        rounds: of these.
        capacity: events that the capacity is measured with.
        seconds: that events arrive, at each load in each round.
        load_rounds: of that.
    """

    calls: int
    rounds: int
    capacity: int
    seconds: float
    load_rounds: int


FULL = Amount(calls=50, rounds=100, capacity=2_000, seconds=4.0, load_rounds=5)
QUICK = Amount(calls=5, rounds=5, capacity=100, seconds=0.2, load_rounds=1)


# ---- calls with one row ----


class _Caller:
    """One event at a time, by an engine of its own."""

    def __init__(self, engine: ss.Engine) -> None:
        self.engine = engine
        self.number = 0
        self.table = pa.table({"x": [7]})

    def process_table(self) -> None:
        self.engine.process(self.table)

    def process_dict(self) -> None:
        self.engine.process({"x": [7]})

    def advance_and_poll(self) -> None:
        self.number += 1
        self.engine.submit_event(self.number, x=self.number)
        self.engine.advance(0, self.number + 1)
        while not self.engine.poll(timeout=1.0).num_rows:
            pass

    def ordered_and_poll_rows(self) -> None:
        self.number += 1
        self.engine.submit_event(self.number, ordered=True, x=self.number)
        while not self.engine.poll_rows(timeout=1.0):
            pass


CALLS: dict[str, Callable[[_Caller], None]] = {
    "`process`, a table of one row": _Caller.process_table,
    "`process`, a dict of one row": _Caller.process_dict,
    "`submit_event`, `advance`, `poll`": _Caller.advance_and_poll,
    "`submit_event(ordered=True)`, `poll_rows`": _Caller.ordered_and_poll_rows,
}


def calls(amount: Amount, say: Say) -> dict[str, Any]:
    """Microseconds of each of CALLS: the least of all, and the median. They take turns."""
    settings = {"1 thread": 1, "2 threads": 2}
    taken: dict[tuple[str, str], list[int]] = {}
    with ExitStack() as stack:
        callers = {
            (setting, name): (_Caller(stack.enter_context(ss.Engine(count, threads=threads))), call)
            for setting, threads in settings.items()
            for name, call in CALLS.items()
        }
        for caller, call in callers.values():
            call(caller)  # compiles what it needs
        for number in range(amount.rounds):
            if number % 10 == 0:
                say(f"calls, round {number + 1}")
            for key, (caller, call) in callers.items():
                for _ in range(amount.calls):
                    began = time.perf_counter_ns()
                    call(caller)
                    taken.setdefault(key, []).append(time.perf_counter_ns() - began)
    return {
        "calls": amount.calls * amount.rounds,
        "microseconds": {
            setting: {
                name: {
                    "least": min(taken[setting, name]) / 1e3,
                    "median": statistics.median(taken[setting, name]) / 1e3,
                }
                for name in CALLS
            }
            for setting in settings
        },
    }


# ---- events that arrive at given times ----


def arrivals(rate: float, seconds: float, seed: int) -> Times:
    """When they come: so many a second, with exponential intervals; seconds."""
    generator = np.random.default_rng(seed)
    come = np.cumsum(generator.exponential(1 / rate, int(2 * seconds * rate) + 10))
    return come[come < seconds]


def ideal(come: Times, threads: int, seconds: float) -> Times:
    """Latencies on a machine whose program and engine take no time; commits are in order."""
    free = [0.0] * threads
    latest, latencies = 0.0, np.empty(len(come))
    for number, at in enumerate(come.tolist()):
        first = min(range(threads), key=free.__getitem__)
        free[first] = max(at, free[first]) + seconds
        latest = max(latest, free[first])
        latencies[number] = latest - at
    return latencies


class Expected:
    """Rows of the sequential run: those of fewer events are the first of them."""

    def __init__(self) -> None:
        self._rows: list[tuple[int, int]] = []

    def check(self, rows: list[tuple[Any, ...]], what: str) -> None:
        """Whether these are the rows of so many events.

        Raises:
            AssertionError: they are not.
        """
        if len(self._rows) < len(rows):
            run = count.run_sequential({"x": np.arange(len(rows))})
            self._rows = [tuple(row.values()) for row in run.output.to_pylist()]
        if rows != self._rows[: len(rows)]:
            raise AssertionError(f"{what}: other rows than the sequential run")


def paced(setting: Setting, come: Times, expected: Expected) -> Times:
    """Seconds from the arrival of each event until the program has its row.

    The program submits each event when it has come, or as soon as it can afterwards, and looks for
    rows after each, and in between.

    Raises:
        AssertionError: the rows are not those of the sequential run.
    """
    with SlowedEngine(count, **setting.options) as slowed:
        engine = slowed.engine
        # The first one compiles what submitted events need.
        engine.submit_event(0, ordered=True, x=0)
        rows: list[tuple[Any, ...]] = engine.poll_rows(timeout=None)
        slowed.pace(**setting.work)
        seen: list[float] = []

        def collect(timeout: float) -> None:
            found = engine.poll_rows(timeout=timeout)
            if found:
                rows.extend(found)
                seen.extend([time.perf_counter() - began] * len(found))

        began = time.perf_counter()
        for number, at in enumerate(come.tolist(), start=1):
            while (rest := at - (time.perf_counter() - began)) > 0:
                collect(min(rest, LOOK))
            engine.submit_event(number, ordered=True, x=number)
            collect(0.0)
        while len(seen) < len(come):
            collect(1.0)
    expected.check(rows, f"{setting.threads} thread(s)")
    return np.array(seen) - come


def load(amount: Amount, say: Say) -> dict[str, Any]:
    """Latency of each setting at each part of its capacity."""
    expected = Expected()
    capacity: dict[str, list[float]] = {name: [] for name in SETTINGS}
    for number in range(amount.load_rounds):
        say(f"capacity, round {number + 1}")
        for name, setting in SETTINGS.items():
            last = float(paced(setting, np.zeros(amount.capacity), expected)[-1])
            capacity[name].append(amount.capacity / last)
    found: dict[tuple[str, float], list[tuple[Times, Times]]] = {}
    for number in range(amount.load_rounds):
        for place, part in enumerate(LOADS):
            for name, setting in SETTINGS.items():
                say(f"{name}, {part:.0%} of capacity, round {number + 1}")
                rate = part * statistics.median(capacity[name])
                come = arrivals(rate, amount.seconds, 100 * number + place)
                pair = paced(setting, come, expected), ideal(come, setting.threads, setting.seconds)
                found.setdefault((name, part), []).append(pair)
    return {
        "seconds": amount.seconds,
        "rounds": amount.load_rounds,
        "settings": {
            name: {
                "threads": setting.threads,
                "asleep": setting.is_asleep,
                "milliseconds": 1e3 * setting.seconds,
                "capacity": quartiles(capacity[name]),
                "loads": [{"load": part, **_of_load(found[name, part])} for part in LOADS],
            }
            for name, setting in SETTINGS.items()
        },
    }


def _of_load(rounds: list[tuple[Times, Times]]) -> dict[str, Any]:
    """In milliseconds: of all rounds together, and the medians of each."""
    real, of_ideal = (1e3 * np.concatenate(one) for one in zip(*rounds, strict=True))
    medians = [(float(np.median(one)), float(np.median(other))) for one, other in rounds]
    return {
        "events": len(real),
        "median": quartiles([1e3 * one for one, _ in medians]),
        "99.9 %": float(np.percentile(real, 99.9)),
        "ideal": {
            "median": float(np.median(of_ideal)),
            "99.9 %": float(np.percentile(of_ideal, 99.9)),
        },
        "to ideal": quartiles([one / other for one, other in medians]),
    }
