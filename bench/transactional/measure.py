"""What is measured of a workload: each knob, latency, and more threads than cores, asleep."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

import specstream as ss
from bench.chapter4.margin import quartiles
from bench.chapter4.slowed import busy_rounds
from bench.harness import CORES, Batches, Effort, fastest, undisturbed_rounds
from bench.transactional.schemes import AUTO, DETERMINISTIC, EXACT, PLAIN, RIVALS, Scheme
from bench.transactional.workloads import Knobs, Workload, points
from specstream.tuning.contest import Arena, Contestant, same_rows, time_per_event
from specstream.tuning.machine import Probe
from specstream.tuning.rivals import CHUNKS

__all__ = ["FULL", "QUICK", "Amount", "Seen", "measure", "state_of", "verify"]

Say = Callable[[str], None]

# (horizon, chunk) of those that speculate, of which the fastest counts at each point.
SETTINGS = ((4, 1), (4, 4), (8, 16), (4, 64))
FAMILIES: Mapping[str, tuple[tuple[int, int], ...]] = {
    name: SETTINGS if name in ("value", "eager") else tuple((0, chunk) for chunk in CHUNKS)
    for name in RIVALS
}


@dataclass(frozen=True)
class Amount:
    """How much to measure.

    Attributes:
        effort: of each point.
        few: only the first and the last value of each knob.
        warm_up: events before the first.
        waits: events whose latency is looked at, in each of as many rounds as are kept.
        events: of a round asleep.
        naps: rounds asleep.
        sleep: seconds that an event sleeps.
        threads: that sleep.
    """

    effort: Effort
    few: bool
    warm_up: int
    waits: int
    events: int
    naps: int
    sleep: float
    threads: tuple[int, ...] = (4, 8, 16)


FULL = Amount(
    effort=Effort(rounds=11, seconds=0.03, trials=2, patience=2),
    few=False,
    warm_up=50_000,
    waits=5_000,
    events=512,
    naps=7,
    sleep=500e-6,
)
QUICK = Amount(
    effort=Effort(rounds=2, seconds=0.001, trials=1, patience=1),
    few=True,
    warm_up=500,
    waits=100,
    events=32,
    naps=1,
    sleep=200e-6,
)


def measure(workload: Workload, amount: Amount, say: Say) -> dict[str, Any]:
    """All that there is to measure of one."""
    say(f"{workload.name}: comparing with plain Python")
    return {
        "title": workload.title,
        "checked": verify(workload),
        "points": _points(workload, amount, say),
        "latency": _latency(workload, amount, say),
        "asleep": _asleep(workload, amount, say),
    }


# ---- whether all do what they promise ----


def state_of(engine: ss.Engine, operator: ss.Operator) -> SimpleNamespace:
    """A copy of the fields of the operator's state."""
    state = engine.state
    names = [field.name for field in operator.layout.fields]
    return SimpleNamespace(**{name: np.array(getattr(state, name)) for name in names})


def verify(workload: Workload, count: int = 400) -> int:
    """Whether those that promise the sequential answer give that of plain Python, rows and state,
    and whether the others keep what has to hold in any order; how many events were compared.

    Raises:
        AssertionError: one does not.
    """
    batch = workload.events(count, 1, Knobs(skew=1.2, aborts=0.2))
    expected = workload.operator.run_sequential(batch)
    for name in (PLAIN, AUTO, *RIVALS):
        for chunk, work in ((1, {"rounds": 20}), (8, {})):
            one = Scheme(name, workload, threads=4, horizon=8, chunk=chunk)
            one.work = work
            before = state_of(one.engine, workload.operator)
            rows = one.process(batch)
            after = state_of(one.engine, workload.operator)
            one.close()
            if not workload.holds(before, after, batch, rows):
                raise AssertionError(f"{workload.name}: {name} has lost or made something")
            if name not in EXACT:
                continue
            same = same_rows(rows, expected.output) and all(
                np.array_equal(found, getattr(expected.state, field))
                for field, found in vars(after).items()
            )
            if not same:
                raise AssertionError(f"{workload.name}: {name} differs from plain Python")
    return count


# ---- two busy threads ----


def _points(workload: Workload, amount: Amount, say: Say) -> list[dict[str, Any]]:
    found = []
    warm_up = workload.events(amount.warm_up, 0, Knobs())
    with ExitStack() as stack:

        def opened(name: str, **options: Any) -> Scheme:
            one = Scheme(name, workload, warm_up=warm_up, **options)
            stack.callback(one.close)
            return one

        say(f"{workload.name}: compiling and warming up")
        plain, auto = opened(PLAIN), opened(AUTO, threads=CORES)
        families = [
            [opened(name, threads=CORES, horizon=horizon, chunk=chunk) for horizon, chunk in of]
            for name, of in FAMILIES.items()
        ]
        probe = stack.enter_context(Probe(CORES))
        for knob, value, knobs in points(workload, amount.few):
            label = f"{workload.name}, {knob} {value:g}" if knob else workload.name
            told = _point(workload, knobs, plain, auto, families, amount.effort, probe, label, say)
            found.append({"knob": knob, "value": value, **told})
    return found


def _point(
    workload: Workload,
    knobs: Knobs,
    plain: Scheme,
    auto: Scheme,
    families: list[list[Scheme]],
    effort: Effort,
    probe: Probe,
    label: str,
    say: Say,
) -> dict[str, Any]:
    for one in (plain, auto, *(one for family in families for one in family)):
        one.work = {"rounds": round(knobs.length * busy_rounds())}
    each = time_per_event(plain, lambda count: workload.events(count, 1, knobs))
    count = max(64, int(effort.seconds / each))
    arena = Arena(Batches(lambda seed: workload.events(count, seed, knobs)), plain)
    say(f"{label}: choosing settings")
    best = fastest(arena, families, [auto], [auto], effort.trials)
    everyone = [plain, auto, *best]
    numbers, capacity = undisturbed_rounds(arena, everyone, effort, probe, label, say)
    return {
        "events": count,
        "capacity": round(capacity, 3),
        "schemes": {one.name: _seen(arena, one, numbers) for one in everyone},
        "to deterministic": _to_deterministic(everyone, numbers),
    }


class Seen(NamedTuple):
    """A scheme at a point, as it is kept: in a row, as there are hundreds.

    Attributes:
        low: first quartile of its speed, relative to one thread of the same operator.
        speed: median.
        high: third quartile.
        nanoseconds: of an event.
        dropped: speculative runs that were dropped, per speculative run; None: nothing speculated.
        setting: that was the fastest: horizon and chunk, of locks the chunk.
    """

    low: float
    speed: float
    high: float
    nanoseconds: float
    dropped: float | None
    setting: str = ""

    @property
    def quartiles(self) -> list[float]:
        return [self.low, self.speed, self.high]


def _seen(arena: Arena, one: Contestant, numbers: Sequence[int]) -> Seen:
    told = arena.measured(one, numbers)
    dropped = None if told.aborts is None else round(told.aborts, 4)
    low, speed, high = (round(one, 3) for one in (told.low, told.speed, told.high))
    nanoseconds = float(f"{told.nanoseconds:.4g}")
    return Seen(low, speed, high, nanoseconds, dropped, one.setting)


def _to_deterministic(everyone: list[Contestant], numbers: list[int]) -> dict[str, list[float]]:
    """How many times as fast others are, in the same round: quartiles."""
    times = {one.name: one.times for one in everyone}
    locked = times[DETERMINISTIC]
    return {
        name: [
            round(one, 3)
            for one in quartiles([locked[number] / times[name][number] for number in numbers])
        ]
        for name in ("value", AUTO)
    }


# ---- latency ----


def _latency(workload: Workload, amount: Amount, say: Say) -> dict[str, list[float]]:
    """Microseconds from dequeuing to the end of an event, by scheme: median and 99th percentile.

    Two threads, a horizon of 4, one event at a time.
    """
    knobs, taken = Knobs(), {}
    with ExitStack() as stack:
        everyone = []
        for name in RIVALS:
            one = Scheme(name, workload, threads=CORES, horizon=4, chunk=1)
            stack.callback(one.close)
            one.work = {"rounds": round(knobs.length * busy_rounds())}
            one.latency(workload.events(amount.waits, 0, knobs))
            everyone.append(one)
            taken[name] = [np.zeros(0, np.int64)]
        for number in range(amount.effort.rounds):
            say(f"{workload.name}: latency, round {number + 1}")
            batch = workload.events(amount.waits, 1 + number, knobs)
            for one in everyone if number % 2 == 0 else reversed(everyone):
                taken[one.name].append(one.latency(batch))
    return {
        name: [float(f"{x / 1e3:.4g}") for x in np.percentile(np.concatenate(of), (50, 99))]
        for name, of in taken.items()
    }


# ---- asleep ----


def _asleep(workload: Workload, amount: Amount, say: Say) -> dict[str, Any]:
    """Events that sleep in place of working: more threads than cores."""
    knobs = Knobs()
    with ExitStack() as stack:

        def opened(name: str, **options: Any) -> Scheme:
            one = Scheme(name, workload, **options)
            stack.callback(one.close)
            one.work = {"sleep": amount.sleep}
            return one

        say(f"{workload.name}, asleep: compiling")
        plain = opened(PLAIN)
        # How far to run ahead depends on how often it is in vain.
        families = {
            (name, threads): [
                opened(name, threads=threads, horizon=horizon)
                for horizon in ((threads, 4 * threads) if name in ("value", "eager") else (0,))
            ]
            for name in RIVALS
            for threads in amount.threads
        }
        arena = Arena(Batches(lambda seed: workload.events(amount.events, seed, knobs)), plain)
        say(f"{workload.name}, asleep: choosing horizons")
        best = fastest(arena, [*families.values()], [], [], amount.effort.trials)
        first = arena.rounds
        for number in range(amount.naps):
            say(f"{workload.name}, asleep: round {number + 1}")
            arena.round(best)
        numbers = range(first, arena.rounds)
        schemes: dict[str, dict[str, Seen]] = {name: {} for name in RIVALS}
        for (name, threads), one in zip(families, best, strict=True):
            schemes[name][f"{threads}"] = _seen(arena, one, numbers)
        return {"milliseconds": 1e3 * amount.sleep, "events": amount.events, "schemes": schemes}
