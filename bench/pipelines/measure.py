"""What is measured: each graph busy and asleep, quiet phases, and pipelines of one vertex."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

import specstream as ss
from bench.chapter4.margin import quartiles
from bench.chapter4.slowed import SlowedEngine
from bench.harness import CORES, Batches, Effort, choose, setting_of, undisturbed_rounds
from bench.pipelines.contestants import Chained, Timed
from bench.pipelines.graphs import SINGLE, Graph, quiet_pipeline, single
from specstream.tuning.contest import Arena, Contestant, EngineContestant, same_rows, time_per_event
from specstream.tuning.machine import Probe
from specstream.tuning.rivals import SequentialCheck

__all__ = ["FULL", "QUICK", "Amount", "asleep", "busy", "one_vertex", "quiet", "verify"]

Say = Callable[[str], None]

ALONE: Mapping[str, Any] = {"threads": 1, "horizon": 0}
BASE = "function, 1 thread"


@dataclass(frozen=True)
class Amount:
    """How much to measure.

    Attributes:
        effort: of each graph.
        events: of a round with sleeping work.
        naps: rounds of those.
        threads: that sleep.
        sizes: of the graphs of which nearly all is quiet.
        phases: of a round of those; one in 100,000 changes something.
        rounds: of those, and of pipelines of one vertex.
    """

    effort: Effort
    events: int
    naps: int
    threads: tuple[int, ...]
    sizes: tuple[int, ...]
    phases: int
    rounds: int


FULL = Amount(
    effort=Effort(rounds=21, seconds=0.1, trials=3, patience=2),
    events=192,
    naps=7,
    threads=(4, 8, 16),
    sizes=(1, 10, 64, 65, 1000),
    phases=500_000,
    rounds=61,
)
QUICK = Amount(
    effort=Effort(rounds=2, seconds=0.004, trials=1, patience=1),
    events=32,
    naps=1,
    threads=(4, 8, 16),
    sizes=(1, 10, 65),
    phases=100_000,
    rounds=3,
)


# ---- the graphs ----


def verify(graph: Graph, count: int = 300) -> int:
    """Whether all give the rows of plain Python; how many those are.

    Raises:
        AssertionError: one does not.
    """
    batch = graph.events(count, 1, 8)
    given = graph.of_pipeline(batch)
    expected = graph.pipeline().run_sequential(given, **graph.order).output
    none = batch.slice(0, 0)
    everyone: list[Contestant] = []
    for options in (ALONE, {"threads": 2, "horizon": 8, "chunk": 2}):
        everyone += [
            Timed("pipeline", graph, none, **options),
            Timed("function", graph, none, whole=True, **options),
            Chained("chain", graph, none, **options),
        ]
    for one in everyone:
        found = one.run(batch, 0)
        one.close()
        assert found is not None
        if not same_rows(found, expected):
            raise AssertionError(f"{graph.name}: {one.name} gave other rows than plain Python")
    return int(expected.num_rows)


def _work(graph: Graph) -> int:
    """Rounds of the busy loop in each vertex, so that an event of the function takes its time."""
    if graph.seconds is None:
        return 0
    with ss.Engine(graph.function, **ALONE) as engine:

        def least(count: int, work: int) -> float:
            batch, found = graph.events(count, 1, work), []
            for _ in range(7):
                before = engine.stats.seconds
                engine.process(batch, **graph.order)
                found.append((engine.stats.seconds - before) / count)
            return min(found)

        empty = least(5_000, 0)
        each = (least(400, 1_000) - empty) / 1_000
    return max(0, round((graph.seconds - empty) / each))


def busy(graph: Graph, amount: Amount, say: Say) -> dict[str, Any]:
    """One thread and two, of the pipeline, of the function and of the chained engines."""
    effort = amount.effort
    say(f"{graph.name}: comparing with plain Python")
    rows = verify(graph)
    work = _work(graph)
    warm_up = graph.events(2_000, 0, work and 1)
    say(f"{graph.name}: compiling and warming up")
    with ExitStack() as stack:

        def kept(one: Contestant) -> Contestant:
            stack.callback(one.close)
            return one

        pipeline = kept(Timed("pipeline, 1 thread", graph, warm_up, **ALONE))
        function = kept(Timed(BASE, graph, warm_up, whole=True, **ALONE))
        auto = kept(Timed("pipeline, Auto, 2 threads", graph, warm_up, threads=2))
        others = [
            pipeline,
            function,
            kept(Chained("engines, 1 thread", graph, warm_up, **ALONE)),
            kept(SequentialCheck(graph.pipeline(), effort.seconds, _order(graph))),
            auto,
        ]
        families: list[list[Contestant]] = [[], [], []]
        for horizon, chunk in graph.settings:
            two: dict[str, Any] = {"threads": 2, "horizon": horizon, "chunk": chunk}
            of = [
                Timed("pipeline, 2 threads", graph, warm_up, **two),
                Timed("function, 2 threads", graph, warm_up, whole=True, **two),
                Chained("engines, 2 threads", graph, warm_up, **two),
            ]
            for family, one in zip(families, of, strict=True):
                one.setting = setting_of("ordered", horizon, chunk)
                family.append(kept(one))
        # Vertices that cost unlike much want settings of their own.
        families[2].append(
            kept(Chained("engines, 2 threads", graph, warm_up, setting="Auto", threads=2))
        )
        few = graph.events(2_000, 1, work)
        each = min(_time(function, few) for _ in range(3))
        count = max(64, int(effort.seconds / each))
        arena = Arena(Batches(lambda seed: graph.events(count, seed, work)), pipeline)
        say(f"{graph.name}: choosing settings")
        best = choose(arena, families, others, [auto], effort.trials)
        probe = stack.enter_context(Probe(CORES))
        everyone = [*others, *best]
        numbers, capacity = undisturbed_rounds(arena, everyone, effort, probe, graph.name, say)
        found = {}
        for one in everyone:
            told = arena.measured(one, numbers, function)
            found[one.name] = {
                "speed": [told.low, told.speed, told.high],
                "nanoseconds": told.nanoseconds,
                "in engines": _in_engines(one, numbers),
                "setting": one.setting,
                "dropped": told.aborts,
            }
        by_name = {one.name: one for one in everyone}
        beside = {
            f"{threads}": _ratio(by_name, numbers, f"engines, {threads}", f"pipeline, {threads}")
            for threads in ("1 thread", "2 threads")
        }
        return {
            "title": graph.title,
            "vertices": len(graph.engines),
            "checked": rows,
            "events": count,
            "work": work,
            "capacity": capacity,
            "contestants": found,
            "engines to pipeline": beside,
            **({} if graph.control is None else _control(graph, work, amount, say)),
        }


def _in_engines(one: Contestant, numbers: Sequence[int]) -> float | None:
    """Nanoseconds of an event by the engines' own clocks, median; None: there are no engines."""
    if not isinstance(one, Timed | Chained):
        return None
    return 1e9 * statistics.median(one.own[number] for number in numbers)


def _control(graph: Graph, work: int, amount: Amount, say: Say) -> dict[str, Any]:
    """Nanoseconds of a vertex alone, by its engine's clock: as it is, and where each event has to
    wait for what the one before has come to."""
    assert graph.control is not None
    found: dict[str, list[float]] = {"as it is": [], "one after the other": []}
    with ExitStack() as stack:
        engines = {
            name: stack.enter_context(ss.Engine(operator, **ALONE))
            for name, operator in zip(found, graph.control, strict=True)
        }
        for number in range(amount.effort.rounds + 1):
            say(f"{graph.name}: a vertex alone, round {number + 1}")
            batch = graph.events(20_000, number, work)
            for name, engine in engines.items():
                before = engine.stats.seconds
                engine.process(batch)
                found[name].append((engine.stats.seconds - before) / batch.num_rows)
    # The first round warms up.
    return {"alone": {name: 1e9 * statistics.median(of[1:]) for name, of in found.items()}}


def _time(one: Contestant, batch: pa.Table) -> float:
    """Seconds of an event, once; whatever it does to the state is undone by its arena."""
    one.run(batch, -1)
    return one.times.pop(-1)


def _order(graph: Graph) -> Mapping[str, Any]:
    return {"source": None, **graph.order}


def _ratio(
    contestants: Mapping[str, Contestant], numbers: Sequence[int], one: str, other: str
) -> list[float]:
    """Time of one to that of the other in the same round: quartiles."""
    times, others = contestants[one].times, contestants[other].times
    return quartiles([times[number] / others[number] for number in numbers])


# ---- asleep ----


def asleep(graph: Graph, amount: Amount, say: Say) -> dict[str, Any]:
    """Vertices that sleep, half before their accesses and half after them: more threads than cores.

    A phase of the pipeline sleeps as long as its vertices do together, likewise the function.
    """
    naps = graph.asleep
    assert naps is not None
    warm_up = graph.events(64, 0, 1)
    order = dict(graph.order)
    with ExitStack() as stack:

        def engine(operator: ss.Operator, threads: int, sleep: float) -> _Napping:
            options: dict[str, Any] = dict(ALONE)
            if threads > 1 and sleep > 0:
                options = {"threads": threads, "horizon": 4 * threads, "chunk": 1}
            return _Napping(stack.enter_context(SlowedEngine(operator, **options)), sleep, order)

        def whole(operator: ss.Operator, threads: int) -> Callable[[pa.Table], pa.Table]:
            return engine(operator, threads, sum(naps.values()))

        def chained(threads: int) -> Callable[[pa.Table], pa.Table]:
            engines = {
                vertex: engine(operator, threads, naps.get(vertex, 0.0))
                for vertex, operator in graph.engines.items()
            }
            return lambda batch: graph.chain(lambda name, table: engines[name](table), batch)

        say(f"{graph.name}, asleep: compiling")
        runners = {BASE: whole(graph.function, 1)}
        for threads in amount.threads:
            runners[f"pipeline, {threads} threads"] = whole(graph.pipeline(), threads)
            runners[f"function, {threads} threads"] = whole(graph.function, threads)
            runners[f"engines, {threads} threads"] = chained(threads)
        for run in runners.values():
            run(warm_up)
        took: dict[str, list[float]] = {name: [] for name in runners}
        names = list(runners)
        for number in range(amount.naps):
            say(f"{graph.name}, asleep: round {number + 1}")
            batch, rows = graph.events(amount.events, 1 + number, 1), {}
            for name in names if number % 2 == 0 else reversed(names):
                began = time.perf_counter()
                rows[name] = runners[name](batch)
                took[name].append(time.perf_counter() - began)
            for name, found in rows.items():
                if not same_rows(found, rows[BASE]):
                    raise AssertionError(f"{graph.name}, asleep: {name} gave other rows")
        speeds = {
            name: quartiles([base / own for base, own in zip(took[BASE], of, strict=True)])
            for name, of in took.items()
            if name != BASE
        }
        return {
            "title": graph.short,
            "milliseconds": 1e3 * sum(naps.values()),
            "taken": 1e3 * statistics.median(took[BASE]) / amount.events,
            "events": amount.events,
            "speed": speeds,
        }


@dataclass(frozen=True)
class _Napping:
    """Runs a table in an engine whose events sleep."""

    slowed: SlowedEngine
    sleep: float
    order: Mapping[str, Any]

    def __call__(self, table: pa.Table) -> Any:
        self.slowed.pace(sleep=self.sleep, before=0.5)
        return self.slowed.engine.process(table, **self.order)


# ---- quiet phases ----


def _levels(count: int, seed: int, work: int) -> pa.Table:
    """One in 100,000 is another than the one before, also from one batch to the next."""
    changes = (np.arange(count) + 50_000) // 100_000
    level = seed * (count // 100_000) + changes
    return pa.table({"level": level, "work": np.full(count, work)})


def quiet(amount: Amount, say: Say) -> list[dict[str, Any]]:
    """Nanoseconds of a phase behind a gate that lets one event in 100,000 through, by size."""
    found = []
    say("quiet: comparing with plain Python")
    pipelines = {size: quiet_pipeline(size) for size in amount.sizes}
    for size, pipeline in pipelines.items():
        few = pa.table({"level": [5, 5, 5, 7, 7, 5], "work": [1] * 6})
        expected = pipeline.run_sequential(few).output
        say(f"quiet: compiling {size} vertices")
        with ss.Engine(pipeline, **ALONE) as engine:
            if not same_rows(engine.process(few), expected):
                raise AssertionError(f"quiet: {size} vertices gave other rows than plain Python")
    for title, work in (("a comparison", 0), ("a comparison after 50 rounds of a loop", 50)):
        say(f"quiet: {title}")
        with ExitStack() as stack:
            everyone = {}
            for size, pipeline in pipelines.items():
                everyone[size] = EngineContestant(
                    f"{size}", pipeline, exact=False, warm_up=_levels(1_000, 0, 0), **ALONE
                )
                stack.callback(everyone[size].close)
            count = amount.phases if work == 0 else amount.phases // 5
            base = everyone[1]
            arena = Arena(Batches(lambda seed, n=count, w=work: _levels(n, seed, w)), base)  # type: ignore[misc]
            arena.round(list(everyone.values()))
            first = arena.rounds
            for number in range(amount.rounds):
                say(f"quiet: {title}, round {number + 1}")
                arena.round(list(everyone.values()))
            numbers = range(first, arena.rounds)
            found += [
                {
                    "source": title,
                    "vertices": size,
                    "nanoseconds": 1e9 * statistics.median(one.times[n] for n in numbers),
                    "ratio": quartiles([one.times[n] / base.times[n] for n in numbers]),
                }
                for size, one in everyone.items()
            ]
    return found


# ---- one vertex ----


def one_vertex(amount: Amount, say: Say) -> list[dict[str, Any]]:
    """A pipeline of one vertex beside the operator alone, by the engine's own clock."""
    found = []
    for title, (operator, events, (horizon, chunk)) in SINGLE.items():
        say(f"one vertex: {title}")
        pipeline = single(operator)
        two: dict[str, Any] = {"threads": 2, "horizon": horizon, "chunk": chunk}
        with ExitStack() as stack:
            warm_up = events(2_000, 0)
            everyone = {}
            for threads, options in (("1 thread", ALONE), ("2 threads", two)):
                for what, of in (("operator", operator), ("pipeline", pipeline)):
                    name = f"{what}, {threads}"
                    everyone[name] = EngineContestant(name, of, warm_up=warm_up, **options)
                    stack.callback(everyone[name].close)
            base = everyone["operator, 1 thread"]
            each = time_per_event(base, lambda count, of=events: of(count, 1))  # type: ignore[misc]
            count = max(2_000, int(0.4 * amount.effort.seconds / each))
            arena = Arena(Batches(lambda seed, of=events, n=count: of(n, seed)), base)  # type: ignore[misc]
            arena.round(list(everyone.values()))
            first = arena.rounds
            for number in range(amount.rounds):
                say(f"one vertex: {title}, round {number + 1}")
                arena.round(list(everyone.values()))
            numbers = range(first, arena.rounds)
            for threads in ("1 thread", "2 threads"):
                alone = everyone[f"operator, {threads}"]
                found.append(
                    {
                        "operator": title,
                        "threads": threads,
                        "nanoseconds": 1e9 * statistics.median(alone.times[n] for n in numbers),
                        "speed": _ratio(
                            everyone, numbers, f"operator, {threads}", f"pipeline, {threads}"
                        ),
                    }
                )
    return found
