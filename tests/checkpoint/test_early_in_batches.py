"""Early results of batches: what was told is what is applied, through every restart."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from support.checkpoint.fed import Fed
from support.early.streams import KEY, WATERMARK, chain, events, forked, oracle, told_rows

import specstream as ss
from specstream.checkpoint.format import failpoints
from specstream.engine.early_results import EarlyAnswer

BATCHES, ROWS = 12, 15
STEPS = (
    "before-run",
    "before-write",
    "half-written",
    "before-rename",
    "after-rename",
    "before-sink",
    "after-sink",
    "before-early",
)


class Seen(ss.State):
    count = ss.scalar(int)


class Crash(BaseException):
    pass


class Log:
    """A sink that writes down what it was told; it fails when it is asked to."""

    def __init__(self) -> None:
        self.answers: list[EarlyAnswer] = []
        self.by_batch: dict[int, pa.Table] = {}
        self.fails: str | None = None

    def apply(self, answer: EarlyAnswer, batch_id: int) -> None:
        if self.fails == "before":
            raise OSError("not there")
        self.answers.append(answer)
        self.by_batch[batch_id] = answer.changes
        if self.fails == "after":
            raise OSError("gone")

    @property
    def changes(self) -> list[pa.Table]:
        return [answer.changes for answer in self.answers]


def engine_of(**options: Any) -> ss.Engine:
    return ss.Engine(chain, early=True, **options)


def check_versions(log: Log) -> None:
    """ER-3, where an answer may come again: versions of a row rise, and "final" is the last."""
    seen: dict[tuple[Any, ...], dict[str, Any]] = {}
    for answer in log.answers:
        for row in answer.changes.to_pylist():
            key = tuple(row[name] for name in KEY)
            before = seen.get(key)
            if before is not None and before["version"] == row["version"]:
                assert row == before
            elif before is not None:
                assert row["version"] > before["version"]
                assert before["change"] != "final"
            seen[key] = row


SETTINGS: list[dict[str, Any]] = [
    {"threads": 1, "horizon": 0},
    {"threads": 2, "horizon": 8, "chunk": 1},
]


@pytest.mark.parametrize("prefetch", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_what_was_told_is_what_is_applied_through_crashes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, prefetch: bool
) -> None:
    dice = random.Random(seed)
    batches = events(np.random.default_rng(seed), BATCHES, ROWS)
    plain: dict[int, pa.Table] = {}
    options: Any = {"order_by": "time", "source": "origin", "watermark": WATERMARK}
    with ss.Engine(chain, horizon=0) as engine:
        fed = Fed(engine, to=lambda rows, n: plain.__setitem__(n, rows), **options)
        for number, batch in enumerate(batches):
            fed.send(number, batch)
        fed.runner.finish()

    log = Log()
    final: dict[int, pa.Table] = {}
    crash: list[tuple[str, int]] = []
    hit = failpoints.hit

    def crashing(step: str, batch_id: int) -> None:
        hit(step, batch_id)
        if crash == [(step, batch_id)]:
            raise Crash

    monkeypatch.setattr(failpoints, "hit", crashing)

    def begin() -> Fed:
        return Fed(
            engine_of(**dice.choice(SETTINGS)),
            to=lambda rows, n: final.__setitem__(n, rows),
            early_to=log,
            checkpoint=tmp_path / "recorded",
            prefetch=prefetch,
            **options,
        )

    fed = begin()
    number = crashes = 0
    while number < BATCHES:
        kind = dice.choice(["none", "none", "crash", "sink", "restart"])
        if kind == "restart":
            fed.close()
            fed = begin()
        elif kind == "crash":
            crash[:] = [(dice.choice(STEPS), number)]
        elif kind == "sink":
            log.fails = dice.choice(["before", "after"])
        try:
            fed.send(number, batches[number])
            fed.wait()
        except Crash:
            # Another process, in which Spark sends again what it has no word of.
            crashes += 1
            crash.clear()
            fed.engine.close()
            fed.checkpoint.close()
            fed.runner.close()
            fed = begin()
            continue
        except OSError:
            log.fails = None
            continue
        crash.clear()
        number += 1
        check_versions(log)
        stands = ss.early.latest(log.changes)
        assert told_rows(stands) == told_rows(oracle(batches[:number]))
        # A log by batch, in which a batch that came again has replaced what it said first.
        assert ss.early.latest(log.by_batch.values()).equals(stands)
    fed.runner.finish()
    fed.runner.finish()
    fed.close()
    assert crashes
    check_versions(log)
    stands = ss.early.latest(log.changes)
    assert set(stands["change"].to_pylist()) == {"final"}
    output = pa.concat_tables(final.values())
    assert told_rows(stands) == told_rows(oracle(batches))
    assert stands.select(output.column_names).equals(output)
    assert final.keys() == plain.keys()
    assert all(final[n].equals(plain[n]) for n in plain)


def test_the_first_answer_of_a_start_says_so_and_versions_rise(tmp_path: Path) -> None:
    batches = events(np.random.default_rng(0), 4, ROWS)
    log = Log()
    ends = []
    for number, batch in enumerate(batches):
        fed = Fed(
            engine_of(threads=1),
            to=print_nothing,
            early_to=log,
            order_by="time",
            source="origin",
            watermark=WATERMARK,
            checkpoint=tmp_path / "recorded",
        )
        fed.send(number, batch)
        ends.append(len(log.answers))
        fed.close()
        assert int((tmp_path / "recorded" / "incarnation").read_text()) == number + 1
    assert [answer.reset for answer in log.answers] == [True] * 4
    assert [answer.version >> 40 for answer in log.answers] == [1, 2, 3, 4]
    assert all(answer.void_below == answer.version >> 40 << 40 for answer in log.answers)
    assert ends == [1, 2, 3, 4]


@ss.operator(
    state=Seen,
    event={"x": int, "weight": float, "origin": str},
    emits={"x": int, "origin": str, "seen": int},
)
def fragile(state, event, emit):
    if event.x < 0:
        raise ValueError(f"x is {event.x}")
    state.count += 1
    emit(event.x, event.origin, state.count)


def test_of_a_failed_batch_nothing_is_told(tmp_path: Path) -> None:
    """The state goes back, and what was final in the failed run is so no more."""

    def batch(*rows: tuple[int, int]) -> pa.Table:
        times, values = zip(*rows, strict=True)
        count = len(rows)
        return pa.table(
            {"time": times, "x": values, "weight": [1.0] * count, "origin": ["a"] * count}
        )

    log = Log()
    fed = Fed(
        ss.Engine(fragile, threads=1, early=True),
        to=print_nothing,
        early_to=log,
        order_by="time",
        source="origin",
        watermark=5,
        checkpoint=tmp_path / "recorded",
    )
    fed.send(0, batch((1, 1), (2, 2)))
    with pytest.raises(ValueError, match="x is -1"):
        fed.send(1, batch((3, 3), (4, -1), (20, 20)))
    assert len(log.answers) == 1
    # Somebody has put the row right, and it comes with another one that belongs before.
    fed.send(1, batch((1, 7), (3, 3), (4, 4), (20, 20)))
    check_versions(log)
    assert [answer.reset for answer in log.answers] == [True, True]
    stands = ss.early.latest(log.changes)
    assert stands["x"].to_pylist() == [1, 7, 2, 3, 4, 20]
    assert stands["seen"].to_pylist() == [1, 2, 3, 4, 5, 6]
    keys = stands.select(KEY).to_pylist()
    told = log.answers[-1].changes
    assert told.select(KEY).to_pylist() == keys
    assert told["x"].to_pylist() == stands["x"].to_pylist()
    fed.close()


def print_nothing(rows: pa.Table, batch_id: int) -> None:
    pass


REFUSED: list[tuple[dict[str, Any], bool, str]] = [
    ({"watermark": None}, True, r"early_to= .*give watermark= as well"),
    ({"checkpoint": None}, True, r"early_to= without checkpoint=.*give checkpoint= as well"),
    ({}, False, r"early_to= .*'chain' was made without: make it with ss.Engine\(..., early=True\)"),
    ({"early_to": "early/"}, True, r"early_to='early/'; expected a sink such as ss.sinks.early_"),
    ({"early_to": print_nothing}, True, r"to= and early_to= are the same sink"),
]


@pytest.mark.parametrize(("options", "early", "message"), REFUSED)
def test_what_early_results_need_is_said(
    tmp_path: Path, options: dict[str, Any], early: bool, message: str
) -> None:
    given: Any = {
        "to": print_nothing,
        "early_to": lambda changes, batch_id: None,
        "order_by": "time",
        "watermark": 5,
        "checkpoint": tmp_path / "recorded",
        **options,
    }
    with (
        ss.Engine(chain, early=early) as engine,
        pytest.raises(ss.ConfigurationError, match=message),
    ):
        Fed(engine, **given)


@pytest.mark.parametrize("names", [("all", "some"), ("some",)])
def test_each_sink_of_a_pipeline_has_its_changes(tmp_path: Path, names: tuple[str, ...]) -> None:
    """Through restarts, and where one has its changes and the next one fails."""
    batches = events(np.random.default_rng(2), 8, ROWS)
    logs = {name: Log() for name in names}
    final: dict[str, dict[int, pa.Table]] = {"all": {}, "some": {}}
    options: Any = {
        "order_by": "time",
        "source": "origin",
        "watermark": WATERMARK,
        "checkpoint": tmp_path / "recorded",
    }

    def begin() -> Fed:
        engine = ss.Engine(forked(), threads=1, early=True)
        to = {
            name: lambda rows, n, had=had: had.__setitem__(n, rows) for name, had in final.items()
        }
        return Fed(engine, to=to, early_to=logs, **options)

    fed = begin()
    for number, batch in enumerate(batches):
        fails = {2: "before", 4: "after", 6: "before"}.get(number)
        if fails is not None:
            logs[names[-1]].fails = fails
            with pytest.raises(OSError, match=r"not there|gone") as caught:
                fed.send(number, batch)
            assert f"early_to={{{names[-1]!r}: ...}} of" in caught.value.__notes__[0]
            logs[names[-1]].fails = None
        if number in (4, 5, 6):  # with the batch on the way, or not
            fed.close()
            fed = begin()
        fed.send(number, batch)
        expected = forked().run_sequential(
            pa.concat_tables(batches[: number + 1]), order_by="time", source="origin", keys=True
        )
        for name, log in logs.items():
            check_versions(log)
            stands = ss.early.latest(log.answers)
            rows = expected.output[name]
            names_of = [one for one in rows.column_names if one != "sequence"]
            assert stands.select(names_of).to_pylist() == rows.select(names_of).to_pylist()
    fed.runner.finish()
    fed.close()
    for name, log in logs.items():
        stands = ss.early.latest(log.answers)
        assert set(stands["change"].to_pylist()) == {"final"}
        output = pa.concat_tables(final[name].values())
        assert stands.num_rows > 10
        assert stands.select(output.column_names).equals(output)


@pytest.mark.parametrize(
    ("early_to", "message"),
    [
        (Log(), r'has the sinks all, some, and early_to= is one .*: give early_to=\{"all": sink'),
        ({"som": Log()}, r"early_to= has a sink for 'som', .* give .*sink\}, or some of them"),
        ({}, r"early_to= has nothing for its sink 'all'"),
        ({"some": "early/"}, r"early_to\['some'\]='early/'; expected a sink such as"),
        ({"some": print}, r"to=\{'all': ...\} and early_to=\{'some': ...\} are the same sink"),
    ],
)
def test_sinks_that_do_not_fit_are_named(tmp_path: Path, early_to: Any, message: str) -> None:
    with (
        ss.Engine(forked(), early=True) as engine,
        pytest.raises(ss.ConfigurationError, match=message),
    ):
        Fed(
            engine,
            to={"all": print, "some": repr},
            early_to=early_to,
            order_by="time",
            watermark=5,
            checkpoint=tmp_path / "recorded",
        )


def test_a_damaged_incarnation_is_refused(tmp_path: Path) -> None:
    options: Any = {
        "to": print_nothing,
        "early_to": Log(),
        "order_by": "time",
        "source": "origin",
        "watermark": WATERMARK,
        "checkpoint": tmp_path / "recorded",
    }
    fed = Fed(engine_of(), **options)
    fed.send(0, events(np.random.default_rng(0), 1, ROWS)[0])
    fed.close()
    (tmp_path / "recorded" / "incarnation").write_text("7x")
    with engine_of() as engine, pytest.raises(ss.SnapshotError, match=r"incarnation in .*b'7x'"):
        Fed(engine, **options)


def test_a_function_gets_the_changes(tmp_path: Path) -> None:
    got: dict[int, pa.Table] = {}
    sink: Callable[[pa.Table, int], object] = lambda changes, n: got.__setitem__(n, changes)  # noqa: E731
    fed = Fed(
        engine_of(),
        to=print_nothing,
        early_to=sink,
        order_by="time",
        source="origin",
        watermark=WATERMARK,
        checkpoint=tmp_path / "recorded",
    )
    batches = events(np.random.default_rng(1), 3, ROWS)
    for number, batch in enumerate(batches):
        fed.send(number, batch)
    fed.close()
    assert list(got) == [0, 1, 2]
    assert told_rows(ss.early.latest(got.values())) == told_rows(oracle(batches))
