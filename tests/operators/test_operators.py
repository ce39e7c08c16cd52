"""The ready operators do what they say: against models written independently of them."""

import itertools
import math
import random
from collections import Counter, defaultdict, deque
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from conftest import partial_of

import specstream as ss
from specstream.operators import nearest_neighbours, top_k

CONFIGURATIONS = list(itertools.product((1, 2), (0, 1, 8), (1, 8)))


def splitmix(number: int) -> int:
    """The ``number``-th output of the generator splitmix64 with seed 0."""
    state = (0x9E3779B97F4A7C15 * (number + 1)) & (2**64 - 1)
    state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & (2**64 - 1)
    state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & (2**64 - 1)
    return state ^ (state >> 31)


class CountSketch:
    """A count sketch over dicts and Python's unbounded integers."""

    def __init__(self, rows: int, width: int) -> None:
        self.width = width
        self.counters: list[defaultdict[int, int]] = [defaultdict(int) for _ in range(rows)]

    def place(self, row: int, item: int) -> tuple[int, int]:
        """Column and sign of an item, from the upper 33 bits of a pair-multiply-shift hash."""
        a, b, c = (splitmix(3 * row + part) for part in range(3))
        high, low = divmod(item % 2**64, 2**32)
        upper = ((a + high) * (b + low) + c) % 2**64 // 2**31
        negative, fraction = divmod(upper, 2**32)
        return fraction * self.width // 2**32, -1 if negative else 1

    def insert(self, item: int) -> int:
        estimates = []
        for row, counters in enumerate(self.counters):
            column, sign = self.place(row, item)
            counters[column] += sign
            estimates.append(counters[column] * sign)
        return int(median(estimates))


def model_top_k(items: list[int], k: int, rows: int, width: int) -> list[tuple[int, int]]:
    """Listing 2.6 over a list of [item, count] pairs that may be shorter than k."""
    sketch = CountSketch(rows, width)
    top: list[list[int]] = []
    emitted = []
    for item in items:
        estimate = sketch.insert(item)
        known = [entry for entry in top if entry[0] == item]
        if known:
            known[0][1] += 1
            emitted.append((item, known[0][1]))
        elif len(top) < k:
            if estimate > 0:
                top.append([item, estimate])
                emitted.append((item, estimate))
        else:
            smallest = min(top, key=lambda entry: entry[1])
            if smallest[1] < estimate:
                smallest[:] = [item, estimate]
                emitted.append((item, estimate))
    return emitted


def skewed_items(count: int, seed: int = 3) -> np.ndarray:
    """Items with a heavy tail, spread over all of int64, with -1, the extremes, and trends."""
    generator = np.random.default_rng(seed)
    ranks = np.minimum(generator.zipf(1.2, count), 2**40).astype(np.int64)
    ranks[count // 2 :] += 3  # what is frequent changes half-way
    items = ranks * np.int64(0x5DEECE66D1234567)
    items[ranks == 1] = -1
    items[ranks == 4] = np.iinfo(np.int64).min
    items[ranks == 5] = np.iinfo(np.int64).max
    return items


def assert_identical(
    operator: ss.Operator, events: dict[str, Any], reference: ss.SequentialRun
) -> None:
    for threads, horizon, chunk in CONFIGURATIONS:
        with ss.Engine(operator, threads=threads, horizon=horizon, chunk=chunk) as engine:
            output = engine.process(events)
            what = f"threads={threads} horizon={horizon} chunk={chunk}"
            assert bits(output) == bits(reference.output), what
            expected = reference.state.to_dict()
            for name, values in engine.state.to_dict().items():
                assert values.tobytes() == expected[name].tobytes(), f"{what}: {name}"


def bits(table: pa.Table) -> list[object]:
    """A table by its bits: NaN equals itself, 0.0 and -0.0 differ."""
    return [
        (name, column.to_numpy().tobytes() if column.type != pa.string() else column.to_pylist())
        for name, column in zip(table.column_names, table.columns, strict=True)
    ]


# ---- top-k ----


@pytest.mark.slow
@pytest.mark.parametrize(
    ("k", "rows", "width"), [(5, 5, 1024), (1, 1, 1), (3, 3, 7), (8, 1, 64), (2, 7, 4096)]
)
def test_top_k_emits_what_the_model_emits(k: int, rows: int, width: int) -> None:
    items = skewed_items(1500)
    operator = top_k(k, rows, width)
    output = operator.run_sequential({"item": items}).output
    expected = model_top_k(items.tolist(), k, rows, width)
    assert list(zip(*output.to_pydict().values(), strict=True)) == expected
    with ss.Engine(operator, horizon=8, chunk=8) as engine:
        assert bits(engine.process({"item": items})) == bits(output)


def test_top_k_is_identical_for_all_threads_horizons_and_chunks() -> None:
    events = {"item": skewed_items(4000)}
    for operator in (top_k(), top_k(k=3, rows=3, width=5)):
        assert_identical(operator, events, operator.run_sequential(events))


def test_top_k_sketch_holds_the_model_counters() -> None:
    items = skewed_items(1000)
    state = top_k(rows=3, width=16).run_sequential({"item": items}).state
    model = CountSketch(3, 16)
    for item in items.tolist():
        model.insert(item)
    for row in range(3):
        assert state.sketch[row].tolist() == [model.counters[row][column] for column in range(16)]


def test_top_k_finds_the_most_frequent_items() -> None:
    generator = np.random.default_rng(11)
    items = generator.zipf(1.4, 60_000)
    exact = Counter(items.tolist()).most_common(5)
    with ss.Engine(top_k(k=5), horizon=8, chunk=8) as engine:
        engine.process({"item": items})
        found = dict(zip(engine.state.items.tolist(), engine.state.counts.tolist(), strict=True))
    assert set(found) == {item for item, _ in exact}
    for item, count in exact:
        assert abs(found[item] - count) <= 0.02 * count


def test_top_k_signs_belong_to_items_not_to_columns() -> None:
    # One column, one row: the counter is the sum of the signs. With one sign per column the
    # estimate of any item would be the number of all events.
    output = top_k(k=4, rows=1, width=1).run_sequential({"item": list(range(400))}).output
    assert max(output["count"].to_pylist(), default=0) < 100


def test_top_k_takes_an_item_that_equals_the_filling_of_the_list() -> None:
    output = top_k(k=2).run_sequential({"item": [-1, -1, 0, 0, -1]}).output
    assert output.to_pydict() == {"item": [-1, -1, 0, 0, -1], "count": [1, 2, 1, 2, 3]}


def test_top_k_of_strings_emits_strings() -> None:
    dice = random.Random(5)
    names = ["N101", "N202", "äöü", "", "N303 ", "x" * 200, *(f"tail{i}" for i in range(40))]
    items = dice.choices(names, weights=[2.0 ** -(i % 12) for i in range(len(names))], k=3000)
    operator = top_k(k=4, item=str)
    assert operator.output_schema.field("item").type == pa.string()
    reference = operator.run_sequential({"item": items})
    assert_identical(operator, {"item": items}, reference)
    last = dict(zip(*reference.output.to_pydict().values(), strict=True))
    for name, count in Counter(items).most_common(2):
        assert abs(last[name] - count) <= 0.05 * count


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"k": 0}, "top_k: k=0; expected an integer from 1"),
        ({"k": True}, "top_k: k=True"),
        ({"k": 2.0}, "top_k: k=2.0"),
        ({"rows": 4}, "rows=4; expected an odd number.*try 5"),
        ({"rows": 0}, "top_k: rows=0"),
        ({"width": 0}, "top_k: width=0"),
        ({"width": 2**31 + 1}, "top_k: width=2147483649"),
        ({"item": float}, "item=<class 'float'>; expected int or str"),
    ],
)
def test_top_k_refuses_arguments_that_it_cannot_have(
    arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(ss.ConfigurationError, match=message):
        top_k(**arguments)


# ---- nearest neighbours ----


def model_neighbours(
    points: list[tuple[float, float]], grid: int, per_bucket: int, k: int
) -> list[tuple[int, float, int]]:
    """Brute force: every stored point of the nine buckets, sorted."""
    buckets: defaultdict[tuple[int, int], deque[int]] = defaultdict(
        lambda: deque(maxlen=per_bucket)
    )
    emitted = []
    for sequence, (x, y) in enumerate(points):
        own = math.floor(x * grid), math.floor(y * grid)
        candidates = []
        for bucket, members in buckets.items():
            if max(abs(bucket[0] - own[0]), abs(bucket[1] - own[1])) <= 1:
                for member in members:
                    # Not ** 2: pow() may differ from a product in the last bit.
                    east, north = points[member][0] - x, points[member][1] - y
                    candidates.append((east * east + north * north, member))
        for rank, (square, member) in enumerate(sorted(candidates)[:k], start=1):
            emitted.append((member, math.sqrt(square), rank))
        buckets[own].append(sequence)
    return emitted


def clustered_points(count: int, seed: int = 7) -> list[tuple[float, float]]:
    """Points in a few dense clusters, on bucket edges and corners, many of them equal."""
    dice = random.Random(seed)
    centres = [(0.05, 0.05), (0.5, 0.5), (0.52, 0.49), (0.97, 0.3)]
    below_one = math.nextafter(1.0, 0.0)
    points = []
    for _ in range(count):
        kind = dice.random()
        if kind < 0.7:
            cx, cy = dice.choice(centres)
            point = cx + dice.gauss(0, 0.02), cy + dice.gauss(0, 0.02)
        elif kind < 0.9:
            point = dice.randrange(8) / 8, dice.randrange(8) / 8
        else:
            point = dice.random(), below_one
        x, y = (min(max(part, 0.0), below_one) for part in point)
        points.append((x, y))
    return points


@pytest.mark.slow
@pytest.mark.parametrize(
    ("grid", "per_bucket", "k"), [(100, 10, 3), (1, 4, 6), (2, 3, 1), (8, 2, 5), (3, 50, 3)]
)
def test_nearest_neighbours_emits_what_brute_force_emits(
    grid: int, per_bucket: int, k: int
) -> None:
    points = clustered_points(700)
    events = dict(zip("xy", np.array(points).T, strict=True))
    operator = nearest_neighbours(grid, per_bucket, k)
    output = operator.run_sequential(events).output
    expected = model_neighbours(points, grid, per_bucket, k)
    assert list(zip(*output.to_pydict().values(), strict=True)) == expected
    with ss.Engine(operator, horizon=8, chunk=8) as engine:
        assert bits(engine.process(events)) == bits(output)


@pytest.mark.slow
@pytest.mark.long
def test_nearest_neighbours_is_identical_for_all_threads_horizons_and_chunks() -> None:
    events = dict(zip("xy", np.array(clustered_points(1500)).T, strict=True))
    for operator in (nearest_neighbours(), nearest_neighbours(grid=5, per_bucket=3, k=2)):
        assert_identical(operator, events, operator.run_sequential(events))


def test_nearest_neighbours_orders_equal_distances_by_sequence() -> None:
    # Later points lie in the bucket that is visited first.
    x, y = [0.6, 0.6, 0.4, 0.4, 0.5], [0.6, 0.4, 0.6, 0.4, 0.5]
    output = nearest_neighbours(grid=2, k=3).run_sequential({"x": x, "y": y}).output
    assert output["neighbour"].to_pylist()[-3:] == [0, 1, 2]
    output = nearest_neighbours(grid=2, k=3).run_sequential({"x": [*x[3::-1], 0.5], "y": y}).output
    assert output["neighbour"].to_pylist()[-3:] == [0, 1, 2]


def test_nearest_neighbours_forgets_the_oldest_point_of_a_full_bucket() -> None:
    x = [0.50, 0.51, 0.52, 0.53, 0.50]
    operator = nearest_neighbours(grid=1, per_bucket=3, k=3)
    output = operator.run_sequential({"x": x, "y": [0.5] * 5}).output
    assert output["neighbour"].to_pylist()[-3:] == [1, 2, 3]


def test_nearest_neighbours_numbers_points_across_batches() -> None:
    with ss.Engine(nearest_neighbours(k=1)) as engine:
        engine.process({"x": [0.1, 0.9], "y": [0.1, 0.9]})
        output = engine.process({"x": [0.9, 0.1], "y": [0.9, 0.1]})
    assert output.to_pydict() == {"neighbour": [1, 0], "distance": [0.0, 0.0], "rank": [1, 1]}


@pytest.mark.parametrize("outside", [1.0, -0.001, math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("horizon", [0, 8])
def test_nearest_neighbours_raises_for_points_outside(outside: float, horizon: int) -> None:
    with ss.Engine(nearest_neighbours(), horizon=horizon, chunk=2) as engine:
        for x, y in (([0.5, 0.5, outside, 0.5], [0.5] * 4), ([0.5] * 4, [0.5, 0.5, outside, 0.5])):
            with pytest.raises(ValueError, match="outside of the unit square") as caught:
                engine.process({"x": x, "y": y})
            assert partial_of(caught.value).consumed == 2
        assert engine.state.counts.sum() == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"grid": 0}, "nearest_neighbours: grid=0; expected an integer from 1 to 1000"),
        ({"grid": 1001}, "grid=1001"),
        ({"grid": 10.0}, "grid=10.0"),
        ({"per_bucket": 0}, "per_bucket=0"),
        ({"k": 0}, "k=0"),
        ({"grid": 1000, "per_bucket": 1401}, "make 1401000000 points.*coarser grid"),
    ],
)
def test_nearest_neighbours_refuses_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ss.ConfigurationError, match=message):
        nearest_neighbours(**arguments)


def test_nearest_neighbours_can_be_declared_with_as_many_points_as_it_says() -> None:
    assert nearest_neighbours(grid=1000, per_bucket=1400).name == "nearest_neighbours"


def test_top_k_takes_the_name_of_its_column() -> None:
    with ss.Engine(top_k(k=2, item={"page": str})) as engine:
        output = engine.process({"page": ["a", "b", "a"]})
    assert output.to_pydict() == {"page": ["a", "b", "a"], "count": [1, 1, 2]}
    with pytest.raises(ss.ConfigurationError, match=r"^top_k: item='count'; expected the name of"):
        top_k(item={"count": str})
