"""Helping invariants: what may hold of every state, to be tried and left out where it does not.

Nobody asks for these; a proof needs them. All that could be of use is put together from the words
of the state, and :meth:`Induction.prove` eliminates what does not hold before the first event, or
is broken by a step.
"""

# z3 carries no types.
# mypy: allow-untyped-calls

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import z3

from specstream.compiler.language.numbers import Int64
from specstream.declarations.element_types import Storage
from specstream.declarations.state_layout import Field, Layout
from specstream.verify.containers import part_names
from specstream.verify.elements import widened
from specstream.verify.formulas import Formula, SeenField
from specstream.verify.induction import Induction, Invariant
from specstream.verify.step import Model
from specstream.verify.values import bits

__all__ = ["between", "prove_with_helpers"]

_SMALL = 8
_MOST_CONSTANTS = 6
_MOST_SMALL = 12  # words that are compared with each other
_MOST_CLIPPED = 5
_MOST_LAST = 3
Terms = dict[str, Any]
Number = Callable[[Terms], Any]


def prove_with_helpers(induction: Induction, asked: list[Invariant]) -> list[Invariant]:
    """What is proved of some invariants, with what has helped where they are not without."""
    proved = induction.prove(asked)
    if len(proved) < len(asked) or not asked:
        proved = induction.prove([*asked, *_helpers(induction.model)])
    return proved


def _helpers(model: Model) -> list[Invariant]:
    """What may hold of the states of one operator."""
    constants = _constants(model)
    found = list(_of_words(model, constants))
    found += _totals(model.layout, "")
    found += _marks(model.layout)
    found += _waiting(model, constants)
    found += _clipped(_small_words(model.layout, ""))
    return found


def _scalars(layout: Layout) -> list[Field]:
    return [
        one
        for one in layout.fields
        if one.space == "state" and one.container is None and one.shape == ()
    ]


def _marks(layout: Layout) -> Iterator[Invariant]:
    """Scalars that are true where a number is not 0."""
    for mark, one in itertools.product(_scalars(layout), repeat=2):
        if mark.kind == "bool" and one.kind == "int":
            is_set = partial(_is_mark, mark.name, one.name)
            yield _term(f"{mark.name} is {one.name} != 0", is_set)


def _is_mark(mark: str, name: str, terms: Terms) -> Any:
    return terms[mark] == (terms[name] != 0)


def _waiting(model: Model, constants: list[int]) -> Iterator[Invariant]:
    """What counts the events since something waits for an answer, against scalars of the state."""
    words = [name for name in model.before if name.startswith("#waiting")]
    for word, one in itertools.product(words, [*_scalars(model.layout), *model.layout.containers]):
        if one.container is None and one.kind == "bool":
            yield _term(f"something waits if {one.name}", partial(_waits_if, word, one.name))
        if one.container is None and one.kind != "int":
            continue
        name = one.name if one.container is None else f"{one.name}#count"
        number = partial(_number, name, one.storage)
        counts = {name: number}
        more = {*constants, *(constant + 1 for constant in constants)}
        for constant in sorted(more, key=abs):
            counts[f"{constant} - {name}"] = partial(_less, number, constant)
            if constant > 1:
                counts[f"{name} % {constant}"] = partial(_rest, number, constant)
        for said, count in counts.items():
            yield _term(f"{said} events wait", partial(_waits, word, count))
            yield _term(f"{said} events wait, or none", partial(_waits_or_not, word, count))


def _waits_if(word: str, name: str, terms: Terms) -> Any:
    return (terms[word] > 0) == terms[name]


def _waits(word: str, count: Number, terms: Terms) -> Any:
    return terms[word] == count(terms)


def _waits_or_not(word: str, count: Number, terms: Terms) -> Any:
    return z3.Or(terms[word] == 0, terms[word] == count(terms))


def _number(name: str, part: Storage, terms: Terms) -> Any:
    return _word(terms, name, part, None)


def _less(number: Number, constant: int, terms: Terms) -> Any:
    return constant - number(terms)


def _rest(number: Number, constant: int, terms: Terms) -> Any:
    return z3.SRem(number(terms), bits(constant))


def between(pair: Any) -> list[Invariant]:
    """What may hold between the states of two operators over the same events."""
    old, new = pair.old.layout, pair.new.layout
    found = list(_equal_words(pair))
    found += _totals(new, "", "", new)
    found += _totals(old, "old:", "old:", old)
    found += _totals(new, "", "old:", old)
    found += _totals(old, "old:", "", new)
    found += _clipped(_small_words(new, "") | _small_words(old, "old:"))
    found += _last_ones(_sequences(new, ""), _sequences(old, "old:"))
    return found


def _term(name: str, of: Callable[[Terms], Any]) -> Invariant:
    """An invariant about a state's terms."""
    return Invariant(name, lambda state: Formula("term", of(vars(state)["_store"])), False)


# ---- words that are small ----


def _small_words(layout: Layout, prefix: str) -> dict[str, Number]:
    """Lengths, and scalars that may be counts. What a pipeline keeps of its inputs is none."""
    found: dict[str, Number] = {}
    for one in layout.containers:
        name = f"{prefix}{one.name}#count"
        found[f"len({prefix}{one.name})"] = partial(_number, name, one.storage)
    for one in _scalars(layout):
        is_kept = layout.has_part(one.name.partition(".")[0]) and one.name.count(".") > 1
        if one.kind == "int" and one.storage.size == 8 and not is_kept:
            found[f"{prefix}{one.name}"] = partial(_number, f"{prefix}{one.name}", one.storage)
    return found if len(found) <= _MOST_SMALL else {}


def _clipped(words: dict[str, Number]) -> Iterator[Invariant]:
    """Counts that go along with others, up to a limit, or from the second on."""
    for name, number in words.items():
        yield _term(f"{name} is 0", partial(_is_number, number, 0))
        for other, of in words.items():
            if name == other:
                continue
            for most in range(1, _MOST_CLIPPED):
                said = f"{name} is min({other}, {most})"
                yield _term(said, partial(_is_clipped, number, of, most))
            yield _term(f"{name} is max({other} - 1, 0)", partial(_is_behind, number, of))


def _is_number(number: Number, value: int, terms: Terms) -> Any:
    return number(terms) == value


def _is_clipped(number: Number, of: Number, most: int, terms: Terms) -> Any:
    other = of(terms)
    return number(terms) == z3.If(other < most, other, bits(most))


def _is_behind(number: Number, of: Number, terms: Terms) -> Any:
    other = of(terms)
    return number(terms) == z3.If(other > 0, other - 1, bits(0))


def _sequences(layout: Layout, prefix: str) -> list[str]:
    """Those of 64-bit integers."""
    return [
        f"{prefix}{one.name}"
        for one in layout.containers
        if one.container is not None
        and not one.container.is_keyed
        and one.container.value.is_whole
        and one.container.value.parts[0].number == "int"
        and one.container.value.parts[0].size == 8
    ]


def _last_ones(names: list[str], others: list[str]) -> Iterator[Invariant]:
    """The last element of one sequence is one of the last of another, or the sum of two."""
    for one, other in [*itertools.product(names, others), *itertools.product(others, names)]:
        for at in range(_MOST_LAST):
            said = f"the last of {one} is number {at + 1} from the end of {other}"
            yield _term(said, partial(_is_last, one, other, (at,)))
        said = f"the last of {one} is the sum of the last two of {other}"
        yield _term(said, partial(_is_last, one, other, (0, 1)))


def _is_last(one: str, other: str, places: tuple[int, ...], terms: Terms) -> Any:
    there = z3.And(terms[f"{one}#count"] > 0, terms[f"{other}#count"] > max(places))
    total: Any = bits(0)
    for at in places:
        total = total + _from_end(terms, other, at)
    return z3.Implies(there, _from_end(terms, one, 0) == total)


def _from_end(terms: Terms, name: str, at: int) -> Any:
    last = terms[f"{name}#start"] + terms[f"{name}#count"] - 1
    return z3.Select(terms[name], last - at)


# ---- words against others ----


def _equal_words(pair: Any) -> Iterator[Invariant]:
    """Words of two states that are equal, and elements at the same key."""
    names = [name for name in pair.new.before if name not in ("#now", "#events")]
    others = [name for name in pair.old.before if name not in ("#now", "#events")]
    for left, right in itertools.product(names, others):
        old = f"old:{right}"
        if pair.before[left].sort() != pair.before[old].sort():
            continue
        alike = left.partition("#")[2] == right.partition("#")[2]
        if not alike:
            continue
        yield _term(
            f"{left} is {right} of the old one",
            lambda terms, left=left, old=old: terms[left] == terms[old],  # type: ignore[misc]
        )


def _constants(model: Model) -> list[int]:
    """Integers that the code compares with or stores."""
    found: dict[int, None] = {}
    functions: list[Any] = [one.oracle for one in model.programs]
    waiting, seen = [one.__globals__ for one in functions], set()
    while waiting:
        names = waiting.pop()
        if id(names) in seen:
            continue
        seen.add(id(names))
        for value in names.values():
            if isinstance(value, Int64):
                found[int(value)] = None
            elif hasattr(value, "__globals__") and "__ss_" in "".join(value.__globals__):
                waiting.append(value.__globals__)
    return sorted(found, key=abs)[:_MOST_CONSTANTS]


def _words(layout: Layout) -> Iterator[tuple[Field, str, Storage]]:
    """The integers of a state: each field, and the name and type of each of its words."""
    for one in layout.fields:
        if one.space != "state" or one.is_timers:
            continue
        if one.container is not None and one.container.kind == "priority_queue":
            continue
        shape = one.container.value if one.container is not None else one.record
        parts: list[tuple[str, Storage]] = [(one.name, one.storage)]
        if shape is not None:
            parts = list(zip(part_names(one.name, shape), shape.parts, strict=False))
        yield from ((one, name, part) for name, part in parts if part.number == "int")


def _of_words(model: Model, constants: list[int]) -> Iterator[Invariant]:
    for one, name, part in _words(model.layout):
        yield from _bounds(one, name, part, constants)
        if one.container is not None and one.container.expires:
            yield _each(one, f"{name} is the time of the last write", partial(_is_at, name, one))
        if model.operator.program.reads_timestamp:
            yield _each(one, f"{name} is not after the last event", partial(_is_past, name, part))


def _bounds(one: Field, name: str, part: Storage, constants: list[int]) -> Iterator[Invariant]:
    for limit in dict.fromkeys((0, *constants)):
        yield _each(one, f"{name} >= {limit}", partial(_at_least, name, part, limit))
        yield _each(one, f"{name} <= {limit}", partial(_at_most, name, part, limit))


def _word(terms: Terms, name: str, part: Storage, key: Any) -> Any:
    return widened(part, terms[name] if key is None else z3.Select(terms[name], key))


def _is_at(name: str, one: Field, terms: Terms, key: Any) -> Any:
    return z3.Select(terms[name], key) == z3.Select(terms[f"{one.name}#at"], key)


def _is_past(name: str, part: Storage, terms: Terms, key: Any) -> Any:
    return _word(terms, name, part, key) <= terms["#now"]


def _at_least(name: str, part: Storage, limit: int, terms: Terms, key: Any) -> Any:
    return _word(terms, name, part, key) >= limit


def _at_most(name: str, part: Storage, limit: int, terms: Terms, key: Any) -> Any:
    return _word(terms, name, part, key) <= limit


def _each(one: Field, name: str, of: Callable[[Terms, Any], Any]) -> Invariant:
    """An invariant about every element of a field, or about a scalar."""

    def formula(state: Any) -> Formula:
        terms = vars(state)["_store"]
        if one.container is None and one.dimensions == () and one.record is None:
            return Formula("term", of(terms, None))
        if one.container is None and one.dimensions == ():
            return Formula("term", of(terms, bits(0)))
        seen: SeenField = getattr(state, one.name)

        def of_key(key: Any) -> tuple[Any, Formula]:
            return seen.has_key(key), Formula("term", of(terms, key))

        return Formula("all", field=one.name, body=of_key, sort=seen.sort)

    return Invariant(name, formula, False)


# ---- totals ----


def _totals(
    layout: Layout, prefix: str, other: str | None = None, of: Layout | None = None
) -> list[Invariant]:
    """Scalars that are the sum, or the number, of the elements of a short field."""
    other, of = prefix if other is None else other, layout if of is None else of
    scalars = [one.name for one in _scalars(layout) if one.kind == "int" and one.storage.size == 8]
    found = []
    for scalar, one in itertools.product(scalars, of.fields):
        container = one.container
        if container is not None:
            found.append(
                _term(
                    f"{prefix}{scalar} is len({other}{one.name})",
                    partial(_is_word, f"{prefix}{scalar}", f"{other}{one.name}#count"),
                )
            )
        name = f"{other}{one.name}"
        if container is not None and not container.is_keyed and container.value.is_whole:
            short = container.most <= _SMALL and container.value.parts[0].number == "int"
            if short and container.value.parts[0].size == 8:
                whole = partial(_sum_of_sequence, name, container.most)
                found.append(_total(f"{prefix}{scalar}", name, whole))
        elif _is_short_array(one):
            whole = partial(_sum_of_array, name, one.storage, one.size)
            found.append(_total(f"{prefix}{scalar}", name, whole))
    return found


def _is_short_array(one: Field) -> bool:
    is_array = one.container is None and one.record is None and one.shape != ()
    return is_array and one.space == "state" and one.size <= _SMALL and one.kind == "int"


def _is_word(left: str, right: str, terms: Terms) -> Any:
    return terms[left] == terms[right]


def _total(scalar: str, name: str, whole: Callable[[Terms], Any]) -> Invariant:
    return _term(f"{scalar} is sum({name})", lambda terms: terms[scalar] == whole(terms))


def _sum_of_sequence(name: str, most: int, terms: Terms) -> Any:
    total: Any = bits(0)
    for at in range(most):
        element = z3.Select(terms[name], terms[f"{name}#start"] + at)
        total = total + z3.If(terms[f"{name}#count"] > at, element, bits(0))
    return total


def _sum_of_array(name: str, storage: Storage, size: int, terms: Terms) -> Any:
    total: Any = bits(0)
    for at in range(size):
        total = total + widened(storage, z3.Select(terms[name], bits(at)))
    return total
