"""Who may write to a store without locks: one process at a time, the next one when it has gone."""

from __future__ import annotations

import collections
import contextlib
import itertools
import json
import random
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs
from support.checkpoint.lease_driver import Driver, Host, batch, chain, contend, run_on, serve
from support.checkpoint.object_store import object_store

import specstream as ss
from specstream.checkpoint.format import lease as leases
from specstream.checkpoint.format.failpoints import STEPS
from specstream.checkpoint.format.lease import Lease
from specstream.checkpoint.format.store import RemoteStore
from specstream.checkpoint.run.stream_options import StreamOptions

SECONDS = 1.0
# Steps that a batch of one operator, one sink and no early results comes to; of batch 4 the file is
# full, and others are deleted.
FILES = {"3": "increment", "4": "full"}
PASSED = [step for step in STEPS if step not in ("half-written", "between-sinks", "before-early")]


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


def start(drivers: list[Driver], *given: Any, does: Any = serve, **more: Any) -> Driver:
    drivers.append(Driver(Host(*given, **more), does))
    return drivers[-1]


def assert_is_whole(directory: Path, batches: int, hidden: bool = False) -> None:
    """Rows and state are those of one sequential run over the batches.

    Args:
        directory: where they are.
        batches: how many there are.
        hidden: whether files may be left that nobody reads.
    """
    wanted = chain.run_sequential(pa.concat_tables([batch(at) for at in range(batches)]))
    parts = sorted((directory / "rows").glob("part-*.parquet"))
    assert [int(part.stem[5:]) for part in parts] == list(range(batches))
    assert pa.concat_tables(map(pq.read_table, parts)).equals(wanted.output)
    assert hidden or not list((directory / "rows").glob(".*"))
    found = ss.checkpoint_state(directory / "checkpoint").state
    assert found.to_dict()["hash"] == wanted.state.hash


def changed(before: dict[Path, Any], now: dict[Path, Any]) -> set[str]:
    """The names of files that have come, gone, or been replaced."""
    return {one.name for one in before.keys() | now if before.get(one) != now.get(one)}


def visible(directory: Path) -> dict[Path, tuple[int, bytes]]:
    """Checkpoint files and rows, each with what tells it from another one of the same name."""
    found = [*(directory / "checkpoint").iterdir(), *(directory / "rows").iterdir()]
    shown = [one for one in found if one.is_file() and not one.name.startswith(".")]
    return {one: (one.stat().st_ino, one.read_bytes()) for one in shown}


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
    third = start(drivers, tmp_path, "three", 1000, "linked")
    assert third.says() == "holds 2"
    third.end()
    assert_is_whole(tmp_path, 3)


def assert_has_lost(said: str, to: Driver) -> None:
    assert said.startswith("failed checkpoint='store://checkpoint': ")
    assert f"process {to.pid} of host two has the lease of the directory" in said


@pytest.mark.slow
@pytest.mark.parametrize("stop", ["", "before-rename@1", "after-rename@1", "before-commit@1"])
def test_a_holder_that_was_stopped_commits_no_more_when_another_has_taken_over(
    tmp_path: Path, stop: str, drivers: list[Driver]
) -> None:
    kind = "plain" if stop == "before-rename@1" else "linked"
    commits_no_more(tmp_path, kind, stop, drivers)


@pytest.mark.long
@pytest.mark.parametrize("batch_id", [3, 4])
@pytest.mark.parametrize("step", PASSED)
def test_stopped_at_whatever_step_it_commits_no_more(
    tmp_path: Path, kind: str, step: str, batch_id: int, drivers: list[Driver]
) -> None:
    if step == "between-deletes" and batch_id == 3:
        pytest.skip("no file is superseded yet")
    commits_no_more(tmp_path, kind, f"{step}@{batch_id}", drivers)


def commits_no_more(directory: Path, kind: str, stop: str, drivers: list[Driver]) -> None:
    first = start(drivers, directory, "one", SECONDS, kind, stop)
    assert first.says() == "holds 0"
    if stop:
        at = 0
        while (said := first.run()) != "stops":
            assert said == f"done {at}"
            at += 1
    else:
        assert first.run() == "done 0"
        first.signal(signal.SIGSTOP)
    second = start(drivers, directory, "two", SECONDS, kind)
    for batch_id in range(int(second.says().removeprefix("holds ")), 7):
        assert second.run() == f"done {batch_id}"
    before = visible(directory)
    first.signal(signal.SIGCONT)
    if stop.startswith("after-sink"):
        assert first.says() == "done " + stop.rpartition("@")[2]  # it was, before the stop
        assert_has_lost(first.run(), second)
    else:
        assert_has_lost(first.says() if stop else first.run(), second)
    assert first.run().startswith("failed")  # and stays so
    step, _, at_batch = stop.partition("@")
    late = changed(before, visible(directory))
    # Beside what a sink prepares the file is written: it may be at the instant behind its look.
    assert not late or (step == "prepared" and late <= {f"{int(at_batch):010d}.{FILES[at_batch]}"})
    first.kill()
    assert second.run() == "done 7"
    second.end()
    assert_is_whole(directory, 8)


@pytest.mark.slow
@pytest.mark.parametrize("runs", [0, 4])
@pytest.mark.parametrize("name", ["0000000001.increment", "0000000002.full"])
def test_stopped_between_its_look_and_the_name_it_leaves_at_most_one_late_file_and_no_row(
    tmp_path: Path, name: str, runs: int, drivers: list[Driver]
) -> None:
    at = int(name.partition(".")[0])
    first = start(drivers, tmp_path, "one", SECONDS, "plain", f"move@{name}")
    assert first.says() == "holds 0"
    assert [first.run() for _ in range(at)] == [f"done {batch_id}" for batch_id in range(at)]
    assert first.run() == "stops"
    second = start(drivers, tmp_path, "two", SECONDS, "plain")
    assert second.says() == f"holds {at - 1}"
    for batch_id in range(at - 1, at + runs):
        assert second.run() == f"done {batch_id}"
    before = visible(tmp_path)
    first.signal(signal.SIGCONT)
    assert_has_lost(first.says(), second)
    # Where the other one has come to the batch, there is nothing left that could get the name.
    assert changed(before, visible(tmp_path)) == (set() if runs else {name})
    assert first.run().startswith("failed")
    first.kill()
    for batch_id in range(at + runs, 6):
        assert second.run() == f"done {batch_id}"
    second.end()
    assert_is_whole(tmp_path, 6)


@pytest.mark.slow
def test_a_holder_that_was_stopped_goes_on_where_nobody_has_taken_over(
    tmp_path: Path, kind: str, drivers: list[Driver]
) -> None:
    first = start(drivers, tmp_path, "one", SECONDS, kind)
    assert first.says() == "holds 0"
    first.signal(signal.SIGSTOP)
    time.sleep(1.5 * SECONDS)  # a stopped process does nothing that could be waited for
    first.signal(signal.SIGCONT)
    assert [first.run(), first.run()] == ["done 0", "done 1"]
    first.end()
    assert_is_whole(tmp_path, 2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("one", "two"),
    [
        ({"clock": 86_400.0}, {"clock": -86_400.0}),
        pytest.param({}, {"rate": 1.25}, marks=pytest.mark.long),
        pytest.param({"rate": 0.8}, {}, marks=pytest.mark.long),
    ],
    ids=["two days apart", "the second one fast", "the first one slow"],
)
def test_hosts_whose_clocks_differ_wait_for_each_other(
    tmp_path: Path, one: dict[str, float], two: dict[str, float], drivers: list[Driver]
) -> None:
    first = start(drivers, tmp_path, "one", 2 * SECONDS, "plain", **one)
    assert [first.says(), first.run()] == ["holds 0", "done 0"]
    for _ in range(2):
        second = start(drivers, tmp_path, "two", 2 * SECONDS, "plain", **two)
        assert f"in use by another process (process {first.pid} of host one" in second.says()
        second.kill()
    assert first.run() == "done 1"
    first.signal(signal.SIGSTOP)
    second = start(drivers, tmp_path, "two", 2 * SECONDS, "plain", **two)
    assert [second.says(), second.run(), second.run()] == ["holds 1", "done 1", "done 2"]
    first.signal(signal.SIGCONT)
    assert_has_lost(first.run(), second)
    first.kill()
    second.end()
    assert_is_whole(tmp_path, 3)


@pytest.mark.slow
@pytest.mark.parametrize("trouble", ["full", pytest.param("away", marks=pytest.mark.long)])
def test_a_store_that_comes_back_finds_the_holder_where_nobody_has_taken_over(
    tmp_path: Path, trouble: str, drivers: list[Driver]
) -> None:
    first = start(drivers, tmp_path, "one", SECONDS, "plain")
    assert [first.says(), first.run()] == ["holds 0", "done 0"]
    flag = tmp_path / f"{trouble}-one"
    for lasts in (SECONDS / 2, 2 * SECONDS):
        flag.touch()
        assert "the store" in first.run()
        time.sleep(lasts)  # it is the time that is tested: shorter and longer than the lease
        flag.unlink()
    assert first.run() == "done 1"
    # With another one that reaches the store meanwhile.
    flag.touch()
    second = start(drivers, tmp_path, "two", SECONDS, "plain")
    assert [second.says(), second.run(), second.run()] == ["holds 1", "done 1", "done 2"]
    flag.unlink()
    assert_has_lost(first.run(), second)
    first.kill()
    second.end()
    assert_is_whole(tmp_path, 3)


def holder_in(directory: Path) -> int:
    """The process that has the lease, or had it last; 0: none has yet."""
    files = sorted((directory / "checkpoint" / "lease").glob("[0-9]*"))
    with contextlib.suppress(FileNotFoundError, IndexError):
        found: int = json.loads(files[-1].read_text())["process"]
        return found
    return 0


@pytest.mark.long
def test_hosts_that_are_stopped_and_killed_at_random_end_as_one_run(
    tmp_path: Path, kind: str, drivers: list[Driver]
) -> None:
    dice, seen, names = random.Random(kind), collections.Counter[str](), itertools.count()
    running: list[Driver] = []
    waking: dict[Driver, float] = {}

    def gone(one: Driver) -> None:
        running.remove(one)
        drivers.remove(one)
        waking.pop(one, None)
        words = [line.partition(" ")[0] for line in one.left]
        seen.update({"took it": "holds" in words, "was refused": "refused" in words})
        for line in one.left:
            assert not line.startswith("failed") or "has the lease of the directory now" in line
        seen["lost it"] += words.count("failed")

    def look(hosts: int) -> None:
        """Ends what has ended, wakes what has slept, and has so many hosts want the directory."""
        for one in [*running]:
            if one.has_ended():
                gone(one)
        for one, at in [*waking.items()]:
            if time.monotonic() >= at:
                del waking[one]
                one.signal(signal.SIGCONT)
        while len(running) < hosts:
            name = f"host-{next(names)}"
            running.append(start(drivers, tmp_path, name, SECONDS, kind, does=run_on))
        time.sleep(0.02)  # of several processes there is no one event to wait for

    for _ in range(150):
        until = time.monotonic() + dice.uniform(0, SECONDS)
        while time.monotonic() < until:
            look(3)
        holding = [one for one in running if one.pid == holder_in(tmp_path)]
        one = dice.choice(holding if holding and dice.random() < 0.7 else running)
        seen["was the holder"] += one in holding
        if dice.random() < (0.1 if one in waking else 0.3):
            one.kill()
            gone(one)
            seen["was killed"] += 1
        elif one not in waking:
            one.signal(signal.SIGSTOP)
            waking[one] = time.monotonic() + dice.uniform(0, 3 * SECONDS)
            seen["was stopped"] += 1
    goal = max(int(part.stem[5:]) for part in (tmp_path / "rows").glob("part-*")) + 50
    (tmp_path / "goal").write_text(str(goal))
    while running:
        look(0)
    last = start(drivers, tmp_path, "last", SECONDS, kind, does=run_on)
    assert last.says().startswith("holds")
    assert last.says() == f"ends {goal}"
    last.end()
    print(f"{kind}: {goal} batches; {dict(seen)}")
    assert seen["lost it"] > 0  # or nobody was stopped for long enough
    assert_is_whole(tmp_path, goal, hidden=True)


@pytest.mark.long
def test_of_four_processes_that_want_it_at_the_same_moment_one_gets_it(
    tmp_path: Path, kind: str, drivers: list[Driver]
) -> None:
    dice, seen, names = random.Random(kind), collections.Counter[str](), itertools.count()
    holder: Driver | None = None
    four: list[Driver] = []
    for turn in range(50):
        while len(four) < 4:
            name = f"host-{next(names)}"
            four.append(start(drivers, tmp_path, name, 2 * SECONDS, kind, does=contend))
        fate = dice.choice(["lives", "killed before", "killed meanwhile", "gives it back"])
        if holder is not None and fate == "killed before":
            holder.kill()
        if holder is not None and fate == "gives it back":
            assert holder.run("release") == "yes"
        for one in four:
            one.tell("take")
        if holder is not None and fate == "killed meanwhile":
            time.sleep(dice.uniform(0, SECONDS))  # they wait, each for itself
            holder.kill()
        took = [one for one in four if one.says() == "yes"]
        want = [*four, *([] if holder is None or not holder.is_there else [holder])]
        held = [one for one in want if one.run("check") == "yes"]
        seen["nobody" if not held else "the same" if holder in held else "another"] += 1
        # Nobody, where all have seen a last renewal, or in a plain store where a write was late.
        may_be_nobody = kind == "plain" or fate == "killed meanwhile"
        assert len(held) == 1 or (may_be_nobody and not held), (turn, fate)
        assert all(one in took for one in held if one is not holder), (turn, fate)
        if holder not in held:
            if holder is not None:
                holder.kill()
            holder = held[0] if held else None
            four = [one for one in four if one is not holder]
    print(f"{kind}: {dict(seen)}")
    assert seen["another"] > 0


# ---- the lease itself ----


def lease(store: fs.FileSystem, seconds: float = SECONDS) -> Lease:
    return Lease(store, "there", "checkpoint='store://there'", seconds)


@pytest.fixture
def store(kind: str, tmp_path: Path) -> fs.FileSystem:
    if kind == "plain":
        return object_store(tmp_path)
    return fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())


def test_of_several_that_want_it_at_once_one_gets_it(store: fs.FileSystem) -> None:
    several = [lease(store, 5) for _ in range(6)]
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
        with contextlib.suppress(ss.ConfigurationError):
            one.check()
            held += 1
        one.release()
    assert held == 1


def test_a_process_of_this_machine_that_is_gone_is_not_waited_for(
    store: fs.FileSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "_SETTLES", (5, 0.2))
    first = lease(store, 1000)
    with monkeypatch.context() as others:
        # As a process that has had the number before.
        others.setattr(leases, "_began", lambda process: "long ago")
        first.take()
    second = lease(store)
    second.take()
    with pytest.raises(ss.ConfigurationError, match="has the lease of the directory now"):
        first.check()
    first.release()
    second.check()
    second.release()
    with pytest.raises(ss.ConfigurationError, match="was given back"):
        second.check()


@pytest.mark.slow
def test_who_wants_it_and_was_stopped_sees_that_the_holder_has_gone_on(tmp_path: Path) -> None:
    going_on = threading.Event()
    going_on.set()

    def before_of_holder(operation: str, path: str) -> None:
        going_on.wait()

    held = lease(object_store(tmp_path, before_of_holder))
    held.take()
    (file,) = (tmp_path / "there" / "lease").iterdir()
    looks = itertools.count()

    def before(operation: str, path: str) -> None:
        if operation == "have read" and next(looks) == 1:
            # Stopped behind a look, for longer than the lease lasts.
            seen, until = file.read_bytes(), time.monotonic() + 1.1 * SECONDS
            while file.read_bytes() == seen or time.monotonic() < until:
                time.sleep(0.01)  # a directory tells of no change
        if operation == "write":
            going_on.clear()

    other = lease(object_store(tmp_path, before))
    with pytest.raises(ss.ConfigurationError, match=r"which has the lease of .* at this moment"):
        other.take()
    going_on.set()
    held.check()
    assert [one.name for one in file.parent.glob("[0-9]*")] == [file.name]
    held.release()


def test_who_was_slow_to_write_it_does_not_have_it(tmp_path: Path) -> None:
    def before(operation: str, path: str) -> None:
        if operation == "move":
            time.sleep(0.3 * SECONDS)  # a store that is slow: others wait a fifth

    slow = RemoteStore(object_store(tmp_path, before), "there", "store://there")
    with pytest.raises(ss.ConfigurationError, match=r"lease was not taken.*took 0\.3.*lease="):
        slow.open(SECONDS)
    assert not list((tmp_path / "there" / "lease").iterdir())
    other = lease(object_store(tmp_path))
    other.take()
    other.release()


def test_the_time_of_a_lease_is_looked_at() -> None:
    for seconds in (0, "long", True):
        bad: Any = seconds
        with pytest.raises(ss.ConfigurationError, match=r"lease=.*; expected seconds"):
            StreamOptions(to=print, lease=bad)
