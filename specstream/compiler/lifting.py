"""Lifts what depends on the event alone and cannot be compiled out of an operator's functions.

``event.key.startswith("EU")`` becomes ``event.__ss_derived_0``, a column that nobody else sees, and
a function of the event's columns that Python calls for each distinct key before the operator runs
(:mod:`specstream.columns.derived`). That happens to the syntax tree, before anything else is done
with it, so that the oracle and compiled code read the same column.

Lifted is the smallest expression that cannot be compiled and that gives what a column can hold
(:mod:`specstream.compiler.event_alone`). Conditions around it that depend on nothing else than it
does itself go along, so that nothing is computed, and no exception is made, where the operator
never gets. They only save work: an exception is raised where the operator gets to it.
"""

from __future__ import annotations

import ast
import builtins
import copy
import difflib
import inspect
import operator
import types
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np

from specstream.columns.derived import UNREACHED
from specstream.compiler import value_types as of
from specstream.compiler.analysis import Analysis, FunctionSource
from specstream.compiler.event_alone import (
    EVENT,
    MISSING,
    STATE,
    EventAlone,
    declared_type,
    look_up,
)
from specstream.compiler.flow import check_definite_assignment
from specstream.compiler.forms import EmittedForm, form_of
from specstream.compiler.lifted_lists import Guard, ListLifting
from specstream.compiler.lifted_loops import NAMES, taken_apart
from specstream.compiler.lifted_loops import at_place as _at
from specstream.compiler.list_use import is_list, list_part
from specstream.compiler.loop_names import tell_apart
from specstream.compiler.scopes import COMPREHENSIONS
from specstream.compiler.value_types import ANY, BOOL, FLOAT, INT, STR, Type
from specstream.declarations.derived import Derived, Part, name_of
from specstream.declarations.forms import Form
from specstream.declarations.pure import Pure, pure_mark

__all__ = ["Lifting"]

Unpack = tuple[int, int | None]
"""How many names a value is taken apart into, and which of them has a star."""


class Lifting:
    """What is lifted out of an operator's functions.

    Args:
        analysis: of the operator.
        parse: gives the source of a function.

    Attributes:
        derived: the values that are derived, in the order in which they are computed.
        forms: formatted strings of more than the event, which are emitted as their parts.
    """

    def __init__(
        self, analysis: Analysis, parse: Callable[[types.FunctionType], FunctionSource]
    ) -> None:
        self.analysis = analysis
        self.parse = parse
        self.derived: list[Derived] = []
        self.forms: list[Form] = []
        self.events: dict[types.FunctionType, frozenset[str]] = {}
        self._known: dict[Any, int] = {}

    def begin(self, function: types.FunctionType) -> None:
        """Finds out which parameters of the operator's functions are the event."""
        sites: dict[types.FunctionType, list[tuple[types.FunctionType, ast.Call]]] = {}
        _collect(function, self.parse, sites, [])
        parameters = list(inspect.signature(function).parameters)
        self.events[function] = frozenset(parameters[1:2])
        for callee in sites:
            self._events_of(callee, sites)

    def _events_of(
        self,
        function: types.FunctionType,
        sites: dict[types.FunctionType, list[tuple[types.FunctionType, ast.Call]]],
    ) -> frozenset[str]:
        """Parameters that are the event wherever the function is called."""
        if function not in self.events:
            self.events[function] = frozenset()  # one that calls itself is refused elsewhere
            names = list(inspect.signature(function).parameters)
            found = set(names)
            for caller, call in sites.get(function, []):
                events = self._events_of(caller, sites)
                given = dict(zip(names, call.args, strict=False))
                given |= {one.arg: one.value for one in call.keywords if one.arg}
                found &= {
                    name
                    for name, value in given.items()
                    if isinstance(value, ast.Name) and value.id in events
                }
            self.events[function] = frozenset(found)
        return self.events[function]

    def lift(self, source: FunctionSource) -> dict[str, Any]:
        """Lifts what there is in a function, and changes its tree; gives the names it uses."""
        events = self.events.get(source.original, frozenset())
        stored = {
            node.id
            for node in ast.walk(source.tree)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }
        events -= stored
        if not events and not any(
            isinstance(node, ast.JoinedStr) for node in ast.walk(source.tree)
        ):
            return {}
        tell_apart(source.tree)
        return _Function(self, source, events).lift()

    def add(self, derived: Derived, key: Any) -> int:
        """The number of a derived value; one that is there already is not computed again."""
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = len(self.derived)
            self.derived.append(replace(derived, status=self.analysis.errors.status_of))
        return known


def _collect(
    function: types.FunctionType,
    parse: Callable[[types.FunctionType], FunctionSource],
    sites: dict[types.FunctionType, list[tuple[types.FunctionType, ast.Call]]],
    seen: list[types.FunctionType],
) -> None:
    """All calls of plain functions, from an operator's function on."""
    if function in seen:
        return
    seen.append(function)
    for node in ast.walk(parse(function).tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            callee = look_up(function, node.func.id)
            if isinstance(callee, types.FunctionType) and pure_mark(callee) is None:
                sites.setdefault(callee, []).append((function, node))
                try:
                    _collect(callee, parse, sites, seen)
                except Exception:  # whoever compiles it says what is wrong
                    continue


class _Function(ListLifting):
    """Lifts out of one function."""

    def __init__(self, lifting: Lifting, source: FunctionSource, events: frozenset[str]) -> None:
        self.lifting = lifting
        self.source = source
        self.event = min(events, default="")
        self.alone = EventAlone(source, lifting.analysis.event, events, {}, lifting.parse)
        self.guards: list[Guard] = []
        self.names: dict[str, Any] = {}
        self.dropped: dict[str, Type] = {}
        self.used: set[str] = set()  # local names that stand in something lifted
        self.of_name: dict[str, int] = {}
        self.says = False  # what is gone through is what an exception is made of
        self.guards_of: dict[str, list[Guard]] = {}
        super().__init__()

    def lift(self) -> dict[str, Any]:
        tree = self.source.tree
        original = copy.deepcopy(tree)
        tree.body = self.block(tree.body)
        check_definite_assignment(
            original,
            frozenset(self.used),
            lambda node, name: self.refuse(
                node,
                f"{name!r} may be undefined here",
                f"assign {name!r} on every path before, for instance at the top of the function",
            ),
        )
        self.keep_lists(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and node.id in self.dropped:
                self.refuse(
                    node,
                    f"{node.id!r} is a {of.described(self.dropped[node.id])}, which only Python "
                    "has, and stands where compiled code needs it",
                    "take out of it what is needed, by what depends on the event alone: "
                    f"first = {node.id}[0]",
                )
        return self.names

    def refuse(self, node: ast.AST, problem: str, way_out: str) -> NoReturn:
        self.lifting.analysis.refuse(self.source, node, problem, way_out)

    # ---- statements ----

    def block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """Statements one after the other; a condition that leaves guards those behind it."""
        depth = len(self.guards)
        done: list[ast.stmt] = []
        for statement in body:
            test = copy.deepcopy(statement.test) if isinstance(statement, ast.If) else None
            original = statement.test if isinstance(statement, ast.If) else None
            result = self.visit(statement)
            done += result if isinstance(result, list) else [result]
            if test is not None and isinstance(statement, ast.If):
                leaves = isinstance(
                    statement.body[-1], ast.Return | ast.Raise | ast.Continue | ast.Break
                )
                if leaves and not statement.orelse and original is not None:
                    self.guards.append((original, False))
        del self.guards[depth:]
        return done

    def visit_If(self, node: ast.If) -> ast.stmt:
        test = node.test
        node.test = self.truth(test)
        node.body = self.guarded(node.body, (test, True))
        node.orelse = self.guarded(node.orelse, (test, False))
        return node

    def guarded(self, body: list[ast.stmt], guard: Guard) -> list[ast.stmt]:
        self.guards.append(guard)
        body = self.block(body)
        self.guards.pop()
        return body

    def visit_While(self, node: ast.While) -> ast.stmt:
        node.test = self.truth(node.test)
        node.body, node.orelse = self.block(node.body), self.block(node.orelse)
        return node

    def visit_For(self, node: ast.For) -> ast.stmt:
        if self.alone.goes_through(node) is not None:
            return self.loop(node)
        found = self.alone.of(node.iter)
        iterated = of.required(found.type)
        is_left = self.is_left(node.iter)
        if found.depends == EVENT and (iterated == STR or (found.compiled is None and not is_left)):
            self.refuse(
                node,
                f"a loop over {ast.unparse(node.iter)}, {of.described(found.type)}, which only "
                "Python has",
                "let Python count or choose in one expression, like sum(x.isdigit() for x in "
                "event.key), or give the table a row for each",
            )
        node.iter = self.expression(node.iter)
        node.target = self.expression(node.target)
        node.body, node.orelse = self.block(node.body), self.block(node.orelse)
        return node

    def visit_With(self, node: ast.With) -> ast.stmt:
        for item in node.items:
            item.context_expr = self.expression(item.context_expr)
        node.body = self.block(node.body)
        return node

    def visit_Try(self, node: ast.Try) -> ast.stmt:
        node.body, node.orelse = self.block(node.body), self.block(node.orelse)
        node.finalbody = self.block(node.finalbody)
        for handler in node.handlers:
            handler.body = self.block(handler.body)
        return node

    def visit_Match(self, node: ast.Match) -> ast.stmt:
        node.subject = self.expression(node.subject)
        for case in node.cases:
            case.guard = None if case.guard is None else self.truth(case.guard)
            case.body = self.block(case.body)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        # Its parameters are nobody's but its own: only what names nothing of it is lifted.
        guards, self.guards = self.guards, []
        node.body = self.block(node.body)
        self.guards = guards
        return node

    def visit_Raise(self, node: ast.Raise) -> ast.stmt:
        for made in (node.exc, node.cause):
            if isinstance(made, ast.Call):
                made.args = list(map(self.said, made.args))
                for keyword in made.keywords:
                    keyword.value = self.said(keyword.value)
        return node

    def visit_Assert(self, node: ast.Assert) -> ast.stmt:
        node.test = self.truth(node.test)
        node.msg = None if node.msg is None else self.said(node.msg)
        return node

    def said(self, node: ast.expr) -> ast.expr:
        """What an exception is made of. The oracle makes it, with formatted strings of anything."""
        self.says = True
        if isinstance(node, ast.JoinedStr):
            node = copy.copy(node)
            node.values = list(map(self.said, node.values))
        elif isinstance(node, ast.FormattedValue):
            node = copy.copy(node)
            node.value = self.expression(node.value)
        elif not isinstance(node, ast.Constant):
            node = self.expression(node)
        self.says = False
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.stmt:
        return self.assigned(node, node.targets, None)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        if node.value is None:
            return node
        return self.assigned(node, [node.target], declared_type(node))

    def assigned(
        self, node: ast.Assign | ast.AnnAssign, targets: list[ast.expr], annotation: Any
    ) -> ast.stmt:
        assert node.value is not None
        found = self.alone.of(node.value)
        target = targets[0]
        for one in ast.walk(ast.Tuple(targets)):
            if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store):
                self.guards_of[one.id] = list(self.guards)
        is_ours = found.compiled is not None and not found.is_lifted
        if found.is_bound and not is_ours:
            return self.of_element(node, targets, found)
        is_one = not isinstance(target, ast.Tuple | ast.List)
        if found.depends != EVENT or is_ours or (is_one and self.is_left(node.value)):
            node.value = self.expression(node.value)
            for part in targets:
                self.visit_parts(part)
            if isinstance(node, ast.AnnAssign) and found.is_lifted:
                return ast.copy_location(ast.Assign([target], node.value), node)
            return node
        declared = None if annotation is None else of.annotated(annotation)
        if annotation is not None and declared is None:
            self.refuse(
                node,
                f"the annotation {ast.unparse(annotation)} of what Python computes",
                "annotate it int, float, bool, str, a tuple or list of these, or one of these or "
                "None",
            )
        given = declared or found.type
        names = list(target.elts) if isinstance(target, ast.Tuple | ast.List) else []
        stars = [at for at, one in enumerate(names) if isinstance(one, ast.Starred)]
        star = stars[0] if stars else None
        if names:
            parts = [self.alone.item(given, at, len(names), star) for at in range(len(names))]
            given = of.tuple_of(*parts)
        if of.is_column(given) or (star is not None and all(map(_is_held, given.of))):
            self.drop_assigned(node.value)
            unpack = (len(names), star) if names else (0, None)
            if star is not None:
                names = [one.value if isinstance(one, ast.Starred) else one for one in names]
                target = ast.copy_location(ast.Tuple(names, ast.Store()), target)
                targets = [target]
                node.targets = targets  # type: ignore[union-attr]
            number = self.seen(node.value, given, unpack)
            node.value = self.lifted(node.value, given, unpack)
            for part in targets:
                self.visit_parts(part)
                if isinstance(part, ast.Name) and part.id in self.alone.bindings:
                    self.of_name[part.id] = number
            for at, part in enumerate(names):
                if isinstance(part, ast.Name) and part.id in self.alone.bindings:
                    self.of_name[part.id] = self.item(number, at)
            if isinstance(node, ast.AnnAssign):
                return ast.copy_location(ast.Assign([target], node.value), node)
            return node
        held = [one for one in targets if isinstance(one, ast.Name)]
        is_known = len(held) == len(targets) and all(
            one.id in self.alone.bindings and self.alone.of_local(one.id).depends == EVENT
            for one in held
        )
        if is_list(given) and self.alone.kind_of(node.value) == "list" and not is_known:
            node.value = self.lifted(node.value, given)
            for part in targets:
                self.visit_parts(part)
            if isinstance(node, ast.AnnAssign):
                return ast.copy_location(ast.Assign([target], node.value), node)
            return node
        if len(held) != len(targets) or not all(one.id in self.alone.bindings for one in held):
            self.unknown(node.value, given)
        for one in held:
            self.dropped[one.id] = given
        # The names are gone: what stands for the value is made by those who use it. What it
        # raises, it raises here.
        number = self.seen(node.value, None)
        for one in held:
            self.of_name[one.id] = number
        check = ast.Attribute(ast.Name(self.event, ast.Load()), name_of(number), ast.Load())
        made: ast.stmt = _at(ast.If(check, [ast.Pass()], []), node)
        if is_list(given) and self.alone.kind_of(node.value) == "list":
            self.lists |= {one.id: (made, node, given) for one in held}
        return made

    def visit_parts(self, target: ast.expr) -> None:
        """What the target of an assignment reads."""
        if isinstance(target, ast.Subscript):
            target.value, target.slice = (
                self.expression(target.value),
                self.expression(target.slice),
            )
        elif isinstance(target, ast.Tuple | ast.List):
            for one in target.elts:
                self.visit_parts(one)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        node.value = self.expression(node.value)
        self.visit_parts(node.target)
        return node

    def visit_Return(self, node: ast.Return) -> ast.stmt:
        if node.value is not None:
            node.value = self.expression(node.value)
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        if not isinstance(node.value, ast.Constant):
            node.value = self.expression(node.value)
        return node

    # ---- expressions ----

    def expression(self, node: ast.expr) -> ast.expr:
        """An expression, with reads of hidden columns in place of what is lifted."""
        self.alone.of(node)
        return self.rewritten(node)

    def truth(self, node: ast.expr) -> ast.expr:
        """The same for one of which only the truth matters."""
        self.alone.truth(node)
        return self.rewritten(node)

    def rewritten(self, node: ast.expr) -> ast.expr:
        """A copy: what is known of an expression is known of the nodes that it was written as."""
        found = self.alone.found.get(node)
        if found is not None and found.is_lifted:
            self.drop_assigned(node)
            given = BOOL if node in self.alone.truths else found.type
            return self.item_read(node, given) if found.is_bound else self.lifted(node, given)
        if found is not None and self.is_hidden_list(node):
            return self.list_read(node)
        if isinstance(node, COMPREHENSIONS) and (
            self.alone.goes_through(node.generators[0]) is not None
        ):
            return self.comprehension(node)
        if (
            found is not None
            and found.compiled is None
            and not found.is_bound
            and not self.is_left(node)
        ):
            self.cannot(node, found.depends, found.type)
        if isinstance(node, ast.BoolOp):
            return self.bool_op(node)
        made = copy.copy(node)
        if isinstance(node, ast.Call) and self.is_emit(node.func):
            return self.emitted(node)
        if isinstance(node, ast.IfExp):
            assert isinstance(made, ast.IfExp)
            made.test = self.rewritten(node.test)
            made.body = self.under(node.body, (node.test, True))
            made.orelse = self.under(node.orelse, (node.test, False))
            return made
        changed: ast.expr = self.with_parts(made)
        return changed

    def is_emit(self, callee: ast.expr) -> bool:
        return isinstance(callee, ast.Name) and callee.id in self.source.parameters

    def emitted(self, node: ast.Call) -> ast.expr:
        """A call of emit: formatted strings are given as their parts."""
        columns = dict(self.lifting.analysis.emits)
        given = [*zip(columns, node.args, strict=False)]
        given += [(one.arg or "", one.value) for one in node.keywords]
        made = copy.copy(node)
        made.args, made.keywords = list(node.args), list(map(copy.copy, node.keywords))
        values = [
            self.form(name, value)
            if isinstance(value, ast.JoinedStr) and self.alone.of(value).compiled is None
            else self.rewritten(value)
            for name, value in given
        ]
        extra = [self.rewritten(one) for one in node.args[len(columns) :]]  # to be refused
        made.args = values[: len(node.args)] + extra
        for keyword, value in zip(made.keywords, values[len(node.args) :], strict=False):
            keyword.value = value
        return made

    def form(self, name: str, node: ast.JoinedStr) -> ast.expr:
        """A formatted string that is emitted into a column."""
        columns = dict(self.lifting.analysis.emits)
        if name in columns and columns[name].kind != "str":
            self.refuse(
                node,
                f"emitted column {name!r} is declared {columns[name]} and gets a formatted string",
                "emit it into a column that is declared str",
            )
        try:
            form, parts = form_of(node, name, self.source.filename)
        except ValueError as error:
            problem, _, way_out = str(error).partition(": ")
            self.refuse(node, problem, way_out)
        self.lifting.forms.append(form)
        made = EmittedForm([self.rewritten(part) for part in parts], ast.Load())
        made.number = len(self.lifting.forms) - 1
        placed: ast.expr = ast.copy_location(made, node)
        return placed

    def with_parts(self, made: Any) -> Any:
        """Changes the parts of a copy to what they are rewritten to."""
        for name, value in ast.iter_fields(made):
            if isinstance(value, list):
                setattr(made, name, [self.part(one) for one in value])
            else:
                setattr(made, name, self.part(value))
        return made

    def part(self, node: Any) -> Any:
        if isinstance(node, ast.expr):
            return self.rewritten(node)
        if isinstance(node, ast.keyword | ast.comprehension):
            return self.with_parts(copy.copy(node))
        return node

    def bool_op(self, node: ast.BoolOp) -> ast.expr:
        depth, holds = len(self.guards), isinstance(node.op, ast.And)
        made = copy.copy(node)
        made.values = []
        for value in node.values:
            made.values.append(self.rewritten(value))
            self.guards.append((value, holds))
        del self.guards[depth:]
        return made

    def under(self, node: ast.expr, guard: Guard) -> ast.expr:
        self.guards.append(guard)
        node = self.rewritten(node)
        self.guards.pop()
        return node

    def drop_assigned(self, node: ast.expr) -> None:
        """Names that are assigned within something lifted are gone."""
        for part in ast.walk(node):
            if isinstance(part, ast.NamedExpr):
                self.dropped[part.target.id] = self.alone.of(part.value).type

    def cannot(self, node: ast.expr, depends: int, given: Type) -> None:
        """Refuses what neither Python nor compiled code can compute, if that is certain."""
        if depends == EVENT:
            self.unknown(node, given)
        if depends != STATE or self.says:
            return
        if isinstance(node, ast.JoinedStr):
            self.refuse(
                node,
                f"a formatted string cannot stand here: {self.culprit(node)} is known only when "
                "the event runs",
                "format what depends on the event alone, or emit the string into a column that is "
                'declared str: emit(f"...")',
            )
        parts = [one for one in ast.iter_child_nodes(node) if isinstance(one, ast.expr)]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            parts.append(node.func.value)
        found = [self.alone.found.get(one) for one in parts]
        if any(one and one.depends < STATE and of.required(one.type) == STR for one in found):
            self.refuse(
                node,
                f"{ast.unparse(node)}, of a string, cannot be computed before the operator runs: "
                f"{self.culprit(node)} is known only when the event runs",
                "let it depend on the event alone; with strings of the state operators do ==, !=, "
                "`in` a tuple, and tests of truth",
            )

    def culprit(self, node: ast.expr) -> str:
        """The first part that depends on more than the event, as it was written."""
        for part in ast.iter_child_nodes(node):
            found = self.alone.found.get(part) if isinstance(part, ast.expr) else None
            if found is not None and found.depends == STATE:
                assert isinstance(part, ast.expr)
                is_whole = isinstance(part, ast.Attribute | ast.Subscript | ast.Call | ast.Name)
                return ast.unparse(part) if is_whole else self.culprit(part)
        return ast.unparse(node)

    def unknown(self, node: ast.expr, given: Type) -> NoReturn:
        text = ast.unparse(node)
        self.refuse_misspelt(node)
        if given == ANY or ANY in given.of:
            self.refuse(
                node,
                f"{text} is computed by Python before the operator runs, and what it gives is not "
                "known",
                "annotate it where it is assigned, like name: float = ..., or call a function "
                "marked @ss.pure that says what it returns",
            )
        self.refuse(
            node,
            f"{text} is a {of.described(given)}, which only Python has",
            "take out of it what is needed, as an int, float, bool, str, or a tuple or list of "
            "these",
        )

    def refuse_misspelt(self, node: ast.expr) -> None:
        """A name that a module has not: Python would say so only when the operator gets there."""
        for part in ast.walk(node):
            if not (isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name)):
                continue
            module = look_up(self.source.original, part.value.id)
            if isinstance(module, types.ModuleType) and not hasattr(module, part.attr):
                near = difflib.get_close_matches(part.attr, dir(module), 1)
                self.refuse(
                    node,
                    f"module {module.__name__!r} has no {part.attr!r}",
                    f"write {part.value.id}.{near[0]}" if near else "write a name that it has",
                )

    # ---- derived values ----

    def lifted(self, node: ast.expr, given: Type, unpack: Unpack = (0, None)) -> ast.expr:
        """The reads of hidden columns that stand for an expression."""
        number = self.seen(node, given, unpack)
        event = ast.Name(self.event, ast.Load())
        count = len(given.of) if given.name == "tuple" else 1
        if any(one.name == "list" for one in (given, *given.of)):
            self.uses_arena()
        reads: list[ast.expr] = [
            ast.Attribute(event, name_of(number, at), ast.Load()) for at in range(count)
        ]
        made = ast.Tuple(reads, ast.Load()) if given.name == "tuple" else reads[0]
        placed: ast.expr = _at(made, node)
        return placed

    def seen(self, node: ast.expr, given: Type | None, unpack: Unpack = (0, None)) -> int:
        """The derived value of an expression that the operator gets to; None: no column has it."""
        is_tuple = given is not None and given.name == "tuple"
        columns = () if given is None else given.of if is_tuple else (given,)
        shape = Shape(tuple(map(_part, columns)), is_tuple, True)
        return self.derive(node, shape, node in self.alone.truths, unpack)

    def derive(
        self,
        node: ast.expr,
        shape: Shape,
        is_truth: bool = False,
        unpack: Unpack = (0, None),
    ) -> int:
        """The number of the derived value that Python makes of an expression."""
        made = Made(self.source)
        body = self.python(node, made)
        if is_truth:
            body = ast.Call(ast.Name("__ss_bool", ast.Load()), [body], [])
        return self.function(node, body, made, shape, self.guarding(node, made), unpack)

    def uses_arena(self) -> None:
        self.lifting.analysis.uses_arena = True

    def nothing_made(self) -> Made:
        return Made(self.source)

    def made(
        self,
        node: ast.expr,
        body: ast.expr,
        made: Any,
        parts: tuple[Part, ...],
        guards: list[ast.expr],
    ) -> int:
        return self.function(node, body, made, Shape(parts, False, True), guards)

    def function(
        self,
        node: ast.expr,
        body: ast.expr,
        made: Made,
        shape: Shape,
        guards: list[ast.expr],
        unpack: Unpack = (0, None),
    ) -> int:
        """The same, of the expression for Python and of what it is made of."""
        function, key = made.function(_at(body, node), guards, unpack)
        self.names |= made.names
        derived = Derived(
            text=ast.unparse(node),
            inputs=tuple(made.inputs.values()),
            parts=shape.parts,
            is_tuple=shape.is_tuple,
            is_seen=shape.is_seen,
            function=function,
        )
        return self.lifting.add(derived, (key, shape))

    def guarding(self, node: ast.expr, made: Made) -> list[ast.expr]:
        """The conditions that go along with an expression, each under those before it."""
        guards, self.guards = self.guards, []
        found = []
        for test, holds in guards:
            if self.symbols(test) <= self.symbols(node) and self.is_safe(test):
                condition = self.python(test, made)
                found.append(condition if holds else ast.UnaryOp(ast.Not(), condition))
            self.guards.append((test, holds))
        return found

    def symbols(self, node: ast.expr) -> set[str]:
        """What of the event, and which local names, an expression has in it."""
        found = set()
        for part in ast.walk(node):
            if isinstance(part, ast.Attribute) and self.alone.is_event(part.value):
                found.add(f"event {part.attr}")
            elif isinstance(part, ast.Call) and self.is_null(part):
                found.add(f"event {ast.literal_eval(part.args[0])}")
            elif isinstance(part, ast.Name) and part.id in self.alone.bindings:
                found.add(part.id)
        return found - {"event is_null"}

    def is_null(self, node: ast.Call) -> bool:
        callee = node.func
        return (
            isinstance(callee, ast.Attribute)
            and callee.attr == "is_null"
            and self.alone.is_event(callee.value)
        )

    def is_safe(self, node: ast.expr) -> bool:
        """Whether a condition is for Python what it is for compiled code: there integers wrap, and
        a null is a zero."""
        found = self.alone.found.get(node)
        if found is None or found.depends == STATE or found.is_bound:
            return False
        if found.is_lifted or isinstance(node, ast.Constant):
            return True
        if isinstance(node, ast.BoolOp | ast.IfExp | ast.Compare) or (
            isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
        ):
            parts = [one for one in ast.iter_child_nodes(node) if isinstance(one, ast.expr)]
            return all(map(self.is_safe, parts))
        if isinstance(node, ast.Attribute):
            return self.alone.is_event(node.value) and found.type in (INT, FLOAT, BOOL, STR)
        return isinstance(node, ast.Call) and self.is_null(node)

    def local(self, name: str) -> int:
        """The derived value of a local name; what guards it is what guards its assignment."""
        self.used.add(name)
        if name not in self.of_name:
            binding = self.alone.bindings[name]
            guards, self.guards = self.guards, self.guards_of.get(name, [])
            held = Shape((), False, False)
            if binding.at is None:
                self.of_name[name] = self.derive(binding.value, held)
            else:
                at, count = binding.at
                whole = self.derive(binding.value, held, unpack=(count, binding.star))
                self.of_name[name] = self.item(whole, at)
            self.guards = guards
        return self.of_name[name]

    def item(self, whole: int, at: int) -> int:
        """The derived value that is an element of another."""
        derived = Derived(f"[{at}]", (whole,), is_seen=False, function=operator.itemgetter(at))
        return self.lifting.add(derived, ("item", whole, at))

    # ---- the same expression for Python ----

    def python(self, node: Any, made: Made) -> Any:
        """A copy of an expression, over the inputs of a derived value."""
        if isinstance(node, ast.Attribute) and self.alone.is_event(node.value):
            return made.input(f"__ss_column_{node.attr}", node.attr)
        if isinstance(node, ast.Name):
            return self.python_name(node, made)
        if isinstance(node, ast.NamedExpr):
            self.used.add(node.target.id)
            return self.python(node.value, made)
        if isinstance(node, ast.Call):
            if self.is_null(node):
                column = str(ast.literal_eval(node.args[0]))
                value = made.input(f"__ss_column_{column}", column)
                return ast.Compare(value, [ast.Is()], [ast.Constant(None)])
            mark = pure_mark(self.alone.constant(node.func))
            if mark is not None and not self.alone.of(node).is_bound:
                number = self.called(node, mark)
                return made.input(f"__ss_call_{number}", number)
        copied = copy.copy(node)
        for name, value in ast.iter_fields(node):
            if isinstance(value, list):
                setattr(copied, name, [self.python_part(one, made) for one in value])
            else:
                setattr(copied, name, self.python_part(value, made))
        found = self.alone.found.get(node) if isinstance(node, ast.expr) else None
        is_computed = isinstance(node, ast.BinOp | ast.UnaryOp | ast.Call)
        if found is not None and is_computed and found.type == INT:
            copied = ast.Call(ast.Name("__ss_exact", ast.Load()), [copied], [])
        return copied

    def python_part(self, node: Any, made: Made) -> Any:
        is_code = isinstance(node, ast.expr | ast.keyword | ast.comprehension | ast.arguments)
        return self.python(node, made) if is_code else node

    def python_name(self, node: ast.Name, made: Made) -> ast.expr:
        name = node.id
        if not isinstance(node.ctx, ast.Load):
            return node
        binding = self.alone.bindings.get(name)
        if binding is not None and self.alone.of(node).bound:
            if binding.loop is not None:
                return ast.copy_location(ast.Name(name, ast.Load()), node)
            self.used.add(name)
            inside = self.python(binding.value, made)
            return inside if binding.at is None else taken_apart(inside, *binding.at, binding.star)
        if binding is not None:
            self.used.add(name)
            is_simple = isinstance(binding.value, ast.Constant | ast.Name | ast.Attribute)
            if binding.at is None and is_simple and name not in self.of_name:
                inlined: ast.expr = self.python(binding.value, made)
                return inlined
            return made.input(f"__ss_local_{name}", self.local(name))
        if name not in self.alone.locals:
            made.use(name)
        return node

    def argument(self, node: ast.expr) -> str | int:
        """What a function that is marked as pure is given."""
        if isinstance(node, ast.Attribute) and self.alone.is_event(node.value):
            return node.attr
        return self.derive(node, Shape((), False, False))

    def called(self, node: ast.Call, mark: Pure) -> int:
        """The derived value of a call of a function that is marked as pure."""
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
        if any(isinstance(one, ast.Starred) for one in given):
            self.refuse(node, f"{ast.unparse(node)} has a *", "write the arguments out")
        names = tuple(keyword.arg or "" for keyword in node.keywords)
        if mark.is_batch and names:
            self.refuse(
                node,
                f"{ast.unparse(node.func)} takes columns, and gets them by keyword",
                "give them by position",
            )
        # No conditions go along: one call for each distinct combination of arguments, or one for
        # the whole batch, wherever it stands.
        guards, self.guards = self.guards, []
        inputs = tuple(map(self.argument, given))
        self.guards = guards
        function = mark.function if not names else _by_keyword(mark.function, names)
        derived = Derived(
            ast.unparse(node), inputs, is_seen=False, is_batch=mark.is_batch, function=function
        )
        constant = self.alone.constant(node.func)
        root = next(one for one in ast.walk(node.func) if isinstance(one, ast.Name))
        self.names[root.id] = look_up(self.source.original, root.id)
        return self.lifting.add(derived, ("call", id(constant), inputs, names))


@dataclass(frozen=True)
class Shape:
    """What a derived value is to an operator: see :class:`Derived`."""

    parts: tuple[Part, ...]
    is_tuple: bool
    is_seen: bool


class Made:
    """A function on its way to a derived value.

    Attributes:
        inputs: what its parameters are.
        names: the globals that it uses.
    """

    def __init__(self, source: FunctionSource) -> None:
        self.source = source
        self.inputs: dict[str, str | int] = {}
        self.names: dict[str, Any] = {}

    def input(self, name: str, value: str | int) -> ast.expr:
        self.inputs[name] = value
        return ast.Name(name, ast.Load())

    def use(self, name: str) -> None:
        value = look_up(self.source.original, name)
        if value is not MISSING and value is not getattr(builtins, name, MISSING):
            self.names[name] = _frozen(value)

    def function(
        self, body: ast.expr, guards: list[ast.expr], unpack: Unpack
    ) -> tuple[Callable[..., Any], Any]:
        """The function, and what tells it from others."""
        statements: list[ast.stmt] = []
        if guards:
            test = ast.BoolOp(ast.And(), guards) if len(guards) > 1 else guards[0]
            leave = ast.Return(ast.Name("__ss_unreached", ast.Load()))
            tried = ast.If(ast.UnaryOp(ast.Not(), test), [leave], [])
            # A condition that raises does so in the operator as well, before it gets here.
            kind = ast.Name("__ss_exception", ast.Load())
            handler = ast.ExceptHandler(kind, None, [leave])
            statements.append(ast.Try([tried], [handler], [], []))
        count, star = unpack
        if count:
            names = [f"__ss_part_{at}" for at in range(count)]
            stored: list[ast.expr] = [ast.Name(name, ast.Store()) for name in names]
            if star is not None:
                stored[star] = ast.Starred(stored[star], ast.Store())
            statements.append(ast.Assign([ast.Tuple(stored, ast.Store())], body))
            body = ast.Tuple([ast.Name(name, ast.Load()) for name in names], ast.Load())
        statements.append(ast.Return(body))
        parameters = [ast.arg(name) for name in self.inputs]
        arguments = ast.arguments([], parameters, None, [], [], None, [])
        original = self.source.original.__name__
        tree = ast.FunctionDef(original, arguments, statements, [])
        values = tuple((name, id(look_up(self.source.original, name))) for name in self.names)
        key = (ast.dump(tree), tuple(self.inputs.values()), values)
        for part in ast.walk(tree):
            if isinstance(part, ast.expr | ast.stmt | ast.arg | ast.ExceptHandler):
                ast.copy_location(part, body) if not hasattr(part, "lineno") else None
        module = ast.fix_missing_locations(ast.Module([tree], []))
        namespace = {
            **self.names,
            **NAMES,
            "__name__": self.source.original.__module__,
            "__ss_bool": bool,
            "__ss_exact": _exact,
            "__ss_unreached": UNREACHED,
            "__ss_exception": Exception,
        }
        exec(compile(module, self.source.filename, "exec"), namespace)
        return namespace[original], key


def _exact(value: Any) -> Any:
    """An integer as compiled code has it, where it would wrap."""
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise OverflowError(f"{value} does not fit 64 bits")
    return value


def _frozen(value: Any) -> Any:
    """A global as it is now."""
    is_changing = isinstance(value, list | dict | set | bytearray | np.ndarray)
    return copy.deepcopy(value) if is_changing else value


def _by_keyword(function: Callable[..., Any], names: tuple[str, ...]) -> Callable[..., Any]:
    def call(*values: Any) -> Any:
        positional = len(values) - len(names)
        return function(*values[:positional], **dict(zip(names, values[positional:], strict=True)))

    return call


def _is_held(given: Type) -> bool:
    return is_list(given) or of.is_scalar(of.required(given))


def _part(given: Type) -> Part:
    if given.name == "list":
        return list_part(given)
    kind: Any = of.required(given).name
    return Part(kind, given.name == "optional")
