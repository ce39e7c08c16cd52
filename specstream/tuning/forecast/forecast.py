"""What more cores would make of the events, and how far such a forecast is from what this machine
does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from specstream.definition.operator import Operator
from specstream.errors import InputError
from specstream.tuning.candidates import candidates, thread_counts
from specstream.tuning.contest import Arena, EngineContestant, time_per_event
from specstream.tuning.forecast.costs import Costs, measured_costs
from specstream.tuning.forecast.events import Event
from specstream.tuning.forecast.lock_samples import share_held
from specstream.tuning.forecast.machine import Outcome, replay
from specstream.tuning.forecast.recording import record, under_eager
from specstream.tuning.forecast.trace import Trace
from specstream.tuning.stream import Stream

__all__ = ["Check", "Expected", "Forecast", "forecast_cores"]

# Events that are recorded, and those before them.
MOST_EVENTS = 10_000
LEAST_EVENTS = 200
# They are run some dozens of times, each of which takes no longer than this, as far as that goes.
RUN_SECONDS = 0.25
MOST_TRANSACTIONS = 5_000
# So many are replayed in any case; more where all of them take no more accesses than this, which is
# a second or two.
LEAST_TRANSACTIONS = 300
MOST_ACCESSES = 30_000_000


@dataclass(frozen=True)
class Expected:
    """One setting on so many cores, replayed.

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
    """A replayed run beside the real one.

    Attributes:
        forced: the real run never ran the head in place; so is that of one thread, where nothing
            would be speculative otherwise.
        measured: speed relative to plain, median of rounds.
        forecast: the same, replayed.
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
    """What the machine says.

    Attributes:
        best: the fastest setting for each number of threads and each protocol.
        every: all settings.
        checks: against real runs.
        costs: of the machine.
        events: that were recorded.
        held: share of their time that held the lock of the interpreter; None: they are compiled.
    """

    best: list[Expected]
    every: list[Expected]
    checks: list[Check]
    costs: Costs
    events: int
    held: float | None = None

    @property
    def worst(self) -> float:
        """The largest error, without its sign."""
        return max((abs(check.error) for check in self.checks), default=0.0)


@dataclass(frozen=True)
class _Replay:
    """Events as one protocol runs them, and the machine that replays them."""

    protocol: str
    trace: Trace
    costs: Costs
    held: float

    def expected(self, threads: int, horizon: int, chunk: int, forced: bool = False) -> Expected:
        """One setting on so many cores, relative to plain there."""

        def on(threads: int, horizon: int, most: int, forced: bool) -> Outcome:
            return replay(
                self.trace,
                threads,
                horizon,
                chunk,
                protocol=self.protocol,
                most=most,
                forced=forced,
                held=self.held,
                costs=self.costs,
            )

        most = LEAST_TRANSACTIONS
        outcome = on(threads, horizon, most, forced)
        fitting = min(MOST_TRANSACTIONS, MOST_ACCESSES * most // outcome.accesses)
        if fitting > most:
            most = fitting
            outcome = on(threads, horizon, most, forced)
        plain = on(1, 0, most, False)
        speed = plain.nanoseconds / outcome.nanoseconds
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
            f"operator {operator.name!r}: too few events to replay on more cores, {stream.count}: "
            f"give at least {LEAST_EVENTS}"
        )
    say("recording on one thread")
    most = _most_events(operator, stream)
    before = min(stream.count // 2, most)
    warm_up = stream.table.slice(0, before)
    batch = stream.slice(before, min(stream.count - before, most))
    recording = record(operator, warm_up, batch.table, batch.order)
    batch = batch.slice(0, len(recording.events))
    costs, held = measured_costs(), None
    if operator.calls_python:
        say("looking how long events hold the lock of the interpreter")
        held = share_held(operator, warm_up, batch.table, batch.order)
    words, regions = operator.layout.state_words, operator.layout.regions(0)

    def replayed(protocol: str, events: list[Event]) -> _Replay:
        return _Replay(protocol, Trace(events, words, regions), costs, held or 0.0)

    replays = []
    if "value" in protocols:
        replays.append(replayed("value", recording.events))
    if "eager" in protocols:
        say("recording once more, under eager")
        found = under_eager(recording, operator, warm_up, batch.table, batch.order)
        replays.append(replayed("eager", found.events))
    say("comparing the forecast with real runs")
    checks = _checks(operator, warm_up, batch, replays, real_cores, seconds)
    every = []
    for threads in thread_counts(cores):
        say(f"replaying on {threads} cores")
        for one in replays:
            for horizon, chunk in _settings(one.trace, threads):
                every.append(one.expected(threads, horizon, chunk))
    groups = dict.fromkeys((one.threads, one.protocol) for one in every)
    best = [
        max(
            (one for one in every if (one.threads, one.protocol) == group),
            key=lambda one: one.speed,
        )
        for group in groups
    ]
    return Forecast(best, every, checks, costs, len(recording.events), held)


def _most_events(operator: Operator, stream: Stream) -> int:
    """So many that recording them does not last."""
    contestant = EngineContestant("plain", operator, stream.order, threads=1, horizon=0)
    try:
        seconds = time_per_event(contestant, stream.first)
    finally:
        contestant.close()
    return min(MOST_EVENTS, max(LEAST_EVENTS // 2, int(RUN_SECONDS / seconds)))


def _settings(trace: Trace, threads: int) -> list[tuple[int, int]]:
    """Horizons and chunks that a search on such a machine would try."""
    seconds = max(trace.plain_nanoseconds * 1e-9 / len(trace), 1e-9)
    found = {
        (int(one.horizon), int(one.chunk))
        for one in candidates(seconds, threads, ("value",))
        if one.threads == threads and one.horizon in (threads, 4 * threads)
    }
    return sorted(one for one in found if one[1] == 1 or one[1] * 4 * threads <= len(trace))


def _checks(
    operator: Operator,
    warm_up: pa.Table,
    batch: Stream,
    replays: Sequence[_Replay],
    real_cores: int,
    seconds: float,
) -> list[Check]:
    chunks = sorted({chunk for _, chunk in _settings(replays[0].trace, 2)}) or [1]
    middle = chunks[len(chunks) // 2]
    chosen = [
        *((1, 1, chunk) for chunk in sorted({chunks[0], middle})),
        *((2, horizon, middle) for horizon in (2, 8) if real_cores > 1),
    ]
    plain = EngineContestant("plain", operator, batch.order, warm_up=warm_up, threads=1, horizon=0)
    real: list[tuple[_Replay, int, int, int, EngineContestant]] = []
    try:
        for one in replays:
            for threads, horizon, chunk in chosen:
                contestant = EngineContestant(
                    f"{threads} threads, horizon {horizon}, chunk {chunk}, {one.protocol}",
                    operator,
                    batch.order,
                    warm_up=warm_up,
                    threads=threads,
                    horizon=horizon,
                    chunk=chunk,
                    protocol=one.protocol,
                    execution="speculate" if threads == 1 else "ordered",
                )
                real.append((one, threads, horizon, chunk, contestant))
        contestants = [of_setting[-1] for of_setting in real]
        arena = Arena([batch.table], plain)
        arena.round(contestants)
        rounds = arena.rounds_for(contestants, seconds, 5, lambda text: None)
        checks = []
        for one, threads, horizon, chunk, contestant in real:
            forced = threads == 1
            measured = arena.measured(contestant, rounds).speed
            forecast = one.expected(threads, horizon, chunk, forced).speed
            checks.append(Check(threads, horizon, chunk, one.protocol, forced, measured, forecast))
        return checks
    finally:
        for contestant in (plain, *(of_setting[-1] for of_setting in real)):
            contestant.close()
