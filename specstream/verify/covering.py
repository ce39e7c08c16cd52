"""``cover``: one table of events that takes an operator through all its paths."""

# z3 carries no types.
# mypy: allow-untyped-calls

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import pyarrow as pa

from specstream.declarations.options import refuses_unknown
from specstream.definition.operator import Operator
from specstream.verify.checking import properties_of
from specstream.verify.counterexample import Table, made_table, replay, small_model, table_of
from specstream.verify.limits import Limits, check_operator
from specstream.verify.paths import NotModelled, OutOfTime, Place
from specstream.verify.properties import Property
from specstream.verify.questions import Functions
from specstream.verify.search import Search
from specstream.verify.solvers import Budget, OutOfMemory, solve, solvers_within
from specstream.verify.step import Model, Way

__all__ = ["Cover", "cover"]

_STATEMENTS = (ast.FunctionDef, ast.Pass, ast.Global, ast.Nonlocal)


@refuses_unknown
@dataclass
class Cover:
    """Events that :func:`cover` has found.

    Attributes:
        operator: its name.
        table: the events, in order.
        order_by: the column of their times; None: there is none.
        paths: of the operator.
        reached: paths that the table takes.
        unreached: lines of functions of the operator that it does not reach, by file.
        undecided: why some paths are not known; empty: all are.
        seconds: that it took.
    """

    operator: str
    table: pa.Table
    order_by: str | None = None
    paths: int = 0
    reached: int = 0
    unreached: dict[str, list[int]] = field(default_factory=dict)
    undecided: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain data."""
        return {
            "operator": self.operator,
            "events": self.table.num_rows,
            "order_by": self.order_by,
            "paths": self.paths,
            "reached": self.reached,
            "unreached": self.unreached,
            "undecided": self.undecided,
            "seconds": round(self.seconds, 3),
        }

    def __str__(self) -> str:
        return os.linesep.join(self._lines())

    def _lines(self) -> Iterator[str]:
        count = self.table.num_rows
        yield (
            f"{self.operator}: {self.reached} of {self.paths} paths with {count} "
            f"event{'s'[: count != 1]}, {self.seconds:.1f} s"
        )
        if not self.unreached:
            yield "  every line is reached"
        for file, lines in self.unreached.items():
            numbers = ", ".join(map(str, lines))
            yield f"  not reached: {file}, line{'s'[: len(lines) != 1]} {numbers}"
        for reason in self.undecided:
            yield f"undecided  {reason}"


@refuses_unknown
def cover(
    operator: Operator,
    *,
    assume: Functions = (),
    events: int = 4,
    rounds: int = 4,
    effort: float = 1.0,
    time: float = 60.0,
    memory: int | None = None,
) -> Cover:
    """One stream that takes as many paths of an operator as one stream can: data for a test.

    The stream has been run, sequentially and on an engine of two threads. What only another stream
    gets to, like what the first event alone may do, is left out.

    Args:
        operator: made by :func:`specstream.operator`, or a pipeline.
        assume, rounds, effort, time, memory: as of :func:`check`.
        events: that are tried to get from one new path to the next.

    Raises:
        ConfigurationError: the question is wrong.

    >>> import specstream as ss
    >>> @ss.operator(event={"x": int}, emits={"half": int})
    ... def half(event, emit):
    ...     if event.x % 2:
    ...         raise ValueError("odd")
    ...     emit(event.x // 2)
    >>> ss.verify.cover(half).table["x"].to_pylist()
    [1, 0]
    """
    limits = Limits(events=events, rounds=rounds, effort=effort, time=time, memory=memory, least=1)
    check_operator("cover", operator)
    assumed = properties_of(assume, operator, ("event",), "assume=")
    found = Cover(operator.name, made_table(operator, [], []).table)
    try:
        with solvers_within(limits.memory):
            model = Model(operator, limits.rounds, limits.paths_until)
            _Covering(model, assumed, limits.budget, found).run(limits.events)
    except (NotModelled, OutOfMemory, OutOfTime) as stop:
        found.undecided.append(str(stop))
    found.seconds = limits.seconds
    return found


class _Covering:
    """One call of :func:`cover`."""

    def __init__(self, model: Model, assume: list[Property], budget: Budget, found: Cover) -> None:
        self.model, self.assume, self.budget, self.found = model, assume, budget, found
        self.values: list[dict[str, Any]] = []
        self.times: list[int] = []
        self.ways: list[Way] = []
        self.open = [way for way in model.ways if not way.stopped]
        found.paths = len(model.ways)
        found.undecided += list(dict.fromkeys(way.stopped for way in model.ways if way.stopped))

    def run(self, events: int) -> None:
        """Goes from one new path to the next, and runs what came of it."""
        start = self.model.start
        while self.open and self.budget.left > 0:
            start = self._next(start, events)
            if start is None:
                break
        self._show()

    def _next(self, start: Any, events: int) -> Any:
        """Takes a few more events, to a path that was not taken; the state after them, or None."""
        search = Search(self.model, self.assume, self.budget)
        search.unrolled.start = start
        unrolled = search.unrolled
        for count in range(1, events + 1):
            for way in self.open:
                guard = unrolled.step(count - 1).guards[way.number]
                facts = [*unrolled.facts(count), guard]
                if solve(facts, self.budget, min(self.budget.effort, 0.5))[0] != "sat":
                    continue
                model = small_model(facts, unrolled, count, self.budget)
                if model is None:
                    continue
                more = table_of(self.model.operator, unrolled, count, model)
                self.values += more.values
                self.times += more.times
                taken = search.taken(model, count)
                self.ways += taken
                self.open = [one for one in self.open if one is not way and one not in taken]
                after = unrolled.step(count - 1).after
                return {
                    name: model.eval(term, model_completion=True) for name, term in after.items()
                }
        return None

    def _show(self) -> None:
        operator, found = self.model.operator, self.found
        table = made_table(operator, self.values, self.times)
        run = replay(operator, table)
        # What Python computes may be something else than was supposed.
        pairs = enumerate(zip(self.ways, run.errors, strict=True))
        known = next((at for at, (way, error) in pairs if not way.raises(error)), len(table))
        if not run.agrees:
            found.undecided.append("the sequential run and an engine of two threads differ")
        if known < len(table):
            found.undecided.append(f"event {known + 1} does something else when it is run")
            table = made_table(operator, self.values[:known], self.times[:known])
        found.table, found.order_by = table.table, table.order_by
        found.reached = len({way.number for way in self.ways[:known]})
        found.unreached = _unreached(self.model, table)


def _unreached(model: Model, table: Table) -> dict[str, list[int]]:
    """Lines that a run of a table does not come to, by file."""
    wanted: dict[str, set[int]] = {}
    for program in model.programs:
        for file, tree in program.trees():
            lines = {
                node.lineno
                for node in ast.walk(tree)
                if isinstance(node, ast.stmt)
                and not isinstance(node, _STATEMENTS)
                and not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
            }
            wanted.setdefault(file, set()).update(lines)
    reached: set[Place] = set()

    def note(frame: FrameType, what: str, argument: Any) -> Any:
        if frame.f_code.co_filename not in wanted:
            return None
        reached.add(Place(frame.f_code.co_filename, frame.f_lineno))
        return note

    before = sys.gettrace()
    sys.settrace(note)
    try:
        model.operator.run_sequential(table.table, on_error="skip", order_by=table.order_by)
    finally:
        sys.settrace(before)
    missed = {
        file: sorted(line for line in lines if Place(file, line) not in reached)
        for file, lines in wanted.items()
    }
    return {file: lines for file, lines in missed.items() if lines}
