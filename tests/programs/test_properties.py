"""Random operators, random streams, random settings: always the oracle's answer, bit for bit."""

from __future__ import annotations

import itertools
import os
import random
from pathlib import Path

import pyarrow as pa
import pytest
from conftest import assert_identical, run_engine, run_oracle
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from support import generated, witness
from support.generated.streams import (
    OPTIONS,
    ROWS,
    Row,
    assert_same_in_engines,
    assert_same_on_a_journey,
    table_of,
)

import specstream as ss

pytestmark = pytest.mark.slow

numbers = itertools.count()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("generated")


def unlogged(operator: ss.Operator, table: pa.Table, seed: int) -> None:
    """One thread without a log, and one with locks: the same where no event raises.

    None is undone there. So those that raise are left out, as long as there are some.
    """
    for _ in range(5):
        expected = run_oracle(operator, table, seed=seed)
        if not expected.raised:
            break
        raising = {row for row, _, _ in expected.raised}
        others = [row for row in range(table.num_rows) if row not in raising]
        table = table.take(pa.array(others, pa.int64()))
    else:
        return
    for execution in ("log_free", "locked"):
        found = run_engine(operator, table, seed=seed, threads=1, execution=execution)
        assert_identical(found, expected)


# Each is compiled for several paths, which takes seconds. A thousand are for a quiet night.
EXAMPLES = int(os.environ.get("EXAMPLES", "3"))


@settings(
    max_examples=EXAMPLES,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(
    program=st.integers(0, 2**32 - 1),
    statements=st.integers(1, 6),
    rows=st.lists(ROWS, min_size=1, max_size=40),
    repeat=st.integers(0, 160),
    paths=st.lists(OPTIONS, min_size=2, max_size=4),
    seed=st.integers(0, 2**64 - 1),
    dice=st.integers(0, 2**32 - 1),
)
def test_random_operators_give_the_answer_of_the_sequential_run(
    program: int,
    statements: int,
    rows: list[Row],
    repeat: int,
    paths: list[dict[str, object]],
    seed: int,
    dice: int,
    folder: Path,
) -> None:
    # Where operators may differ from Python, engines have to be like the oracle all the same.
    writer = generated.Writer(random.Random(program), is_python=program % 4 > 0)
    text = writer.operator(statements)
    note(text[len(generated.HEADER) :])
    operator = generated.load(text, folder, next(numbers))
    table = table_of(rows, repeat)
    expected = run_oracle(operator, table, seed=seed, keys=True)
    if writer.is_python:
        witness.assert_agrees(operator, table.slice(0, 50), seed, are_none=writer.asks_none)
    assert_same_in_engines(operator, table, expected, paths, seed)
    if dice % 8 == 0:
        unlogged(operator, table, seed)
    assert_same_on_a_journey(operator, table, expected, paths, seed, dice)
