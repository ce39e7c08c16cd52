"""An operator as a model of NuSMV: for its temporal logics, and as a part of other models.

The paths are those that :mod:`specstream.verify.step` has found; integers have the width that
somebody asks for.
"""

# z3 carries no types.
# mypy: allow-untyped-calls

from __future__ import annotations

import math
import re
import time as clock
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Literal

import z3

from specstream.columns.strings import string_code
from specstream.declarations.options import integer, refuses_unknown
from specstream.declarations.state_layout import Field, Layout
from specstream.definition.operator import Operator
from specstream.errors import ConfigurationError
from specstream.verify.checking import goals_of, properties_of
from specstream.verify.containers import part_names
from specstream.verify.elements import key_sort, sort_of
from specstream.verify.events import column_storage
from specstream.verify.formulas import Formula, PropertyState
from specstream.verify.induction import of_event
from specstream.verify.limits import check_operator
from specstream.verify.paths import NotModelled, OutOfTime, refuse
from specstream.verify.properties import Property
from specstream.verify.questions import Functions, Within, deadlines_of, property_or_none
from specstream.verify.reads import texts_of
from specstream.verify.smv_terms import Slots, Terms
from specstream.verify.step import Model, Way, words_of
from specstream.verify.values import INT

__all__ = ["to_smv"]

_MOST_SLOTS = 64
# Of the language, and those that the text has itself.
_WORDS = """
    MODULE DEFINE MDEFINE CONSTANTS VAR IVAR FROZENVAR INIT TRANS INVAR SPEC CTLSPEC LTLSPEC PSLSPEC
    COMPUTE NAME INVARSPEC FAIRNESS JUSTICE COMPASSION ISA ASSIGN CONSTRAINT SIMPWFF CTLWFF LTLWFF
    PSLWFF COMPWFF IN MIN MAX MIRROR PRED PREDICATES process array of boolean integer real word
    word1 bool signed unsigned extend resize sizeof uwconst swconst EX AX EF AF EG AG E F O G H X Y
    Z A U S V T BU EBF ABF EBG ABG case esac mod next init union in xor xnor self TRUE FALSE count
    op raised no_path toint COMPID Integer Real Word READ WRITE WAREAD WAWRITE
"""
_OWN = re.compile(r"(out\d*|[dps]|path)_\w*")


@refuses_unknown
def to_smv(
    operator: Operator,
    *,
    width: int = 8,
    slots: int = 8,
    always: Functions = (),
    each: Functions = (),
    within: Within | list[Within] = (),  # type: ignore[assignment]
    can_always: Functions | Literal["rows"] = (),
    assume: Functions = (),
    rounds: int = 8,
    time: float = 60.0,
) -> str:
    """An operator as a model of NuSMV 2.5 and later.

    ``MODULE operator`` has the columns of the events as its parameters, and ``out_b`` (an event
    emits a row), ``out_x`` (its column x; ``out2_b``, ``out2_x`` of a second row) and ``raised`` of
    what comes out; ``no_path`` is true where the operator has no path at this width. A ``main``
    gives it any events. Each element of the state is a variable, and so is each place of a
    sequence. Integers, also the lengths of sequences, are signed and have ``width`` bits; strings
    are numbers, those that the code names and others. What is asked becomes specifications:
    ``INVARSPEC`` of ``always`` and ``each``, ``LTLSPEC`` of ``within``, ``CTLSPEC AG EF`` of
    ``can_always``.

    Args:
        operator: compiled, without floats, timers, priority queues, or entries that expire.
        width: bits of an integer, from 2 to 64.
        slots: places of a sequence that is declared with a larger ``limit=``; it is full there.
            Fewer, where a length of ``width`` bits has less.
        always, each, within, can_always, assume, rounds, time: as of :func:`check`.

    Raises:
        ConfigurationError: something has no meaning there; names the field or line, and says what
            to do.

    >>> import specstream as ss
    >>> class Seen(ss.State):
    ...     count = ss.scalar(int)
    >>> @ss.operator(state=Seen, event={"x": bool}, emits={})
    ... def ticks(state, event, emit):
    ...     if event.x and state.count < 3:
    ...         state.count += 1
    >>> print(ss.verify.to_smv(ticks, width=4).partition("ASSIGN")[2].partition("MODULE")[0])
    <BLANKLINE>
      init(s_count) := 0sd4_0;
      next(s_count) := case path_1 : (s_count + 0sd4_1); TRUE : s_count; esac;
    <BLANKLINE>
    <BLANKLINE>
    """
    check_operator("to_smv", operator)
    width = integer("width", width, 2, 64)
    most = min(integer("slots", slots, 1, _MOST_SLOTS), 2 ** (width - 1) - 1)
    asked = _Asked(
        properties_of(always, operator, ("state",), "always="),
        properties_of(each, operator, ("before", "event", "rows", "after"), "each="),
        deadlines_of(within) if within else [],
        goals_of(can_always, operator),
        properties_of(assume, operator, ("event",), "assume="),
    )
    try:
        until = clock.monotonic() + time
        limited = _limited(operator.layout, most)
        model = Model(operator, integer("rounds", rounds, 0, 1000), until, layout=limited)
        return _Module(model, width, asked).text()
    except NotModelled as stop:
        what = f"{stop.what}; {stop.hint}"
        raise ConfigurationError(f"verify.to_smv: {operator.name!r}: {what}") from None
    except OutOfTime as stop:
        raise ConfigurationError(f"verify.to_smv: {operator.name!r}: {stop}") from None


def _limited(layout: Layout, most: int) -> Layout:
    """The layout with sequences that are full with so many elements."""
    fields = []
    for one in layout.fields:
        of = one.container
        if of is not None and not of.is_keyed and of.maxlen is None:
            one = replace(one, container=replace(of, limit=min(of.limit, most)))
        fields.append(one)
    return replace(layout, fields=tuple(fields))


class _Asked:
    """What becomes a specification."""

    def __init__(
        self,
        always: list[Property],
        each: list[Property],
        within: list[Within],
        can_always: list[Property | None],
        assume: list[Property],
    ) -> None:
        self.always, self.each, self.within = always, each, within
        self.can_always, self.assume = can_always, assume

    def functions(self) -> Iterator[Callable[..., Any]]:
        """All that are asked."""
        goals = [one for one in self.can_always if one is not None]
        yield from (one.function for one in (*self.always, *self.each, *goals, *self.assume))
        for one in self.within:
            yield from (of for of in (one.trigger, one.response) if of is not None)


class _Module:
    """The text of a model."""

    def __init__(self, model: Model, width: int, asked: _Asked) -> None:
        self.model, self.operator, self.asked = model, model.operator, asked
        self._used = {"raised", "no_path"}
        self._guards: dict[str, str] = {}
        named = [text for one in asked.functions() for text in texts_of(one)]
        strings = list(dict.fromkeys(["", *self.operator.program.strings, *named]))
        if len(strings) > 2 ** (width - 1):
            refuse(
                f"{len(strings)} strings are named, which are more than there are positive numbers "
                f"of {width} bits",
                "give a larger width",
            )
        codes = {string_code(one): at for at, one in enumerate(strings)}
        self.terms = Terms(width, {}, {}, codes | {string_code(""): 0})
        self.variables: list[tuple[str, str, str]] = []
        self.nexts: list[tuple[str, Callable[[Way], str]]] = []
        self.parameters: list[tuple[str, str]] = []
        for way in model.ways:
            if way.stopped:
                refuse(way.stopped, "what is exported has every path")
            if way.free:
                place, why = way.free[0]
                refuse(f"line {place.line}: {why}", "it has no exact meaning; leave it out")
        self._event()
        for one in model.layout.fields:
            if one.space == "state":
                self._field(one)

    # ---- names ----

    def _name(self, whole: str, prefix: str = "") -> str:
        """A name of NuSMV's; each once."""
        name = prefix + re.sub(r"[^A-Za-z0-9_]", "_", whole)
        is_own = not prefix and _OWN.fullmatch(name)
        name += "_" * bool(is_own or name in _WORDS.split())
        while name in self._used:
            name += "_"
        self._used.add(name)
        return name

    def _event(self) -> None:
        for name, column in self.operator.event:
            term = self.model.event.terms[name]
            self._parameter(name, term, self.terms.type_of(term.sort()))
            if column.nullable:
                null = self.model.event.terms[f"{name}?"]
                self._parameter(f"{name}_null", null, "boolean")

    def _parameter(self, name: str, term: Any, of: str) -> None:
        made = self._name(name)
        self.parameters.append((made, of))
        self.terms.leaves[term.decl().name()] = made

    # ---- the state ----

    def _field(self, one: Field) -> None:
        of, terms = one.container, self.terms
        for _, sort, _, _ in self._words(one):
            terms.type_of(sort.range() if isinstance(sort, z3.ArraySortRef) else sort)
        if of is None and one.dimensions == () and one.record is None:
            name, sort, start, _ = next(self._words(one))
            self._scalar(name, sort, terms.text(start), self._next_scalar(name))
            return
        if of is not None and of.expires:
            refuse(f"state.{one.name}, whose entries expire", "declare it without expire_after=")
        if of is None:
            size = math.prod(one.dimensions)
            self._elements(one, range(size), INT, lambda way, at: at)
        elif of.is_keyed:
            self._keyed(one)
        else:
            self._sequence(one, of.most)

    def _words(self, one: Field) -> Iterator[tuple[str, Any, Any, bool]]:
        names = {one.name}
        shape = one.container.value if one.container is not None else one.record
        if shape is not None:
            names |= set(part_names(one.name, shape))
        for word in words_of(self.model.layout):
            if word[0] in names or word[0].startswith(f"{one.name}#"):
                yield word

    def _scalar(self, word: str, sort: Any, start: str, following: Callable[[Way], str]) -> None:
        name = self._name(word.replace("#count", "_len"), "s_")
        self.terms.leaves[word] = name
        self.variables.append((name, self.terms.type_of(sort), start))
        self.nexts.append((name, following))

    def _next_scalar(self, word: str) -> Callable[[Way], str]:
        return lambda way: self.terms.text(way.state[word])

    def _elements(
        self,
        one: Field,
        keys: range,
        sort: Any,
        index: Callable[[Way, Any], Any],
        has: bool = False,
    ) -> None:
        """Variables for the elements of an array, or of a container at each key or place."""
        if len(keys) > _MOST_SLOTS:
            refuse(
                f"state.{one.name} with {len(keys)} elements",
                f"declare at most {_MOST_SLOTS}, or export with a smaller width",
            )
        for word, of, start, _ in self._words(one):
            if not isinstance(of, z3.ArraySortRef):
                continue
            zero = self.terms.text(start.arg(0))
            base = word.replace("#has", "_has")
            names = [self._name(f"{base}_{at}".replace("-", "m"), "s_") for at in keys]
            self.terms.arrays[word] = Slots(names, keys.start, zero)
            for name, at in zip(names, keys, strict=True):
                self.variables.append((name, self.terms.type_of(of.range()), zero))
                key = z3.BitVecVal(at, sort.size())
                self.nexts.append((name, self._next_element(word, index, key)))

    def _next_element(
        self, word: str, index: Callable[[Way, Any], Any], key: Any
    ) -> Callable[[Way], str]:
        return lambda way: self.terms.element(way.state[word], index(way, key))

    def _keyed(self, one: Field) -> None:
        of = one.container
        assert of is not None
        sort = key_sort(of.key)
        if of.key.is_tuple:
            refuse(
                f"state.{one.name} with keys of several parts", "declare keys of one int or bool"
            )
        bits = self.terms.bits(sort.size())
        least = 0 if bits == 1 else -(2 ** (bits - 1))
        self._elements(one, range(least, least + 2**bits), sort, lambda way, at: at)
        self._length(f"{one.name}#count")

    def _sequence(self, one: Field, most: int) -> None:
        if most > _MOST_SLOTS:
            refuse(
                f"state.{one.name}, which may hold {most:,} elements",
                f"declare it with a maxlen= of at most {_MOST_SLOTS}",
            )
        start = f"{one.name}#start"
        self.terms.leaves[start] = self.terms.number(0, self.terms.width)
        self._elements(one, range(most), INT, lambda way, at: way.state[start] + at)
        if most >= 2 ** (self.terms.width - 1):
            width = self.terms.width
            refuse(
                f"state.{one.name} may hold {most} elements, and the largest number of {width} "
                f"bits is {2 ** (width - 1) - 1}",
                "give a larger width",
            )
        self._length(f"{one.name}#count")

    def _length(self, count: str) -> None:
        zero = self.terms.number(0, self.terms.width)
        self._scalar(count, INT, zero, self._next_scalar(count))

    # ---- what events do ----

    def _guard(self, way: Way) -> str:
        """The name of what says that an event takes a path."""
        name = f"path_{way.number + 1}"
        if name not in self._guards:
            self._guards[name] = " & ".join(map(self.terms.text, way.exact)) or "TRUE"
        return name

    def _cases(self, cases: list[tuple[str, str]], other: str) -> str:
        """What holds in whichever of some cases is there."""
        told: dict[str, list[str]] = {}
        for when, what in cases:
            if what != other:
                told.setdefault(what, []).append(when)
        if not told:
            return other
        several = " ".join(f"{' | '.join(when)} : {what};" for what, when in told.items())
        return f"case {several} TRUE : {other}; esac"

    def _any(self, guards: list[str]) -> str:
        return " | ".join(dict.fromkeys(guards)) or "FALSE"

    def _outputs(self) -> Iterator[tuple[str, str]]:
        ways = self.model.ways
        yield "no_path", f"!({self._any(list(map(self._guard, ways)))})"
        yield "raised", self._any([self._guard(one) for one in ways if one.error is not None])
        most = max((len(one.rows) for one in ways), default=0)
        for number in range(max(most, 1)):
            out = "out" if number == 0 else f"out{number + 1}"
            having = [one for one in ways if len(one.rows) > number]
            self._used.add(f"{out}_b")
            yield f"{out}_b", self._any(list(map(self._guard, having)))
            for name, column in self.operator.emits:
                sort = sort_of(column_storage(column))
                self.terms.type_of(sort)
                told = self._name(name, f"{out}_")
                cases = [
                    (self._guard(one), self.terms.text(one.rows[number].terms[name]))
                    for one in having
                    if not one.rows[number].nulls[name]
                ]
                yield told, self._cases(cases, self.terms.zero_of(sort))
                if column.nullable:
                    null = [one for one in having if one.rows[number].nulls[name]]
                    is_null = self._any(list(map(self._guard, null)))
                    yield self._name(f"{name}_null", f"{out}_"), is_null

    # ---- what is asked ----

    def formula(self, of: Formula) -> str:
        """What a property says, as an expression; of all entries, one by one."""
        if of.kind == "term":
            return self.terms.text(of.term)
        if of.kind == "not":
            return f"!({self.formula(of.parts[0])})"
        if of.kind in ("and", "or"):
            sign = " & " if of.kind == "and" else " | "
            return f"({sign.join(map(self.formula, of.parts))})"
        assert of.body is not None
        parts = []
        for key in self._keys(of):
            there, said = of.body(key)
            sign = "->" if of.kind == "all" else "&"
            parts.append(f"({self.terms.text(there)} {sign} {self.formula(said)})")
        return f"({(' & ' if of.kind == 'all' else ' | ').join(parts)})"

    def _keys(self, of: Formula) -> list[Any]:
        field = self.model.layout.field(of.field)
        assert field is not None
        word = next(word for word, *_ in self._words(field) if word in self.terms.arrays)
        slots = self.terms.arrays[word]
        keys = range(slots.first, slots.first + len(slots.names))
        return [z3.BitVecVal(at, of.sort.size()) for at in keys]

    def _of_state(self, of: Property) -> str:
        terms = self.model.before
        state = PropertyState(self.model.layout, terms, terms["#now"])
        return self.formula(of.formula(state=state))

    def _of_event(self, of: Property) -> str:
        parts = [
            f"({self._guard(way)} & {self.formula(of_event(of, self.model, way))})"
            for way in self.model.ways
        ]
        return self._any(parts)

    def _specifications(self) -> Iterator[tuple[str, str, str]]:
        """Of each: the name of what it is about, that, and the specification."""
        asked, operator = self.asked, self.operator
        for one in asked.always:
            name = self._name(one.name, "p_")
            yield name, self._of_state(one), f"INVARSPEC op.{name}"
        for one in asked.each:
            name = self._name(one.name, "p_")
            yield name, self._of_event(one), f"INVARSPEC op.{name}"
        for goal in asked.can_always:
            name, said = "out_b", ""
            if goal is not None:
                name, said = self._name(goal.name, "p_"), self._of_event(goal)
            yield name, said, f"CTLSPEC AG EF op.{name}"
        for deadline in asked.within:
            response = property_or_none(deadline.response, operator, "response=")
            trigger = property_or_none(deadline.trigger, operator, "trigger=")
            name = "out_b"
            if response is not None:
                name = self._name(response.name, "p_")
                yield name, self._of_event(response), ""
            soon = f"op.{name}"
            for _ in range(deadline.events - 1):
                soon = f"(op.{name} | X {soon})"
            if trigger is not None:
                asks = self._name(trigger.name, "p_")
                yield asks, self._of_event(trigger), ""
                soon = f"(op.{asks} -> {soon})"
            yield "out_b", "", f"LTLSPEC G {soon}"

    # ---- all of it ----

    def text(self) -> str:
        """The whole model."""
        specifications = list(self._specifications())
        assumed = [self._of_input(one) for one in self.asked.assume]
        outputs = list(self._outputs())
        outputs += [(name, said) for name, said, _ in specifications if said]
        nexts = [(name, self._next(name, of)) for name, of in self.nexts]
        names = ", ".join(name for name, _ in self.parameters)
        given = f"({names})" if names else ""
        lines = [
            f"-- {self.operator.name}, with integers of {self.terms.width} bits",
            f"MODULE operator{given}",
        ]
        if self.variables:
            lines += ["VAR", *(f"  {name} : {of};" for name, of, _ in self.variables)]
        defined = self.terms.defines | self._guards
        lines += ["DEFINE", *(f"  {name} := {of};" for name, of in defined.items())]
        lines += [f"  {name} := {of};" for name, of in outputs]
        if self.variables:
            lines += ["ASSIGN", *(f"  init({name}) := {of};" for name, _, of in self.variables)]
            lines += [f"  next({name}) := {of};" for name, of in nexts]
        lines += ["", "MODULE main"]
        lines += ["VAR", *(f"  {name} : {of};" for name, of in self.parameters)]
        lines.append(f"  op : operator{given};")
        lines += [f"INVAR {one}" for one in assumed]
        lines += [one for _, _, one in specifications if one]
        return "\n".join(lines) + "\n"

    def _of_input(self, of: Property) -> str:
        """What is assumed of an event, in the main module: nothing is named there."""
        own = Terms(self.terms.width, dict(self.terms.leaves), {}, self.terms.codes)
        whole, self.terms = self.terms, own
        try:
            found = self.formula(of.formula(event=Model.view(self.model.event)))
        finally:
            self.terms = whole
        for name, text in reversed(own.defines.items()):
            found = re.sub(rf"\b{name}\b", lambda _, text=text: text, found)  # type: ignore[misc]
        return found

    def _next(self, name: str, of: Callable[[Way], str]) -> str:
        cases = [(self._guard(way), of(way)) for way in self.model.ways if way.error is None]
        return self._cases(cases, name)
