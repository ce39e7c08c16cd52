"""Events as they come, early results of them, and the run that both are compared with."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from conftest import Result, assert_identical, partial_of

import specstream as ss
from support import contents
from support.operators import families

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
Draw = Callable[[random.Random, int], list[dict[str, Any]]]


def ours(dice: random.Random, count: int) -> list[dict[str, Any]]:
    return [
        {"at": dice.randrange(1000), "amount": dice.choice([-1, *range(20)])} for _ in range(count)
    ]


def theirs(dice: random.Random, count: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = families.events(count, dice.randrange(10**6)).to_pylist()
    return rows


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
        self.advanced: set[str] = set()
        self.has_ended = False
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
        self.send(source, self.rows_of(source, self.dice.choice([1, 1, 3, 12])))

    def send(self, source: str, rows: list[dict[str, Any]]) -> None:
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
        self.advanced.add(source)
        self.engine.advance(source, self.reached[source])

    def poll(self) -> None:
        try:
            self.rows.append(self.engine.poll(timeout=self.dice.choice([0, None])))
        except Exception as error:
            self.rows.append(partial_of(error).output)
            self.raised.append(f"{type(error).__name__}: {error}")

    def expected(self) -> ss.SequentialRun:
        return self.operator.run_sequential(
            self.events(),
            order_by="time",
            source="source",
            on_error="skip",
            keys=True,
            end=self.has_ended,
        )

    def events(self) -> pa.Table:
        schema = self.schema().append(pa.field("source", pa.string()))
        return pa.Table.from_pylist(self.come, schema=schema)

    def standing(self) -> pa.Table:
        """What is emitted by all that has come, and by timers that were due before the frontier."""
        last = max((row["time"] for row in self.come), default=-1)
        reached = min(self.reached.values())
        if self.advanced != set(SOURCES) or reached < last or not self.operator.has_timers:
            return self.expected().output
        with ss.Engine(self.operator, sources=SOURCES, threads=1, keys=True) as engine:
            engine.submit(self.events(), order_by="time", source_column="source")
            for source in SOURCES:
                engine.advance(source, None if self.has_ended else reached)
            rows: list[pa.Table] = []
            while engine.stats.pending or not rows:
                try:
                    rows.append(engine.poll(timeout=None))
                except Exception as error:
                    rows.append(partial_of(error).output)
            return pa.concat_tables(
                [*rows, engine.poll(timeout=None)], promote_options="permissive"
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
        names = [*self.operator.emits.names, "timestamp", "source"]
        assert self.in_order(stands, names) == self.in_order(self.standing(), names)
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
        furthest = max(SOURCES, key=lambda source: self.reached[source])
        if all(row["time"] <= self.reached[furthest] for row in self.come):
            # A frontier that passes the last event is not the end: an entry may expire there, and a
            # timer fire that one has set which fires there. The sequential run knows of none.
            self.send(furthest, self.rows_of(furthest, 1))
        for source in SOURCES:
            self.engine.advance(source, None)
        self.has_ended = True
        expected = self.expected()
        while len(self.raised) < len(expected.raised) or self.engine.stats.pending:
            self.poll()
        self.poll()
        output = pa.concat_tables(self.rows)
        raised = [f"{type(e).__name__}: {e}" for _, e in expected.raised]
        assert self.raised == raised, (self.raised, raised)
        assert_identical(
            Result(output, contents.of_view(self.engine.state), ()),
            Result(
                expected.output.select(output.column_names), contents.of_view(expected.state), ()
            ),
        )
        self.look()
        stands = ss.early.latest(self.log)
        assert set(stands["change"].to_pylist()) <= {"final"}
        names = output.column_names
        assert self.in_order(stands, names) == self.in_order(output, names)

    def in_order(self, table: pa.Table, names: list[str]) -> list[Any]:
        """Rows as they can be compared: by key a timer stands before the events of its time, also
        where one of these has set it."""
        rows = [tuple(row.values()) for row in table.select(names).to_pylist()]
        return sorted(rows, key=repr) if self.operator.has_timers else rows

    def go(self, steps: int) -> None:
        """So many steps at random, and the end."""
        for _ in range(steps):
            step = self.dice.choice(STEPS)
            if step == "look":
                self.look()
            elif step == "glance":
                self.look(whole=False)
            else:
                getattr(self, step)()
        self.look()
        self.end()
