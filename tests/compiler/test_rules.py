"""Of the rules of an operation at most one is about given types: their order decides nothing."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from numba.core import types
from numba.core.errors import TypingError
from numba.core.registry import cpu_target
from numba.core.typing.templates import builtin_registry, signature

import specstream as ss
from specstream.compiler import entry_points as _entries  # which imports all rules
from specstream.compiler.backend.local_types import DictType, ListType, SetType
from specstream.compiler.backend.none_types import NullableType
from specstream.compiler.backend.numba_types import StateType, shape_type
from specstream.compiler.backend.overloads import Core
from specstream.compiler.backend.scalar_functions import Native
from specstream.compiler.language.text import TEXT
from specstream.compiler.library.array_expressions import array_type
from specstream.compiler.library.local_table_methods import DictView
from specstream.compiler.library.state_fields import CONTAINER_TYPES

assert _entries


class Pair(ss.Record):
    left: int
    right: float


class Kept(ss.State):
    a_list = ss.list(int)
    a_deque = ss.deque(int, 4)
    a_dict = ss.dict(int, int)
    a_set = ss.set(int)
    a_queue = ss.priority_queue(int)
    records = ss.dict(int, Pair)


@ss.operator(state=Kept, event={"x": int}, emits={})
def keeps(state: Any, event: Any, emit: Any) -> None:
    state.a_list.append(event.x)


def kinds() -> dict[str, types.Type]:
    """A type of each kind that a value of an operator can have."""
    state = StateType(keeps.layout, "plain", keeps.program)
    containers = [one for one in keeps.layout.fields if one.container is not None]
    records = keeps.layout.field("records")
    assert records is not None
    assert records.container is not None
    ints, table = ListType(types.int64), DictType(types.int64, types.int64)
    return {
        "int": types.int64,
        "uint": types.uint64,
        "float": types.float64,
        "bool": types.boolean,
        "str": TEXT,
        "None": types.none,
        "a literal": types.literal(3),
        "int or None": types.Optional(types.int64),
        "a nullable column": NullableType(types.int64),
        "a list or None": types.Optional(ints),
        "list": ints,
        "list of float": ListType(types.float64),
        "dict": table,
        "set": SetType(types.int64),
        "tuple": types.UniTuple(types.int64, 2),
        "tuple of several": types.Tuple((types.int64, types.float64)),
        "empty tuple": types.Tuple(()),
        "array": array_type("float64", 1, "plain"),
        "record": shape_type(records.container.value, "plain"),
        "keys": DictView(table, "keys"),
        "slice": types.slice2_type,
        **{
            f"{one.name} of the state": CONTAINER_TYPES[one.container.kind](state, one)
            for one in containers
            if one.container is not None
        },
    }


def operations() -> Iterator[Native | Core]:
    cpu_target.typing_context.refresh()
    for value, _ in builtin_registry.globals:
        if isinstance(value, Native | Core) and len(value.rules) > 1:
            yield value


OPERATIONS = list(operations())


def is_about(rule: Any, args: list[types.Type]) -> bool:
    """Whether a rule is about arguments: it has a meaning for them, or refuses them."""
    try:
        return rule(cpu_target.typing_context, args) is not None
    except (TypingError, KeyError):  # the latter where it calls what is not typed here
        return True
    except (AssertionError, IndexError, ValueError):
        return False  # of another number of arguments, which the rewriting never gives


@pytest.fixture(autouse=True)
def untyped(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is compiled along is not: that takes minutes, and says nothing of whose rule it is."""

    def get_call_type(self: Any, context: Any, args: Any, kws: Any) -> Any:
        return signature(types.none, *args)

    monkeypatch.setattr(types.Dispatcher, "get_call_type", get_call_type)


def test_there_are_operations_with_several_rules() -> None:
    names = {one.name for one in OPERATIONS}
    assert {"eq", "add", "mul", "bool_", "method_pop", "np_sum"} <= names


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda one: str(one.name))
def test_at_most_one_rule_is_about_given_types(operation: Native | Core) -> None:
    of_each = kinds()
    found = []
    for count in (1, 2):
        for names in itertools.product(of_each, repeat=count):
            args = [of_each[name] for name in names]
            about = [rule for rule in operation.rules if is_about(rule, args)]
            if len(about) > 1:
                found.append((names, [getattr(rule, "__qualname__", rule) for rule in about]))
    assert not found, found[:8]
