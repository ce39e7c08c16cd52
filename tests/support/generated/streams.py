"""Random streams for random operators, random settings of engines, and what is compared on them."""

from __future__ import annotations

import datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
from conftest import Result, assert_identical, run_engine
from hypothesis import note
from hypothesis import strategies as st

import specstream as ss
from support.engine.journeys import Piece, run_journey, run_submitted

__all__ = [
    "OPTIONS",
    "ROWS",
    "Row",
    "assert_same_in_engines",
    "assert_same_on_a_journey",
    "table_of",
]

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


def assert_same_in_engines(
    operator: ss.Operator,
    table: pa.Table,
    expected: Result,
    paths: list[dict[str, object]],
    seed: int,
) -> None:
    """Engines of these settings give what is expected."""
    for options in paths:
        note(repr(options))
        if options["execution"] == "speculate":
            options["horizon"] = max(1, int(str(options["horizon"])))
        assert_identical(run_engine(operator, table, seed=seed, keys=True, **options), expected)


def assert_same_on_a_journey(
    operator: ss.Operator,
    table: pa.Table,
    expected: Result,
    paths: list[dict[str, object]],
    seed: int,
    dice: int,
) -> None:
    """Likewise where the state is put aside and taken back on the way; in order, or out of order,
    where the answer is another."""
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
    of_arrival = run_submitted(operator, pieces, [{"horizon": 0}], None, seed=seed, keys=True)
    found = run_submitted(operator, pieces, paths, dice, seed=seed, keys=True)
    assert_identical(found, of_arrival)
