"""What is in a checkpoint, whether it is whole, and the state at each batch: told as it is."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from pyarrow import fs
from support.checkpoint.fed import Fed
from support.commands import invoke

import specstream as ss
from specstream.checkpoint.format.checkpoint_files import CheckpointFiles
from specstream.checkpoint.format.restart import newest_chain
from specstream.checkpoint.format.store import LocalStore, RemoteStore
from specstream.checkpoint.inspect.inventory import inventory
from specstream.checkpoint.run import checkpoint as checkpoints

BATCHES, ROWS = 9, 20


class Counts(ss.State):
    seen = ss.scalar(int)
    cells = ss.array(float, 3_000)
    last = ss.dict(str, int)
    recent = ss.deque(float, maxlen=3)


@ss.operator(
    state=Counts, event={"name": str, "x": int, "weight": float}, emits={"name": str, "seen": int}
)
def count(state, event, emit):
    state.seen += 1
    state.cells[event.x] += event.weight
    state.last[event.name] = event.x
    state.recent.append(event.weight)
    if event.x % 3:
        emit(event.name, state.seen)


def rows(batch: int) -> pa.Table:
    dice = random.Random(batch)
    return pa.table(
        {
            "time": [100 * batch + n for n in range(ROWS)],
            "name": [f"n{dice.randrange(5 + batch)}" for _ in range(ROWS)],
            "x": [dice.randrange(3_000) for _ in range(ROWS)],
            "weight": [dice.random() for _ in range(ROWS)],
        }
    )


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint of some full files and differences to them, all batches of it."""
    place = tmp_path_factory.mktemp("recorded") / "checkpoint"
    with pytest.MonkeyPatch.context() as patch, ss.Engine(count, horizon=0) as engine:
        patch.setattr(checkpoints, "INCREMENTS", 3)
        fed = Fed(engine, order_by="time", to=lambda table, batch: None, checkpoint=place,
                  keep_batches=BATCHES)  # fmt: skip
        for batch in range(BATCHES):
            fed.apply(batch, rows(batch))
        fed.checkpoint.close()
    return place


def sequential(batch: int) -> ss.SequentialRun:
    return count.run_sequential(pa.concat_tables(map(rows, range(batch + 1))))


def test_the_batch_that_is_not_recorded_is_listed_and_can_be_replayed(tmp_path: Path) -> None:
    place = tmp_path / "checkpoint"
    with ss.Engine(count, horizon=0) as engine:
        fed = Fed(engine, order_by="time", to=lambda table, batch: None, checkpoint=place,
                  keep_batches=2)  # fmt: skip
        wrong = rows(0).set_column(2, "x", pa.array([7, 5_000] + [0] * (ROWS - 2)))
        with pytest.raises(IndexError):
            fed.apply(0, wrong)
        done = invoke("checkpoint", "list", place)
        assert done.exit_code == 0, done.output
        first, *rest = done.stdout.splitlines()
        assert [first, rest[0]] == [
            "no batch is recorded yet", "can be replayed (specstream replay): batch 0",
        ]  # fmt: skip
        assert rest[1].startswith(
            "batch 0 is not recorded, and comes again at the next start: IndexError at event 1: "
        )
        for batch in range(3):
            fed.apply(batch, rows(batch))
        done = invoke("checkpoint", "list", place)
        assert done.stdout.splitlines()[-1] == "can be replayed (specstream replay): batch 1 to 2"
        # A process that has ended meanwhile has left no error.
        assert fed.runner.inputs is not None
        fed.runner.inputs.begin(3, None, rows(3), fed.checkpoint.newest)
        done = invoke("checkpoint", "list", place)
        assert done.stdout.splitlines()[-2:] == [
            "can be replayed (specstream replay): batch 1 to 3",
            "batch 3 is not recorded, and comes again at the next start: it is in progress, or "
            "its process ended",
        ]
        found = json.loads(invoke("checkpoint", "list", place, "--json").stdout)
        assert (found["replayable"], found["unrecorded"]) == ([1, 2, 3], {"3": None})
        fed.checkpoint.close()


def test_each_batch_is_listed_with_what_it_was(recorded: Path) -> None:
    found = json.loads(invoke("checkpoint", "list", recorded, "--json").stdout)
    files = found["files"]
    assert [file["batch_id"] for file in files] == list(range(BATCHES))
    assert len({file["is_whole"] for file in files}) == 2
    before = 0
    for batch, file in enumerate(files):
        output = sequential(batch).output.num_rows
        assert (file["rows"], file["pending"], file["operator"]) == (output - before, 0, "count")
        assert file["trouble"] is None
        before = output
    names = {f"{f['batch_id']:010d}.{'full' if f['is_whole'] else 'increment'}" for f in files}
    sizes = {name: (recorded / name).stat().st_size for name in names}
    assert sum(sizes.values()) == sum(file["size"] for file in files)
    assert (found["restart"], found["spark"]) == (BATCHES - 1, None)
    text = invoke("checkpoint", "list", recorded).stdout
    *lines, last = text.splitlines()
    assert len(lines) == 1 + BATCHES
    assert last == f"can be replayed (specstream replay): batch 0 to {BATCHES - 1}"


def test_the_state_at_each_batch_is_the_sequential_one(recorded: Path) -> None:
    for batch in range(BATCHES):
        found, wanted = ss.checkpoint_state(recorded, batch), sequential(batch).state
        assert (found.batch_id, found.operator, found.query) == (batch, "count", "q")
        assert found.next_sequence == (batch + 1) * ROWS
        tables = found.tables()
        assert set(tables) == {"seen", "cells", "last", "recent"}
        for name, table in tables.items():
            assert table.equals(wanted.table(name))
    assert ss.checkpoint_state(recorded).batch_id == BATCHES - 1
    assert "after batch           8" in repr(found)


def test_the_state_is_told_as_text_json_csv_and_parquet(recorded: Path, tmp_path: Path) -> None:
    wanted = sequential(4).state
    options = ("state", recorded, "--batch", 4)
    assert "seen    100" in invoke(*options).stdout
    everything = json.loads(invoke(*options, "--json").stdout)
    assert everything["batch"] == 4
    assert (everything["rejected_rows"], everything["failed_events"]) == (0, 0)
    assert everything["fields"]["last"] == wanted.table("last").to_pylist()
    lines = invoke(*options, "--field", "recent", "--json").stdout.splitlines()
    assert list(map(json.loads, lines)) == wanted.table("recent").to_pylist()
    shown = invoke(*options, "--field", "last", "--rows", 1).stdout
    assert f"{len(wanted.last) - 1} more" in shown
    assert invoke(*options, "--field", "last", "--csv", tmp_path / "f.csv").exit_code == 0
    assert pa.csv.read_csv(tmp_path / "f.csv").to_pylist() == wanted.table("last").to_pylist()
    assert invoke(*options, "--field", "cells", "--parquet", tmp_path / "f.parquet").exit_code == 0
    assert pq.read_table(tmp_path / "f.parquet").equals(wanted.table("cells"))


@pytest.mark.parametrize(
    ("options", "status", "message"),
    [
        (("--batch", 70), 1, "batch 70 has no file"),
        (("--field", "cell"), 1, "no field 'cell' after batch 8; it has: seen, cells, last"),
        (("--csv", "f.csv"), 2, "give --field, one of seen, cells, last, recent"),
        (("--csv", "f.csv", "--json"), 2, "give one of them"),
    ],
)
def test_what_cannot_be_shown_is_refused(
    recorded: Path, options: tuple[object, ...], status: int, message: str
) -> None:
    refused = invoke("state", recorded, *options)
    assert refused.exit_code == status
    assert message in " ".join(refused.stderr.split())


def test_a_directory_that_is_no_checkpoint_is_refused(tmp_path: Path) -> None:
    for command in (("state",), ("checkpoint", "list"), ("checkpoint", "verify")):
        for place, message in (
            (tmp_path / "none", "cannot be read"), (tmp_path, "has no checkpoint files"),
        ):  # fmt: skip
            refused = invoke(*command, place)
            assert refused.exit_code == 1
            assert message in refused.stderr
            assert not list(tmp_path.iterdir())


def test_whatever_is_damaged_it_says_what_a_start_goes_on_from(
    recorded: Path, tmp_path: Path
) -> None:
    names = [path.name for path in sorted(recorded.iterdir()) if path.name != "lock"]
    files = [name for name in names if not name.endswith(".input")]
    dice = random.Random(7)
    for number in range(25):
        place = shutil.copytree(recorded, tmp_path / str(number))
        damaged = dice.sample(names, dice.randint(1, 4))
        for name in damaged:
            content = bytearray((place / name).read_bytes())
            if dice.random() < 0.2 and name in files:
                (place / name).unlink()
                continue
            content[dice.randrange(len(content))] ^= 1 << dice.randrange(8)
            (place / name).write_bytes(content)
        store = LocalStore(place)
        found = inventory(store, thorough=True)
        wanted = newest_chain(CheckpointFiles(store, "it", 0)).chain
        restart = found.restart
        assert (restart and restart.batch_id) == (wanted and wanted.batch_id)
        told = {f"{file.batch_id:010d}" for file in found.files if file.trouble}
        for name in damaged:
            if (place / name).exists():
                assert name in found.troubles or name.partition(".")[0] in told
        for batch in found.usable:
            assert (
                ss.checkpoint_state(place, batch)
                .table("seen")
                .equals(sequential(batch).state.table("seen"))
            )
        verified = invoke("checkpoint", "verify", place)
        assert verified.exit_code == int(bool(told or found.troubles))
        shutil.rmtree(place)


def test_events_that_wait_and_rows_that_were_fetched_ahead_are_told(tmp_path: Path) -> None:
    place = tmp_path / "checkpoint"

    def fail(table: pa.Table, batch: int) -> None:
        if batch == 2:
            raise ValueError("the disk of the sink is full")

    with ss.Engine(count) as engine:
        fed = Fed(engine, order_by="time", watermark=10, to=fail, checkpoint=place, prefetch=True)
        waiting = []
        for batch in range(3):
            fed.send(batch, rows(batch))
            assert fed.prefetch is not None
            if batch < 2:
                fed.prefetch.wait()
                waiting.append(engine.stats.pending)
        assert fed.prefetch is not None
        with pytest.raises(ValueError, match="the disk of the sink is full"):
            fed.prefetch.wait()
        waiting.append(engine.stats.pending)
        fed.checkpoint.close()
    found = inventory(LocalStore(place), thorough=True)
    assert [file.pending for file in found.files] == waiting[-len(found.files) :]
    assert min(waiting) > 0
    assert found.prefetched == [2]
    assert found.others == {"0000000002.rows": ROWS}
    assert "fetched ahead" in invoke("checkpoint", "verify", place).stdout


def test_files_in_a_store_are_listed_as_those_of_a_directory(recorded: Path) -> None:
    remote = RemoteStore(fs.LocalFileSystem(), str(recorded), "store://recorded")
    assert inventory(remote, thorough=True) == inventory(LocalStore(recorded), thorough=True)


def test_a_rollback_needs_both_checkpoints(recorded: Path, tmp_path: Path) -> None:
    refused = invoke("checkpoint", "rollback", recorded)
    assert refused.exit_code == 2
    assert "give --spark" in refused.stderr
    refused = invoke("checkpoint", "rollback", recorded, "--spark", tmp_path)
    assert refused.exit_code == 1
    assert "cannot be read as a checkpointLocation of Spark" in refused.stderr
