"""Maps, sets, the sorted list and the sample against Python's own, on every path."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from conftest import Path, assert_identical, run_oracle
from hypothesis import given, settings
from hypothesis import strategies as st
from support.daily import share_of
from support.engine.ahead import run_ahead

import specstream as ss
from specstream.structures import (
    contains,
    find,
    get,
    hash_map,
    hash_set,
    insert,
    offer,
    put,
    remove,
    size,
    sorted_contains,
    sorted_insert,
    sorted_list,
    sorted_remove,
)

pytestmark = pytest.mark.slow

CAPACITY = 12


class Tables(ss.State):
    map = hash_map(CAPACITY)
    wide = hash_map(40, words=2)
    set = hash_set(CAPACITY)
    list = sorted_list(CAPACITY)


EVENT = {"what": int, "key": int}
OPERATIONS = 8


@ss.operator(state=Tables, event=EVENT, emits={"result": int}, name="tables")
def tables(state, event, emit):
    """One operation on each of the structures, as the event says."""
    what = event.what
    key = event.key
    if what == 0:
        emit(int(put(state.map, key, event.sequence)))
        emit(int(insert(state.set, key)))
        emit(int(sorted_insert(state.list, key)))
    elif what == 1:
        emit(get(state.map, key, -1))
        emit(int(contains(state.set, key)))
        emit(int(sorted_contains(state.list, key)))
    elif what == 2:
        emit(int(remove(state.map, key)))
        emit(int(remove(state.set, key)))
        emit(int(sorted_remove(state.list, key)))
    elif what == 3:
        emit(size(state.map))
        emit(size(state.set))
    elif what == 4:
        put(state.wide, key, 1)
        row = find(state.wide, key)
        state.wide[row, 3] += event.sequence
        emit(state.wide[row, 3])
    elif what == 5:
        emit(find(state.wide, key))
        emit(int(remove(state.wide, key)))
    elif what == 6:
        for row in range(1, len(state.set)):
            if state.set[row, 0] == 1:
                emit(state.set[row, 1])
    else:
        raise ValueError("not applied")


class Model:
    """What the operator means, in Python's own dict and set."""

    def __init__(self) -> None:
        self.map: dict[int, int] = {}
        self.wide: dict[int, int] = {}

    def results(self, what: int, key: int, sequence: int) -> list[int] | None:
        """What the event emits; None: it raises. Of iterations the keys, sorted."""
        there = key in self.map
        if what == 0:
            self.map[key] = sequence
            return [int(not there)] * 3
        if what == 1:
            return [self.map.get(key, -1), int(there), int(there)]
        if what == 2:
            self.map.pop(key, None)
            return [int(there)] * 3
        if what == 3:
            return [len(self.map)] * 2
        if what == 4:
            self.wide[key] = self.wide.get(key, 0) + sequence
            return [self.wide[key]]
        if what == 5:
            return [int(self.wide.pop(key, None) is not None)]
        return sorted(self.map) if what == 6 else None


# Few keys, of which some have the same home, so that gaps have to be closed.
KEYS = st.integers(-5, 6) | st.sampled_from([2**63 - 1, -(2**63), 16, 32, 48])


@settings(max_examples=share_of(60))
@given(
    st.lists(st.tuples(st.integers(0, OPERATIONS - 1), KEYS), min_size=1, max_size=150),
)
def test_tables_do_what_dict_and_set_do(steps: list[tuple[int, int]]) -> None:
    model = Model()
    kept: list[tuple[int, int]] = []
    for what, key in steps:  # of what would fill a structure, nothing
        adds = what == 0 and key not in model.map and len(model.map) == CAPACITY
        if not adds and model.results(what, key, 0) is not None:
            kept.append((what, key))
    if not kept:
        return
    table = pa.table({"what": [w for w, _ in kept], "key": [k for _, k in kept]})
    run = tables.run_sequential(table, keys=True)
    found: dict[int, list[int]] = {sequence: [] for sequence in range(len(kept))}
    for row in run.output.to_pylist():
        found[row["sequence"]].append(row["result"])
    model = Model()
    for sequence, (what, key) in enumerate(kept):
        expected = model.results(what, key, sequence)
        results = found[sequence]
        if what == 5:
            assert (results.pop(0) != 0) == bool(expected and expected[0])
        assert (sorted(results) if what == 6 else results) == expected, (sequence, what, key)


def events(count: int, seed: int, keys: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    what = rng.choice(OPERATIONS, count, p=[0.35, 0.2, 0.2, 0.02, 0.1, 0.1, 0.02, 0.01])
    return pa.table({"what": what, "key": rng.integers(0, keys, count) * 1_000_003})


@pytest.mark.parametrize("keys", [10, 40])
def test_every_path_gives_the_answer_of_the_sequential_run(path: Path, keys: int) -> None:
    """With forty keys the list is full at times: MemoryError, and the event is not applied."""
    table = events(900, keys, keys)
    assert_identical(path(tables, table), run_oracle(tables, table))


def test_a_table_holds_its_capacity_and_says_when_it_is_full() -> None:
    class Small(ss.State):
        keys = hash_set(6)

    @ss.operator(state=Small, event={"key": int}, emits={}, name="filling")
    def filling(state, event, emit):
        insert(state.keys, event.key)

    with ss.Engine(filling, threads=1) as engine:
        slots = len(engine.state.keys) - 1
        engine.process({"key": range(slots)})
        assert 6 <= slots == engine.state.keys[0, 0]
        with pytest.raises(MemoryError, match="all slots of the hash table are in use"):
            engine.process({"key": [slots]})
        engine.process({"key": [3]})


def test_hash_codes_of_strings_are_keys() -> None:
    class Counts(ss.State):
        words = hash_map(1000)

    @ss.operator(state=Counts, event={"word": str}, emits={"word": str, "n": int}, name="words")
    def words(state, event, emit):
        n = get(state.words, event.word, 0) + 1
        put(state.words, event.word, n)
        emit(event.word, n)

    rng = random.Random(1)
    drawn = [f"word {int(rng.paretovariate(0.5)) % 700}" for _ in range(3000)]
    counts: dict[str, int] = {}
    with ss.Engine(words, threads=2, horizon=8, chunk=2) as engine:
        rows = engine.process({"word": drawn}).to_pylist()
        assert engine.state.words[0, 0] == len(set(drawn))
    for row, word in zip(rows, drawn, strict=True):
        counts[word] = counts.get(word, 0) + 1
        assert row == {"word": word, "n": counts[word]}


class Sample(ss.State):
    values = ss.array(float, 7)
    offered = ss.array(int, 1)


@ss.operator(state=Sample, event={"value": float}, emits={"place": int}, name="sampled")
def sampled(state, event, emit):
    emit(offer(state.values, state.offered, event, 3, event.value))


@ss.operator(state=Sample, event={"value": float}, emits={"bits": float}, name="draws")
def draws(state, event, emit):
    emit(float(event.random_bits(3) >> np.uint64(32)))
    emit(float(event.random_bits(3) & np.uint64(2**32 - 1)))


def test_the_sample_is_that_of_algorithm_r(path: Path) -> None:
    values = np.random.default_rng(2).normal(size=1200)
    table = pa.table({"value": values})
    halves = run_oracle(draws, table, seed=9).output["bits"].to_pylist()
    bits = [int(high) << 32 | int(low) for high, low in zip(halves[::2], halves[1::2], strict=True)]
    sample: list[float] = []
    places = []
    for n, (value, random_bits) in enumerate(zip(values.tolist(), bits, strict=True), start=1):
        place = len(sample) if n <= 7 else random_bits % n
        if n <= 7:
            sample.append(value)
        elif place < 7:
            sample[place] = value
        places.append(place if place < 7 else -1)
    found = path(sampled, table, seed=9)
    assert found.output["place"].to_pylist() == places
    assert found.state["values"].tolist() == sample


def test_a_sorted_list_aborts_more_than_a_hash_set() -> None:
    class Sets(ss.State):
        hashed = hash_set(2000)
        sorted = sorted_list(2000)

    @ss.operator(state=Sets, event={"key": int}, emits={"there": bool}, name="into_hash")
    def into_hash(state, event, emit):
        for i in range(3):
            insert(state.hashed, (event.key + i * 7919) % 1500)
            remove(state.hashed, (event.key + i * 5077) % 1500)
        emit(contains(state.hashed, event.key))

    @ss.operator(state=Sets, event={"key": int}, emits={"there": bool}, name="into_list")
    def into_list(state, event, emit):
        for i in range(3):
            sorted_insert(state.sorted, (event.key + i * 7919) % 1500)
            sorted_remove(state.sorted, (event.key + i * 5077) % 1500)
        emit(sorted_contains(state.sorted, event.key))

    table = pa.table({"key": np.random.default_rng(4).integers(0, 1500, 320)})
    dropped = {}
    for operator in (into_hash, into_list):
        stats, _ = run_ahead(operator, table)
        dropped[operator.name] = sum(stats.aborts.values())
    assert dropped["into_hash"] < dropped["into_list"] / 2, dropped


@pytest.mark.parametrize("sizes", [(0, 1), (1, -1), (1.5, 1), (1, True)])
def test_sizes_are_checked(sizes: Any) -> None:
    with pytest.raises(ss.DeclarationError, match=r"hash_map: (capacity|words)="):
        hash_map(*sizes)
