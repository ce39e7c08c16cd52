"""Which local names are certainly assigned where they are read.

CPython raises UnboundLocalError where a name was never assigned; compiled code would read whatever
lies there. So a name that *may* be undefined is refused, by the usual forward analysis over the
syntax tree: the set of names assigned on every path that reaches a point.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

__all__ = ["check_definite_assignment"]

# The set of names assigned on every path to a point; None: no path leads here.
Assigned = frozenset[str] | None


def _meet(left: Assigned, right: Assigned) -> Assigned:
    if left is None:
        return right
    return left if right is None else left & right


class _Flow:
    def __init__(self, locals_: frozenset[str], report: Callable[[ast.AST, str], None]) -> None:
        self.locals = locals_
        self.report = report
        self.breaks: list[Assigned] = []

    def read(self, node: ast.AST | None, assigned: Assigned) -> None:
        if node is None or assigned is None:
            return
        for part in ast.walk(node):
            if (
                isinstance(part, ast.Name)
                and isinstance(part.ctx, ast.Load)
                and part.id in self.locals
                and part.id not in assigned
            ):
                self.report(part, part.id)

    def targets(self, node: ast.AST, assigned: Assigned) -> Assigned:
        """After an assignment to ``node``; what its subscripts read is checked."""
        if isinstance(node, ast.Name):
            return None if assigned is None else assigned | {node.id}
        if isinstance(node, ast.Tuple | ast.List):
            for element in node.elts:
                assigned = self.targets(element, assigned)
            return assigned
        self.read(node, assigned)
        return assigned

    def block(self, body: list[ast.stmt], assigned: Assigned) -> Assigned:
        for statement in body:
            assigned = self.statement(statement, assigned)
        return assigned

    def statement(self, node: ast.stmt, assigned: Assigned) -> Assigned:
        match node:
            case ast.Assign():
                self.read(node.value, assigned)
                for target in node.targets:
                    assigned = self.targets(target, assigned)
                return assigned
            case ast.AugAssign():
                self.read(node.value, assigned)
                if isinstance(node.target, ast.Name):
                    load = ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target)
                    self.read(load, assigned)
                else:
                    self.read(node.target, assigned)
                return assigned
            case ast.AnnAssign():
                if node.value is None:
                    return assigned
                self.read(node.value, assigned)
                return self.targets(node.target, assigned)
            case ast.If():
                self.read(node.test, assigned)
                return _meet(self.block(node.body, assigned), self.block(node.orelse, assigned))
            case ast.While():
                self.read(node.test, assigned)
                forever = isinstance(node.test, ast.Constant) and bool(node.test.value)
                return self.loop(node, assigned, None if forever else assigned)
            case ast.For():
                self.read(node.iter, assigned)
                return self.loop(node, self.targets(node.target, assigned), assigned)
            case ast.With():
                for item in node.items:
                    self.read(item.context_expr, assigned)
                return self.block(node.body, assigned)
            case ast.Try():
                return self.tried(node, assigned)
            case ast.Break():
                self.breaks[-1] = _meet(self.breaks[-1], assigned)
                return None
            case ast.Continue():
                return None
            case ast.Return():
                self.read(node.value, assigned)
                return None
            case ast.Raise():
                self.read(node.exc, assigned)
                return None
            case _:
                self.read(node, assigned)
                return assigned

    def tried(self, node: ast.Try, assigned: Assigned) -> Assigned:
        """Any statement of the body may go to a handler, the first one already."""
        after = self.block(node.orelse, self.block(node.body, assigned))
        for handler in node.handlers:
            after = _meet(after, self.block(handler.body, assigned))
        if not node.finalbody:
            return after
        # It may come after any of them; what goes on behind it has come to its end.
        on_any_way = self.block(node.finalbody, assigned)
        return None if on_any_way is None or after is None else after | on_any_way

    def loop(self, node: ast.While | ast.For, entry: Assigned, exhausted: Assigned) -> Assigned:
        """The body runs zero times or more; ``exhausted`` leaves without a break."""
        self.breaks.append(None)
        self.block(node.body, entry)
        broken = self.breaks.pop()
        return _meet(self.block(node.orelse, exhausted), broken)


def check_definite_assignment(
    function: ast.FunctionDef, locals_: frozenset[str], report: Callable[[ast.AST, str], None]
) -> None:
    """Calls ``report(node, name)`` for every read of a local that may be unassigned."""
    parameters = frozenset(argument.arg for argument in function.args.args)
    _Flow(locals_, report).block(function.body, parameters)
