"""Compaction: each row is there once, whenever it is killed, and batches stay known."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
from pyarrow import fs
from support.commands import invoke

import specstream as ss
from specstream.checkpoint.format import failpoints
from specstream.checkpoint.format.lease import Holder, Lease
from specstream.files import tree as trees
from specstream.files.tree import Lock
from specstream.sinks import compaction
from specstream.sinks.compaction import STEPS, compact

parquet_sink = ss.sinks.parquet_sink
DAYS = ("mon", "tue", "wed")


def rows(batch_id: int) -> pa.Table:
    """Of days that differ from batch to batch."""
    n = [10 * batch_id + at for at in range(3)]
    return pa.table({"n": n, "day": [DAYS[(batch_id + at) % 3 if at else 0] for at in range(3)]})


def filled(path: Path, batches: int = 8, partition_by: tuple[str, ...] = ()) -> Any:
    sink = parquet_sink(path, partition_by=partition_by)
    for batch_id in range(batches):
        sink(rows(batch_id), batch_id)
    return sink


def numbers(batches: int) -> list[int]:
    return [10 * batch_id + at for batch_id in range(batches) for at in range(3)]


def plainly(path: Path) -> list[int]:
    """What a reader finds who knows nothing of compactions."""
    found: list[int] = (
        pyarrow.dataset.dataset(path, partitioning="hive").to_table()["n"].to_pylist()
    )
    return sorted(found)


def rightly(path: Path | str) -> list[int]:
    return sorted(ss.sinks.parquet_dataset(path).to_table()["n"].to_pylist())


# ---- what it does ----


@pytest.mark.parametrize("in_place", [False, True])
def test_files_of_many_batches_become_one(tmp_path: Path, in_place: bool) -> None:
    path = tmp_path / "rows"
    filled(path)
    (path / "readme").write_text("of somebody else")
    done = compact(path, grace=0, in_place=in_place)
    assert (done.before, done.after, done.merged, done.rows) == (8, 2, 7, 21)
    # The newest stays as it is.
    assert sorted(one.name for one in path.iterdir()) == [
        "part-00000000-00000006.parquet",
        "part-00000007.parquet",
        "readme",
    ]
    assert pyarrow.dataset.dataset(path, format="parquet").files
    merged = pq.read_table(path / "part-00000000-00000006.parquet")
    assert merged["n"].to_pylist() == numbers(7)  # in their order
    assert sorted(pd.read_parquet(path / "part-00000007.parquet")["n"]) == [70, 71, 72]
    assert list(tmp_path.iterdir()) == [path]
    assert compact(path, grace=0, in_place=in_place).merged == 0
    # Later batches join those that were put together.
    sink = parquet_sink(path)
    sink(rows(8), 8)
    assert compact(path, grace=0, leave=0, in_place=in_place).after == 1
    (part,) = path.glob("*.parquet")
    assert part.name == "part-00000000-00000008.parquet"
    assert pq.read_table(part)["n"].to_pylist() == numbers(9)


@pytest.mark.parametrize("in_place", [False, True])
def test_each_directory_is_compacted_for_itself(tmp_path: Path, in_place: bool) -> None:
    path = tmp_path / "rows"
    filled(path, partition_by=("day",))
    before = {day: len(list((path / f"day={day}").iterdir())) for day in DAYS}
    assert compact(path, grace=0, in_place=in_place).after < sum(before.values())
    for day in DAYS:
        names = sorted(one.name for one in (path / f"day={day}").iterdir())
        assert names[0].count("-") == 2
        assert len(names) <= 2
    assert plainly(path) == rightly(path) == numbers(8)


def test_what_is_large_or_of_another_schema_stays(tmp_path: Path) -> None:
    path = tmp_path / "rows"
    sink = parquet_sink(path)
    for batch_id in range(9):
        table = rows(batch_id)
        if batch_id == 4:
            table = pa.table({"n": range(4000), "day": ["mon"] * 4000})
        if batch_id > 6:
            table = table.append_column("more", pa.array([1.0] * 3))
        sink(table, batch_id)
    size = sink.file(4).stat().st_size - 1
    names = {one.name for one in path.iterdir()}
    assert compact(path, grace=0, leave=0, target_size=size).after == 4
    assert sorted({one.name for one in path.iterdir()} - names) == [
        "part-00000000-00000003.parquet",
        "part-00000005-00000006.parquet",
        "part-00000007-00000008.parquet",
    ]


def test_permissions_stay(tmp_path: Path) -> None:
    path = tmp_path / "rows"
    filled(path, 3, ("day",))
    path.chmod(0o750)
    (path / "day=mon").chmod(0o700)
    (path / "day=mon" / "part-00000000.parquet").chmod(0o640)
    (tmp_path / "elsewhere").mkdir()
    (path / "linked").symlink_to(tmp_path / "elsewhere")
    compact(path, grace=0)
    merged = path / "day=mon" / "part-00000000-00000001.parquet"
    modes = [one.stat().st_mode & 0o777 for one in (path, path / "day=mon", merged)]
    assert modes == [0o750, 0o700, 0o640]
    assert (path / "linked").readlink() == tmp_path / "elsewhere"


def test_a_store_is_compacted_in_place_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filesystem = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    monkeypatch.setattr(
        trees, "filesystem_of", lambda option, text: (filesystem, text.partition("://")[2])
    )
    sink = parquet_sink("store://rows")
    for batch_id in range(4):
        sink(rows(batch_id), batch_id)
    with pytest.raises(ss.ConfigurationError, match=r"'store://rows': this store cannot exchange"):
        compact("store://rows")
    other = Lease(filesystem, "rows/_compaction", "it", seconds=0.3)
    other.take()
    with pytest.raises(ss.ConfigurationError, match="'store://rows' is in use by another process"):
        compact("store://rows", in_place=True, grace=0)
    other.release()
    assert compact("store://rows", in_place=True, grace=0).after == 2
    assert rightly("store://rows") == plainly(tmp_path / "rows") == numbers(4)
    sink(rows(1), 1)
    assert rightly("store://rows") == numbers(4)


@pytest.mark.parametrize("step", ["before-publish", "after-publish"])
def test_who_has_lost_the_lease_changes_no_more(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filesystem = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    monkeypatch.setattr(
        trees, "filesystem_of", lambda option, text: (filesystem, text.partition("://")[2])
    )
    sink = parquet_sink("store://rows")
    for batch_id in range(4):
        sink(rows(batch_id), batch_id)
    other = Lease(filesystem, "rows/_compaction", "it")
    before: list[set[str]] = []

    def stopped(at: str, batch_id: int) -> None:
        if at == step:
            # For so long that it is taken for one that has gone.
            monkeypatch.setattr(Holder, "has_ended", property(lambda holder: True))
            other.take()
            before.append({path.name for path in (tmp_path / "rows").glob("part-*")})

    monkeypatch.setattr(failpoints, "hit", stopped)
    with pytest.raises(ss.ConfigurationError, match="has the lease of the directory now"):
        compact("store://rows", in_place=True, grace=0)
    assert [{path.name for path in (tmp_path / "rows").glob("part-*")}] == before
    other.release()
    assert rightly("store://rows") == numbers(4)


def test_a_filesystem_that_cannot_exchange_directories_is_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "rows"
    filled(path, 3)
    # As the C library of another system has it.
    monkeypatch.setattr(ctypes, "CDLL", lambda *args, **more: object())
    with pytest.raises(ss.ConfigurationError, match=r"cannot be exchanged .* in_place=True"):
        compact(path, grace=0)
    assert plainly(path) == numbers(3)
    assert compact(path, grace=0, in_place=True).after == 2
    assert plainly(path) == numbers(3)


def test_options_and_directories_are_looked_at(tmp_path: Path) -> None:
    for given, match in (
        ({"leave": -1}, "leave=-1"),
        ({"target_size": 0}, "target_size=0"),
        ({"grace": float("nan")}, "grace=nan"),
    ):
        options: Any = given
        with pytest.raises(ss.ConfigurationError, match=match):
            compact(tmp_path, **options)
    with pytest.raises(ss.ConfigurationError, match="is no directory"):
        compact(tmp_path / "nowhere")
    path = tmp_path / "rows"
    filled(path, 3)
    (path / "part-00000001.parquet").write_bytes(b"no Parquet")
    with pytest.raises(ss.SinkError, match=r"compact\('.*rows'\): .*run it again"):
        compact(path, grace=0)
    assert len(list(path.iterdir())) == 3


def test_the_command_says_what_it_has_done(tmp_path: Path) -> None:
    filled(tmp_path / "rows")
    done = invoke("compact", tmp_path / "rows", "--grace", 0, "--leave", 3)
    assert "rows: 8 file(s) are 4 now; 5 were put together, with 15 row(s)" in done.stdout
    done = invoke("compact", tmp_path / "rows", "--grace", 0, "--json")
    report = json.loads(done.stdout)
    assert (report["before"], report["after"], report["merged"], report["rows"]) == (4, 2, 3, 21)
    done = invoke("compact", tmp_path / "nowhere")
    assert done.exit_code == 1
    assert "is no directory" in done.stderr


# ---- batches that come again ----


@pytest.mark.parametrize("partition_by", [(), ("day",)])
def test_a_compacted_batch_stays_known_as_delivered(
    tmp_path: Path, partition_by: tuple[str, ...]
) -> None:
    path = tmp_path / "rows"
    sink = filled(path, partition_by=partition_by)
    compact(path, grace=0, leave=0)
    before = sorted(one for one in path.rglob("*.parquet"))
    for again in (sink, parquet_sink(path, partition_by=partition_by)):
        for batch_id in (7, 3, 0):
            again(rows(batch_id), batch_id)
        again.prepare(rows(7), 7).abort()
    assert sorted(one for one in path.rglob("*.parquet")) == before
    assert plainly(path) == numbers(8)
    for wrong in (rows(4), rows(3).slice(1), rows(3).slice(0, 0)):
        with pytest.raises(ss.SinkError, match=r"batch 3: its rows are in .*begun anew"):
            sink(wrong, 3)
    assert plainly(path) == numbers(8)
    sink(rows(8), 8)
    assert plainly(path) == numbers(9)


def test_odd_values_of_a_compacted_batch_are_the_same_when_they_come_again(tmp_path: Path) -> None:
    table = pa.table(
        {
            "x": [float("nan"), -0.0, None],
            "at": pa.array([1, 2, None], pa.timestamp("ns", "UTC")),
            "s": pa.array(["a", None, "a"]).dictionary_encode(),
            "seconds": pa.array([1, 2, 3], pa.timestamp("s")),
        }
    )
    sink = parquet_sink(tmp_path / "rows")
    for batch_id in range(2):
        sink(table, batch_id)
    compact(tmp_path / "rows", grace=0, leave=0)
    sink(table, 0)
    with pytest.raises(ss.SinkError, match="begun anew"):
        sink(table.set_column(0, "x", pa.array([float("nan"), 0.0, None])), 0)


def test_early_changes_are_read_behind_a_compaction(tmp_path: Path) -> None:
    key = {"timestamp": [7], "source": ["b"], "sequence": [0], "n": [0]}
    sink = parquet_sink(tmp_path / "early")
    for version, change in ((1, "early"), (2, "early"), (3, "final")):
        told = {"price": [float(version)], "change": [change], "version": [version]}
        sink(pa.table(key | told), version)
    compact(tmp_path / "early", grace=0)
    assert ss.sinks.latest(sink)["price"].to_pylist() == [3.0]


# ---- killed ----


def killed_at(path: Path, step: str, batch_id: int, in_place: bool) -> None:
    log = path.parent / "crashes"
    crash = f"{step}@{batch_id}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # forking with threads
        process = os.fork()
    if process == 0:
        os.environ |= {"SPECSTREAM_CRASH": crash, "SPECSTREAM_CRASH_LOG": str(log)}
        with contextlib.suppress(BaseException):
            compact(path, grace=0, leave=0, in_place=in_place)
        os._exit(1)
    assert os.WTERMSIG(os.waitpid(process, 0)[1]) == signal.SIGKILL
    assert log.read_text().splitlines()[-1] == crash


EXCHANGED = ("merged", "before-exchange", "after-exchange", "between-removals")
IN_PLACE = ("before-publish", "after-publish", "between-removals")


def test_it_is_killed_at_every_step() -> None:
    assert set(EXCHANGED) | set(IN_PLACE) == set(STEPS)


@pytest.mark.slow
@pytest.mark.parametrize("in_place", [False, True])
def test_killed_at_every_step_each_row_is_there_once(tmp_path: Path, in_place: bool) -> None:
    path = tmp_path / "rows"
    sink = filled(path, 4, ("day",))
    batches = 4
    for step in IN_PLACE if in_place else EXCHANGED:
        first = sorted(path.glob("day=mon/*"))[-1]
        assert first.name == f"part-{batches - 1:08d}.parquet"
        killed_at(path, step, batches - 1, in_place)
        assert rightly(path) == numbers(batches)
        if not in_place:
            assert plainly(path) == numbers(batches)
        # The stream goes on: its last batch comes again, and others follow.
        for batch_id in (batches - 1, batches, batches + 1):
            sink(rows(batch_id), batch_id)
        batches += 2
        assert rightly(path) == numbers(batches)
        if not in_place:
            assert plainly(path) == numbers(batches)
    compact(path, grace=0, leave=0, in_place=in_place)
    assert rightly(path) == plainly(path) == numbers(batches)
    assert len(list(path.rglob("*"))) == 6  # a file in each directory, no hidden one
    assert sorted(one.name for one in tmp_path.iterdir()) == ["crashes", "rows"]


# ---- at the same time ----


@pytest.mark.slow
def test_readers_see_each_row_once_while_the_sink_writes_and_files_are_put_together(
    tmp_path: Path,
) -> None:
    path = tmp_path / "rows"
    sink = filled(path, 1)
    acknowledged, wrong, looks = [0], [], [0]
    is_over = threading.Event()

    def read() -> None:
        while not is_over.is_set():
            before = acknowledged[0]
            try:
                found = plainly(path)
            except FileNotFoundError:
                continue  # of the directory that was there when it was listed
            looks[0] += 1
            if found[: 3 * (before + 1)] != numbers(before + 1) or len(set(found)) < len(found):
                wrong.append((before, found))

    def put_together() -> None:
        while not is_over.is_set():
            compact(path, grace=0.3, leave=0)

    def put_together_files() -> list[str]:
        return [one.name for one in path.iterdir() if one.name.count("-") == 2]

    workers = [threading.Thread(target=work) for work in (read, put_together)]
    for worker in workers:
        worker.start()
    until = time.monotonic() + 300  # only a test that fails takes so long
    batch_id = 0
    while time.monotonic() < until:
        if batch_id >= 50 and looks[0] > 20 and put_together_files():
            break
        batch_id += 1
        for _ in range(2):  # and again
            sink(rows(batch_id), batch_id)
        acknowledged[0] = batch_id
    is_over.set()
    for worker in workers:
        worker.join()
    assert not wrong, wrong[0]
    assert looks[0] > 20
    assert put_together_files()
    assert plainly(path) == numbers(batch_id + 1)


def test_a_batch_under_way_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "rows"
    sink = filled(path, 3)
    prepared = sink.prepare(rows(3), 3)
    monkeypatch.setattr(compaction, "_WAIT", 0.05)
    with pytest.raises(ss.ConfigurationError, match="a sink has had a batch under way"):
        compact(path, grace=0)
    monkeypatch.setattr(compaction, "_WAIT", 60)
    worker = threading.Thread(target=compact, args=(path,), kwargs={"grace": 0})
    worker.start()
    prepared.commit()
    worker.join()
    assert plainly(path) == numbers(4)
    assert len(list(path.iterdir())) == 2


def test_one_compaction_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "rows"
    filled(path, 3)
    beside = tmp_path / ".rows.compacting"
    beside.mkdir()
    lock = Lock.of(beside, alone=True)
    assert lock is not None
    with pytest.raises(ss.ConfigurationError, match="another compaction is at work"):
        compact(path, grace=0)
    lock.release()
    compact(path, grace=0)
    assert not beside.exists()


@pytest.mark.parametrize("in_place", [False, True])
def test_a_directory_that_no_sink_writes_is_refused(tmp_path: Path, in_place: bool) -> None:
    (tmp_path / "events").mkdir()
    pq.write_table(pa.table({"x": [1]}), tmp_path / "events" / "a.parquet")
    for place in (tmp_path / "events", (tmp_path / "events").as_uri()):
        with pytest.raises(ss.ConfigurationError) as raised:
            compact(place, in_place=in_place)
        said = "has no files of a sink (part-00000000.parquet and so on), but others (a.parquet)"
        assert said in str(raised.value)
    for name in ("audit", "signals"):
        parquet_sink(tmp_path / "run" / name, partition_by=["day"])(
            pa.table({"day": [1], "x": [1]}), 0
        )
    with pytest.raises(ss.ConfigurationError, match=r"of several sinks \(audit, signals\): exp"):
        compact(tmp_path / "run", in_place=in_place)


def test_the_command_says_what_it_expected(tmp_path: Path) -> None:
    (tmp_path / "events").mkdir()
    pq.write_table(pa.table({"x": [1]}), tmp_path / "events" / "a.parquet")
    done = invoke("compact", tmp_path / "events")
    assert done.exit_code == 1
    assert "expected the directory of one ss.sinks.parquet_sink, or of spec" in done.stderr
    parquet_sink(tmp_path / "rows")
    done = invoke("compact", tmp_path / "rows")
    assert (done.exit_code, done.stdout) == (
        0,
        f"{tmp_path / 'rows'}: the sink has written no batch there yet\n",
    )
