"""Operators over signals: against pandas, NumPy and exact sums, over all values so far."""

import math
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import library
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import specstream as ss
from specstream.operators.signals import crossing, moving_average


def series(count: int = 300, seed: int = 1) -> pa.Table:
    """Values of three keys: huge ones, equal ones in a row, zeros of both signs."""
    generator = np.random.default_rng(seed)
    value = generator.normal(10.0, 3.0, count)
    value[[20, 21, 90]] = 1e17, -3e16, 1e-9
    value[120:170] = 0.1
    value[200:203] = 0.0, -0.0, 0.0
    return pa.table({"key": generator.choice(["a", "b", "c"], count), "value": value})


def by_key(table: pa.Table) -> list[tuple[str, list[float]]]:
    """Of each event its key, and the values of that key so far."""
    seen: defaultdict[str, list[float]] = defaultdict(list)
    rows = []
    for key, value in zip(table["key"].to_pylist(), table["value"].to_pylist(), strict=True):
        seen[key].append(value)
        rows.append((key, list(seen[key])))
    return rows


def mean(values: list[float]) -> float:
    return math.fsum(values) / len(values)


def rows_of(output: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in output.columns), strict=True))


@pytest.mark.parametrize(
    ("factory", "options"),
    [
        (moving_average, {"n": 0}),
        (moving_average, {"n": 5, "min_periods": 6}),
        (moving_average, {"key": float}),
        (moving_average, {"n": 2**16, "keys": 2**12}),
        (crossing, {"short": 5, "long": 5}),
        (crossing, {"long": 1}),
        (crossing, {"key": "str"}),
        (crossing, {"keys": 0}),
    ],
)
def test_wrong_options_are_refused(factory: Callable[..., ss.Operator], options: Any) -> None:
    with pytest.raises(ss.ConfigurationError, match=f"^{factory.__name__}: "):
        factory(**options)


# ---- moving averages ----


def test_a_moving_average_is_that_of_exact_sums() -> None:
    n = 6
    table = series()
    run = library.agrees(moving_average(n, min_periods=2), table)
    expected = [(key, values[-n:]) for key, values in by_key(table) if len(values) >= 2]
    assert run.output["key"].to_pylist() == [key for key, _ in expected]
    for found, (_, last) in zip(run.output["mean"].to_pylist(), expected, strict=True):
        assert abs(found - mean(last)) <= n * 2.0**-53 * mean([abs(x) for x in last])


def test_a_moving_average_agrees_with_pandas() -> None:
    generator = np.random.default_rng(2)
    frame = pd.DataFrame(
        {"key": generator.integers(0, 4, 200), "value": generator.normal(size=200)}
    )
    for n in (1, 2, 7):
        output = moving_average(n, key=int).run_sequential(frame).output
        rolled = frame.groupby("key")["value"].transform(lambda one, n=n: one.rolling(n).mean())
        kept = rolled.notna()
        assert output["key"].to_pylist() == frame["key"][kept].tolist()
        np.testing.assert_allclose(output["mean"].to_numpy(), rolled[kept], rtol=0, atol=1e-12)


def test_what_has_left_the_window_is_forgotten() -> None:
    value = [1.0, math.nan, math.inf, -math.inf, 2.0, 4.0, 6.0, 1e300, 1.0, 3.0, 5.0]
    table = pa.table({"key": ["a"] * len(value), "value": value})
    means = library.agrees(moving_average(2), table).output["mean"].to_pylist()
    assert [str(one) for one in means[:4]] == ["nan", "nan", "nan", "-inf"]
    assert means[4:] == [3.0, 5.0, 5e299, 5e299, 2.0, 4.0]


def test_moving_averages_of_nothing_and_of_too_many_keys() -> None:
    empty = {"key": [], "value": []}
    assert moving_average().run_sequential(empty).output.num_rows == 0
    with pytest.raises(OverflowError):
        moving_average(3, keys=1).run_sequential({"key": ["a", "b"], "value": [1.0, 2.0]})


def test_crossings_are_those_of_exact_means() -> None:
    table = series(400, seed=3)
    run = library.agrees(crossing(3, 8), table)
    sides: dict[str, bool] = {}
    expected = []
    for key, values in by_key(table):
        short, long = mean(values[-3:]), mean(values[-8:])
        if len(values) >= 8 and not math.isclose(short, long, rel_tol=1e-9):
            if sides.get(key, short > long) != (short > long):
                expected.append((key, short > long))
            sides[key] = short > long
    assert len(expected) > 20
    assert [row[:2] for row in rows_of(run.output)] == expected


def test_means_that_touch_do_not_cross() -> None:
    value = [2.0, 2.0, 2.0, 3.0, 3.0, 3.0, 4.0, 4.0, 4.0, 1.0]
    table = pa.table({"key": ["a"] * 10, "value": value})
    output = crossing(1, 2).run_sequential(table).output
    assert rows_of(output) == [("a", False, 1.0, 2.5)]
    level = pa.table({"key": ["a"] * 40, "value": [0.1] * 20 + [0.3] * 20})
    assert crossing(3, 8).run_sequential(level).output.num_rows == 0
