"""Containers in the files of a checkpoint: every batch comes back, and a file says what changed."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import random
from dataclasses import replace as replace_in
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.operators.held import Held, Spot, events, exactly, hold, values

import specstream as ss
from specstream._native import lib
from specstream.checkpoint.format.chain import Chain
from specstream.checkpoint.format.container_changes import Held as Contents
from specstream.checkpoint.format.container_changes import applied, changes
from specstream.checkpoint.format.file_format import CheckpointFile, pack
from specstream.checkpoint.inspect.difference import first_difference_of_states
from specstream.checkpoint.inspect.replay import replay
from specstream.checkpoint.run.batch import Batch
from specstream.checkpoint.run.batch_runner import BatchRunner
from specstream.checkpoint.run.checkpoint import Checkpoint
from specstream.checkpoint.run.stream_options import StreamOptions
from specstream.columns.tables import as_table
from specstream.declarations.container_words import entries, replace
from specstream.declarations.state_layout import Field, Layout
from specstream.files.untrusted import Malformed


def joined(parts: list[Any]) -> bytes:
    return b"".join(map(bytes, parts))


# ---- changes ----


class Few(ss.State):
    d = ss.dict(int, float, limit=300)
    r = ss.deque(int, limit=300)
    names = ss.list((int, int), limit=300)


def moved(dice: random.Random, words: np.ndarray, layout: Layout) -> None:
    """Changes containers as events do: entries keep their places and stamps, a ring turns."""
    for change, field in zip((move_entries, turn, move_rows), layout.containers, strict=True):
        change(dice, words, field)


def move_entries(dice: random.Random, words: np.ndarray, field: Field) -> None:
    assert field.container
    header = words[field.offset :]
    width, most = field.container.entry_words, field.container.most
    entry = words[field.container.region :][: most * width].reshape(most, width)
    for _ in range(dice.randrange(12)):
        used = int(header[lib.SS_HEADER_USED])
        at = dice.randrange(min(used + 1, most))
        header[lib.SS_HEADER_USED] = max(used, at + 1)
        if dice.random() < 0.3:
            entry[at, 0] = 0
            continue
        if entry[at, 0] == 0:
            header[lib.SS_HEADER_CHANGES] += 1
            entry[at] = header[lib.SS_HEADER_CHANGES], dice.randrange(2**60), 0
        entry[at, 2] = dice.randrange(5)
    header[lib.SS_HEADER_COUNT] = np.count_nonzero(entry[:, 0])


def turn(dice: random.Random, words: np.ndarray, field: Field) -> None:
    assert field.container
    ring = 64
    start, held = int(words[field.offset + lib.SS_HEADER_START]), list(entries(words, field)[:, 0])
    for _ in range(dice.randrange(6)):
        way = dice.randrange(5)
        if way == 0 and held:
            held.pop(0)
            start += 1
        elif way == 1 and len(held) < ring:
            held.insert(0, dice.randrange(99))
            start -= 1
        elif way == 2 and held:
            held[dice.randrange(len(held))] = -1
        elif len(held) < ring:
            held.append(dice.randrange(99))
    words[field.offset + lib.SS_HEADER_COUNT] = len(held)
    words[field.offset + lib.SS_HEADER_START] = start % ring
    words[field.offset + lib.SS_HEADER_CAPACITY] = ring
    for at, value in enumerate(held):
        words[field.container.region + (start + at) % ring] = value


def move_rows(dice: random.Random, words: np.ndarray, field: Field) -> None:
    rows = entries(words, field).tolist()
    for _ in range(dice.randrange(4)):
        if rows and dice.random() < 0.4:
            rows.pop(dice.randrange(len(rows)))
        elif len(rows) < 50:
            rows.insert(dice.randrange(len(rows) + 1), [dice.randrange(9), 5])
    replace(words, field, np.array(rows, np.int64).reshape(-1, 2))


@pytest.mark.parametrize("seed", range(5))
def test_changes_lead_from_one_state_to_the_next(seed: int) -> None:
    dice, layout = random.Random(seed), Few.layout()
    words = layout.allocate()
    rows: tuple[Any, ...] = tuple(entries(words, field) for field in layout.containers)
    held = [Contents.of(words, field) for field in layout.containers]
    for _ in range(60):
        moved(dice, words, layout)
        now = [Contents.of(words, field) for field in layout.containers]
        rows = applied(layout, rows, joined(changes(held, now)))
        for field, found in zip(layout.containers, rows, strict=True):
            assert found.tolist() == entries(words, field).tolist(), field.name
        held = now


def test_changes_are_right_where_stamps_mislead() -> None:
    """As after a rollback, which numbers all entries anew."""
    dice, layout = random.Random(9), Few.layout()
    words = layout.allocate()
    d = layout.containers[0]
    held: list[Contents] = [Contents.of(words, field) for field in layout.containers]
    for _ in range(30):
        rows = tuple(one.rows for one in held)
        count = dice.randrange(20)
        replace(words, d, np.array([[dice.randrange(9), at] for at in range(count)]).reshape(-1, 2))
        now = [Contents.of(words, field) for field in layout.containers]
        assert applied(layout, rows, joined(changes(held, now)))[0].tolist() == now[0].rows.tolist()
        held = now


def test_what_has_not_changed_takes_no_place_and_little_takes_little() -> None:
    layout = Held.layout()
    with ss.Engine(hold, horizon=0, initial=values(random.Random(1), 500)) as engine:
        before = [Contents.of(engine.durable.words, field) for field in layout.containers]
        assert len(joined(changes(before, before))) == 4 * 8 * len(layout.containers)


@pytest.mark.parametrize(
    ("head", "places", "message"),
    [
        ([0, 0], [], "'d': its change is cut short"),
        ([3, 0, 0, 0], [], "'d': rows removed is 3; expected 0 to 2"),
        ([-1, 0, 0, 0], [], "'d': rows removed is -1"),
        ([0, 0, 301, 0], [], "'d': rows is 301; expected 0 to 300"),
        ([0, 3, 2, 0], [], "'d': rows in front is 3; expected 0 to 2"),
        ([0, 0, 2, 3], [], "'d': rows changed is 3; expected 0 to 2"),
        ([0, 0, 300, 0], [], "'d': its change has 0 rows, and 298 are new"),
        ([0, 2, 2, 0], [], "'d': its change has 0 rows, and 2 are new"),
        ([1, 0, 1, 0], [2], "'d': its change has places that are not some of 2 in order"),
        ([2, 0, 0, 0], [1, 0], "'d': its change has places that are not some of 2 in order"),
        ([0, 0, 2, 2], [0, 0, 1, 1, 1, 1], "'d': its change has places"),
        ([0, 0, 2, 1], [-1, 1, 1], "'d': its change has places that are not some of 2"),
        ([0, 0, 2, 1], [0, 1], "'d': its change is cut short"),
        ([0, 0, 2, 0], [0, 0, 0, 0, 0, 0, 0, 0, 7], "changes of containers have 1 words too many"),
    ],
)
def test_a_change_of_somebody_else_is_checked(
    head: list[int], places: list[int], message: str
) -> None:
    layout = Few.layout()
    before = [np.array([[1, 1], [2, 2]]), np.empty((0, 1), np.int64), np.empty((0, 2), np.int64)]
    with pytest.raises(Malformed, match=message):
        applied(layout, before, np.array([*head, *places], "<i8").tobytes())
    with pytest.raises(Malformed, match="no whole words"):
        applied(layout, before, b"1234567")


# ---- files ----


# So that a batch is a small part of it.
MANY = {"totals": {f"first {n}": n for n in range(2000)}}


def write(path: Path, batches: range, which: ss.Operator = hold) -> None:
    """A process's life: from the last file on to a number of batches."""
    with ss.Engine(which, threads=2, horizon=4, chunk=2, initial=MANY) as engine:
        checkpoint = Checkpoint(engine, path)
        for batch_id in batches:
            checkpoint.record("q", batch_id, engine.process(events(batch_id, 15)))
        checkpoint.close()


def test_each_batch_comes_back_and_goes_on(tmp_path: Path) -> None:
    with ss.Engine(hold, horizon=0, initial=MANY) as still:
        for batch_id in range(14):
            # A restart after each.
            write(tmp_path, range(batch_id, batch_id + 1))
            output = still.process(events(batch_id, 15))
            with ss.Engine(hold, horizon=0) as engine:
                checkpoint = Checkpoint(engine, tmp_path)
                assert engine.snapshot() == still.snapshot()
                answer = checkpoint.answer("q", batch_id)
                assert answer == output
                checkpoint.close()
    names = sorted(each.name for each in tmp_path.iterdir())
    assert names == ["0000000000.full", *(f"{n:010d}.increment" for n in range(1, 14)), "lock"]


def test_a_batch_that_touches_few_keys_of_many_writes_little(tmp_path: Path) -> None:
    class Many(ss.State):
        counts = ss.dict(int, int)

    @ss.operator(state=Many, event={"x": int})
    def count(state, event, emit):
        state.counts[event.x] = state.counts.get(event.x, 0) + 1
        if event.x % 10 == 0:
            del state.counts[event.x]

    many = 200_000
    dice = random.Random(2)
    with ss.Engine(count, horizon=0, initial={"counts": dict.fromkeys(range(many), 0)}) as engine:
        checkpoint = Checkpoint(engine, tmp_path)
        for batch_id in range(4):
            # All over the memory of the dict.
            rows = {"x": [dice.randrange(many + 100) for _ in range(200)]}
            checkpoint.record("q", batch_id, engine.process(rows))
        expected = engine.snapshot()
        checkpoint.close()
    sizes = {each.name: each.stat().st_size for each in tmp_path.iterdir()}
    assert sizes["0000000000.full"] > 16 * many * 0.9
    for batch_id in range(1, 4):
        assert sizes[f"{batch_id:010d}.increment"] < 200 * 32 + 2000
    with ss.Engine(count, horizon=0) as engine:
        Checkpoint(engine, tmp_path).close()
        assert engine.snapshot() == expected


def test_a_batch_that_fails_is_taken_back_and_the_next_file_is_right(tmp_path: Path) -> None:
    @ss.operator(state=Held, event={"key": str, "x": int}, emits={"size": int})
    def fails(state, event, emit):
        state.totals[event.key] = event.x
        state.waiting.append((0.5, event.x))
        if event.x == 13:
            raise ValueError("thirteen")
        emit(len(state.totals))

    def rows(batch_id: int, last: int) -> Any:
        return as_table({"key": [f"k{batch_id}", "k", "z"], "x": [1, batch_id, last]}, "")

    def runner(engine: ss.Engine) -> BatchRunner:
        options = StreamOptions(to=lambda rows, batch_id: None, checkpoint=str(tmp_path))
        return BatchRunner(engine, options)

    with ss.Engine(fails, horizon=0) as engine, ss.Engine(fails, horizon=0) as still:
        runs = runner(engine)
        for batch_id in range(6):
            before = engine.snapshot()
            with pytest.raises(ValueError, match="thirteen"):
                runs.run(Batch(batch_id, "q", rows(batch_id, 13)))
            assert engine.snapshot() == before
            runs.run(Batch(batch_id, "q", rows(batch_id, 2)))
            still.process(rows(batch_id, 2))
            assert engine.snapshot() == still.snapshot()
        assert runs.checkpoint is not None
        runs.checkpoint.close()
        runs.close()
    with ss.Engine(fails, horizon=0) as engine:
        Checkpoint(engine, tmp_path).close()
        assert engine.snapshot() == still_of(fails, rows)


def still_of(operator: ss.Operator, rows: Any) -> bytes:
    with ss.Engine(operator, horizon=0) as engine:
        for batch_id in range(6):
            engine.process(rows(batch_id, 2))
        return engine.snapshot()


def test_an_increment_without_its_containers_is_refused(tmp_path: Path) -> None:
    write(tmp_path, range(2))
    full, second = (
        CheckpointFile.from_bytes((tmp_path / name).read_bytes())
        for name in ("0000000000.full", "0000000001.increment")
    )
    assert second.about.named == ("containers",)
    parts, _ = pack(replace_in(second.about, named=()), [[one] for one in second.sections[:-1]])
    without = CheckpointFile.from_bytes(b"".join(map(bytes, parts)))
    with pytest.raises(ss.SnapshotError, match="it has no changes of the containers"):
        Chain(full, "a file").add(without, "the next")
    Chain(full, "a file").add(second, "the next")


def test_a_replay_has_the_same_containers(tmp_path: Path) -> None:
    runs = []
    with ss.Engine(hold, threads=2, horizon=4) as engine:
        options = StreamOptions(
            to=lambda rows, batch_id: None, checkpoint=str(tmp_path), keep_batches=5
        )
        runner = BatchRunner(engine, options)
        for batch_id in range(4):
            runner.run(Batch(batch_id, "q", as_table(events(batch_id, 40), "")))
            runs.append({name: exactly(one) for name, one in engine.state.to_dict().items()})
        assert runner.checkpoint is not None
        runner.checkpoint.close()
        runner.close()
    for batch_id in range(4):
        found = replay(tmp_path, batch_id)
        assert found.difference is None
        assert {name: exactly(one) for name, one in found.state.to_dict().items()} == runs[batch_id]


TWO, ZERO = repr(Spot(2.0)), repr(Spot(0.0))


@pytest.mark.parametrize(
    ("name", "one", "other", "text"),
    [
        ("totals", {"a": 1}, {"a": 2}, "[0]: recorded ('a', 1), replayed ('a', 2)"),
        ("totals", {"a": 1, "b": 1}, {"b": 1, "a": 1}, "[0]: recorded ('a', 1), replayed ('b', 1)"),
        ("prices", [1.0, 0.0], [1.0, -0.0], "[1]: recorded 0.0, replayed -0.0"),
        ("recent", [1], [], "[0]: recorded 1, replayed nothing"),
        ("seen", [(1, True)], [(2, True)], "[0]: recorded (1, True), replayed (2, True)"),
        ("queue", [Spot(1.0)], [Spot(1.0), Spot(2.0)], f"[1]: recorded nothing, replayed {TWO}"),
        (
            "spot",
            Spot(0.0),
            Spot(-0.0),
            f": recorded {ZERO}, replayed {ZERO.replace('0.0', '-0.0')}",
        ),
        (
            "spots",
            [[Spot(2.0)] * 3] * 2,
            [[Spot(2.0)] * 3, [Spot(2.0)] * 2 + [Spot(0.0)]],
            "[1, 2]: recorded (2.0, 3, False, ''), replayed (0.0, 3, False, '')",
        ),
    ],
)
def test_the_first_difference_names_the_entry(name: str, one: Any, other: Any, text: str) -> None:
    begin, end = ({name: value} for value in (one, other))
    with ss.Engine(hold, initial=begin) as first, ss.Engine(hold, initial=end) as second:
        found = first_difference_of_states(first.state, second.state)
        assert str(found) == f"state.{name}{text}"
        assert first_difference_of_states(first.state, first.state) is None
