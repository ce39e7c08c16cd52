"""The graphs: each as a pipeline, as engines of its own chained by hand, and as one function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

import specstream as ss
from bench.pipelines import trading
from bench.pipelines import vertices as v
from specstream.operators import top_k

__all__ = ["GRAPHS", "SINGLE", "Graph", "Run", "quiet_pipeline"]

# Runs a table in the engine of a vertex.
Run: TypeAlias = Callable[[str, pa.Table], pa.Table]

SHORT = ((2, 4), (4, 8), (8, 16), (8, 32), (4, 64))
LONG = ((1, 1), (2, 1), (16, 1), (32, 1), (8, 4))
UNORDERED: Mapping[str, Any] = {"order_by": None}


def _as_it_is(table: pa.Table) -> Any:
    return table


@dataclass(frozen=True, kw_only=True)
class Graph:
    """One graph of the table.

    Attributes:
        name: short, for ``--only``.
        title: what the table says; short: what there is less room for.
        pipeline: makes it.
        engines: the operators of the engines that are chained by hand, by vertex.
        options: of those engines.
        chain: hands the rows of one to the next, and gives those of the last.
        function: all vertices in one function.
        events: makes a batch with so much work in an event; another one for every seed.
        of_pipeline: a batch as the pipeline gets it, of_chain: as the chain does, of_function: as
            the one function does. Not timed.
        order: of the batch, as options of ``Engine.process``.
        seconds: of an event, that the work is chosen for; None: it has no busy loop.
        turns: busy loops of an event, as long as its work says; a quarter of one counts as such.
        asleep: seconds that each vertex sleeps where that is measured.
        settings: (horizon, chunk) of two threads, to choose the best from.
        control: a vertex, and the same where each event needs the value of the one before.
        target: what was expected of whom, relative to one thread of the function.
    """

    name: str
    title: str
    short: str
    pipeline: Callable[[], ss.Pipeline]
    engines: Mapping[str, ss.Operator]
    chain: Callable[[Run, Any], pa.Table]
    function: ss.Operator
    events: Callable[[int, int, int], pa.Table]
    options: Mapping[str, Any] = field(default_factory=dict)
    of_pipeline: Callable[[pa.Table], Any] = _as_it_is
    of_chain: Callable[[pa.Table], Any] = _as_it_is
    of_function: Callable[[pa.Table], Any] = _as_it_is
    order: Mapping[str, Any] = field(default_factory=lambda: UNORDERED)
    seconds: float | None = None
    turns: float = 1.0
    asleep: Mapping[str, float] | None = None
    settings: tuple[tuple[int, int], ...] = LONG
    control: tuple[ss.Operator, ss.Operator] | None = None
    target: tuple[str, float] | None = None


def _values(count: int, seed: int, work: int) -> pa.Table:
    value = np.random.default_rng(seed).integers(0, 2**62, count)
    return pa.table({"value": value, "work": np.full(count, work)})


# ---- random edges ----

_OF_VERTEX = {1: v.of_one, 2: v.of_two, 3: v.of_three}
_OF_ROWS = {1: v.of_one, 2: v.rows_of_two, 3: v.rows_of_three}


def _edges() -> ss.Pipeline:
    p = ss.Pipeline("edges")
    streams: list[Any] = [p.source("events", v.ROW)]
    for number, reads in enumerate(v.EDGES, start=1):
        given = [streams[at] for at in reads]
        inputs = dict(zip("abc", given, strict=False)) if len(given) > 1 else {}
        streams.append(
            p.add(_OF_VERTEX[len(given)], *(() if inputs else given), name=f"v{number}", **inputs)
        )
    p.sink("out", streams[-1])
    return p


def _chain_of_edges(run: Run, events: pa.Table) -> pa.Table:
    """All change in each phase: what belongs together stands in the same row of each table."""
    streams = [events]
    for number, reads in enumerate(v.EDGES, start=1):
        given = [streams[at] for at in reads]
        if len(given) > 1:
            values = [one["value"] for one in given]
            joined = pa.table([*values, events["work"]], [*"abc"[: len(given)], "work"])
        else:
            (joined,) = given
        streams.append(run(f"v{number}", joined))
    return streams[-1]


# ---- one after the other ----


def _in_a_row(name: str, operators: Mapping[str, ss.Operator]) -> Callable[[], ss.Pipeline]:
    def pipeline() -> ss.Pipeline:
        p = ss.Pipeline(name)
        stream = p.source("events", v.ROW)
        for vertex, operator in operators.items():
            stream = p.add(operator, stream, name=vertex)
        p.sink("out", stream)
        return p

    return pipeline


def _one_after_the_other(names: Mapping[str, Any]) -> Callable[[Run, pa.Table], pa.Table]:
    def chain(run: Run, events: pa.Table) -> pa.Table:
        for name in names:
            events = run(name, events)
        return events

    return chain


_HEAVY = {"offset": v.offset, "heavy": v.heavy, "count": v.count_of_key}
_CHEAP = {f"v{number}": v.cheap for number in range(1, v.CHEAP + 1)}


# ---- a hot one and a free one ----


def _hot() -> ss.Pipeline:
    p = ss.Pipeline("hot")
    events = p.source("events", v.ROW)
    p.sink("out", p.add(v.pair, hot=p.add(v.hot, events), free=p.add(v.free, events)))
    return p


def _chain_of_hot(run: Run, events: pa.Table) -> pa.Table:
    hot, free = run("hot", events)["value"], run("free", events)["value"]
    return run("pair", pa.table({"hot": hot, "free": free}))


# ---- trading ----

_TRADING = trading.pipeline()


def _ticks(count: int, seed: int, work: int) -> pa.Table:
    """Of all exchanges in one table, as a pipeline has them inside."""
    # The times of each batch lie behind those of all that have a lower seed.
    ticks = trading.ticks(count, seed, seed * 10**10)
    return _TRADING.events_table(ticks, "ticks", ["time"])


def _by_exchange(table: pa.Table) -> dict[str, pa.Table]:
    stream, found = table["stream"].to_numpy(zero_copy_only=False), {}
    for name in trading.EXCHANGES:
        names = ["time", *(f"{name}.{column}" for column in trading.TICK)]
        own = table.filter(pa.array(stream == name)).select(names)
        found[name] = own.rename_columns(["time", *trading.TICK])
    return found


def _with_exchange(table: pa.Table) -> pa.Table:
    tables = [
        own.append_column("exchange", pa.array([name] * own.num_rows))
        for name, own in _by_exchange(table).items()
    ]
    return pa.concat_tables(tables)


def _chain_of_trading(run: Run, ticks: Mapping[str, pa.Table]) -> pa.Table:
    """The engines add the order key to their rows; what three have filtered is put in its order."""
    quotes = pa.concat_tables([run(f"filter_{name}", own) for name, own in ticks.items()])
    quotes = _by_time(quotes.sort_by("timestamp"))
    signals = _by_time(run("averages", quotes))
    orders = run("billing", _by_time(run("options", signals)))
    return orders.select(list(trading.ORDER))


def _by_time(rows: pa.Table) -> pa.Table:
    names = {"timestamp": "time"}
    kept = rows.drop_columns(["source", "sequence"])
    return kept.rename_columns([names.get(name, name) for name in kept.column_names])


GRAPHS = (
    Graph(
        name="edges",
        title="10 vertices of 10 µs, random edges, all change",
        short="random edges",
        pipeline=_edges,
        engines={f"v{at}": _OF_ROWS[len(reads)] for at, reads in enumerate(v.EDGES, start=1)},
        chain=_chain_of_edges,
        function=v.edges_function,
        events=_values,
        seconds=100e-6,
        turns=len(v.EDGES),
        asleep={f"v{at}": 500e-6 for at in range(1, len(v.EDGES) + 1)},
        target=("pipeline, 2 threads", 1.85),
    ),
    Graph(
        name="heavy",
        title="a heavy one of 20 µs with few conflicts between two cheap ones",
        short="a heavy one",
        pipeline=_in_a_row("heavy", _HEAVY),
        engines=_HEAVY,
        chain=_one_after_the_other(_HEAVY),
        function=v.heavy_function,
        events=_values,
        seconds=20e-6,
        asleep={"heavy": 2e-3},
        target=("pipeline, 2 threads", 1.9),
    ),
    Graph(
        name="cheap",
        title="a chain of 20 cheap ones of 50 ns",
        short="cheap ones",
        pipeline=_in_a_row("cheap", _CHEAP),
        engines=_CHEAP,
        chain=_one_after_the_other(_CHEAP),
        function=v.cheap_function,
        events=_values,
        seconds=1e-6,
        turns=v.CHEAP,
        settings=SHORT,
        control=(v.cheap, v.cheap_in_turn),
        target=("pipeline, 1 thread", 0.9),
    ),
    Graph(
        name="hot",
        title="a hot one (2 µs, all phases conflict) beside a free one (8 µs)",
        short="a hot one",
        pipeline=_hot,
        engines={"hot": v.hot, "free": v.free, "pair": v.rows_of_pair},
        chain=_chain_of_hot,
        function=v.hot_function,
        events=_values,
        seconds=10e-6,
        turns=1.25,
    ),
    Graph(
        name="trading",
        title="trading: three exchanges, averages, an option's value",
        short="trading",
        pipeline=trading.pipeline,
        engines={
            **{f"filter_{name}": trading.filter_of(name) for name in trading.EXCHANGES},
            "averages": trading.averages_of_rows,
            "options": trading.options,
            "billing": trading.billing,
        },
        options={"keys": True},
        chain=_chain_of_trading,
        function=trading.trading_function,
        events=_ticks,
        of_pipeline=_by_exchange,
        of_chain=_by_exchange,
        of_function=_with_exchange,
        order={"order_by": "time"},
        settings=((2, 1), (8, 1), (2, 4), (4, 8), (8, 16)),
    ),
)


# ---- phases in which nothing changes ----


def quiet_pipeline(size: int, seed: int = 1) -> ss.Pipeline:
    """A gate, and behind it so many vertices that all together there are ``size``.

    Each reads the one before it, and most of them another one before that: when the gate lets
    something through, all run.
    """
    rng = np.random.default_rng(seed)
    p = ss.Pipeline(f"quiet_{size}")
    streams = [p.add(v.gate, p.source("events", {**v.LEVEL, "work": int}))]
    for number in range(1, size):
        last, other = streams[-1], streams[rng.integers(0, number)]
        name = f"v{number}"
        streams.append(
            p.add(v.quiet_of_one, last, name=name)
            if other is last
            else p.add(v.quiet_of_two, a=last, b=other, name=name)
        )
    p.sink("out", streams[-1])
    return p


# ---- pipelines of one vertex ----


def single(operator: ss.Operator) -> ss.Pipeline:
    """A pipeline of this operator alone."""
    p = ss.Pipeline(f"only_{operator.name}".replace(".", "_"))
    types = {"int": int, "float": float, "bool": bool, "str": str}
    columns = {name: types[column.kind] for name, column in operator.event}
    p.sink("out", p.add(operator, p.source("events", columns), name="only"))
    return p


def _points(count: int, seed: int) -> pa.Table:
    return pa.table({"item": np.random.default_rng(seed).zipf(1.3, count).astype(np.int64)})


# By name: the operator, its events (count, seed), and a setting of two threads.
SINGLE: Mapping[str, tuple[ss.Operator, Callable[[int, int], pa.Table], tuple[int, int]]] = {
    "a count in one of 65,536 cells": (v.of_one, lambda n, seed: _values(n, seed, 0), (4, 64)),
    "the same after 30 rounds of a busy loop": (
        v.of_one,
        lambda n, seed: _values(n, seed, 30),
        (4, 64),
    ),
    "top-k of a skewed stream": (top_k(k=5, rows=5, width=1024), _points, (8, 32)),
}
