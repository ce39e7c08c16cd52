"""Elements narrower than a word, and what a store of a number that does not fit does."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import itertools
import math
import struct
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest
from conftest import Path, assert_identical, run_engine, run_oracle
from support.operators.families import Narrow, events, narrow_integers, narrow_others

import specstream as ss

NARROW_INTEGERS = [np.int8, np.int16, np.int32, np.uint8, np.uint16, np.uint32]
# In place, and speculating also where the head is.
IN_PLACE: dict[str, Any] = {"threads": 1, "horizon": 0}
SPECULATING: list[dict[str, Any]] = [
    {"threads": 2, "horizon": 4, "chunk": 1, "execution": "speculate"},
    {"threads": 2, "horizon": 4, "chunk": 1, "execution": "speculate", "protocol": "eager"},
]


def operator_of(dtype: type) -> ss.Operator:
    """Stores x, then adds one to it."""

    class State(ss.State):
        before = ss.array(dtype, 3)
        elements = ss.array(dtype, (2, 9))
        single = ss.scalar(dtype)
        local = ss.scratch(dtype, 2)

    @ss.operator(state=State, event={"x": int, "where": int}, emits={"x": int})
    def stores(state, event, emit):
        emit(state.elements[1, 4])
        state.before[0] = 1
        if event.where == 0:
            state.elements[1, 4] = event.x
        elif event.where == 1:
            state.single = event.x
        elif event.where == 2:
            state.local[1] = event.x
        elif event.where == 3:
            state.elements[0, 2:4] = event.x
        else:
            state.elements[1, 4] += event.x
        emit(state.elements[1, 4] + state.single + state.local[1])

    return stores


@pytest.mark.slow
@pytest.mark.parametrize("dtype", NARROW_INTEGERS, ids=lambda of: of.__name__)
def test_an_integer_that_does_not_fit_is_an_error_that_names_the_range(dtype: type) -> None:
    operator = operator_of(dtype)
    low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    values = [low - 1, low, high, high + 1, low - 2**32, high + 2**32, 2**63 - 1, -(2**63), 0]
    rows = [(x, where) for where in range(4) for x in values]
    # Augmented: from the least value up to the greatest, beyond it, and by 0.
    rows += [(low, 0), (high - low, 4), (1, 4), (0, 4)]
    x, where = zip(*rows, strict=True)
    table = pa.table({"x": np.array(x, np.int64), "where": np.array(where, np.int64)})
    expected = run_oracle(operator, table)
    fail = {0, 3, 4, 5, 6, 7}
    assert [row for row, _, _ in expected.raised] == [
        *(9 * case + of for case in range(4) for of in sorted(fail)),
        len(rows) - 2,
    ]
    for _, kind, message in expected.raised:
        assert kind == "OverflowError"
        assert f"is declared {dtype.__name__}, which holds {low} to {high}, and gets" in message
    assert "state.elements" in expected.raised[0][2]
    for options in [IN_PLACE, *SPECULATING]:
        assert_identical(run_engine(operator, table, **options), expected)


@pytest.mark.slow
@pytest.mark.parametrize("operator", [narrow_integers, narrow_others], ids=lambda of: of.name)
@pytest.mark.parametrize("execution", ["log_free", "locked"])
def test_direct_execution_stores_single_elements(operator: ss.Operator, execution: str) -> None:
    table = events(300)
    found = run_engine(operator, table, threads=1, execution=execution, seed=2)
    assert_identical(found, run_oracle(operator, table, seed=2))


def test_a_value_of_another_type_is_refused_under_the_declared_name() -> None:
    class State(ss.State):
        small = ss.array(np.int8, 4)

    @ss.operator(state=State, event={"x": float}, emits={})
    def keeps(state, event, emit):
        state.small[0] = event.x

    with pytest.raises(ss.CompileError, match="declared int8 and gets float64"):
        ss.Engine(keeps)
    with pytest.raises(TypeError, match=r"declared int8 and gets 1\.0"):
        keeps.run_sequential({"x": [1.0]})


def test_float32_rounds_to_nearest_as_numpy_does(path: Path) -> None:
    class State(ss.State):
        cells = ss.array(np.float32, 5)
        whole = ss.scalar(np.float32)

    @ss.operator(state=State, event={"x": float, "n": int}, emits={"x": float, "n": float})
    def rounds(state, event, emit):
        at = event.sequence % 5
        state.cells[at] = event.x
        state.whole = event.n
        emit(state.cells[at], state.whole)

    rng = np.random.default_rng(5)
    limits = np.finfo(np.float32)
    edges = [0.0, -0.0, math.inf, -math.inf, math.nan, -math.nan, 5e-324, 1e-45, 7e-46, 1e300]
    edges += [float(limits.max), float(limits.max) * 1.00000001, float(limits.max) * 1.0000001]
    edges += [1 + 2**-24, 1 + 3 * 2**-24, float(limits.tiny) / 3]
    edges += [struct.unpack("d", struct.pack("Q", 0xFFF0000000000001))[0]]
    bits = rng.integers(0, 2**64, 300, dtype=np.uint64, endpoint=False)
    x = np.concatenate([edges, bits.view(np.float64), rng.normal(size=100)])
    n = rng.integers(-(2**63), 2**63 - 1, len(x))
    n[:4] = [2**24 + 1, 2**53 + 2**29 + 1, -(2**63), 2**63 - 1]
    found = path(rounds, pa.table({"x": x, "n": n}))
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = x.astype(np.float32)
    rounded[np.isnan(x)] = np.float32(math.nan)
    output = found.output["x"].to_numpy()
    np.testing.assert_array_equal(output.view(np.int64), rounded.astype(float).view(np.int64))
    # Through float64: twice rounded where it matters, and the same everywhere.
    expected = n.astype(np.float64).astype(np.float32).astype(np.float64)
    np.testing.assert_array_equal(found.output["n"].to_numpy(), expected)
    assert found.state["cells"].dtype == np.float32


def test_uint64_holds_what_random_bits_give() -> None:
    class State(ss.State):
        hashes = ss.array(np.uint64, 4, fill=2**64 - 1)

    @ss.operator(state=State, event={"x": int}, emits={"x": int})
    def folds(state, event, emit):
        at = event.x % 4
        state.hashes[at] += 1
        state.hashes[at] ^= event.random_bits(0)
        emit(np.int64(state.hashes[at] >> 1))

    table = pa.table({"x": np.arange(50)})
    expected = run_oracle(folds, table, seed=3)
    assert expected.state["hashes"].dtype == np.uint64
    for options in [IN_PLACE, *SPECULATING]:
        assert_identical(run_engine(folds, table, seed=3, **options), expected)

    @ss.operator(state=State, event={"x": int}, emits={})
    def mixes(state, event, emit):
        state.hashes[0] = event.x

    with pytest.raises(ss.CompileError, match=r"np\.uint64\(x\)"):
        ss.Engine(mixes)
    with pytest.raises(TypeError, match="declared uint64"):
        mixes.run_sequential(table)


@pytest.mark.slow
def test_the_state_shows_arrays_of_the_declared_type() -> None:
    with ss.Engine(narrow_integers, threads=2) as engine:
        engine.process(events(100))
        found = {name: getattr(engine.state, name) for name in dir(engine.state)}
        u8 = engine.state.u8
    assert {name: value.dtype.name for name, value in found.items() if name in ("i8", "on")} == {
        "i8": "int8",
        "on": "bool",
    }
    for name in ("i16", "i32", "u8", "u16", "u32", "u64"):
        prefix, width = name[0], name[1:]
        assert found[name].dtype == np.dtype(f"{'u' if prefix == 'u' else ''}int{width}")
        assert not found[name].flags.writeable
    assert found["f32"].dtype == np.float32
    assert found["i16"].shape == (3, 5)
    assert type(found["least"]) is int
    assert type(found["newest"]) is float
    assert type(found["odd"]) is bool
    assert u8.any()  # its memory lives on


def test_fields_are_packed_and_start_on_a_word() -> None:
    layout = Narrow.layout()
    sizes = {field.name: (field.offset, field.words) for field in layout.fields}
    assert sizes["i8"] == (0, 3)  # 21 bytes
    assert sizes["i16"] == (3, 4)  # 30 bytes
    assert sizes["i32"] == (7, 5)
    assert sizes["least"][1] == 1
    assert sizes["work"] == (0, 2)
    used = sorted(sizes[f.name] for f in layout.fields if f.space == "state")
    assert all(a + words == b for (a, words), (b, _) in itertools.pairwise(used))
    assert layout.words("state") == sum(used[-1])


def test_a_snapshot_of_another_type_is_refused_by_name() -> None:
    def counter(dtype: type) -> ss.Operator:
        class State(ss.State):
            n = ss.scalar(int)
            flags = ss.array(dtype, 8, fill=1)

        @ss.operator(state=State, event={"x": int}, emits={})
        def count(state, event, emit):
            state.n += event.x

        return count

    with ss.Engine(counter(np.int8)) as engine:
        engine.process({"x": [1, 2, 3]})
        snapshot = engine.snapshot()
    with ss.Engine(counter(np.int8), restore=snapshot) as engine:
        assert engine.state.n == 6
        np.testing.assert_array_equal(engine.state.flags, np.ones(8, np.int8))
    # The first two take as many bytes.
    for other in (np.uint8, np.bool_, int):
        with pytest.raises(ss.SnapshotError, match="field 'flags' has kind int8"):
            ss.Engine(counter(other), restore=snapshot)


class WideFloats(ss.State):
    x = ss.scalar(float)
    row = ss.array(float, (2, 2))


class NarrowFloats(ss.State):
    x = ss.scalar(np.float32)
    row = ss.array(np.float32, (2, 2))


def keeper(state: type[ss.State]) -> ss.Operator:
    @ss.operator(name="keep", state=state, event={"v": float}, emits={})
    def keep(state, event, emit):
        state.x = event.v

    return keep


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"x": 1e300}, r"1e\+300 for field 'x', which is beyond the range of its type, float32"),
        ({"x": -3.5e38}, r"-3.5e\+38 for field 'x'.*within \+-3.40"),
        ({"row": [[0.1, 2.0], [-1e39, 0.0]]}, r"-1e\+39 at \[1, 0\] for field 'row'"),
        ({"row": np.array([[0.1, 1e300], [0.0, 1e301]])}, r"1e\+300 at \[0, 1\] for field 'row'"),
    ],
)
def test_a_float_beyond_the_range_of_its_field_is_refused_by_name(
    values: Any, message: str
) -> None:
    with pytest.raises(ss.ConfigurationError, match=f"initial= has {message}"):
        ss.Engine(keeper(NarrowFloats), initial=values)
    with ss.Engine(keeper(WideFloats), initial=values) as engine:
        snapshot = engine.snapshot()
    with pytest.raises(ss.SnapshotError, match=f"migrate= returned {message}"):
        ss.Engine(keeper(NarrowFloats), restore=snapshot, migrate=dict)


def test_a_float_that_is_given_is_rounded_as_one_that_is_stored() -> None:
    """What rounds to the largest, and what is infinite already, is within the range."""
    for value in (0.1, 3.4028235e38, float("inf"), float("-inf"), float("nan"), 1e-60):
        with ss.Engine(keeper(NarrowFloats)) as engine:
            engine.process({"v": [value]})
            stored = engine.state.x
        with ss.Engine(keeper(NarrowFloats), initial={"x": value}) as engine:
            np.testing.assert_array_equal(engine.state.x, stored)


@pytest.mark.parametrize(
    ("field", "message"),
    [
        (ss.array(np.int8, 3, fill=128), "field 'a' has fill 128, outside of int8"),
        (ss.array(np.uint32, 3, fill=-1), "field 'a' has fill -1, outside of uint32"),
        (ss.scalar(np.uint64, fill=2**64), "outside of uint64"),
        (ss.scalar(np.float32, fill=1e39), "outside of float32"),
        (ss.scalar(float, fill=10**400), "outside of float64"),
        (ss.array(np.int16, 3, fill=0.5), "expected a value of type int16"),
        (ss.array(np.bool_, 3, fill=2), "expected a value of type bool8"),
        (ss.array(np.int8, 3, fill=True), "expected a value of type int8"),
        (ss.array(np.float16, 3), r"has type float16; expected one of .*np\.int8.*np\.float32"),
        (ss.array(cast(Any, np.dtype(np.int8)), 3), "has type dtype"),
        (ss.array(int, 3, share=3), "field 'a' has share 3; expected .* a power of two"),
        (ss.array(int, 3, share=0), "has share 0"),
        (ss.array(int, 3, share=cast(Any, 2.0)), r"has share 2\.0"),
    ],
)
def test_a_declaration_that_cannot_be_is_refused(field: Any, message: str) -> None:
    class Bad(ss.State):
        a = field

    with pytest.raises(ss.DeclarationError, match=message):
        Bad.layout()


def test_neighbours_in_one_word_do_not_conflict() -> None:
    class State(ss.State):
        small = ss.array(np.uint8, 16)

    @ss.operator(state=State, event={"x": int}, emits={})
    def turns(state, event, emit):
        at = event.x % 16
        value = state.small[at] + event.sequence
        for _ in range(1000):
            value = (value ^ (value >> 7)) * 6364136223846793005
        state.small[at] = value % 256

    count = 2000
    options = SPECULATING[0]
    with ss.Engine(turns, **options) as engine:
        same = pa.table({"x": np.zeros(count, np.int64)})
        rounds = 0
        while engine.stats.aborts["conflict"] <= 10:
            assert rounds < 300, f"hardly any speculation: {engine.stats}"
            engine.process(same)
            rounds += 1
    # As many rounds in which no two events within the horizon have an element in common.
    with ss.Engine(turns, **options) as engine:
        for _ in range(rounds):
            engine.process(pa.table({"x": np.arange(count)}))
        assert engine.stats.aborts["conflict"] == 0


def test_fields_share_ownership_records_as_they_say() -> None:
    class State(ss.State):
        first = ss.scalar(int)
        second = ss.array(int, 3)
        rows = ss.array(np.int16, 100, share=8)
        more = ss.array(int, 5, share=8)
        last = ss.array(float, 7)
        local = ss.scratch(int, 4)
        end = ss.scalar(bool)

    layout = State.layout()
    assert layout.regions(2) == [(0, 2), (4, 3), (29, 3), (34, 2)]
    assert layout.regions(0) == [(0, 0), (4, 3), (29, 3), (34, 0)]
    assert "share" not in repr(layout)  # machine code does not depend on it
