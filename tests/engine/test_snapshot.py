"""Snapshots: what was kept comes back, also into an operator that has changed, or nothing does."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import itertools
import json
import struct
import sys
import threading
import tracemalloc
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import specstream as ss
from specstream.declarations.state_layout import Layout
from specstream.declarations.state_view import StateView


class Old(ss.State):
    n = ss.scalar(int)
    total = ss.scalar(float)
    counts = ss.array(int, 8)
    seen = ss.array(bool, (2, 4))


def count(state, event, emit):
    state.n += 1
    state.total += event.x / 2
    state.counts[event.x % 8] += event.x
    state.seen[event.x % 2, event.x % 4] = True


def build(state: type[ss.State], function: Callable[..., None] = count) -> ss.Operator:
    return ss.operator(state=state, event={"x": int})(function)


old = build(Old)
EVENTS = {"x": list(range(100, 143))}


def snapshot_of(operator: ss.Operator = old) -> tuple[bytes, dict[str, Any]]:
    """A snapshot after some events, and the state in it."""
    with ss.Engine(operator, horizon=0) as engine:
        engine.process(EVENTS)
        return engine.snapshot(), engine.state.to_dict()


def assert_same(found: dict[str, Any], expected: dict[str, Any]) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert np.asarray(found[name]).tobytes() == np.asarray(value).tobytes(), name


# ---- the format ----


def first_format(header: bytes, words: bytes) -> bytes:
    body = header + words
    return b"SPECSNP1" + struct.pack("<IQ", zlib.crc32(body), len(header)) + body


def test_snapshots_of_the_first_format_are_read() -> None:
    """Written here by hand, so that no change of the code changes it as well."""
    header = json.dumps(
        {
            "state": "Old",
            "fields": [
                {"name": "n", "kind": "int", "shape": []},
                {"name": "total", "kind": "float", "shape": []},
                {"name": "counts", "kind": "int", "shape": [8]},
                {"name": "seen", "kind": "bool", "shape": [2, 4]},
            ],
            "next_sequence": 7,
            "strings": ["EWR"],
        }
    ).encode()
    words = struct.pack("<qd8q8q", 7, -0.5, *range(8), *[0, 1] * 4)
    snapshot = first_format(header, words)
    with ss.Engine(old, horizon=0, restore=snapshot) as engine:
        expected = {
            "n": np.int64(7),
            "total": np.float64(-0.5),
            "counts": np.arange(8),
            "seen": np.array([[False, True] * 2] * 2),
        }
        assert_same(engine.state.to_dict(), expected)
        assert engine.durable.next_sequence == 7
        assert engine.durable.strings.strings() == ["EWR"]
        # Nothing refers to that one, so this version leaves it out.
        assert engine.snapshot() == first_format(header.replace(b'["EWR"]', b"[]"), words)


@pytest.mark.parametrize("nothing", [b"", bytearray(), memoryview(b"")])
def test_no_bytes_are_said_to_be_none(nothing: Any) -> None:
    for use in (ss.describe_snapshot, lambda given: ss.Engine(old, restore=given)):
        with pytest.raises(ss.SnapshotError, match=r"empty one \(0 bytes\): give what snapshot\("):
            use(nothing)


@pytest.mark.parametrize("length", [0, 5, 12, 19, 20, 21, 200, -1])
def test_a_damaged_snapshot_is_refused(length: int) -> None:
    snapshot, _ = snapshot_of()
    with pytest.raises(ss.SnapshotError, match=r"engine of 'count': .*(damaged|no snapshot)"):
        ss.Engine(old, restore=snapshot[:length])
    with pytest.raises(ss.SnapshotError, match=r"damaged"):
        ss.Engine(old, restore=snapshot[:-1] + b"x")
    with pytest.raises(ss.SnapshotError, match=r"no snapshot"):
        ss.Engine(old, restore="hello, hello, hello, hello")  # type: ignore[arg-type]


def test_a_snapshot_takes_two_copies_of_the_state_and_restoring_it_takes_none() -> None:
    class Wide(ss.State):
        a = ss.array(int, 1 << 22)

    def touch(state, event, emit):
        state.a[event.x] += 1

    size = 8 << 22
    with ss.Engine(build(Wide, touch), horizon=0) as engine:
        engine.process({"x": [1, 1 << 21, (1 << 22) - 1]})
        tracemalloc.start()
        try:
            snapshot = engine.snapshot()
            assert 2 * size <= tracemalloc.get_traced_memory()[1] < 2.1 * size
            del snapshot
            snapshot = engine.snapshot()
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            engine.restore(snapshot)
            assert tracemalloc.get_traced_memory()[1] - before < 0.1 * size
        finally:
            tracemalloc.stop()
        assert engine.snapshot() == snapshot
        assert np.flatnonzero(engine.state.a).tolist() == [1, 1 << 21, (1 << 22) - 1]


# ---- while others look ----


class Large(ss.State):
    filled = ss.array(int, 1 << 18)
    n = ss.scalar(int)


def fill(state, event, emit):
    state.filled[:] = event.x
    state.n = event.x


def looked_at(engine: ss.Engine, do: Callable[[int], object]) -> list[bytes]:
    """Snapshots that another thread takes while this one does something again and again."""
    snapshots: list[bytes] = []
    errors: list[BaseException] = []
    over = threading.Event()

    def look() -> None:
        try:
            while not over.is_set():
                snapshots.append(engine.snapshot())
        except BaseException as error:
            errors.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    reader = threading.Thread(target=look)
    reader.start()
    try:
        for number in itertools.count():
            do(number)
            if errors or (len(snapshots) > 60 and number > 60):
                break
    finally:
        over.set()
        reader.join()
        sys.setswitchinterval(interval)
    assert not errors, errors
    return snapshots


@pytest.mark.parametrize("back", ["restore", "rewind"])
def test_nobody_sees_a_state_half_put_back(back: str) -> None:
    operator = build(Large, fill)
    snapshots = []
    for value in (1, 2, 3):
        with ss.Engine(operator, threads=2) as engine:
            engine.process({"x": [value]})
            for number in range(value):
                engine.submit_event(number, f"{value} {number}", x=value)
            snapshots.append(engine.snapshot())
    with ss.Engine(operator, threads=2) as engine:
        marks = []
        for snapshot in snapshots:
            engine.restore(snapshot)
            marks.append(engine.savepoint())

        def go_back(number: int) -> None:
            if back == "restore":
                engine.restore(snapshots[number % 3])
            else:
                engine.rollback(marks[number % 3])

        seen = set(looked_at(engine, go_back))
    assert seen <= set(snapshots), "a mixture of two states, under a valid checksum"
    assert len(seen) > 1, "nobody has looked meanwhile"


@pytest.mark.parametrize("back", ["restore", "rewind"])
def test_who_began_to_look_during_a_batch_may_finish_before_another_state_comes(back: str) -> None:
    with ss.Engine(old, threads=2) as engine:
        snapshot, mark = engine.snapshot(), engine.savepoint()
        engine.process(EVENTS)
        before = engine.state.to_dict()
        go_back = threading.Thread(
            target=lambda: engine.restore(snapshot) if back == "restore" else engine.rollback(mark)
        )

        # As snapshot() does when it finds a batch in flight; that one is over by now.
        def look() -> None:
            go_back.start()
            go_back.join(0.2)
            assert go_back.is_alive(), "it did not wait"
            assert engine.durable.next_sequence == len(EVENTS["x"])
            fields = engine.parts.committed.fields(copied=False)
            assert_same(StateView(old.layout, *fields).to_dict(), before)

        engine.parts.turn.taken(look)
        go_back.join()
        assert engine.state.n == 0


@pytest.mark.slow
def test_a_snapshot_has_all_of_a_table_that_is_submitted_or_nothing() -> None:
    sources = np.arange(40)
    with ss.Engine(old, threads=2) as engine:

        def submit(number: int) -> None:
            table = {"time": [number] * 40, "from": sources, "x": sources}
            engine.submit(table, order_by="time", source_column="from")

        submit(-1)  # compiles, which would take as long as thousands of snapshots
        snapshots = looked_at(engine, submit)
    for snapshot in snapshots[:: len(snapshots) // 40 + 1]:
        with ss.Engine(old, horizon=0, restore=snapshot) as engine:
            assert engine.stats.pending % 40 == 0


# ---- a changed operator ----


class Grown(ss.State):
    seen = ss.array(bool, (2, 4))
    least = ss.array(float, 3, fill=float("inf"))
    work = ss.scratch(int, 4)
    n = ss.scalar(int)
    flag = ss.scalar(bool, fill=True)
    counts = ss.array(int, 8)
    zero = ss.scalar(float, fill=-0.0)
    total = ss.scalar(float)


def test_fields_go_by_name_and_new_ones_have_their_fill() -> None:
    snapshot, before = snapshot_of()
    expected = {
        "seen": before["seen"],
        "least": np.full(3, np.inf),
        "n": before["n"],
        "flag": np.bool_(True),
        "counts": before["counts"],
        "zero": np.float64(-0.0),
        "total": before["total"],
    }
    with ss.Engine(build(Grown), threads=2, restore=snapshot) as engine:
        assert_same(engine.state.to_dict(), expected)
        engine.process(EVENTS)
        assert engine.state.n == 2 * len(EVENTS["x"])
        assert engine.durable.next_sequence == 2 * len(EVENTS["x"])


class Without(ss.State):
    n = ss.scalar(int)
    total = ss.scalar(float)
    counts = ss.array(int, 8)


class Longer(Old):
    counts = ss.array(int, 9)


class OtherKind(Old):
    total = ss.scalar(int)


class Scratched(Old):
    counts = ss.scratch(int, 8)


def nothing(state, event, emit):
    state.n += 1


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (Without, r"field 'seen', which the operator does not declare.*migrate="),
        (Scratched, r"field 'counts', which the operator does not declare.*migrate="),
        (Longer, r"field 'counts' has shape \[8\] in the snapshot and shape \[9\].*migrate="),
        (OtherKind, r"field 'total' has kind float in the snapshot and kind int.*migrate="),
    ],
)
def test_what_does_not_fit_is_refused_by_name(state: type[ss.State], message: str) -> None:
    snapshot, _ = snapshot_of()
    operator = build(state, nothing)
    with pytest.raises(ss.SnapshotError, match=message):
        ss.Engine(operator, restore=snapshot)
    with ss.Engine(operator, horizon=0) as engine:
        engine.process({"x": [1, 2]})
        before, sequence = engine.state.to_dict(), engine.durable.next_sequence
        with pytest.raises(ss.SnapshotError, match=message):
            engine.restore(snapshot)
        assert_same(engine.state.to_dict(), before)
        assert engine.durable.next_sequence == sequence


def test_a_description_gives_the_layout_again() -> None:
    for state in (Old, Grown, Scratched):
        layout = state.layout()
        described = Layout.described(layout.name, layout.describe())
        assert described.describe() == layout.describe()
        assert described.words("state") == layout.words("state")
        for field in described.fields:
            declared = layout.field(field.name)
            assert declared is not None
            assert (declared.kind, declared.offset) == (field.kind, field.offset)


# ---- the user's own function ----


class New(ss.State):
    half = ss.scalar(float)
    counts = ss.array(int, (2, 8), fill=7)
    seen = ss.array(bool, 8)
    n = ss.scalar(int, fill=-1)


def test_a_function_converts_the_fields() -> None:
    snapshot, before = snapshot_of()

    def migrate(fields: dict[str, Any]) -> dict[str, Any]:
        assert_same(fields, before)
        fields["counts"][0] = 99  # it is the function's own copy
        return {
            "half": fields["n"] / 2,
            "counts": np.stack([fields["counts"], np.arange(8, dtype=np.uint8)]),
            "seen": fields["seen"].reshape(8),
        }

    with ss.Engine(build(New, nothing), horizon=0, restore=snapshot, migrate=migrate) as engine:
        counts = before["counts"].copy()
        counts[0] = 99
        expected = {
            "half": np.float64(before["n"] / 2),
            "counts": np.stack([counts, np.arange(8)]),
            "seen": before["seen"].reshape(8),
            "n": np.int64(-1),
        }
        assert_same(engine.state.to_dict(), expected)
        assert engine.durable.next_sequence == len(EVENTS["x"])
        engine.process({"x": [1]})
        engine.restore(snapshot, migrate=migrate)
        assert_same(engine.state.to_dict(), expected)
        # It is called for a snapshot of the same fields as well.
        engine.restore(engine.snapshot(), migrate=lambda fields: {**fields, "n": 5})
        assert_same(engine.state.to_dict(), {**expected, "n": np.int64(5)})


def test_every_nan_of_a_state_has_the_same_bits() -> None:
    snapshot, _ = snapshot_of()
    odd = np.uint64(0xFFF8_0000_0000_BEEF).view(np.float64)
    with ss.Engine(old, horizon=0, restore=snapshot, migrate=lambda _: {"total": odd}) as engine:
        assert struct.pack("d", engine.state.total) == struct.pack("d", float("nan"))


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ({"other": 1}, r"a field 'other', which the operator does not declare \(it declares half,"),
        ({3: 1}, r"a field 3, which the operator does not declare"),
        ({"counts": np.zeros(8, np.int64)}, r"shape \(8,\) for field 'counts'.*\(2, 8\)"),
        ({"counts": 0}, r"shape \(\) for field 'counts'"),
        ({"n": [1]}, r"shape \(1,\) for field 'n'"),
        ({"counts": [[1], [1, 2]]}, r"no array for field 'counts'.*shape \(2, 8\)"),
        ({"n": 1.0}, r"float64 values for field 'n'.*int: round it"),
        ({"n": 2**63}, r"uint64 values for field 'n'.*int"),
        ({"n": 2**70}, r"object values for field 'n'.*int"),
        ({"n": True}, r"bool values for field 'n'.*int"),
        ({"n": None}, r"object values for field 'n'"),
        ({"half": 1j}, r"complex128 values for field 'half'.*float: cast"),
        ({"half": "1"}, r"values for field 'half'"),
        ({"half": 2**53 + 1}, r"9007199254740993 for field 'half', .*float.* 9007199254740992\.0"),
        ({"half": np.int64(-(2**53) - 1)}, r"-9007199254740993 for field 'half'"),
        ({"half": np.uint64(2**64 - 1)}, r"18446744073709551615 for field 'half'"),
        ({"seen": np.ones(8, np.int64)}, r"int64 values for field 'seen'.*bool: compare"),
        (None, r"migrate= returned NoneType; expected a dict"),
        ([("n", 1)], r"migrate= returned list; expected a dict"),
    ],
    ids=str,
)
def test_what_the_function_returns_is_checked_by_field(returned: Any, message: str) -> None:
    snapshot, _ = snapshot_of()
    with ss.Engine(build(New, nothing), horizon=0) as engine:
        engine.process({"x": [1]})
        before = engine.state.to_dict()
        with pytest.raises(ss.SnapshotError, match=f"engine of 'nothing': .*{message}"):
            engine.restore(snapshot, migrate=lambda _: returned)
        assert_same(engine.state.to_dict(), before)
        assert engine.durable.next_sequence == 1


def leave_alone(state: Any, event: Any, emit: Any) -> None:
    pass


class Floats(ss.State):
    pair = ss.array(float, 2)
    narrow = ss.array(np.float32, 2)


@pytest.mark.parametrize(
    ("name", "value", "rounded"),
    [
        ("pair", [2**53, -(2**63)], None),
        ("pair", [2**53 + 1, 0.5], 2**53 + 1),  # of which NumPy makes an array of floats
        ("pair", np.array([2**53 + 1, 0.5]), None),
        ("pair", np.array([0, 2**62 + 1]), 2**62 + 1),
        ("narrow", [2**24, 2**25], None),
        ("narrow", [0, 2**24 + 1], 2**24 + 1),
        ("narrow", [0.1, 2.0**24 + 1], None),
    ],
)
def test_an_integer_becomes_a_float_only_as_it_is(name: str, value: Any, rounded: Any) -> None:
    snapshot, _ = snapshot_of()
    floats = build(Floats, leave_alone)
    if rounded is None:
        with ss.Engine(floats, horizon=0) as engine:
            engine.restore(snapshot, migrate=lambda _: {name: value})
            found = getattr(engine.state, name)
            assert found.tolist() == np.asarray(value, found.dtype).tolist()
    else:
        with pytest.raises(ss.SnapshotError, match=f"{rounded} for field '{name}'.*give float"):
            ss.Engine(floats, horizon=0, restore=snapshot, migrate=lambda _: {name: value})


def test_what_the_function_raises_arrives_and_nothing_is_changed() -> None:
    snapshot, _ = snapshot_of()
    with ss.Engine(build(New, nothing), horizon=0) as engine:
        with pytest.raises(KeyError, match="gone") as caught:
            engine.restore(snapshot, migrate=lambda fields: {"n": fields["gone"]})
        assert "the snapshot has the fields n, total, counts, seen" in caught.value.__notes__[0]
        assert engine.state.n == -1


def test_a_function_without_a_snapshot_is_a_mistake() -> None:
    with pytest.raises(ss.ConfigurationError, match=r"migrate=.*give restore="):
        ss.Engine(old, migrate=lambda fields: fields)
