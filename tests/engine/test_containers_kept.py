"""What containers hold is put aside, brought back and written down; not the room that they have."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import collections
import json
import os
import pickle
import random
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from conftest import PATHS, assert_identical, run_oracle
from support.checkpoint import crafted
from support.engine.journeys import run_journey
from support.operators.held import Held, events, exactly, hold, values

import specstream as ss

CONTAINERS = [field.name for field in Held.layout().containers]
ENGINES = [options for options in PATHS.values() if options is not None]


def idle(operator: ss.Operator = hold, **options: Any) -> ss.Engine:
    return ss.Engine(operator, threads=1, horizon=0, **options)


def assert_holds(engine: ss.Engine, given: dict[str, Any]) -> None:
    found = engine.state.to_dict()
    for name, value in given.items():
        if name in CONTAINERS:
            assert exactly(found[name]) == exactly(value), name
        else:
            assert np.array_equal(found[name], value), name


# ---- put aside and brought back ----


@pytest.mark.parametrize("seed", range(6))
def test_whatever_is_given_comes_back_from_everywhere(seed: int) -> None:
    dice = random.Random(seed)
    given = values(dice)
    with idle(initial=given) as engine, idle() as other:
        assert_holds(engine, given)
        snapshot, savepoint = engine.snapshot(), engine.savepoint()
        other.restore(snapshot)
        assert other.snapshot() == snapshot
        assert_holds(other, given)
        engine.process(events(seed, 60))
        changed = engine.snapshot()
        assert changed != snapshot
        engine.rollback(savepoint)
        assert engine.snapshot() == snapshot
        engine.process(events(seed, 60))
        assert engine.snapshot() == changed
        # What was rolled back is in no place where it is found again.
        other.process(events(seed, 60))
        assert other.snapshot() == changed
        other.restore(snapshot)
        assert_holds(other, given)


@pytest.mark.parametrize("seed", range(4))
def test_a_journey_is_told_as_by_an_engine_that_stands_still(seed: int) -> None:
    table = pa.table(events(seed, 150))
    expected = run_oracle(hold, table)
    assert_identical(run_journey(hold, table, ENGINES, seed), expected)


def test_equal_states_have_equal_snapshots_whatever_the_setting() -> None:
    table = events(1, 300)
    seen = set()
    for options in ENGINES:
        with ss.Engine(hold, **options) as engine:
            # In pieces, with runs that were dropped and places that are used again.
            for at in range(0, 300, 100):
                engine.process({name: column[at : at + 100] for name, column in table.items()})
            seen.add(engine.snapshot())
    assert len(seen) == 1
    # And as one that never removed anything.
    [snapshot] = seen
    with idle(restore=snapshot) as engine:
        fields = engine.state
        kept = {name: getattr(fields, name) for name in dir(fields)}
        with idle(initial=kept) as fresh:
            for name in CONTAINERS:
                assert fields.table(name) == fresh.state.table(name), name
    assert len(snapshot) < 40_000


def resident() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise LookupError("no VmRSS")


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="measures through /proc")
def test_no_copy_touches_what_was_never_used() -> None:
    assert 8 * Held.layout().state_words > 2 << 30  # addresses
    with idle(initial=values(random.Random(3))) as engine, idle() as other:
        before = resident()
        for _ in range(3):
            other.restore(engine.snapshot())
            engine.rollback(engine.savepoint())
            engine.state.to_dict()
        assert resident() - before < 50 << 20
        assert 0 < engine.stats.state_bytes < 1 << 20
        assert engine.stats.state_bytes > other.stats.state_bytes - (1 << 20)


def test_bytes_of_the_state_grow_with_what_is_in_it() -> None:
    with idle() as engine:
        empty = engine.stats.state_bytes
        fields = Held.layout().words("state")
        assert empty == 8 * fields
        engine.process({"key": [f"k{n}" for n in range(500)], "x": [1] * 500})
        assert engine.stats.state_bytes >= empty + 500 * 8 * (3 + 6)


def test_large_snapshots_are_read_and_written_column_by_column() -> None:
    """A million entries in about a second, where a loop over words would take minutes."""

    class Large(ss.State):
        d = ss.dict((int, int), (float, int))

    @ss.operator(state=Large, event={"x": int})
    def nothing(state, event, emit):
        state.d[(event.x, 0)] = (1.0, 1)

    count = 1_000_000
    at = np.arange(count)
    table = pa.table({"key_0": at, "key_1": -at, "value_0": at / 2, "value_1": at * 3})
    with idle(nothing, initial={"d": table}) as engine:
        assert engine.state.table("d") == table
        snapshot = engine.snapshot()
        assert len(snapshot) < 8 * 4 * count + 1000
        engine.process({"x": [5]})
        engine.restore(snapshot)
        assert engine.state.table("d") == table
        assert len(engine.state.d) == count
        assert engine.state.d[(5, -5)] == (2.5, 15)
        assert (5, 0) not in engine.state.d


# ---- what Python shows ----


def test_the_state_is_shown_as_python_has_it() -> None:
    given: dict[str, Any] = {
        "totals": {"b": 1, "": -2, "a": 3},
        "pairs": {("x", 1): (0.5, True, "s"), ("x", 2): (float("nan"), False, "")},
        "seen": [(2, True), (1, False)],
        "prices": [1.5, -0.0],
        "names": [(1, "one"), (2, "")],
        "recent": [1, 2, 3],
        "waiting": [(0.5, 1)],
        "nearest": [(2.0, 1), (1.0, 9)],
    }
    engine = idle(initial=given)
    for _ in range(2):  # open, and closed
        state = engine.state
        assert state.totals == given["totals"]
        assert list(state.totals) == ["b", "", "a"]
        assert repr(state.totals) == "{'b': 1, '': -2, 'a': 3}"
        assert state.totals[""] == -2
        assert state.totals.get("c") is None
        assert state.totals.get("c", 5) == 5
        assert "c" not in state.totals
        assert "a" in state.totals
        with pytest.raises(KeyError, match="'c'"):
            state.totals["c"]
        with pytest.raises(TypeError, match="item assignment"):
            state.totals["c"] = 1
        assert type(dict(state.totals)) is dict
        assert dict(state.totals) == given["totals"]
        assert state.totals.copy() == given["totals"]
        assert state.totals | {"z": 1} == {**given["totals"], "z": 1}
        assert list(reversed(state.totals)) == ["a", "", "b"]
        assert list(state.totals.items()) == list(given["totals"].items())
        assert list(state.totals.values()) == [1, -2, 3]
        assert pickle.loads(pickle.dumps(state.totals)) == given["totals"]
        assert json.loads(json.dumps(state.to_dict()["totals"])) == given["totals"]
        assert state.pairs[("x", 1)] == (0.5, True, "s")
        assert type(state.pairs[("x", 1)][1]) is bool
        assert repr(state.pairs) == repr(given["pairs"])
        assert ("x",) not in state.pairs
        assert "x" not in state.pairs
        with pytest.raises(TypeError, match="unhashable"):
            state.pairs.get([])
        # As Python's: what equals a key finds it.
        assert (1.0, False) in state.seen
        assert (2, 1) in state.seen
        assert (2**70, False) not in state.seen
        assert ("1", False) not in state.seen
        assert list(state.seen) == [(2, True), (1, False)]
        assert state.seen == {(1, False), (2, True)}
        assert state.seen | {(3, True)} == {(1, False), (2, True), (3, True)}
        assert repr(state.seen) == "{(2, True), (1, False)}"
        assert state.prices == [1.5, -0.0]
        assert state.names == [(1, "one"), (2, "")]
        assert state.recent == collections.deque([1, 2, 3])
        assert state.recent.maxlen == 5
        assert state.waiting.maxlen is None
        assert state.nearest == [(1.0, 9), (2.0, 1)]
        assert len(state.totals) == 3
        assert state.seen
        assert "totals" in dir(state)
        assert "totals" in repr(state)
        engine.close()


def test_tables_have_a_column_for_each_part() -> None:
    with idle(
        initial={"pairs": {("x", 1): (0.5, True, "")}, "recent": [4], "seen": [(1, True)]}
    ) as e:
        pairs = e.state.table("pairs")
        assert pairs.schema.types == [
            pa.large_string(), pa.int64(), pa.float64(), pa.bool_(), pa.large_string()
        ]  # fmt: skip
        assert pairs.to_pylist() == [
            {"key_0": "x", "key_1": 1, "value_0": 0.5, "value_1": True, "value_2": ""}
        ]
        assert e.state.table("recent").to_pydict() == {"value": [4]}
        assert e.state.table("seen").to_pydict() == {"key_0": [1], "key_1": [True]}
        assert e.state.table("totals").to_pydict() == {"key": [], "value": []}
        with pytest.raises(KeyError, match="no field 'none'"):
            e.state.table("none")


class Trade(ss.Record):
    price: float
    buys: bool


class Fixed(ss.State):
    total = ss.scalar(float, fill=0.5)
    name = ss.scalar(str)
    small = ss.array(np.int16, (2, 2))
    seen = ss.array(bool, 2)
    texts = ss.array(str, 2)
    trades = ss.array(Trade, 2)
    last = ss.scalar(Trade)


@ss.operator(state=Fixed, event={"x": int})
def fixed(state, event, emit):
    state.small[1, 0] = event.x
    state.seen[1] = True


def test_arrays_and_scalars_are_tables_too() -> None:
    initial = {
        "name": "first",
        "texts": ["a", ""],
        "trades": [Trade(1.5, True), Trade(-0.0, False)],
        "last": Trade(2.0, True),
    }
    with ss.Engine(fixed, horizon=0, initial=initial) as e:
        small = e.state.table("small")
        e.process({"x": [7]})
        assert small["value"].to_pylist() == [0, 0, 0, 0], "a table stays as it is"
        small = e.state.table("small")
        assert small.schema.types == [pa.int64(), pa.int64(), pa.int16()]
        assert small.to_pydict() == {
            "index_0": [0, 0, 1, 1], "index_1": [0, 1, 0, 1], "value": [0, 0, 7, 0]
        }  # fmt: skip
        assert e.state.table("total").to_pydict() == {"value": [0.5]}
        assert e.state.table("name").to_pydict() == {"value": ["first"]}
        assert e.state.table("seen").to_pydict() == {"index": [0, 1], "value": [False, True]}
        assert e.state.table("texts").to_pydict() == {"index": [0, 1], "value": ["a", ""]}
        assert e.state.table("trades").to_pydict() == {
            "index": [0, 1], "value_price": [1.5, -0.0], "value_buys": [True, False]
        }  # fmt: skip
        assert e.state.table("last").to_pydict() == {"value_price": [2.0], "value_buys": [True]}


def test_a_field_may_be_called_as_the_method() -> None:
    class Odd(ss.State):
        table = ss.dict(int, int)

    @ss.operator(state=Odd, event={"x": int})
    def odd(state, event, emit):
        state.table[event.x] = 1

    with idle(odd) as engine:
        engine.process({"x": [3]})
        table: Any = engine.state.table
        assert table == {3: 1}


# ---- snapshots of somebody else ----


def changed(snapshot: bytes, change: Any) -> bytes:
    """A snapshot whose header, or whose words, were changed."""
    header, sections = crafted.snapshot_parts(snapshot)
    words = bytearray(sections["words"])
    change(header, words)
    sections["words"] = bytes(words)
    return crafted.snapshot_of(json.dumps(header).encode(), sections)


class Small(ss.State):
    d = ss.dict((int, bool, str), float, limit=4)
    q = ss.deque(int, maxlen=2)


@ss.operator(state=Small, event={"x": int})
def small(state, event, emit):
    state.q.append(event.x)


def word(at: int, value: int) -> Any:
    def change(header: dict[str, Any], words: bytearray) -> None:
        words[8 * at : 8 * at + 8] = (value % 2**64).to_bytes(8, "little")

    return change


def header(name: str, value: Any) -> Any:
    return lambda header, words: header.__setitem__(name, value)


def both(*changes: Any) -> Any:
    return lambda header, words: [change(header, words) for change in changes]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (header("rows", [2]), "has rows of 1 containers, and its fields have 2"),
        (header("rows", [2, -1]), "'q': its number of rows is -1; expected 0 to 2"),
        (header("rows", [2, 3]), "'q': its number of rows is 3; expected 0 to 2"),
        (header("rows", [2**40, 1]), "'d': its number of rows is 1099511627776; expected 0 to 4"),
        (header("rows", [3, 1]), "length of section 'state'|section"),
        (header("rows", [True, 1]), "rows"),
        (header("rows", None), "rows is None"),
        (lambda h, w: h.pop("rows"), "has rows of 0 containers"),
        (
            lambda h, w: h["fields"][0].__setitem__("limit", 1),
            "number of rows is 2; expected 0 to 1",
        ),
        (word(1, 2), "'d' holds a bool that is 2"),
        (word(1, -1), "'d' holds a bool that is -1"),
        (word(2, 12345), "'d' holds the code 12345 of no string"),
        (word(2, ss.declarations.codes.EMPTY), "'d' holds an empty string with the code"),
        (word(3, 0x7FF8000000000001), "'d' holds a NaN with other bits"),
        (both(word(4, 1), word(5, 0)), "'d' has the key of row 1 twice"),
    ],
)
def test_rows_are_checked_when_they_are_read(change: Any, message: str) -> None:
    given = {"d": {(1, False, ""): 0.5, (2, True, ""): 1.5}, "q": [7]}
    with idle(small, initial=given) as engine:
        snapshot = engine.snapshot()
        assert changed(snapshot, lambda header, words: None) == snapshot
        with pytest.raises(ss.SnapshotError, match=message):
            engine.restore(changed(snapshot, change))
        assert engine.snapshot() == snapshot


# ---- into another state ----


def test_fields_go_by_name_and_a_limit_may_grow() -> None:
    class More(ss.State):
        new = ss.list(str)
        q = ss.deque(int, maxlen=2)
        d = ss.dict((int, bool, str), float, limit=3)

    @ss.operator(state=More, event={"x": int})
    def more(state, event, emit):
        state.new.append("a")

    three = {(n, False, "z"): 0.5 for n in range(3)}
    with idle(small, initial={"d": three, "q": [1, 2]}) as engine:
        fits = engine.snapshot()
    with idle(more, restore=fits) as engine:
        assert engine.state.to_dict() == {
            "new": [], "q": collections.deque([1, 2], 2), "d": three
        }  # fmt: skip
        engine.process({"x": [1]})
        assert engine.state.new == ["a"]
    with idle(small, initial={"d": {**three, (9, True, ""): 1.0}}) as engine:
        too_many = engine.snapshot()
    with pytest.raises(ss.SnapshotError, match="'d' has 4 entries in the snapshot"):
        idle(more, restore=too_many)


@pytest.mark.parametrize(
    ("field", "message"),
    [
        (ss.dict((int, bool, str), int, limit=4), "value float in the snapshot and value int in"),
        (ss.dict(int, float), r"key tuple\[int, bool, str\] in the snapshot and .* key int in"),
        (ss.array(int, 3), "kind dict"),
        (ss.set((int, bool, str)), "kind dict"),
    ],
)
def test_what_was_declared_otherwise_is_refused(field: Any, message: str) -> None:
    with idle(small) as engine:
        snapshot = engine.snapshot()
    state = type("Other", (ss.State,), {"d": field, "q": ss.deque(int, maxlen=2)})
    operator = ss.operator(state=state, event={"x": int})(nothing)
    with pytest.raises(ss.SnapshotError, match=f"field 'd' has .*{message}"):
        idle(operator, restore=snapshot)
    longer = type("Other", (ss.State,), {"d": Small.d, "q": ss.deque(int, maxlen=3)})
    with pytest.raises(ss.SnapshotError, match="field 'q' has limit 2, maxlen 2 in the snapshot"):
        idle(ss.operator(state=longer, event={"x": int})(nothing), restore=snapshot)


def nothing(state, event, emit):
    pass


def test_a_function_converts_containers() -> None:
    class New(ss.State):
        sums = ss.dict(str, int)
        last = ss.deque(float, maxlen=3)
        ranks = ss.priority_queue(int)
        both = ss.set(str)

    seen: list[Any] = []

    def migrate(fields: dict[str, Any]) -> dict[str, Any]:
        seen.append(fields)
        return {
            "sums": {name: int(value) for (_, _, name), value in fields["d"].items()},
            "last": [value / 2 for value in fields["q"]],
            "ranks": (3, 1, 2),
            "both": {"b", "a"},
        }

    with idle(small, initial={"d": {(1, True, "é"): 2.0}, "q": [4, 5]}) as engine:
        snapshot = engine.snapshot()
    operator = ss.operator(state=New, event={"x": int})(nothing)
    with idle(operator, restore=snapshot, migrate=migrate) as engine:
        assert engine.state.sums == {"é": 2}
        assert engine.state.last == collections.deque([2.0, 2.5], 3)
        assert engine.state.ranks == [1, 2, 3]
        assert list(engine.state.both) == ["a", "b"]  # a set has no order: theirs
    [fields] = seen
    assert type(fields["d"]) is dict
    assert fields["q"] == collections.deque([4, 5], 2)
    with pytest.raises(ss.SnapshotError, match=r"migrate= returned 0.5 as value 0 of field 'sums'"):
        idle(operator, restore=snapshot, migrate=lambda fields: {"sums": {"a": 0.5}})


# ---- initial values ----


def test_fields_begin_with_what_is_given() -> None:
    given = {
        "before": 5,
        "totals": pa.table({"value": [1, 2], "key": ["a", "b"]}),
        "pairs": [(("a", 1), (1, True, "t"))],  # 1 is a float exactly
        "between": np.arange(5, dtype=np.int8),
        "seen": pd.DataFrame({"key_0": [3, 1], "key_1": [True, False]}),
        "label": "begin",
        "prices": np.array([0.5, 1.5]),
        "names": pa.table({"value_0": [1], "value_1": ["a"]}),
        "recent": pa.array([1, 2]),
        "waiting": [(1.0, 2)],
        "nearest": pa.table({"value_0": [2.0, 1.0], "value_1": [1, 2]}),
        "after": 2,
    }
    with idle(initial=given) as engine:
        state = engine.state
        assert (state.before, state.label, state.after) == (5, "begin", 2.0)
        assert state.between.tolist() == [0, 1, 2, 3, 4]
        assert state.totals == {"a": 1, "b": 2}
        assert state.pairs == {("a", 1): (1.0, True, "t")}
        assert list(state.seen) == [(3, True), (1, False)]
        assert state.prices == [0.5, 1.5]
        assert state.names == [(1, "a")]
        assert list(state.recent) == [1, 2]
        assert state.nearest == [(1.0, 2), (2.0, 1)]
        again = state.to_dict()
        tables = {name: state.table(name) for name in CONTAINERS}
        snapshot = engine.snapshot()
        result = engine.process(events(4, 50))
        expected = engine.state.to_dict()
    for form in (again, {**again, **tables}):
        with idle(initial=form) as engine:
            assert_holds(engine, again)
    run = hold.run_sequential(events(4, 50), initial=given)
    assert run.output == result
    for name, value in run.state.to_dict().items():
        assert exactly(value) == exactly(expected[name])
    with idle(restore=snapshot) as engine:
        assert engine.process(events(4, 50)) == result


MISTAKES = [
    ({"none": 1}, "a field 'none', which the operator does not declare .it declares before,"),
    ({3: 1}, "a field 3, which"),
    ({"before": 0.5}, "float64 values for field 'before' that do not fit its type, int"),
    ({"between": [1, 2]}, r"shape \(2,\) for field 'between', which is declared with shape \(5,\)"),
    ({"label": 5}, "5 for field 'label', which holds strings: give a str"),
    ({"totals": 5}, "5 for field 'totals', which is a dict: expected a mapping, pairs"),
    ({"totals": "ab"}, "'ab' for field 'totals', which is a dict"),
    ({"totals": ["ab"]}, "'ab' as entry 0 for field 'totals', which is a dict"),
    ({"totals": {1: 1}}, "1 as key 0 of field 'totals', where type str is expected: convert it"),
    ({"totals": {"a": 1.0}}, "1.0 as value 0 of field 'totals', where type int is expected"),
    ({"totals": {"a": True}}, "True as value 0 of field 'totals'"),
    ({"totals": {"a": None}}, "None as value 0 of field 'totals'"),
    ({"totals": {"a": 2**63}}, "9223372036854775808 as value 0 of field 'totals', which is beyond"),
    ({"totals": {"\ud800": 1}}, "in field 'totals' a string '.ud800' has a lone surrogate"),
    ({"totals": [("a", 1), ("b", 2), ("a", 3)]}, "the key 'a' twice for field 'totals'"),
    ({"totals": pa.table({"k": ["a"]})}, "a table with the columns k for field 'totals'"),
    ({"totals": pa.table({"key": ["a", None], "value": [1, 2]})}, "1 null.s. as key of field 'tot"),
    ({"totals": pa.table({"key": ["a"], "value": [0.5]})}, "0.5 as value 0 of field 'totals'"),
    (
        {"totals": pa.table({"key": ["a"], "value": pa.array([2**63], pa.uint64())})},
        "for field 'totals' what does not fit",
    ),
    ({"pairs": {"a": (1.0, True, "")}}, r"'a' as key 0 for field 'pairs'; expected tuple.str, int"),
    ({"pairs": {("a", 1): (1.0, True)}}, r"\(1.0, True\) as value 0 for field 'pairs'; expected"),
    ({"pairs": {("a", 1): (2**53 + 1, True, "")}}, "9007199254740993 for field 'pairs'.*holds as"),
    ({"pairs": {("a", 1): (10**400, True, "")}}, "0 for field 'pairs', .* holds as inf"),
    ({"pairs": {("a", 1): (1.0, 1, "")}}, "1 as part 1 of value 0 of field 'pairs', where"),
    ({"seen": [(1, True), (1, True)]}, "the key 1, True twice for field 'seen'"),
    ({"seen": 5}, "5 for field 'seen', which is a set: expected an iterable of elements"),
    ({"prices": {"a"}}, "'a' as element 0 of field 'prices', where type float is expected"),
    ({"prices": "abc"}, "'abc' for field 'prices', which is a list"),
    ({"recent": range(6)}, "6 entries for field 'recent', whose maxlen is 5: give fewer"),
    ({"nearest": [(float("nan"), 1)]}, "a NaN for field 'nearest', which is in no order"),
    ({"nearest": [(1.0, 1), (1.0, "a")]}, "elements for field 'nearest' that have no order"),
    ([], r"initial=\[\]; expected a dict from field names to their values"),
]  # fmt: skip


@pytest.mark.parametrize(("initial", "message"), MISTAKES)
def test_what_does_not_fit_names_the_field(initial: Any, message: str) -> None:
    with pytest.raises(ss.ConfigurationError, match=f"engine of 'hold': .*{message}"):
        idle(initial=initial)
    with pytest.raises(ss.ConfigurationError, match=f"operator 'hold': .*{message}"):
        hold.run_sequential(events(1, 1), initial=initial)


def test_more_than_the_limit_and_two_beginnings_are_refused() -> None:
    many = {(n, True, ""): 0.5 for n in range(5)}
    with pytest.raises(ss.ConfigurationError, match="5 entries for field 'd', whose limit is 4"):
        idle(small, initial={"d": many})
    with idle(small) as engine:
        snapshot = engine.snapshot()
    with pytest.raises(ss.ConfigurationError, match="initial= and restore= both say"):
        idle(small, initial={}, restore=snapshot)


class Waiting(ss.State):
    fired = ss.list(str)
    timers = ss.timers(str)


def note(state, timer, emit):
    state.fired.append(timer.key)


@ss.operator(state=Waiting, event={"x": int}, on_timer=note)
def wait(state, event, emit):
    state.timers.set("set", event.timestamp + 5)


@pytest.mark.parametrize(
    "timers",
    [
        {"b": 9, "a": -5},
        [("b", 9), ("a", -5)],
        pa.table({"key": ["b", "a"], "value": [9, -5]}),
        pa.table({"value": [9, -5], "key": ["b", "a"]}).to_pandas(),
        {},
        [],
    ],
    ids=["dict", "pairs", "table", "frame", "no entries", "no pairs"],
)
def test_timers_are_given_as_a_dict_is(timers: Any) -> None:
    """At the beginning, to the oracle, and by what converts a snapshot."""
    expected = {"b": 9, "a": -5} if len(timers) else {}
    with idle(wait, initial={"timers": timers}) as engine:
        assert list(engine.state.timers.items()) == list(expected.items())
    none: dict[str, list[int]] = {"x": [], "time": []}
    run = wait.run_sequential(none, order_by="time", initial={"timers": timers})
    assert list(run.state.timers.items()) == list(expected.items())
    with idle(small, initial={"q": [1]}) as engine:
        snapshot = engine.snapshot()
    with idle(wait, restore=snapshot, migrate=lambda fields: {"timers": timers}) as engine:
        assert list(engine.state.timers.items()) == list(expected.items())
        engine.process({**none}, order_by="time", end=True)
        assert engine.state.fired == sorted(expected)


def test_timers_are_kept_with_their_clock() -> None:
    def at(*times: int) -> dict[str, list[int]]:
        return {"x": [0] * len(times), "time": list(times)}

    initial = {"timers": {"late": 100, "early": 10}}
    with idle(wait, initial=initial) as engine, idle(wait) as other:
        assert engine.state.timers == initial["timers"]
        engine.process(at(20), order_by="time")
        assert engine.state.fired == ["early"]
        assert engine.state.timers == {"late": 100, "set": 25}
        assert engine.state.timers["set"] == 25
        snapshot, savepoint = engine.snapshot(), engine.savepoint()
        engine.process(at(21, 200), order_by="time")
        assert engine.state.fired == ["early", "set", "late"]
        after = engine.snapshot()
        engine.rollback(savepoint)
        assert engine.snapshot() == snapshot
        engine.process(at(21, 200), order_by="time")
        assert engine.snapshot() == after
        other.restore(snapshot)
        other.process(at(21, 200), order_by="time")
        assert other.snapshot() == after
    with pytest.raises(ss.ConfigurationError, match="3 for field 'timers', which is a timers"):
        idle(wait, initial={"timers": 3})


class Plain(ss.State):
    alarms = ss.timers((str, int))
    seen = ss.dict(str, int)


class More(ss.State):
    before = ss.array(str, 3)
    rates = ss.dict(str, float)
    alarms = ss.timers((str, int))
    seen = ss.dict(str, int)
    behind = ss.scalar(float)


class Renamed(ss.State):
    seen = ss.dict(str, float)
    ringing = ss.timers((str, int))


def rings(state, timer, emit):
    emit(timer.key[0], timer.at, timer.timestamp, timer.sequence, timer.random(0))


def waits_for(state, event, emit):
    state.seen[event.user] = state.seen.get(event.user, 0) + 1
    state.alarms.set((event.user, event.wait), event.timestamp + event.wait)


def waits_elsewhere(state, event, emit):
    state.seen[event.user] = state.seen.get(event.user, 0.0) + 1.0
    state.ringing.set((event.user, event.wait), event.timestamp + event.wait)


def renamed(fields):
    return {"seen": {**fields["seen"]}, "ringing": fields["alarms"]}


@pytest.mark.parametrize(
    ("state", "migrate"),
    [
        (More, None),
        (More, lambda fields: fields),
        (More, lambda fields: {**fields, "behind": 0.5}),
        (Renamed, renamed),
    ],
    ids=["by name", "as they are", "more", "renamed"],
)
def test_timers_go_on_in_an_operator_that_has_changed(state: type[ss.State], migrate: Any) -> None:
    """Their clock, how many have fired, and those that are set, in their order."""
    emits = {"user": str, "at": int, "time": int, "number": int, "drawn": float}
    event = {"user": str, "wait": int}

    def made(of: type[ss.State]) -> ss.Operator:
        function = waits_elsewhere if of is Renamed else waits_for
        return ss.operator(name="wait", state=of, event=event, emits=emits, on_timer=rings)(
            function
        )

    def table(*rows: tuple[int, str, int]) -> dict[str, list[Any]]:
        return {name: [row[at] for row in rows] for at, name in enumerate(("time", "user", "wait"))}

    first = table((0, "b", 40), (1, "a", 39), (10, "c", -20), (30, "b", 2), (50, "c", 7))
    # An earlier table than the clock: what it sets fires at once, with the clock's time.
    second = table((33, "d", 1), (34, "a", 9), (60, "e", 500))
    options: dict[str, Any] = {"order_by": "time", "end": True}
    with ss.Engine(made(Plain), keys=True, threads=2, horizon=2) as engine:
        assert len(engine.process(first, order_by="time")) == 4
        snapshot = engine.snapshot()
        expected = engine.process(second, **options)
    assert expected["number"].to_pylist() == list(range(4, 8))
    assert min(expected["time"].to_pylist()) >= 50
    with ss.Engine(made(state), keys=True, restore=snapshot, migrate=migrate) as engine:
        assert engine.process(second, **options) == expected
        again = engine.snapshot()
    with ss.Engine(made(state), keys=True, restore=again) as engine:
        assert engine.snapshot() == again


def test_the_check_of_an_operator_begins_with_what_is_given() -> None:
    given = values(random.Random(8))
    run = ss.testing.check(hold, events(3, 80), initial=given)
    assert run.output == hold.run_sequential(events(3, 80), initial=given).output


@pytest.mark.slow
def test_a_forked_process_reads_what_was_there_at_the_fork() -> None:
    """By no lock or index of the engine, whose threads are not there."""
    with ss.Engine(hold, initial={"totals": {"a": 1}}) as engine:
        engine.process(events(1, 30))
        expected = engine.state.to_dict()["totals"]
        view = engine.state.totals
        child = os.fork()
        if child == 0:
            found = (
                engine.state.totals == expected
                and [view[key] for key in expected] == list(expected.values())
                and "none" not in engine.state.totals
                and len(engine.state.totals) == len(expected)
            )
            os._exit(0 if found else 1)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
