"""How an operator uses the strings of its events: which columns meet nothing but its own literals.

Of such a column compiled code needs no codes of other texts, so that a batch is read without them
(:mod:`specstream.columns.unentered`). Looked at are the functions as they are compiled, when what
Python computes of the event alone has been staged out of them. A column's value is followed into
local names, into branches of expressions and into parameters of helpers; wherever it ends there may
be a comparison with literals, a test of its truth or of None, and what an exception is made of.
Anything else, also what is only not known here, needs the code.
"""

from __future__ import annotations

import ast
import builtins
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from specstream.compiler.facts.name_bindings import MISSING, look_up
from specstream.compiler.frontend.operator_analysis import FunctionSource
from specstream.compiler.frontend.scopes import bound_names
from specstream.compiler.frontend.signatures import parameters_of
from specstream.compiler.language.frozen import FrozenDict
from specstream.declarations.schema import Schema

__all__ = ["Unentered", "unentered"]

Unentered = tuple[tuple[str, tuple[str, ...]], ...]
"""Columns that need not be entered, each with the literals that it meets."""

# A large table of literals takes time to make; a column that meets one is entered.
_MOST = 1024

_Name = tuple[types.FunctionType, str]


@dataclass
class _Use:
    """What a value gets into: literals that it meets, and names that have it as well."""

    needs_code: bool = False
    literals: set[str] = field(default_factory=set)
    names: set[_Name] = field(default_factory=set)

    def add(self, other: _Use) -> None:
        self.needs_code |= other.needs_code
        self.literals |= other.literals
        self.names |= other.names


def unentered(
    schema: Schema,
    functions: Mapping[types.FunctionType, tuple[FunctionSource, frozenset[str]]],
    frozen: Mapping[types.FunctionType, Mapping[str, Any]],
    catches: bool,
) -> Unentered:
    """The columns of strings that need not be entered.

    Args:
        schema: of the events.
        functions: those that are compiled, each with its parameters that are the event.
        frozen: what their names stand for.
        catches: whether they catch exceptions.
    """
    wanted = [name for name, of in schema if of.kind == "str"]
    if not wanted:
        return ()
    all_of = {
        function: _Function(function, source, events, frozen[function], functions, catches)
        for function, (source, events) in functions.items()
    }
    found = []
    for name in wanted:
        use = _Use()
        for one in all_of.values():
            one.add_column(name, use)
        seen: set[_Name] = set()
        while not use.needs_code and (more := use.names - seen):
            seen |= more
            for function, local in more:
                all_of[function].add_name(local, use)
        if not use.needs_code and len(use.literals) <= _MOST:
            found.append((name, tuple(sorted(use.literals))))
    return tuple(found)


class _Function:
    """One function, in which values are followed."""

    def __init__(
        self,
        function: types.FunctionType,
        source: FunctionSource,
        events: frozenset[str],
        frozen: Mapping[str, Any],
        functions: Mapping[types.FunctionType, tuple[FunctionSource, frozenset[str]]],
        catches: bool,
    ) -> None:
        self.function, self.tree, self.frozen = function, source.tree, frozen
        self.functions, self.catches = functions, catches
        self.locals = bound_names(source.tree) | set(parameters_of(source.tree.args).names)
        self.events = events - {
            node.id
            for node in ast.walk(source.tree)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }
        self.parents = {
            child: node for node in ast.walk(source.tree) for child in ast.iter_child_nodes(node)
        }

    def add_column(self, column: str, use: _Use) -> None:
        """All that becomes of a column here. Whatever else has an attribute of that name may be the
        event."""
        for node in self.parents:
            if isinstance(node, ast.Attribute) and node.attr == column:
                of = node.value
                if isinstance(of, ast.Name) and of.id in self.events:
                    self.follow(node, use)
                else:
                    use.needs_code = True

    def add_name(self, name: str, use: _Use) -> None:
        """All that becomes of what a local name has."""
        for node in self.parents:
            if not isinstance(node, ast.Name) or node.id != name:
                continue
            if isinstance(node.ctx, ast.Load):
                self.follow(node, use)
            elif isinstance(self.parents[node], ast.AugAssign):
                use.needs_code = True

    def follow(self, node: ast.expr, use: _Use) -> None:
        """What becomes of a value at one place."""
        around = self.parents[node]
        handler = getattr(self, f"in_{type(around).__name__}", None)
        if handler is None:
            use.needs_code = True
        else:
            handler(around, node, use)

    # ---- where it does no harm ----

    def in_Expr(self, around: ast.Expr, node: ast.expr, use: _Use) -> None:
        pass

    def in_If(self, around: Any, node: ast.expr, use: _Use) -> None:
        use.literals.add("")  # the one that is false

    in_While = in_If

    def in_comprehension(self, around: ast.comprehension, node: ast.expr, use: _Use) -> None:
        if node in around.ifs:
            use.literals.add("")
        else:
            use.needs_code = True

    def in_match_case(self, around: ast.match_case, node: ast.expr, use: _Use) -> None:
        use.literals.add("")

    def in_Assert(self, around: ast.Assert, node: ast.expr, use: _Use) -> None:
        if node is around.test:
            use.literals.add("")
        else:
            self.said(use)

    def in_UnaryOp(self, around: ast.UnaryOp, node: ast.expr, use: _Use) -> None:
        if isinstance(around.op, ast.Not):
            use.literals.add("")
        else:
            use.needs_code = True

    def in_BoolOp(self, around: ast.BoolOp, node: ast.expr, use: _Use) -> None:
        use.literals.add("")
        self.follow(around, use)

    def in_IfExp(self, around: ast.IfExp, node: ast.expr, use: _Use) -> None:
        if node is around.test:
            use.literals.add("")
        else:
            self.follow(around, use)

    def in_NamedExpr(self, around: ast.NamedExpr, node: ast.expr, use: _Use) -> None:
        self.bind(around.target, use)
        self.follow(around, use)

    def in_Assign(self, around: ast.Assign, node: ast.expr, use: _Use) -> None:
        for target in around.targets:
            self.bind(target, use)

    def in_AnnAssign(self, around: ast.AnnAssign, node: ast.expr, use: _Use) -> None:
        self.bind(around.target, use)

    def bind(self, target: ast.expr, use: _Use) -> None:
        if isinstance(target, ast.Name):
            use.names.add((self.function, target.id))
        else:
            use.needs_code = True

    def in_Tuple(self, around: ast.Tuple, node: ast.expr, use: _Use) -> None:
        """``a, b = event.a, event.b`` and ``match event.a, event.b:``."""
        parent, at = self.parents[around], around.elts.index(node)
        if any(isinstance(one, ast.Starred) for one in around.elts):
            use.needs_code = True
        elif isinstance(parent, ast.Assign) and around is parent.value:
            for target in parent.targets:
                parts = target.elts if isinstance(target, ast.Tuple | ast.List) else []
                if len(parts) == len(around.elts):
                    self.bind(parts[at], use)
                else:
                    use.needs_code = True
        elif isinstance(parent, ast.Match):
            for case in parent.cases:
                self.match_part(case.pattern, at, len(around.elts), use)
        else:
            use.needs_code = True

    # ---- comparisons ----

    def in_Compare(self, around: ast.Compare, node: ast.expr, use: _Use) -> None:
        operands = [around.left, *around.comparators]
        for op, left, right in zip(around.ops, operands, operands[1:], strict=False):
            if node is left or node is right:
                self.compared(op, node, right if node is left else left, node is left, use)

    def compared(
        self, op: ast.cmpop, node: ast.expr, other: ast.expr, is_left: bool, use: _Use
    ) -> None:
        literals: list[str] | None = None
        if isinstance(op, ast.Is | ast.IsNot):
            is_none = isinstance(other, ast.Constant) and other.value is None
            literals = [] if is_none else None
        elif isinstance(op, ast.Eq | ast.NotEq):
            one = self.literal(other)
            literals = None if one is None else [one]
        elif isinstance(op, ast.In | ast.NotIn) and is_left:
            literals = self.literals_in(other)
        if literals is None:
            use.needs_code = True
        else:
            use.literals.update(literals)

    def literal(self, node: ast.expr) -> str | None:
        """The operator's own literal that a string of the event meets in this expression.

        None: it is not always the same string, or not known to be."""
        value = node.value if isinstance(node, ast.Constant) else self.value(node)
        # Of a subclass, an enum, say, what it is as a string.
        return str.__str__(value) if isinstance(value, str) else None

    def literals_in(self, node: ast.expr) -> list[str] | None:
        """The literals that a column's string meets in a collection; None: maybe others."""
        if isinstance(node, ast.Tuple | ast.List | ast.Set):
            written = [self.literal(one) for one in node.elts]
            found = [one for one in written if one is not None]
            return found if len(found) == len(written) else None
        value = self.frozen.get(node.id) if self.is_global(node) else None  # type: ignore[attr-defined]
        if isinstance(value, FrozenDict):
            value = tuple(key for key, _ in value.items)
        if not isinstance(value, tuple) or not all(type(one) is str for one in value):
            return None
        return list(value)

    def is_global(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and node.id not in self.locals

    def value(self, node: ast.expr) -> Any:
        """What a column's string meets as a literal under a global's name, or its attribute's.

        MISSING: it is no such."""
        if isinstance(node, ast.Name):
            if not self.is_global(node):
                return MISSING
            known = self.frozen.get(node.id, MISSING)  # of an attribute as well: Side.BUY
            return look_up(self.function, node.id) if known is MISSING else known
        if isinstance(node, ast.Attribute):
            owner = self.value(node.value)
            return MISSING if owner is MISSING else getattr(owner, node.attr, MISSING)
        return MISSING

    # ---- patterns ----

    def in_Match(self, around: ast.Match, node: ast.expr, use: _Use) -> None:
        for case in around.cases:
            self.match(case.pattern, use)

    def match(self, pattern: ast.pattern, use: _Use) -> None:
        """What a pattern does with it."""
        if isinstance(pattern, ast.MatchOr):
            for one in pattern.patterns:
                self.match(one, use)
        elif isinstance(pattern, ast.MatchAs):
            if pattern.pattern is not None:
                self.match(pattern.pattern, use)
            if pattern.name is not None:
                use.names.add((self.function, pattern.name))
        elif isinstance(pattern, ast.MatchValue):
            literal = self.literal(pattern.value)
            if literal is None:
                use.needs_code = True
            else:
                use.literals.add(literal)
        elif not (isinstance(pattern, ast.MatchSingleton) and pattern.value is None):
            use.needs_code = True

    def match_part(self, pattern: ast.pattern, at: int, count: int, use: _Use) -> None:
        """Likewise with one of the parts of a tuple that is matched."""
        if isinstance(pattern, ast.MatchOr):
            for one in pattern.patterns:
                self.match_part(one, at, count, use)
        elif isinstance(pattern, ast.MatchSequence) and len(pattern.patterns) == count:
            if any(isinstance(one, ast.MatchStar) for one in pattern.patterns):
                use.needs_code = True
            else:
                self.match(pattern.patterns[at], use)
        elif not isinstance(pattern, ast.MatchAs) or (pattern.name or pattern.pattern) is not None:
            use.needs_code = True

    # ---- calls ----

    def in_keyword(self, around: ast.keyword, node: ast.expr, use: _Use) -> None:
        call = self.parents[around]
        if isinstance(call, ast.Call) and around.arg is not None:
            self.given(call, around.arg, use)
        else:
            use.needs_code = True

    def in_Call(self, around: ast.Call, node: ast.expr, use: _Use) -> None:
        if node is around.func:
            use.needs_code = True
        else:
            self.given(around, around.args.index(node), use)

    def given(self, call: ast.Call, place: int | str, use: _Use) -> None:
        """It is an argument."""
        if isinstance(self.parents[call], ast.Raise):
            self.said(use)
            return
        callee = call.func
        if self.is_global(callee):
            called = look_up(self.function, callee.id)  # type: ignore[attr-defined]
            if called is builtins.bool:
                use.literals.add("")
            else:
                self.passed(called, call, place, use)
        elif isinstance(callee, ast.Attribute) and callee.attr == "get" and place == 0:
            self.looked_up(callee.value, use)
        else:
            use.needs_code = True

    def passed(self, called: Any, call: ast.Call, place: int | str, use: _Use) -> None:
        """To a helper, whose parameter has it."""
        known = isinstance(called, types.FunctionType) and called in self.functions
        if not known or any(isinstance(one, ast.Starred) for one in call.args):
            use.needs_code = True
            return
        parameters = parameters_of(self.functions[called][0].tree.args)
        if isinstance(place, str):
            given = [place] if place in parameters.keyword else []
        else:
            given = list(parameters.positional[place : place + 1])
        use.needs_code |= not given
        use.names.update((called, name) for name in given)

    def in_Subscript(self, around: ast.Subscript, node: ast.expr, use: _Use) -> None:
        if node is around.slice and isinstance(around.ctx, ast.Load):
            self.looked_up(around.value, use)
            self.said(use)  # by the KeyError
        else:
            use.needs_code = True

    def looked_up(self, table: ast.expr, use: _Use) -> None:
        """It is looked up in a dict of a module."""
        value = self.frozen.get(table.id) if self.is_global(table) else None  # type: ignore[attr-defined]
        literals = self.literals_in(table) if isinstance(value, FrozenDict) else None
        if literals is None:
            use.needs_code = True
        else:
            use.literals.update(literals)

    # ---- what an exception is made of ----

    def in_JoinedStr(self, around: ast.JoinedStr, node: ast.expr, use: _Use) -> None:
        self.in_said(around, use)

    def in_FormattedValue(self, around: ast.FormattedValue, node: ast.expr, use: _Use) -> None:
        self.in_said(around, use)

    def in_said(self, node: ast.expr, use: _Use) -> None:
        """It is part of a formatted string, which only Python makes if it is of an exception."""
        outer = list(self.outwards(node))
        call = next((one for one in outer if isinstance(one, ast.Call | ast.Assert)), None)
        inside = outer[: outer.index(call)] if call is not None else outer
        is_text = all(isinstance(one, ast.JoinedStr | ast.FormattedValue) for one in inside)
        is_raised = isinstance(call, ast.Call) and isinstance(self.parents[call], ast.Raise)
        if is_text and (is_raised or isinstance(call, ast.Assert)):
            self.said(use)
        else:
            use.needs_code = True

    def outwards(self, node: ast.AST) -> Iterator[ast.AST]:
        while (around := self.parents.get(node)) is not None:
            yield around
            node = around

    def said(self, use: _Use) -> None:
        """The oracle makes the exception, of the texts. One that is caught may be made later."""
        use.needs_code |= self.catches
