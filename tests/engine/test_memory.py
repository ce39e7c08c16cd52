"""Limits of logs, and the memory that they take: counted to the byte, bounded where asked for."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from conftest import assert_identical, run_engine, run_oracle
from support.operators.families import events, names, scattered

import specstream as ss


class Table(ss.State):
    a = ss.array(int, 4096)
    work = ss.scratch(int, 100)


@ss.operator(state=Table, event={"x": int}, emits={"i": int, "value": int})
def sweep(state, event, emit):
    """Reads x words, writes x words, emits x rows."""
    for i in range(event.x):
        state.a[i] = state.a[i] * 3 + event.x
        emit(i, state.a[i])


SMALL = pa.table({"x": [1, 2, 3] * 400})
OPTIONS: list[dict[str, Any]] = [
    {"threads": 1, "horizon": 0},
    {"threads": 2, "horizon": 1, "chunk": 1},
    {"threads": 2, "horizon": 8, "chunk": 4},
    {"threads": 3, "horizon": 31, "chunk": 4, "limits": ss.Limits(reads=100, writes=33, rows=7)},
    {"threads": 2, "horizon": 8, "chunk": 4, "protocol": "eager"},
    {"threads": 2, "horizon": 3, "chunk": 4, "protocol": "eager", "record_shift": 2},
    {"threads": 2, "horizon": 2, "chunk": 4, "execution": "speculate"},
    {"threads": 2, "horizon": 2, "chunk": 4, "execution": "locked"},
]


def needed(operator: ss.Operator, **options: Any) -> int:
    """What an engine says that it needs."""
    with pytest.raises(ss.ConfigurationError, match="memory=1: ") as caught:
        ss.Engine(operator, memory=1, **options)
    found = re.search(r"needs (\d+) bytes", str(caught.value))
    assert found
    return int(found[1])


# ---- the account ----


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_an_engine_takes_what_it_said_that_it_needs(options: dict[str, Any]) -> None:
    figure = needed(sweep, **options)
    with pytest.raises(ss.ConfigurationError, match=f"memory={figure - 1}"):
        ss.Engine(sweep, memory=figure - 1, **options)
    with ss.Engine(sweep, memory=figure, **options) as engine:
        assert engine.stats.memory < figure  # the logs come with the first batch
        # Few events at a time: the output buffer does not grow.
        for begin in range(0, 400, 100):
            engine.process(SMALL.slice(begin, 100))
        assert engine.stats.memory == figure


def test_the_parts_of_the_account() -> None:
    """Differences between engines, from what the log entries are made of."""
    base: dict[str, Any] = {"threads": 2, "horizon": 7, "chunk": 4}
    transactions = 16

    def more(**options: Any) -> int:
        return needed(sweep, **{**base, **options}) - needed(sweep, **base)

    default = ss.Limits()
    assert more(limits=ss.Limits(reads=default.reads + 10)) == transactions * 10 * 16
    # Each thread has an index of the writes: a power of two, at least four times as long.
    assert more(limits=ss.Limits(writes=2 * default.writes)) == default.writes * (
        transactions * 16 + 2 * 4 * 16
    )
    # A row is the number of its event and its values.
    assert more(limits=ss.Limits(rows=default.rows + 10)) == transactions * 10 * 3 * 8
    assert more(horizon=4) == 0
    assert more(horizon=8) == more(horizon=15) > 0
    eager = more(protocol="eager")
    # A record for each word, and for each write the lock's old version.
    assert eager == 4096 * 8 + 24 + transactions * default.writes * 16  # 24: the one region


def test_what_has_no_limit_is_counted() -> None:
    with ss.Engine(sweep, horizon=0) as engine:
        engine.process({"x": [1]})
        before = engine.stats.memory
        engine.process({"x": [4096]})
        grown = engine.stats.memory - before
        # At least the rows, of three words, and an undo entry of two words for each store.
        assert 4096 * 8 * (3 + 2) <= grown + (1024 + 256 * 2) * 8 <= 2 * 4096 * 8 * (3 + 2) + 8192


def test_the_figures_of_state_and_strings() -> None:
    table = events(100)
    at = table.schema.get_field_index("name")
    table = table.set_column(at, "name", pa.array([f"{number:0200}" for number in range(100)]))
    with ss.Engine(names, horizon=0) as engine:
        assert engine.stats.state_bytes == 8 * names.layout.words("state")
        before = engine.stats.string_bytes
        mark = engine.savepoint()
        engine.process(table)
        after = engine.stats.string_bytes
        texts = set(table["name"].to_pylist()) - set(names.program.strings)
        assert after - before >= sum(len(text) for text in texts) > 0
        engine.process(table)
        assert engine.stats.string_bytes == after
        engine.rollback(mark)
        engine.snapshot()  # before which strings go that nothing refers to
        assert engine.stats.string_bytes <= after - sum(len(text) for text in texts)
        assert {"memory", "state_bytes", "string_bytes"} <= engine.stats.to_dict().keys()


# ---- the bound ----


def test_the_refusal_says_what_to_do() -> None:
    with pytest.raises(ss.ConfigurationError) as caught:
        ss.Engine(sweep, threads=2, horizon=8, memory=100_000)
    message = str(caught.value)
    assert message.startswith("memory=100000: the engine of 'sweep' needs ")
    for part in (
        "2 thread(s)",
        "32 (twice horizon 8",
        "lower horizon, threads or limits=ss.Limits",
    ):
        assert part in message
    figures = re.search(r"needs (\d+) .* buffers: (\d+) .* transactions of (\d+) each", message)
    assert figures
    total, others, transaction = map(int, figures.groups())
    assert total == others + 32 * transaction


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"memory": 0}, "memory=0; expected an integer from 1 .* or None"),
        ({"memory": 1e9}, "memory=1000000000.0"),
        ({"limits": {"reads": 5}}, r"limits=\{'reads': 5\}; expected ss.Limits"),
    ],
)
def test_a_bad_option_is_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ss.ConfigurationError, match=message):
        ss.Engine(sweep, **options)


@pytest.mark.parametrize("name", ["reads", "writes", "rows", "elements"])
@pytest.mark.parametrize("value", [0, -1, 2**24 + 1, 1.0, True, None])
def test_a_bad_limit_is_named(name: str, value: Any) -> None:
    with pytest.raises(ss.ConfigurationError, match=rf"Limits: {name}={value!r}; expected an int"):
        ss.Limits(**{name: value})


@pytest.mark.parametrize("horizon", [1, 3, 7])
def test_predictors_ask_for_no_longer_horizon_than_fits(horizon: int) -> None:
    memory = needed(scattered, threads=4, horizon=horizon)
    table = events(20_000)
    expected = run_oracle(scattered, table)
    predictors: list[dict[str, Any]] = [
        {"horizon": "auto"},
        {"predictor": ss.AbortDriven(threshold=1.0, every=5, chunk=4, start=0, retry=1)},
        {"predictor": ss.AbortDriven(threshold=1.0, every=5, chunk=4, start=8)},
        {"predictor": ss.ThroughputDriven(every=5, chunk=4)},
    ]
    for options in predictors:
        engine = ss.Engine(scattered, threads=4, memory=memory, **options)
        with engine:
            output = engine.process(table)
            stats = engine.stats
            found = engine.state.to_dict()
        assert output.equals(expected.output)
        assert found["n"] == expected.state["n"]
        assert max((d.horizon for d in stats.decisions), default=0) <= horizon
        # All the rest is the output's.
        assert stats.memory <= memory + 2 * 8 * (1 + len(scattered.emits)) * 20_000
        predictor: Any = engine.parts.predictor
        longest = predictor.open()[0] if isinstance(predictor, ss.Auto) else predictor.limit
        assert longest == horizon
    with pytest.raises(ss.ConfigurationError, match="twice horizon 1,"):
        ss.Engine(scattered, threads=4, memory=100_000, predictor=ss.AbortDriven())
    with pytest.raises(ss.ConfigurationError, match="twice horizon 8,"):
        ss.Engine(scattered, threads=4, memory=memory, horizon=8, chunk="auto")


# ---- the limits ----


@pytest.mark.parametrize("protocol", ["value", "eager"])
@pytest.mark.parametrize(
    "limits", [{"reads": 20}, {"writes": 20}, {"rows": 20}, {"reads": 1, "writes": 1, "rows": 1}]
)
def test_a_run_that_passes_a_limit_is_run_as_the_head(
    limits: dict[str, int], protocol: str
) -> None:
    table = pa.table({"x": np.arange(200) % 40})
    options: dict[str, Any] = {
        "horizon": 4,
        "chunk": 1,
        "protocol": protocol,
        "limits": ss.Limits(**limits),
        "execution": "speculate",
    }
    expected = run_oracle(sweep, table)
    for threads in (1, 2):
        assert_identical(run_engine(sweep, table, threads=threads, **options), expected)
    with ss.Engine(sweep, threads=1, **options) as engine:
        assert engine.limits == ss.Limits(**limits)
        engine.process(table)
        passing = sum(x > min(limits.values()) for x in table["x"].to_pylist())
        assert engine.stats.aborts["log_full"] == passing
