"""What more cores would make of the events, and how far such a forecast is from what this machine
does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from specstream.errors import InputError
from specstream.operator.operator import Operator
from specstream.tuning.candidates import candidates, thread_counts
from specstream.tuning.contest import Arena, EngineContestant
from specstream.tuning.forecast.accesses import Accesses, Records
from specstream.tuning.forecast.costs import Costs, measured_transfer
from specstream.tuning.forecast.eager import simulate_eager
from specstream.tuning.forecast.recording import Recording, record, under_eager
from specstream.tuning.forecast.simulation import Outcome, simulate, simulate_plain
from specstream.tuning.forecast.workload import Workload
from specstream.tuning.stream import Stream

__all__ = ["Check", "Expected", "Forecast", "forecast_cores"]

# Events that are recorded, and those before them.
MOST_EVENTS = 10_000
LEAST_EVENTS = 200
MOST_TRANSACTIONS = 5_000
# From the futex to going on, on a machine with nothing else to do.
WAKE = 8_000.0


@dataclass(frozen=True)
class Expected:
    """One setting on so many cores, simulated.

    Attributes:
        speed: relative to plain.
        aborts: dropped speculative runs per speculative run.
    """

    threads: int
    horizon: int
    chunk: int
    protocol: str
    speed: float
    aborts: float


@dataclass(frozen=True)
class Check:
    """A simulated run beside the real one.

    Attributes:
        forced: the real run never ran the head in place; so is that of one thread, where nothing
            would be speculative otherwise.
        measured: speed relative to plain, median of rounds.
        forecast: the same, simulated.
    """

    threads: int
    horizon: int
    chunk: int
    protocol: str
    forced: bool
    measured: float
    forecast: float

    @property
    def error(self) -> float:
        """By how much the forecast is above the real run, as a share of it."""
        return self.forecast / self.measured - 1.0


@dataclass(frozen=True)
class Forecast:
    """What the simulation says.

    Attributes:
        best: the fastest setting for each number of threads and each protocol.
        every: all settings.
        checks: against real runs.
        costs: that were measured, by protocol.
        events: that were recorded.
    """

    best: list[Expected]
    every: list[Expected]
    checks: list[Check]
    costs: dict[str, Costs]
    events: int

    @property
    def worst(self) -> float:
        """The largest error, without its sign."""
        return max((abs(check.error) for check in self.checks), default=0.0)


@dataclass(frozen=True)
class _Simulation:
    """Events as one protocol runs them, and what it costs."""

    protocol: str
    workload: Workload
    costs: Costs
    accesses: Accesses | None = None

    def outcome(
        self, threads: int, horizon: int, chunk: int, forced: bool = False
    ) -> tuple[float, Outcome]:
        """Speed relative to plain, and what a simulated run did."""
        work = self.workload.in_chunks(chunk, MOST_TRANSACTIONS)
        if self.accesses is None:
            outcome = simulate(work, threads, horizon, self.costs, forced)
        else:
            outcome = simulate_eager(
                self.workload, self.accesses, chunk, MOST_TRANSACTIONS, threads, horizon, self.costs
            )
        return simulate_plain(work) / outcome.nanoseconds, outcome

    def expected(self, threads: int, horizon: int, chunk: int) -> Expected:
        """One setting on so many cores."""
        speed, outcome = self.outcome(threads, horizon, chunk)
        aborts = outcome.aborts / outcome.speculative_runs if outcome.speculative_runs else 0.0
        return Expected(threads, horizon, chunk, self.protocol, speed, aborts)


def forecast_cores(
    operator: Operator,
    stream: Stream,
    cores: int,
    real_cores: int,
    seconds: float,
    say: Callable[[str], None] = lambda text: None,
    protocols: Sequence[str] = ("value", "eager"),
) -> Forecast:
    """Records events on one thread, and replays them on up to ``cores`` cores.

    Args:
        operator: what to run.
        stream: its events.
        cores: of the machine in question.
        real_cores: of this one: the forecast is compared with 1 and, if there are so many, 2
            threads.
        seconds: for these comparisons.
        say: told now and then what is going on.
        protocols: "value", "eager", or both.

    Raises:
        InputError: there are too few events, or they come in phases by time.
    """
    if operator.event.phases:
        raise InputError(
            f"pipeline {operator.name!r} has phases by time, and what is replayed on more cores is "
            "single events: leave --cores out"
        )
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
    batch = batch.slice(0, len(recording.events))
    latency, bulk = measured_transfer()
    simulations = []
    if "value" in protocols:
        workload = Workload(recording.events)
        simulations.append(_Simulation("value", workload, _costs(recording, latency, bulk)))
    if "eager" in protocols:
        say("recording once more, under eager")
        found = under_eager(recording, operator, warm_up, batch.table, batch.order)
        workload = Workload(found.events)
        accesses = Accesses(workload, Records(operator.layout.regions(0)))
        simulations.append(_Simulation("eager", workload, _costs(found, latency, bulk), accesses))
    say("comparing the forecast with real runs")
    checks = _checks(operator, warm_up, batch, simulations, real_cores, seconds)
    every = []
    for threads in thread_counts(cores):
        say(f"replaying on {threads} cores")
        for simulation in simulations:
            for horizon, chunk in _settings(simulation.workload, threads):
                every.append(simulation.expected(threads, horizon, chunk))
    groups = dict.fromkeys((one.threads, one.protocol) for one in every)
    best = [
        max(
            (one for one in every if (one.threads, one.protocol) == group),
            key=lambda one: one.speed,
        )
        for group in groups
    ]
    every_cost = {simulation.protocol: simulation.costs for simulation in simulations}
    return Forecast(best, every, checks, every_cost, len(recording.events))


def _costs(recording: Recording, latency: float, bulk: float) -> Costs:
    # Half of what a transaction costs is at its start, half at its commit.
    return Costs(
        start=recording.start / 2,
        commit=recording.start / 2,
        entry=recording.entry,
        head=recording.head,
        latency=latency,
        bulk=bulk,
        wake=WAKE,
    )


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


def _checks(
    operator: Operator,
    warm_up: pa.Table,
    batch: Stream,
    simulations: Sequence[_Simulation],
    real_cores: int,
    seconds: float,
) -> list[Check]:
    chunks = sorted({chunk for _, chunk in _settings(simulations[0].workload, 2)}) or [1]
    middle = chunks[len(chunks) // 2]
    chosen = [
        *((1, 1, chunk) for chunk in sorted({chunks[0], middle})),
        *((2, horizon, middle) for horizon in (2, 8) if real_cores > 1),
    ]
    plain = EngineContestant("plain", operator, batch.order, warm_up=warm_up, threads=1, horizon=0)
    real: list[tuple[_Simulation, int, int, int, EngineContestant]] = []
    try:
        for simulation in simulations:
            for threads, horizon, chunk in chosen:
                contestant = EngineContestant(
                    f"{threads} threads, horizon {horizon}, chunk {chunk}, {simulation.protocol}",
                    operator,
                    batch.order,
                    warm_up=warm_up,
                    threads=threads,
                    horizon=horizon,
                    chunk=chunk,
                    protocol=simulation.protocol,
                    execution="speculate" if threads == 1 else "ordered",
                )
                real.append((simulation, threads, horizon, chunk, contestant))
        contestants = [one[-1] for one in real]
        arena = Arena([batch.table], plain)
        arena.round(contestants)
        rounds = arena.rounds_for(contestants, seconds, 5, lambda text: None)
        checks = []
        for simulation, threads, horizon, chunk, contestant in real:
            forced = threads == 1
            measured = arena.measured(contestant, rounds).speed
            forecast, _ = simulation.outcome(threads, horizon, chunk, forced)
            checks.append(
                Check(threads, horizon, chunk, simulation.protocol, forced, measured, forecast)
            )
        return checks
    finally:
        for contestant in (plain, *(one[-1] for one in real)):
            contestant.close()
