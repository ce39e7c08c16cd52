"""Engines in a row: what one tells early are tentative events of the next."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from conftest import Result, assert_identical
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import contents
from support.daily import share_of
from support.early.streams import chain

import specstream as ss
from specstream.engine.early_results import EarlyAnswer

SOURCES = ["EWR", "JFK"]
SETTINGS: list[dict[str, Any]] = [
    {"threads": 1, "horizon": 0},
    {"threads": 2, "horizon": 8, "chunk": 1},
    {"threads": 2, "horizon": 8, "protocol": "eager"},
]
STEPS = [
    *("submit", "submit", "submit", "guess", "revise", "retract", "confirm", "advance"),
    *("look", "look", "glance", "own", "poll", "go_back", "go_back_next", "restore"),
]


class Digest(ss.State):
    hash = ss.scalar(int)
    sums = ss.array(float, 3)


@ss.operator(
    state=Digest,
    event={"x": int, "hash": int, "sum": float},
    emits={"x": int, "digest": int, "weight": float},
)
def digest(state, event, emit):
    """Every row goes by all before it, in their order."""
    state.hash = state.hash * 2862933555777941757 + event.hash + event.timestamp
    state.sums[event.x % 3] += event.sum
    for number in range((state.hash >> 30) % 3):
        emit(event.x, state.hash + number, state.sums[event.x % 3])


@ss.operator(
    state=Digest,
    event={"x": int, "weight": float, "origin": str},
    emits={"due": int, "x": int, "hash": int, "sum": float},
)
def schedule(state, event, emit):
    """Rows with a time of their own, which what comes before may change."""
    state.hash = state.hash * 6364136223846793005 + event.x
    state.sums[event.x % 3] += event.weight
    for number in range((state.hash >> 20) % 3):
        due = event.timestamp + (state.hash >> 40) % 5
        emit(due, event.x + number, state.hash, state.sums[event.x % 3])


class Bells(ss.State):
    hash = ss.scalar(int)
    due = ss.timers(int, limit=64)


def ring(state, timer, emit):
    state.hash = state.hash * 6364136223846793005 + timer.key
    emit(timer.key, state.hash, 0.25)
    if (state.hash >> 20) % 4 == 0:
        state.due.set(timer.key + 7, timer.at + 3)


@ss.operator(
    state=Bells,
    event={"x": int, "weight": float, "origin": str},
    emits={"x": int, "hash": int, "sum": float},
    on_timer=ring,
)
def bells(state, event, emit):
    state.hash = state.hash * 6364136223846793005 + event.x
    state.due.set(event.x % 7, event.timestamp + 1 + event.x % 5)
    if (state.hash >> 20) % 3:
        emit(event.x, state.hash, event.weight)


# By the column of the next engine's times.
OPERATORS = [(chain, "timestamp"), (bells, "timestamp"), (schedule, "due")]


class Both:
    """Two engines in a row, and what was told of each."""

    def __init__(self, operator: ss.Operator, order_by: str, dice: random.Random) -> None:
        self.dice, self.order_by = dice, order_by
        first, second = (dice.choice(SETTINGS) for _ in range(2))
        self.first = ss.Engine(operator, sources=SOURCES, early=True, keys=True, **first)
        self.second = ss.Engine(digest, sources=["chain", "own"], early=True, **second)
        self.first.poll_early()
        self.second.poll_early()
        self.reached = dict.fromkeys([*SOURCES, "own"], 0)
        self.numbers = dict.fromkeys(SOURCES, 0)
        self.open: dict[tuple[str, int], int] = {}
        self.told: list[EarlyAnswer] = []
        self.told_next: list[EarlyAnswer] = []
        self.mine: list[dict[str, Any]] = []
        self.rows: list[pa.Table] = []
        self.rows_next: list[pa.Table] = []

    def values(self) -> dict[str, Any]:
        return {"x": self.dice.randrange(50), "weight": self.dice.choice([0.0, -0.0, 0.1, 2.5])}

    def time(self, source: str) -> int:
        return self.reached[source] + self.dice.randrange(12)  # with many of the same time

    def submit(self) -> None:
        source = self.dice.choice(SOURCES)
        for _ in range(self.dice.choice([1, 4])):
            self.first.submit_event(self.time(source), source, origin=source, **self.values())
            self.numbers[source] += 1

    def guess(self) -> None:
        source = self.dice.choice(SOURCES)
        number = self.numbers[source]
        self.first.submit_event(
            *(self.time(source), source),
            **{"final": False, "sequence": number, "origin": source, **self.values()},
        )
        self.numbers[source] += 1
        self.open[source, number] = 1

    def revise(self) -> None:
        if self.open:
            key = self.dice.choice(sorted(self.open))
            self.open[key] += 1
            self.first.revise(*key, self.open[key], **self.values())

    def retract(self) -> None:
        if self.open:
            key = self.dice.choice(sorted(self.open))
            self.first.retract(*key)
            del self.open[key]

    def confirm(self) -> None:
        for source in SOURCES:
            if any(name == source for name, _ in self.open):
                self.first.confirm(source)
        self.open = {}

    def advance(self) -> None:
        for source in self.reached:
            self.reached[source] += self.dice.randrange(8)
            engine = self.second if source == "own" else self.first
            engine.advance(source, self.reached[source])

    def own(self) -> None:
        """Another source of the next engine."""
        row = {"timestamp": self.time("own"), "x": self.dice.randrange(9), "hash": 7, "sum": 0.5}
        self.mine.append(row)
        self.second.submit(pa.Table.from_pylist([row]), order_by="timestamp", source="own")

    def go_back(self) -> None:
        self.first.rollback(self.first.savepoint())

    def restore(self) -> None:
        self.first.restore(self.first.snapshot())

    def go_back_next(self) -> None:
        if self.dice.random() < 0.5:
            self.second.rollback(self.second.savepoint())
        else:
            self.second.restore(self.second.snapshot())

    def poll(self) -> None:
        self.rows.append(self.first.poll(timeout=None))
        self.rows_next.append(self.second.poll(timeout=None))

    def feed(self, timeout: float | None = None) -> None:
        answer = self.first.poll_early(timeout)
        self.told.append(answer)
        for _ in range(self.dice.choice([1, 1, 2])):
            given = answer.changes if self.dice.random() < 0.2 and not answer.reset else answer
            ss.early.apply_changes(given, self.second, source="chain", order_by=self.order_by)

    def glance(self) -> None:
        self.feed(0)

    def look(self) -> None:
        """What the next engine tells is the sequential run over what the first one tells."""
        self.feed()
        answer = self.second.poll_early(timeout=None)
        self.told_next.append(answer)
        expected = self.expected(ss.early.latest(self.told))
        names = ["x", "digest", "weight", "timestamp", "source"]
        stands = ss.early.latest(self.told_next).select(names)
        assert stands.to_pylist() == expected.output.select(names).to_pylist()

    def expected(self, rows: pa.Table) -> ss.SequentialRun:
        names = [self.order_by, "x", "hash", "sum"]
        told = [{**row, "of": "chain"} for row in rows.select(names).to_pylist()]
        mine = [{**row, self.order_by: row["timestamp"], "of": "own"} for row in self.mine]
        types = {self.order_by: pa.int64(), "x": pa.int64(), "hash": pa.int64()}
        schema = pa.schema(types | {"sum": pa.float64(), "of": pa.string()})
        table = pa.Table.from_pylist([*told, *mine], schema=schema)
        return digest.run_sequential(table, order_by=self.order_by, source="of", keys=True)

    def end(self) -> None:
        """Final rows and state are those of an engine that gets the final rows alone."""
        self.confirm()
        for source in SOURCES:
            self.first.advance(source)
        self.rows.append(self.first.poll(timeout=None))
        self.look()
        for source in ("chain", "own"):
            self.second.advance(source)
        assert self.first.stats.pending == 0
        self.poll()
        assert self.second.stats.pending == 0
        final = pa.concat_tables(self.rows)
        found = Result(pa.concat_tables(self.rows_next), contents.of_view(self.second.state), ())
        expected = self.expected(final)
        names = found.output.column_names
        assert_identical(
            found, Result(expected.output.select(names), contents.of_view(expected.state), ())
        )
        late = ss.Engine(digest, sources=["chain", "own"], horizon=0)
        with late:
            late.submit(final, order_by=self.order_by, source="chain")
            for row in self.mine:
                late.submit(pa.Table.from_pylist([row]), order_by="timestamp", source="own")
            for source in ("chain", "own"):
                late.advance(source)
            assert_identical(
                found, Result(late.poll(timeout=None), contents.of_view(late.state), ())
            )


@pytest.mark.slow
@settings(max_examples=share_of(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(of=st.sampled_from(OPERATORS), seed=st.integers(0, 2**32))
def test_the_next_engine_is_right_early_and_in_the_end(
    of: tuple[ss.Operator, str], seed: int
) -> None:
    dice = random.Random(seed)
    both = Both(*of, dice)
    with both.first, both.second:
        for _ in range(dice.randrange(4, 30)):
            getattr(both, dice.choice(STEPS))()
        both.look()
        both.end()


class Total(ss.State):
    total = ss.scalar(int)


@ss.operator(state=Total, event={"x": int}, emits={"total": int})
def sums(state, event, emit):
    state.total += event.x
    if event.x:
        emit(state.total)


@ss.operator(state=Total, event={"total": int}, emits={"highest": int})
def highest(state, event, emit):
    state.total = max(state.total, event.total)
    emit(state.total)


@pytest.fixture
def pair() -> Iterator[tuple[ss.Engine, ss.Engine]]:
    first = ss.Engine(sums, sources=["a", "b"], early=True)
    second = ss.Engine(highest, sources=["sums"], early=True)
    with first, second:
        first.poll_early()
        second.poll_early()
        yield first, second


def fed(first: ss.Engine, second: ss.Engine) -> list[tuple[int, str]]:
    """What the next engine tells then."""
    ss.early.apply_changes(first.poll_early(timeout=None), second, source="sums")
    changes = second.poll_early(timeout=None).changes
    return list(zip(*(changes[name].to_pylist() for name in ("highest", "change")), strict=True))


def numbers(second: ss.Engine) -> list[int]:
    """Of the tentative events, in the order of the events."""
    pending = second.durable.pending
    known = pending.sources.known("sums")
    assert known is not None
    found = pending.tentative.confirmable(known, 2**62)
    return [one.first_sequence for one in sorted(found, key=lambda one: one.since)]


def test_a_row_keeps_its_number_when_it_changes(pair: tuple[ss.Engine, ss.Engine]) -> None:
    first, second = pair
    first.submit_event(20, "a", x=5)
    first.submit_event(30, "a", final=False, sequence=7, x=2)
    assert fed(*pair) == [(5, "early"), (7, "early")]
    first.submit_event(10, "b", x=1)
    assert fed(*pair) == [(1, "early"), (6, "early"), (8, "early")]
    assert numbers(second) == [2, 0, 1]
    first.retract("a", 7)
    assert fed(*pair) == [(8, "withdrawn")]
    assert numbers(second) == [2, 0]
    # Back again, it is another event.
    first.submit_event(30, "a", x=2)
    assert fed(*pair) == [(8, "early")]
    assert numbers(second) == [2, 0, 3]


def test_a_final_row_waits_for_those_that_were_told_before(
    pair: tuple[ss.Engine, ss.Engine],
) -> None:
    first, second = pair
    first.submit_event(20, "a", x=5)
    assert fed(*pair) == [(5, "early")]
    first.submit_event(10, "b", x=1)
    for source in ("a", "b"):
        first.advance(source, 15)
    assert fed(*pair) == [(1, "early"), (6, "early")]
    assert second.stats.pending == 2
    for source in ("a", "b"):
        first.advance(source, 25)
    assert fed(*pair) == [(1, "final"), (6, "final")]
    assert second.poll(timeout=None)["highest"].to_pylist() == [1, 6]


def test_a_hole_holds_nothing_up(pair: tuple[ss.Engine, ss.Engine]) -> None:
    first, second = pair
    first.submit_event(90, "a", final=False, sequence=0, x=5)
    first.submit_event(10, "a", x=1)
    assert fed(*pair) == [(1, "early"), (6, "early")]
    first.submit_event(5, "b", x=1)
    assert len(fed(*pair)) == 3
    first.retract("a", 0)
    first.advance("a")
    first.advance("b")
    assert fed(*pair)[-1] == (7, "withdrawn")
    second.advance("sums")
    assert second.poll(timeout=None)["highest"].to_pylist() == [1, 2]


def test_rows_of_one_time_are_in_the_order_of_the_rows(pair: tuple[ss.Engine, ss.Engine]) -> None:
    first, second = pair
    first.submit_event(10, "b", x=5)
    first.submit_event(20, "a", x=1)
    assert fed(*pair) == [(5, "early"), (6, "early")]
    first.submit_event(10, "a", x=-9)
    assert fed(*pair) == [(5, "withdrawn"), (0, "early"), (0, "early"), (0, "early")]
    assert sorted(numbers(second)) == [1, 2, 3]


@ss.operator(event={"w": float}, emits={"w": float})
def passed_on(event, emit):
    emit(event.w)


def test_zeros_differ_in_their_sign() -> None:
    with ss.Engine(passed_on, early=True) as first, ss.Engine(passed_on, early=True) as second:
        first.submit_event(10, "a", final=False, sequence=0, w=0.0)
        ss.early.apply_changes(first.poll_early(timeout=None), second, source="a")
        first.revise("a", 0, 2, w=-0.0)
        ss.early.apply_changes(first.poll_early(timeout=None), second, source="a")
        assert str(second.poll_early(timeout=None).changes["w"].to_pylist()) == "[-0.0]"


def test_an_answer_in_the_midst_of_taking_back_moves_no_frontier(
    pair: tuple[ss.Engine, ss.Engine],
) -> None:
    """What it says of what is final is ahead of the rows that it tells."""
    first, second = pair
    first.submit_event(10, "a", x=5)
    ss.early.apply_changes(answer := first.poll_early(timeout=None), second, source="sums")
    nothing = replace(answer, changes=answer.changes.slice(0, 0), final_up_to=(30, "a", 2))
    ss.early.apply_changes(nothing, second, source="sums")
    first.submit_event(20, "a", x=5)
    assert fed(*pair) == [(5, "early"), (10, "early")]


def test_what_does_not_follow_is_refused(pair: tuple[ss.Engine, ss.Engine]) -> None:
    first, second = pair
    before = first.savepoint()
    first.submit_event(10, "a", x=5)
    fed(*pair)
    old = first.poll_early(timeout=None)
    first.submit_event(20, "a", x=5)
    fed(*pair)
    with pytest.raises(ss.InputError, match=r"these changes have version \d+, .* those of \d+"):
        ss.early.apply_changes(old, second, source="sums")
    with pytest.raises(ss.ConfigurationError, match=r"order_by='total'.*'timestamp' before"):
        ss.early.apply_changes(old, second, source="sums", order_by="total")
    first.advance("a")
    first.advance("b")
    fed(*pair)
    first.rollback(before)
    first.submit_event(15, "a", x=3)
    with pytest.raises(ss.InputError, match=r"event 0 of source 'a' is reported as 'early'"):
        fed(*pair)


@pytest.mark.parametrize("how", ["rollback", "restore", "restore=", "stranger"])
def test_an_engine_with_other_tentative_events_is_refused(
    pair: tuple[ss.Engine, ss.Engine], how: str
) -> None:
    first, second = pair
    savepoint, snapshot = second.savepoint(), second.snapshot()
    first.submit_event(10, "a", x=5)
    fed(*pair)
    if how == "rollback":
        second.rollback(savepoint)
    elif how == "restore":
        second.restore(snapshot)
    elif how == "restore=":
        second = ss.Engine(highest, restore=second.snapshot(), early=True)
    else:
        second.submit_event(5, "sums", final=False, sequence=9, total=5)
        second.rollback(second.savepoint())
    with pytest.raises(ss.InputError, match=r"tentative events of source 'sums' of 'highest' are"):
        fed(first, second)
    second.close()


def test_what_does_not_fit_changes_nothing(pair: tuple[ss.Engine, ss.Engine]) -> None:
    first, second = pair
    first.submit_event(10, "a", x=5)
    answer = first.poll_early(timeout=None)
    changes = answer.changes
    for other, message in (
        (changes.rename_columns(["sum", *changes.column_names[1:]]), "no column 'total'"),
        (changes.set_column(0, "total", pa.nulls(1, pa.int64())), "null"),
    ):
        with pytest.raises(ss.InputError, match=message):
            ss.early.apply_changes(other, second, source="sums")
    ss.early.apply_changes(answer, second, source="sums")
    assert second.poll_early(timeout=None).changes["highest"].to_pylist() == [5]


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda one: 3, r"apply_changes: changes is of type int; expected a table"),
        (lambda one: replace(one, changes={"all": one.changes}), r"of one sink: .*\['all'\]\)"),
        (lambda one: one.changes.drop_columns("n"), r"apply_changes: changes has no column 'n'"),
    ],
)
def test_what_are_no_changes_is_refused(
    pair: tuple[ss.Engine, ss.Engine], made: Any, message: str
) -> None:
    with pytest.raises(ss.InputError, match=message):
        ss.early.apply_changes(made(pair[0].poll_early()), pair[1], source="sums")


def test_retractions_and_a_missing_time_are_refused(pair: tuple[ss.Engine, ss.Engine]) -> None:
    first, second = pair
    first.submit_event(10, "a", x=5)
    with pytest.raises(ss.InputError, match=r"no column 'due' .* order_by= one of its columns"):
        ss.early.apply_changes(first.poll_early(), second, source="sums", order_by="due")
    with pytest.raises(ss.InputError, match=r'polled with changes="retract"'):
        ss.early.apply_changes(first.poll_early(changes="retract"), second, source="sums")
    with pytest.raises(ss.ConfigurationError, match="engine='x'"):
        ss.early.apply_changes(first.poll_early(), "x", source="sums")


def test_the_next_engine_needs_early_results() -> None:
    with ss.Engine(sums, early=True) as first, ss.Engine(highest) as second:
        first.submit_event(10, 0, x=5)
        with pytest.raises(ss.ConfigurationError, match=r"expected Engine\(..., early=True\)"):
            fed(first, second)


def test_a_sink_of_a_pipeline_feeds_a_source_of_another() -> None:
    p = ss.Pipeline("next")
    stream = p.add(highest, p.source("sums", {"total": int}))
    p.sink("highest", stream)
    p.sink("others", p.source("others", {"total": int}))
    before = ss.Pipeline("before")
    events = before.source("events", {"x": int})
    before.sink("sums", before.add(sums, events))
    before.sink("events", events)
    with ss.Engine(before, early=True) as first, ss.Engine(p, early=True) as second:
        for time, x in ((20, 5), (10, 4)):
            first.submit_event(time, "events", x=x)
            answer = first.poll_early(timeout=None)
            one = replace(answer, changes=answer.changes["sums"])
            ss.early.apply_changes(one, second, source="sums")
        first.submit_event(10, "events", final=False, sequence=9, x=1)
        for x in (2, 3):
            first.revise("events", 9, x, x=x)
            one = replace(answer := first.poll_early(timeout=None), changes=answer.changes["sums"])
            ss.early.apply_changes(one, second, source="sums")
        assert second.poll_early(timeout=None).changes["highest"]["highest"].to_pylist() == [
            4,
            7,
            12,
        ]
