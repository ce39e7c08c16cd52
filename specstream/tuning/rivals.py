"""The ways to run an operator without speculation: locks, a loop by hand, the sequential check."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from specstream.columns.events import read_events
from specstream.columns.phases import phases_of
from specstream.columns.strings import StringTable
from specstream.compiler.oracle.oracle import Oracle
from specstream.declarations.element_types import storage_of
from specstream.declarations.state_content import StateContent
from specstream.declarations.state_layout import Field, Layout
from specstream.definition.operator import Operator, sequential
from specstream.engine.engine import Engine
from specstream.interpreted.sequential import Sequential
from specstream.pipelines.pipeline import Pipeline
from specstream.tuning.by_hand import LoopByHand, NoLoop
from specstream.tuning.contest import (
    UNORDERED,
    Arena,
    Contestant,
    EngineContestant,
    Measurement,
    Order,
    Rows,
    time_per_event,
)
from specstream.tuning.stream import Stream

__all__ = [
    "CHECK",
    "CHUNKS",
    "Comparison",
    "SequentialCheck",
    "compare",
    "under_one_lock",
    "warm_oracle",
]

BASELINE = "plain, 1 thread"
CHECK = "sequential check"
BATCH_SECONDS = 0.02
# Events that a thread under locks takes at a time; the best of them is shown.
CHUNKS = (1, 8, 64)


def under_one_lock(operator: Operator) -> Operator:
    """The same operator as one would make it run on threads first: one lock around all of it.

    >>> import specstream as ss
    >>> class Seen(ss.State):
    ...     count = ss.scalar(int)
    >>> @ss.operator(state=Seen, event={"x": int}, emits={})
    ... def count(state, event, emit):
    ...     state.count += event.x
    >>> with ss.Engine(under_one_lock(count), threads=2, execution="locked") as engine:
    ...     _ = engine.process({"x": [1] * 1000})
    ...     engine.state.count
    1000
    """
    function = operator.function

    def process(state, event, emit):  # type: ignore[no-untyped-def]
        with state.specstream_global_lock[0]:
            function(state, event, emit)

    def without_state(state, event, emit):  # type: ignore[no-untyped-def]
        with state.specstream_global_lock[0]:
            function(event, emit)

    lock = Field(
        "specstream_global_lock",
        storage_of(int, "the global lock"),
        (1,),
        0,
        "locks",
        operator.layout.words("locks"),
    )
    return Operator.of_layout(
        process if operator.layout.fields else without_state,
        f"{operator.name}_under_one_lock",
        Layout(operator.layout.name, (*operator.layout.fields, lock)),
        operator.event,
        operator.emits,
    )


def warm_oracle(operator: Operator, engine: Engine) -> Oracle | Sequential:
    """The plain function under Python, over a copy of the state that an engine has now."""
    layout = operator.layout
    words = StateContent.seen(layout, engine.durable.words).words()
    return sequential(operator.program, layout, words)


class SequentialCheck(Contestant):
    """What ``run_sequential`` does: the function under Python with numbers of 64 bits and an undo
    log, which all answers are checked against; on the first events of each batch and over the state
    that the baseline has then. All of a batch would take too long, and nobody would write it for
    speed: see :class:`specstream.tuning.by_hand.LoopByHand`."""

    def __init__(self, operator: Operator, seconds: float, order: Order = UNORDERED) -> None:
        super().__init__(CHECK)
        self._operator = operator
        self._order = order
        self._seconds = seconds
        self._count = 1

    def prepare(self, baseline: Contestant) -> None:
        assert isinstance(baseline, EngineContestant)
        self._oracle = warm_oracle(self._operator, baseline.engine)

    def run(self, batch: pa.Table, number: int) -> Rows | None:
        operator = self._operator
        table = batch.slice(0, self._count)
        strings = StringTable(operator.program.strings)
        read = read_events(
            table,
            operator.event,
            strings,
            operator.name,
            0,
            order_by=self._order["order_by"],
            source=self._order["source"],
            reads_timestamp=operator.program.reads_timestamp,
        )
        if operator.event.phases:
            read = phases_of(read, operator.event)
        self._oracle.begin(operator.event, operator.emits, read.columns, 0, 0, strings=strings)
        began = time.perf_counter()
        for row in range(read.count):
            self._oracle.run(row)
        self.times[number] = (time.perf_counter() - began) / table.num_rows
        # From the second time on it gets about as much time as the others.
        self._count = max(1, round(self._seconds / self.times[number]))
        return None

    def restart(self) -> None:
        pass


@dataclass(frozen=True)
class Comparison:
    """What came out.

    Attributes:
        measured: each contestant by name, relative to plain.
        settings: chunk of those under locks.
        nanoseconds: per event, plain.
        batch: events in one round.
        no_loop: why no loop by hand was measured; empty: it was.
    """

    measured: dict[str, Measurement]
    settings: dict[str, int]
    nanoseconds: float
    batch: int
    no_loop: str = ""


def compare(
    operator: Operator,
    locked: Operator | None,
    stream: Stream,
    seconds: float,
    threads: int,
    say: Callable[[str], None] = lambda text: None,
) -> Comparison:
    """Sets an operator beside a global lock, its plain run, a loop by hand, and the sequential
    check.

    Args:
        operator: what to run.
        locked: the same under locks of the user's own, or None.
        stream: the events.
        seconds: for the rounds.
        threads: of those that have several.
        say: told now and then what is going on.

    Raises:
        LockError: ``locked`` did something wrong with its locks.
    """
    say("compiling")
    plain = EngineContestant(BASELINE, operator, stream.order, threads=1, horizon=0)
    everyone: list[Contestant] = [plain]
    try:
        each = time_per_event(plain, stream.first)
        batches = stream.batches(round(BATCH_SECONDS / each))
        arena = Arena(batches, plain)
        families: dict[str, Operator] = {}
        # A pipeline is several functions. Interpreted ones under one lock are the plain run.
        if not isinstance(operator, Pipeline) and not operator.calls_python:
            families[f"global lock, {threads} threads"] = under_one_lock(operator)
        if locked is not None:
            families[f"own locks, {threads} threads"] = locked
        by_name = {
            name: [
                EngineContestant(
                    name,
                    of,
                    stream.order,
                    exact=threads == 1 and name.startswith("global"),
                    threads=threads,
                    chunk=chunk,
                    execution="locked",
                )
                for chunk in CHUNKS
            ]
            for name, of in families.items()
        }
        everyone += [one for family in by_name.values() for one in family]
        stay: list[Contestant] = [
            plain,
            EngineContestant("log-free, 1 thread", operator, stream.order, execution="log_free"),
            EngineContestant(
                f"specstream Auto, {threads} threads", operator, stream.order, threads=threads
            ),
            SequentialCheck(operator, BATCH_SECONDS, stream.order),
        ]
        no_loop = ""
        try:
            stay.append(LoopByHand(operator, BATCH_SECONDS, stream.order, stream.first))
        except NoLoop as why:
            no_loop = str(why)
        everyone += stay[1:]
        say("warming up")
        arena.round(everyone)
        rounds = arena.rounds_for(everyone, seconds / 4, 2, say)
        settings = {}
        for name, family in by_name.items():
            best = arena.fastest(family, rounds)
            settings[name] = next(c for c, one in zip(CHUNKS, family, strict=True) if one is best)
            stay.append(best)
        rounds = arena.rounds_for(stay, 3 * seconds / 4, 5, say)
        measured = {one.name: arena.measured(one, rounds) for one in stay}
        return Comparison(
            dict(sorted(measured.items(), key=lambda item: -item[1].speed)),
            settings,
            measured[BASELINE].nanoseconds,
            batches[0].num_rows,
            no_loop,
        )
    finally:
        for one in everyone:
            one.close()
