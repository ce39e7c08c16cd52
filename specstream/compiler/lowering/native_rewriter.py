"""The rewriting for Numba of one function: what goes through the tree, and what all of it shares.

What becomes of a node is in a table, by its class: each file of this folder has functions for some
classes, which get the rewriter, and ``rewrite_native`` joins their tables. They call each other by
way of :meth:`NativeRewriter.visit`, or import what they need.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from specstream.columns.strings import string_code
from specstream.compiler.facts.lengths import Lengths
from specstream.compiler.facts.refused_constructs import Check
from specstream.compiler.frontend.definite_assignment import leaves
from specstream.compiler.frontend.made_nodes import load
from specstream.compiler.frontend.operator_analysis import Analysis, FunctionSource
from specstream.compiler.frontend.scopes import bound_names
from specstream.compiler.language import builtin_functions
from specstream.compiler.language.text import text_of
from specstream.compiler.library import arithmetic, local_lists
from specstream.compiler.lowering.none_names import NoneNames
from specstream.compiler.lowering.trip_counts import TripCounts
from specstream.compiler.oracle.common_rewriting import Rewriter

__all__ = ["CONTAINERS", "RUN", "Definition", "Handler", "NativeRewriter", "Nested", "run"]

RUN = "__ss_run"
CONTAINERS = builtin_functions.names_where(lambda one: one.collects)
"""Builtins that make a list, dict or set, or that are about them alone."""
Definition = ast.FunctionDef | ast.Lambda


def run() -> ast.expr:
    """The running transaction."""
    return load(RUN)


def _core_name(function: Any) -> str:
    for attribute in ("name", "__name__", "_name"):
        name = getattr(function, attribute, None)
        if isinstance(name, str):
            return name
    raise AssertionError(function)


@dataclass
class Nested:
    """What the rewriters of one function and of all that is nested in it know together.

    Attributes:
        defined: nested functions by their names.
        lifted: the names of those that are functions of their own already.
        open: those on the way to the present one.
        names: how many names were made up.
    """

    defined: dict[str, Definition] = field(default_factory=dict)
    lifted: dict[str, str] = field(default_factory=dict)
    open: list[str] = field(default_factory=list)
    names: int = 0


class NativeRewriter(Rewriter):
    """Goes through one function, or one nested in it.

    Args:
        handlers: what becomes of a node, by its class.
        nested: shared by a function and all that is nested in it.

    Attributes:
        none: the names that may be None, and where they are not.
        held: what is done to leave each block around the present statement; None: a loop.
        caught: names of the exceptions that are handled there, and the variables with their
            numbers, the innermost last.
        turns: of the loops around the present statement that do not poll.
    """

    def __init__(
        self,
        analysis: Analysis,
        source: FunctionSource,
        check: Check,
        handlers: Mapping[type[ast.AST], Handler],
        nested: Nested,
    ) -> None:
        super().__init__(analysis, source, check)
        self.handlers = handlers
        self.nested = nested
        self.none = NoneNames(source.tree, check)
        self.held: list[Callable[[], list[ast.stmt]] | None] = []
        self.caught: list[tuple[str | None, str]] = []
        self.turns = TripCounts(
            lambda name: None if name in check.locals else check.resolved.get(name)
        )

    def visit(self, node: ast.AST) -> Any:
        handler = self.handlers.get(type(node))
        return self.generic_visit(node) if handler is None else handler(self, node)

    def core(self, function: Any, *arguments: ast.expr, at: ast.AST) -> ast.Call:
        """A call of a core function, bound under a name no user can write."""
        name = f"__ss_{_core_name(function)}"
        known = self.source.native_namespace.setdefault(name, function)
        assert known is function, name
        call = ast.Call(ast.Name(name, ast.Load()), list(arguments), [])
        ast.copy_location(call, at)
        ast.copy_location(call.func, at)
        return call

    def make(self, function: Any, *arguments: ast.expr, at: ast.AST) -> ast.Call:
        """The same of one that makes something of the event's own, and so is given the run."""
        self.analysis.uses_arena = True
        return self.core(function, run(), *arguments, at=at)

    def do(self, function: Any, *arguments: ast.expr, at: ast.AST) -> ast.stmt:
        """The same as a statement."""
        return ast.copy_location(ast.Expr(self.core(function, *arguments, at=at)), at)

    def new_name(self, what: str) -> str:
        """A name that no user can write, and that is assigned in one place only."""
        self.nested.names += 1
        return f"__ss_{what}_{self.nested.names}"

    def statements(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """Behind ``if x is None: return`` x is there, as in an else, until it is given again, and
        behind ``if x is None: x = 0``."""
        for at, one in enumerate(body):
            if not isinstance(one, ast.If) or one.orelse:
                continue
            if (name := self.none.filled_by(one)) is not None:
                rest = range(at + 1, len(body))
                given = next((e for e in rest if name in bound_names(body[e])), len(body))
                begun = super().statements(body[: at + 1])
                self.none.tested.add(name)
                begun += self.statements(body[at + 1 : given])
                self.none.tested.remove(name)
                return begun + self.statements(body[given:])
            if not leaves(one.body):
                continue
            ends = range(len(body), at + 1, -1)
            end = next(
                (e for e in ends if self.none.known_by(one.test, body[at + 1 : e], False)), None
            )
            if end is not None:
                one.orelse = body[at + 1 : end]
                return super().statements(body[: at + 1]) + self.statements(body[end:])
        return super().statements(body)

    def unary(self, node: ast.UnaryOp) -> Any:
        self.generic_visit(node)
        return self.core(arithmetic.OPERATORS[type(node.op)], node.operand, at=node)

    def argument(self, value: ast.expr) -> ast.expr:
        """What a function of the user's is given."""
        if not self.makes_any or isinstance(value, ast.Constant):
            return value
        return self.core(local_lists.argument, value, at=value)

    @functools.cached_property
    def makes_any(self) -> bool:
        """Whether the function makes one that may hold nobody knows what."""
        makes = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
        return any(
            isinstance(node, makes)
            or (isinstance(node, ast.Call) and ast.unparse(node.func) in CONTAINERS)
            for statement in self.source.tree.body  # and not of the decorator's arguments
            for node in ast.walk(statement)
        )

    @functools.cached_property
    def lengths(self) -> Lengths:
        return Lengths(self.source.tree, self.analysis.shapes)

    def text(self, text: str, at: ast.AST) -> ast.expr:
        return self.core(text_of, ast.copy_location(ast.Constant(string_code(text)), at), at=at)

    def positional(self, node: ast.Call, name: str) -> None:
        if node.keywords:
            self.check.refuse(node, f"{name} takes no keywords", "give the values by position")

    def bound(self, name: str, value: Any, at: ast.AST) -> ast.Name:
        """A name for something that the native code calls."""
        self.source.native_namespace[name] = value
        return ast.copy_location(ast.Name(name, ast.Load()), at)


Handler: TypeAlias = Callable[[NativeRewriter, Any], Any]
