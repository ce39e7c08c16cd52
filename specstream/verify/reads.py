"""What code reads of an event beside its columns: its time, its number, and random numbers."""

from __future__ import annotations

import ast
import types
from collections.abc import Callable
from typing import Any

from specstream.compiler.frontend.program import Program
from specstream.definition.operator import Operator

__all__ = ["CONTEXT", "DRAWS", "all_programs", "read_by", "read_by_operator"]

CONTEXT = ("timestamp", "sequence")
DRAWS = ("random_bits", "random", "normal", "integer", "choice")


def all_programs(operator: Operator) -> list[Program]:
    """Of an operator, or of a pipeline's vertices, and what runs when their timers fire."""
    plan = getattr(operator, "plan", None)
    own = [operator.program] if plan is None else [one.program for one in plan.vertices.values()]
    return own + [one.on_timer for one in own if one.on_timer is not None]


def read_by_operator(operator: Operator) -> frozenset[str]:
    """The names of attributes in the code of an operator, and all that may be among them."""
    found: set[str] = set()
    for program in all_programs(operator):
        if not program.is_interpreted:
            found |= program.attributes
            continue
        nodes = [one for _, tree in program.trees() for one in ast.walk(tree)]
        found |= {one.attr for one in nodes if isinstance(one, ast.Attribute)}
        if not nodes or any(isinstance(one, ast.Name) and one.id == "getattr" for one in nodes):
            found |= {*CONTEXT, *DRAWS}
    return frozenset(found)


def read_by(function: Callable[..., Any]) -> frozenset[str]:
    """The names of attributes in the code of a property, and of the functions that it calls."""
    found: set[str] = set()
    done: set[types.CodeType] = set()
    todo = [function.__code__]
    while todo:
        code = todo.pop()
        if code in done:
            continue
        done.add(code)
        found |= set(code.co_names)
        called = [function.__globals__.get(name) for name in code.co_names]
        called += [one.cell_contents for one in function.__closure__ or ()]
        todo += [one for one in code.co_consts if isinstance(one, types.CodeType)]
        todo += [one.__code__ for one in called if isinstance(one, types.FunctionType)]
    return frozenset(found)
