"""What the unrewritten function says of operators; and where Python may say something else."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import itertools
import math
import random
import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from conftest import assert_identical, run_engine, run_oracle
from support import generated, witness
from support.operators import commuting, families
from support.operators.families import FAMILY

import specstream as ss


def mixed(x: Any) -> Any:
    """``families.mix``, which wraps on purpose, in exact integers."""
    x = int(x.code() if isinstance(x, witness.Text) else x)
    x = wrapped((x ^ (x >> 33)) * -49064778989728563)
    return witness.Int(x ^ (x >> 29))


def fitted(x: Any, bits: int) -> Any:
    half = 1 << (bits - 1)
    return witness.Int(((int(x) + half) & ((1 << bits) - 1)) - half)


def worked(x: Any, turns: int) -> Any:
    x = int(x)
    for _ in range(turns):
        x = wrapped((x ^ (x >> 7)) * 31)
    return witness.Int(x)


def wrapped(x: int) -> int:
    return (x + 2**63) % 2**64 - 2**63


HASHES = {families.mix: mixed, families.fit: fitted, commuting.work: worked}


@pytest.mark.parametrize("operator", FAMILY, ids=lambda operator: operator.name)
def test_the_families_are_what_python_makes_of_them(operator: ss.Operator) -> None:
    table = families.events(150, 3)
    kept = witness.assert_agrees(operator, table, 5, HASHES)
    assert kept >= (10 if operator.name == "one_word" else 140)  # that is one product after another


@pytest.mark.parametrize("operator", [commuting.sums, commuting.rows], ids=lambda one: one.name)
def test_updates_are_what_python_makes_of_them(operator: ss.Operator) -> None:
    table = commuting.events(200)
    small = pc.subtract(table["x"], pc.multiply(pc.divide(table["x"], 3000), 3000))
    table = table.set_column(0, "x", small)
    assert witness.assert_agrees(operator, table, 5, HASHES) == 200


@pytest.mark.slow
def test_random_programs_are_compared_at_nearly_all_events(tmp_path: Path) -> None:
    """That the comparison in the property tests says something."""
    kept = raised = 0
    rng = np.random.default_rng(1)
    table = pa.table(
        {
            "key": rng.integers(-3, 100, 12),
            "value": pa.array(rng.normal(size=12), mask=rng.random(12) < 0.2),
            "on": rng.random(12) < 0.5,
            "code": ["one", "two", None, ""] * 3,
            "when": pa.array(rng.integers(0, 10**12, 12)).cast(pa.timestamp("ms", "UTC")),
            "price": pa.array(rng.integers(0, 10**6, 12)).cast(pa.decimal128(21, 2)),
        }
    )
    for number in range(30):
        writer = generated.Writer(random.Random(number))
        operator = generated.load(writer.operator(5), tmp_path, 10_000_000 + number)
        kept += witness.assert_agrees(operator, table, number, are_none=writer.asks_none)
        raised += len(witness.run(operator, table, number, are_none=writer.asks_none).raised)
    assert kept > 0.8 * 30 * 12
    assert raised < 0.6 * kept


# ---- where it is not Python: docs/explanations/arithmetic.md, docs/guides/operators.md ----


class S(ss.State):
    n = ss.scalar(int)
    x = ss.scalar(float)
    a = ss.array(int, 4)
    f = ss.array(float, 4)
    g = ss.array(np.float32, 4)


names = itertools.count()


def differs(function: Any, table: dict[str, Any], *expected: Any) -> None:
    """The oracle and an engine emit what is expected of the events; the witness does not."""
    operator = ss.operator(state=S, event={"i": int, "x": float, "s": str}, emits={"found": float})(
        function
    )
    whole = pa.table({"i": [0], "x": [0.0], "s": [""]} | table)
    result = run_oracle(operator, whole)
    raised = [kind for _, kind, _ in result.raised]
    assert result.output["found"].to_pylist() + raised == list(expected)
    assert_identical(run_engine(operator, whole, threads=2, horizon=4, chunk=1), result)
    seen = witness.run(operator, whole)
    same = [row[0] for row in seen.rows] + [kind for _, kind in seen.raised]
    assert same != list(expected) or seen.kept != list(range(whole.num_rows))


def wraps(state, event, emit):
    emit(float((event.i + 1) // 2**62))


def test_integers_wrap() -> None:
    differs(wraps, {"i": [2**63 - 1]}, -2.0)


def shifts(state, event, emit):
    emit(float(0 << event.i))


def negative_power(state, event, emit):
    state.n = 2**event.i


def complex_power(state, event, emit):
    state.x = event.x**0.5


def large_int(state, event, emit):
    emit(float(int(event.x) > 0))


def test_limits() -> None:
    differs(shifts, {"i": [64]}, "ValueError")
    differs(negative_power, {"i": [-1]}, "ValueError")
    differs(complex_power, {"x": [-8.0]}, "ValueError")
    differs(large_int, {"x": [1e300]}, "OverflowError")


def sign_of_nan(state, event, emit):
    emit(math.copysign(1.0, -event.x))


def stores_nan(state, event, emit):
    state.x = -event.x
    emit(state.x)


def test_there_is_one_nan() -> None:
    differs(sign_of_nan, {"x": [math.nan]}, 1.0)
    operator = ss.operator(state=S, event={"x": float}, emits={"x": float})(stores_nan)
    quiet, signed = (struct.unpack("d", struct.pack("Q", one << 48))[0] for one in (0x7FF9, 0xFFF8))
    table = pa.table({"x": [quiet, signed, math.nan]})
    for result in (run_oracle(operator, table), run_engine(operator, table, horizon=0)):
        words = result.output["x"].to_numpy().view(np.uint64)
        assert set(words.tolist()) == {0x7FF8 << 48}


ODD = (float("nan"), 1.0)


def nan_in_a_tuple(state, event, emit):
    found = ODD[0]
    emit(float(found in ODD) + 2.0 * float(found in (1.0, found)) + 4.0 * float(found not in ODD))


def test_a_nan_is_in_no_tuple() -> None:
    differs(nan_in_a_tuple, {}, 4.0)


def rounds(state, event, emit):
    state.g[0] = event.x
    emit(state.g[0])


def test_float32_rounds_when_it_is_stored() -> None:
    operator = ss.operator(state=S, event={"x": float}, emits={"x": float})(rounds)
    result = run_oracle(operator, pa.table({"x": [0.1, 1e39]}))
    assert result.output["x"].to_pylist() == [float(np.float32(0.1)), math.inf]


def negated_literal(state, event, emit):
    emit(math.copysign(1.0, -max(0, event.x)))


def test_the_int_of_a_literal_among_floats_is_one() -> None:
    differs(negated_literal, {"x": [-2.5]}, -1.0)


def sums_up(state, event, emit):
    state.f[0] = 1e100
    state.f[1] = 1.0
    state.f[2] = -1e100
    emit(sum(state.f))


def test_sum_goes_from_left_to_right() -> None:
    operator = ss.operator(state=S, event={"x": float}, emits={"x": float})(sums_up)
    table = pa.table({"x": [0.0]})
    for result in (run_oracle(operator, table), run_engine(operator, table, horizon=0)):
        assert result.output["x"].to_pylist() == [0.0]
    assert sum([1e100, 1.0, -1e100]) == (1.0 if sys.version_info >= (3, 12) else 0.0)


def divides_a_slice(state, event, emit):
    state.grid[:] = 5
    state.grid[:] //= event.i
    emit(state.grid[0])


class Grid(ss.State):
    grid = ss.array(int, 4)


@pytest.mark.parametrize("options", [{"horizon": 0}, {"threads": 1, "horizon": 2, "chunk": 1}])
def test_a_slice_divided_by_zero_raises(options: dict[str, Any]) -> None:
    operator = ss.operator(state=Grid, event={"i": int}, emits={"x": int})(divides_a_slice)
    table = pa.table({"i": [2, 0, 1]})
    expected = run_oracle(operator, table)
    assert [(row, kind) for row, kind, _ in expected.raised] == [(1, "ZeroDivisionError")]
    assert_identical(run_engine(operator, table, **options), expected)
    grid = np.full(4, 5)
    with np.errstate(divide="ignore"):
        grid[:] //= 0
    assert grid.tolist() == [0] * 4


def keeps_a_string(state, event, emit):
    state.n = event.s
    emit(float(state.n == "abc") + 2.0 * float(state.n == event.s))


def test_a_string_that_is_kept_is_its_code() -> None:
    differs(keeps_a_string, {"s": ["abc"]}, 3.0)


def stores_an_int(state, event, emit):
    state.x = event.i
    emit(state.x - float(2**53))


def test_a_field_holds_what_it_is_declared_as() -> None:
    operator = ss.operator(state=S, event={"i": int}, emits={"x": float})(stores_an_int)
    table = pa.table({"i": [2**53 + 1]})
    assert run_oracle(operator, table).output["x"].to_pylist() == [0.0]
    assert witness.assert_agrees(operator, table) == 1


class Narrow(ss.State):
    small = ss.array(np.uint8, 3, fill=200)


def orders(state, event, emit):
    """Sets, narrow types, sums."""
    mine = {30, 4, 17}
    mine.add(2)
    for one in mine:
        emit(float(one))
    emit(float(mine.pop()))
    emit(float(np.int8(event.i) * 2))
    copied = state.small.copy()
    copied[0] = event.i * 10
    emit(float((state.small + copied).max()))
    emit(state.small.mean())
    nothing: list[float] = []
    emit(sum(nothing))


def test_sets_have_the_order_of_insertion_and_nothing_stays_narrow() -> None:
    operator = ss.operator(state=Narrow, event={"i": int}, emits={"x": float})(orders)
    table = pa.table({"i": [100]})
    expected = run_oracle(operator, table)
    assert expected.output["x"].to_pylist() == [30, 4, 17, 2, 2, 200, 1200, 200, 0]
    assert_identical(run_engine(operator, table, horizon=0), expected)
    small = np.full(3, 200, np.uint8)
    assert (small + small).tolist() == [144] * 3  # where NumPy stays narrow


def told_of_null(state, event, emit):
    emit(float(len(f"{event.s}")))
    emit(float(event.i + 1 > 0))


def test_a_null_is_none_to_what_python_computes() -> None:
    event = {"i": ss.nullable(int), "s": ss.nullable(str)}
    operator = ss.operator(state=S, event=event, emits={"x": float})(told_of_null)
    table = pa.table({"i": pa.array([None, 2**63 - 1], pa.int64()), "s": [None, "abc"]})
    expected = run_oracle(operator, table)
    assert expected.output["x"].to_pylist() == [len("None"), 1.0, 3.0, 0.0]
    assert_identical(run_engine(operator, table, horizon=0), expected)
