"""Who takes part: a pipeline or one function in an engine, and engines chained by hand.

Their times are those of the clock, with the conversion from and to Arrow, as handing over from one
engine to the next is a part of what is compared. Those of the engines themselves are kept as well.
"""

from __future__ import annotations

import time
from typing import Any

import pyarrow as pa

import specstream as ss
from bench.pipelines.graphs import Graph
from specstream.tuning.contest import Contestant, EngineContestant, Order, Rows

__all__ = ["Chained", "Timed"]


class Timed(EngineContestant):
    """A pipeline or a function, by the clock.

    Args:
        name: what tables call it.
        graph: the graph.
        warm_up: a batch before the first; not timed.
        whole: the one function, in place of the pipeline.
        options: of the engine.
    """

    def __init__(
        self, name: str, graph: Graph, warm_up: pa.Table, whole: bool = False, **options: Any
    ) -> None:
        self._given = graph.of_function if whole else graph.of_pipeline
        operator = graph.function if whole else graph.pipeline()
        order: Order = graph.order
        super().__init__(name, operator, order, warm_up=self._given(warm_up), **options)
        self.own: dict[int, float] = {}

    def run(self, batch: pa.Table, number: int) -> Rows | None:
        given = self._given(batch)
        before = self.engine.stats
        began = time.perf_counter()
        rows = self.engine.process(given, **self._order)
        self.times[number] = (time.perf_counter() - began) / batch.num_rows
        after = self.engine.stats
        self.walls[number] = self.times[number]
        self.own[number] = (after.seconds - before.seconds) / batch.num_rows
        self.runs[number] = after.speculative_runs - before.speculative_runs
        self.dropped[number] = sum(after.aborts.values()) - sum(before.aborts.values())
        return rows


class Chained(Contestant):
    """An engine for each vertex; a batch goes through one after the other.

    Args:
        name: what tables call it.
        graph: the graph.
        warm_up: a batch before the first; not timed.
        setting: what tables call that.
        options: of all engines.
    """

    def __init__(
        self, name: str, graph: Graph, warm_up: pa.Table, setting: str = "", **options: Any
    ) -> None:
        super().__init__(name, setting=setting)
        self.own: dict[int, float] = {}
        self._graph = graph
        self._engines = {
            vertex: ss.Engine(operator, **graph.options, **options)
            for vertex, operator in graph.engines.items()
        }
        self._process(graph.of_chain(warm_up))
        self._start = {vertex: engine.savepoint() for vertex, engine in self._engines.items()}

    def _process(self, given: Any) -> pa.Table:
        return self._graph.chain(
            lambda vertex, table: self._engines[vertex].process(table, **self._graph.order), given
        )

    def _counts(self) -> tuple[float, int, int]:
        stats = [engine.stats for engine in self._engines.values()]
        return (
            sum(one.seconds for one in stats),
            sum(one.speculative_runs for one in stats),
            sum(sum(one.aborts.values()) for one in stats),
        )

    def run(self, batch: pa.Table, number: int) -> Rows | None:
        given = self._graph.of_chain(batch)
        seconds, runs, dropped = self._counts()
        began = time.perf_counter()
        rows = self._process(given)
        self.times[number] = (time.perf_counter() - began) / batch.num_rows
        self.walls[number] = self.times[number]
        now = self._counts()
        self.own[number] = (now[0] - seconds) / batch.num_rows
        self.runs[number], self.dropped[number] = now[1] - runs, now[2] - dropped
        return rows

    def restart(self) -> None:
        for vertex, engine in self._engines.items():
            engine.rollback(self._start[vertex])

    def close(self) -> None:
        for engine in self._engines.values():
            engine.close()
