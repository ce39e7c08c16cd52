"""Hooks: their order, their number, what they may ask for, and what becomes of what they raise."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from conftest import partial_of, run_oracle

import specstream as ss
from specstream.engine.hooks import KINDS


class Words(ss.State):
    values = ss.array(int, 4)
    total = ss.scalar(int)


@ss.operator(
    state=Words, event={"x": int, "name": str}, emits={"x": int, "total": int, "name": str}
)
def conflicting(state, event, emit):
    """Every event reads what the one before wrote: about every speculative run is dropped."""
    state.values[event.x % 4] += 1
    state.total = state.total * 3 + state.values[0] + event.x
    for _ in range(event.x % 50):
        state.values[1] += 0
    if event.x == 777:
        raise ValueError("777")
    emit(event.x, state.total, event.name)


def events(count: int, seed: int = 1) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table({"x": rng.integers(0, 500, count), "name": rng.choice(["one", "two"], count)})


PATHS = [
    {"threads": 1, "horizon": 0},
    {"threads": 2, "horizon": 8, "chunk": 8},
    {"threads": 3, "horizon": 8, "chunk": 1, "execution": "speculate"},
    {"threads": 2, "horizon": 8, "chunk": 8, "protocol": "eager"},
]


@pytest.mark.slow
@pytest.mark.parametrize("options", PATHS)
def test_commits_are_told_in_order_and_once(options: Any) -> None:
    table = events(2000)
    commits: list[ss.Notification] = []
    afterwards: list[int] = []
    aborts: list[tuple[int, int]] = []
    inside = threading.Lock()

    def on_commit(notification: ss.Notification) -> None:
        assert inside.acquire(blocking=False), "two commits at once"
        commits.append(notification)
        inside.release()

    with ss.Engine(
        conflicting,
        on_commit=on_commit,
        on_post_commit=lambda n: afterwards.append(n.sequence),
        on_abort=lambda n: aborts.append((n.sequence, len(commits))),
        **options,
    ) as engine:
        output = engine.process(table)
        stats = engine.stats
    expected = run_oracle(conflicting, table)
    assert output.equals(expected.output)
    assert [n.sequence for n in commits] == list(range(2000))
    assert [row for n in commits for row in n.rows] == list(
        zip(*(output[name].to_pylist() for name in output.column_names), strict=True)
    )
    assert commits[5].values == {"x": table["x"][5].as_py(), "name": table["name"][5].as_py()}
    assert sorted(afterwards) == list(range(2000))
    assert len(aborts) == stats.reruns == sum(stats.aborts.values())
    # Before the rerun: the event that was dropped has not committed yet.
    assert all(done <= sequence for sequence, done in aborts)
    if options["horizon"]:
        assert stats.speculative_runs > 0


@pytest.mark.parametrize("threads", [1, 3])
def test_exactly_the_runs_that_conflict_are_told(threads: int) -> None:
    """All events run on the first state, ahead of their turn; only the first one's run holds."""
    told: list[tuple[int, str]] = []
    with ss.Engine(
        conflicting,
        threads=threads,
        horizon=15,
        on_abort=lambda n: told.append((n.sequence, n.reason)),
    ) as engine:
        engine.submit(
            {"time": range(16), "x": range(16), "name": ["n"] * 16}, order_by="time", source="a"
        )
        deadline = time.monotonic() + 20
        while engine.stats.speculative_runs < 16:
            assert time.monotonic() < deadline
            time.sleep(0.001)
        engine.advance("a")
        while engine.stats.pending:
            engine.poll(timeout=1)
        assert engine.stats.aborts["conflict"] == 15
    assert told == [(sequence, "conflict") for sequence in range(1, 16)]


@pytest.mark.parametrize("options", PATHS)
def test_on_commit_may_have_the_event_run_again(options: Any) -> None:
    table = events(500)
    asked: list[int] = []
    told: list[tuple[int, str]] = []

    def on_commit(notification: ss.Notification) -> None:
        if notification.sequence % 7 == 3 and asked.count(notification.sequence) < 2:
            asked.append(notification.sequence)
            raise ss.Abort

    with ss.Engine(
        conflicting,
        on_commit=on_commit,
        on_abort=lambda n: told.append((n.sequence, n.reason)),
        **options,
    ) as engine:
        output = engine.process(table)
        assert engine.stats.aborts["hook"] == len(asked)
    assert output.equals(run_oracle(conflicting, table).output)
    assert sorted(asked) == sorted(2 * list(range(3, 500, 7)))
    assert [s for s, reason in told if reason == "hook"] == asked


@pytest.mark.parametrize("options", PATHS)
def test_what_on_commit_raises_is_an_error_at_that_event(options: Any) -> None:
    table = events(300)

    def on_commit(notification: ss.Notification) -> None:
        if notification.sequence == 123:
            raise RuntimeError("not this one")

    with ss.Engine(conflicting, on_commit=on_commit, **options) as engine:
        with pytest.raises(RuntimeError, match="not this one") as raised:
            engine.process(table)
        partial = partial_of(raised.value)
        assert partial.consumed == 123
        assert raised.value.__notes__[0] == "raised by the hook on_commit"
        rest = engine.process(table.slice(124))
    expected = run_oracle(conflicting, pa.concat_tables([table.slice(0, 123), table.slice(124)]))
    assert pa.concat_tables([partial.output, rest]).equals(expected.output)


@pytest.mark.parametrize("name", ["on_abort", "on_post_commit"])
def test_what_other_hooks_raise_ends_the_batch_between_two_events(name: str) -> None:
    table = events(3000)
    calls: list[int] = []

    def hook(notification: ss.Notification) -> None:
        calls.append(notification.sequence)
        if len(calls) == 20:
            raise RuntimeError("enough")

    again: set[int] = set()

    def on_commit(notification: ss.Notification) -> None:
        if name == "on_abort" and notification.sequence not in again:
            again.add(notification.sequence)
            raise ss.Abort

    hooks: dict[str, Any] = {name: hook}
    with ss.Engine(conflicting, threads=2, horizon=8, on_commit=on_commit, **hooks) as engine:
        with pytest.raises(RuntimeError, match="enough") as raised:
            engine.process(table)
        partial = partial_of(raised.value)
        assert 0 < partial.consumed < 3000
        rest = engine.process(table.slice(partial.consumed))
    assert pa.concat_tables([partial.output, rest]).equals(run_oracle(conflicting, table).output)


def test_an_event_that_raises_is_not_told_as_committed() -> None:
    told: list[int] = []
    table = pa.table({"x": [1, 777, 2], "name": ["a", "b", "c"]})
    with ss.Engine(
        conflicting, threads=2, horizon=4, on_commit=lambda n: told.append(n.sequence)
    ) as engine:
        with pytest.raises(ValueError, match="777"):
            engine.process(table)
        engine.process(table.slice(2))
    assert told == [0, 2]


@pytest.mark.parametrize("protocol", ["value", "eager"])
def test_hooks_of_events_out_of_order(protocol: str) -> None:
    commits: list[tuple[Any, Any, int]] = []

    def on_commit(notification: ss.Notification) -> None:
        key = (notification.timestamp, notification.source, notification.sequence)
        if key == (20, "a", 1) and key not in commits:
            commits.append(key)
            raise ss.Abort
        commits.append(key)

    with ss.Engine(
        conflicting,
        threads=2,
        horizon=8,
        protocol=protocol,
        on_commit=on_commit,
        sources=["a", "b"],
    ) as engine:
        engine.submit(
            {"time": [10, 20], "x": [1, 2], "name": ["", ""]}, order_by="time", source="a"
        )
        engine.submit({"time": [5, 15], "x": [3, 4], "name": ["", ""]}, order_by="time", source="b")
        engine.advance("a")
        engine.advance("b")
        rows: list[Any] = []
        while engine.stats.pending or not rows:
            rows += engine.poll_rows(timeout=5)
        rows += engine.poll_rows()
    assert [row[0] for row in rows] == [3, 1, 4, 2]
    assert commits == [(5, "b", 0), (10, "a", 0), (15, "b", 1), (20, "a", 1), (20, "a", 1)]


def test_a_hook_that_raises_out_of_order_loses_nothing() -> None:
    calls: list[int] = []

    def hook(notification: ss.Notification) -> None:
        calls.append(notification.sequence)
        if notification.sequence == 2:
            raise RuntimeError("enough")

    with ss.Engine(conflicting, threads=2, horizon=8, on_post_commit=hook) as engine:
        engine.submit(
            {"time": range(6), "x": range(6), "name": ["n"] * 6}, order_by="time", ordered=True
        )
        rows: list[Any] = []

        def poll_on() -> None:
            while True:
                rows.extend(engine.poll(timeout=5)["x"].to_pylist())

        with pytest.raises(RuntimeError, match="enough") as raised:
            poll_on()
        rows += partial_of(raised.value).output["x"].to_pylist()
        while engine.stats.pending:
            rows += engine.poll(timeout=5)["x"].to_pylist()
        rows += engine.poll()["x"].to_pylist()
    assert rows == list(range(6))
    assert sorted(calls) == list(range(6))


def test_a_hook_cannot_use_its_engine() -> None:
    problems: list[str] = []

    def hook(notification: ss.Notification) -> None:
        for use in (lambda: engine.state, lambda: engine.process({}), lambda: engine.snapshot()):
            try:
                use()
            except ss.SpecstreamError as error:
                problems.append(str(error))

    with ss.Engine(conflicting, threads=2, horizon=4, on_commit=hook) as engine:
        engine.process(events(1))
    assert len(problems) == 3
    assert all("waits for the hook" in problem for problem in problems)


def test_wrong_hooks_are_refused() -> None:
    with pytest.raises(ss.ConfigurationError, match=r"on_commit=3; expected a function"):
        ss.Engine(conflicting, on_commit=3)  # type: ignore[arg-type]
    with pytest.raises(ss.ConfigurationError, match="calls no hooks"):
        ss.Engine(conflicting, execution="log_free", on_abort=print)


@pytest.mark.parametrize(("threads", "horizon"), [(1, 0), (2, 4), (4, 16)])
def test_every_hook_hears_of_each_submitted_event(threads: int, horizon: int) -> None:
    """Those that are polled meanwhile as well: their columns stay until it was told of them."""
    for _ in range(15):
        told: dict[str, list[ss.Notification]] = {
            "on_abort": [],
            "on_commit": [],
            "on_post_commit": [],
        }
        hooks: Any = {name: heard.append for name, heard in told.items()}
        with ss.Engine(conflicting, threads=threads, horizon=horizon, chunk=1, **hooks) as engine:
            for at in range(60):
                engine.submit_event(at, "a", x=at + 100, name=f"n{at}", ordered=True)
                if at % 10 == 9:
                    assert engine.poll(None)["x"].to_pylist() == list(range(at + 91, at + 101))
                    assert len(told["on_post_commit"]) == len(told["on_commit"]) == at + 1
        told["on_post_commit"].sort(key=lambda n: n.sequence)
        for name in ("on_commit", "on_post_commit"):
            assert [n.sequence for n in told[name]] == list(range(60))
        for n in [n for heard in told.values() for n in heard]:
            assert (n.timestamp, n.source) == (n.sequence, "a")
            assert n.values == {"x": n.sequence + 100, "name": f"n{n.sequence}"}


@pytest.mark.parametrize("names", [["on_abort"], ["on_post_commit"], list(KINDS)])
@pytest.mark.parametrize("way", ["batch", "table", "events"])
def test_all_that_is_raised_comes_out_once(way: str, names: list[str]) -> None:
    """Hooks and the operator raise close together, in several threads."""
    xs = [777 if at % 4 == 1 else at for at in range(32)]
    # What on_commit refuses is not applied, and neither is what raises itself.
    refused = [at for at, x in enumerate(xs) if x == 777 or ("on_commit" in names and at % 8 == 4)]
    for _ in range(8):
        raised: list[str] = []
        heard: list[str] = []
        rows: list[int] = []

        numbers = itertools.count()

        def hook(
            n: ss.Notification,
            name: str,
            raised: list[str] = raised,
            numbers: Iterator[int] = numbers,
        ) -> None:
            at = n.values["name"]
            if name == "on_commit" and int(at) % 8 != 4:
                return
            what = f"{name} {at} {next(numbers)}"
            raised.append(what)
            raise ZeroDivisionError(what)

        hooks: Any = {name: lambda n, name=name: hook(n, name) for name in names}
        table = pa.table({"time": range(32), "x": xs, "name": [str(at) for at in range(32)]})
        with ss.Engine(conflicting, threads=3, horizon=6, chunk=1, **hooks) as engine:
            if way == "table":
                engine.submit(table, order_by="time", ordered=True)
            for at, x in enumerate(xs if way == "events" else []):
                engine.submit_event(at, x=x, name=str(at), ordered=True)
            begin, done = 0, False
            while not done:
                try:
                    output = engine.process(table[begin:]) if way == "batch" else engine.poll(None)
                    # What hooks raise besides an event's own error is for the next call.
                    done = begin == len(xs) or way != "batch"
                    begin = len(xs)
                except (ValueError, ZeroDivisionError) as error:
                    heard.append(str(error))
                    partial = partial_of(error)
                    output = partial.output
                    begin += partial.consumed + heard[-1].startswith(("777", "on_commit"))
                rows += output["x"].to_pylist()
            assert engine.stats.pending == 0
        assert sorted(heard) == sorted(raised + ["777"] * xs.count(777))
        assert rows == [at for at in range(32) if at not in refused]
