"""Who may write to a store without locks: one process at a time, the next one when it has gone."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from lease_driver import Driver, batch, chain
from pyarrow import fs

import specstream as ss
from specstream.checkpoint import lease as leases
from specstream.checkpoint.lease import Lease
from specstream.checkpoint.stream_options import StreamOptions

SECONDS = 1.0


@pytest.fixture(params=["linked", "plain"])
def kind(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture
def drivers() -> Iterator[list[Driver]]:
    """All that a test starts; none outlives it."""
    started: list[Driver] = []
    yield started
    for one in started:
        one.kill()


def start(drivers: list[Driver], *given: Any) -> Driver:
    drivers.append(Driver(*given))
    return drivers[-1]


def assert_is_whole(directory: Path, batches: int) -> None:
    """Rows and state are those of one sequential run over the batches."""
    wanted = chain.run_sequential(pa.concat_tables([batch(at) for at in range(batches)]))
    parts = sorted((directory / "rows").glob("part-*.parquet"))
    assert [int(part.stem[5:]) for part in parts] == list(range(batches))
    assert pa.concat_tables(map(pq.read_table, parts)).equals(wanted.output)
    assert not list((directory / "rows").glob(".*"))
    found = ss.checkpoint_state(directory / "checkpoint").state
    assert found.to_dict()["hash"] == wanted.state.hash


@pytest.mark.slow
def test_a_second_host_is_refused_while_the_first_lives_and_takes_over_when_it_is_killed(
    tmp_path: Path, kind: str, drivers: list[Driver]
) -> None:
    first = start(drivers, tmp_path, "one", SECONDS, kind)
    assert first.says() == "holds 0"
    assert first.run() == "done 0"
    second = start(drivers, tmp_path, "two", SECONDS, kind)
    refused = second.says()
    assert f"in use by another process (process {first.pid} of host one" in refused
    assert first.run() == "done 1"
    first.kill()
    killed = time.monotonic()
    second = start(drivers, tmp_path, "two", SECONDS, kind)
    assert second.says() == "holds 1"
    assert time.monotonic() - killed >= SECONDS * 2 / 3  # the last renewal's rest, at least
    assert [second.run(), second.run()] == ["done 1", "done 2"]
    second.end()
    # Given back: the next one need not wait.
    third = start(drivers, tmp_path, "three", 1000, kind)
    assert third.says() == "holds 2"
    third.end()
    assert_is_whole(tmp_path, 3)


@pytest.mark.slow
@pytest.mark.parametrize("stop", ["", "before-rename@1", "after-rename@1", "before-commit@1"])
def test_a_holder_that_was_stopped_commits_no_more_when_another_has_taken_over(
    tmp_path: Path, stop: str, drivers: list[Driver]
) -> None:
    kind = "plain" if stop == "before-rename@1" else "linked"
    first = start(drivers, tmp_path, "one", SECONDS, kind, stop)
    assert first.says() == "holds 0"
    assert first.run() == "done 0"
    if stop:
        assert first.run() == "stops"
    else:
        first.signal(signal.SIGSTOP)
    second = start(drivers, tmp_path, "two", SECONDS, kind)
    at = int(second.says().removeprefix("holds "))
    assert at == (1 if stop.startswith(("after", "before-commit")) else 0)
    for batch_id in range(at, 3):
        assert second.run() == f"done {batch_id}"
    before = {one: one.stat().st_ino for one in tmp_path.rglob("*") if one.suffix != ".lease"}
    first.signal(signal.SIGCONT)
    failed = first.says() if stop else first.run()
    assert failed.startswith("failed checkpoint='store://checkpoint': ")
    assert f"process {second.pid} of host two has the lease of the directory" in failed
    assert first.run().startswith("failed")  # and stays so
    if not stop:
        rows = {one: number for one, number in before.items() if "rows" in one.parts}
        assert {one: one.stat().st_ino for one in rows} == rows
    first.kill()
    assert second.run() == "done 3"
    second.end()
    assert_is_whole(tmp_path, 4)


@pytest.mark.slow
def test_a_holder_that_was_stopped_goes_on_where_nobody_has_taken_over(
    tmp_path: Path, kind: str, drivers: list[Driver]
) -> None:
    first = start(drivers, tmp_path, "one", 0.4, kind)
    assert first.says() == "holds 0"
    first.signal(signal.SIGSTOP)
    time.sleep(1)  # longer than the lease lasts
    first.signal(signal.SIGCONT)
    assert [first.run(), first.run()] == ["done 0", "done 1"]
    first.end()
    assert_is_whole(tmp_path, 2)


# ---- the lease itself ----


def lease(path: Path, seconds: float = SECONDS) -> Lease:
    filesystem = fs.SubTreeFileSystem(str(path), fs.LocalFileSystem())
    return Lease(filesystem, "there", "checkpoint='store://there'", seconds)


@pytest.fixture
def elsewhere(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if kind == "plain":
        monkeypatch.setattr(leases, "_local_path", lambda *of: None)


@pytest.mark.usefixtures("elsewhere")
def test_of_several_that_want_it_at_once_one_gets_it(tmp_path: Path) -> None:
    several = [lease(tmp_path) for _ in range(6)]
    refused: list[str] = []
    barrier = threading.Barrier(len(several))

    def take(one: Lease) -> None:
        barrier.wait()
        try:
            one.take()
        except ss.ConfigurationError as error:
            refused.append(str(error))

    workers = [threading.Thread(target=take, args=(one,)) for one in several]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(refused) == 5
    assert all("'store://there' is in use by another process" in one for one in refused)
    held = 0
    for one in several:
        try:
            one.check()
            held += 1
        except ss.ConfigurationError:
            pass
        one.release()
    assert held == 1


def test_a_process_of_this_machine_that_is_gone_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = lease(tmp_path, 1000)
    with monkeypatch.context() as others:
        # As a process that has had the number before.
        others.setattr(leases, "_began", lambda process: "long ago")
        first.take()
    second = lease(tmp_path)
    second.take()
    with pytest.raises(ss.ConfigurationError, match="has the lease of the directory now"):
        first.check()
    first.release()
    second.check()
    second.release()
    with pytest.raises(ss.ConfigurationError, match="was given back"):
        second.check()


def test_a_lease_that_cannot_be_renewed_is_looked_at_before_a_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = lease(tmp_path, 0.2)
    held.take()
    reached = [True]
    write = Lease._write

    def failing(self: Lease, *given: Any, **more: Any) -> bool:
        if not reached[0]:
            raise OSError("the store is out of reach")
        return write(self, *given, **more)

    monkeypatch.setattr(Lease, "_write", failing)
    reached[0] = False
    time.sleep(0.4)
    with pytest.raises(OSError, match="out of reach"):
        held.check()
    reached[0] = True
    held.check()
    held.release()


def test_the_time_of_a_lease_is_looked_at() -> None:
    for seconds in (0, "long", True):
        bad: Any = seconds
        with pytest.raises(ss.ConfigurationError, match=r"lease=.*; expected seconds"):
            StreamOptions(to=print, lease=bad)
