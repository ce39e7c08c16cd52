"""What the model says about more cores, and how far it is from what this machine does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from specstream.errors import InputError
from specstream.model.costs import Costs, measured_transfer
from specstream.model.recording import record
from specstream.model.simulation import simulate, simulate_plain
from specstream.model.workload import Workload
from specstream.operator import Operator
from specstream.tuning.candidates import candidates, thread_counts
from specstream.tuning.contest import Arena, EngineContestant
from specstream.tuning.stream import Stream

__all__ = ["Check", "Forecast", "Predicted", "predict"]

# Events that are recorded, and those before them.
MOST_EVENTS = 10_000
LEAST_EVENTS = 200
MOST_TRANSACTIONS = 5_000
# From the futex to going on, on a machine with nothing else to do.
WAKE = 8_000.0


@dataclass(frozen=True)
class Predicted:
    """One setting on so many cores.

    Attributes:
        speed: relative to plain.
        aborts: dropped speculative runs per speculative run.
    """

    threads: int
    horizon: int
    chunk: int
    speed: float
    aborts: float


@dataclass(frozen=True)
class Check:
    """The model beside a real run.

    Attributes:
        forced: the real run never ran the head in place; so is the one of one thread, where nothing
            would be speculative otherwise.
        measured: speed relative to plain, median of rounds.
        predicted: by the model.
    """

    threads: int
    horizon: int
    chunk: int
    forced: bool
    measured: float
    predicted: float

    @property
    def error(self) -> float:
        """By how much the model is above the real run, as a share of it."""
        return self.predicted / self.measured - 1.0


@dataclass(frozen=True)
class Forecast:
    """What the model says.

    Attributes:
        best: the fastest setting for each number of threads.
        every: all settings.
        checks: against real runs.
        costs: that were measured.
        events: that were recorded.
    """

    best: list[Predicted]
    every: list[Predicted]
    checks: list[Check]
    costs: Costs
    events: int

    @property
    def worst(self) -> float:
        """The largest error, without its sign."""
        return max((abs(check.error) for check in self.checks), default=0.0)


def predict(
    operator: Operator,
    stream: Stream,
    cores: int,
    real_cores: int,
    seconds: float,
    say: Callable[[str], None] = lambda text: None,
) -> Forecast:
    """Records events on one thread, and replays them on up to ``cores`` cores.

    Args:
        operator: what to run.
        stream: its events.
        cores: of the machine in question.
        real_cores: of this one: the model is compared with 1 and, if there are so many, 2 threads.
        seconds: for these comparisons.
        say: told now and then what is going on.

    Raises:
        InputError: there are too few events.
    """
    if stream.count < LEAST_EVENTS:
        raise InputError(
            f"operator {operator.name!r}: {stream.count} events are too few to replay on more "
            f"cores: give at least {LEAST_EVENTS}"
        )
    say("recording on one thread")
    before = min(stream.count // 2, MOST_EVENTS)
    warm_up = stream.table.slice(0, before)
    batch = stream.slice(before, min(stream.count - before, MOST_EVENTS))
    recording = record(operator, warm_up, batch.table, batch.order)
    workload = Workload(recording.events)
    batch = batch.slice(0, len(workload))
    latency, bulk = measured_transfer()
    # Half of what a transaction costs is at its start, half at its commit.
    costs = Costs(
        start=recording.start / 2,
        commit=recording.start / 2,
        entry=recording.entry,
        head=recording.head,
        latency=latency,
        bulk=bulk,
        wake=WAKE,
    )
    say("comparing the model with real runs")
    checks = _checks(operator, warm_up, batch, workload, costs, real_cores, seconds)
    every = []
    for threads in thread_counts(cores):
        say(f"replaying on {threads} cores")
        for horizon, chunk in _settings(workload, threads):
            every.append(_predicted(workload, threads, horizon, chunk, costs))
    best = [
        max((one for one in every if one.threads == threads), key=lambda one: one.speed)
        for threads in dict.fromkeys(one.threads for one in every)
    ]
    return Forecast(best, every, checks, costs, len(workload))


def _mean_seconds(workload: Workload) -> float:
    return max(sum(event.plain for event in workload.events) * 1e-9 / len(workload), 1e-9)


def _settings(workload: Workload, threads: int) -> list[tuple[int, int]]:
    """Horizons and chunks that a search on such a machine would try."""
    found = {
        (int(one.horizon), int(one.chunk))
        for one in candidates(_mean_seconds(workload), threads, ("value",))
        if one.threads == threads and one.horizon in (threads, 4 * threads)
    }
    return sorted(one for one in found if one[1] == 1 or one[1] * 4 * threads <= len(workload))


def _predicted(
    workload: Workload, threads: int, horizon: int, chunk: int, costs: Costs
) -> Predicted:
    work = workload.in_chunks(chunk, MOST_TRANSACTIONS)
    outcome = simulate(work, threads, horizon, costs)
    aborts = outcome.aborts / outcome.speculative_runs if outcome.speculative_runs else 0.0
    speed = simulate_plain(work) / outcome.nanoseconds
    return Predicted(threads, horizon, chunk, speed, aborts)


def _checks(
    operator: Operator,
    warm_up: pa.Table,
    batch: Stream,
    workload: Workload,
    costs: Costs,
    real_cores: int,
    seconds: float,
) -> list[Check]:
    chunks = sorted({chunk for _, chunk in _settings(workload, 2)}) or [1]
    chosen: Sequence[tuple[int, int, int, bool]] = [
        *((1, 1, chunk, True) for chunk in {chunks[0], chunks[len(chunks) // 2]}),
        *((2, horizon, chunks[len(chunks) // 2], False) for horizon in (2, 8) if real_cores > 1),
    ]
    plain = EngineContestant("plain", operator, batch, warm_up=warm_up, threads=1, horizon=0)
    contestants = []
    try:
        for threads, horizon, chunk, forced in chosen:
            contestants.append(
                EngineContestant(
                    f"{threads} threads, horizon {horizon}, chunk {chunk}",
                    operator,
                    batch,
                    warm_up=warm_up,
                    threads=threads,
                    horizon=horizon,
                    chunk=chunk,
                    execution="speculate" if forced else "ordered",
                )
            )
        arena = Arena(batch, batch.count, plain)
        arena.round(contestants)
        rounds = arena.rounds_for(contestants, seconds, 5, lambda text: None)
        checks = []
        for (threads, horizon, chunk, forced), contestant in zip(chosen, contestants, strict=True):
            work = workload.in_chunks(chunk, MOST_TRANSACTIONS)
            outcome = simulate(work, threads, horizon, costs, forced)
            checks.append(
                Check(
                    threads,
                    horizon,
                    chunk,
                    forced,
                    arena.figures(contestant, rounds).speed,
                    simulate_plain(work) / outcome.nanoseconds,
                )
            )
        return checks
    finally:
        for contestant in (plain, *contestants):
            contestant.close()
