"""Early results: what is told before it is final is the sequential run over all that has come."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import random
import time
from typing import Any

import contents
import families
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from arriving import PATIENCE, entities
from conftest import Result, assert_identical, partial_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import specstream as ss

SOURCES = ["a", "b", "c"]
SETTINGS: list[dict[str, Any]] = [
    {"threads": 1, "horizon": 0},
    {"threads": 2, "horizon": 8, "chunk": 1},
    {"threads": 2, "horizon": 16, "chunk": 5},
    {"threads": 3, "horizon": 4, "chunk": 2, "protocol": "eager"},
    {"threads": 2, "horizon": "auto", "limits": ss.Limits(reads=6, writes=6, rows=2)},
    {"threads": 2, "horizon": 8, "limits": ss.Limits(early=3000)},
]
STEPS = [
    *("submit", "submit", "submit", "advance", "look", "look", "glance", "poll", "go_back"),
    *("guess", "guess", "revise", "revise", "retract", "confirm"),
]
KEY = ["timestamp", "source", "sequence", "n"]


class Words(ss.State):
    counts = ss.array(int, 4)
    small = ss.array(np.int8, 8)
    grid = ss.array(int, (3, 4))
    total = ss.scalar(float)


@ss.operator(
    state=Words,
    event={"at": int, "amount": int},
    emits={"at": int, "row": int, "total": float},
)
def mixed(state, event, emit):
    """Updates that nobody reads, narrow elements, rows as a whole; none, one or several rows."""
    ss.structures.add(state.counts, event.at % 4, event.amount)
    state.small[event.at % 8] = event.amount % 100
    state.grid[event.at % 3] = state.grid[(event.at + 1) % 3]
    state.grid[event.at % 3, event.at % 4] += event.amount
    if event.amount % 3 == 0:
        state.total = state.total * 0.5 + event.amount
    for number in range(event.amount % 3):
        emit(event.at, number + state.counts[event.at % 4], state.total)


class Held(ss.State):
    balances = ss.dict(int, int, limit=64)
    latest = ss.deque(int, limit=8)
    seen = ss.set(int, limit=64)


@ss.operator(state=Held, event={"at": int, "amount": int}, emits={"at": int, "sum": int, "n_": int})
def held(state, event, emit):
    """Keys that come and go, all of them in the order of their coming, and how many there are."""
    at = event.at % 9
    if event.amount % 4 == 0 and at in state.balances:
        del state.balances[at]
        state.seen.discard(at)
    else:
        state.balances[at] = state.balances.get(at, 0) + event.amount
        state.seen.add(event.amount % 7)
    if len(state.latest) == 8:
        state.latest.popleft()
    state.latest.append(event.amount)
    if event.amount % 5 == 0:
        place = 1
        total = 0
        for key in state.balances:
            total += place * key
            place += 1
        emit(event.at, total, len(state.seen))
    elif event.amount % 2:
        emit(event.at, state.balances.get(at + 1, -1), state.latest[0])


def ours(dice: random.Random, count: int) -> list[dict[str, Any]]:
    return [
        {"at": dice.randrange(1000), "amount": dice.choice([-1, *range(20)])} for _ in range(count)
    ]


def theirs(dice: random.Random, count: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = families.events(count, dice.randrange(10**6)).to_pylist()
    return rows


def is_comparable(operator: ss.Operator) -> bool:
    """Of what goes by the number of an event, which is that of its arrival, the sequential run over
    a table knows nothing."""
    by_arrival = {"sequence", "random", "random_bits", "normal", "integer", "choice"}
    return "n" not in operator.emits.names and not by_arrival & set(operator.explain().columns_read)


OPERATORS = [
    *((operator, ours) for operator in (entities, mixed, held)),
    *((operator, theirs) for operator in families.FAMILY if is_comparable(operator)),
]


class World:
    """Events as they come, what was told of them, and the run that it is compared with."""

    def __init__(self, operator: ss.Operator, draw: Any, options: Any, dice: random.Random):
        self.operator, self.draw, self.dice = operator, draw, dice
        self.engine = ss.Engine(operator, sources=SOURCES, early=True, late="drop", **options)
        self.reached = dict.fromkeys(SOURCES, 0)
        self.next = dict.fromkeys(SOURCES, 0)
        self.come: list[dict[str, Any]] = []
        self.open: dict[tuple[str, int], tuple[dict[str, Any], int]] = {}
        self.log: list[pa.Table] = []
        self.rows: list[pa.Table] = []
        self.raised: list[str] = []
        # Changes are told from here on.
        assert self.engine.poll_early().changes.num_rows == 0

    def guess(self) -> None:
        """Tentative events, with numbers of our own."""
        source = self.dice.choice(SOURCES)
        rows = self.rows_of(source, self.dice.choice([1, 1, 4]))
        numbers = [self.next[source] + 2 * at + 1 for at in range(len(rows))]
        self.next[source] = numbers[-1] + 1
        if len(rows) == 1:
            self.engine.submit_event(
                rows[0]["time"], source, final=False, sequence=numbers[0], **self.values(rows[0])
            )
        else:
            table = pa.Table.from_pylist(rows, schema=self.schema())
            table = table.append_column("number", pa.array(numbers))
            self.engine.submit(
                table, order_by="time", source=source, final=False, sequence_by="number"
            )
        for number, row in zip(numbers, rows, strict=True):
            self.come.append({**row, "source": source})
            self.open[source, number] = (self.come[-1], 1)

    def revise(self) -> None:
        if not self.open:
            return
        source, number = self.dice.choice(sorted(self.open))
        row, version = self.open[source, number]
        other = self.draw(self.dice, 1)[0]
        names = [name for name in self.values(row) if self.dice.random() < 0.7]
        names = names or list(self.values(row))[:1]
        values = {name: other[name] for name in names}
        self.engine.revise(source, number, version + 1, **values)
        if self.dice.random() < 0.3:  # what came before, once more
            self.engine.revise(source, number, version, **self.values(self.draw(self.dice, 1)[0]))
        row.update(values)
        self.open[source, number] = (row, version + 1)

    def retract(self) -> None:
        if not self.open:
            return
        source, number = self.dice.choice(sorted(self.open))
        row, _ = self.open.pop((source, number))
        for _ in range(self.dice.choice([1, 2])):
            self.engine.retract(source, number)
        self.come = [one for one in self.come if one is not row]

    def confirm(self, whole: bool = False) -> None:
        for source in SOURCES if whole else [self.dice.choice(SOURCES)]:
            mine = [number for name, number in sorted(self.open) if name == source]
            if not mine:
                continue
            up_to = mine[-1] if whole else self.dice.choice(mine)
            self.engine.confirm(source, up_to)
            self.open = {
                key: event for key, event in self.open.items() if key[0] != source or key[1] > up_to
            }

    def go_back(self) -> None:
        """To where it stands: the job ends, and what is not final is applied anew."""
        self.engine.rollback(self.engine.savepoint())

    def rows_of(self, source: str, count: int) -> list[dict[str, Any]]:
        floor = self.reached[source] + 1
        return [
            {"time": floor + self.dice.randrange(30), **row} for row in self.draw(self.dice, count)
        ]

    def values(self, row: dict[str, Any]) -> dict[str, Any]:
        return {name: row[name] for name in row if name in self.operator.event.names}

    def submit(self) -> None:
        source = self.dice.choice(SOURCES)
        rows = self.rows_of(source, self.dice.choice([1, 1, 3, 12]))
        self.next[source] += len(rows)
        table = pa.Table.from_pylist(rows, schema=self.schema())
        if len(rows) == 1 and self.dice.random() < 0.5:
            self.engine.submit_event(rows[0]["time"], source, **self.values(rows[0]))
        else:
            self.engine.submit(table, order_by="time", source=source)
        self.come += [{**row, "source": source} for row in rows]

    def schema(self) -> pa.Schema:
        sample = families.events(1) if self.draw is theirs else pa.table({"at": [1], "amount": [1]})
        return sample.schema.insert(0, pa.field("time", pa.int64()))

    def advance(self) -> None:
        source = self.dice.choice(SOURCES)
        self.reached[source] += self.dice.randrange(25)
        self.engine.advance(source, self.reached[source])

    def poll(self) -> None:
        try:
            self.rows.append(self.engine.poll(timeout=self.dice.choice([0, None])))
        except Exception as error:
            self.rows.append(partial_of(error).output)
            self.raised.append(f"{type(error).__name__}: {error}")

    def expected(self) -> ss.SequentialRun:
        table = pa.Table.from_pylist(
            self.come, schema=self.schema().append(pa.field("source", pa.string()))
        )
        return self.operator.run_sequential(
            table, order_by="time", source="source", on_error="skip", keys=True
        )

    def look(self, whole: bool = True) -> None:
        """What was told so far is what the sequential run emits over all that has come (ER-1)."""
        answer = self.engine.poll_early(timeout=None if whole else 0)
        if answer.reset:
            self.log = [one.filter(pc.equal(one["change"], "final")) for one in self.log]
        self.log.append(answer.changes)
        self.check_versions()
        limited = self.engine.limits.early < 1 << 20 or self.engine.limits.reads < 100
        if not whole or limited:
            return
        stands = ss.early.latest(self.log)
        expected = self.expected().output
        names = [*self.operator.emits.names, "timestamp", "source"]
        assert stands.select(names).to_pylist() == expected.select(names).to_pylist()
        if self.come:
            last = max((row["time"], row["source"]) for row in self.come)
            assert answer.applied_up_to is not None
            assert answer.applied_up_to[:2] == last

    def check_versions(self) -> None:
        """ER-3: versions rise, "final" is the last word."""
        table = self.log[-1]
        assert len(set(map(tuple, zip(*(table[k].to_pylist() for k in KEY), strict=True)))) == len(
            table
        )
        earlier = [one for one in self.log[:-1] if one.num_rows]
        if not earlier or not table.num_rows:
            return
        before = pa.concat_tables(earlier)
        assert pc.max(before["version"]).as_py() < pc.min(table["version"]).as_py()
        final = before.filter(pc.equal(before["change"], "final")).select(KEY).to_pylist()
        now = table.select(KEY).to_pylist()
        assert not {tuple(row.values()) for row in final} & {tuple(row.values()) for row in now}

    def end(self) -> None:
        """ER-2: rows and state that are final are those of the sequential run."""
        self.confirm(whole=True)
        for source in SOURCES:
            self.engine.advance(source, None)
        expected = self.expected()
        while len(self.raised) < len(expected.raised) or self.engine.stats.pending:
            self.poll()
        self.poll()
        output = pa.concat_tables(self.rows)
        raised = [f"{type(e).__name__}: {e}" for _, e in expected.raised]
        assert self.raised == raised
        assert_identical(
            Result(output, contents.of_view(self.engine.state), ()),
            Result(
                expected.output.select(output.column_names), contents.of_view(expected.state), ()
            ),
        )
        self.look()
        stands = ss.early.latest(self.log)
        assert set(stands["change"].to_pylist()) <= {"final"}
        assert stands.select(output.column_names).equals(output)


@pytest.mark.slow
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    which=st.integers(0, len(OPERATORS) - 1),
    options=st.sampled_from(SETTINGS),
    seed=st.integers(0, 2**32),
)
def test_what_is_told_is_the_sequential_run_over_what_has_come(
    which: int, options: Any, seed: int
) -> None:
    dice = random.Random(seed)
    world = World(*OPERATORS[which], options, dice)
    with world.engine:
        for _ in range(dice.randrange(4, 25)):
            step = dice.choice(STEPS)
            if step == "look":
                world.look()
            elif step == "glance":
                world.look(whole=False)
            else:
                getattr(world, step)()
        world.look()
        world.end()


def test_patience_is_bounded() -> None:
    """Nothing hangs where a source never advances: the answer is there (ER-12)."""
    with ss.Engine(entities, sources=["a", "b"], early=True, threads=2) as engine:
        for at in range(100):
            engine.submit_event(at, "a", at=at, amount=1)
        answer = engine.poll_early(timeout=PATIENCE)
        assert answer.changes.num_rows == 100
        assert answer.final_up_to is None
        assert engine.poll(timeout=None).num_rows == 0
        assert engine.stats.pending == 100


def test_what_is_submitted_waits_where_revoking_takes_too_long() -> None:
    """The latest events stay back, so that late ones find few to be taken back; nothing is lost."""
    count, late = 30_000, 400
    with ss.Engine(entities, sources=["a", "b"], early=True, threads=2) as engine:
        engine.poll_early()
        for at in range(10):
            first = at * count // 10
            times = range(first, first + count // 10)
            engine.submit(
                {"t": times, "at": times, "amount": [1] * len(times)}, order_by="t", source="a"
            )
        engine.poll_early(timeout=None)
        deadline = time.monotonic() + PATIENCE
        held = 0
        for at in range(late):
            engine.submit_event(at, "b", at=at, amount=1)
            engine.submit_event(count + at, "a", at=at, amount=1)
            engine.poll_early(timeout=None)
            held = max(held, int(engine.parts.native.early_figures().held))
            if held or time.monotonic() > deadline:
                break
        assert held > count // 2, "nothing was held back"
        come = at + 1
        engine.submit_event(count + late, "a", at=1, amount=1)
        answer = engine.poll_early(timeout=None)
        assert answer.applied_up_to is not None
        assert answer.applied_up_to[0] < count + late
        for source in ("a", "b"):
            engine.advance(source, None)
        rows = engine.poll(timeout=None)
        assert rows.num_rows == count + 2 * come + 1
        assert engine.stats.pending == 0


@pytest.mark.parametrize("revised", [False, True])
def test_a_poll_waits_for_what_an_event_that_is_gone_has_held_back(revised: bool) -> None:
    for _ in range(10):
        with ss.Engine(entities, sources=["a"], early=True, threads=3, horizon=16) as engine:
            engine.submit_event(0, "a", final=False, sequence=0, at=1, amount=5)
            times = list(range(1, 31))
            table = {"t": times, "at": times, "amount": [1] * 30}
            engine.submit(table, order_by="t", source="a")
            engine.advance("a", 20)
            if revised:
                engine.revise("a", 0, version=2, amount=6)
                engine.confirm("a")
            else:
                engine.retract("a", 0)
            assert engine.poll(timeout=None).num_rows == 20 + revised
