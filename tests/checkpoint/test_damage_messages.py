"""Damage in a checkpoint, in Spark's beside it, or in the record of a run: who asks is told which
file it is, and what to do."""

from __future__ import annotations

import json
import random
import shutil
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import fs
from support.checkpoint.fed import Fed
from support.commands import invoke

import specstream as ss
from specstream.checkpoint.format.spark_log import SparkLog
from specstream.checkpoint.format.store import LocalStore
from specstream.checkpoint.inspect.inventory import inventory
from specstream.checkpoint.inspect.rollback import roll_back
from specstream.checkpoint.run import checkpoint as checkpoints
from specstream.checkpoint.run.run_directory import RunDirectory

BATCHES = 7


class Seen(ss.State):
    total = ss.scalar(int)
    cells = ss.array(float, 3_000)  # more than what a batch changes


@ss.operator(state=Seen, event={"x": int}, emits={"total": int})
def sums(state, event, emit):  # type: ignore[no-untyped-def]
    state.total += event.x
    emit(state.total)


def write(path: Path, *lines: str) -> None:
    """A file as Spark leaves it in a local directory: with Hadoop's checksums of 512 bytes each."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = "\n".join(lines).encode()
    path.write_bytes(content)
    sums = [zlib.crc32(content[at : at + 512]) for at in range(0, len(content), 512)]
    crc = b"crc\0" + struct.pack(f">I{len(sums)}I", 512, *sums)
    (path.parent / f".{path.name}.crc").write_bytes(crc)


def write_sparks(directory: Path, batches: int) -> None:
    """What Spark has after so many batches from files, of which the last one is done."""
    write(directory / "metadata", json.dumps({"id": "q"}))
    for batch in range(batches):
        about = json.dumps({"batchWatermarkMs": 0, "conf": {"spark.some.option": "x" * 600}})
        write(directory / "offsets" / str(batch), "v1", about, json.dumps({"logOffset": batch}))
        write(directory / "commits" / str(batch), "v1", '{"nextBatchWatermarkMs":0}')
        write(directory / "sources" / "0" / str(batch), "v1", json.dumps({"path": f"{batch}"}))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a run: two full files, differences, Spark's, and the record."""
    place = tmp_path_factory.mktemp("whole") / "run"
    run = RunDirectory(place)
    with pytest.MonkeyPatch.context() as patch, ss.Engine(sums, horizon=0) as engine:
        patch.setattr(checkpoints, "INCREMENTS", 4)
        run.path.mkdir()
        run.begin({"operator": "sums", "--input": "events"}, [place / "out"])
        fed = Fed(engine, order_by="time", to=lambda table, batch: None, checkpoint=run.files,
                  keep_batches=BATCHES)  # fmt: skip
        for batch in range(BATCHES):
            fed.apply(batch, pa.table({"time": [batch], "x": [batch]}))
        fed.checkpoint.close()
    write_sparks(run.spark, BATCHES)
    return place


@pytest.fixture
def run(whole: Path, tmp_path: Path) -> RunDirectory:
    return RunDirectory(shutil.copytree(whole, tmp_path / "run"))


def change(path: Path, dice: random.Random) -> None:
    """A bit of it."""
    content = bytearray(path.read_bytes())
    content[dice.randrange(len(content))] ^= 1 << dice.randrange(8)
    path.write_bytes(content)


def verified(run: RunDirectory) -> tuple[dict[str, str], str]:
    """The troubles of a directory that is not whole; and what is printed."""
    found = invoke("checkpoint", "verify", run.path, "--json")
    text = invoke("checkpoint", "verify", run.path)
    assert (found.exit_code, text.exit_code) == (1, 1)
    troubles: dict[str, str] = json.loads(found.stdout)["troubles"]
    for name, trouble in troubles.items():
        assert f"{name}: {trouble}" in text.stdout
    return troubles, text.stdout


def test_a_directory_that_is_whole_has_no_troubles(run: RunDirectory) -> None:
    done = invoke("checkpoint", "verify", run.path, "--json")
    report = json.loads(done.stdout)
    assert (done.exit_code, report["troubles"], report["gaps"]) == (0, {}, [])
    ours = sum(1 for path in run.files.iterdir() if path.name != "lock")
    text = invoke("checkpoint", "verify", run.path).stdout
    assert f"{ours + 1 + 1 + 3 * BATCHES} file(s) read, 0 of them" in text


LAST = BATCHES - 1


@pytest.mark.parametrize(
    ("name", "is_needed"),
    [
        ("metadata", True),
        (f"offsets/{LAST}", True),
        (f"offsets/{LAST - 1}", True),
        ("offsets/2", False),
        (f"commits/{LAST}", True),
        ("commits/2", False),
        ("sources/0/3", True),
    ],
)
def test_whatever_bit_of_sparks_own_has_changed_the_file_is_named(
    run: RunDirectory, name: str, is_needed: bool
) -> None:
    dice = random.Random(name)
    path = run.spark / name
    before = path.read_bytes()
    for _ in range(20):
        change(path, dice)
        assert list(SparkLog(run.spark).damaged) == [name]
        path.write_bytes(before)
    sums = path.parent / f".{path.name}.crc"
    sums.write_bytes(sums.read_bytes()[:-1] + bytes([sums.read_bytes()[-1] ^ 4]))
    troubles, _ = verified(run)
    assert list(troubles) == [str(path)]
    assert f".{path.name}.crc" in troubles[str(path)]
    assert ("Spark cannot continue" in troubles[str(path)]) == is_needed


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (f"offsets/{LAST}", b""),
        (f"offsets/{LAST}", b"v1"),
        (f"offsets/{LAST}", b'v1\n{"batchWatermarkMs":0,\n{"logOffset":5}'),
        (f"commits/{LAST}", b"garbage"),
        ("metadata", b'{"id": 7}'),
    ],
)
def test_where_there_are_no_checksums_the_form_is_looked_at(
    run: RunDirectory, name: str, content: bytes
) -> None:
    for path in run.spark.rglob(".*.crc"):
        path.unlink()
    assert SparkLog(run.spark).damaged == {}
    (run.spark / name).write_bytes(content)
    assert list(SparkLog(run.spark).damaged) == [name]


def test_spark_needs_the_plan_before_the_last_one(run: RunDirectory) -> None:
    (run.spark / "offsets" / str(LAST - 1)).unlink()
    troubles, _ = verified(run)
    assert "it is not there" in troubles[str(run.spark / "offsets" / str(LAST - 1))]


def test_the_way_back_from_damage_in_sparks_is_told_and_is_one(run: RunDirectory) -> None:
    damaged = run.spark / "offsets" / str(LAST)
    change(damaged, random.Random(1))
    troubles, _ = verified(run)
    (trouble,) = troubles.values()
    # The plan of a batch that comes again has to be whole: so it is the one before that.
    assert f"--to {LAST - 2}" in trouble
    store = LocalStore(run.files)
    refused = invoke("checkpoint", "rollback", run.path, "--to", LAST - 1)
    assert refused.exit_code == 1
    assert f"offsets/{LAST}" in refused.stderr
    assert f"can be at 0 to {LAST - 2}" in " ".join(refused.stderr.split())
    assert roll_back(store, SparkLog(run.spark)).batch_id == LAST - 2
    assert not damaged.exists()
    log = SparkLog(run.spark)
    assert (log.next_batch, log.damaged, log.troubles_at()) == (LAST - 1, {}, {})
    assert inventory(store).fits(log) is None
    assert invoke("checkpoint", "verify", run.path).exit_code == 0


def test_damage_that_no_start_reads_keeps_nobody_from_going_on(run: RunDirectory) -> None:
    change(run.spark / "offsets" / "2", random.Random(1))
    store, log = LocalStore(run.files), SparkLog(run.spark)
    assert roll_back(store, log, dry_run=True).files == []
    found = inventory(store)
    # To be at batch 1 the plan of batch 2 is needed, and to be at 2 where it ends.
    assert found.both_at(log) == [0, *range(3, BATCHES)]


def damage_syntax(path: Path) -> None:
    path.write_text(path.read_text()[:-10])


def damage_value(path: Path) -> None:
    """One letter, and it is still a record."""
    path.write_text(path.read_text().replace("events", "evente"))


@pytest.mark.parametrize("damage", [damage_syntax, damage_value, Path.unlink])
def test_a_damaged_record_of_a_run_is_named(
    run: RunDirectory, damage: Callable[[Path], None]
) -> None:
    damage(run.path / "run.json")
    troubles, text = verified(run)
    assert list(troubles) == [str(run.path / "run.json")]
    assert "put " in troubles[str(run.path / "run.json")]
    assert f"the newest state to continue from is the one after batch {LAST}" in text
    assert ss.checkpoint_state(run.path).batch_id == LAST  # which needs no record


def test_a_record_that_somebody_has_changed_on_purpose_is_taken(run: RunDirectory) -> None:
    path = run.path / "run.json"
    report = json.loads(path.read_text())
    report["outputs"] = ["elsewhere"]
    path.write_text(json.dumps(report))
    with pytest.raises(ss.SnapshotError, match="its checksum is wrong"):
        run.record()
    del report["checksum"]
    path.write_text(json.dumps(report))
    assert run.record().outputs == ["elsewhere"]


# ---- our own ----


def names(run: RunDirectory, kind: str) -> list[str]:
    return sorted(path.name for path in run.files.glob(f"*.{kind}"))


def test_a_file_that_is_missing_in_the_midst_of_a_chain_is_told(run: RunDirectory) -> None:
    (run.files / "0000000002.increment").unlink()
    troubles, text = verified(run)
    assert "restore a copy of it" in troubles["0000000002"]
    assert "the file of batch 2, which it builds on, is not there" in text
    assert "no start needs the damaged files" in text
    listed = invoke("checkpoint", "list", run.path).stdout
    assert "no: the file of batch 2, which it builds on, is not there" in listed


def test_a_gap_that_nothing_builds_on_is_told_and_is_no_damage(run: RunDirectory) -> None:
    second = names(run, "full")[1]
    batch = int(second[:10]) - 1
    (run.files / f"{batch:010d}.increment").unlink()
    done = invoke("checkpoint", "verify", run.path)
    assert done.exit_code == 0, done.stdout
    assert f"no files of the batches {batch}" in done.stdout
    assert json.loads(invoke("checkpoint", "verify", run.path, "--json").stdout)["gaps"] == [batch]


def test_a_path_that_the_record_could_not_hold_is_refused(tmp_path: Path) -> None:
    """A run began with it, and no start could read the record."""
    with pytest.raises(ss.ConfigurationError, match=r"--output '/out\\udcff' is no UTF-8"):
        RunDirectory(tmp_path / "run").check({"--output": "/out\udcff", "--errors": None})


def test_a_run_without_sparks_checkpoint_is_told(run: RunDirectory) -> None:
    shutil.rmtree(run.spark)
    troubles, _ = verified(run)
    assert "restore a copy of it" in troubles[str(run.spark)]


def test_a_file_that_cannot_be_read_is_told_without_a_traceback(run: RunDirectory) -> None:
    (path := run.files / names(run, "increment")[-1]).unlink()
    path.mkdir()
    for words in (["checkpoint", "list"], ["checkpoint", "verify"], ["state"]):
        done = invoke(*words, run.path)
        assert done.exit_code == 1
        assert done.stderr.startswith("Error: ")
        assert str(path) in done.stderr


def test_an_older_state_is_said_to_be_one(run: RunDirectory, tmp_path: Path) -> None:
    newest = run.files / f"{LAST:010d}.increment"
    change(newest, random.Random(3))
    found = invoke("state", run.path)
    assert found.exit_code == 0
    assert f"after batch {LAST - 1}" in " ".join(found.stdout.split())
    for told in (found.stderr, invoke("state", run.path, "--field", "total", "--json").stderr):
        said = " ".join(told.split())
        assert f"the state after batch {LAST - 1}" in said
        assert newest.name in said
        assert "specstream checkpoint verify" in said
    as_json = json.loads(invoke("state", run.path, "--json").stdout)
    assert (as_json["batch"], as_json["newest_batch"]) == (LAST - 1, LAST)
    assert newest.name in as_json["damaged"][0]
    there = ss.checkpoint_state(run.path)
    assert there.newest_batch == LAST
    assert newest.name in there.damaged[0]
    assert newest.name in repr(there)
    text = invoke("checkpoint", "verify", run.path).stdout
    assert f"there are files up to batch {LAST}" in text
    # Nothing of that where it is whole, or where one was asked for.
    assert invoke("state", run.path, "--batch", 2).stderr == ""


def test_who_asks_for_a_batch_that_cannot_be_had_is_told_which_can(run: RunDirectory) -> None:
    change(run.files / "0000000002.increment", random.Random(3))
    second = int(names(run, "full")[1][:10])
    rest = f"{second} to {LAST}" if second < LAST else str(LAST)
    for batch in (2, 3, 70):
        refused = invoke("state", run.path, "--batch", batch)
        assert refused.exit_code == 1
        said = " ".join(refused.stderr.split())
        assert f"give one of those whose state can be had: 0 to 1, {rest}" in said, said


def test_sparks_files_in_a_store_are_looked_at_as_those_of_a_directory(run: RunDirectory) -> None:
    change(run.spark / "offsets" / "3", random.Random(1))
    remote = SparkLog(run.spark.as_uri())
    assert list(remote.damaged) == ["offsets/3"]
    assert fs.FileSystem.from_uri(run.spark.as_uri())
