"""Operators over signals: against pandas, NumPy and exact sums, over all values so far."""

import functools
import itertools
import math
import statistics
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import hypothesis
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import strategies
from support.daily import share_of
from support.operators import library

import specstream as ss
from specstream.operators.signals import (
    adwin,
    bollinger_bands,
    crossing,
    cusum,
    exponential_average,
    moving_average,
)


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
        (moving_average, {"n": 2**16, "limit": 2**12}),
        (crossing, {"short": 5, "long": 5}),
        (crossing, {"long": 1}),
        (crossing, {"key": "str"}),
        (crossing, {"limit": 0}),
        (bollinger_bands, {"n": 1}),
        (bollinger_bands, {"k": -1.0}),
        (bollinger_bands, {"min_periods": 0}),
        (bollinger_bands, {"n": 2**16, "limit": 2**12}),
        (exponential_average, {"half_life": 0.0}),
        (exponential_average, {"half_life": math.inf}),
        (exponential_average, {"by": "age"}),
        (exponential_average, {"key": bool}),
        (cusum, {"threshold": 0}),
        (cusum, {"threshold": math.nan}),
        (cusum, {"threshold": 1.0, "drift": -0.5}),
        (cusum, {"threshold": 1.0, "target": math.inf}),
        (cusum, {"threshold": 1.0, "warm_up": 0}),
        (adwin, {"delta": 0.0}),
        (adwin, {"delta": 1.0}),
        (adwin, {"span": -1.0}),
        (adwin, {"buckets": 1}),
        (adwin, {"limit": 2**20}),
    ],
)
def test_wrong_options_are_refused(factory: Callable[..., ss.Operator], options: Any) -> None:
    with pytest.raises(ss.ConfigurationError, match=f"^{factory.__name__}: "):
        factory(**options)


@pytest.mark.parametrize("factory", [moving_average, bollinger_bands, crossing])
def test_windows_for_which_the_usual_limit_is_too_much_say_so(
    factory: Callable[..., ss.Operator],
) -> None:
    name = "long" if factory is crossing else "n"
    message = f"limit=.* from 1 to 4095, as limit . {name} is less than 2..28, and {name}=65536"
    with pytest.raises(ss.ConfigurationError, match=message):
        factory(**{name: 2**16})


BY_KEY: list[tuple[Callable[..., ss.Operator], dict[str, Any]]] = [
    (moving_average, {"n": 1}),
    (crossing, {"short": 1, "long": 2}),
    (bollinger_bands, {"n": 2, "min_periods": 1}),
    (exponential_average, {}),
    (cusum, {"threshold": 1.0}),
    (adwin, {}),
]


@pytest.mark.parametrize(("factory", "options"), BY_KEY)
def test_no_event_no_row_and_no_more_keys_than_there_may_be(
    factory: Callable[..., ss.Operator], options: dict[str, Any]
) -> None:
    operator = factory(**options, key=int, limit=2)
    empty: dict[str, list[Any]] = {"key": [], "value": []}
    assert operator.run_sequential(empty).output.num_rows == 0
    three = {"key": [-(2**63), 0, 7, 0], "value": [1.0, 2.0, 3.0, 2.0]}
    raised = operator.run_sequential(three, on_error="skip").raised
    assert [(row, type(error)) for row, error in raised] == [(2, OverflowError)]


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
    means = moving_average(2).run_sequential(table).output["mean"].to_pylist()
    assert [str(one) for one in means[:4]] == ["nan", "nan", "nan", "-inf"]
    assert means[4:] == [3.0, 5.0, 5e299, 5e299, 2.0, 4.0]


@functools.cache
def averages_of(n: int) -> tuple[ss.Operator, ss.Operator]:
    return moving_average(n, 1, key=int), bollinger_bands(n, 1.0, 1, key=int)


@hypothesis.given(
    n=strategies.integers(2, 6),
    rows=strategies.lists(
        strategies.tuples(strategies.integers(0, 1), strategies.integers(-9, 9)), max_size=30
    ),
)
@hypothesis.settings(max_examples=share_of(60), deadline=None)
def test_windows_hold_the_last_values(n: int, rows: list[tuple[int, int]]) -> None:
    table = pa.table(
        {
            "key": pa.array([key for key, _ in rows], pa.int64()),
            "value": pa.array([float(value) for _, value in rows], pa.float64()),
        }
    )
    means, bands = (one.run_sequential(table).output for one in averages_of(n))
    last = [values[-n:] for _, values in by_key(table)]
    assert means["mean"].to_pylist() == [sum(one) / len(one) for one in last]  # exact: of integers
    assert bands["mean"].to_pylist() == pytest.approx([statistics.fmean(one) for one in last])
    width = [2.0 * statistics.pstdev(one) for one in last]
    found = bands["upper"].to_numpy() - bands["lower"].to_numpy()
    np.testing.assert_allclose(found, width, rtol=1e-12, atol=1e-12)


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


# ---- Bollinger bands ----


def test_bands_agree_with_exact_means_and_deviations() -> None:
    n, k = 5, 1.5
    table = series()
    run = library.agrees(bollinger_bands(n, k, min_periods=2), table)
    expected = [(key, values[-n:]) for key, values in by_key(table) if len(values) >= 2]
    assert run.output["key"].to_pylist() == [key for key, _ in expected]
    for (_, lower, middle, upper, side), (_, last) in zip(
        rows_of(run.output), expected, strict=True
    ):
        band, scale = k * statistics.pstdev(last), max(map(abs, last))
        exact = statistics.fmean(last)
        assert abs(middle - exact) <= 1e-15 * n * scale
        assert abs(lower - (exact - band)) <= 1e-15 * n * scale
        assert abs(upper - (exact + band)) <= 1e-15 * n * scale
        if not math.isclose(abs(last[-1] - exact), band, abs_tol=1e-15 * n * scale):
            assert side == (abs(last[-1] - exact) > band) * np.sign(last[-1] - exact)
    assert {row[4] for row in rows_of(run.output)} == {-1, 0, 1}


def test_bands_agree_with_pandas_where_the_mean_is_large() -> None:
    generator = np.random.default_rng(7)
    frame = pd.DataFrame({"key": 0, "value": 1e6 + generator.normal(size=150)})
    output = bollinger_bands(20, key=int).run_sequential(frame).output
    rolled = frame["value"].rolling(20)
    np.testing.assert_allclose(output["mean"].to_numpy(), rolled.mean()[19:], rtol=1e-14)
    deviation = (output["upper"].to_numpy() - output["lower"].to_numpy()) / 4
    np.testing.assert_allclose(deviation, rolled.std(ddof=0)[19:], rtol=1e-7)


def test_values_whose_squares_are_no_floats_spoil_the_bands_that_hold_them_alone() -> None:
    generator = np.random.default_rng(4)
    value = [*generator.choice([1.7e308, -1.7e308, 1e300], 60), *generator.normal(size=20)]
    table = {"key": ["a"] * 80, "value": value}
    found = rows_of(bollinger_bands(4, min_periods=1).run_sequential(table).output)
    assert len(found) == 80  # none has raised
    assert all(side == 0 for *_, side in found[3:60])
    for at, (_, lower, mean_of, upper, _) in enumerate(found[63:], start=63):
        last = value[at - 3 : at + 1]
        deviation = 2.0 * statistics.pstdev(last)
        assert mean_of == pytest.approx(mean(last), abs=1e-13)
        assert (upper - mean_of, mean_of - lower) == pytest.approx((deviation,) * 2, rel=1e-12)


def test_equal_values_have_bands_of_no_width() -> None:
    value = [0.3, 1e17, -2.0, math.nan, math.inf, *[0.1] * 20]
    table = pa.table({"key": ["a"] * len(value), "value": value})
    run = bollinger_bands(4, 3.0).run_sequential(table)
    last = rows_of(run.output)[-17:]
    assert set(last) == {("a", 0.1, 0.1, 0.1, 0)}
    assert math.isnan(rows_of(run.output)[-18][1])


# ---- exponential averages ----


def test_an_exponential_average_by_events_agrees_with_pandas() -> None:
    frame = series().to_pandas()
    run = library.agrees(exponential_average(3.5), series())
    by_pandas = frame.groupby("key")["value"].transform(lambda one: one.ewm(halflife=3.5).mean())
    assert run.output["key"].to_pylist() == frame["key"].tolist()
    weighed = frame["value"].abs().groupby(frame["key"])  # what the error is in proportion to
    scale = weighed.transform(lambda one: one.ewm(halflife=3.5).mean())
    error = np.abs(run.output["mean"].to_numpy() - by_pandas)
    assert (error <= 1e-14 * scale + 1e-300).all()


def test_an_exponential_average_by_time_agrees_with_pandas() -> None:
    generator = np.random.default_rng(4)
    time = generator.integers(0, 50, 120).cumsum()
    value = generator.normal(size=120)
    table = pa.table({"key": ["a"] * 120, "value": value, "time": time})
    run = library.agrees(exponential_average(60, by="time"), table, order_by="time")
    by_pandas = (
        pd.Series(value)
        .ewm(halflife=pd.Timedelta(60, "s"), times=pd.to_datetime(time, unit="s"))
        .mean()
    )
    np.testing.assert_allclose(run.output["mean"].to_numpy(), by_pandas, rtol=0, atol=1e-13)


def test_an_exponential_average_by_time_does_not_depend_on_the_order() -> None:
    generator = np.random.default_rng(5)
    time, value = generator.integers(0, 1000, 50), generator.normal(size=50)
    weights = 0.5 ** ((time.max() - time) / 90.0)
    operator = exponential_average(90, by="time", key=int)
    with ss.Engine(operator, threads=2) as engine:
        for at in range(50):  # batches that are older than those before
            event = {"key": [1], "value": value[at : at + 1], "time": time[at : at + 1]}
            engine.process(event, order_by="time")
        assert engine.state.averages[1].mean == pytest.approx(np.average(value, weights=weights))
        assert engine.state.averages[1].weight == pytest.approx(weights.sum())


def test_equal_values_have_exactly_that_exponential_average() -> None:
    values = {"key": ["a"] * 100, "value": [0.1] * 100}
    output = exponential_average(7).run_sequential(values).output
    assert set(output["mean"].to_pylist()) == {0.1}


def test_a_large_mean_without_weight_leaves_nothing_behind() -> None:
    values = {"key": ["a"] * 3, "value": [1e17, 1.0, 3.0], "time": [0, 1000, 1001]}
    output = exponential_average(1.0, by="time").run_sequential(values, order_by="time").output
    assert output["mean"].to_pylist() == [1e17, 1.0, pytest.approx(7 / 3, rel=1e-15)]


def test_what_would_spoil_a_running_mean_is_refused() -> None:
    table = pa.table(
        {"key": ["a"] * 6, "value": [1.0, math.nan, -math.inf, -1.7e308, 1.7e308, 2.0]}
    )
    averaged = exponential_average(1.0).run_sequential(table, on_error="skip")
    assert [(row, type(error)) for row, error in averaged.raised] == [
        (1, ValueError),
        (2, ValueError),
        (4, ValueError),
    ]
    assert [row for row, _ in adwin().run_sequential(table, on_error="skip").raised] == [1, 2, 3, 4]
    summed = cusum(1.0, warm_up=9).run_sequential(table, on_error="skip")
    assert [row for row, _ in summed.raised] == [1, 2, 4]


# ---- CUSUM ----


def page(
    rows: list[tuple[str, float]],
    threshold: float,
    drift: float,
    target: float | None,
    warm_up: int,
) -> list[tuple[str, bool, int]]:
    """Page's rule by its other definition: a sum since some event is above the threshold."""
    alarms = []
    run: defaultdict[str, list[tuple[int, float]]] = defaultdict(list)
    learned: defaultdict[str, list[float]] = defaultdict(list)
    for at, (key, value) in enumerate(rows):
        if target is None and len(learned[key]) < warm_up:
            learned[key].append(value)
            continue
        mean_of_key = target if target is not None else mean(learned[key])
        run[key].append((at, value - mean_of_key))
        for sign in (1, -1):
            sums = {
                since: math.fsum(sign * x - drift for at, x in run[key] if at >= since)
                for since, _ in run[key]
            }
            best = max(sums, key=lambda since: (sums[since], since))
            if sums[best] > threshold:
                alarms.append((key, sign > 0, best))
                run[key], learned[key] = [], []
                break
    return alarms


@pytest.mark.parametrize(("target", "warm_up"), [(0.25, 5), (None, 5)])
def test_alarms_are_those_of_the_largest_sum(target: float | None, warm_up: int) -> None:
    generator = np.random.default_rng(6)
    count = 260
    key = generator.choice(["a", "b"], count)
    level = np.repeat([0.0, 2.0, 0.0, -2.0], count // 4)
    value = (generator.normal(size=count) + level).round(3)
    table = pa.table({"key": key, "value": value})
    operator = cusum(4.0, 0.5, target, warm_up)
    run = library.agrees(operator, table) if target is None else operator.run_sequential(table)
    expected = page(list(zip(key.tolist(), value.tolist(), strict=True)), 4.0, 0.5, target, warm_up)
    assert {up for _, up, _ in expected} == {True, False}
    assert [(key, up, since) for key, up, _, since in rows_of(run.output)] == expected
    assert all(sum > 4.0 for sum in run.output["sum"].to_pylist())


def test_values_on_target_give_no_alarm() -> None:
    values = {"key": ["a"] * 50, "value": [3.0, 3.5, 2.5, 3.0, 3.0] * 10}
    run = cusum(0.75, 0.25, 3.0).run_sequential(values)
    assert run.output.num_rows == 0
    learned = cusum(0.1, warm_up=1).run_sequential({"key": ["a"] * 9, "value": [0.1] * 9})
    assert learned.output.num_rows == 0
    assert learned.state.sums["a"].target == 0.1


# ---- ADWIN ----


def windows(
    rows: list[tuple[str, float]], delta: float, span: float, most: int
) -> list[tuple[str, float, float, int, int]]:
    """ADWIN2 over lists of lists of all values, whose means and variances are taken anew."""
    alarms = []
    of_keys: defaultdict[str, list[list[float]]] = defaultdict(list)
    for key, value in rows:
        window = of_keys[key]
        window.append([value])
        length = 1
        while len(same := [at for at, one in enumerate(window) if len(one) == length]) > most:
            first = same[0]
            window[first : first + 2] = [window[first] + window[first + 1]]
            length *= 2
        gone: list[float] = []
        while len(window) > 1:
            values = list(itertools.chain(*window))
            log = math.log(2 * math.log(len(values)) / delta)
            edges = np.cumsum([len(one) for one in window])[:-1]
            for edge in edges:
                old, new = values[:edge], values[edge:]
                m = 1 / (1 / len(old) + 1 / len(new))
                bound = math.sqrt(2 / m * np.var(values) * log) + 2 / (3 * m) * span * log
                if abs(np.mean(old) - np.mean(new)) >= bound:
                    gone += window.pop(0)
                    break
            else:
                break
        if gone:
            left = list(itertools.chain(*window))
            alarms.append((key, mean(gone), mean(left), len(gone), len(left)))
    return alarms


def test_adwin_is_that_over_lists_of_all_values() -> None:
    generator = np.random.default_rng(8)
    count = 300
    key = generator.choice(["a", "b"], count)
    level = np.repeat([0.2, 0.8, 0.5, 0.5, 0.0, 1.0], count // 6)
    value = np.clip(generator.normal(scale=0.1, size=count) + level, 0.0, 1.0)
    table = pa.table({"key": key, "value": value})
    run = library.agrees(adwin(0.1, buckets=3), table)
    expected = windows(list(zip(key.tolist(), value.tolist(), strict=True)), 0.1, 1.0, 3)
    assert len(expected) >= 8
    found = rows_of(run.output)
    assert [(key, dropped, width) for key, _, _, dropped, width in found] == [
        (key, dropped, width) for key, _, _, dropped, width in expected
    ]
    for row, other in zip(found, expected, strict=True):
        assert row[1:3] == pytest.approx(other[1:3], rel=1e-12)


@pytest.mark.long
def test_adwin_is_mostly_silent_where_nothing_changes() -> None:
    generator = np.random.default_rng(9)
    value = (generator.random(20_000) < 0.3).astype(float)
    with ss.Engine(adwin(0.002, key=int), threads=2) as engine:
        output = engine.process({"key": np.arange(20_000) % 5, "value": value})
        assert output.num_rows <= 0.002 * 20_000 / 10  # the bound is a generous one
        width = sum(2**size * count for (_, size), count in engine.state.counts.items())
        assert width == 20_000 - sum(output["dropped"].to_pylist())
        assert max(engine.state.counts.values()) == 5
    same = adwin(0.5).run_sequential({"key": ["a"] * 200, "value": [0.1] * 200})
    assert same.output.num_rows == 0


@pytest.mark.long
def test_adwin_finds_a_change_soon_and_forgets_what_was_before() -> None:
    generator = np.random.default_rng(10)
    value = (generator.random(3000) < np.repeat([0.2, 0.7], [2000, 1000])).astype(float)
    with ss.Engine(adwin(0.002), threads=2) as engine:
        before = engine.process({"key": ["a"] * 2000, "value": value[:2000]})
        soon = engine.process({"key": ["a"] * 100, "value": value[2000:2100]})
        engine.process({"key": ["a"] * 900, "value": value[2100:]})
        width = sum(2**size * count for (_, size), count in engine.state.counts.items())
    assert (before.num_rows, soon.num_rows > 0) == (0, True)
    assert soon["before"][0].as_py() == pytest.approx(0.2, abs=0.03)
    assert 850 <= width <= 1050


# ---- columns with other names ----


@pytest.mark.parametrize(("factory", "options"), BY_KEY)
def test_columns_may_have_other_names(
    factory: Callable[..., ss.Operator], options: dict[str, Any]
) -> None:
    table = series(300)
    named = factory(**options, key={"symbol": str}, value="price")
    renamed = table.rename_columns(["symbol", "price"])
    expected = factory(**options).run_sequential(table).output
    assert expected.num_rows > 0 or factory is adwin
    with ss.Engine(named) as engine:
        output = engine.process(renamed)
    assert output.column_names == ["symbol", *expected.column_names[1:]]
    assert output.equals(expected.rename_columns(output.column_names))


@pytest.mark.parametrize(("factory", "options"), BY_KEY)
@pytest.mark.parametrize(
    "wrong",
    [
        {"key": {"two words": str}},
        {"key": {"timestamp": int}},
        {"key": {"price": float}},
        {"key": {"a": str, "b": str}},
        {"key": {"price": str}, "value": "price"},
        {"value": "class"},
        {"value": 5},
    ],
)
def test_wrong_names_are_refused(
    factory: Callable[..., ss.Operator], options: dict[str, Any], wrong: dict[str, Any]
) -> None:
    with pytest.raises(ss.ConfigurationError, match=f"^{factory.__name__}: (key|value)="):
        factory(**options, **wrong)


def test_a_column_of_the_rows_is_no_key() -> None:
    with pytest.raises(ss.ConfigurationError, match=r"^cusum: key='up'; .*another column than up,"):
        cusum(1.0, key={"up": str})
