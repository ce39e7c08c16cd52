"""Files of a checkpoint: what was recorded comes back, damage is seen, nothing goes early."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import multiprocessing
import resource
import struct
import subprocess
import sys
import warnings
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import fs
from support.checkpoint.fed import Fed

import specstream as ss
from specstream.checkpoint.format.file_format import (
    BLOCK_WORDS,
    CheckpointFile,
    changed_blocks,
)
from specstream.checkpoint.format.store import LocalStore, RemoteStore, store_of
from specstream.checkpoint.run import checkpoint as checkpoints
from specstream.checkpoint.run.checkpoint import Checkpoint
from specstream.engine.string_sweep import StringSweep
from specstream.files.container import DamagedFile

WORDS = 40 * BLOCK_WORDS + 3


class Wide(ss.State):
    seen = ss.scalar(int)
    cells = ss.array(int, WORDS)


def build(state: type[ss.State] = Wide, name: str = "mark_cell") -> ss.Operator:
    def function(state, event, emit):
        state.seen += 1
        state.cells[event.cell] = state.cells[event.cell] * 31 + state.seen
        emit(event.name, state.cells[event.cell])

    function.__name__ = name
    return ss.operator(
        state=state, event={"cell": int, "name": str}, emits={"name": str, "value": int}
    )(function)


operator = build()


def events(batch_id: int) -> dict[str, Any]:
    rng = np.random.default_rng(batch_id)
    # Blocks 0 (the counter) and two more; the last, short block now and then.
    cells = [int(rng.integers(WORDS)), WORDS - 1 if batch_id % 4 == 0 else 5]
    return {"cell": cells, "name": [f"batch {batch_id}", "every batch"]}


def engine_of(which: ss.Operator = operator, **options: Any) -> ss.Engine:
    return ss.Engine(which, horizon=0, **options)


def run(engine: ss.Engine, checkpoint: Checkpoint, batches: range) -> None:
    for batch_id in batches:
        assert checkpoint.answer("q", batch_id) is None
        checkpoint.record("q", batch_id, engine.process(events(batch_id)))


def write(path: Path, batches: range) -> None:
    """A process's life: from the last file on to a number of batches."""
    with engine_of() as engine:
        checkpoint = Checkpoint(engine, path)
        run(engine, checkpoint, batches)
        checkpoint.close()


def after(batch_id: int) -> tuple[bytes, pa.Table]:
    """Snapshot and last rows of an engine that never stopped."""
    with engine_of() as engine:
        outputs = [engine.process(events(each)) for each in range(batch_id + 1)]
        return engine.snapshot(), outputs[-1]


def assert_is_after(path: Path, batch_id: int) -> None:
    with engine_of() as engine:
        checkpoint = Checkpoint(engine, path)
        snapshot, output = after(batch_id)
        assert engine.snapshot() == snapshot
        answer = checkpoint.answer("q", batch_id)
        assert answer is not None
        assert answer.equals(output)
        assert checkpoint.answer("q", batch_id + 1) is None
        checkpoint.close()


def files(path: Path) -> list[str]:
    return sorted(each.name for each in path.iterdir() if each.name not in ("lock", "lease"))


# ---- what is written ----


def test_each_batch_comes_back_and_goes_on(tmp_path: Path) -> None:
    for batch_id in range(12):
        write(tmp_path, range(batch_id, batch_id + 1))  # a restart after each
        assert_is_after(tmp_path, batch_id)
    assert files(tmp_path)[0] == "0000000000.full"
    assert files(tmp_path)[1:] == [f"{n:010d}.increment" for n in range(1, 12)]


def test_an_increment_holds_the_blocks_that_changed(tmp_path: Path) -> None:
    write(tmp_path, range(3))
    full = (tmp_path / "0000000000.full").stat().st_size
    file = CheckpointFile.from_bytes((tmp_path / "0000000002.increment").read_bytes())
    strings, numbers, blocks, output = file.sections
    assert bytes(strings) == b'["batch 2"]'  # the other was met before
    assert len(np.frombuffer(numbers, "<i8")) <= 3
    assert len(blocks) == 8 * BLOCK_WORDS * len(np.frombuffer(numbers, "<i8"))
    assert full > 8 * WORDS
    assert file.length < len(blocks) + len(output) + 1000
    assert len(blocks) < full / 10


def test_changed_blocks_are_compared_by_bits_and_the_short_last_block_counts() -> None:
    rng = np.random.default_rng(1)
    for length in (1, BLOCK_WORDS - 1, BLOCK_WORDS, 300 * BLOCK_WORDS, 700 * BLOCK_WORDS + 9):
        before = rng.integers(-(2**63), 2**63 - 1, length)
        after = before.copy()
        assert changed_blocks(after, before).tolist() == []
        touched = {0, length - 1, int(rng.integers(length))}
        for at in touched:
            after[at] ^= 1
        expected = sorted({at // BLOCK_WORDS for at in touched})
        assert changed_blocks(after, before).tolist() == expected
    zeros = np.array([0.0, np.nan]).view(np.int64)
    others = np.array([-0.0, np.nan]).view(np.int64)
    assert changed_blocks(zeros, others).tolist() == [0]


def test_a_full_file_comes_when_the_increments_are_many_or_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "INCREMENTS", 3)
    write(tmp_path / "many", range(9))
    assert files(tmp_path / "many") == [
        "0000000004.full", "0000000005.increment", "0000000006.increment", "0000000007.increment",
        "0000000008.full",
    ]  # fmt: skip
    monkeypatch.setattr(checkpoints, "INCREMENTS", 1000)
    path = tmp_path / "large"
    with engine_of() as engine:
        checkpoint = Checkpoint(engine, path)
        for batch_id in range(6):  # each touches every block
            cells = list(range(0, WORDS, 100))
            batch = {"cell": cells, "name": ["x"] * len(cells)}
            checkpoint.record("q", batch_id, engine.process(batch))
        checkpoint.close()
    # An increment is as large as the full file: a second one would pass it.
    assert files(path) == ["0000000002.full", "0000000003.increment", "0000000004.full",
                            "0000000005.increment"]  # fmt: skip


def test_two_full_files_are_kept_and_early_ones_deleted_from_late_to_early(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "INCREMENTS", 2)
    with engine_of() as engine:
        checkpoint = Checkpoint(engine, tmp_path)
        place = checkpoint.store
        assert isinstance(place, LocalStore)
        delete, deleted = place.delete, []

        def watched(name: str) -> None:
            newest = files(tmp_path)[-1]
            assert newest.endswith(".full")  # it is durable before anything goes
            deleted.append(name)
            delete(name)
            assert_can_be_restored(tmp_path, int(newest[:10]))

        monkeypatch.setattr(place, "delete", watched)
        run(engine, checkpoint, range(10))
        checkpoint.close()
    assert deleted == [
        "0000000002.increment", "0000000001.increment", "0000000000.full",
        "0000000005.increment", "0000000004.increment", "0000000003.full",
    ]  # fmt: skip
    assert files(tmp_path) == [
        "0000000006.full", "0000000007.increment", "0000000008.increment", "0000000009.full",
    ]  # fmt: skip


def assert_can_be_restored(path: Path, newest: int) -> None:
    """Every file that is there still has what it builds on."""
    there = [CheckpointFile.from_bytes((path / name).read_bytes()).about for name in files(path)]
    for about in there:
        assert about.builds_on is None or about.builds_on[0] in [each.batch_id for each in there]
    assert there[-1].batch_id == newest


def test_a_full_file_that_is_damaged_does_not_count_as_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "INCREMENTS", 2)
    write(tmp_path, range(4))
    flip(tmp_path / "0000000003.full", 200)
    with pytest.warns(RuntimeWarning, match=r"0000000003\.full"):
        write(tmp_path, range(3, 4))
    flip(tmp_path / "0000000003.full", 200)  # again, behind the writer's back
    with pytest.warns(RuntimeWarning, match=r"0000000003\.full"):
        assert_is_after(tmp_path, 2)
    assert "0000000000.full" in files(tmp_path)


def test_files_reach_back_to_a_full_one_that_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A damaged one leads to none of the batches that are to be kept."""
    monkeypatch.setattr(checkpoints, "INCREMENTS", 2)
    for batches in (range(7), range(7, 10)):
        with engine_of() as engine:
            checkpoint = Checkpoint(engine, tmp_path, keep_batches=4)
            run(engine, checkpoint, batches)
            checkpoint.close()
        flip(tmp_path / "0000000003.full", 200)
    assert files(tmp_path)[::3] == [f"{batch_id:010d}.full" for batch_id in (0, 3, 6, 9)]


class Last(ss.State):
    name = ss.scalar(str)
    cells = ss.array(int, WORDS)


@ss.operator(state=Last, event={"name": str}, emits={"before": str})
def remember(state, event, emit):
    emit(state.name)
    state.name = event.name


def test_a_string_that_is_dropped_and_comes_again_in_one_batch_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(StringSweep, "is_due", True)  # at the beginning of each batch
    with engine_of(remember) as engine:
        checkpoint = Checkpoint(engine, tmp_path)
        for batch_id, name in enumerate(["one", "two"] * 2):
            checkpoint.record("q", batch_id, engine.process({"name": [name]}))
        checkpoint.close()
    assert files(tmp_path)[1:] == [f"{batch_id:010d}.increment" for batch_id in (1, 2, 3)]
    with engine_of(remember) as engine:
        Checkpoint(engine, tmp_path).close()
        assert engine.state.name == "two"


SPARSE = """
import resource, tempfile
import specstream as ss
from specstream.checkpoint.run.checkpoint import Checkpoint

class Large(ss.State):
    cells = ss.array(int, 1 << 26)

@ss.operator(state=Large, event={"x": int})
def touch(state, event, emit):
    state.cells[event.x] += 1

with ss.Engine(touch, horizon=0) as engine, tempfile.TemporaryDirectory() as path:
    engine.process({"x": [1, 1 << 25]})
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    checkpoint = Checkpoint(engine, path)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, "KiB")
    checkpoint.close()
"""


@pytest.mark.slow
@pytest.mark.long
def test_the_copy_of_a_sparse_state_of_512_mb_is_sparse(tmp_path: Path) -> None:
    script = tmp_path / "sparse.py"
    script.write_text(SPARSE)
    done = subprocess.run([sys.executable, script], check=True, capture_output=True, text=True)
    assert int(done.stdout.split()[0]) < 100_000


# ---- damage ----


def flip(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 0x40
    path.write_bytes(content)


def test_every_flipped_byte_and_every_cut_is_detected(tmp_path: Path) -> None:
    write(tmp_path, range(2))
    content = (tmp_path / "0000000001.increment").read_bytes()
    assert CheckpointFile.from_bytes(content).about.batch_id == 1
    for at in range(0, len(content), 1 if len(content) < 4000 else 7):
        with pytest.raises(DamagedFile):
            CheckpointFile.from_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        with pytest.raises(DamagedFile):
            CheckpointFile.from_bytes(content[:at])
    with pytest.raises(DamagedFile):
        CheckpointFile.from_bytes(content + b"\0")


@pytest.mark.parametrize("cut", [0, 7, 12, 20, 23, 24, 300, -1])
def test_a_torn_increment_falls_back_to_the_one_before(tmp_path: Path, cut: int) -> None:
    write(tmp_path, range(5))
    torn = tmp_path / "0000000004.increment"
    torn.write_bytes(torn.read_bytes()[:cut])
    with pytest.warns(RuntimeWarning, match=r"0000000004\.increment.*after batch 3"):
        assert_is_after(tmp_path, 3)
    with pytest.warns(RuntimeWarning, match=r"0000000004\.increment"):
        write(tmp_path, range(4, 6))
    assert_is_after(tmp_path, 5)


@pytest.mark.parametrize(("damaged", "remains"), [(1, 0), (3, 2), (4, 3), (6, 5)])
def test_damage_further_back_falls_back_to_the_file_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damaged: int, remains: int
) -> None:
    monkeypatch.setattr(checkpoints, "INCREMENTS", 3)
    write(tmp_path, range(7))  # full: 0 and 4
    name = next(name for name in files(tmp_path) if name.startswith(f"{damaged:010d}"))
    flip(tmp_path / name, 100)
    if damaged < 4:
        assert_is_after(tmp_path, 6)  # what comes after a full file does not need it
        for later in files(tmp_path):
            if int(later[:10]) >= 4:
                (tmp_path / later).unlink()
    with pytest.warns(RuntimeWarning, match=name):
        assert_is_after(tmp_path, remains)


def test_a_file_of_an_abandoned_history_is_not_built_on(tmp_path: Path) -> None:
    write(tmp_path, range(6))
    flip(tmp_path / "0000000003.increment", 50)
    with engine_of() as engine:
        with pytest.warns(RuntimeWarning):
            checkpoint = Checkpoint(engine, tmp_path)
        other = engine.process({"cell": [9], "name": ["another batch 3"]})
        late = (tmp_path / "0000000004.increment").read_bytes()
        checkpoint.record("q", 3, other)
        expected = engine.snapshot()
        checkpoint.close()
    assert files(tmp_path)[-1] == "0000000003.increment"  # later ones are gone
    (tmp_path / "0000000004.increment").write_bytes(late)  # as a crash before that would have it
    with engine_of() as engine:
        with pytest.warns(RuntimeWarning, match="builds on another file of batch 3"):
            checkpoint = Checkpoint(engine, tmp_path)
        assert engine.snapshot() == expected
        checkpoint.close()


def test_a_missing_increment_is_named(tmp_path: Path) -> None:
    write(tmp_path, range(5))
    (tmp_path / "0000000003.increment").unlink()
    with pytest.warns(RuntimeWarning, match="the file of batch 3 is not there"):
        assert_is_after(tmp_path, 2)


def test_nothing_whole_is_an_error_and_no_fresh_start(tmp_path: Path) -> None:
    write(tmp_path, range(2))
    flip(tmp_path / "0000000000.full", 30)
    with engine_of() as engine, pytest.raises(ss.SnapshotError, match=r"0000000000\.full, because"):
        Checkpoint(engine, tmp_path)
    (tmp_path / "0000000000.full").unlink()
    with engine_of() as engine, pytest.raises(ss.SnapshotError, match="there is no full one"):
        Checkpoint(engine, tmp_path)


def test_a_format_of_another_version_is_an_error_and_no_damage(tmp_path: Path) -> None:
    write(tmp_path, range(1))
    path = tmp_path / "0000000000.full"
    content = path.read_bytes()
    body = struct.pack("<I", 99) + content[16:]
    path.write_bytes(content[:8] + struct.pack("<I", zlib.crc32(body)) + body)
    with engine_of() as engine, pytest.raises(ss.SnapshotError, match=r"full: it has version 99"):
        Checkpoint(engine, tmp_path)


def test_a_failed_write_leaves_the_file_before_and_no_file(tmp_path: Path) -> None:
    with engine_of() as engine:
        checkpoint = Checkpoint(engine, tmp_path)
        run(engine, checkpoint, range(3))
        before, files = engine.snapshot(), set(tmp_path.iterdir())
        output = engine.process(events(3))
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (5000, limits[1]))  # of a file, in bytes
        try:
            with pytest.raises(OSError, match="File too large"):
                checkpoint.record("q", 3, output)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert set(tmp_path.iterdir()) == files
        engine.rollback(checkpoint.savepoint())
        assert engine.snapshot() == before
        run(engine, checkpoint, range(3, 5))
        checkpoint.close()
    assert_is_after(tmp_path, 4)


def test_what_cannot_be_deleted_is_told_and_the_batch_is_recorded(tmp_path: Path) -> None:
    with engine_of() as engine:
        checkpoint = Checkpoint(engine, tmp_path)
        (tmp_path / "0000000009.increment").mkdir()  # no file, hence not to be unlinked
        output = engine.process(events(0))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(RuntimeWarning, match=r"cannot be deleted.*0000000009\.increment"):
                checkpoint.record("q", 0, output)
        engine.rollback(checkpoint.savepoint())  # as the feed does when something raises
        assert engine.snapshot() == after(0)[0]
        assert checkpoint.answer("q", 0) is output
        (tmp_path / "0000000009.increment").rmdir()
        run(engine, checkpoint, range(1, 3))
        checkpoint.close()
    assert_is_after(tmp_path, 2)


# ---- whose checkpoint it is ----


def test_batch_ids_that_do_not_follow_are_named(tmp_path: Path) -> None:
    write(tmp_path, range(5))
    with engine_of() as engine:
        checkpoint = Checkpoint(engine, tmp_path)
        for wrong in (0, 3, 6):  # neither the last one nor the next
            with pytest.raises(ss.ConfigurationError, match=rf"after batch 4.*with batch {wrong};"):
                checkpoint.answer("q", wrong)
        with pytest.raises(ss.ConfigurationError, match="query q, and this is the query other"):
            checkpoint.answer("other", 5)
        checkpoint.close()


def test_an_empty_checkpoint_begins_at_batch_0_or_with_a_state_that_was_given(
    tmp_path: Path,
) -> None:
    with engine_of() as engine:
        checkpoint = Checkpoint(engine, tmp_path)
        with pytest.raises(ss.ConfigurationError, match=r"is empty.*batch 7: expected batch 0"):
            checkpoint.answer("q", 7)
        engine.restore(after(6)[0])
        run(engine, checkpoint, range(7, 9))
        checkpoint.close()
    assert_is_after(tmp_path, 8)


class Renamed(ss.State):
    seen = ss.scalar(int)
    other = ss.array(int, 4)


class Longer(ss.State):
    seen = ss.scalar(int)
    cells = ss.array(int, WORDS + 1)


class Grown(ss.State):
    fresh = ss.scalar(float, fill=1.5)
    cells = ss.array(int, WORDS)
    seen = ss.scalar(int)


def touch(state, event, emit):
    state.seen += 1


def renamed() -> ss.Operator:
    touch.__name__ = "mark_cell"
    return ss.operator(state=Renamed, event={"cell": int, "name": str})(touch)


def test_a_checkpoint_of_another_operator_or_layout_names_the_field(tmp_path: Path) -> None:
    write(tmp_path, range(3))
    for wrong, match in (
        (engine_of(renamed()), "field 'cells'"),
        (engine_of(build(Longer)), "field 'cells' has shape"),
        (engine_of(build(name="another")), "field 'operator' is 'mark_cell'.*'another'"),
        (engine_of(seed=3), "field 'seed' is 0"),
    ):
        with wrong, pytest.raises(ss.SnapshotError, match=match):
            Checkpoint(wrong, tmp_path)
    assert_is_after(tmp_path, 2)  # and the directory is free


def test_an_operator_with_another_name_goes_on_where_the_former_one_is_told(tmp_path: Path) -> None:
    write(tmp_path, range(3))  # a full file, and what builds on it
    renamed, rename = build(name="another"), {"mark_cell": "another", "older": "another"}
    told = r"has changed, rename=\{'mark_cell': 'another'\}"
    with engine_of(renamed) as engine, pytest.raises(ss.SnapshotError, match=told):
        Checkpoint(engine, tmp_path)
    # Then from a file of the former name, from one of the new name, and without being told.
    for batch_id, told_of in ((3, rename), (4, rename), (5, None)):
        with engine_of(renamed) as engine:
            checkpoint = Checkpoint(engine, tmp_path, rename=told_of)
            answer = checkpoint.answer("q", batch_id - 1)
            assert answer is not None
            assert answer.equals(after(batch_id - 1)[1])
            run(engine, checkpoint, range(batch_id, batch_id + 1))
            assert engine.snapshot() == after(batch_id)[0]
            checkpoint.close()
    with engine_of() as engine, pytest.raises(ss.SnapshotError, match="'operator' is 'another'"):
        Checkpoint(engine, tmp_path)


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"rename": {"old": "mark_cell"}}, "give checkpoint= as well"),
        ({"rename": {"old": "new"}, "checkpoint": "at"}, r"give rename=\{'old': 'mark_cell'\}"),
        ({"rename": {"mark_cell": "new"}, "checkpoint": "at"}, "the former one first"),
        ({"rename": "old"}, r"rename='old'; expected the operator's name by its former one"),
        ({"rename": {"old": 3}}, r"rename=\{'old': 3\}; expected the operator's name by"),
    ],
)
def test_what_is_told_of_a_name_has_to_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: dict[str, Any], match: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with engine_of() as engine, pytest.raises(ss.ConfigurationError, match=match):
        Fed(engine, to=print, **given)
    assert list(tmp_path.iterdir()) == []


def test_a_query_goes_on_under_another_name(tmp_path: Path) -> None:
    given: list[pa.Table] = []
    for batch_id, name in enumerate(("mark_cell", "another", "another")):
        rename = {"mark_cell": "another"} if batch_id else None
        with engine_of(build(name=name)) as engine:
            fed = Fed(
                engine, to=lambda rows, _: given.append(rows), checkpoint=tmp_path, rename=rename
            )
            fed.send(batch_id, pa.table(events(batch_id)))
            fed.checkpoint.close()
    assert [rows.equals(after(number)[1]) for number, rows in enumerate(given)] == [True] * 3


def test_a_state_that_has_grown_goes_on_with_a_full_file(tmp_path: Path) -> None:
    write(tmp_path, range(3))
    for batch_id in (3, 4):
        with engine_of(build(Grown)) as engine:
            checkpoint = Checkpoint(engine, tmp_path)
            assert (engine.state.fresh, engine.state.seen) == (1.5, 2 * batch_id)
            run(engine, checkpoint, range(batch_id, batch_id + 1))
            checkpoint.close()
    assert files(tmp_path)[-2:] == ["0000000003.full", "0000000004.increment"]

    def migrate(fields: dict[str, Any]) -> dict[str, Any]:
        return {"seen": fields["seen"] * 1000, "cells": fields["cells"]}

    with engine_of() as engine:
        checkpoint = Checkpoint(engine, tmp_path, migrate=migrate)
        assert engine.state.seen == 10_000
        run(engine, checkpoint, range(5, 6))
        checkpoint.close()
    assert files(tmp_path)[-1] == "0000000005.full"


@pytest.mark.slow
def test_a_directory_has_one_user_at_a_time(tmp_path: Path) -> None:
    busy = True
    with engine_of() as engine, engine_of() as other:
        first = Checkpoint(engine, tmp_path, in_use=lambda: busy)
        run(engine, first, range(2))
        with pytest.raises(ss.ConfigurationError, match=r"in use by a streaming query of .*mark"):
            Checkpoint(other, tmp_path)
        code = (
            "import sys; from specstream.checkpoint.format.store import LocalStore;"
            "LocalStore(sys.argv[1]).open()"
        )
        command = [sys.executable, "-c", code, str(tmp_path)]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        assert "ConfigurationError: checkpoint=" in done.stderr
        assert "in use by another process (process" in done.stderr

        busy = False  # its query has ended
        second = Checkpoint(other, tmp_path)
        assert other.snapshot() == engine.snapshot()
        with pytest.raises(ss.ConfigurationError, match="has taken the directory over"):
            first.answer("q", 2)
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        assert "in use by another process" in done.stderr  # the second one's lock holds
        second.close()
    assert subprocess.run(command, check=False).returncode == 0


def _wait(inside: Any, leave: Any) -> None:
    inside.set()
    leave.wait(60)


def test_a_forked_child_does_not_hold_the_lock_on(tmp_path: Path) -> None:
    place = LocalStore(tmp_path)
    place.open()
    context = multiprocessing.get_context("fork")
    inside, leave = context.Event(), context.Event()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # forking with threads
        child = context.Process(target=_wait, args=(inside, leave))
        child.start()
    assert inside.wait(60)
    place.close()
    code = (
        "import sys; from specstream.checkpoint.format.store import LocalStore; "
        "LocalStore(sys.argv[1]).open()"
    )
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False).returncode == 0
    leave.set()
    child.join()


# ---- places ----


def test_another_filesystem_keeps_files_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "INCREMENTS", 2)

    def remote(text: Any) -> RemoteStore:
        return RemoteStore(fs.LocalFileSystem(), str(text), f"remote://{text}")

    monkeypatch.setattr(checkpoints, "store_of", remote)
    path = tmp_path / "deep" / "checkpoint"
    write(path, range(5))
    write(path, range(5, 10))
    assert_is_after(path, 9)
    assert files(path)[0] == "0000000006.full"
    torn = path / files(path)[-1]
    torn.write_bytes(torn.read_bytes()[:-9])
    with pytest.warns(RuntimeWarning, match=r"remote://.*0000000009\.full"):
        assert_is_after(path, 8)


def test_a_uri_in_spark_s_own_directory_is_refused(tmp_path: Path) -> None:
    filesystem = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    for name in ("offsets", "commits", "metadata"):
        filesystem.create_dir(f"query/spark/{name}", recursive=True)
    for place, where in (("query/spark", "is"), ("query/spark/a/b", "is inside")):
        with pytest.raises(
            ss.ConfigurationError,
            match=rf"checkpoint='remote:///{place}' {where} the checkpointLocation 'query/spark'",
        ):
            RemoteStore(filesystem, place, f"remote:///{place}").open()
    RemoteStore(filesystem, "query/ours", "remote:///query/ours").open()


def test_paths_and_uris(tmp_path: Path) -> None:
    assert isinstance(store_of(f"file://{tmp_path}/a"), LocalStore)
    assert store_of(tmp_path / "a").key == store_of(f"file://{tmp_path}/b/../a").key
    with pytest.raises(ss.ConfigurationError, match="nowhere://x/y"):
        store_of("nowhere://x/y")
    bad: Any = 7
    with pytest.raises(ss.ConfigurationError, match="checkpoint=7"):
        store_of(bad)
    (tmp_path / "file").touch()
    with pytest.raises(ss.ConfigurationError, match="cannot be a directory"):
        store_of(tmp_path / "file").open()


def test_what_a_killed_writer_left_is_removed(tmp_path: Path) -> None:
    write(tmp_path, range(2))
    left = tmp_path / ".0000000002.increment.writing"
    left.write_bytes(b"SPECCKPT")
    assert_is_after(tmp_path, 1)
    assert not left.exists()
