"""Fields that hold strings: in operators, in views of the state, in snapshots, and migrated."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from conftest import assert_identical, run_engine, run_oracle
from support import witness

import specstream as ss
from specstream.checkpoint.inspect.difference import first_difference_of_states
from specstream.declarations.codes import string_code
from specstream.declarations.state_content import StateContent
from specstream.engine.snapshot import Snapshot
from specstream.structures import add, increment


class Names(ss.State):
    last = ss.scalar(str)
    first = ss.scalar(str, fill="none")
    names = ss.array(str, 8)
    grid = ss.array(str, (2, 40), fill="x")
    work = ss.scratch(str, 4)
    code = ss.scalar(int)
    share = ss.scalar(float)
    codes = ss.array(int, 8)


EVENT: dict[str, Any] = {"s": str, "t": ss.nullable(str), "k": int}
EMITS: dict[str, Any] = {"a": ss.nullable(str), "b": str, "n": int}
WORDS = ["one", "", "two", "three", "two", "über"]


def table(count: int = 200) -> pa.Table:
    random = np.random.default_rng(7)
    words = [WORDS[at] for at in random.integers(0, len(WORDS), count)]
    nulls = [
        None if at == 0 else word
        for at, word in zip(random.integers(0, 4, count), words, strict=True)
    ]
    return pa.table({"s": words, "t": nulls, "k": random.integers(0, 100, count)})


def declared(function: Callable[..., None]) -> ss.Operator:
    return ss.operator(state=Names, event=EVENT, emits=EMITS)(function)


def shorter(one, other):
    return one if one in ("", "two") else other


def everything(state, event, emit):
    before = state.last
    if state.first == "none":
        state.first = event.s
    if not state.work[1]:
        state.work[1] = event.s
    n = 0
    if state.last:
        n += 1
    if state.last in ("one", "two") or event.s in state.names:
        n += 2
    seen: dict[str, int] = {}
    for one in state.names:
        seen[one] = seen.get(one, 0) + 1
    n += 10 * len(seen) + 1000 * seen.get(state.last, 0)
    n += 10000 * len({x for x in state.names if x})
    n += 100000 * int((state.names == event.s).sum())
    n += 10000000 * int(state.names.any() and not state.names.all())
    match state.last:
        case "":
            n = -n
        case "two" | "three":
            n += 100
    state.names[event.k % 8] = event.s
    state.names[0], state.names[1] = state.names[1], state.names[0]
    state.grid[0, :8] = state.names
    state.grid[1] = shorter(state.last, state.first)
    kept = state.names.copy()
    best = None
    if kept[3] != state.grid[0, 3] or event.k > 50:
        best = kept.tolist()[3]
    state.last = event.t if event.k % 3 else event.s
    emit(best, f"{before!r:>8}|{state.last:^7}|{state.work[1]}|{n:,}|{n / 7:.2f}", n)
    emit(state.last, str(state.first), event.k)


def codes_in_ints(state, event, emit):
    """As version 0.1 had it."""
    emit(state.code, f"{state.code}", int(state.code == event.s))
    state.codes[event.k % 8] = state.last
    state.code = event.s
    state.last = event.s


@pytest.mark.slow
@pytest.mark.parametrize("function", [everything, codes_in_ints])
def test_strings_of_the_state_are_those_of_plain_python(function: Callable[..., None]) -> None:
    operator = declared(function)
    ss.testing.check(operator, table())
    witness.assert_agrees(operator, table())


def test_a_view_of_the_state_has_strings() -> None:
    operator = declared(everything)
    expected = run_oracle(operator, table())
    assert_identical(run_engine(operator, table(), threads=2, horizon=4), expected)
    with ss.Engine(operator) as engine:
        assert (engine.state.last, engine.state.first) == ("", "none")
        engine.process(table())
        state = engine.state
        assert isinstance(state.last, str)
        assert state.names.dtype == object
        assert {type(one) for one in state.names} == {str}
        assert state.grid.shape == (2, 40)
        assert set(state.grid[0, 8:]) == {"x"}
        with pytest.raises(ValueError, match="read-only"):
            state.names[0] = "x"
        copied = state.to_dict()
        assert copied["last"] == state.last
        copied["names"][0] = "mine"
        assert state.names[0] != "mine"
    assert state.last == expected.state["last"]
    assert "names: 8 text, 64 bytes, 8 words" in str(operator.explain())


def test_a_new_state_is_all_zeros_and_an_empty_string_is_zero_again() -> None:
    @ss.operator(state=Names, event={"s": str}, emits={})
    def keep(state, event, emit):
        state.last = event.s

    layout = Names.layout()
    last = layout.field("last")
    assert last is not None
    for path in ({"threads": 1, "horizon": 0}, {"threads": 2, "execution": "speculate"}):
        with ss.Engine(keep, **path) as engine:
            assert engine.durable.words[last.offset] == 0
            engine.process({"s": ["one"]})
            assert engine.durable.words[last.offset] == string_code("one")
            engine.process({"s": [""]})
            assert engine.durable.words[last.offset] == 0


def test_the_first_difference_of_two_states_is_told_by_their_strings() -> None:
    one, other = (
        declared(everything).run_sequential(table().slice(0, length)).state for length in (3, 4)
    )
    assert first_difference_of_states(one, one) is None
    found = first_difference_of_states(one, other)
    assert found is not None
    assert (found.recorded, found.replayed) == (one.last, other.last)
    assert one.last != other.last


# ---- what is refused ----


def stores_a_number(state, event, emit):
    state.last = event.k


def stores_a_code(state, event, emit):
    state.last = state.code


def stores_none(state, event, emit):
    state.last = None


def stores_numbers(state, event, emit):
    state.names[:4] = state.codes[:4]


def fills_with_a_number(state, event, emit):
    state.names.fill(0)


def is_stored_to_a_float(state, event, emit):
    state.share = state.last


def takes_the_last(state, event, emit):
    state.last = state.names.max()


def sums(state, event, emit):
    state.code = sum(state.names)


def joins(state, event, emit):
    state.last += event.s


def spells(state, event, emit):
    state.last = state.last[0]


def shouts(state, event, emit):
    state.last = state.last.upper()


def converts(state, event, emit):
    state.code = int(state.last)


def adds(state, event, emit):
    add(state, "last", event.k)


def counts(state, event, emit):
    increment(state.names, 0)


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (stores_a_number, "'last' is declared str and gets int64; keep it in a field of numbers"),
        (stores_a_code, "'last' is declared str and gets int64; keep it in a field of numbers"),
        (stores_none, "field 'last' is declared str and gets none; write \"\" for no string"),
        (stores_numbers, "an array is declared str and gets int64"),
        (fills_with_a_number, "an array is declared str and gets int64"),
        (is_stored_to_a_float, "'share' is declared float and gets string; keep it in a field"),
        (takes_the_last, "max of a string: "),
        (sums, "sum of a string: .* have no arithmetic here"),
        (joins, r"\+ of a string: .* have no arithmetic here"),
        (spells, r"\[\] of a string: .* have no letters here"),
        (shouts, "upper of a string: .* have no letters here"),
        (converts, "int of a string: .* is not a number here"),
        (adds, "add works on numbers, and field 'last' is declared str"),
        (counts, "increment counts in an array, which is declared str"),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_what_codes_cannot_do_is_refused(function: Callable[..., None], said: str) -> None:
    with pytest.raises(ss.CompileError, match=said) as found:
        ss.Engine(declared(function))
    assert found.value.line == function.__code__.co_firstlineno + 1
    with pytest.raises(ss.CompileError):
        declared(function).run_sequential({"s": ["a"], "t": ["b"], "k": [1]})


@pytest.mark.parametrize("fill", [0, 1.5, b"x", True])
def test_a_fill_is_a_string(fill: Any) -> None:
    class Wrong(ss.State):
        last = ss.scalar(str, fill=fill)

    with pytest.raises(ss.DeclarationError, match=r"field .last. has fill .* expected a string"):
        Wrong.layout()


def test_a_fill_is_unicode() -> None:
    class Wrong(ss.State):
        last = ss.scalar(str, fill="\udc80")

    with pytest.raises(ss.DeclarationError, match="lone surrogate"):
        Wrong.layout()


# ---- kept and brought back ----

ANOTHER_PROCESS = """
import pickle, sys
import specstream as ss
operator, snapshot = pickle.loads(sys.stdin.buffer.read())
with ss.Engine(operator, restore=snapshot) as engine:
    output = engine.process({"s": ["one"], "t": [None], "k": [3]})
    found = engine.state.first, engine.state.names.tolist(), output.to_pylist()
sys.stdout.buffer.write(pickle.dumps(found))
"""


@pytest.mark.slow
def test_a_snapshot_has_the_strings_for_another_process() -> None:
    operator = declared(everything)
    with ss.Engine(operator) as engine:
        engine.process(table())
        snapshot = engine.snapshot()
        output = engine.process({"s": ["one"], "t": [None], "k": [3]})
        expected = engine.state.first, engine.state.names.tolist(), output.to_pylist()
    done = subprocess.run(
        [sys.executable, "-c", ANOTHER_PROCESS],
        input=pickle.dumps((operator, snapshot)),
        capture_output=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    assert pickle.loads(done.stdout) == expected


class Before(ss.State):
    last = ss.scalar(int)
    names = ss.array(int, 3)


class After(ss.State):
    last = ss.scalar(str)
    names = ss.array(str, 3)
    new = ss.scalar(str, fill="new")


def keeps(state, event, emit):
    state.last = event.s
    state.names[event.k] = event.s


def operator_of(state: type[ss.State]) -> ss.Operator:
    return ss.operator(state=state, event={"s": str, "k": int}, emits={})(keeps)


def snapshot_of_codes() -> bytes:
    with ss.Engine(operator_of(Before)) as engine:
        engine.process({"s": ["one", "", "two"], "k": [0, 1, 0]})
        return engine.snapshot()


@pytest.mark.slow
def test_codes_in_int_fields_become_strings_by_a_migration() -> None:
    with pytest.raises(ss.SnapshotError, match="'last' has kind int in the snapshot and kind str"):
        ss.Engine(operator_of(After), restore=snapshot_of_codes())
    with ss.Engine(operator_of(After), restore=snapshot_of_codes(), migrate=dict) as engine:
        assert engine.state.last == "two"
        assert engine.state.names.tolist() == ["two", "", ""]
        assert engine.state.new == "new"
        snapshot = engine.snapshot()
    with ss.Engine(operator_of(After), restore=snapshot) as engine:
        assert engine.state.names.tolist() == ["two", "", ""]


def test_a_migration_gets_and_gives_strings() -> None:
    def louder(old: dict[str, Any]) -> dict[str, Any]:
        assert isinstance(old["last"], str)
        return {"last": old["last"].upper(), "names": [one + "!" for one in old["names"]]}

    with ss.Engine(operator_of(After), restore=snapshot_of_codes(), migrate=dict) as engine:
        snapshot = engine.snapshot()
    with ss.Engine(operator_of(After), restore=snapshot, migrate=louder) as engine:
        assert engine.state.last == "TWO"
        assert engine.state.names.tolist() == ["two!", "!", "!"]
        assert engine.state.new == "new"


@pytest.mark.parametrize("given", [5, 1.5, None, [["a", "b", "c"]]])
def test_a_migration_to_what_is_no_string_is_refused(given: Any) -> None:
    def wrong(old: dict[str, Any]) -> dict[str, Any]:
        return {"names": given if isinstance(given, list) else [given] * 3}

    with pytest.raises(ss.SnapshotError, match=r"returned .* for field 'names'"):
        ss.Engine(operator_of(After), restore=snapshot_of_codes(), migrate=wrong)


def test_a_snapshot_with_a_code_of_no_string_is_refused() -> None:
    layout = After.layout()
    words = layout.allocate()
    words[1] = 12345
    state = StateContent.of(layout, words)
    crafted = Snapshot(state, 0, pa.chunked_array([["new"]], pa.large_string())).to_bytes()
    with pytest.raises(ss.SnapshotError, match="field 'names' holds the code 12345 of no string"):
        ss.Engine(operator_of(After), restore=crafted)
