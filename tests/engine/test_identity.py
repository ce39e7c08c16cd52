"""Promise 1: the same answer, on every path."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from conftest import PATHS, Path, Result, assert_identical, run_engine, run_oracle
from support.engine.spinning import transfer
from support.operators.families import FAMILY, events, one_word, scattered

import specstream as ss


@pytest.fixture(scope="module")
def expected() -> dict[str, Result]:
    """What the oracle says, computed once."""
    return {}


@pytest.mark.slow
@pytest.mark.parametrize("operator", FAMILY, ids=lambda operator: operator.name)
def test_every_path_gives_the_answer_of_the_sequential_run(
    operator: ss.Operator, path: Path, expected: dict[str, Result]
) -> None:
    table = events(600)
    if operator.name not in expected:
        expected[operator.name] = run_oracle(operator, table, seed=7)
    assert_identical(path(operator, table, seed=7), expected[operator.name])


@pytest.mark.parametrize("operator", FAMILY, ids=lambda operator: operator.name)
def test_an_operator_of_the_family_goes_on_after_an_event_that_raises(
    operator: ss.Operator,
) -> None:
    """An event that raises leaves no trace: what depends on the state alone would raise again."""
    table = events(600)
    raised = [row for row, _, _ in run_oracle(operator, table, seed=7).raised]
    assert len(raised) < 300
    assert sum(row >= 300 for row in raised) <= sum(row < 300 for row in raised) * 2


def test_an_empty_batch_and_one_event(path: Path) -> None:
    table = events(1)
    assert_identical(path(scattered, table), run_oracle(scattered, table))
    empty = path(scattered, table.slice(0, 0))
    assert empty.output.num_rows == 0
    assert empty.output.schema == scattered.output_schema


def test_batches_continue_each_other() -> None:
    table = events(1000)
    with ss.Engine(scattered, threads=2, horizon=8, chunk=4) as engine:
        parts = [engine.process(table.slice(start, 97)) for start in range(0, 1000, 97)]
        state = engine.state.to_dict()
    expected = run_oracle(scattered, table)
    found = type(expected)(pa.concat_tables(parts), state, ())
    assert_identical(found, expected)


def test_a_million_events() -> None:
    keys = np.random.default_rng(3).integers(-(2**63), 2**63 - 1, 1_000_000)
    unused = pa.nulls(len(keys), pa.string()).fill_null("")
    table = pa.table({"key": keys, "value": np.zeros(len(keys)), "on": keys > 0, "name": unused})
    n, after = 0, []
    for key in keys.tolist():
        n = (n * 31 + key + 2**63) % 2**64 - 2**63
        after.append(n)
    for path in ("plain", "two threads", "far ahead"):
        result = run_engine(one_word, table, **(PATHS[path] or {}))
        assert result.output["after"].to_pylist() == after
        assert result.output["before"].to_pylist() == [0, *after[:-1]]
        assert result.state["n"] == n


def test_speculation_really_happens() -> None:
    """The paths above would prove nothing if the head did all the work."""
    table = pa.table({"x": np.ones(100_000, np.int64)})
    with ss.Engine(transfer, threads=2, horizon=16, chunk=2) as engine:
        for _ in range(300):
            engine.process(table)
            stats = engine.stats
            if stats.speculative_runs > 1000 and stats.aborts["conflict"] > 0:
                return
    pytest.fail(f"hardly any speculation: {stats}")


def test_under_eager_the_head_speculates_and_no_later_transaction_aborts_it() -> None:
    table = pa.table({"x": np.ones(20_000, np.int64)})
    with ss.Engine(transfer, threads=2, horizon=16, chunk=2, protocol="eager") as engine:
        for _ in range(300):
            engine.process(table)
            stats = engine.stats
            assert stats.head_runs == 0
            assert stats.head_aborts == 0
            direct = stats.aborts["locked"] + stats.aborts["stolen"]
            if stats.speculative_runs > 1000 and direct > 0:
                return
    pytest.fail(f"hardly any speculation: {stats}")
