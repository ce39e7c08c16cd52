"""Sets in what Python computes for an operator: they iterate in the order of insertion, too.

CPython has the strings of a set in another order in every process. A staged expression that goes
through a set would give another answer after each restart, and not that of the same set in compiled
code. So the displays, comprehensions and calls that make sets make ordered ones, in the staged
expressions and in the user's functions that these call. Classes, and functions of a library, are
left alone.
"""

from __future__ import annotations

import ast
import builtins
import dis
from collections.abc import Callable, Iterator
from types import CellType, CodeType, FunctionType
from typing import Any

from specstream.compiler.facts.binding_time_calls import is_of_a_library
from specstream.compiler.facts.name_bindings import look_up
from specstream.compiler.frontend.signatures import leave_out_computed
from specstream.compiler.language.definitions import definition_of
from specstream.declarations.ordered_set import OrderedFrozenSet, OrderedSet

__all__ = ["MAKERS", "in_order", "with_ordered_sets"]


def _class_of(value: object) -> type:
    """``type(x)``: nobody is to see what makes the order."""
    shown: dict[type, type] = {OrderedSet: set, OrderedFrozenSet: frozenset}
    return shown.get(type(value), type(value))


MAKERS: dict[str, Any] = {
    "__ss_set": OrderedSet,
    "__ss_frozenset": OrderedFrozenSet,
    "__ss_class_of": _class_of,
}
"""What the names in rewritten code stand for."""

_CLASSES = {"set": "__ss_set", "frozenset": "__ss_frozenset"}
_VIEWS = ("keys", "items")
_OF_SETS = (ast.BitOr, ast.BitAnd, ast.BitXor, ast.Sub)


def in_order(tree: Any, is_builtin: Callable[[str], bool]) -> Any:
    """The tree with ordered sets in the place of others; it may be changed itself.

    Args:
        tree: an expression or a function.
        is_builtin: whether a name stands for what is built in.

    >>> tree = ast.parse("len({y for y in x}), list(set(x)), {1, *x}, 1 in {1, 2}", mode="eval")
    >>> print(ast.unparse(in_order(tree, lambda name: True)))
    (len({y for y in x}), list(__ss_set(x)), __ss_set([1, *x]), 1 in {1, 2})
    """
    return _InOrder(is_builtin).visit(tree)


class _InOrder(ast.NodeTransformer):
    def __init__(self, is_builtin: Callable[[str], bool]) -> None:
        self.is_builtin = is_builtin

    def visit_Set(self, node: ast.Set) -> ast.expr:
        self.generic_visit(node)
        return _made("__ss_set", ast.List(node.elts, ast.Load()), node)

    def visit_SetComp(self, node: ast.SetComp) -> ast.expr:
        self.generic_visit(node)
        return _made("__ss_set", ast.ListComp(node.elt, node.generators), node)

    def visit_Name(self, node: ast.Name) -> ast.expr:
        made = _CLASSES.get(node.id) if isinstance(node.ctx, ast.Load) else None
        is_class = made is not None and self.is_builtin(node.id)
        return ast.copy_location(ast.Name(made, ast.Load()), node) if made and is_class else node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        called = node.func.id if isinstance(node.func, ast.Name) else ""
        if called in ("isinstance", "issubclass"):
            node.args[:1] = map(self.visit, node.args[:1])
        elif called in ("len", "sorted") and len(node.args) == 1 and not node.keywords:
            node.args[0] = self.unordered(node.args[0])
        else:
            self.generic_visit(node)
        if called == "type" and len(node.args) == 1 and self.is_builtin("type"):
            node.func = ast.copy_location(ast.Name("__ss_class_of", ast.Load()), node.func)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        node.left = self.compared(node.left)
        node.comparators = [
            self.unordered(part) if isinstance(op, ast.In | ast.NotIn) else self.compared(part)
            for op, part in zip(node.ops, node.comparators, strict=True)
        ]
        return node

    def compared(self, node: ast.expr) -> ast.expr:
        # ``type(x) is set`` asks for the class.
        is_class = isinstance(node, ast.Name) and node.id in _CLASSES
        visited: ast.expr = node if is_class else self.visit(node)
        return visited

    def unordered(self, node: ast.expr) -> ast.expr:
        """An expression of whose set nobody sees the order."""
        if isinstance(node, ast.Set | ast.SetComp):
            return self.generic_visit(node)  # type: ignore[return-value]
        match node:
            case ast.Tuple():  # of classes, perhaps
                node.elts = list(map(self.compared, node.elts))
                return node
            case ast.Call(func=ast.Name(id="__ss_own"), args=[inner]):
                node.args = [self.unordered(inner)]
                return node
            case ast.Call(func=ast.Name(id="set" | "frozenset")):
                node.args = list(map(self.visit, node.args))
                return node
        visited: ast.expr = self.visit(node)
        return visited

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.op, _OF_SETS):
            node.left, node.right = _view_as_set(node.left), _view_as_set(node.right)
        return node

    def visit_MatchClass(self, node: ast.MatchClass) -> ast.pattern:
        node.patterns = list(map(self.visit, node.patterns))
        node.kwd_patterns = list(map(self.visit, node.kwd_patterns))
        return node

    def visit_arg(self, node: ast.arg) -> ast.arg:
        return node  # its annotation is no code

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        node.value = node.value and self.visit(node.value)
        return node


def _made(name: str, given: ast.expr, at: ast.expr) -> ast.expr:
    ast.copy_location(given, at)
    function = ast.copy_location(ast.Name(name, ast.Load()), at)
    return ast.copy_location(ast.Call(function, [given], []), at)


def _view_as_set(node: ast.expr) -> ast.expr:
    """A dict's view as an ordered set: what an operator of views makes has no order."""
    is_view = (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in _VIEWS
        and not node.args
    )
    return _made("__ss_set", node, node) if is_view else node


def with_ordered_sets(function: Callable[..., Any]) -> Callable[..., Any]:
    """A user's function with ordered sets, or the function itself where it has no sets, or where
    its source cannot be read."""
    return _Copies().of(function) if isinstance(function, FunctionType) else function


class _Copies:
    """Functions and their copies; those that call each other are copied together."""

    def __init__(self) -> None:
        self.cells: dict[FunctionType, CellType] = {}

    def of(self, function: FunctionType) -> FunctionType:
        if not _needs(function, set()):
            return function
        if function not in self.cells:
            self.cells[function] = CellType(function)
            self.cells[function].cell_contents = self.copied(function)
        found: FunctionType = self.cells[function].cell_contents
        return found

    def copied(self, function: FunctionType) -> FunctionType:
        tree = _tree_of(function)
        if tree is None:
            return function
        code = function.__code__
        cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
        cells |= {name: CellType(made) for name, made in MAKERS.items()}
        for name, called in _user_functions_in(function):
            if name not in code.co_freevars and _needs(called, set()):
                self.of(called)
                cells[name] = self.cells[called]
        bound = {*code.co_varnames, *code.co_cellvars, *code.co_freevars}

        def is_builtin(name: str) -> bool:
            return name not in bound and look_up(function, name) is getattr(builtins, name)

        tree.body = [in_order(one, is_builtin) for one in tree.body]
        # Names that are free in the copy stand for the cells, whatever the module has now.
        names = [ast.arg(name) for name in cells]
        tree.name = "__ss_copied"  # it may name itself, which the outer function has not to bind
        parameters = ast.arguments([], names, None, [], [], None, [])
        outer = ast.FunctionDef("__ss_outer", parameters, [tree], [])
        module = ast.fix_missing_locations(ast.Module([outer], []))
        compiled = compile(module, code.co_filename, "exec")
        for name in (outer.name, tree.name):
            compiled = _inside(compiled, name)
        compiled = compiled.replace(co_name=code.co_name, co_qualname=code.co_qualname)
        made = FunctionType(
            compiled,
            function.__globals__,
            function.__name__,
            function.__defaults__,
            tuple(cells[name] for name in compiled.co_freevars),
        )
        made.__kwdefaults__ = function.__kwdefaults__
        made.__qualname__ = function.__qualname__
        made.__dict__.update(function.__dict__)
        return made


def _inside(code: CodeType, name: str) -> CodeType:
    return next(one for one in code.co_consts if isinstance(one, CodeType) and one.co_name == name)


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield from _codes(one)


def _needs(function: FunctionType, met: set[FunctionType]) -> bool:
    """Whether a function, or one that it calls, makes a set."""
    if function in met or is_of_a_library(function):
        return False
    met.add(function)
    for code in _codes(function.__code__):
        is_display = any(one.opname in _BUILDING for one in dis.get_instructions(code))
        if is_display or not _CLASSES.keys().isdisjoint(code.co_names):
            return True
    return any(_needs(called, met) for _, called in _user_functions_in(function))


_BUILDING = ("BUILD_SET", "SET_ADD")


def _user_functions_in(function: FunctionType) -> Iterator[tuple[str, FunctionType]]:
    """The user's functions that a function names: sets in them have to be ordered, too.

    It may name itself.
    """
    codes = _codes(function.__code__)
    for name in sorted({name for one in codes for name in (*one.co_names, *one.co_freevars)}):
        value = look_up(function, name)
        if isinstance(value, FunctionType):
            yield name, value


def _tree_of(function: FunctionType) -> ast.FunctionDef | None:
    """The tree of a function in which sets are to be ordered; None: it cannot be told apart.

    It is without what the function's definition computes.
    """
    found = definition_of(function)
    if found is None:
        return None
    tree = found.tree
    tree.decorator_list, tree.returns = [], None
    leave_out_computed(tree.args)
    return tree
