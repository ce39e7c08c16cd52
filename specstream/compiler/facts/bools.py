"""Where a bool may stand on the left of an operator, as far as the text shows.

Python's bool computes with its own methods: ``True + Int64(1)`` is an ``int`` that does not wrap.
So the oracle makes an integer of what may be one there, and spends nothing on what cannot.
"""

from __future__ import annotations

import ast

__all__ = ["Bools"]

_BITS = (ast.BitAnd, ast.BitOr, ast.BitXor)


class Bools:
    """The names of a function that may be bools.

    Args:
        tree: the function, as its user has written it.
        numeric: fields and columns that hold no bools.
        counting: names of functions that give none.
    """

    def __init__(self, tree: ast.FunctionDef, numeric: set[str], counting: set[str]) -> None:
        self.numeric = numeric
        self.counting = counting
        self.bound: dict[str, list[ast.expr | None]] = {}
        for part in ast.walk(tree):
            for name, value in _bindings_of_bools(part):
                self.bound.setdefault(name, []).append(value)
        self.asked: set[str] = set()

    def may_be(self, node: ast.expr | None) -> bool:
        """Whether an expression may give a bool."""
        if isinstance(node, ast.Constant):
            return isinstance(node.value, bool)
        if isinstance(node, ast.BinOp):
            is_bits = isinstance(node.op, _BITS)
            return is_bits and self.may_be(node.left) and self.may_be(node.right)
        if isinstance(node, ast.UnaryOp):
            return isinstance(node.op, ast.Not)
        if isinstance(node, ast.BoolOp):
            return any(map(self.may_be, node.values))
        if isinstance(node, ast.IfExp):
            return self.may_be(node.body) or self.may_be(node.orelse)
        if isinstance(node, ast.NamedExpr):
            return self.may_be(node.value)
        if isinstance(node, ast.Attribute):
            return node.attr not in self.numeric
        if isinstance(node, ast.Subscript):
            return self.may_be(node.value)
        if isinstance(node, ast.Call):
            return not (isinstance(node.func, ast.Name) and node.func.id in self.counting)
        if isinstance(node, ast.Name):
            return self.name_may_be(node.id)
        return True

    def name_may_be(self, name: str) -> bool:
        if name in self.asked:
            return False  # what else it is bound to decides
        bound = self.bound.get(name)
        if bound is None:
            return True
        self.asked.add(name)
        found = any(map(self.may_be, bound))
        self.asked.discard(name)
        return found


def _bindings_of_bools(node: ast.AST) -> list[tuple[str, ast.expr | None]]:
    """Names that a node binds, and what tells whether each may be a bool; None: it may."""
    if isinstance(node, ast.Assign) and all(isinstance(one, ast.Name) for one in node.targets):
        return [(one.id, node.value) for one in node.targets if isinstance(one, ast.Name)]
    if isinstance(node, ast.AnnAssign | ast.NamedExpr) and isinstance(node.target, ast.Name):
        return [(node.target.id, node.value)]
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        is_bits = isinstance(node.op, _BITS)
        return [(node.target.id, node.value if is_bits else ast.Constant(0))]
    if isinstance(node, ast.For | ast.comprehension) and isinstance(node.target, ast.Name):
        is_range = (
            isinstance(node.iter, ast.Call)
            and isinstance(node.iter.func, ast.Name)
            and node.iter.func.id == "range"
        )
        return [(node.target.id, ast.Constant(0) if is_range else None)]
    if isinstance(node, ast.arg):
        return [(node.arg, None)]
    if isinstance(node, ast.MatchAs | ast.MatchStar | ast.ExceptHandler) and node.name:
        return [(node.name, None)]
    if isinstance(node, ast.Assign | ast.For | ast.comprehension):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return [
            (part.id, None)
            for target in targets
            for part in ast.walk(target)
            if isinstance(part, ast.Name)
        ]
    return []
