"""The third witness of pipelines: unrewritten functions on plain Python objects, path by path.

Of the product it takes the graph as it was declared, and the numbers of vertices, by which timers
fire that are due at one time. It has its own order of vertices, its own paths (with all of their
zeros), its own last values, its own timers.
"""

# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import collections
import copy
import hashlib
from typing import Any

import specstream as ss
from specstream._native import ffi, lib
from support.engine.timed import NULL, PlainTimers
from support.witness import Text


def initial(layout: Any) -> Any:
    state = type("State", (), {})()
    for field in layout.fields:
        if field.container is not None:
            kind = field.container.kind
            value: Any = {} if kind == "dict" else collections.deque(maxlen=field.container.maxlen)
            value = PlainTimers() if kind == "timers" else value
        elif field.shape == ():
            value = {"int": int, "float": float, "bool": bool, "str": str}[field.kind]()
        else:
            value = [0] * field.shape[0]
        setattr(state, field.name, value)
    return state


class Row:
    """The columns of one input."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.__dict__.update(values)
        self._values = values

    def is_null(self, name: str) -> bool:
        return self._values[name] is None


class Event(Row):
    def __init__(self, values: dict[str, Any], key: Any, changed: Any, known: Any) -> None:
        super().__init__(values)
        self._changed, self._known = changed, known
        self._seed, self.timestamp, self.source, self.sequence = key

    def changed(self, name: str) -> bool:
        return name in self._changed

    def known(self, name: str) -> bool:
        return name in self._known

    def _key_of(self, draw: int) -> tuple[int, int, int, int, int]:
        return self._seed, self.timestamp, self.source, self.sequence, draw

    def random(self, draw: int) -> float:
        return (int(lib.ss_random_bits(*self._key_of(draw))) >> 11) * 2.0**-53

    def integer(self, low: int, high: int, draw: int) -> int:
        drawn = ffi.new("int64_t *")
        assert not lib.ss_random_integer(*self._key_of(draw), low, high, drawn)
        return int(drawn[0])


def source_number(name: str) -> int:
    """What stands for the name of a source in order keys."""
    return int(Text(name).code())


def salts(pipeline: ss.Pipeline) -> dict[str, int]:
    """What the random numbers of vertices differ by, from their names alone."""
    digests = {name: hashlib.sha256(name.encode()).digest() for name in pipeline._graph.vertices}
    return {name: int.from_bytes(digest[:8], "little") for name, digest in digests.items()}


# What vertices raise.
RAISED = (ValueError, IndexError, ZeroDivisionError)
NOTHING = {"int": 0, "float": 0.0, "bool": False, "str": ""}


class Phases:
    """Runs phases.

    Attributes:
        rows: of each sink.
        states: of each vertex.
        last: values of each input of a vertex that has several, by column.
        raised: numbers of phases; of those by time that of the first event; None: a timer has.
        runs: of vertices, in all phases together.
        emitted: of each vertex, how many rows came of each run.
    """

    def __init__(self, pipeline: ss.Pipeline, salts: dict[str, int], seed: int = 0) -> None:
        self.graph = pipeline._graph
        self.seed, self.salts = seed, salts
        self.rows: dict[str, list[tuple[Any, ...]]] = {name: [] for name in self.graph.sinks}
        self.states = {n: initial(v.operator.layout) for n, v in self.graph.vertices.items()}
        self.last: dict[tuple[str, str], dict[str, Any]] = {}
        self.sequence = 0
        self.runs = 0
        self.emitted: dict[str, list[int]] = collections.defaultdict(list)
        self.raised: list[Any] = []
        self.clock, self.fired = NULL, 0
        self.key: tuple[int, int, int] = (0, 0, 0)  # of the event or firing
        self.numbers = [one.name for one in pipeline.describe().vertices]
        self.levels: dict[str, int] = {}
        for name in self.graph.names:
            self.level(name)
        self.depth = max(self.levels.values()) + 1

    def level(self, name: str) -> int:
        if name not in self.levels:
            before = self.graph.predecessors()[name]
            self.levels[name] = 1 + max(map(self.level, before)) if before else 0
        return self.levels[name]

    def phase(
        self, source: str, values: dict[str, Any], key: tuple[int, int, int] | None = None
    ) -> None:
        """Runs one of one event, and before it those of the timers that are due.

        Args:
            source: where the event comes in.
            values: of its columns.
            key: of the event; by default that of an event in the order of its table.
        """
        if key is None:
            # Of several sources' events it is the name, by its code.
            several = len(self.graph.sources) > 1
            number = source_number(source) if several else 0
            key = self.sequence, number, self.sequence
        self._whole(key, [(source, values)])

    def phase_of_time(self, time: int, events: list[tuple[str, dict[str, Any]]]) -> None:
        """Runs one of all events of one time, those of each source in their order."""
        self._whole((time, 0, 0), events)

    def _whole(self, key: tuple[int, int, int], events: list[tuple[str, dict[str, Any]]]) -> None:
        """Behind the timers that are due before it; applied, or not at all."""
        time = key[0]
        while due := self.due(lambda vertex, at, stamp: at <= max(time, self.clock)):
            self.fire(*due)
        self.key = key

        def first(sent: Any) -> None:
            for source, values in events:
                number = len(sent[source])
                sent[source][(number,) + (0,) * (self.depth - 1)] = values

        if self.attempt(first):
            self.clock = max(self.clock, time)
        else:
            self.raised.append(self.sequence)
        self.sequence += len(events)

    def reach(self, time: int) -> None:
        """A frontier."""
        while due := self.due(lambda vertex, at, stamp: at <= time):
            self.fire(*due)

    def end(self) -> None:
        """The input ends: those fire that wait, and not those that they set."""
        lasts = {name: timers.stamp for name, timers in self.timers().items()}
        while due := self.due(lambda vertex, at, stamp: stamp <= lasts[vertex]):
            self.fire(*due)

    def timers(self) -> dict[str, PlainTimers]:
        """Those of the vertices that have some, in the order of their numbers."""
        found = {name: getattr(self.states[name], "timers", None) for name in self.numbers}
        return {name: one for name, one in found.items() if one is not None}

    def due(self, wanted: Any) -> tuple[str, int, Any] | None:
        found = [
            (at, self.numbers.index(name), stamp, name, key)
            for name, timers in self.timers().items()
            for key, (at, stamp) in timers.held.items()
            if wanted(name, at, stamp)
        ]
        if not found:
            return None
        at, _, _, name, key = min(found, key=lambda one: one[:3])
        return name, at, key

    def fire(self, name: str, at: int, key: Any) -> None:
        """A phase in which a vertex has run what its timer runs."""
        del self.states[name].timers.held[key]
        self.clock = max(self.clock, at)
        self.key = self.clock, NULL, self.fired
        self.fired += 1

        def first(sent: Any) -> None:
            timer = Event({}, (self.seed_of(name), *self.key), set(), set())
            timer.__dict__.update(key=key, at=at)
            timers = self.states[name].timers
            timers.floor = at
            vertex = self.graph.vertices[name]
            self.call(vertex, vertex.operator.on_timer, timer, (0,) * self.depth, sent)
            timers.floor = None

        if not self.attempt(first):
            self.raised.append(None)

    def attempt(self, begin: Any) -> bool:
        """A phase, of which ``begin`` sends the first rows; False: it has raised, and was none."""
        saved = copy.deepcopy((self.states, self.last))
        done = {name: len(rows) for name, rows in self.rows.items()}
        try:
            sent: dict[str, Any] = collections.defaultdict(dict)
            begin(sent)
            self.go_on(sent)
        except RAISED:
            self.states, self.last = saved
            for name, count in done.items():
                del self.rows[name][count:]
            return False
        return True

    def go_on(self, sent: dict[str, dict[tuple[int, ...], dict[str, Any]]]) -> None:
        for name in sorted(self.graph.vertices, key=lambda one: self.levels[one]):
            vertex = self.graph.vertices[name]
            for path in sorted({path for one in vertex.inputs for path in sent[one.stream]}):
                self.run(vertex, path, sent)
        for sink in self.graph.sinks.values():
            for path in sorted(sent[sink.stream]):
                row = sent[sink.stream][path]
                self.rows[sink.name].append(tuple(row[one] for one in sink.columns.names))

    def seed_of(self, vertex: str) -> int:
        return (self.seed ^ self.salts[vertex]) & (2**64 - 1)

    def run(self, vertex: Any, path: tuple[int, ...], sent: Any) -> None:
        inputs: dict[str, Row] = {}
        changed = set()
        for one in vertex.inputs:
            key = vertex.name, one.name
            if path in sent[one.stream]:
                row = sent[one.stream][path]
                self.last[key] = {name: row[name] for name in one.columns.names}
                changed.add(one.name)
            nothing = {
                name: None if column.nullable else NOTHING[column.kind]
                for name, column in one.columns
            }
            inputs[one.name] = Row(self.last.get(key, nothing))
        known = {name for of, name in self.last if of == vertex.name}
        seed = self.seed_of(vertex.name)
        for level, number in enumerate(path):
            if number:
                seed = int(lib.ss_random_bits(seed, level, number, 0, 0))
        own = dict(inputs[""]._values) if "" in inputs else dict(inputs)
        event = Event(own, (seed, *self.key), changed, known)
        self.call(vertex, vertex.operator.function, event, path, sent)

    def call(self, vertex: Any, function: Any, of: Event, path: tuple[int, ...], sent: Any) -> None:
        emitted: list[dict[str, Any]] = []
        names = vertex.operator.emits.names

        def emit(*values: Any, **named: Any) -> None:
            row = dict.fromkeys(names) | dict(zip(names, values, strict=False)) | named
            for one, column in vertex.operator.emits:
                if row[one] is not None and column.kind == "float":
                    row[one] = float(row[one])
            emitted.append(row)

        self.runs += 1
        state = [self.states[vertex.name]] if vertex.operator.layout.fields else []
        function(*state, of, emit)
        self.emitted[vertex.name].append(len(emitted))
        for number, row in enumerate(emitted):
            to = list(path)
            to[self.levels[vertex.name]] = number
            sent[vertex.name][tuple(to)] = row
