"""A pipeline of two sources and two sinks whose answer tells the order of its events.

Its vertex in the middle of both sinks reads one row in a phase of each source, and keeps the other.
"""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from typing import Any

import numpy as np
import pyarrow as pa

import specstream as ss

__all__ = ["assert_same_state", "desk", "expected", "rows_of", "tables", "whole"]

BATCHES, ROWS = 5, 30


class Chain(ss.State):
    seen = ss.scalar(int)
    hash = ss.scalar(int)
    sums = ss.array(float, 5)


class Words(ss.State):
    counts = ss.dict(str, int, limit=50)


@ss.operator(
    state=Chain,
    event={"symbol": int, "price": float},
    emits={"symbol": int, "hash": int, "sum": float},
)
def trade(state, event, emit):
    # Every order of the same events gives another hash.
    state.seen += 1
    state.hash = state.hash * 6364136223846793005 + event.symbol
    state.sums[event.symbol % 5] += event.price
    emit(event.symbol, state.hash, state.sums[event.symbol % 5])


@ss.operator(
    event={"symbol": int, "text": ss.nullable(str)}, emits={"symbol": int, "text": ss.nullable(str)}
)
def told(event, emit):
    if event.text is not None:
        emit(event.symbol, event.text)


@ss.operator(
    state=Words,
    event={"symbol": int, "text": ss.nullable(str)},
    emits={"symbol": int, "text": str, "count": int},
)
def headline(state, event, emit):
    if event.text is not None:
        state.counts[event.text] = state.counts.get(event.text, 0) + 1
        emit(event.symbol, event.text, state.counts[event.text])


@ss.operator(
    state=Chain,
    inputs={
        "trade": {"symbol": int, "hash": int},
        "headline": {"symbol": int, "text": str, "count": int},
    },
    emits={"symbol": int, "text": ss.nullable(str), "hash": int},
)
def mixed(state, event, emit):
    state.seen += 1
    state.hash = state.hash * 2862933555777941757 + event.trade.hash + event.headline.count
    if event.changed("headline") or event.trade.symbol % 3 == 0:
        emit(
            event.trade.symbol, event.headline.text if event.known("headline") else None, state.hash
        )


headline_in_python = ss.operator(
    state=Words,
    event={"symbol": int, "text": ss.nullable(str)},
    emits={"symbol": int, "text": str, "count": int},
    interpreted=True,
)(headline.function)


def desk(
    sinks: tuple[str, ...] = ("trades", "mixed"), phases: Any = "event", in_python: bool = False
) -> ss.Pipeline:
    """The pipeline, new; with ``in_python`` one of its vertices is interpreted."""
    p = ss.Pipeline("desk", phases=phases)
    ticks = p.source("ticks", {"symbol": int, "price": float})
    news = p.source("news", {"symbol": int, "text": ss.nullable(str)})
    trades = p.add(trade, ticks)
    streams = {
        "trades": trades,
        "mixed": p.add(
            mixed,
            trade=trades,
            headline=p.add(
                headline_in_python if in_python else headline, p.add(told, news), name="headline"
            ),
        ),
    }
    for name in sinks:
        p.sink(name, streams[name])
    return p


def tables(batch: int, rows: int = ROWS) -> dict[str, pa.Table]:
    """Events of each source, in no order of time, later than those of earlier batches."""
    rng = np.random.default_rng(batch)

    def times(count: int) -> Any:
        return rng.integers(0, 2 * rows, count) + 1000 * batch

    count, texts = rows // 3, ["up", "down", None, "é"]
    return {
        "ticks": pa.table(
            {
                "time": times(rows),
                "symbol": np.arange(rows) + rows * batch,
                "price": rng.normal(size=rows),
            }
        ),
        "news": pa.table(
            {
                "time": times(count),
                "symbol": rng.integers(0, 9, count),
                "text": pa.array([texts[at] for at in rng.integers(0, 4, count)], pa.string()),
            }
        ),
    }


def whole(tables: dict[str, pa.Table]) -> pa.Table:
    """All of them in one, as a DataFrame of Spark has them."""
    columns: dict[str, list[Any]] = {}
    names = [f"{source}.{name}" for source, of in tables.items() for name in of.column_names]
    for source, of in tables.items():
        for row in of.to_pylist():
            columns.setdefault("stream", []).append(source)
            columns.setdefault("time", []).append(row["time"])
            own = {f"{source}.{name}": value for name, value in row.items()}
            for name in names:
                columns.setdefault(name, []).append(own.get(name))
    types = {
        f"{source}.{name}": of.schema.field(name).type
        for source, of in tables.items()
        for name in of.column_names
    }
    return pa.table({name: pa.array(of, types.get(name)) for name, of in columns.items()})


def expected(batches: int = BATCHES, pipeline: ss.Pipeline | None = None) -> Any:
    """The plain run over the events of all batches in their order."""
    each = [tables(batch) for batch in range(batches)]
    joined = {name: pa.concat_tables([one[name] for one in each]) for name in each[0]}
    return (pipeline or desk()).run_sequential(joined, order_by="time")


def rows_of(parts: list[pa.Table]) -> list[dict[str, Any]]:
    """Of all tables, one after the other."""
    return [row for part in parts for row in part.to_pylist()]


def assert_same_state(found: Any, wanted: Any) -> None:
    """Two views of states, bit for bit."""
    one, other = found.to_dict(), wanted.to_dict()
    assert list(one) == list(other)
    for name, value in other.items():
        if isinstance(value, np.ndarray):
            assert one[name].tobytes() == value.tobytes(), name
        else:
            assert repr(one[name]) == repr(value), name
