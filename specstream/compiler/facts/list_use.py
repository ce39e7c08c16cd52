"""Use of lists that Python makes of an event, as the text has it: their kinds, who changes one.

A type says what a list holds; whether it is a list, a set, a tuple or something that can be gone
through once is told here, by how the expression is written. And as a list is an object, a name is
as good as the expression that it was given only if nobody changes it.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

from specstream.compiler.facts import value_types as of
from specstream.compiler.facts.value_types import Type
from specstream.compiler.frontend.scopes import own_name
from specstream.compiler.language import builtin_functions
from specstream.compiler.language.methods import CHANGING, names_where
from specstream.declarations.derived import Part

__all__ = [
    "changed_names",
    "changes",
    "gives_back",
    "is_list",
    "items_of",
    "kind_of",
    "list_part",
    "loop_items_of",
]

Kind = Literal["list", "set", "tuple", "iterator"]

_KEEPING = names_where(lambda one: one.keeps is not None, ("list", "deque", "dict", "set"))
_VIEWS = frozenset({"items", "keys", "values"})
# What raises nothing on the way, once it is made.
_READY = builtin_functions.READY


def items_of(element: Type) -> tuple[Type, ...] | None:
    """A fact of lists that Python makes of an event: an element's items; None: no column."""
    if of.is_scalar(element):
        return (element,)
    if element.name == "tuple" and element.of and all(map(of.is_scalar, element.of)):
        return element.of
    return None


def loop_items_of(element: Type, apart: bool) -> tuple[Type, ...] | None:
    """A fact of lists that a loop goes through: an element's items; None: there can be no loop.

    Besides those that a column holds, named tuples and what may be None: of these Python makes what
    the loop reads.

    Args:
        element: what the loop gives.
        apart: whether it takes it apart, ``for a, b in ...``.
    """
    items = items_of(element)
    if items is None and apart and of.is_record(element):
        items = element.of
    if items is None:
        items = element.of if element.name == "tuple" else (element,)
    fits = (of.is_record(one) or of.is_scalar(of.required(one)) for one in items)
    return items if items and all(fits) else None


def is_list(given: Type) -> bool:
    """Whether a column can hold it, if it is a list."""
    return given.name == "list" and items_of(of.element(given)) is not None


def list_part(given: Type) -> Part:
    """A fact of lists that Python makes of an event: which part of a column holds one."""
    element = of.element(given)
    items: list[Any] = [one.name for one in items_of(element) or ()]
    return Part("list", items=tuple(items), is_tuple=element.name == "tuple")


def kind_of(node: ast.expr, value_of: Callable[[str], ast.expr | None]) -> Kind:
    """What a value of a list's type really is, as written: a list, set, tuple or iterator.

    Args:
        node: the expression.
        value_of: what a local name was given.
    """
    if isinstance(node, ast.Name):
        value = value_of(node.id)
        return "list" if value is None else kind_of(value, value_of)
    if isinstance(node, ast.Subscript | ast.NamedExpr):
        return kind_of(node.value, value_of)
    if isinstance(node, ast.BinOp):
        return kind_of(node.left, value_of)
    if isinstance(node, ast.IfExp):
        return kind_of(node.body, value_of)
    if isinstance(node, ast.BoolOp):
        return kind_of(node.values[0], value_of)
    if isinstance(node, ast.Set | ast.SetComp):
        return "set"
    if isinstance(node, ast.GeneratorExp):
        return "iterator"
    if isinstance(node, ast.Call):
        return _made_by(node)
    return "list"


def _made_by(node: ast.Call) -> Kind:
    if isinstance(node.func, ast.Attribute):
        is_iterator = node.func.attr in _VIEWS or node.func.attr == "finditer"
        return "iterator" if is_iterator else "list"
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    kinds: dict[str, Kind] = {"set": "set", "frozenset": "set", "tuple": "tuple"}
    kinds |= dict.fromkeys(("map", "filter", "iter", *_READY), "iterator")
    return kinds.get(name, "list")


def is_ready(node: ast.expr, kind: Kind) -> bool:
    """Whether a use that goes through a list or iterator raises nothing, as it is written.

    It has to be the same each time as well.
    """
    if kind != "iterator":
        return kind != "set"
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute):
        return node.func.attr in _VIEWS
    if not isinstance(node.func, ast.Name) or node.func.id not in _READY:
        return False
    return all(is_ready(one, kind_of(one, lambda _: None)) for one in node.args)


# ---- who changes one ----


def changed_names(
    tree: ast.AST,
    is_changed_by: Callable[[ast.Call, ast.expr], bool],
    is_given_by: Callable[[ast.Call, ast.expr], bool] = lambda call, argument: False,
) -> frozenset[str]:
    """Names whose lists may be changed, or are known to somebody else by another name.

    Args:
        tree: a function.
        is_changed_by: whether a call of a function changes one of its arguments.
        is_given_by: whether what a call gives may be one of its arguments.

    One function: the questions inside are about the same few sets, which they fill.
    """
    above = {id(part): node for node in ast.walk(tree) for part in ast.iter_child_nodes(node)}
    changed: set[str] = set()
    aliases: list[tuple[str, str]] = []

    def is_read(node: ast.AST) -> bool:
        """Whether what is done with a value leaves it as it is."""
        outer = above.get(id(node))
        match outer:
            case ast.Subscript():
                return isinstance(outer.ctx, ast.Load)
            case ast.Attribute():
                call = above.get(id(outer))
                is_method = isinstance(call, ast.Call) and call.func is outer
                return isinstance(outer.ctx, ast.Load) and not (
                    is_method and outer.attr in CHANGING
                )
            case ast.For() | ast.comprehension():
                return outer.iter is node
            case ast.If() | ast.While() | ast.Assert():
                return True
            case ast.Compare() | ast.BinOp() | ast.FormattedValue() | ast.Starred() | ast.Return():
                return True
            case ast.UnaryOp() | ast.Expr():
                return True
            case ast.BoolOp() | ast.NamedExpr():
                return is_read(outer)
            case ast.IfExp():
                return outer.test is node or is_read(outer)
            case ast.Tuple():
                return isinstance(above.get(id(outer)), ast.Return | ast.Compare)
            case ast.keyword():
                call = above.get(id(outer))
                return isinstance(call, ast.Call) and is_read_by(call, outer.value)
            case ast.Call():
                return is_read_by(outer, node)
            case ast.Match():
                return not any(
                    isinstance(case.pattern, ast.MatchAs) and case.pattern.name
                    for case in outer.cases
                )
            case ast.Assign():
                return all(
                    not isinstance(one, ast.Subscript | ast.Attribute) for one in outer.targets
                )
            case ast.AnnAssign():
                return isinstance(outer.target, ast.Name)
        return False

    def is_read_by(call: ast.Call, argument: Any) -> bool:
        return not _keeps(call, argument) and (not is_given_by(call, argument) or is_read(call))

    def _keeps(call: ast.Call, argument: Any) -> bool:
        if isinstance(call.func, ast.Attribute):
            return call.func.attr in _KEEPING
        name = call.func.id if isinstance(call.func, ast.Name) else ""
        return not hasattr(builtins, name) and is_changed_by(call, argument)

    for node in ast.walk(tree):
        if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load):
            continue
        if not is_read(node):
            changed.add(node.id)
        inner: ast.expr = node
        outer = above.get(id(node))
        while isinstance(outer, ast.BoolOp | ast.IfExp | ast.NamedExpr | ast.keyword) or (
            isinstance(outer, ast.Call) and is_given_by(outer, inner)
        ):
            if isinstance(outer, ast.NamedExpr):
                aliases.append((outer.target.id, node.id))
            inner = inner if isinstance(outer, ast.keyword) else outer
            outer = above.get(id(outer))
        if isinstance(outer, ast.Assign):
            aliases += [(one.id, node.id) for one in outer.targets if isinstance(one, ast.Name)]
        if isinstance(outer, ast.AnnAssign) and isinstance(outer.target, ast.Name):
            aliases.append((outer.target.id, node.id))
    for assigned in ast.walk(tree):  # a = b = ...
        if isinstance(assigned, ast.Assign) and len(assigned.targets) > 1:
            names = [one.id for one in assigned.targets if isinstance(one, ast.Name)]
            aliases += [(one, other) for one in names for other in names]
    while True:
        more = {name for alias, name in aliases if alias in changed} - changed
        more |= {alias for alias, name in aliases if name in changed} - changed
        if not more:
            return frozenset(changed)
        changed |= more


def changes(
    function: ast.AST, parameters: Sequence[str], call: ast.Call, argument: ast.expr
) -> bool:
    """Whether a function may change a list that a call gives it, or tell somebody of it."""
    names = _parameters_given(parameters, call, argument)
    return bool(names & changed_names(function, lambda call, argument: True))


def gives_back(
    function: ast.FunctionDef | ast.Lambda,
    parameters: Sequence[str],
    call: ast.Call,
    argument: ast.expr,
) -> bool:
    """Whether what a call gives may be a list among its arguments, or have it in it."""
    given: dict[str, set[str]] = {}
    returned = set(_whole_names(function.body)) if isinstance(function, ast.Lambda) else set()
    for node in ast.walk(function):
        if isinstance(node, ast.Return) and node.value is not None:
            returned |= set(_whole_names(node.value))
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr) and node.value:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                for name in _whole_names(target):
                    given.setdefault(name, set()).update(_whole_names(node.value))
    waiting = list(returned)
    while waiting:
        more = given.get(waiting.pop(), set()) - returned
        returned |= more
        waiting += more
    return bool(returned & _parameters_given(parameters, call, argument))


def _parameters_given(
    parameters: Sequence[str], call: ast.Call, argument: ast.expr
) -> frozenset[str]:
    """The parameters to which a call gives a list that it may change or give back."""
    given = dict(zip(parameters, call.args, strict=False))
    by_name = {one.arg: one.value for one in call.keywords}
    given |= {name: by_name[own_name(name)] for name in parameters if own_name(name) in by_name}
    return frozenset(name for name, value in given.items() if value is argument)


def _whole_names(node: ast.expr) -> Iterator[str]:
    """The names that an expression gives as they are, or puts into what it gives."""
    match node:
        case ast.Name():
            yield node.id
        case ast.BoolOp():
            for one in node.values:
                yield from _whole_names(one)
        case ast.IfExp():
            yield from _whole_names(node.body)
            yield from _whole_names(node.orelse)
        case ast.Tuple() | ast.List():
            for one in node.elts:
                yield from _whole_names(one)
        case ast.NamedExpr() | ast.Starred():
            yield from _whole_names(node.value)
        case ast.Call(func=ast.Name(id=name)) if not hasattr(builtins, name):
            for one in [*node.args, *(keyword.value for keyword in node.keywords)]:
                yield from _whole_names(one)
