"""Which local names are certainly assigned where they are read.

CPython raises UnboundLocalError where a name was never assigned; compiled code would read whatever
lies there. So a name that *may* be undefined is refused, by the usual forward analysis over the
syntax tree: the set of names assigned on every path that reaches a point. Expressions assign too
(``x := ...``), and what they do depends on how a condition turned out.

A nested function reads its captured names when it is called, so they are looked at there.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Sequence

from specstream.compiler.frontend.scopes import COMPREHENSIONS, bound_names

__all__ = ["check_definite_assignment", "is_irrefutable", "leaves"]

# The set of names assigned on every path to a point; None: no path leads here.
Assigned = frozenset[str] | None


def _meet(left: Assigned, right: Assigned) -> Assigned:
    if left is None:
        return right
    return left if right is None else left & right


def _cannot_raise(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Assign)
        and isinstance(statement.value, ast.Constant)
        and all(isinstance(target, ast.Name) for target in statement.targets)
    )


def _deleted_in(body: Sequence[ast.AST]) -> set[str]:
    return {
        node.id
        for statement in body
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Del)
    }


class _Flow:
    def __init__(self, locals_: frozenset[str], report: Callable[[ast.AST, str], None]) -> None:
        self.locals = locals_
        self.report = report
        self.breaks: list[Assigned] = []
        self.captured: dict[str, frozenset[str]] = {}  # by the name of a nested function

    # ---- expressions ----

    def read(self, node: ast.AST | None, assigned: Assigned) -> Assigned:
        """After an expression was evaluated."""
        if node is None or assigned is None:
            return assigned
        match node:
            case ast.Name():
                if isinstance(node.ctx, ast.Load):
                    self.name(node, node.id, assigned)
                return assigned
            case ast.NamedExpr():
                assigned = self.read(node.value, assigned)
                return self.targets(node.target, assigned)
            case ast.BoolOp() | ast.Compare():
                return _meet(*self.condition(node, assigned))
            case ast.IfExp():
                holds, fails = self.condition(node.test, assigned)
                return _meet(self.read(node.body, holds), self.read(node.orelse, fails))
            case ast.Lambda():
                assigned = self.defaults(node, assigned)
                self.function(node, assigned and assigned | self.captures(node))
                return assigned
            case ast.Dict():
                for key, value in zip(node.keys, node.values, strict=True):
                    assigned = self.read(value, self.read(key, assigned))
                return assigned
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                return self.comprehension(node, assigned)
        for part in ast.iter_child_nodes(node):
            assigned = self.read(part, assigned)
        return assigned

    def name(self, node: ast.AST, name: str, assigned: frozenset[str]) -> None:
        if name in self.locals and name not in assigned:
            self.report(node, name)
        # A nested function is read to be called, and then it reads what it captured.
        waiting, met = [name], {name}
        while waiting:
            for one in sorted(self.captured.get(waiting.pop(), frozenset()) - met):
                if one not in assigned:
                    self.report(node, one)
                waiting.append(one)
                met.add(one)

    def condition(self, node: ast.expr, assigned: Assigned) -> tuple[Assigned, Assigned]:
        """After a condition that holds, and after one that does not."""
        match node:
            case ast.Constant():
                return (assigned, None) if node.value else (None, assigned)
            case ast.UnaryOp(op=ast.Not()):
                holds, fails = self.condition(node.operand, assigned)
                return fails, holds
            case ast.BoolOp():
                is_and = isinstance(node.op, ast.And)
                ended: Assigned = None  # what is known where the rest is not evaluated
                for value in node.values:
                    holds, fails = self.condition(value, assigned)
                    assigned, leaves = (holds, fails) if is_and else (fails, holds)
                    ended = _meet(ended, leaves)
                return (assigned, ended) if is_and else (ended, assigned)
            case ast.Compare():
                assigned = first = self.read(node.comparators[0], self.read(node.left, assigned))
                for operand in node.comparators[1:]:
                    assigned = self.read(operand, assigned)
                return assigned, first
        after = self.read(node, assigned)
        return after, after

    def comprehension(self, node: ast.AST, assigned: Assigned) -> Assigned:
        """What happens inside may not happen at all."""
        assert isinstance(node, COMPREHENSIONS)
        outside = inside = self.read(node.generators[0].iter, assigned)
        # For the rewriting: what is assigned here by `:=` has to have a value before.
        node.assigned_before = outside or frozenset()  # type: ignore[union-attr]
        for number, part in enumerate(node.generators):
            if number:
                inside = self.read(part.iter, inside)
            inside = self.targets(part.target, inside)
            for condition in part.ifs:
                inside, _ = self.condition(condition, inside)
        if isinstance(node, ast.DictComp):
            self.read(node.value, self.read(node.key, inside))
        else:
            self.read(node.elt, inside)
        return outside

    # ---- nested functions ----

    def defaults(self, node: ast.FunctionDef | ast.Lambda, assigned: Assigned) -> Assigned:
        for default in (*node.args.defaults, *node.args.kw_defaults):
            assigned = self.read(default, assigned)
        return assigned

    def function(self, node: ast.FunctionDef | ast.Lambda, assigned: Assigned) -> None:
        """The body, where everything is assigned that is when it is called."""
        body: list[ast.stmt] = node.body if isinstance(node.body, list) else [ast.Expr(node.body)]
        own = {one.arg for one in ast.walk(node.args) if isinstance(one, ast.arg)}
        inner = _Flow(self.locals, self.report)
        inner.captured = dict(self.captured)
        inner.block(body, None if assigned is None else assigned | own)

    def captures(self, node: ast.FunctionDef | ast.Lambda) -> frozenset[str]:
        """Names of the enclosing functions that a nested one reads."""
        read = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
        return frozenset(read & self.locals - bound_names(node))

    # ---- statements ----

    def targets(self, node: ast.AST, assigned: Assigned) -> Assigned:
        """After an assignment to ``node``; what its subscripts read is checked."""
        if isinstance(node, ast.Name):
            return None if assigned is None else assigned | {node.id}
        if isinstance(node, ast.Tuple | ast.List):
            for element in node.elts:
                assigned = self.targets(element, assigned)
            return assigned
        if isinstance(node, ast.Starred):
            return self.targets(node.value, assigned)
        return self.read(node, assigned)

    def block(self, body: list[ast.stmt], assigned: Assigned) -> Assigned:
        for statement in body:
            assigned = self.statement(statement, assigned)
        return assigned

    def statement(self, node: ast.stmt, assigned: Assigned) -> Assigned:
        match node:
            case ast.Assign():
                if isinstance(node.value, ast.Lambda) and isinstance(node.targets[0], ast.Name):
                    self.captured[node.targets[0].id] = self.captures(node.value)
                assigned = self.read(node.value, assigned)
                for target in node.targets:
                    assigned = self.targets(target, assigned)
                return assigned
            case ast.AugAssign():
                if isinstance(node.target, ast.Name):
                    load = ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target)
                    assigned = self.read(load, assigned)
                else:
                    assigned = self.read(node.target, assigned)
                return self.read(node.value, assigned)
            case ast.AnnAssign():
                if node.value is None:
                    return assigned
                return self.targets(node.target, self.read(node.value, assigned))
            case ast.If():
                holds, fails = self.condition(node.test, assigned)
                return _meet(self.block(node.body, holds), self.block(node.orelse, fails))
            case ast.While():
                holds, fails = self.condition(node.test, self.again(node.body, assigned))
                return self.loop(node, holds, fails)
            case ast.For():
                assigned = self.again(node.body, self.read(node.iter, assigned))
                return self.loop(node, self.targets(node.target, assigned), assigned)
            case ast.Match():
                return self.match(node, assigned)
            case ast.With():
                for item in node.items:
                    assigned = self.read(item.context_expr, assigned)
                return self.block(node.body, assigned)
            case ast.Try():
                return self.tried(node, assigned)
            case ast.Assert():
                holds, fails = self.condition(node.test, assigned)
                self.read(node.msg, fails)
                return holds
            case ast.FunctionDef():
                return self.definition(node, assigned)
            case ast.Delete():
                for target in node.targets:
                    assigned = self.delete(target, assigned)
                return assigned
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
                return self.read(node, assigned)

    def definition(self, node: ast.FunctionDef, assigned: Assigned) -> Assigned:
        assigned = self.defaults(node, assigned)
        if assigned is None:
            return None
        self.captured[node.name] = self.captures(node)
        self.function(node, assigned | self.captured[node.name] | {node.name})
        return assigned | {node.name}

    def delete(self, target: ast.expr, assigned: Assigned) -> Assigned:
        parts = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
        for part in parts:
            if not isinstance(part, ast.Name):
                assigned = self.read(part, assigned)
            elif assigned is not None:
                self.name(part, part.id, assigned)
                assigned = assigned - {part.id}
        return assigned

    def again(self, body: list[ast.stmt], assigned: Assigned) -> Assigned:
        """Where a loop begins its body, for the first time or once more: what it deletes may be
        gone."""
        gone = {
            name.id
            for statement in body
            for part in ast.walk(statement)
            if isinstance(part, ast.Delete)
            for name in ast.walk(part)
            if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Del)
        }
        return None if assigned is None else assigned - gone

    def tried(self, node: ast.Try, assigned: Assigned) -> Assigned:
        """Any statement of the body may go to a handler, the first one already, but for those that
        give a constant to a name."""
        after = self.block(node.orelse, self.block(node.body, assigned))
        certain = itertools.takewhile(_cannot_raise, node.body)
        assigned = self.block(list(certain), assigned)
        if assigned is not None:
            assigned -= _deleted_in(node.body)
        for handler in node.handlers:
            caught = assigned
            if caught is not None and handler.name is not None:
                caught = caught | {handler.name}
            after = _meet(after, self.block(handler.body, caught))
        if not node.finalbody:
            return after
        # It may come after any of them; what goes on behind it has come to its end.
        if assigned is not None:
            assigned -= _deleted_in([*node.handlers, *node.orelse])
        on_any_way = self.block(node.finalbody, assigned)
        return None if on_any_way is None or after is None else after | on_any_way

    def loop(self, node: ast.While | ast.For, entry: Assigned, exhausted: Assigned) -> Assigned:
        """The body runs zero times or more; ``exhausted`` leaves without a break."""
        self.breaks.append(None)
        self.block(node.body, entry)
        broken = self.breaks.pop()
        return _meet(self.block(node.orelse, exhausted), broken)

    def match(self, node: ast.Match, assigned: Assigned) -> Assigned:
        """The first case that fits runs, or none."""
        assigned = self.read(node.subject, assigned)
        after: Assigned = None
        for case in node.cases:
            for part in ast.walk(case.pattern):
                if isinstance(part, ast.expr):
                    self.read(part, assigned)
            captured = bound_names(case.pattern)
            holds = None if assigned is None else assigned | captured
            fails = None if is_irrefutable(case.pattern) else assigned
            if case.guard is not None:
                holds, guarded = self.condition(case.guard, holds)
                fails = _meet(fails, guarded)
            after = _meet(after, self.block(case.body, holds))
            assigned = fails
        return _meet(after, assigned)


def leaves(body: Sequence[ast.stmt]) -> bool:
    """Whether nothing behind a branch runs when it has run: it ends with a statement that leaves.

    >>> leaves(ast.parse("for x in y: continue").body[0].body), leaves(ast.parse("x = 1").body)
    (True, False)
    """
    return isinstance(body[-1], ast.Return | ast.Raise | ast.Continue | ast.Break)


def is_irrefutable(pattern: ast.pattern) -> bool:
    """Whether a ``case`` fits everything: then some case certainly assigns its names."""
    if isinstance(pattern, ast.MatchAs):
        return pattern.pattern is None or is_irrefutable(pattern.pattern)
    return isinstance(pattern, ast.MatchOr) and any(map(is_irrefutable, pattern.patterns))


def check_definite_assignment(
    function: ast.FunctionDef, locals_: frozenset[str], report: Callable[[ast.AST, str], None]
) -> None:
    """Calls ``report(node, name)`` for every read of a local that may be unassigned."""
    parameters = frozenset(one.arg for one in ast.walk(function.args) if isinstance(one, ast.arg))
    _Flow(locals_, report).block(function.body, parameters)
