"""``specstream tune`` and ``bench``: they answer on the user's data, and say what they refuse."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

import json
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.commands import invoke

import specstream as ss
from specstream.tuning.contest import Arena, Contestant, EngineContestant
from specstream.tuning.rivals import under_one_lock
from specstream.tuning.search import search
from specstream.tuning.stream import Stream, read_stream

pytestmark = pytest.mark.slow

OPERATORS = """
import specstream as ss


class Sums(ss.State):
    total = ss.array(int, 64)
    locks = ss.locks(64)


def summing(rounds=10):
    @ss.operator(state=Sums, event={"x": int}, emits={"total": int})
    def sums(state, event, emit):
        if event.x < 0:
            raise ValueError("negative amount")
        busy = event.x
        for _ in range(rounds):
            busy = (busy ^ (busy >> 32)) * 31 + 7  # which no compiler folds
        with state.locks[event.x % 64]:
            state.total[event.x % 64] += busy
            total = state.total[event.x % 64]
        emit(total)

    return sums


plain = summing()


class Bare(ss.State):
    total = ss.scalar(int)


@ss.operator(state=Bare, event={"x": int}, emits={"total": int})
def bare(state, event, emit):
    state.total += event.x
    emit(state.total)


class Other(ss.State):
    locks = ss.locks(1)
    total = ss.scalar(int)


@ss.operator(state=Other, event={"amount": int}, emits={"total": int})
def other(state, event, emit):
    with state.locks[0]:
        state.total += event.amount
    emit(0)


@ss.operator(state=Other, event={"x": int}, emits={"total": int})
def clumsy(state, event, emit):
    state.locks[0].acquire()
    state.total += event.x
    emit(0)
"""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Two files, the later events in the older one's name."""
    directory = tmp_path / "data"
    directory.mkdir()
    for number, name in enumerate(("b", "a")):
        times = np.arange(number * 3000, number * 3000 + 3000)[::-1]
        path = directory / f"{name}.parquet"
        pq.write_table(pa.table({"time": times, "gate": times % 3, "x": times * 7}), path)
        os.utime(path, (1_000_000_000 + number * 1000,) * 2)
    return directory


def test_tune_answers_with_measurements_pictures_and_a_line(
    operators: Path, data: Path, tmp_path: Path
) -> None:
    plot = tmp_path / "tune.png"
    done = invoke(
        "tune", f"{operators}:summing", "--arg", "rounds=20", "--input", data, "--order-by", "time",
        "--source", "gate", "--seconds", "0.3", "--threads", 2, "--cores", 4, "--plot", plot,
        "--json",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["events"] == 6000
    names = {(one["threads"], one["horizon"], one["protocol"]) for one in found["candidates"]}
    assert {(1, 0, "value"), (2, "auto", "value"), (2, 8, "value"), (2, 8, "eager")} <= names
    plain = next(one for one in found["candidates"] if one["horizon"] == 0)
    assert plain["speed"] == 1.0
    assert plain["last"]
    assert found["engine"].startswith("ss.Engine(summing(rounds=20), threads=")
    assert found["answer"] in ("plain", "speculation")
    assert (found["best"]["horizon"] == 0) == (found["answer"] == "plain")
    rows = [(one["threads"], one["protocol"]) for one in found["model"]["best"]]
    assert rows == [(2, "value"), (2, "eager"), (4, "value"), (4, "eager")]
    assert "other processes" in found["model"]["left_out"]
    assert {check["threads"] for check in found["model"]["checks"]} >= {1}
    assert all(check["measured"] > 0 for check in found["model"]["checks"])
    for picture in (plot, tmp_path / "tune-cores.png"):
        assert picture.read_bytes().startswith(b"\x89PNG")


def test_tune_on_one_thread_says_that_plain_is_the_answer(operators: Path, data: Path) -> None:
    done = invoke(
        "tune", f"{operators}:plain", "--input", data, "--order-by", "time", "--seconds", "0.1",
        "--threads", 1,
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "Plain is the answer: one thread is all there is" in done.stdout
    assert "ss.Engine(plain, threads=1, horizon=0)" in done.stdout


def test_bench_sets_an_operator_beside_its_rivals(
    operators: Path, data: Path, tmp_path: Path
) -> None:
    plot = tmp_path / "bench.svg"
    done = invoke(
        "bench", f"{operators}:plain", "--input", data, "--order-by", "time", "--seconds", "0.2",
        "--threads", 2, "--locked", f"{operators}:plain", "--plot", plot, "--json",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    summary = json.loads(done.stdout)
    found = {one["name"]: one for one in summary["contestants"]}
    assert summary["no_loop_by_hand"] is None
    assert set(found) == {
        "plain, 1 thread", "log-free, 1 thread", "specstream Auto, 2 threads",
        "sequential check", "global lock, 2 threads", "own locks, 2 threads", "loop by hand",
    }  # fmt: skip
    assert found["plain, 1 thread"]["speed"] == 1.0
    assert found["sequential check"]["speed"] < 0.5
    assert found["global lock, 2 threads"]["chunk"] in (1, 8, 64)
    assert found["specstream Auto, 2 threads"]["same"] == 1.0
    assert "<svg" in plot.read_text()


@pytest.mark.parametrize(
    ("command", "target", "arguments", "status", "message"),
    [
        ("tune", "{file}:missing", (), 1, "has no 'missing'"),
        ("tune", "{file}:plain", ("--order-by", "when"), 1, "--order-by names column 'when'"),
        ("tune", "{file}:plain", ("--seconds", "0"), 2, "--seconds"),
        ("tune", "{file}:plain", ("--threads", "0"), 2, "--threads"),
        ("tune", "{file}:plain", ("--cores", "1"), 2, "--cores"),
        ("tune", "{file}:plain", ("--events", "0"), 2, "--events"),
        ("tune", "{file}:plain", ("--protocol", "wild"), 2, "--protocol"),
        ("tune", "{file}:plain", ("--plot", "x.txt"), 1, "ends in .png, .svg or .pdf"),
        ("tune", "{file}:plain", ("--plot", "nowhere/x.png"), 1, "no directory 'nowhere'"),
        ("bench", "{file}:plain", ("--locked", "{file}:bare"), 1, "declares no locks"),
        ("bench", "{file}:plain", ("--locked", "{file}:other"), 1, "reads other columns (amount)"),
        ("bench", "{file}:plain", ("--locked", "{file}:clumsy"), 1, "lock locks[0]"),
        ("bench", "{file}:plain", ("--locked", "wild"), 2, "names no operator"),
    ],
)
def test_what_is_refused_is_explained(
    operators: Path, data: Path, command: str, target: str, arguments: tuple[str, ...],
    status: int, message: str,
) -> None:  # fmt: skip
    given = [argument.format(file=operators) for argument in arguments]
    usual = ("--order-by", "time", "--seconds", "0.1")
    for at in (0, 2):
        if usual[at] not in given:
            given += usual[at : at + 2]
    result = invoke(command, target.format(file=operators), "--input", data, *given)
    assert result.exit_code == status, result.output
    assert message in " ".join(result.stderr.split())


def test_an_event_that_raises_ends_the_command_with_its_traceback(
    operators: Path, tmp_path: Path
) -> None:
    directory = tmp_path / "bad"
    directory.mkdir()
    pq.write_table(pa.table({"time": [1, 2], "x": [5, -5]}), directory / "0.parquet")
    result = invoke(
        "tune", f"{operators}:plain", "--input", directory, "--order-by", "time", "--threads", 1
    )
    assert result.exit_code == 1
    assert "Error: ValueError: negative amount" in result.stderr
    pq.write_table(pa.table({"time": [1], "x": [1]}).slice(1), directory / "0.parquet")
    result = invoke("tune", f"{operators}:plain", "--input", directory, "--order-by", "time")
    assert result.exit_code == 1
    assert "have no rows" in result.stderr


class Sum(ss.State):
    """One word."""

    total = ss.scalar(int)


@ss.operator(state=Sum, event={"x": int}, emits={"total": int})
def running(state, event, emit):
    """Emits what depends on all events before."""
    state.total += event.x
    emit(state.total)


def test_a_stream_is_read_in_order(data: Path) -> None:
    stream = read_stream(data, running, "time", "gate", 4000)
    assert stream.count == 4000
    assert stream.left_out == 2000
    times = stream.table["time"].to_pylist()
    assert times == sorted(times)
    assert times[:3000] == list(range(3000))  # the older file's
    assert set(stream.table.column_names) == {"x", "time", "gate"}


class Wrong(Contestant):
    """Promises the sequential answer, and gives another one."""

    def run(self, batch: pa.Table, number: int) -> pa.Table:
        self.times[number] = 1e-6
        return pa.table({"total": np.zeros(batch.num_rows, np.int64)})

    def restart(self) -> None:
        """Has no state."""


def test_rounds_go_through_the_stream_again_and_compare_the_rows() -> None:
    stream = Stream(pa.table({"x": np.arange(1, 101)}), "x", None)
    plain = EngineContestant("plain", running, stream.order, threads=1, horizon=0)
    other = EngineContestant("other", running, stream.order, threads=2, horizon=4, chunk=3)
    batches = stream.batches(40)
    assert [batch.num_rows for batch in batches] == [40, 40, 20]
    arena = Arena(batches, plain)
    for _ in range(4):
        arena.round([other])
    # The fourth round is the first batch again, from the first state.
    assert plain.engine.state.total == other.engine.state.total == sum(range(1, 41))
    assert arena.measured(other, range(4)).rounds == 4
    assert arena.measured(other, range(4)).same == 1.0
    with pytest.raises(ss.SpecstreamError, match="'wrong' gave other rows than 'plain'"):
        arena.round([Wrong("wrong")])
    plain.close()
    other.close()


def test_a_search_without_memory_for_more_tries_plain_alone() -> None:
    stream = Stream(pa.table({"x": np.arange(500)}), "x", None)
    finding = search(running, stream, 0.05, 2, most_memory=0)
    assert [one.candidate.is_plain for one in finding.tried] == [True]
    assert finding.best.is_plain


def test_one_lock_around_an_operator_keeps_its_answer() -> None:
    events = {"x": np.ones(20_000, np.int64)}
    with ss.Engine(under_one_lock(running), threads=3, chunk=1, execution="locked") as engine:
        totals = np.sort(engine.process(events)["total"].to_numpy())
    assert np.array_equal(totals, np.arange(1, 20_001))
