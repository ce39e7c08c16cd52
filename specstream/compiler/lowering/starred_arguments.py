"""Stars in the arguments of calls, in the rewriting for Numba: ``f(*pair)``, ``zip(*rows)``."""

from __future__ import annotations

import ast
import types
from collections.abc import Sequence
from typing import Any

from specstream.compiler.facts.lengths import argument_groups
from specstream.compiler.frontend.made_nodes import load
from specstream.compiler.frontend.signatures import parameters_of_function
from specstream.compiler.language import builtin_functions, standard_library
from specstream.compiler.language.methods import CHANGING
from specstream.compiler.language.standard_library import PREFIX
from specstream.compiler.lowering.native_rewriter import Handler, NativeRewriter
from specstream.compiler.lowering.rewrite_local import as_made, spread
from specstream.declarations.records import is_record, record_fields

__all__ = ["HANDLERS", "by_columns", "name_starred"]


class _Spread(ast.expr):
    """What has a star in a call: so many values, which get a name.

    Attributes:
        least: values that a tuple may have: for those behind it has, there is None.
        columns: of emit, those that the values are for; "": of another function.
    """

    _fields = ("value", "target")

    def __init__(
        self, value: ast.expr, count: int, target: ast.Name, least: int, columns: str
    ) -> None:
        super().__init__()
        self.value = value
        self.count = count
        self.least = least
        self.columns = columns
        self.target = target


_USE_UP = builtin_functions.names_where(
    lambda one: (
        one.reads_no_element or (one.goes_through and (one.consumes or one.returns == "list"))
    )
)
"""What gives the same of a list as of a tuple, and keeps neither."""


def _is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _is_list_of_rows(node: ast.expr | None) -> bool:
    """Whether what a call ``zip(*rows)`` is given is written as a list of lists."""
    if isinstance(node, ast.ListComp):
        return isinstance(node.elt, ast.List | ast.ListComp)
    return (
        isinstance(node, ast.List)
        and bool(node.elts)
        and all(isinstance(one, ast.List | ast.ListComp) for one in node.elts)
    )


def _may_get_lists(target: ast.expr, inside: Sequence[ast.AST]) -> bool:
    """Rewriting calls for Numba: whether that of ``zip(*rows)`` may give lists, not tuples."""
    if not isinstance(target, ast.Name):
        return isinstance(target, ast.Tuple)
    allowed: set[int] = set()
    reads: list[ast.Name] = []
    for part in inside:
        for node in ast.walk(part):
            if isinstance(node, ast.Name) and node.id == target.id:
                reads.append(node)
            elif isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords:
                is_used_up = isinstance(node.func, ast.Name) and node.func.id in _USE_UP
                allowed |= {id(node.args[0])} if is_used_up else set()
            elif isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Slice):
                allowed.add(id(node.value))
            elif isinstance(node, ast.For | ast.comprehension):
                allowed.add(id(node.iter))
    return all(isinstance(one.ctx, ast.Load) and id(one) in allowed for one in reads)


def name_starred(rewriter: NativeRewriter, node: ast.Call) -> None:
    """``f(*pair)``: each value of what has the star by itself. How many there are, the program
    says, or the number of parameters that are left."""
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    called = rewriter.check.resolved.get(name)
    takes: int | None = None
    is_emit = name in rewriter.source.parameters and name in rewriter.check.locals
    if is_emit:
        takes = len(rewriter.analysis.emits.names)
    elif name in rewriter.check.locals:
        pass
    elif isinstance(called, type) and is_record(called):
        takes = len(record_fields(called))
    elif isinstance(called, types.FunctionType):
        names = parameters_of_function(called)
        takes = len(names.positional) - len(names.optional & set(names.positional))
    groups = argument_groups(node, rewriter.lengths, takes)
    if any(group.count is None for group in groups):
        rewriter.check.refuse(
            node,
            f"a star in a call of {ast.unparse(node.func)}",
            "loop over the columns with for i in range(len(rows[0]))"
            if name == "zip"
            else "write the values out, x[0], x[1]; of a list, max(xs) and min(xs)",
        )
    arguments: list[ast.expr] = []
    for group in groups:
        one, *others = group.arguments
        if not isinstance(one, ast.Starred):
            arguments.append(one)
            continue
        assert group.count is not None
        whole = ast.Tuple(group.arguments, ast.Load()) if others else one.value
        least, columns = group.count, ""
        if rewriter.lengths.of(one.value) is None and is_emit:
            schema = list(rewriter.analysis.emits)[group.first : group.first + group.count]
            columns = ", ".join(name for name, _ in schema)
            if group is groups[-1] and not node.keywords:
                while least > 0 and schema[least - 1][1].nullable:
                    least -= 1
        parts = rewriter.new_name("parts")
        spread = _Spread(whole, group.count, ast.Name(parts, ast.Store()), least, columns)
        for at in range(group.count):
            of = spread if at == 0 else load(parts)
            item = ast.Subscript(of, ast.Constant(at), ast.Load())
            arguments.append(ast.fix_missing_locations(ast.copy_location(item, node)))
    node.args = arguments


def _spread(rewriter: NativeRewriter, node: _Spread) -> Any:
    value = spread(
        rewriter,
        rewriter.visit(as_made(rewriter, node.value)),
        node.count,
        node,
        node.least,
        node.columns,
    )
    return ast.copy_location(ast.NamedExpr(node.target, value), node)


def by_columns(
    rewriter: NativeRewriter, iterable: ast.expr, target: ast.expr, inside: Sequence[ast.AST]
) -> ast.expr:
    rows = _lists_in(rewriter, iterable)
    if rows is None or not _may_get_lists(target, inside):
        return iterable
    if any(_may_change(rewriter, one) for part in inside for one in ast.walk(part)):
        return iterable  # zip looks at a row when it gets there
    name = f"{PREFIX}{standard_library.transposed.__name__}"
    rewriter.check.resolved[name] = standard_library.transposed
    made = ast.Call(load(name), [rows], [])
    return ast.fix_missing_locations(ast.copy_location(made, iterable))


def _lists_in(rewriter: NativeRewriter, iterable: ast.expr) -> ast.Name | None:
    """The local list of lists, as it is written, of which ``zip`` is given each one."""
    if not isinstance(iterable, ast.Call) or len(iterable.args) != 1 or iterable.keywords:
        return None
    (starred,) = iterable.args
    is_zip = isinstance(iterable.func, ast.Name) and (
        rewriter.check.resolved.get(iterable.func.id) is zip
    )
    if not is_zip or not isinstance(starred, ast.Starred):
        return None
    rows = starred.value
    if not isinstance(rows, ast.Name) or rows.id not in rewriter.check.locals:
        return None
    stored = [
        one.value if any(_is_name(target, rows.id) for target in one.targets) else None
        for one in ast.walk(rewriter.source.tree)
        if isinstance(one, ast.Assign)
        and any(_is_name(part, rows.id) for target in one.targets for part in ast.walk(target))
    ]
    return rows if stored and all(map(_is_list_of_rows, stored)) else None


def _may_change(rewriter: NativeRewriter, node: ast.AST) -> bool:
    """Whether a node may change a local list."""
    if isinstance(node, ast.Subscript):
        return not isinstance(node.ctx, ast.Load)
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute):
        return node.func.attr in CHANGING
    called = rewriter.check.resolved.get(getattr(node.func, "id", ""))
    return isinstance(called, types.FunctionType)


HANDLERS: dict[type[ast.AST], Handler] = {
    _Spread: _spread,
}
