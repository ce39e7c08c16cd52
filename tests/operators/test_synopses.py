"""Synopses do what they say: against models over plain Python, and their bounds of the error."""

from __future__ import annotations

import bisect
import functools
import hashlib
import itertools
import math
import pickle
from collections import Counter, defaultdict
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.daily import share_of
from support.operators import library

import specstream as ss
from specstream.operators.synopses import (
    adaptive_histogram,
    count_min,
    count_sketch,
    haar_wavelet,
    histogram,
    hyper_log_log,
    quantiles,
    reservoir,
    space_saving,
)
from specstream.operators.synopses.hashing import pairwise

LIMITS = [0, 1, -1, 2**63 - 1, -(2**63)]


def rows_of(output: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*output.to_pydict().values(), strict=True))


def skewed(count: int, seed: int, most: int = 2**62) -> list[int]:
    """Items with a heavy tail, and the ends of the integers."""
    dice = np.random.default_rng(seed)
    items = np.minimum(dice.zipf(1.3, count), most).astype(np.int64)
    items[dice.random(count) < 0.05] = dice.choice(LIMITS)
    return items.tolist()  # type: ignore[no-any-return]


def names(items: list[int]) -> list[str]:
    """Texts in place of items, the empty one among them."""
    return ["" if item == 1 else f"name {item}" for item in items]


# ---- hashes, again ----


def splitmix(seed: int) -> int:
    """The first output of the generator splitmix64."""
    x = (seed + 0x9E3779B97F4A7C15) % 2**64
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB % 2**64
    return x ^ (x >> 31)


def code(text: str) -> int:
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


def multiply_shift(item: Any, constants: Any) -> int:
    a, b, c = map(int, constants)  # the witness gives ints of its own
    high, low = divmod(int(item & -1) % 2**64, 2**32)
    return ((a + high) * (b + low) + c) % 2**64 // 2**32


def row_hash(row: int, item: int) -> int:
    golden = 0x9E3779B97F4A7C15
    return multiply_shift(item, [splitmix(golden * (3 * row + part)) for part in range(3)])


# ---- count-min ----


def model_count_min(
    items: list[int], width: int, rows: int, conservative: bool
) -> list[tuple[int, int]]:
    counters: defaultdict[tuple[int, int], int] = defaultdict(int)
    found = []
    for item in items:
        mine = [(row, row_hash(row, item) * width // 2**32) for row in range(rows)]
        estimate = min(counters[one] for one in mine) + 1
        for one in mine:
            if counters[one] < estimate or not conservative:
                counters[one] += 1
        found.append((item, estimate))
    return found


@pytest.mark.parametrize("conservative", [False, True])
def test_count_min_emits_what_the_model_emits(conservative: bool) -> None:
    items = skewed(300, 1) + LIMITS
    operator = count_min(16, 3, conservative=conservative)
    table = pa.table({"item": items})
    run = library.agrees(operator, table, replaced={pairwise: multiply_shift})
    assert rows_of(run.output) == model_count_min(items, 16, 3, conservative)


@pytest.mark.parametrize("conservative", [False, True])
def test_count_min_keeps_its_bound(conservative: bool) -> None:
    items = skewed(4000, 2)
    width, rows = 64, 3
    with ss.Engine(count_min(width, rows, str, conservative), threads=2) as engine:
        counts = engine.process({"item": names(items)})["count"].to_pylist()
    true: Counter[int] = Counter()
    too_high = 0
    for n, (item, count) in enumerate(zip(items, counts, strict=True), start=1):
        true[item] += 1
        assert count >= true[item]
        too_high += count - true[item] > math.e * n / width
    assert too_high <= len(items) * math.exp(-rows)
    if conservative:
        plain = sum(
            count for _, count in model_count_min(list(map(code, names(items))), 64, 3, False)
        )
        exact = sum(count * (count + 1) // 2 for count in true.values())
        assert sum(counts) - exact < 0.7 * (plain - exact)


# ---- count sketch ----


def model_count_sketch(items: list[int], width: int, rows: int) -> list[tuple[int, int]]:
    """Its rows' hashes of columns come first, then those of signs."""
    counters: Counter[tuple[int, int]] = Counter()
    found = []
    for item in items:
        estimates = []
        for row in range(rows):
            sign = 1 if row_hash(rows + row, item) >= 2**31 else -1
            mine = row, row_hash(row, item) * width // 2**32
            counters[mine] += sign
            estimates.append(sign * counters[mine])
        found.append((item, sorted(estimates)[rows // 2]))
    return found


def test_count_sketch_emits_what_the_model_emits() -> None:
    items = skewed(300, 21) + LIMITS
    table = pa.table({"item": items})
    run = library.agrees(count_sketch(16, 3), table, replaced={pairwise: multiply_shift})
    assert rows_of(run.output) == model_count_sketch(items, 16, 3)
    texts = names(items)
    found = count_sketch(9, 1, str).run_sequential({"item": texts}).output
    expected = model_count_sketch([code(text) for text in texts], 9, 1)
    assert found["count"].to_pylist() == [count for _, count in expected]


def errors_of_count_sketch(rows: int) -> np.ndarray:
    """Errors of many estimates, each over L2 / sqrt(width).

    Other items in place of the same are as good as other hashes: 100 times 60 items that came
    once to 60 times.
    """
    width, found = 16, []
    times = np.arange(1, 61)
    others = np.sqrt(np.sum(times**2) - times**2)
    with ss.Engine(count_sketch(width, rows), threads=1, horizon=0) as engine:
        begin = engine.snapshot()
        for trial in range(100):
            engine.restore(begin)
            of = np.random.default_rng(trial).integers(-(2**63), 2**63 - 1, 60)
            engine.process({"item": np.repeat(of, times)})
            after = engine.process({"item": of})["count"].to_numpy()  # each once more
            found.append((after - times - 1) / others * math.sqrt(width))
    return np.concatenate(found)


@pytest.mark.parametrize("rows", [1, 5])
def test_count_sketch_keeps_its_bound(rows: int) -> None:
    errors = errors_of_count_sketch(rows)
    assert np.mean(np.abs(errors) > 3) <= 0.63**rows
    # A row has no bias, and the variance that Chebyshev's inequality makes the bound of.
    assert abs(errors.mean()) < 0.05
    if rows == 1:
        assert errors.var() == pytest.approx(1.0, rel=0.15)
    else:
        assert np.mean(np.abs(errors) > 3) < 1e-3
        assert errors.var() < 0.5


def test_signs_of_count_sketch_belong_to_items_not_to_columns() -> None:
    counts = count_sketch(1, 1).run_sequential({"item": range(400)}).output["count"]
    assert max(map(abs, counts.to_pylist())) < 80  # 400 if they had one sign


# ---- hyper log log ----


def model_distinct(hashes: list[int], precision: int) -> list[float]:
    """The formula of Ertl 2017 over all registers, at each event that raises one."""
    m = 2**precision
    registers = [0] * m
    found = []
    for h in hashes:
        text = f"{h:064b}"
        register, position = int(text[:precision], 2), (text[precision:] + "1").index("1") + 1
        if position > registers[register]:
            registers[register] = position
            empty = registers.count(0) / m
            sigma = empty + math.fsum(2.0 ** (i - 1) * empty ** (2**i) for i in range(1, 15))
            taken = math.fsum(2.0**-one for one in registers if one > 0)
            found.append(m * m / (2 * math.log(2)) / (m * sigma + taken))
    return found


def test_hyper_log_log_emits_what_the_formula_gives() -> None:
    items = [*skewed(150, 3), *range(150), *LIMITS]
    run = library.agrees(hyper_log_log(4), pa.table({"item": items}))
    expected = model_distinct([splitmix(item) for item in items], 4)
    assert run.output["distinct"].to_pylist() == pytest.approx(expected, rel=1e-14)
    texts = names(items)
    run = library.agrees(hyper_log_log(5, str), pa.table({"item": texts}))
    expected = model_distinct([splitmix(code(text)) for text in texts], 5)
    assert run.output["distinct"].to_pylist() == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize(
    # The last is where the formula of 2007 changes over: there it is biased.
    ("precision", "count"),
    [(8, 10), (8, 200), (8, 2000), (8, 30_000), (12, 10_100)],
)
def test_hyper_log_log_has_its_standard_error(precision: int, count: int) -> None:
    errors = []
    with ss.Engine(hyper_log_log(precision), threads=1, horizon=0) as engine:
        begin = engine.snapshot()
        for trial in range(30):
            engine.restore(begin)
            items = np.random.default_rng(trial).integers(-(2**63), 2**63 - 1, count)
            found = engine.process({"item": np.concatenate([items, items])})["distinct"].to_numpy()
            assert (found[1:] >= found[:-1] * (1 - 1e-15)).all()
            errors.append(found[-1] / count - 1)
    standard = 1.04 / math.sqrt(2**precision)
    assert math.sqrt(np.mean(np.square(errors))) < 1.3 * standard
    assert abs(float(np.mean(errors))) < standard  # no bias to speak of
    assert max(map(abs, errors)) < 4 * standard


# ---- space-saving ----


def model_space_saving(items: list[Any], k: int) -> list[tuple[Any, int, int]]:
    """A list of [count, place, item, error], whose least is looked for each time."""
    counters: list[list[Any]] = []
    found = []
    for item in items:
        mine = [one for one in counters if one[2] == item]
        if mine:
            mine[0][0] += 1
        elif len(counters) < k:
            counters.append([1, len(counters), item, 0])
            mine = counters[-1:]
        else:
            mine = [min(counters, key=lambda one: (one[0], one[1]))]
            mine[0][2:] = [item, mine[0][0]]
            mine[0][0] += 1
        found.append((item, mine[0][0], mine[0][3]))
    return found


def test_space_saving_emits_what_the_model_emits() -> None:
    items = skewed(400, 4)
    run = library.agrees(space_saving(7), pa.table({"item": items}))
    assert rows_of(run.output) == model_space_saving(items, 7)
    texts = names(items)
    run = library.agrees(space_saving(20, str), pa.table({"item": texts}))
    assert rows_of(run.output) == model_space_saving(texts, 20)


FIVE, ONE = space_saving(5), space_saving(1)


@settings(max_examples=share_of(60))
@given(st.lists(st.integers(0, 12), min_size=1, max_size=80))
def test_space_saving_keeps_its_bounds(items: list[int]) -> None:
    for k, operator in ((5, FIVE), (1, ONE)):
        run = operator.run_sequential({"item": items})
        true: Counter[int] = Counter()
        found = rows_of(run.output)
        assert found == model_space_saving(items, k)
        for n, (item, count, error) in enumerate(found, start=1):
            true[item] += 1
            assert count - error <= true[item] <= count
            assert error <= n / k
        frequent = {item for item, count in true.items() if count > len(items) / k}
        assert frequent <= set(run.state.counters)
        assert sum(run.state.counts) == len(items)


# ---- quantiles ----


def values(count: int, seed: int) -> np.ndarray:
    """Of both signs and many sizes, with zeros of both signs, and equal ones."""
    dice = np.random.default_rng(seed)
    drawn = dice.normal(0.0, 1.0, count) * 10.0 ** dice.integers(-5, 6, count)
    drawn[::9] = 0.0
    drawn[4::27] = -0.0
    drawn[5::13] = 2.0
    return drawn


CHANCES = (0.0, 0.01, 0.25, 0.5, 0.9, 0.999, 1.0)


@pytest.mark.parametrize(("error", "every"), [(0.02, 40), (0.3, 1)])
def test_quantiles_are_those_of_numpy_up_to_their_error(error: float, every: int) -> None:
    drawn = values(200, 5)
    operator = quantiles(CHANCES, error, 1e-7, 1e7, every)
    run = library.agrees(operator, pa.table({"value": drawn}))
    found = rows_of(run.output)
    assert [one for one, _ in found] == list(CHANCES) * (200 // every)
    for at, (probability, value) in enumerate(found):
        so_far = drawn[: (at // len(CHANCES) + 1) * every]
        exact = np.quantile(so_far, probability, method="lower")
        assert abs(value - exact) <= error * abs(exact) * (1 + 1e-9) + 1e-7


def test_quantiles_at_the_bounds_of_what_they_tell_apart() -> None:
    operator = quantiles([0.0, 0.5, 1.0], 0.01, 1e-6, 1e9, 1)
    for value in (1e9, 1e-6, math.nextafter(1e-6, 0.0), 1.0, 5e-324):
        output = operator.run_sequential({"value": [value]}).output
        expected = value if value >= 1e-6 else 0.0
        assert output["value"].to_pylist() == pytest.approx([expected] * 3, rel=0.0101, abs=0)
        output = operator.run_sequential({"value": [-value]}).output
        assert output["value"].to_pylist() == pytest.approx([-expected] * 3, rel=0.0101, abs=0)
    output = operator.run_sequential({"value": [-0.0]}).output
    assert list(map(str, output["value"].to_pylist())) == ["0.0"] * 3  # and not -0.0
    assert operator.run_sequential([]).output.num_rows == 0
    one = quantiles([1.0], smallest=3.0, largest=3.0, every=1)
    assert one.run_sequential({"value": [3.0]}).output["value"][0].as_py() == pytest.approx(3, 0.01)


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -1.1e9])
def test_quantiles_refuse_values_that_no_bucket_has(wrong: float) -> None:
    run = library.checked(quantiles([0.5], every=1), {"value": [1.0, wrong, 1.0]})
    assert [(row, type(error)) for row, error in run.raised] == [(1, ValueError)]
    assert run.state.events == sum(run.state.counts) == 2


# ---- reservoir ----


@pytest.mark.parametrize(
    ("of", "drawn"),
    [
        (int, skewed(300, 6)),
        (float, [0.5, math.nan, -0.0, math.inf] * 75),
        (str, names(skewed(300, 6))),
    ],
)
def test_reservoir_holds_the_last_value_of_each_place(of: type, drawn: list[Any]) -> None:
    run = library.agrees(reservoir(10, of), pa.table({"value": drawn}), draws=True)
    found = rows_of(run.output)
    assert found[:10] == list(enumerate(drawn[:10])) or of is float
    assert 15 < len(found) < 100
    assert repr(run.state.sample.tolist()) == repr([dict(found)[place] for place in range(10)])
    assert run.state.offered[0] == 300


@pytest.mark.long
def test_reservoir_takes_each_value_with_the_same_chance() -> None:
    size, count, trials = 8, 40, 1500
    operator = reservoir(size, int)
    taken: Counter[int] = Counter()
    for seed in range(trials):
        taken.update(operator.run_sequential({"value": range(count)}, seed=seed).state.sample)
    expected = trials * size / count
    assert len(taken) == count
    # Chi-squared, somewhat smaller as values exclude each other; beyond 80 once in 10,000.
    assert sum((one - expected) ** 2 / expected for one in taken.values()) < 80


# ---- histogram ----


def test_histogram_counts_what_numpy_counts() -> None:
    dice = np.random.default_rng(7)
    drawn = dice.normal(0.0, 2.0, 300)
    drawn[::5] = dice.integers(-5, 6, 60) / 2  # on the bounds of bins
    drawn[7::50] = [math.inf, -math.inf] * 3
    run = library.agrees(histogram(-2.0, 2.0, 16, 60), pa.table({"value": drawn}))
    edges = [-math.inf, *np.arange(-2.0, 2.01, 0.25).tolist(), math.inf]
    expected = []
    for end in range(60, 301, 60):
        # Bins have their lower bound: as NumPy's, but for its last one, which is left empty.
        counts = np.bincount(np.searchsorted(edges, drawn[:end], "right") - 1, minlength=19)
        counts[17] += counts[18]
        expected += [
            (edges[at], edges[at + 1], int(counts[at])) for at in range(18) if counts[at] > 0
        ]
    assert rows_of(run.output) == expected


@settings(max_examples=share_of(200))
@given(st.floats(allow_nan=False))
def test_histogram_has_a_bin_for_every_value(value: float) -> None:
    output = TENTHS.run_sequential({"value": [value]}).output
    ((low, high, count),) = rows_of(output)
    assert count == 1
    assert low - 1e-15 <= value <= high + 1e-15


TENTHS = histogram(0.1, 0.8, 7, 1)


def test_histogram_has_a_last_bin_for_what_is_rounded_up_to_the_upper_bound() -> None:
    run = histogram(-1e16, 1.0, 4, 1).run_sequential({"value": [0.5]})
    assert run.state.counts.tolist() == [0, 0, 0, 0, 1, 0]
    # As narrow as bins can be, each has one float.
    drawn = [1.0, 1.0 + 2**-52, 1.0 + 2**-51]
    run = histogram(1.0, drawn[-1], 2, 3).run_sequential({"value": drawn})
    assert rows_of(run.output) == list(zip(drawn, [*drawn[1:], math.inf], [1] * 3, strict=True))


def test_histogram_refuses_nan() -> None:
    run = library.checked(TENTHS, {"value": [0.5, math.nan]})
    assert [type(error) for _, error in run.raised] == [ValueError]
    assert run.output.num_rows == 1


# ---- adaptive histogram ----


def model_adaptive(drawn: list[float], most: int) -> list[list[Any]]:
    """The paper's update over a sorted list of [centre, count]."""
    bins: list[list[Any]] = []
    for value in drawn:
        same = [one for one in bins if one[0] == value]
        if same:
            same[0][1] += 1
            continue
        bisect.insort(bins, [value, 1])
        if len(bins) > most:
            gaps = [above[0] - below[0] for below, above in itertools.pairwise(bins)]
            at = gaps.index(min(gaps))
            (p, m), (q, n) = bins[at : at + 2]
            bins[at : at + 2] = [[(p * m + q * n) / (m + n), m + n]]
    return bins


def test_adaptive_histogram_has_the_bins_of_the_model() -> None:
    dice = np.random.default_rng(8)
    drawn = np.concatenate(
        [dice.normal(0, 1, 100), dice.exponential(9, 60), [0.5] * 20, [-0.0, 0.0]]
    )
    dice.shuffle(drawn)
    run = library.agrees(adaptive_histogram(12, 91), pa.table({"value": drawn}))
    found = rows_of(run.output)
    expected = [one for end in (91, 182) for one in model_adaptive(drawn[:end].tolist(), 12)]
    assert [count for _, count in found] == [count for _, count in expected]
    assert [centre for centre, _ in found] == pytest.approx([one for one, _ in expected], rel=1e-9)
    assert sum(count for _, count in found[12:]) == 182
    mean = sum(centre * count for centre, count in found[12:]) / 182
    assert mean == pytest.approx(drawn.mean(), rel=1e-9)


@settings(max_examples=share_of(100))
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=30))
def test_adaptive_histogram_stays_in_order(drawn: list[float]) -> None:
    bins = list(FOUR.run_sequential({"value": drawn}).state.bins)
    centres = [centre for centre, _ in bins]
    assert centres == sorted(centres)
    assert min(drawn) <= centres[0] <= centres[-1] <= max(drawn)
    assert sum(count for _, count in bins) == len(drawn)
    if len(set(drawn)) <= 4:
        assert dict(bins) == Counter(drawn)


FOUR = adaptive_histogram(4)


def test_adaptive_histogram_joins_the_first_two_of_those_that_are_equally_close() -> None:
    run = FOUR.run_sequential({"value": [3.0, 1.0, 0.0, 2.0, 5.0]})
    assert list(run.state.bins) == [(0.5, 2), (2.0, 1), (3.0, 1), (5.0, 1)]


def test_adaptive_histogram_puts_no_centre_beyond_its_values() -> None:
    low = 0.0008708379145641376  # two thirds of it and a third of its neighbour round to less
    high = math.nextafter(low, 1.0)
    run = adaptive_histogram(2).run_sequential({"value": [low, low, 1.0, high]})
    assert list(run.state.bins) == [(low, 3), (1.0, 1)]


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf])
def test_adaptive_histogram_refuses_what_has_no_mean(wrong: float) -> None:
    run = library.checked(adaptive_histogram(2, 1), {"value": [1.0, wrong, 3.0, 4.0]})
    assert [(row, type(error)) for row, error in run.raised] == [(1, ValueError)]
    assert rows_of(run.output)[-2:] == [(1.0, 1), (3.5, 2)]


# ---- wavelets ----


def haar_matrix(block: int) -> np.ndarray:
    """Its rows are the orthonormal Haar functions, by their definition."""
    matrix = np.zeros((block, block))
    matrix[0] = 1 / math.sqrt(block)
    for parts in (2**level for level in range(block.bit_length() - 1)):
        width = block // parts
        for part in range(parts):
            row = matrix[parts + part]
            row[part * width : part * width + width // 2] = 1 / math.sqrt(width)
            row[part * width + width // 2 : (part + 1) * width] = -1 / math.sqrt(width)
    return matrix


@pytest.mark.parametrize(("block", "k"), [(16, 5), (2, 1), (32, 32)])
def test_haar_wavelet_keeps_the_largest_coefficients(block: int, k: int) -> None:
    dice = np.random.default_rng(9)
    drawn = np.cumsum(dice.normal(0.0, 1.0, 150))
    drawn[40:90] = 1.0
    operator = haar_wavelet(block, k)
    table = pa.table({"value": drawn})
    run = library.agrees(operator, table) if block == 16 else operator.run_sequential(table)
    matrix = haar_matrix(block)
    assert np.allclose(matrix @ matrix.T, np.eye(block))
    found: defaultdict[int, list[tuple[int, float]]] = defaultdict(list)
    for number, index, coefficient in rows_of(run.output):
        found[number].append((index, coefficient))
    assert list(found) == list(range(150 // block))
    for number, kept in found.items():
        part = drawn[number * block : (number + 1) * block]
        exact = matrix @ part
        assert len(kept) <= k
        assert [one for _, one in kept] == pytest.approx([exact[at] for at, _ in kept], abs=1e-9)
        sizes = [abs(one) for _, one in kept]
        assert sizes == sorted(sizes, reverse=True)
        # The squared error is the sum of squares of those left out, and none could be less.
        again = sum(one * matrix[at] for at, one in kept)
        least = sum(sorted(exact**2)[: block - k])
        assert np.sum((part - again) ** 2) == pytest.approx(least, abs=1e-9)


def test_haar_wavelet_of_equal_values_is_one_coefficient() -> None:
    output = haar_wavelet(4, 3).run_sequential({"value": [3.0] * 9 + [0.0] * 7}).output
    # The third block begins with a 3; the fourth is zero, and emits nothing.
    assert output["block"].to_pylist() == [0, 1, 2, 2, 2]
    assert output["index"].to_pylist() == [0, 0, 2, 0, 1]
    assert output["coefficient"].to_pylist()[:2] == pytest.approx([6.0, 6.0])


@pytest.mark.parametrize("wrong", [math.nan, math.inf, 1.1e300])
def test_haar_wavelet_refuses_what_has_no_transform(wrong: float) -> None:
    run = library.checked(haar_wavelet(2, 2), {"value": [1.0, wrong, 3.0]})
    assert [(row, type(error)) for row, error in run.raised] == [(1, ValueError)]
    assert run.output["index"].to_pylist() == [0, 1]


def test_haar_wavelet_of_the_largest_values_is_finite() -> None:
    output = haar_wavelet(1024, 1024).run_sequential({"value": [1e300, -1e300] * 512}).output
    assert all(map(math.isfinite, output["coefficient"].to_pylist()))


# ---- all of them ----


@pytest.mark.parametrize(
    ("operator", "table"),
    [
        (count_min(), {"item": [5]}),
        (count_sketch(), {"item": [5]}),
        (hyper_log_log(), {"item": [5]}),
        (space_saving(), {"item": [5]}),
        (quantiles(every=1), {"value": [5.0]}),
        (reservoir(3, bool), {"value": [True]}),
        (histogram(0.0, 1.0, every=1), {"value": [5.0]}),
        (adaptive_histogram(every=1), {"value": [5.0]}),
        (haar_wavelet(2, 1), {"value": [5.0, 5.0]}),
    ],
    ids=lambda one: one.name if isinstance(one, ss.Operator) else "",
)
def test_streams_of_no_event_and_of_one(operator: ss.Operator, table: dict[str, list[Any]]) -> None:
    assert operator.run_sequential([]).output.num_rows == 0
    again: ss.Operator = pickle.loads(pickle.dumps(operator))  # as Spark ships it
    output = operator.run_sequential(table).output
    assert output.num_rows == {"quantiles": 3}.get(operator.name, 1)
    with ss.Engine(again) as engine:
        assert engine.process(table) == output


# ---- options ----


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: count_min(width=0), "count_min: width=0; expected an integer from 1"),
        (lambda: count_min(rows=64), "count_min: rows=64"),
        (lambda: count_min(item=float), "count_min: item=.*expected int or str"),
        (lambda: count_min(conservative=1), "count_min: conservative=1; expected True"),
        (lambda: count_sketch(width=2**31 + 1), "count_sketch: width=2147483649; expected an int"),
        (lambda: count_sketch(rows=65), "count_sketch: rows=65"),
        (lambda: count_sketch(rows=4), "count_sketch: rows=4; expected an odd number, such as 5"),
        (lambda: count_sketch(item=float), "count_sketch: item=.*expected int or str"),
        (lambda: hyper_log_log(3), "hyper_log_log: precision=3; expected an integer from 4 to 18"),
        (lambda: hyper_log_log(item=bool), "hyper_log_log: item="),
        (lambda: space_saving(0), "space_saving: k=0"),
        (lambda: space_saving(item=float), "space_saving: item="),
        (lambda: quantiles([]), r"quantiles: probabilities=\[\]; expected one to 100 numbers"),
        (lambda: quantiles([0.5, 1.5]), "quantiles: probabilities=1.5; expected one to 100"),
        (lambda: quantiles(0.5), "quantiles: probabilities=0.5"),
        (lambda: quantiles(error=0.0), "quantiles: error=0.0; expected a number from 0.0001"),
        (lambda: quantiles(smallest=0.0), "quantiles: smallest=0.0"),
        (lambda: quantiles(smallest=2.0, largest=1.0), "quantiles: largest=1.0; .* from 2.0 to"),
        (lambda: quantiles(every=0), "quantiles: every=0"),
        (lambda: reservoir(0), "reservoir: size=0"),
        (lambda: reservoir(value=complex), "reservoir: value=.*expected int, float, bool or str"),
        (lambda: histogram(math.nan, 1.0), "histogram: low=nan; expected a number from -1e300"),
        (lambda: histogram(0.0, math.inf), "histogram: high=inf"),
        (lambda: histogram(1.0, 1.0), "histogram: high=1.0; expected a number above low=1.0"),
        (lambda: histogram(0.0, 1.0, bins=0), "histogram: bins=0"),
        (
            lambda: histogram(1.0, 1.0 + 2**-51, 3),
            "histogram: bins=3; expected fewer: from low=1.0",
        ),
        (lambda: histogram(0.0, 5e-324, 2), "histogram: bins=2; expected fewer"),
        (lambda: histogram(0.0, 1.0, every=0), "histogram: every=0"),
        (lambda: adaptive_histogram(1), "adaptive_histogram: bins=1"),
        (lambda: adaptive_histogram(every=1.5), "adaptive_histogram: every=1.5"),
        (lambda: haar_wavelet(24), "haar_wavelet: block=24; expected a power of two"),
        (lambda: haar_wavelet(1), "haar_wavelet: block=1"),
        (lambda: haar_wavelet(8, 9), "haar_wavelet: k=9; expected an integer from 1 to 8"),
    ],
)
def test_wrong_options_are_refused(make: Any, message: str) -> None:
    with pytest.raises(ss.ConfigurationError, match=message):
        make()


# ---- columns with other names ----


@pytest.mark.parametrize(
    ("make", "column", "more"),
    [
        (count_min, "item", {}),
        (count_sketch, "item", {}),
        (hyper_log_log, "item", {}),
        (space_saving, "item", {}),
        (reservoir, "value", {}),
        (quantiles, "value", {"every": 2}),
        (functools.partial(histogram, 0.0, 9.0), "value", {"every": 2}),
        (adaptive_histogram, "value", {"every": 2}),
        (haar_wavelet, "value", {"block": 2, "k": 2}),
    ],
)
def test_columns_may_have_other_names(make: Any, column: str, more: dict[str, Any]) -> None:
    typed = column == "item" or make is reservoir
    given = [3, 5, 3, 8] if column == "item" else [3.0, 5.0, 3.0, 8.0]
    other: Any = {"page": type(given[0])} if typed else "page"
    expected = make(**more).run_sequential({column: given}).output
    with ss.Engine(make(**more, **{column: other})) as engine:
        output = engine.process({"page": given})
    names = ["page" if typed and name == column else name for name in expected.column_names]
    assert expected.num_rows > 0
    assert output.equals(expected.rename_columns(names))
    name = make(**more).name
    for wrong in ("two words", "timestamp", "def"):
        with pytest.raises(ss.ConfigurationError, match=f"^{name}: {column}='{wrong}'; expected"):
            make(**more, **{column: {wrong: int} if typed else wrong})


def test_a_column_of_the_rows_is_no_item() -> None:
    with pytest.raises(ss.ConfigurationError, match=r"^space_saving: item='error'; .*another"):
        space_saving(item={"error": str})


def test_operators_of_one_state_may_have_keys_in_other_columns(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPECSTREAM_CACHE_DIR", str(tmp_path))  # both are compiled, one after one
    for name in ("first", "second"):
        with ss.Engine(space_saving(3, item={name: int})) as engine:
            output = engine.process({name: [3, 5, 3]})
        assert rows_of(output) == [(3, 1, 0), (5, 1, 0), (3, 2, 0)]
