"""How many rows an operator may emit for one event, found from its syntax: at most one, or more.

A stream that carries at most one row in a phase costs registers; one that may carry more, memory.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from specstream.compiler.frontend.program import Program
from specstream.compiler.language.parsing import parse
from specstream.definition.operator import Operator

__all__ = ["emits_at_most_once"]


def emits_at_most_once(operator: Operator) -> bool:
    """Whether no event, and no timer that fires, can make it emit two rows.

    >>> import specstream as ss
    >>> class Seen(ss.State):
    ...     count = ss.scalar(int)
    >>> @ss.operator(state=Seen, event={"x": int}, emits={"x": int})
    ... def every_other(state, event, emit):
    ...     state.count += 1
    ...     if state.count % 2:
    ...         emit(event.x)
    ...         return
    ...     if event.x > 7:
    ...         emit(7)
    >>> emits_at_most_once(every_other)
    True
    """
    if operator.is_interpreted:  # who knows what its function does with `emit`
        return False
    program: Program | None = operator.program
    functions: list[Any] = [operator.function, operator.on_timer]
    has_state = bool(operator.layout.fields)
    while program is not None:
        if not _emits_at_most_once(program.written[functions.pop(0)].text, has_state):
            return False
        program = program.on_timer
    return True


def _emits_at_most_once(text: str, has_state: bool) -> bool:
    tree = parse(textwrap.dedent(text)).body[0]
    if not isinstance(tree, ast.FunctionDef):
        return False
    arguments = [*tree.args.posonlyargs, *tree.args.args]
    counted = _Counted(arguments[2 if has_state else 1].arg)
    return counted.only_called(tree) and counted.statements(tree.body).most <= 1


@dataclass(frozen=True)
class _Ways:
    """The most rows with which statements are left, by the way out; -1: they are not left so."""

    on: int = 0
    out: int = -1
    again: int = -1
    end: int = -1

    @property
    def most(self) -> int:
        return max(self.on, self.out, self.again, self.end)

    def either(self, other: _Ways) -> _Ways:
        return _Ways(
            max(self.on, other.on),
            max(self.out, other.out),
            max(self.again, other.again),
            max(self.end, other.end),
        )

    def then(self, other: _Ways) -> _Ways:
        """These statements, and behind them others."""
        if self.on < 0:
            return self

        def after(own: int, count: int) -> int:
            return max(own, -1 if count < 0 else min(self.on + count, 2))

        return _Ways(
            after(-1, other.on),
            after(self.out, other.out),
            after(self.again, other.again),
            after(self.end, other.end),
        )


_MANY = _Ways(2, 2, 2, 2)


class _Counted:
    def __init__(self, emit: str) -> None:
        self.emit = emit

    def only_called(self, tree: ast.AST) -> bool:
        """Whether ``emit`` is called where it stands, and never handed on or kept."""
        called = {
            id(node.func)
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        names = [n for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id == self.emit]
        if any(id(name) not in called for name in names):
            return False
        inner = (ast.FunctionDef, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp)
        nested = [n for n in ast.walk(tree) if isinstance(n, (*inner, ast.GeneratorExp))]
        return not any(self.calls(one) for one in nested if one is not tree)

    def calls(self, *nodes: ast.AST | None) -> int:
        """How often it is called in expressions, and in all that stands in statements."""
        return sum(
            isinstance(one, ast.Call)
            and isinstance(one.func, ast.Name)
            and one.func.id == self.emit
            for node in nodes
            if node is not None
            for one in ast.walk(node)
        )

    def statements(self, body: Iterable[ast.stmt]) -> _Ways:
        ways = _Ways()
        for statement in body:
            ways = ways.then(self.statement(statement))
        return ways

    def statement(self, node: ast.stmt) -> _Ways:
        if not self.calls(node):
            return self.quiet(node)
        if isinstance(node, ast.If):
            ways = self.statements(node.body).either(self.statements(node.orelse))
            return self.expressions(node.test).then(ways)
        if isinstance(node, ast.With):
            items = self.expressions(*(item.context_expr for item in node.items))
            return items.then(self.statements(node.body))
        if isinstance(node, ast.Match):
            ways = _Ways()
            for case in node.cases:
                ways = ways.either(self.statements(case.body))
            guards = [case.guard for case in node.cases]
            return self.expressions(node.subject, *guards).then(ways)
        if isinstance(node, ast.For | ast.While):
            head = node.iter if isinstance(node, ast.For) else node.test
            if self.calls(head):
                return _MANY
            once = self.statements(node.body)
            if max(once.on, once.again) > 0:  # and perhaps the next time as well
                return _MANY
            left = _Ways(max(0, once.out), -1, -1, once.end)
            return _Ways(-1, -1, -1, once.end).either(left.then(self.statements(node.orelse)))
        if isinstance(node, ast.Return):
            return _Ways(-1, -1, -1, min(self.calls(node), 2))
        if isinstance(node, ast.Try | ast.TryStar):
            loops = [one for one in ast.walk(node) if isinstance(one, ast.For | ast.While)]
            if self.calls(node) > 1 or any(map(self.calls, loops)):
                return _MANY
            return _Ways(1, 1, 1, 1)  # somewhere, and any way out
        return self.expressions(node)

    def expressions(self, *nodes: ast.AST | None) -> _Ways:
        return _Ways(min(self.calls(*nodes), 2))

    def quiet(self, node: ast.stmt) -> _Ways:
        """A statement in which nothing is emitted."""
        match node:
            case ast.Return() | ast.Raise():
                return _Ways(-1, -1, -1, 0)
            case ast.Break():
                return _Ways(-1, 0)
            case ast.Continue():
                return _Ways(-1, -1, 0)
            case ast.If():
                return self.statements(node.body).either(self.statements(node.orelse))
            case ast.With():
                return self.statements(node.body)
            case _:
                return _Ways()
