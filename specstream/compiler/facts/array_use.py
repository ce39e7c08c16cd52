"""Whether an operator computes with arrays, as its text says: the results lie in the arena.

Types are known later, and an operator without arrays of its own shall not pay for an arena. So this
errs towards one: a name counts as an array where it is one anywhere, and a parameter of a helper if
any call hands an array on.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping

from specstream.compiler.language.builtin_functions import names_where

__all__ = ["computes_arrays"]

_MAKING = ("copy", "tolist")
# What gives a number, or something else that is no array.
_REDUCING = frozenset(
    (
        *names_where(lambda one: not one.may_give_array),
        *(
            "emit",
            "mean",
            "std",
            "var",
            "amin",
            "amax",
            "argmin",
            "argmax",
            "fill",
            "dot",
            "fsum",
            "prod",
            "dist",
        ),
    )
)


class _Function(ast.NodeVisitor):
    """One function, with those inside of it.

    Attributes:
        computes: whether it computes with an array.
        computes_with_given: whether it does if its parameters are arrays.
        hands_on: whether it calls a function with an array.
    """

    def __init__(self, tree: ast.FunctionDef, axes: Mapping[str, int], is_first: bool) -> None:
        self.axes = axes
        self.names: dict[str, int] = {}
        inner = {part for one in ast.walk(tree) for part in _parameters(one) if one is not tree}
        self.given = inner | (set() if is_first else set(_parameters(tree)))
        self.computes = self.computes_with_given = self.hands_on = False
        known = -1
        while known != len(self.names):  # a name may be used in a loop before it is assigned
            known = len(self.names)
            self.visit(tree)

    def ndim(self, node: ast.AST) -> int:
        """How many axes an expression has at most."""
        if isinstance(node, ast.Attribute):
            return self.axes.get(node.attr, 0)
        if isinstance(node, ast.Name):
            return self.names.get(node.id, 2 if node.id in self.given else 0)
        if isinstance(node, ast.Subscript):
            parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            return self.ndim(node.value) - sum(not isinstance(one, ast.Slice) for one in parts)
        if isinstance(node, ast.Call):
            if _name(node) in _REDUCING:
                return 0
            made = isinstance(node.func, ast.Attribute) and node.func.attr in _MAKING
            if made and isinstance(node.func, ast.Attribute):
                return self.ndim(node.func.value)
            return max((self.ndim(one) for one in node.args), default=0)
        parts = [one for one in ast.iter_child_nodes(node) if isinstance(one, ast.expr)]
        return max((self.ndim(one) for one in parts), default=0)

    def item_ndim(self, node: ast.expr) -> int:
        """How many axes what is met in a loop has at most."""
        if isinstance(node, ast.Tuple | ast.List):
            return max((self.ndim(one) for one in node.elts), default=0)
        if isinstance(node, ast.Call) and _name(node) in ("zip", "enumerate", "reversed", "list"):
            return max((self.item_ndim(one) for one in node.args), default=0)
        return self.ndim(node) - 1

    def bind(self, target: ast.AST, axes: int) -> None:
        for part in ast.walk(target):
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store) and axes > 0:
                self.names[part.id] = max(axes, self.names.get(part.id, 0))

    def visit_Assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            self.bind(target, self.ndim(node.value))
        self.generic_visit(node)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.bind(node.target, self.ndim(node.value))
        self.generic_visit(node)

    def visit_For(self, node: ast.For) -> None:
        self.bind(node.target, self.item_ndim(node.iter))
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        self.bind(node.target, self.item_ndim(node.iter))
        self.generic_visit(node)

    def operands(self, *operands: ast.expr) -> None:
        for one in operands:
            if self.ndim(one) > 0:
                names = {part.id for part in ast.walk(one) if isinstance(part, ast.Name)}
                if names & self.given:
                    self.computes_with_given = True
                if not names & self.given or any(
                    isinstance(part, ast.Attribute) and part.attr in self.axes
                    for part in ast.walk(one)
                ):
                    self.computes = True

    def visit_BinOp(self, node: ast.BinOp) -> None:
        self.operands(node.left, node.right)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        self.operands(node.operand)
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        if not any(isinstance(op, ast.In | ast.NotIn) for op in node.ops):
            self.operands(node.left, *node.comparators)
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            self.operands(node.value)
            self.bind(node.target, self.ndim(node.value))
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        callee = node.func
        if isinstance(callee, ast.Attribute):
            if callee.attr in _MAKING:
                self.operands(callee.value)
            if callee.attr not in _REDUCING or callee.attr == "dist":
                self.operands(*node.args)  # of a function of NumPy's
        elif isinstance(callee, ast.Name):
            if callee.id == "abs":
                self.operands(*node.args)
            given = () if callee.id in _REDUCING else node.args
            self.hands_on = self.hands_on or any(self.ndim(one) > 0 for one in given)
        self.generic_visit(node)


def _name(node: ast.Call) -> str:
    callee = node.func
    return str(getattr(callee, "id", None) or getattr(callee, "attr", ""))


def _parameters(node: ast.AST) -> Iterable[str]:
    if not isinstance(node, ast.FunctionDef | ast.Lambda):
        return ()
    arguments = node.args
    return [one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]


def computes_arrays(axes: Mapping[str, int], trees: Iterable[ast.FunctionDef]) -> bool:
    """Whether any of an operator's functions may make an array.

    Args:
        axes: by the names of the fields that are arrays, how many axes they have.
        trees: the functions, the operator's own first.
    """
    functions = [_Function(tree, axes, at == 0) for at, tree in enumerate(trees)]
    if any(one.computes for one in functions):
        return True
    handed_on = any(one.hands_on for one in functions)
    return handed_on and any(one.computes_with_given for one in functions)
