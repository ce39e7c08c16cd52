"""A run with a checkpoint is killed, or taken back, and the same command goes on with it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.commands import invoke
from support.spark import crash_driver
from support.spark.run_again import CHECKPOINT, parts, run, uninterrupted

import specstream as ss
from specstream.checkpoint.format.spark_log import SparkLog
from specstream.checkpoint.format.store import LocalStore
from specstream.checkpoint.inspect.inventory import inventory
from specstream.checkpoint.inspect.rollback import roll_back
from specstream.checkpoint.run.run_directory import RunDirectory
from specstream.sinks.compaction import compact

pytestmark = pytest.mark.spark

# Spark puts its log of files together after ten batches.
FILES, ROWS = 12, 30
KILLED, BACK = 10, 4


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a run that was killed behind the record of a batch, and went on to its end."""
    directory = tmp_path_factory.mktemp("run")
    crash_driver.write_events(directory / "events", FILES, ROWS)
    options = ("--keep-batches", FILES)
    run(directory, *options, crash=f"before-commit@{KILLED}")
    assert not (directory / "out" / f"part-{KILLED:08d}.parquet").exists()
    done = run(directory, *options, "--threads", 1, "--horizon", 0)
    assert done.returncode == 0, done.stderr
    (directory / "summary").write_text(done.stdout.splitlines()[-1])
    return directory


def assert_is_uninterrupted(directory: Path) -> None:
    """Rows and state, bit for bit."""
    rows, state = uninterrupted(directory)
    assert parts(directory / "out") == rows
    found = ss.checkpoint_state(directory / CHECKPOINT).state.to_dict()
    assert found.keys() == state.keys()
    assert all(found[name].tobytes() == state[name].tobytes() for name in state)


def test_a_killed_run_goes_on_and_ends_as_if_never_interrupted(directory: Path) -> None:
    assert_is_uninterrupted(directory)
    summary = json.loads((directory / "summary").read_text())
    assert summary["after_batch"] == KILLED
    assert summary["rows_in"] == (FILES - KILLED - 1) * ROWS


def test_its_checkpoint_is_read_by_its_directory(directory: Path) -> None:
    place = directory / CHECKPOINT
    listed = json.loads(invoke("checkpoint", "list", place, "--json").stdout)
    assert [file["batch_id"] for file in listed["files"]] == list(range(FILES))
    assert {file["rows"] for file in listed["files"]} == {ROWS}
    assert (listed["restart"], listed["spark"]["next_batch"]) == (FILES - 1, FILES)
    verified = invoke("checkpoint", "verify", place)
    assert verified.exit_code == 0, verified.output
    assert f"state to continue from is the one after batch {FILES - 1}" in verified.stdout
    replayed = json.loads(invoke("replay", place, "--json", "--batch", 3).stdout)
    assert (replayed["batch"], replayed["difference"]) == (3, None)


def test_damage_in_whatever_spark_has_written_is_found(directory: Path, tmp_path: Path) -> None:
    run = RunDirectory(shutil.copytree(directory / CHECKPOINT, tmp_path / "copied"))
    log = SparkLog(run.spark)
    names = [place + name for place, _, name in log.files]
    assert log.damaged == {}
    assert {name.partition("/")[0] for name in names} == {
        "metadata", "offsets", "commits", "sources"
    }  # fmt: skip
    for number, name in enumerate(names):
        path = run.spark / name
        assert (path.parent / f".{path.name}.crc").exists()
        content = path.read_bytes()
        at = number * 31 % len(content)
        path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        assert list(SparkLog(run.spark).damaged) == [name]
        path.write_bytes(content)
    for path in run.spark.rglob(".*.crc"):
        path.unlink()
    assert SparkLog(run.spark).damaged == {}  # by their form


def options_of(directory: Path, **changed: object) -> list[object]:
    given: dict[str, object] = {
        "--input": directory / "events",
        "--order-by": "time",
        "--source": "origin",
        "--output": directory / "out",
        "--checkpoint": directory / CHECKPOINT,
        **{f"--{name.replace('_', '-')}": value for name, value in changed.items()},
    }
    return [one for option in given.items() for one in option]


def test_a_start_with_other_options_is_refused(directory: Path, tmp_path: Path) -> None:
    other = shutil.copytree(directory / "events", tmp_path / "other")
    target = f"{crash_driver.__file__}:chain"
    for changed, message in (
        ({"input": other}, f"--input was '{directory}/events' and is now '{other}'"),
        ({"output": tmp_path / "out"}, f"--output was '{directory}/out' and is now"),
        ({"order_by": "x"}, "--order-by was 'time' and is now 'x'"),
        ({"watermark": 5}, "there was no watermark= and now there is one"),
    ):
        refused = invoke("run", target, *options_of(directory, **changed))
        assert refused.exit_code == 1
        assert message in refused.stderr
        assert "a run goes on with the options that it has" in refused.stderr
    refused = invoke("run", f"{crash_driver.__file__}:count_events", *options_of(directory))
    assert "operator was 'chain' and is now 'count_events'" in refused.stderr
    assert not (tmp_path / "out").exists()


def test_a_checkpoint_directory_of_something_else_is_refused(
    directory: Path, tmp_path: Path
) -> None:
    target, spark = f"{crash_driver.__file__}:chain", directory / CHECKPOINT / "spark"
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "todo").touch()
    (tmp_path / "home" / "spark" / "bin").mkdir(parents=True)
    for place, message in (
        (spark, "it is a checkpointLocation of Spark"),
        (tmp_path / "notes", "there is 'todo' in it, which is of no run"),
        (tmp_path / "home", "there is 'spark' in it, which is of no run"),
    ):
        changed = {"checkpoint": place, "output": tmp_path / "out"}
        refused = invoke("run", target, *options_of(directory, **changed))
        assert refused.exit_code == 1
        assert message in refused.stderr
    refused = invoke("run", target, *options_of(directory, checkpoint=tmp_path / "new"))
    assert "Parquet files in it already" in refused.stderr


def test_a_rollback_broken_off_anywhere_can_be_run_again(directory: Path, tmp_path: Path) -> None:
    def copied(name: str) -> RunDirectory:
        return RunDirectory(shutil.copytree(directory / CHECKPOINT, tmp_path / name))

    def there(run: RunDirectory) -> list[str]:
        return sorted(str(path.relative_to(run.path)) for path in run.path.rglob("*"))

    whole = copied("whole")
    planned = roll_back(LocalStore(whole.files), SparkLog(whole.spark), BACK, dry_run=True)
    assert there(whole) == there(RunDirectory(directory / CHECKPOINT))
    roll_back(LocalStore(whole.files), SparkLog(whole.spark), BACK)
    assert inventory(LocalStore(whole.files)).restart is not None
    assert SparkLog(whole.spark).next_batch == BACK + 1
    assert not planned.merges_files
    # Spark's plan of the next batch stays, and its log of files is as it was then.
    assert max(SparkLog(whole.spark).planned) == BACK + 1
    log = (whole.spark / "sources" / "0").glob("[0-9]*")
    assert sorted(path.name for path in log) == list(map(str, range(BACK + 2)))

    class Killed(Exception):
        pass

    for count in range(len(planned.files)):
        run = copied(str(count))
        left = count

        def kill(name: str) -> None:
            nonlocal left
            if not left:
                raise Killed
            left -= 1

        store = LocalStore(run.files)
        with pytest.raises(Killed):
            roll_back(store, SparkLog(run.spark), BACK, progress=kill)
        # A query that is started now is refused, or goes on where nothing is lost.
        found, spark = inventory(store), SparkLog(run.spark)
        restart = found.restart
        assert restart is not None
        assert restart.batch_id >= BACK
        if found.fits(spark) is None:
            assert spark.next_batch in (restart.batch_id, restart.batch_id + 1)
        roll_back(store, SparkLog(run.spark), BACK)
        assert there(run) == there(whole)
        shutil.rmtree(run.path)


def test_behind_a_rollback_the_run_is_one_that_never_went_further(directory: Path) -> None:
    place = directory / CHECKPOINT
    code = (
        "import sys; from specstream.checkpoint.format.store import LocalStore\n"
        "store = LocalStore(sys.argv[1]); store.open()\n"
        "print('locked', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, place / "specstream"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"locked\n"
        refused = invoke("checkpoint", "rollback", place, "--to", BACK)
        assert refused.exit_code == 1
        assert f"in use by another process (process {holder.pid})" in refused.stderr
        assert holder.stdin is not None
        holder.stdin.close()

    nothing = invoke("checkpoint", "rollback", place)
    assert f"are at batch {FILES - 1} already; nothing is deleted" in nothing.stdout
    compacted = directory / "compacted"
    shutil.copytree(directory / "out", compacted)
    compact(compacted, grace=0, leave=1)
    output = invoke(
        "checkpoint", "rollback", place, "--to", BACK, "--dry-run", "--output", compacted
    ).stdout
    kept = ROWS * (BACK + 1)
    name = f"part-00000000-{FILES - 2:08d}.parquet"
    assert (
        f"{compacted / name} has earlier batches as well: leave its first {kept:,} rows" in output
    )
    assert f"    {compacted / f'part-{FILES - 1:08d}.parquet'}\n" in output
    done = json.loads(invoke("checkpoint", "rollback", place, "--to", BACK, "--json").stdout)
    assert (done["batch_id"], done["newest"]) == (BACK, FILES - 1)
    assert [Path(path).name for path in done["outputs"]] == [
        f"part-{n:08d}.parquet" for n in range(BACK + 1, FILES)
    ]
    for path in done["outputs"]:
        os.unlink(path)
    assert [one.name for one in sorted((directory / "out").iterdir())] == [
        f"part-{n:08d}.parquet" for n in range(BACK + 1)
    ]
    again = run(directory, "--keep-batches", FILES)
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout.splitlines()[-1])["after_batch"] == BACK
    assert_is_uninterrupted(directory)


def write_more(events: Path, number: int, times: list[int]) -> None:
    columns: dict[str, Any] = {
        "time": times, "origin": ["origin 1"] * len(times), "x": times, "weight": [1.0] * len(times)
    }  # fmt: skip
    path = events / f"{number:05d}.parquet"
    pq.write_table(pa.table(columns), path)
    os.utime(path, (1_000_000_000 + number,) * 2)


# Four processes with a Spark each.
@pytest.mark.long
def test_killed_with_early_results_and_a_pipeline_that_waits_nothing_is_lost(
    tmp_path: Path,
) -> None:
    files = 4
    crash_driver.write_events(
        tmp_path / "events", files, ROWS, watermark=True, pipeline=True, phases="event"
    )
    watermark = crash_driver.event_time(tmp_path)
    options = (
        "--watermark", watermark["watermark"], "--idle-timeout", watermark["idle_timeout"],
        "--late-output", tmp_path / "late", "--early", tmp_path / "early",
    )  # fmt: skip
    target = "desk"
    for crash in ("before-write@1", "between-sinks@2", "before-early@3"):
        run(tmp_path, *options, target=target, crash=crash)
    done = run(tmp_path, *options, target=target)
    assert done.returncode == 0, done.stderr
    oracle = crash_driver.sequential(tmp_path)
    for sink, expected in oracle.output.items():
        final = crash_driver.rows_of(tmp_path / "out" / sink)
        assert final.equals(expected)
        found = invoke("latest", tmp_path / "early" / sink, "--json")
        stands = [json.loads(line) for line in found.stdout.splitlines()]
        assert {row["change"] for row in stands} == {"final"}
        assert [{name: row[name] for name in final.column_names} for row in stands] == (
            final.to_pylist()
        )
    state = ss.checkpoint_state(tmp_path / CHECKPOINT).state.to_dict()
    wanted = oracle.state.to_dict()
    assert all(state[name].tobytes() == wanted[name].tobytes() for name in wanted)


@pytest.mark.long
def test_a_stream_that_has_ended_is_opened_again_by_a_rollback(tmp_path: Path) -> None:
    files = 3
    crash_driver.write_events(tmp_path / "events", files, ROWS, watermark=True)
    options = ("--watermark", 2 * ROWS, "--late", "drop")
    done = run(tmp_path, *options)
    assert done.returncode == 0, done.stderr
    again = run(tmp_path, *options)
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout.splitlines()[-1])["rows_in"] == 0

    write_more(tmp_path / "events", files, [2 * (files + 3) * ROWS, 2 * (files + 4) * ROWS])
    refused = run(tmp_path, *options)
    assert refused.returncode == 1
    assert f"finish() has ended the stream with batch {files}" in refused.stderr
    nothing = invoke("checkpoint", "rollback", tmp_path / CHECKPOINT)
    assert f"are at batch {files} already" in nothing.stdout
    back = invoke("checkpoint", "rollback", tmp_path / CHECKPOINT, "--to", files - 1)
    assert back.exit_code == 0, back.output
    done = run(tmp_path, *options)
    assert done.returncode == 0, done.stderr
    found = crash_driver.rows_of(tmp_path / "out")
    assert found.equals(crash_driver.sequential(tmp_path).output)
