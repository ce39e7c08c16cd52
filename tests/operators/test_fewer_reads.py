"""Ready operators that read less than their listings do: the same answer, and what is not read."""

import math
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.daily import share_of
from support.operators.whole_list import whole_list
from test_operators import bits, model_neighbours

import specstream as ss
from specstream.operators import nearest_neighbours, top_k
from specstream.tuning.forecast.events import Event
from specstream.tuning.forecast.recording import record

# ---- top-k ----

KEPT = ("sketch", "items", "counts")


def streams() -> st.SearchStrategy[list[int]]:
    """Items of which few are frequent, with the filling of the list, in runs and in turns."""
    few = st.sampled_from([-1, 0, 1, 2, 3, 2**62, -(2**63)])
    many = st.integers(-(2**63), 2**63 - 1) | st.integers(4, 40)
    runs = st.tuples(few | many, st.integers(1, 6)).map(lambda one: [one[0]] * one[1])
    return st.lists(runs, max_size=60).map(lambda found: [item for run in found for item in run])


def same(found: Any, expected: Any) -> None:
    for name in KEPT:
        assert (getattr(found, name) == getattr(expected, name)).all(), name


@settings(max_examples=share_of(60), deadline=None)
@given(streams(), st.integers(1, 6), st.sampled_from([1, 3, 5]), st.sampled_from([1, 2, 7, 64]))
def test_top_k_answers_as_if_each_event_read_the_whole_list(
    items: list[int], k: int, rows: int, width: int
) -> None:
    table = {"item": pa.array(items, pa.int64())}
    expected = whole_list(k, rows, width).run_sequential(table)
    found = top_k(k, rows, width).run_sequential(table)
    assert bits(found.output) == bits(expected.output)
    same(found.state, expected.state)
    least = expected.state.counts.min()
    assert 0 <= found.state.threshold <= least


@cache
def compiled() -> tuple[ss.Operator, ss.Operator]:
    return top_k(3, 3, 5), whole_list(3, 3, 5)


@settings(max_examples=share_of(15), deadline=None)
@given(streams(), st.sampled_from(["value", "eager"]), st.sampled_from([1, 8]), st.integers(0, 99))
def test_top_k_speculates_to_the_answer_of_the_whole_list(
    items: list[int], protocol: str, chunk: int, cut: int
) -> None:
    operator, reference = compiled()
    expected = reference.run_sequential({"item": pa.array(items, pa.int64())})
    with ss.Engine(operator, threads=2, horizon=8, chunk=chunk, protocol=protocol) as engine:
        parts = [
            engine.process({"item": pa.array(part, pa.int64())})
            for part in (items[:cut], items[cut:])
        ]
        assert bits(pa.concat_tables(parts).combine_chunks()) == bits(expected.output)
        same(engine.state, expected.state)


def test_a_snapshot_of_top_k_without_a_threshold_goes_on() -> None:
    items = np.random.default_rng(5).zipf(1.3, 3000).astype(np.int64)
    reference = whole_list(5, 5, 64)
    expected = reference.run_sequential({"item": items})
    with ss.Engine(reference) as before:
        first = before.process({"item": items[:1000]})
        snapshot = before.snapshot()
    with ss.Engine(top_k(5, 5, 64), threads=2, horizon=8, chunk=8) as engine:
        engine.restore(snapshot)
        second = engine.process({"item": items[1000:]})
        assert bits(pa.concat_tables([first, second]).combine_chunks()) == bits(expected.output)
        same(engine.state, expected.state)


def recorded(operator: ss.Operator, table: pa.Table, warm_up: int) -> list[Event]:
    order = {"order_by": None, "source": None}
    return record(operator, table.slice(0, warm_up), table.slice(warm_up), order).events


def test_events_of_items_in_the_list_read_nothing_that_each_other_changes() -> None:
    generator = np.random.default_rng(3)
    warm = np.concatenate([np.tile(np.arange(4), 50), generator.integers(2**40, 2**50, 100)])
    listed = generator.integers(0, 4, 60)
    table = pa.table({"item": np.concatenate([warm, listed])})
    events = recorded(top_k(4, 5, 1024), table, len(warm))
    read = {access.byte for event in events for access in event.reads}
    written = {access.byte for event in events for access in event.writes}
    assert len(events) == len(listed)
    assert written, "the counts and the counters of the sketch"
    assert not read & written


def test_events_of_rare_items_read_no_count_and_most_of_the_estimates_that_decide() -> None:
    generator = np.random.default_rng(3)
    warm = np.concatenate([np.tile(np.arange(4), 50), generator.integers(2**40, 2**50, 100)])
    rare = generator.integers(2**51, 2**60, 60)
    table = pa.table({"item": np.concatenate([warm, rare])})
    k, rows = 4, 5
    for event in recorded(top_k(k, rows, 1024), table, len(warm)):
        # The threshold, the items of the list, and three of five counters.
        assert len(event.reads) == 1 + k + rows // 2 + 1
        assert len(event.updates) == rows // 2


# ---- nearest neighbours ----


def near_edges(grid: int) -> st.SearchStrategy[float]:
    """Coordinates on the edges of buckets, one step beside them, and anywhere."""
    edges = [number / grid for number in range(grid)]
    beside = [math.nextafter(edge, side) for edge in edges for side in (0.0, 1.0)]
    below_one = math.nextafter(1.0, 0.0)
    halves = [(number + 0.5) / grid for number in range(grid)]
    within = st.floats(0.0, below_one, allow_subnormal=False)
    return st.sampled_from([*edges, *beside, *halves, below_one]) | within


@pytest.mark.parametrize(("grid", "per_bucket", "k"), [(3, 4, 2), (7, 3, 1), (10, 2, 4)])
@settings(max_examples=share_of(40), deadline=None)
@given(st.data())
def test_nearest_neighbours_on_the_edges_of_buckets_are_those_of_brute_force(
    grid: int, per_bucket: int, k: int, data: st.DataObject
) -> None:
    one = near_edges(grid)
    points = data.draw(st.lists(st.tuples(one, one), min_size=1, max_size=40))
    table = dict(zip("xy", np.array(points).T, strict=True))
    output = nearest_neighbours(grid, per_bucket, k).run_sequential(table).output
    expected = model_neighbours(points, grid, per_bucket, k)
    assert list(zip(*output.to_pydict().values(), strict=True)) == expected


def test_an_equally_near_point_beyond_an_edge_is_found() -> None:
    # The one in the own bucket came later, so of two at the same distance it is the second.
    x, y = [0.25, 0.75, 0.5], [0.5, 0.5, 0.5]
    output = nearest_neighbours(grid=2, k=1).run_sequential({"x": x, "y": y}).output
    assert output["neighbour"].to_pylist()[-1] == 0


def test_events_look_at_no_bucket_that_is_too_far_away() -> None:
    generator = np.random.default_rng(8)
    count, grid, per_bucket = 2100, 10, 10
    table = pa.table({"x": generator.random(count), "y": generator.random(count)})
    events = recorded(nearest_neighbours(grid, per_bucket, 3), table, count - 100)
    reads = [len(event.reads) for event in events]
    # All of nine full buckets are 190 words and more.
    assert np.mean(reads) < 80
