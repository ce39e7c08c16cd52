"""Formulas: what a property says, with its quantifiers over the entries of fields.

A formula is read of what is to be shown (:meth:`Formula.shown`) or of what is assumed
(:meth:`Formula.assumed`). What is shown of all entries is shown of an unknown one; what is assumed
of all is assumed of every key that somebody asks about.
"""

# z3 carries no types.
# mypy: allow-untyped-calls

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import z3

from specstream.compiler.language import numbers
from specstream.declarations.state_layout import Field, Layout
from specstream.pipelines.oracle import VertexState
from specstream.verify.builtin_functions import BOTH, both, is_none
from specstream.verify.containers import Array, Dict, Set, Slots, Store, held_now
from specstream.verify.elements import key_parts, key_sort
from specstream.verify.paths import Cut, explore, is_walked, path, refuse
from specstream.verify.sequences import Sequence
from specstream.verify.step import TICK, State
from specstream.verify.values import INT, Bool, Int, Symbol, truth, wide

__all__ = ["NAMES", "Formula", "Keys", "PropertyState", "Shared", "known_truth", "of_function"]

Fresh = dict[str, list[Any]]


class Shared(dict[str, list[Any]]):
    """Unknown keys, one for each field."""


Keys = Mapping[str, Iterable[Any]]
"""Of each field, keys or words that are asked about."""


@dataclass(frozen=True, eq=False)
class Formula:
    """What a property says.

    It is a truth in expressions as well: ``all(...) == any(...)`` is a formula, and a condition is
    one that says nothing of all or any entries.

    Attributes:
        kind: "term", "and", "or", "not", "all" or "any".
        term: of kind "term".
        parts: of the others.
        field: over whose entries "all" and "any" go.
        body: of a key, whether there is such an entry, and what is said of it.
        sort: of the keys.
    """

    kind: str
    term: Any = None
    parts: tuple[Formula, ...] = ()
    field: str = ""
    body: Callable[[Any], tuple[Any, Formula]] | None = None
    sort: Any = None

    def shown(self, keys: Keys, fresh: Fresh) -> Any:
        """As a term that implies the formula, for what is to be shown.

        Args:
            keys: of each field; an entry that "any" asks for is looked for among them.
            fresh: takes the unknown keys that it is about.
        """
        return self._read(True, keys, fresh)

    def assumed(self, keys: Keys, fresh: Fresh) -> Any:
        """As a term that the formula implies, for what is assumed."""
        return self._read(False, keys, fresh)

    def __eq__(self, other: object) -> Any:
        right = _formula(other)
        if right is None:
            refuse("all, any, and or or beside a number", "compare a truth with a truth")
        opposites = Formula("not", parts=(self,)), Formula("not", parts=(right,))
        either = Formula("or", parts=(opposites[0], right))
        return Formula("and", parts=(either, Formula("or", parts=(self, opposites[1]))))

    def __ne__(self, other: object) -> Any:
        return Formula("not", parts=(self == other,))

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        if not self.is_exact or not is_walked():
            refuse("a condition that all() or any() decides", "write it with and, or")
        return path().fork(self.shown({}, {}))

    @property
    def is_exact(self) -> bool:
        """Whether both readings are the same, as nothing is said of all or any entries."""
        return self.kind not in ("all", "any") and all(one.is_exact for one in self.parts)

    def _read(self, shows: bool, keys: Keys, fresh: Fresh) -> Any:
        match self.kind:
            case "term":
                return self.term
            case "not":
                return z3.Not(self.parts[0]._read(not shows, keys, fresh))
            case "and":
                return z3.And(*(one._read(shows, keys, fresh) for one in self.parts))
            case "or":
                return z3.Or(*(one._read(shows, keys, fresh) for one in self.parts))
        assert self.body is not None
        if (self.kind == "all") == shows:
            key = self._unknown_key(fresh)
            there, said = self.body(key)
            found = said._read(shows, keys, fresh)
            return z3.Implies(there, found) if self.kind == "all" else z3.And(there, found)
        instances = []
        for key in keys.get(self.field, ()):
            if key.sort() != self.sort:
                continue
            there, said = self.body(key)
            found = said._read(shows, keys, fresh)
            is_all = self.kind == "all"
            instances.append(z3.Implies(there, found) if is_all else z3.And(there, found))
        return z3.And(*instances) if self.kind == "all" else z3.Or(*instances)

    def _unknown_key(self, fresh: Fresh) -> Any:
        """A key of which nothing is known. Formulas that are shown together may share it: whether
        one of them fails somewhere is the question."""
        keys = fresh.setdefault(self.field, [])
        if not isinstance(fresh, Shared) or not keys:
            keys.append(z3.FreshConst(self.sort, f"{self.field}#key"))
        return keys[-1]


def _formula(value: Any) -> Formula | None:
    if isinstance(value, Formula):
        return value
    if isinstance(value, bool | Bool):
        return Formula("term", truth(value))
    return None


def _needed(value: Any) -> Formula:
    found = _formula(value)
    return found if found is not None else Formula("term", truth(value))


def of_function(function: Callable[[], Any]) -> Formula | None:
    """The formula that a property's code returns, on all its paths; None: it is no bool."""
    parts = []
    for one, value in explore(lambda _: _or_false(function)):
        found = _formula(value)
        if found is None:
            return None
        if not one.guard:
            return found
        guard = Formula("term", z3.Not(z3.And(*one.guard)))
        parts.append(Formula("or", parts=(guard, found)))
    return Formula("and", parts=tuple(parts))


def _or_false(function: Callable[[], Any]) -> Any:
    """What a property returns; where it raises, it does not hold."""
    try:
        return function()
    except (ArithmeticError, LookupError, ValueError):
        return False
    except TypeError as error:
        if "NoneType" in str(error):  # Python raises it as well, of a null
            return False
        refuse(f"TypeError in a property, {error}", "write it otherwise")
    except Cut as stop:
        refuse(f"a property goes on for long: {stop}", "ask for less at once")


# ---- what properties are rewritten to ----


def _is_ours(value: Any) -> bool:
    return isinstance(value, Symbol | Formula)


def known_truth(value: Any) -> bool:
    """The truth of something known; TypeError: it is no bool."""
    if type(value).__name__ in ("bool", "bool_"):
        return bool(value)
    raise TypeError(value)


def _forks(value: Any) -> bool:
    """Whether the truth of a value is asked for: it may guard what raises without it. Nobody can in
    what is said of all entries, which is read later."""
    return isinstance(value, Symbol) and is_walked()


def _and(left: Any, right: Callable[[], Any]) -> Any:
    if not _is_ours(left) or _forks(left):
        return right() if left else left
    return Formula("and", parts=(_needed(left), _needed(right())))


def _or(left: Any, right: Callable[[], Any]) -> Any:
    if not _is_ours(left) or _forks(left):
        return left if left else right()
    return Formula("or", parts=(_needed(left), _needed(right())))


def _not(value: Any) -> Any:
    if isinstance(value, Symbol):
        return Bool(z3.Not(truth(value)))
    return Formula("not", parts=(value,)) if isinstance(value, Formula) else not value


def _if(test: Any, yes: Callable[[], Any], no: Callable[[], Any]) -> Any:
    if not _is_ours(test) or _forks(test):
        return yes() if test else no()
    left, right = yes(), no()
    if isinstance(left, bool | Bool | Formula) and isinstance(right, bool | Bool | Formula):
        of = _needed(test)
        opposite = Formula("not", parts=(of,))
        return Formula(
            "and",
            parts=(
                Formula("or", parts=(opposite, _needed(left))),
                Formula("or", parts=(of, _needed(right))),
            ),
        )
    if isinstance(test, Formula) and test.kind != "term":
        refuse("a value that all() or any() decides", "write it with and, or")
    return left if (Bool(test.term) if isinstance(test, Formula) else test) else right


def _in(value: Any, container: Any) -> Any:
    if isinstance(container, SeenField):
        container = container._container()
    if isinstance(container, Dict | Set):
        of = container.members if isinstance(container, Set) else container
        key = of.key_of(value)
        return False if key is None else Bool(of.held(key))
    if isinstance(container, tuple):
        found: Any = False
        for one in container:
            found = _or(found, lambda one=one: value == one)  # type: ignore[misc]
        return found
    return value in container


def _quantified(kind: str) -> Callable[[Any, Any, bool], Any]:
    def quantified(over: Any, body: Callable[..., Any], several: bool) -> Any:
        if isinstance(over, Entries):
            return over.quantified(kind, body)
        items = list(over)
        found: Any = kind == "all"
        for item in items:
            test, said = body(*item) if several else body(item)
            one = _implied(test, said) if kind == "all" else _and(test, said)
            found = _both(kind, found, one)
        return found

    return quantified


def _both(kind: str, left: Any, right: Any) -> Any:
    return (_and if kind == "all" else _or)(left, lambda: right)


def _implied(test: Any, said: Callable[[], Any]) -> Any:
    return _or(_not(test), said)


def _sum_of(over: Any, body: Callable[..., Any], several: bool) -> Any:
    if isinstance(over, Entries):
        return over.sum_of(body)
    total = 0
    for item in over:
        test, said = body(*item) if several else body(item)
        if test:
            total += said()
    return total


def _sum(values: Any) -> Any:
    if isinstance(values, Entries):
        return values.sum_of(lambda *items: (True, lambda: items[-1]))
    return sum(values)


def _len(values: Any) -> Any:
    if isinstance(values, Entries):
        return values.length()
    return values.length() if hasattr(type(values), "length") else len(values)


def _builtin(name: str) -> Callable[..., Any]:
    own: Any = {"min": min, "max": max, "abs": abs, "int": int, "float": float, "bool": bool}[name]
    return both(own, BOTH[numbers.ORACLE_BUILTINS[name]])


NAMES: dict[str, Any] = {
    "__v_and": _and,
    "__v_or": _or,
    "__v_not": _not,
    "__v_if": _if,
    "__v_in": _in,
    "__v_is_none": lambda value: is_none(value),
    "__v_all_of": _quantified("all"),
    "__v_any_of": _quantified("any"),
    "__v_all": lambda values: _quantified("all")(values, lambda one: (True, lambda: one), False),
    "__v_any": lambda values: _quantified("any")(values, lambda one: (True, lambda: one), False),
    "__v_sum_of": _sum_of,
    "__v_sum": _sum,
    "__v_len": _len,
    **{f"__v_{name}": _builtin(name) for name in ("min", "max", "abs", "int", "float", "bool")},
}


# ---- a state, as properties see it ----


class Wide(Int):
    """An exact integer of 128 bits: a sum."""

    __slots__ = ()

    def _with(self, other: Any) -> Any:
        if isinstance(other, Wide):
            return other.term
        if isinstance(other, Int):
            return wide(other, 128)
        if isinstance(other, int) and -(2**127) <= other < 2**127:
            return z3.BitVecVal(int(other), 128)
        return None

    def _compare(self, other: Any, compare: Callable[[Any, Any], Any]) -> Any:
        term = self._with(other)
        return NotImplemented if term is None else Bool(compare(self.term, term))

    def __eq__(self, other: object) -> Any:
        return self._compare(other, lambda a, b: a == b)

    def __ne__(self, other: object) -> Any:
        return self._compare(other, lambda a, b: a != b)

    def __lt__(self, other: Any) -> Any:
        return self._compare(other, lambda a, b: a < b)

    def __le__(self, other: Any) -> Any:
        return self._compare(other, lambda a, b: a <= b)

    def __gt__(self, other: Any) -> Any:
        return self._compare(other, lambda a, b: a > b)

    def __ge__(self, other: Any) -> Any:
        return self._compare(other, lambda a, b: a >= b)

    def _operate(self, other: Any, operate: Callable[[Any, Any], Any]) -> Any:
        term = self._with(other)
        return NotImplemented if term is None else Wide(operate(self.term, term))

    def __add__(self, other: Any) -> Any:
        return self._operate(other, lambda a, b: a + b)

    def __sub__(self, other: Any) -> Any:
        return self._operate(other, lambda a, b: a - b)

    def __rsub__(self, other: Any) -> Any:
        return self._operate(other, lambda a, b: b - a)

    def __mul__(self, other: Any) -> Any:
        refuse("a product of a sum", "compare the sum with something")

    __radd__ = __add__
    __rmul__ = __mul__
    __hash__ = Symbol.__hash__


@dataclass
class Entries:
    """All elements of an array or sequence, or entries of a dict: what a property goes through.

    Attributes:
        what: "values", "keys" or "items".
    """

    field: Field
    state: Store
    what: str
    after: int
    sort: Any = dataclasses.field(init=False)
    slots: Slots = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        of = self.field.container
        self.sort = key_sort(of.key) if of is not None and of.is_keyed else INT
        shape = of.value if of is not None else self.field.record
        if shape is None:
            shape = Array.of(self.field, self.state)._slots.shape
        self.slots = Slots(self.field.name, shape, self.state)

    def has_key(self, key: Any) -> Any:
        name, of = self.field.name, self.field.container
        if of is None:
            size = 1
            for length in self.field.dimensions:
                size *= length
            return z3.ULT(key, size)
        if of.is_keyed:
            return held_now(name, self.after, self.state, key)
        return z3.ULT(key - self.state[f"{name}#start"], self.state[f"{name}#count"])

    def items(self, key: Any) -> tuple[Any, ...]:
        of = self.field.container
        found: list[Any] = []
        if self.what in ("keys", "items"):
            assert of is not None
            parts = key_parts(of.key, key)
            found.append(tuple(parts) if of.key.is_tuple else parts[0])
        if self.what in ("values", "items"):
            found.append(self.slots.value_at(key))
        return tuple(found)

    def quantified(self, kind: str, body: Callable[..., Any]) -> Formula:
        def of_key(key: Any) -> tuple[Any, Formula]:
            def of_entry() -> Any:
                test, said = body(*self.items(key))
                return _implied(test, said) if kind == "all" else _and(test, said)

            found = of_function(of_entry)
            if found is None:
                raise TypeError(f"{kind}() of what is no bool: compare with something")
            return self.has_key(key), found

        if len(self.field.dimensions) > 1:
            refuse(f"{kind}() over an array of several axes", "give the array one axis")

        return Formula(kind, field=self.field.name, body=of_key, sort=self.sort)

    def sum_of(self, body: Callable[..., Any]) -> Any:
        key = z3.FreshConst(self.sort, "key")
        test, said = body(*self.items(key))
        value = said() if test is True else None
        own = self.slots.value_at(key)
        names = self.slots.shape.names
        for number, name in enumerate(self.slots.parts):
            one = own
            if not self.slots.shape.is_whole:
                one = getattr(own, names[number]) if names else own[number]
            is_own = isinstance(value, Int) and one.term.eq(value.term)
            if is_own and f"{name}#sum" in self.state:
                return Wide(self.state[f"{name}#sum"])
        return refuse(
            "a sum of something else than a field's own integers", "sum(x for x in state.field)"
        )

    def length(self) -> Any:
        of = self.field.container
        if of is None:
            return self.field.dimensions[0]
        return Int(self.state[f"{self.field.name}#count"])


class PropertyState:
    """A state as properties see it: nothing in it raises, and fields can be gone through."""

    def __init__(self, layout: Layout, terms: dict[str, Any], now: Any) -> None:
        store = Store(terms)
        store.now = now
        vars(self).update(_layout=layout, _store=store)

    def __getattr__(self, name: str) -> Any:
        layout, store = vars(self)["_layout"], vars(self)["_store"]
        one = layout.field(name)
        if one is None and layout.has_part(name):
            return VertexState(self, name)
        if one is None:
            raise AttributeError(name)
        return field_seen(one, store)


def field_seen(one: Field, store: Store) -> Any:
    """A field of a state as a property sees it."""
    of = one.container
    if of is None and one.dimensions == ():
        return getattr(State(Layout("", (one,)), store, store), one.name)
    if of is not None and of.kind in ("timers", "priority_queue"):
        refuse(f"{of.kind} in a property (state.{one.name})", "ask for another field")
    return SeenField(one, store, 0 if of is None else of.expires_after(TICK))


class SeenField(Entries):
    """An array or container: it can be gone through, and asked for elements."""

    def __init__(self, one: Field, store: Store, after: int) -> None:
        what = "keys" if one.container is not None and one.container.is_keyed else "values"
        super().__init__(one, store, what, after)

    def values(self) -> Entries:
        return Entries(self.field, self.state, "values", self.after)

    def keys(self) -> Entries:
        return Entries(self.field, self.state, "keys", self.after)

    def items(self, key: Any = None) -> Any:
        if key is None:
            return Entries(self.field, self.state, "items", self.after)
        return super().items(key)

    def _container(self) -> Any:
        if self.field.container is None:
            return Array.of(self.field, self.state)
        if not self.field.container.is_keyed:
            # A short one has a path for each length, which is known on it: not for all paths.
            return Sequence(self.field, self.state.copied())
        made = Dict(self.field, self.state, self.after)
        return Set(made) if self.field.container.kind == "set" else made

    def __getitem__(self, index: Any) -> Any:
        return self._container()[index]

    def get(self, key: Any, default: Any = None) -> Any:
        return self._container().get(key, default)
