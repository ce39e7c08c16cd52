"""From a rule's function to its formula."""

from __future__ import annotations

import ast
import builtins
import copy
import datetime
import functools
import inspect
import re
import types
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from specstream.compiler.language.definitions import definition_of
from specstream.compiler.language.hints import names_it_has
from specstream.declarations.options import nearest
from specstream.declarations.pure import pure_mark
from specstream.declarations.schema import EVENT_ATTRIBUTES, Schema
from specstream.errors import DeclarationError
from specstream.rules.formula import (
    FALSE,
    TRUE,
    Atom,
    Formula,
    Iff,
    Quantifier,
    Temporal,
    conjunction,
    disjunction,
    negation,
    variable,
)

__all__ = ["DEEPEST", "Parsed", "operators", "parsed", "temporal"]

DEEPEST = 64
"""Operators around one another."""
_FUNCTION = "a function of one event: def paid(e): ..., or lambda e: ..."
_INVERTED = {ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge"}
_RESERVED = frozenset(("state", "event", "emit", "timer", "key", "ss", "increment"))

operators: dict[Any, str] = {}
"""The functions that rules are written with, and their names."""


def temporal(function: Callable[..., Any]) -> Callable[..., Any]:
    """Marks a function as one that rules are written with."""
    operators[function] = function.__name__
    return function


@dataclass
class Parsed:
    """A rule's formula.

    Attributes:
        formula: over ``v0``.
        names: what other names in its conditions stand for.
    """

    formula: Formula
    names: dict[str, Any]


@dataclass(frozen=True)
class _Event:
    """A name of an event."""

    depth: int


@dataclass(frozen=True)
class _Value:
    """A name of a value: an expression that has been read already."""

    tree: ast.expr


@dataclass(frozen=True)
class _Part:
    """A name of what is read where it is used: a formula, or a function."""

    node: ast.expr | ast.FunctionDef
    scope: _Scope
    depth: int


@dataclass(frozen=True)
class _Scope:
    """What names stand for.

    Attributes:
        bound: those of the rule.
        outside: those of the file, for the rest.
        function: that is read.
    """

    bound: Mapping[str, Any]
    outside: Mapping[str, Any]
    function: str

    def with_names(self, **names: Any) -> _Scope:
        """A scope inside."""
        return _Scope({**self.bound, **names}, self.outside, self.function)


_MISSING = object()


@dataclass
class _Reader:
    rule: str
    columns: Mapping[str, Any]
    length: Callable[[str, Any], int]
    names: dict[str, Any] = field(default_factory=dict)
    of_object: dict[Any, str] = field(default_factory=dict)
    variables: set[str] = field(default_factory=set)
    reading: list[Any] = field(default_factory=list)
    line: int = 0
    taken: frozenset[str] = frozenset()

    # ---- errors ----

    def refuse(self, node: ast.AST | None, reason: str) -> NoReturn:
        line = getattr(node, "lineno", 0) or self.line
        raise DeclarationError(f"rule {self.rule!r}, line {line}: {reason}")

    # ---- names ----

    def found(self, node: ast.expr, scope: _Scope) -> Any:
        """The object that an expression names, or _MISSING."""
        if isinstance(node, ast.Name):
            if node.id in scope.bound:
                return _MISSING
            return scope.outside.get(node.id, getattr(builtins, node.id, _MISSING))
        if isinstance(node, ast.Attribute):
            of = self.found(node.value, scope)
            return _MISSING if of is _MISSING else getattr(of, node.attr, _MISSING)
        return _MISSING

    def named(self, wanted: str, value: Any) -> str:
        """A name for an object that conditions use."""
        same = isinstance(value, _Same)
        told_by: Any = (wanted, type(value.value), value.value) if same else id(value)
        known = self.of_object.get(told_by)
        if known is not None:
            return known
        name, count = wanted, 1
        taken = _RESERVED | self.taken | {*self.names, *dir(builtins), *self.columns}
        while name in taken or re.fullmatch(r"v\d+|each_\w+", name):
            if getattr(builtins, name, _MISSING) is value:
                return name
            count += 1
            name = f"{wanted}_{count}"
        self.names[name] = value
        self.of_object[told_by] = name
        return name

    # ---- what is temporal ----

    def is_temporal(self, node: ast.AST, scope: _Scope) -> bool:
        """Whether an expression has to do with other events."""
        for one in ast.walk(node):
            if isinstance(one, ast.Call) and self.calls_temporal(one, scope):
                return True
            if isinstance(one, ast.Name):
                bound = scope.bound.get(one.id)
                if isinstance(bound, _Part) and self.part_is_temporal(bound):
                    return True
        return False

    def part_is_temporal(self, part: _Part) -> bool:
        if id(part.node) in self.reading:
            return False
        self.reading.append(id(part.node))
        try:
            return self.is_temporal(part.node, part.scope)
        finally:
            self.reading.pop()

    def calls_temporal(self, node: ast.Call, scope: _Scope) -> bool:
        found = self.found(node.func, scope)
        try:
            if found in operators:
                return True
        except TypeError:
            return False
        return isinstance(found, types.FunctionType) and self.function_is_temporal(found)

    def function_is_temporal(self, function: types.FunctionType) -> bool:
        if pure_mark(function) is not None or function in self.reading:
            return False
        if str(function.__module__).split(".")[0] in ("specstream", "math", "numpy"):
            return False
        found = definition_of(function)
        if found is None:
            return False
        self.reading.append(function)
        try:
            return self.is_temporal(found.tree, _Scope({}, _outside(function), function.__name__))
        finally:
            self.reading.pop()

    # ---- formulas ----

    def formula(self, node: ast.expr, scope: _Scope, depth: int) -> Formula:
        """An expression's truth."""
        self.line = getattr(node, "lineno", self.line)
        written: dict[str, Any] = {"text": ast.unparse(node), "line": self.line}
        if isinstance(node, ast.Constant):
            return TRUE if node.value else FALSE
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return negation(self.formula(node.operand, scope, depth), **written)
        if isinstance(node, ast.BoolOp):
            given = tuple(self.formula(one, scope, depth) for one in node.values)
            made = conjunction if isinstance(node.op, ast.And) else disjunction
            return made(given, **written)
        if isinstance(node, ast.Name) and isinstance(scope.bound.get(node.id), _Part):
            part = scope.bound[node.id]
            if isinstance(part.node, ast.FunctionDef):
                self.refuse(node, f"{node.id} is a function; expected a truth value: call it")
            return self.formula(part.node, part.scope, part.depth)
        if isinstance(node, ast.IfExp) and self.is_temporal(node, scope):
            test, one, other = (
                self.formula(of, scope, depth) for of in (node.test, node.body, node.orelse)
            )
            return disjunction(
                (
                    conjunction((test, one), **written),
                    conjunction((negation(test), other), **written),
                ),
                **written,
            )
        if isinstance(node, ast.Compare) and self.is_temporal(node, scope):
            return self.compared(node, scope, depth, written)
        if isinstance(node, ast.Call):
            found = self.called(node, scope, depth, written)
            if found is not None:
                return found
        if self.is_temporal(node, scope):
            self.refuse(
                node,
                f"{ast.unparse(node)} makes a value of what other events say; expected truth "
                "values, put together by and, or, not, if else, comparisons, all and any",
            )
        return Atom(self.code(node, scope), **written)

    def compared(
        self, node: ast.Compare, scope: _Scope, depth: int, written: dict[str, Any]
    ) -> Formula:
        sides = [self.formula(one, scope, depth) for one in (node.left, *node.comparators)]
        found: list[Formula] = []
        for left, op, right in zip(sides, node.ops, sides[1:], strict=False):
            match op:
                case ast.Eq() | ast.Is():
                    found.append(Iff(left, right, **written))
                case ast.NotEq() | ast.IsNot():
                    alike = Iff(left, right, text=f"{left.text} == {right.text}", line=node.lineno)
                    found.append(negation(alike, **written))
                case ast.Lt():
                    found.append(conjunction((negation(left), right), **written))
                case ast.Gt():
                    found.append(conjunction((left, negation(right)), **written))
                case ast.LtE():
                    found.append(disjunction((negation(left), right), **written))
                case ast.GtE():
                    found.append(disjunction((left, negation(right)), **written))
                case _:
                    self.refuse(node, f"{ast.unparse(node)} is no comparison of truth values")
        return conjunction(tuple(found), **written)

    def called(
        self, node: ast.Call, scope: _Scope, depth: int, written: dict[str, Any]
    ) -> Formula | None:
        """A call of an operator, of ``all`` or ``any``, or of a helper that is written in."""
        if isinstance(node.func, ast.Name):
            part = scope.bound.get(node.func.id)
            if isinstance(part, _Part) and isinstance(part.node, ast.FunctionDef | ast.Lambda):
                inside = self.parameters(part.node, node, part.scope, scope, depth)
                return self.body(part.node, inside, depth)
        found = self.found(node.func, scope)
        try:
            name = operators.get(found)
        except TypeError:
            name = None
        if name == "implies":
            if len(node.args) != 2 or node.keywords:
                self.refuse(node, "implies takes two truth values: implies(a, b)")
            one, other = (self.formula(of, scope, depth) for of in node.args)
            if other == FALSE:
                return negation(one, **written)
            return disjunction((negation(one, text=one.text, line=one.line), other), **written)
        if name is not None:
            return self.operator(name, node, scope, depth, written)
        if found in (all, any) and self.is_temporal(node, scope):
            return self.quantifier(found is all, node, scope, depth, written)
        if found is bool and len(node.args) == 1 and self.is_temporal(node, scope):
            return self.formula(node.args[0], scope, depth)
        if isinstance(found, functools.partial):
            found_function, kept = found.func, found.keywords
            if found.args or not isinstance(found_function, types.FunctionType):
                return None
        else:
            found_function, kept = found, {}
        if isinstance(found_function, types.FunctionType) and self.function_is_temporal(
            found_function
        ):
            if found_function in self.reading:
                self.refuse(node, f"{found_function.__name__} calls itself")
            definition = definition_of(found_function)
            assert definition is not None
            own = self.own_scope(found_function, kept)
            inside = self.parameters(definition.tree, node, own, scope, depth)
            self.reading.append(found_function)
            try:
                return self.body(definition.tree, inside, depth)
            finally:
                self.reading.pop()
        return None

    def own_scope(self, function: types.FunctionType, kept: Mapping[str, Any] = {}) -> _Scope:
        """The scope of a function of the file: its defaults are the values that it has."""
        code = function.__code__
        names = code.co_varnames[: code.co_argcount]
        values = function.__defaults__ or ()
        given = dict(zip(names[len(names) - len(values) :], values, strict=True))
        given |= {**(function.__kwdefaults__ or {}), **kept}
        bound = {name: self.value_bound(name, value) for name, value in given.items()}
        return _Scope(bound, _outside(function), function.__name__)

    def value_bound(self, name: str, value: Any) -> Any:
        """What a name stands for that has a value."""
        if type(value) in (int, float, str, bool, type(None)) and not _is_odd(value):
            return _Value(ast.Constant(value))
        if isinstance(value, types.FunctionType | functools.partial):
            return _Part(ast.Name(name), _Scope({}, {name: value}, name), 0)
        return _Value(ast.Name(self.named(f"{name}_given", value)))

    def parameters(
        self,
        tree: ast.FunctionDef | ast.Lambda,
        node: ast.Call,
        own: _Scope,
        scope: _Scope,
        depth: int,
    ) -> _Scope:
        """The scope of a function that is called, with what its parameters stand for."""
        names = [one.arg for one in (*tree.args.posonlyargs, *tree.args.args)]
        keywords = [one.arg for one in tree.args.kwonlyargs]
        bound: dict[str, Any] = {}
        if (
            tree.args.vararg
            or tree.args.kwarg
            or any(isinstance(a, ast.Starred) for a in node.args)
        ):
            self.refuse(node, "a function that speaks of other events is called with a star")
        given = dict(zip(names, node.args, strict=False))
        if len(node.args) > len(names):
            self.refuse(node, f"{ast.unparse(node)} gives more than {len(names)} arguments")
        for one in node.keywords:
            if one.arg is None or one.arg not in (*names, *keywords) or one.arg in given:
                self.refuse(node, f"{ast.unparse(node)} gives an argument that is not there")
            given[one.arg] = one.value
        for name, value in given.items():
            bound[name] = self.binding(value, scope, depth)
        for name, default in _defaults(tree).items():
            if name not in bound and name not in own.bound:
                bound[name] = self.binding(default, own, depth)
        for name in (*names, *keywords):
            if name not in bound and name not in own.bound:
                self.refuse(node, f"{ast.unparse(node)} gives no {name}")
        return own.with_names(**bound)

    def binding(self, node: ast.expr, scope: _Scope, depth: int) -> Any:
        """What a name stands for that is given an expression."""
        if isinstance(node, ast.Name) and node.id in scope.bound:
            return scope.bound[node.id]
        found = self.found(node, scope)
        is_function = isinstance(found, types.FunctionType | functools.partial)
        if isinstance(node, ast.Lambda) or is_function or self.is_temporal(node, scope):
            return _Part(node, scope, depth)
        return _Value(self.read(node, scope))

    def body(self, tree: ast.FunctionDef | ast.Lambda, scope: _Scope, depth: int) -> Formula:
        """What a function gives."""
        if isinstance(tree, ast.Lambda):
            return self.formula(tree.body, scope, depth)
        return self.statements(tree.body, scope, depth, tree)

    def statements(
        self, body: Sequence[ast.stmt], scope: _Scope, depth: int, tree: ast.FunctionDef
    ) -> Formula:
        for at, one in enumerate(body):
            self.line = one.lineno
            match one:
                case ast.Expr(value=ast.Constant()) | ast.Pass():
                    continue
                case ast.FunctionDef(name=name):
                    scope = scope.with_names(**{name: _Part(one, scope, depth)})
                case (
                    ast.Assign(targets=[ast.Name(id=name)], value=value)
                    | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
                ):
                    scope = scope.with_names(**{name: self.binding(value, scope, depth)})
                case ast.Return(value=ast.expr() as value):
                    return self.formula(value, scope, depth)
                case ast.If(test=test, body=then, orelse=other):
                    rest = body[at + 1 :]
                    known = self.formula(test, scope, depth)
                    yes = self.statements([*then, *rest], scope, depth, tree)
                    no = self.statements([*other, *rest], scope, depth, tree)
                    written: dict[str, Any] = {
                        "text": f"{_text(yes)} if {ast.unparse(test)} else {_text(no)}",
                        "line": one.lineno,
                    }
                    return disjunction(
                        (
                            conjunction((known, yes), **written),
                            conjunction((negation(known), no), **written),
                        ),
                        **written,
                    )
                case _:
                    self.refuse(
                        one,
                        f"{ast.unparse(one).splitlines()[0]} stands in a function that speaks of "
                        "other events; expected conditions: names = ..., if, return. A loop is "
                        "all(... for ... in ...) or any(...)",
                    )
        return self.refuse(tree, f"{tree.name} ends without return; expected a truth value")

    # ---- operators ----

    def operator(
        self, name: str, node: ast.Call, scope: _Scope, depth: int, written: dict[str, Any]
    ) -> Formula:
        count = 2 if name in ("since", "until", "unless") else 1
        if depth >= DEEPEST:
            self.refuse(node, f"more than {DEEPEST} operators stand around one another")
        functions = list(node.args)
        options = {one.arg: one.value for one in node.keywords}
        functions += [options.pop(one) for one in "fg"[:count] if one in options]
        is_step = name.endswith("_event")
        if is_step and len(functions) == 2:
            options["n"] = functions.pop()
        known = ("n",) if is_step else ("within", "after")
        for option in options:
            if option not in known:
                meant = nearest(str(option), known)
                hint = f": did you mean {meant}=?" if meant else f"; it has {', '.join(known)}"
                self.refuse(node, f"{name} has no option {option}{hint}")
        if len(functions) == count + 1 and not is_step:
            self.refuse(
                node,
                f"{ast.unparse(node)} is given {ast.unparse(functions[-1])} by position; expected "
                f"within={ast.unparse(functions[-1])}, or after=",
            )
        if len(functions) != count:
            self.refuse(
                node,
                f"{ast.unparse(node)} is given {len(functions)} functions; expected {count}: "
                f"{name}({', '.join('fg'[:count])})",
            )
        values = {option: self.constant(of, scope, str(option)) for option, of in options.items()}
        inside = tuple(self.about_one(name, one, scope, depth + 1) for one in functions)
        if is_step:
            n = values.get("n", 1)
            if isinstance(n, bool) or not isinstance(n, int) or not 1 <= n <= 10**6:
                self.refuse(node, f"{name}: n={n!r}; expected a whole number, 1 to 1,000,000")
            return Temporal(name, depth, depth + 1, inside, n, **written)
        after, within = values.get("after"), values.get("within")
        try:
            least = 0 if after is None else self.length(f"{name}: after", after)
            most = None if within is None else self.length(f"{name}: within", within)
        except Exception as error:
            self.refuse(node, str(error))
        if most is not None and most < least:
            self.refuse(
                node,
                f"{name}: within={within!r} is less than after={after!r}; expected at least that",
            )
        return Temporal(name, depth, depth + 1, inside, 1, most, least, **written)

    def about_one(self, name: str, node: ast.expr, scope: _Scope, depth: int) -> Formula:
        """A function of one event, as a formula about it."""
        event = {"event": _Event(depth)}
        if isinstance(node, ast.Lambda):
            return self.applied(name, node, node, scope, depth)
        if isinstance(node, ast.Name) and isinstance(scope.bound.get(node.id), _Part):
            part = scope.bound[node.id]
            if isinstance(part.node, ast.FunctionDef):
                return self.applied(name, node, part.node, part.scope, depth)
            return self.about_one(name, part.node, part.scope, depth)
        if isinstance(node, ast.Call) and self.found(node.func, scope) is functools.partial:
            # partial(f, a, k=b): what is called with the event behind a.
            function, *more = node.args
            event_name = ast.Name("event")
            call = ast.Call(function, [*more, event_name], node.keywords)
            call = ast.copy_location(call, node)
            ast.fix_missing_locations(call)
            return self.formula(call, scope.with_names(**event), depth)
        found = self.found(node, scope)
        if isinstance(found, functools.partial):
            call = ast.Call(node, [ast.Name("event")], [])
            return self.partial(name, found, ast.copy_location(call, node), depth)
        if isinstance(found, types.FunctionType) and pure_mark(found) is None:
            definition = definition_of(found)
            if definition is not None and _is_expression(definition.tree):
                own = self.own_scope(found)
                return self.applied(name, node, definition.tree, own, depth)
        if callable(found):
            if found in (bool, all, any) or inspect.isclass(found):
                self.refuse(node, f"{name} is given {ast.unparse(node)}; expected {_FUNCTION}")
            call = ast.copy_location(ast.Call(node, [ast.Name("event")], []), node)
            ast.fix_missing_locations(call)
            return self.formula(call, scope.with_names(**event), depth)
        return self.refuse(
            node,
            f"{name} is given {ast.unparse(node)}, which is a value of this event; expected "
            f"{_FUNCTION}, as it is about others",
        )

    def partial(self, name: str, found: Any, call: ast.Call, depth: int) -> Formula:
        function = found.func
        definition = definition_of(function) if isinstance(function, types.FunctionType) else None
        if definition is None:
            self.refuse(call, f"{name} is given {found!r}; expected {_FUNCTION}")
        values = [ast.Name(self.named(f"given_{at}", value)) for at, value in enumerate(found.args)]
        words = [
            ast.keyword(key, ast.Name(self.named(f"{key}_given", value)))
            for key, value in found.keywords.items()
        ]
        names = {one.id: _Value(one) for one in (*values, *(w.value for w in words))}  # type: ignore[attr-defined]
        scope = _Scope({**names, "event": _Event(depth)}, {}, "partial")
        made = ast.copy_location(ast.Call(call.func, [*values, *call.args], words), call)
        ast.fix_missing_locations(made)
        own = self.own_scope(function)
        inside = self.parameters(definition.tree, made, own, scope, depth)
        return self.body(definition.tree, inside, depth)

    def applied(
        self,
        name: str,
        node: ast.expr,
        tree: ast.FunctionDef | ast.Lambda,
        own: _Scope,
        depth: int,
    ) -> Formula:
        """A function's formula, about the event at a depth."""
        names = [one.arg for one in (*tree.args.posonlyargs, *tree.args.args)]
        defaults = _defaults(tree)
        bare = [one for one in names if one not in defaults]
        if len(bare) != 1 or tree.args.vararg or tree.args.kwarg:
            self.refuse(
                node,
                f"{name} is given a function of ({', '.join(names)}); expected {_FUNCTION}",
            )
        bound = {
            key: self.binding(of, own, depth - 1)
            for key, of in defaults.items()
            if key not in own.bound
        }
        if tree in self.reading:
            self.refuse(node, f"{ast.unparse(node)} calls itself")
        self.reading.append(tree)
        try:
            return self.body(tree, own.with_names(**bound, **{bare[0]: _Event(depth)}), depth)
        finally:
            self.reading.pop()

    def constant(self, node: ast.expr, scope: _Scope, option: str) -> Any:
        """A value that is known when the rule is declared."""
        names = {
            one.id: self.found(one, scope) for one in ast.walk(node) if isinstance(one, ast.Name)
        }
        for name, value in names.items():
            if value is _MISSING:
                bound = scope.bound.get(name)
                if isinstance(bound, _Value) and isinstance(bound.tree, ast.Constant):
                    names[name] = bound.tree.value
                elif isinstance(bound, _Value) and isinstance(bound.tree, ast.Name):
                    value = self.names.get(bound.tree.id, _MISSING)
                    names[name] = value.value if isinstance(value, _Same) else value
            if names[name] is _MISSING:
                self.refuse(
                    node,
                    f"{option}={ast.unparse(node)} depends on {name}; expected a number"
                    + ("" if option == "n" else ' or a duration, like "30 minutes",')
                    + " that is known when the rule is declared",
                )
        tree = ast.fix_missing_locations(ast.Expression(node))
        return eval(compile(tree, "<rule>", "eval"), {"datetime": datetime, **names})

    def quantifier(
        self, is_all: bool, node: ast.Call, scope: _Scope, depth: int, written: dict[str, Any]
    ) -> Formula:
        if len(node.args) != 1 or node.keywords:
            self.refuse(node, f"{ast.unparse(node)}: expected all(... for ... in ...)")
        (given,) = node.args
        if isinstance(given, ast.Tuple | ast.List):
            some = tuple(self.formula(one, scope, depth) for one in given.elts)
            return (conjunction if is_all else disjunction)(some, **written)
        if not isinstance(given, ast.GeneratorExp | ast.ListComp):
            self.refuse(
                node,
                f"{ast.unparse(node)}: expected all(... for ... in ...), so that each one is known",
            )
        return self.generator(is_all, given.elt, list(given.generators), scope, depth, written)

    def generator(
        self,
        is_all: bool,
        part: ast.expr,
        loops: list[ast.comprehension],
        scope: _Scope,
        depth: int,
        written: dict[str, Any],
    ) -> Formula:
        if not loops:
            return self.formula(part, scope, depth)
        loop, *more = loops
        if self.is_temporal(loop.iter, scope):
            self.refuse(loop.iter, f"{ast.unparse(loop.iter)} speaks of other events")
        domain = self.code(loop.iter, scope)
        if domain in ("()", "[]"):
            return TRUE if is_all else FALSE
        targets = loop.target.elts if isinstance(loop.target, ast.Tuple) else [loop.target]
        names = [one.id for one in targets if isinstance(one, ast.Name)]
        if len(names) != len(targets):
            self.refuse(loop.target, f"{ast.unparse(loop.target)}: expected a name, or some")
        wanted = "each_" + "_".join(names)
        own, count = wanted, 1
        while own in self.variables:
            count += 1
            own = f"{wanted}_{count}"
        self.variables.add(own)
        values: dict[str, Any] = {names[0]: _Value(ast.Name(own))}
        if isinstance(loop.target, ast.Tuple):
            values = {
                name: _Value(ast.Subscript(ast.Name(own), ast.Constant(at)))
                for at, name in enumerate(names)
            }
        inside = scope.with_names(**values)
        tests = [self.formula(one, inside, depth) for one in loop.ifs]
        found = self.generator(is_all, part, more, inside, depth, written)
        if tests and is_all:
            found = disjunction((*map(negation, tests), found), **written)
        elif tests:
            found = conjunction((*tests, found), **written)
        return Quantifier(is_all, own, domain, found, **written)

    # ---- plain Python ----

    def code(self, node: ast.expr, scope: _Scope) -> str:
        """The text of a condition of plain Python."""
        return ast.unparse(self.read(node, scope))

    def read(self, node: ast.expr, scope: _Scope) -> ast.expr:
        """An expression with the rule's names."""
        made = _Naming(self, scope).visit(_copied(node))
        return ast.fix_missing_locations(made)  # type: ignore[no-any-return]


def _text(formula: Formula) -> str:
    return formula.text or str(formula == TRUE)


class _Naming(ast.NodeTransformer):
    """Names in an expression, by what they stand for."""

    def __init__(self, reader: _Reader, scope: _Scope) -> None:
        self.reader, self.scope = reader, scope
        self.own: list[set[str]] = []

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if any(node.id in one for one in self.own):
            return node
        reader, bound = self.reader, self.scope.bound.get(node.id)
        match bound:
            case _Event(depth=depth):
                return ast.copy_location(ast.Name(variable(depth)), node)
            case _Value(tree=tree):
                return _copied(tree)
            case _Part():
                if not isinstance(bound.node, ast.FunctionDef | ast.Lambda):
                    # A name of a function of the file, or of one that was found on the way.
                    of: ast.expr = _Naming(reader, bound.scope).visit(_copied(bound.node))
                    return of
                reader.refuse(
                    node, f"{node.id} is a function of the rule; expected one of the file"
                )
        value = self.scope.outside.get(node.id, _MISSING)
        if value is _MISSING:
            if hasattr(builtins, node.id):
                return node
            reader.refuse(node, f"there is no name {node.id!r}")
        if type(value) in (int, float, str, bool, type(None)) and not _is_odd(value):
            # Constants of the file are told by their names.
            return ast.copy_location(ast.Name(reader.named(node.id, _Same(value))), node)
        return ast.copy_location(ast.Name(reader.named(node.id, value)), node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        value = node.value
        if isinstance(value, ast.Name) and not any(value.id in one for one in self.own):
            bound = self.scope.bound.get(value.id)
            if isinstance(bound, _Event):
                self.reader_column(node)
        self.generic_visit(node)
        return node

    def reader_column(self, node: ast.Attribute) -> None:
        columns = self.reader.columns
        if node.attr not in columns and node.attr not in (*EVENT_ATTRIBUTES, "is_null"):
            self.reader.refuse(
                node,
                f"the event has no column {node.attr!r}; " + names_it_has(node.attr, columns),
            )

    def visit_Call(self, node: ast.Call) -> ast.expr:
        # A helper that is one expression is written in, so that it needs no whole event.
        reader, scope = self.reader, self.scope
        shadowed = isinstance(node.func, ast.Name) and any(node.func.id in o for o in self.own)
        if not shadowed:
            tree = own = None
            if isinstance(node.func, ast.Name):
                bound = scope.bound.get(node.func.id)
                if isinstance(bound, _Part) and isinstance(
                    bound.node, ast.FunctionDef | ast.Lambda
                ):
                    tree, own = bound.node, bound.scope
            found = reader.found(node.func, scope)
            if (
                isinstance(found, types.FunctionType)
                and pure_mark(found) is None
                and not str(found.__module__).startswith(("specstream.", "math", "numpy"))
                and any(self.of_event(one) for one in node.args)
            ):
                definition = definition_of(found)
                if definition is not None and _is_expression(definition.tree):
                    tree = definition.tree
                    own = reader.own_scope(found)
            if tree is not None and own is not None:
                # A definition is read anew each time, so that its tree is another one.
                called = found if isinstance(found, types.FunctionType) else tree
                if called in reader.reading:
                    reader.refuse(node, f"{ast.unparse(node.func)} calls itself")
                value = _expression(tree)
                if value is None:
                    reader.refuse(
                        node,
                        f"{ast.unparse(node.func)} is a function in the rule, of several "
                        "statements; expected one that returns a condition, or one of the file",
                    )
                inside = self.arguments(tree, own, node)
                reader.reading.append(called)
                try:
                    return _Naming(reader, inside).visit(_copied(value))  # type: ignore[no-any-return]
                finally:
                    reader.reading.pop()
        self.generic_visit(node)
        return node

    def arguments(self, tree: Any, own: _Scope, node: ast.Call) -> _Scope:
        if self.own:  # arguments may name variables of a comprehension around
            names = {name for one in self.own for name in one}
            scope = self.scope.with_names(**{name: _Value(ast.Name(name)) for name in names})
        else:
            scope = self.scope
        return self.reader.parameters(tree, node, own, scope, 0)

    def of_event(self, node: ast.expr) -> bool:
        """Whether an event, or what a pure function gives of one, goes into a helper: it is written
        in, as neither is a value that could be handed on."""
        if isinstance(node, ast.Name):
            return isinstance(self.scope.bound.get(node.id), _Event)
        return isinstance(node, ast.Call) and (
            pure_mark(self.reader.found(node.func, self.scope)) is not None
        )

    def _comprehension(self, node: Any) -> ast.expr:
        names = {
            one.id
            for loop in node.generators
            for one in ast.walk(loop.target)
            if isinstance(one, ast.Name)
        }
        # The first of them is looked up outside.
        first = node.generators[0]
        first.iter = self.visit(first.iter)
        self.own.append(names)
        try:
            for at, loop in enumerate(node.generators):
                if at:
                    loop.iter = self.visit(loop.iter)
                loop.ifs = [self.visit(one) for one in loop.ifs]
            for part in ("elt", "key", "value"):
                if hasattr(node, part):
                    setattr(node, part, self.visit(getattr(node, part)))
        finally:
            self.own.pop()
        return node  # type: ignore[no-any-return]

    visit_GeneratorExp = visit_ListComp = visit_SetComp = visit_DictComp = _comprehension

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        names = {one.arg for one in (*node.args.posonlyargs, *node.args.args)}
        self.own.append(names)
        try:
            node.body = self.visit(node.body)
        finally:
            self.own.pop()
        return node


class _Same:
    """A constant, told from others by where it stands and not by its value."""

    def __init__(self, value: Any) -> None:
        self.value = value


def _is_odd(value: Any) -> bool:
    return isinstance(value, float) and value != value


def _defaults(tree: ast.FunctionDef | ast.Lambda) -> dict[str, ast.expr]:
    names = [one.arg for one in (*tree.args.posonlyargs, *tree.args.args)]
    given = tree.args.defaults
    found = dict(zip(names[len(names) - len(given) :], given, strict=True))
    for one, default in zip(tree.args.kwonlyargs, tree.args.kw_defaults, strict=True):
        if default is not None:
            found[one.arg] = default
    return found


def _is_expression(tree: ast.FunctionDef | ast.Lambda) -> bool:
    return _expression(tree) is not None


def _expression(tree: ast.FunctionDef | ast.Lambda) -> ast.expr | None:
    """What a function returns, of one that does nothing else."""
    if isinstance(tree, ast.Lambda):
        return tree.body
    body = [
        one
        for one in tree.body
        if not (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))
    ]
    if len(body) == 1 and isinstance(body[0], ast.Return):
        return body[0].value
    return None


def _copied(node: ast.expr) -> ast.expr:
    return copy.deepcopy(node)


def _outside(function: types.FunctionType) -> dict[str, Any]:
    """Global names of a function, and those that it takes from functions around it."""
    found = dict(function.__globals__)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:
            continue
    return found


def parsed(
    rule: str,
    function: types.FunctionType,
    columns: Schema | Mapping[str, Any],
    length: Callable[[str, Any], int],
    taken: Collection[str] = (),
) -> Parsed:
    """A rule's formula.

    Args:
        rule: its name.
        function: of one event.
        columns: of the event.
        length: gives a bound in units of the order column, or raises.
        taken: names that none of the file may keep.

    Raises:
        DeclarationError: the function cannot be read, or does what rules do not; names the line.
    """
    if not isinstance(function, types.FunctionType):
        raise DeclarationError(f"rule {rule!r} is given {function!r}; expected {_FUNCTION}")
    definition = definition_of(function)
    if definition is None:
        raise DeclarationError(
            f"rule {rule!r}: the source of its function cannot be read; define it in a file or a "
            "notebook cell"
        )
    reader = _Reader(rule, dict(columns), length, line=definition.line, taken=frozenset(taken))
    scope = reader.own_scope(function)
    found = reader.applied("ss.rule", ast.Name(function.__name__), definition.tree, scope, 0)
    names = {name: of.value if isinstance(of, _Same) else of for name, of in reader.names.items()}
    return Parsed(found, names)
