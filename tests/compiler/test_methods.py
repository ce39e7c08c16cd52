"""The records of methods: they say what Python's own and compiled ones do, and nothing works
without its record."""

from __future__ import annotations

import collections
import copy
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba.core import types
from numba.core.errors import TypingError
from numba.core.registry import cpu_target

import specstream as ss
from specstream.compiler.backend.local_types import DictType, ListType, SetType
from specstream.compiler.backend.numba_types import EventType, RunType
from specstream.compiler.language import methods
from specstream.compiler.language.methods import METHODS, Method, methods_of
from specstream.compiler.library import draws
from specstream.compiler.library.array_expressions import array_type
from specstream.compiler.library.frozen_types import (
    FrozenDictType,
    FrozenListType,
    FrozenSetType,
)
from specstream.compiler.library.local_table_methods import DictView
from specstream.compiler.library.method_dispatch import FUNCTIONS
from specstream.declarations.schema import Schema

# Of each: one with elements, arguments that every method takes, and keyword arguments of one.
SAMPLES: dict[str, Callable[[], Any]] = {
    "list": lambda: [3, 1, 2],
    "deque": lambda: collections.deque([3, 1, 2]),
    "dict": lambda: {3: 30, 1: 10, 2: 20},
    "set": lambda: {3, 1, 2},
}
ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "index": (1, 0, 3),
    "insert": (0, 9),
    "pop": (1, 9),
    "get": (1, 9),
    "setdefault": (7, 9),
    "rotate": (1,),
    "remove": (1,),
    "discard": (1,),
    "count": (1,),
    "add": (9,),
    "append": (9,),
    "appendleft": (9,),
    "fill": (9.0,),
}
WITHOUT = {"deque": set[str](), "dict": {"fromkeys"}, "list": set[str](), "set": set[str]()}
PYTHONS = [one for one in METHODS.values() if one.of in SAMPLES]


def shown(one: Method) -> str:
    return f"{one.of}.{one.name}"


def arguments_of(one: Method, count: int) -> list[Any]:
    if one.takes_iterables:
        return [{8: 80} if one.of == "dict" else [1, 8, 9]] * count
    return list(itertools.islice(itertools.chain(ARGUMENTS.get(one.name, ()), [1] * 9), count))


@pytest.mark.parametrize("kind", SAMPLES)
def test_there_is_a_record_for_each_method_of_pythons_own(kind: str) -> None:
    public = {name for name in dir(SAMPLES[kind]()) if not name.startswith("_")}
    attributes = {"maxlen"}
    assert public - attributes - WITHOUT[kind] == set(methods_of(kind))


@pytest.mark.parametrize("one", PYTHONS, ids=shown)
def test_a_record_says_what_pythons_own_method_does(one: Method) -> None:
    changed, resized = False, False
    for count in range(5):
        value = SAMPLES[one.of]()
        given = arguments_of(one, count)
        before = copy.copy(value)
        call = getattr(value, one.name)
        if not one.accepts(count):
            with pytest.raises(TypeError):
                call(*given)
            continue
        result = call(*given)
        assert result is None or one.name in ("copy",) or result is not value
        changed |= value != before or list(value) != list(before)
        resized |= len(value) != len(before)
    assert changed == one.changes
    # Turning a deque puts elements in and takes them out.
    assert resized == one.resizes or shown(one) == "deque.rotate"


@pytest.mark.parametrize("one", PYTHONS, ids=shown)
def test_what_is_kept_is_found_again(one: Method) -> None:
    if one.keeps is None:
        return
    value = SAMPLES[one.of]()
    given = arguments_of(one, one.most or one.least)
    given[one.keeps] = 77
    getattr(value, one.name)(*given)
    assert 77 in (value.values() if one.of == "dict" else value)


def raised(call: Callable[..., Any], given: list[Any]) -> set[str]:
    try:
        call(*given)
    except Exception as error:
        return {type(error).__name__}
    return set()


@pytest.mark.parametrize("one", PYTHONS, ids=shown)
def test_a_record_says_what_pythons_own_method_raises(one: Method) -> None:
    if one.name == "sort":  # Python sorts NaN somehow
        assert [name for name, _ in one.raises] == ["ValueError"]
        return
    found: set[str] = set()
    full = collections.deque([3, 1, 2], 3) if one.of == "deque" else SAMPLES[one.of]()
    empty = type(full)()
    for value in (SAMPLES[one.of](), full, empty):
        given = arguments_of(one, one.least)
        if one.name not in ("extend", "extendleft"):  # which change what is looked at next
            found |= raised(getattr(value, one.name), given)
            found |= raised(getattr(value, one.name), [99, *given[1:]] if one.has_key else given)
    assert found == {name for name, _ in one.raises}


# ---- what compiled ones give ----

TYPES: dict[str, Any] = {
    "list": ListType(types.float64),
    "dict": DictType(types.int64, types.float64),
    "set": SetType(types.int64),
    "array": array_type("float64", 1, "plain"),
    "event": EventType(Schema.of({"x": int}, "event")),
}
ELEMENTS = {"list": types.float64, "set": types.int64, "array": types.float64}
LOCAL = [one for one in METHODS.values() if one.of in ("list", "dict", "set")]
OTHERS = [
    one
    for one in METHODS.values()
    if (one.of == "array" and one.name not in ("copy", "tolist"))
    or (one.of == "event" and one.name in draws.METHODS)
]


def typed(one: Method, owner: types.Type | None = None) -> Any:
    """The types that a method of a container of ints has; the rewriting adds some arguments."""
    context = cpu_target.typing_context
    context.refresh()
    of = TYPES[one.of]
    element = ELEMENTS.get(one.of)
    kinds = {"element": element, "iterable": of, "*iterables": of, "[default]": types.float64}
    optional = 2 if one.name == "setdefault" else one.least
    given = [kinds.get(parameter, types.int64) for parameter in one.parameters[:optional]]
    given += [of] * (one.most is None)
    if one.name == "sort":
        given = [types.boolean]
    if one.name == "update":
        given = [RunType("plain"), of]
    function = context.resolve_value_type(FUNCTIONS[one.name])
    return context.resolve_function_type(function, (owner or of, *given), {})


@pytest.mark.parametrize("one", [*LOCAL, *OTHERS], ids=shown)
def test_a_record_says_what_the_compiled_method_gives(one: Method) -> None:
    table, of = TYPES["dict"], TYPES[one.of]
    words = {
        "None": types.none,
        "int": types.int64,
        "float": types.float64,
        "bool": types.boolean,
        "element": ELEMENTS.get(one.of),
        "number": types.float64,
        "value": types.float64,
        "key and value": types.Tuple((types.int64, types.float64)),
        **{name: DictView(table, name) for name in ("keys", "values", "pairs")},
        one.of: of,
    }
    given = typed(one).return_type
    if one.returns == "value, default or None":
        assert given == types.Optional(types.float64)
    elif one.returns == "value or default":
        assert given == types.float64
    else:
        assert given == words[one.returns]


# ---- nothing works without its record ----


@pytest.mark.parametrize("one", LOCAL, ids=shown)
def test_a_method_without_its_record_is_none(one: Method, monkeypatch: pytest.MonkeyPatch) -> None:
    assert typed(one) is not None
    monkeypatch.delitem(methods.METHODS, (one.of, one.name))
    with pytest.raises(TypingError, match=f"a {one.of} has no method '{one.name}'"):
        typed(one)


@pytest.mark.parametrize("one", [one for one in LOCAL if not one.changes], ids=shown)
def test_containers_of_a_module_have_the_methods_that_change_nothing(one: Method) -> None:
    parts = TYPES[one.of].parts
    frozen = {"list": FrozenListType, "dict": FrozenDictType, "set": FrozenSetType}[one.of](*parts)
    assert typed(one, frozen).args[0] == frozen


class Kept(ss.State):
    values = ss.list(int)
    last = ss.deque(int, 8)
    by_name = ss.dict(int, int)
    seen = ss.set(int)
    least = ss.priority_queue(int)
    cells = ss.array(float, 4)


def clears_a_list(state: Any, event: Any, emit: Any) -> None:
    state.values.clear()


def clears_a_deque(state: Any, event: Any, emit: Any) -> None:
    state.last.clear()


def clears_a_dict(state: Any, event: Any, emit: Any) -> None:
    state.by_name.clear()


def clears_a_set(state: Any, event: Any, emit: Any) -> None:
    state.seen.clear()


def clears_a_queue(state: Any, event: Any, emit: Any) -> None:
    state.least.clear()


def fills_an_array(state: Any, event: Any, emit: Any) -> None:
    state.cells.fill(0.0)


CALLS: dict[str, Callable[..., None]] = {
    "list": clears_a_list,
    "deque": clears_a_deque,
    "dict": clears_a_dict,
    "set": clears_a_set,
    "priority_queue": clears_a_queue,
    "array": fills_an_array,
}


@pytest.mark.parametrize("kind", CALLS)
def test_a_method_of_the_state_without_its_record_is_none(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "fill" if kind == "array" else "clear"
    monkeypatch.delitem(methods.METHODS, (kind, name))
    operator = ss.operator(state=Kept, event={"x": int}, emits={})(CALLS[kind])
    with pytest.raises(ss.CompileError, match=f"has no method '{name}'"):
        ss.Engine(operator, threads=1)


@pytest.mark.parametrize("one", [one for one in METHODS.values() if one.of == "array"], ids=shown)
def test_numpy_has_the_methods_of_arrays(one: Method) -> None:
    values = np.array([3.0, 1.0, 2.0])
    before = values.copy()
    getattr(values, one.name)(*ARGUMENTS.get(one.name, ()))
    assert (values != before).any() == one.changes
