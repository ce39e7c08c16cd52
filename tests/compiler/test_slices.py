"""Rows and slices: what NumPy makes of them, on every execution path."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from conftest import Path, assert_identical, run_engine, run_oracle

import specstream as ss
from specstream.structures import add, increment

LENGTH = 13


class Fields(ss.State):
    x = ss.array(int, LENGTH)
    y = ss.array(int, LENGTH)
    f = ss.array(float, (4, 6))
    cube = ss.array(int, (3, 4, 5))
    bytes = ss.array(np.uint8, (3, 9))
    flags = ss.array(np.bool_, 11)
    work = ss.scratch(int, (2, 7))


# A slice is of the first and of the second kind: a:b:c and d:e:g.
EVENT = {"what": int, "i": int, "v": int} | dict.fromkeys("abcdeg", int)


def reversed_into(target, source):
    """Views go to helpers as they are."""
    target[:] = source[::-1]
    return target[0]


def scale(target, i):
    """One element, or one row: as the type has it."""
    target[i] *= 2


@ss.operator(state=Fields, event=EVENT, emits={"found": float})
def slices(state, event, emit):
    a, b, c = event.a, event.b, event.c
    d, e, g = event.d, event.e, event.g
    i, v = event.i, event.v
    found = 0.0
    if event.what == 0:
        state.x[a:b:c] = v
    elif event.what == 1:
        state.x[a:b:c] = state.x[d:e:g]
    elif event.what == 2:
        state.y[a:b:c] = state.x[d:e:g]
    elif event.what == 3:
        part = state.x[a:b:c]
        found = float(sum(part) + len(part) + part.shape[0])
        if len(part) > 0:
            part[0] += v
            part[-1] = part[0] + 1
            found += float(min(part) + 2 * max(part))
    elif event.what == 4:
        state.f[i % 4] = float(v)
        state.f[i % 4, a:b:c] = state.f[(i + 1) % 4, d:e:g]
    elif event.what == 5:
        state.f[:, i % 6] = state.f[::-1, v % 6]
    elif event.what == 6:
        state.cube[a:b:c, 1:, ::2] = state.cube[d:e:g, 2:0:-1, 1:4]
    elif event.what == 7:
        state.cube[i % 3] = state.cube[0, 1]
        state.cube[1:, i % 4, :] = v
    elif event.what == 8:
        state.bytes[1:3, a:b:c] = state.bytes[0:2, d:e:g]
        state.bytes[i % 3, 2:7] = v
    elif event.what == 9:
        state.work[:, :5] = state.cube[0, :2]
        state.work[1, 1:] = state.work[0, :6]
        state.cube[2, 1] = state.work[1, 1:6]
        found = float(sum(state.work[1]))
    elif event.what == 10:
        found = float(reversed_into(state.x[a:b:c], state.x[a:b:c])) if b - a > 99 else 0.0
        found += float(reversed_into(state.y, state.y))
        found += float(reversed_into(state.cube[i % 3, 1], state.cube[i % 3, 1]))
    elif event.what == 11:
        for row in state.cube[a:b:c]:
            for element in row[i % 4]:
                found = found * 3.0 + float(element)
            row[0] = row[1]
    elif event.what == 12:
        state.flags[a:b:c] = state.flags[d:e:g]
        state.flags[3:] = v % 2 == 0
    elif event.what == 13:
        state.f[a:b:c] = state.x[:6]
        state.f[1:3] = state.flags[2:8]
    elif event.what == 14:
        state.x[a:b:c] += state.x[d:e:g]
        state.f[:, 1:3] *= 0.5
        state.cube[1:, i % 4, :] -= state.cube[2, i % 4]
        state.cube[0, :, ::2] ^= v
        state.bytes[i % 3, ::2] //= 2
        state.y[2:9] += state.bytes[1, 1:8]
    elif event.what == 15:
        state.cube[i % 3] += 1
        state.cube[i % 3, v % 4] -= state.cube[0, i % 4]
        state.cube[v % 3][1:3] |= state.cube[i % 3, 1]
        state.f[i % 4] += state.x[d : d + 6]
        block = state.cube[v % 3]
        block[i % 4] ^= v
        block[i % 4, v % 5] += 2
        scale(state.f, i % 4)
        scale(state.y, i % 13)
        state.x[a:b:c] %= 97
        state.x[a:b:c] **= state.x[d:e:g]
        state.cube[1, 1:3] %= 11
        state.cube[1, 1:3] **= 3
        state.cube[1, 2] **= 2
    else:
        window = state.x[a:b:c][d:e:g]
        window[::2] = i
        found = float(sum(window))
        if i in window:
            found += 0.5
    emit(found)


def slice_of(rng: np.random.Generator, length: int) -> tuple[int, int, int]:
    """Bounds beyond both ends, steps of both signs, often nothing at all."""
    step = int(rng.choice([-3, -2, -1, 1, 1, 1, 2, 3]))
    low, high = rng.integers(-length - 3, length + 4, 2)
    return int(low), int(high), step


def slices_that_fit(rng: np.random.Generator, length: int) -> tuple[int, ...]:
    """Two slices of the same length, as a rule; now and then of one element, or none that fit."""
    while True:
        one, other = slice_of(rng, length), slice_of(rng, length)
        lengths = [len(range(length)[slice(*part)]) for part in (one, other)]
        if lengths[0] == lengths[1] and (lengths[0] > 1 or rng.random() < 0.2):
            return (*one, *other)
        if lengths[1] == 1 and rng.random() < 0.05:
            return (*one, *other)
        if rng.random() < 0.0005:
            return (*one, *other)


AXIS = {4: 6, 6: 3, 8: 9, 11: 3, 12: 11, 13: 4}  # that a:b:c cuts, by kind of event


def events(count: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(count):
        what = int(rng.integers(0, 17))
        bounds = slices_that_fit(rng, AXIS.get(what, LENGTH))
        rows.append((what, *map(int, rng.integers(0, 40, 2)), *bounds))
    return pa.table(dict(zip(EVENT, map(list, zip(*rows, strict=True)), strict=True)))


def run_numpy(table: pa.Table) -> tuple[list[float], dict[str, Any], list[int]]:
    """The very same function, over NumPy's arrays; what raises is undone."""
    layout = Fields.layout()
    arrays = {
        field.name: np.zeros(
            field.shape, bool if field.storage.number == "bool" else field.storage.dtype
        )
        for field in layout.fields
    }
    emitted: list[float] = []
    raised = []
    for row, event in enumerate(table.to_pylist()):
        before = {name: array.copy() for name, array in arrays.items()}
        arrays["work"][...] = 0
        mark = len(emitted)
        try:
            slices.function(SimpleNamespace(**arrays), SimpleNamespace(**event), emitted.append)
        except ValueError:
            raised.append(row)
            del emitted[mark:]
            for name, array in before.items():
                arrays[name][...] = array
    del arrays["work"]
    return emitted, arrays, raised


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return events(1200, seed=5)


def test_the_oracle_is_numpy(table: pa.Table) -> None:
    emitted, arrays, raised = run_numpy(table)
    found = run_oracle(slices, table)
    assert found.output["found"].to_pylist() == emitted
    assert [row for row, _, _ in found.raised] == raised
    assert 5 < len(raised) < 200
    assert all(kind == "ValueError" for _, kind, _ in found.raised)
    for name, array in arrays.items():
        np.testing.assert_array_equal(found.state[name], array, err_msg=name)
        assert array.any()


@pytest.mark.slow
def test_every_path_is_the_oracle(path: Path, table: pa.Table) -> None:
    assert_identical(path(slices, table), run_oracle(slices, table))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("protocol", ["value", "eager"])
def test_random_slices_under_conflicts(seed: int, protocol: str) -> None:
    table = events(600, seed=100 + seed)
    found = run_engine(slices, table, threads=3, horizon=16, chunk=2, protocol=protocol)
    assert_identical(found, run_oracle(slices, table))


def test_a_shape_that_does_not_fit_is_an_error_with_its_line() -> None:
    @ss.operator(state=Fields, event={"n": int}, emits={"n": int})
    def misfit(state, event, emit):
        state.x[: event.n] = state.y[:4]  # planted
        emit(event.n)

    with (
        ss.Engine(misfit, threads=2, horizon=4, chunk=2) as engine,
        pytest.raises(ValueError, match=r"broadcast elements of state\.y of shape") as info,
    ):
        engine.process({"n": [4, 4, 5, 4]})
    partial = info.value.specstream_partial  # type: ignore[attr-defined]
    assert partial.consumed == 2
    assert "planted" in str(info.traceback[-3].statement) or any(
        "planted" in str(entry.statement) for entry in info.traceback
    )


def test_slices_that_share_one_element() -> None:
    @ss.operator(state=Fields, event={"i": int}, emits={"first": int, "last": int})
    def shifts(state, event, emit):
        for at in range(13):
            state.x[at] = at + event.i
        state.x[3:6] = state.x[1:4]  # its last is the first that is assigned
        emit(state.x[3], state.x[5])

    table = pa.table({"i": [0, 7]})
    expected = run_oracle(shifts, table)
    assert expected.output.to_pydict() == {"first": [1, 8], "last": [3, 10]}
    for options in ({"horizon": 0}, {"threads": 2, "horizon": 4, "execution": "speculate"}):
        assert_identical(run_engine(shifts, table, **options), expected)


def test_an_array_is_not_an_element() -> None:
    @ss.operator(state=Fields, event={"n": int}, emits={"n": int})
    def wrong(state, event, emit):
        state.x[event.n] = state.y

    with pytest.raises(ss.CompileError, match="an array is assigned to one element") as info:
        ss.Engine(wrong)
    assert info.value.line == wrong.function.__code__.co_firstlineno + 2


@pytest.mark.slow
def test_powers_of_rows_and_slices(path: Path) -> None:
    class Powers(ss.State):
        n = ss.array(int, (2, 6), fill=3)
        f = ss.array(float, (3, 4), fill=1.25)
        u = ss.array(np.uint64, 5, fill=7)
        w = ss.array(np.int16, 6, fill=-5)

    @ss.operator(state=Powers, event={"i": int, "v": int}, emits={"z": float})
    def powers(state, event, emit):
        i, v = event.i, event.v
        if v == 0:
            state.f[:] = 1.25
            state.w[:] = i - 9
        state.f[i % 3] **= 0.5
        state.f[:, 1:] **= 1.75
        state.f[i % 3, 0] **= v
        state.n[i % 2, 1:4] **= v  # raises for a negative one
        state.n[i % 2] **= state.n[1 - i % 2, :1]
        state.n[:] &= 7
        state.u[1:] **= 3
        state.u[i % 5] += 1
        state.w[i % 2 :: 2] **= 2  # raises where it does not fit
        state.w[:] %= 190
        emit(sum(state.f[i % 3]) + float(sum(state.n[0])))

    rng = np.random.default_rng(3)
    table = pa.table({"i": rng.integers(0, 30, 200), "v": rng.integers(-2, 6, 200)})
    expected = run_oracle(powers, table)
    assert 20 < len(expected.raised) < 150
    assert_identical(path(powers, table), expected)


def test_a_row_of_integers_takes_no_floats() -> None:
    @ss.operator(state=Fields, event={"n": int}, emits={"n": int})
    def wrong(state, event, emit):
        emit(0)
        state.cube[event.n, 1] /= 2

    with pytest.raises(ss.CompileError, match="declared int and gets float") as info:
        ss.Engine(wrong)
    assert info.value.line == wrong.function.__code__.co_firstlineno + 3


def test_an_array_of_more_axes_is_not_added_to_a_row() -> None:
    @ss.operator(state=Fields, event={"n": int}, emits={"n": int})
    def wrong(state, event, emit):
        state.cube[event.n] += state.cube[0]

    with pytest.raises(ss.CompileError, match="write a loop over its rows") as info:
        ss.Engine(wrong)
    assert info.value.line == wrong.function.__code__.co_firstlineno + 2


def test_a_slice_of_floats_does_not_go_into_integers() -> None:
    @ss.operator(state=Fields, event={"n": int}, emits={"n": int})
    def wrong(state, event, emit):
        state.x[:6] = state.f[0]

    with pytest.raises(ss.CompileError, match="declared int and gets float"):
        ss.Engine(wrong)


WIDE = 50  # a row that is logged as a whole when it is stored


class Rows(ss.State):
    grid = ss.array(int, (5, WIDE))
    heat = ss.array(float, (4, WIDE), fill=0.25)
    marks = ss.array(np.uint64, 2 * WIDE)
    flags = ss.array(bool, WIDE)
    cube = ss.array(int, (3, 8, 10), share=4)
    bytes = ss.array(np.uint8, WIDE)
    work = ss.scratch(int, WIDE)


@ss.operator(
    state=Rows,
    event={"what": int, "i": int, "a": int, "b": int, "v": int, "f": float},
    emits={"found": float},
)
def overwrites(state, event, emit):
    what, i, a, b, v = event.what, event.i, event.a, event.b, event.v
    row = state.grid[i % 5]
    found = 0.0
    if what == 0:
        row[a:b] = v
    elif what == 1:
        row[:] = state.grid[v % 5]
        row[a] += v
        found = float(row[a] + row[b % WIDE])
    elif what == 2:
        row[a:] = row[: WIDE - a]
        add(row, b % WIDE, v)
        found = float(sum(row))
    elif what == 3:
        state.grid[1:4] = v
        state.grid[2, a] = i
        found = float(sum(state.grid[v % 5, a // 2 :]) + max(state.grid[3]))
    elif what == 4:
        add(row, a, v)
        row[: a + 30] = b
        found = float(increment(row, a) + increment(row, b % WIDE))
    elif what == 5:
        state.heat[i % 4] = row
        state.heat[v % 4, a:] = event.f
        found = state.heat[v % 4, a] + state.heat[i % 4, b % WIDE]
    elif what == 6:
        state.heat[i % 4, : b % WIDE] = state.heat[v % 4, : b % WIDE]
        if state.heat[i % 4, 0] > 1.0:
            state.heat[:, a] = event.f
    elif what == 7:
        state.marks[a : a + b] = np.uint64(v)
        state.marks[b % WIDE] += np.uint64(1)
        state.flags[a // 3 :] = state.grid[0, a] % 2 == 0
        found = float(sum(state.flags)) + float(sum(state.marks))
    elif what == 8:
        state.cube[i % 3] = v
        state.cube[1:, a % 8, ::2] = i
        state.cube[i % 2] = state.cube[2]
        found = float(sum(state.cube[i % 2, a % 8]))
    elif what == 9:
        state.bytes[a:] = v % 256
        row[:] = state.bytes
        state.work[:] = row
        state.work[a] = i
        state.grid[v % 5] = state.work
    elif what == 10:
        row[:] = v
        if row[a] % 3 == 0:
            row[WIDE + (v % 2)] = i  # raises
        found = float(row[0])
    else:
        row[0:40] = v
        row[40:50] = i
        row[10:45] = b
        row[12:44] = state.grid[(i + 1) % 5, 3:35]
        for j in range(0, WIDE, 7):
            found = found * 1.5 + float(row[j])
    emit(found)


def row_events(count: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    floats = rng.choice([-0.0, math.nan, math.inf, 0.1, 2.5], count)
    return pa.table(
        {
            "what": rng.integers(0, 12, count),
            "i": rng.integers(0, 40, count),
            "a": rng.integers(0, WIDE, count),
            "b": rng.integers(0, 2 * WIDE, count),
            "v": rng.integers(0, 1000, count),
            "f": floats,
        }
    )


@pytest.mark.slow
def test_rows_overwritten_as_a_whole(path: Path) -> None:
    table = row_events(900, seed=8)
    expected = run_oracle(overwrites, table)
    assert 20 < len(expected.raised) < 80
    assert_identical(path(overwrites, table), expected)


@pytest.mark.parametrize("protocol", ["value", "eager"])
def test_a_row_that_is_overwritten_is_logged_at_half_the_size(protocol: str) -> None:
    class Long(ss.State):
        x = ss.array(int, 1001)
        y = ss.array(int, (10, 100))

    @ss.operator(state=Long, event={"n": int}, emits={"n": int})
    def assigns(state, event, emit):
        state.x[:] = event.n
        state.y[:] = state.x[1:101]
        state.x[3] = 7
        emit(state.x[1000] + state.y[9, 99])

    def aborts(limit: int) -> int:
        with ss.Engine(
            assigns,
            protocol=protocol,
            horizon=2,
            chunk=1,
            execution="speculate",
            limits=ss.Limits(writes=limit),
        ) as engine:
            found = engine.process({"n": range(20)})
            assert found["n"].to_pylist() == [2 * n for n in range(20)]
            return int(engine.stats.aborts["log_full"])

    entries = 1 + 501 + 1 + 500
    assert aborts(entries - 1) > 0
    # Under `eager` records are locked one by one, and the limit is theirs, too.
    assert aborts(entries if protocol == "value" else 2001) == 0
