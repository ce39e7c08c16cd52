"""Random operators, random streams, random settings: always the oracle's answer, bit for bit."""

from __future__ import annotations

import datetime
import itertools
import os
import random
from decimal import Decimal
from pathlib import Path

import generated
import numpy as np
import pyarrow as pa
import pytest
import witness
from conftest import assert_identical, run_engine, run_oracle
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from journeys import Piece, run_journey, run_submitted

import specstream as ss

pytestmark = pytest.mark.slow

numbers = itertools.count()

INTS = st.one_of(
    st.integers(-3, 12),
    st.integers(-(2**63), 2**63 - 1),
    st.sampled_from([0, 1, -1, 2**31, 2**53, 2**53 + 1, 2**63 - 1, -(2**63)]),
)
FLOATS = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True),
    st.floats(-10, 10),
    st.sampled_from([0.0, -0.0, 1.0, float("nan"), float("inf"), 5e-324]),
)
ROWS = st.tuples(
    INTS,
    st.none() | FLOATS,
    st.booleans(),
    st.sampled_from(["one", "two", "", "ä", None]),
    st.datetimes(timezones=st.sampled_from([datetime.UTC])),
    st.decimals(-(10**12), 10**12, allow_nan=False, places=2),
)
Row = tuple[int, float | None, bool, str | None, datetime.datetime, Decimal]
OPTIONS = st.fixed_dictionaries(
    {
        "threads": st.integers(1, 4),
        "horizon": st.integers(0, 32),
        "chunk": st.sampled_from([1, 2, 3, 7, 8, 64]),
        "execution": st.sampled_from(["ordered", "ordered", "speculate"]),
        "protocol": st.sampled_from(["value", "eager"]),
        "record_shift": st.integers(0, 4),
        "profile": st.sampled_from([False] * 9 + [True]),
    }
)


def table_of(rows: list[Row], repeat: int) -> pa.Table:
    """The drawn rows, repeated with a skew so that transactions meet each other."""
    rng = np.random.default_rng(len(rows))
    order = np.concatenate([np.arange(len(rows)), rng.integers(0, max(len(rows) // 3, 1), repeat)])
    keys, values, flags, codes, times, prices = zip(*rows, strict=True)
    whole = [time.replace(microsecond=time.microsecond // 1000 * 1000) for time in times]
    return pa.table(
        {
            "key": np.array(keys, np.int64)[order],
            "value": pa.array(values, pa.float64()).take(pa.array(order)),
            "on": np.array(flags, bool)[order],
            "code": pa.array([codes[at] for at in order], pa.string()),
            "when": pa.array(whole, pa.timestamp("us", "UTC")).take(pa.array(order)),
            "price": pa.array(prices, pa.decimal128(20, 2)).take(pa.array(order)),
        }
    )


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
EXAMPLES = int(os.environ.get("EXAMPLES", "4"))


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
    for options in paths:
        note(repr(options))
        if options["execution"] == "speculate":
            options["horizon"] = max(1, int(str(options["horizon"])))
        assert_identical(run_engine(operator, table, seed=seed, keys=True, **options), expected)
    if dice % 8 == 0:
        unlogged(operator, table, seed)
    # Put aside and taken back on the way; in order, or out of order, where the answer is another.
    if dice % 2:
        found = run_journey(operator, table, paths, dice, seed=seed, keys=True)
        assert_identical(found, expected)
        return
    rng = np.random.default_rng(dice)
    timed = table.append_column("time", pa.array(rng.integers(0, 50, table.num_rows)))
    pieces: list[Piece] = [
        ("ab"[at % 2], timed.slice(at, 7), ("advance", "poll")[rng.integers(2)])
        for at in rng.permutation(np.arange(0, table.num_rows, 7)).tolist()
    ]
    expected = run_submitted(operator, pieces, [{"horizon": 0}], None, seed=seed, keys=True)
    found = run_submitted(operator, pieces, paths, dice, seed=seed, keys=True)
    assert_identical(found, expected)
