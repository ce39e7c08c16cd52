"""What code reads of an event beside its columns: its time, its number, and random numbers."""

from __future__ import annotations

import ast
import types
from collections.abc import Callable, Iterator
from typing import Any

from specstream.compiler.frontend.program import Program
from specstream.definition.operator import Operator

__all__ = ["CONTEXT", "DRAWS", "all_programs", "read_by", "read_by_operator", "texts_of"]

CONTEXT = ("timestamp", "sequence")
DRAWS = ("random_bits", "random", "normal", "integer", "choice")


def all_programs(operator: Operator) -> list[Program]:
    """Of an operator, or of a pipeline's vertices, and what runs when their timers fire."""
    plan = getattr(operator, "plan", None)
    own = [operator.program] if plan is None else [one.program for one in plan.vertices.values()]
    return own + [one.on_timer for one in own if one.on_timer is not None]


def read_by_operator(operator: Operator) -> frozenset[str]:
    """The names of attributes in the code of an operator, and all that may be among them. A time
    that only says when a timer is to fire is not read: it goes along with all others."""
    found: set[str] = set()
    for program in all_programs(operator):
        trees = [tree for _, tree in program.trees()]
        nodes = [one for tree in trees for one in ast.walk(tree)]
        attributes = program.attributes
        if program.is_interpreted:
            attributes = frozenset(one.attr for one in nodes if isinstance(one, ast.Attribute))
            if not nodes or any(isinstance(one, ast.Name) and one.id == "getattr" for one in nodes):
                attributes |= {*CONTEXT, *DRAWS}
        times = {"timestamp", "at"} if program.is_on_timer else {"timestamp"}
        found |= attributes - times
        if attributes & times and (not nodes or _reads_time(trees, times)):
            found.add("timestamp")
    return frozenset(found)


def _reads_time(trees: list[ast.AST], times: set[str]) -> bool:
    """Whether a time is used for anything else than for ``timers.set(key, time + after)``."""
    todo = list(trees)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Attribute) and node.attr in times:
            return True
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            *others, at = [*node.args, None] if len(node.args) != 2 else node.args
            if node.func.attr == "set" and at is not None and not node.keywords:
                todo += [node.func.value, *others, *_beside_time(at, times)]
                continue
        todo += ast.iter_child_nodes(node)
    return False


def _beside_time(at: ast.expr, times: set[str]) -> list[ast.AST]:
    """What is added to a time, or taken off it; the whole, where it is something else."""
    if isinstance(at, ast.BinOp) and isinstance(at.op, ast.Add | ast.Sub):
        return [*_beside_time(at.left, times), at.right]
    is_time = isinstance(at, ast.Attribute) and at.attr in times and isinstance(at.value, ast.Name)
    return [] if is_time else [at]


def read_by(function: Callable[..., Any]) -> frozenset[str]:
    """The names of attributes in the code of a property, and of the functions that it calls."""
    return frozenset(name for code, _ in _codes_of(function) for name in code.co_names)


def texts_of(function: Callable[..., Any]) -> list[str]:
    """The strings that are named in a property, and in the functions that it calls."""
    found: list[Any] = []
    for code, names in _codes_of(function):
        found += code.co_consts
        found += [names.get(name) for name in code.co_names]
    nested = [part for one in found if isinstance(one, tuple | frozenset) for part in one]
    return list(dict.fromkeys(one for one in (*found, *nested) if isinstance(one, str)))


def _codes_of(function: Callable[..., Any]) -> Iterator[tuple[types.CodeType, dict[str, Any]]]:
    """The code of a function, and of the functions that it calls, with the names around it."""
    done: set[types.CodeType] = set()
    todo: list[tuple[types.CodeType, Any]] = [(function.__code__, function)]
    while todo:
        code, of = todo.pop()
        if code in done:
            continue
        done.add(code)
        closure = [one.cell_contents for one in of.__closure__ or ()]
        names = of.__globals__ | dict(zip(of.__code__.co_freevars, closure, strict=False))
        yield code, names
        called = [names.get(name) for name in (*code.co_names, *code.co_freevars)]
        todo += [(one, of) for one in code.co_consts if isinstance(one, types.CodeType)]
        todo += [(one.__code__, one) for one in called if isinstance(one, types.FunctionType)]
