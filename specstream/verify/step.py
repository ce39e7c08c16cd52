"""One event from an unknown state: the paths that it can take, each with what it leaves behind.

The code that runs is the oracle's own (:meth:`Program.oracle_over`). State, event and emit are
those of this file and of :mod:`specstream.verify.containers`.
"""

# z3 carries no types.
# mypy: allow-untyped-calls

from __future__ import annotations

import ast
import linecache
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import z3

from specstream.columns.strings import string_code
from specstream.compiler.frontend.program import Program
from specstream.compiler.language.user_code import is_own
from specstream.declarations.element_types import Storage
from specstream.declarations.state_layout import Field, Layout
from specstream.definition.operator import Operator
from specstream.errors import CompileError
from specstream.verify.containers import (
    Array,
    Dict,
    Set,
    Store,
    part_names,
)
from specstream.verify.elements import key_sort, load, sort_of, store, term_of
from specstream.verify.events import Derived, Emit, Event, EventView, Row, SeenEvent
from specstream.verify.paths import (
    Cut,
    NotModelled,
    Path,
    Place,
    Wrap,
    explore,
    path,
    possible,
    refuse,
)
from specstream.verify.phase import function_of, of_one_source, programs_of
from specstream.verify.sequences import Sequence
from specstream.verify.values import INT, bits

__all__ = ["TICK", "Event", "Model", "Row", "State", "Way", "initial", "raised_at", "unknown"]

_EMPTY = string_code("")
NOWHERE = Place("", 0)
TICK = 1000  # nanoseconds of a microsecond, in which times of tables are written


# ---- the state ----


def words_of(layout: Layout) -> Iterator[tuple[str, Any, Any, bool]]:
    """The terms of a state: name, sort, initial term, and whether it has a sum beside it."""
    for one in layout.fields:
        if one.space == "locks" or one.space == "scratch":
            continue
        if one.container is not None:
            yield from _words_of_container(one)
            continue
        if one.record is None:
            parts = [(one.name, one.storage, one.fill)]
        else:
            assert isinstance(one.fill, tuple)
            names = part_names(one.name, one.record)
            parts = list(zip(names, one.record.parts, one.fill, strict=True))
        for name, storage, fill in parts:
            term = term_of(storage, fill)
            if one.dimensions == () and one.record is None:
                yield name, sort_of(storage), term, False
            else:
                sort = z3.ArraySort(INT, sort_of(storage))
                yield name, sort, z3.K(INT, term), _has_sum(storage)


def _has_sum(storage: Storage) -> bool:
    return storage.number in ("int", "uint", "bool") and storage.number != "bool"


def _words_of_container(one: Field) -> Iterator[tuple[str, Any, Any, bool]]:
    of = one.container
    assert of is not None
    keys = key_sort(of.key) if of.is_keyed else INT
    if of.is_keyed:
        yield f"{one.name}#has", z3.ArraySort(keys, z3.BoolSort()), z3.K(keys, False), False
        if of.expires:
            yield f"{one.name}#at", z3.ArraySort(keys, INT), z3.K(keys, bits(0)), False
    else:
        yield f"{one.name}#start", INT, bits(0), False
    yield f"{one.name}#count", INT, bits(0), False
    for name, part in zip(part_names(one.name, of.value), of.value.parts, strict=False):
        zero = z3.K(keys, term_of(part, 0 if part.number != "str" else ""))
        # What expires is not taken out of a sum.
        yield name, z3.ArraySort(keys, sort_of(part)), zero, _has_sum(part) and not of.expires


def initial(layout: Layout) -> dict[str, Any]:
    """The terms of a state before the first event."""
    found: dict[str, Any] = {}
    for name, _, term, has_sum in words_of(layout):
        found[name] = term
        if has_sum:
            found[f"{name}#sum"] = z3.BitVecVal(_initial_sum(layout, name), 128)
    found["#now"] = bits(-(2**63))
    found["#events"] = bits(0)
    return found


def _initial_sum(layout: Layout, name: str) -> int:
    field_name, _, part = name.rpartition(".")  # that of a pipeline has a point as well
    one = layout.field(name) or layout.field(field_name)
    assert one is not None
    if one.container is not None:
        return 0
    size = 1
    for length in one.dimensions:
        size *= length
    if one.record is None:
        return size * int(one.fill)  # type: ignore[arg-type]
    assert isinstance(one.fill, tuple)
    return size * int(one.fill[one.record.names.index(part)])


def unknown(layout: Layout, suffix: str = "") -> dict[str, Any]:
    """An unknown state: a constant of the solver for each term."""
    found: dict[str, Any] = {}
    for name, sort, _, has_sum in words_of(layout):
        found[name] = z3.Const(f"{name}{suffix}", sort)
        if has_sum:
            found[f"{name}#sum"] = z3.Const(f"{name}#sum{suffix}", z3.BitVecSort(128))
    for name in ("#now", "#events"):
        found[name] = z3.Const(f"{name}{suffix}", INT)
    return found


def structure(layout: Layout, terms: dict[str, Any]) -> list[Any]:
    """What holds of every state that events have made, because of how containers work."""
    facts = [terms["#events"] >= 0, terms["#events"] < 2**61]
    for one in layout.containers:
        assert one.container is not None
        count = terms[f"{one.name}#count"]
        most = one.container.most
        facts += [count >= 0, count <= most, count <= terms["#events"] * _MOST_STORES]
    return facts


_MOST_STORES = 2**20  # of one event


class State:
    """The state, as the oracle's code has it."""

    def __init__(self, layout: Layout, state: Store, scratch: Store) -> None:
        vars(self).update(_layout=layout, _store=state, _scratch=scratch)

    def __ss_check_update__(self, name: str, key: Any) -> None:
        """An update has been looked at when the operator was compiled."""

    def __getattr__(self, name: str) -> Any:
        layout: Layout = vars(self)["_layout"]
        one = layout.field(name)
        if one is None:
            raise AttributeError(f"state {layout.name!r} has no field {name!r}")
        made = self._made(one)
        if made is not None:
            vars(self)[name] = made
            return made
        return load(one.storage, vars(self)["_store"][name])

    def _made(self, one: Field) -> Any:
        """An array or container; None: it is a scalar."""
        state = vars(self)["_scratch" if one.space == "scratch" else "_store"]
        if one.space == "locks" or one.operations:
            what = "locks" if one.space == "locks" else "boosted fields"
            refuse(f"{what} (state.{one.name})", "they have no meaning here yet")
        if one.container is not None:
            if one.container.kind in ("timers", "priority_queue"):
                refuse(f"{one.container.kind} (state.{one.name})", "they have no meaning here yet")
            if not one.container.is_keyed:
                return Sequence(one, state)
            made = Dict(one, state, one.container.expires_after(TICK))
            return Set(made) if one.container.kind == "set" else made
        if one.dimensions == () and one.record is None:
            return None
        array = Array.of(one, state)
        if one.dimensions == ():
            return array._slots.value_at(bits(0))
        return array

    def __setattr__(self, name: str, value: Any) -> None:
        layout: Layout = vars(self)["_layout"]
        one = layout.field(name)
        if one is not None and one.container is None and one.dimensions == ():
            if one.record is not None:
                Array.of(one, vars(self)["_store"])._slots.put_at(bits(0), value)
                vars(self).pop(name, None)
                return
            vars(self)["_store"][name] = store(one.storage, value, f"state.{name}")
            return
        if value is not vars(self).get(name, self):  # state.x |= other
            raise AttributeError(f"{name!r} cannot be replaced")


# ---- a step ----


@dataclass
class Way:
    """A path through the operator.

    Attributes:
        guard: when an event takes it.
        exact: the same as the code says it, which no simplifier has seen.
        state: the terms of the state after it.
        rows: that it emits.
        error: the class of what it raises, or None.
        place: where it raises, is cut, or is refused.
        stopped: why nothing is known of it: "cut" or what has no meaning; "" else.
    """

    number: int
    guard: Any
    state: dict[str, Any]
    rows: list[Row] = field(default_factory=list)
    error: type[BaseException] | None = None
    place: Place = NOWHERE
    stopped: str = ""
    wraps: list[Wrap] = field(default_factory=list)
    free: list[tuple[Place, str]] = field(default_factory=list)
    touched: dict[str, list[Any]] = field(default_factory=dict)
    changes: bool = True
    exact: list[Any] = field(default_factory=list)

    def raises(self, found: str | None) -> bool:
        """Whether an event that takes it raises what was found: a class by its name, or None. What
        Python computes before may raise anything."""
        if self.error is None or found is None:
            return self.error is None and found is None
        return self.error is Derived or found == self.error.__name__


class Model:
    """An operator as a transition: what one event does to an unknown state.

    Attributes:
        before: the terms of the unknown state.
        event: the unknown event.
        ways: the paths.
        programs: of the operator, or of a pipeline's vertices.
    """

    def __init__(
        self,
        operator: Operator,
        rounds: int,
        deadline: float,
        suffix: str = "",
        layout: Layout | None = None,
    ) -> None:
        if operator.calls_python:
            refuse(
                f"operator {operator.name!r} is interpreted",
                "compile it: leave interpreted=True out",
            )
        if operator.has_timers:
            refuse(
                f"operator {operator.name!r} has timers, whose firing has no meaning here yet",
                "verify the operator without on_timer=",
            )
        if operator.event.phases:
            refuse(
                f"the phases of pipeline {operator.name!r} are all events of one time, which has "
                "no meaning here yet",
                'verify it with phases="event", or its operators one by one',
            )
        self.operator = operator
        self.layout = operator.layout if layout is None else layout  # with other limits
        self.before, self.start = unknown(self.layout, suffix), initial(self.layout)
        self.event = Event(operator.event)
        self.facts = [
            *structure(self.layout, self.before),
            *self.event.facts,
            self.event.terms["#time"] >= self.before["#now"],
            self.event.terms["#sequence"] == self.before["#events"],
            *of_one_source(operator, self.event),
        ]
        function, self.programs = function_of(operator), programs_of(operator)
        loops = frozenset().union(*map(_loops, self.programs))
        self.ways: list[Way] = []
        for one, way in explore(lambda at: self._walk(function, at), loops, rounds, deadline):
            way.number = len(self.ways)
            way.guard = z3.And(*one.guard) if one.guard else z3.BoolVal(True)
            way.exact = one.exact
            if one.guard and not possible([*one.guard, *self.facts]):
                continue
            way.wraps, way.free, way.touched = one.wraps, one.free, one.touched
            self.ways.append(way)
        for number, way in enumerate(self.ways):
            way.number = number

    @staticmethod
    def view(event: Event) -> SeenEvent:
        """An event as a property sees it."""
        return SeenEvent(event)

    def _walk(self, function: Any, at: Path) -> Way:
        begun = self._begun()
        state = Store(begun)
        state.now = self.event.terms["#time"]
        emit = Emit(self.operator.emits)
        view = State(self.layout, state, Store(_scratch(self.layout)))
        way = Way(0, None, begun)
        try:
            function(view, EventView(self.event), emit)
        except (Cut, NotModelled) as stop:
            way.place, way.stopped = stop.place, str(stop)
        except Exception as error:
            way.error, way.place = type(error), raised_at(error)
            if isinstance(error, _OF_THE_MODEL) and not _is_raised_there(way.place):
                # No compiled operator gets there: the values have no such operation here.
                what = f"{type(error).__name__}, {error}"
                way.error, way.stopped = None, f"line {way.place.line}: {what}; write it otherwise"
        else:
            way.state, way.rows = dict(state), emit.rows
        way.changes = any(not way.state[name].eq(begun[name]) for name in begun)
        return way

    def _begun(self) -> dict[str, Any]:
        """The state as the event finds it: with its time, and without what has expired."""
        terms = dict(self.before)
        terms["#now"] = self.event.terms["#time"]
        terms["#events"] = terms["#events"] + 1
        for one in self.layout.containers:
            assert one.container is not None
            if one.container.expires:
                # How many go is not counted: any number of them.
                left = z3.FreshConst(INT, f"{one.name}#left")
                path().require(z3.And(left >= 0, left <= terms[f"{one.name}#count"]))
                terms[f"{one.name}#count"] = left
        return terms


def _scratch(layout: Layout) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for one in layout.fields:
        if one.space == "scratch":
            zero = term_of(one.storage, "" if one.kind == "str" else 0)
            found[one.name] = z3.K(INT, zero)
    return found


# What the model cannot express raises these where Python itself would not: no answer, no defect.
_OF_THE_MODEL = (TypeError, AttributeError, NameError, NotImplementedError, CompileError)


def _is_raised_there(place: Place) -> bool:
    """Whether a line is one of the user's that raises."""
    return linecache.getline(place.file, place.line).lstrip().startswith("raise ")


def raised_at(error: BaseException) -> Place:
    found = Place("", 0)
    for frame, line in traceback.walk_tb(error.__traceback__):
        if not is_own(frame.f_code.co_filename):
            found = Place(frame.f_code.co_filename, line)
    return found


def _loops(program: Program) -> frozenset[Place]:
    """The lines that are tests of while loops."""
    found = set()
    for filename, tree in program.trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.While):
                last = node.test.end_lineno or node.test.lineno
                found |= {Place(filename, line) for line in range(node.test.lineno, last + 1)}
    return frozenset(found)
