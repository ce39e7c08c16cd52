"""What functions of the user's return that Python calls before the operator runs.

Compiled code needs to know the type of a hidden column before any event is there, and a helper like
``def region(code): return code[:2].upper()`` says it nowhere. So its statements are gone through
with types in place of values: one after the other, both branches of a condition, loops until
nothing changes. A name has the type of what it was given last; where ways meet, that of both.

A type that is wrong all the same, because a list was changed by somebody else, say, does no harm:
what does not fit its column raises there. Unlike :mod:`specstream.compiler.facts.binding_times`,
which asks of an expression whether it can be compiled, this one only asks for types, of code that
never is.
"""

from __future__ import annotations

import ast
import functools
import inspect
import types
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from specstream.compiler.facts import library_types as library
from specstream.compiler.facts import value_types as of
from specstream.compiler.facts.binding_time_base import item, joined
from specstream.compiler.facts.binding_time_calls import given_by, of_call
from specstream.compiler.facts.binding_time_rules import RULES
from specstream.compiler.facts.binding_times import BindingTimes
from specstream.compiler.facts.dates_and_decimals import OWN_CLASSES, own_type
from specstream.compiler.facts.fact import CONSTANT, EVENT, Fact, Results
from specstream.compiler.facts.name_bindings import MISSING, declared_type
from specstream.compiler.facts.refused_constructs import is_constant
from specstream.compiler.facts.value_types import ANY, NEVER, NONE, Type
from specstream.compiler.frontend.operator_analysis import FunctionSource
from specstream.compiler.frontend.scopes import own_name
from specstream.declarations.schema import Schema

__all__ = ["Returns"]

# Of an expression in a function that is asked about: it means nothing outside of it.
_INSIDE = frozenset({-1})
_ROUNDS = 8

Types = dict[str, Type]


class Returns(Results):
    """What the functions, methods and properties give that an operator calls.

    Args:
        schema: of the event.
        parse: gives the source of a function.

    Attributes:
        reasons: of functions whose type is not known: the file, line and text that are to blame.
    """

    def __init__(
        self, schema: Schema, parse: Callable[[types.FunctionType], FunctionSource]
    ) -> None:
        self.schema = schema
        self.parse = parse
        self.reasons: dict[types.FunctionType, tuple[str, int, str]] = {}
        self._known: dict[Any, Type] = {}
        self._open: list[Any] = []
        self._compiles: dict[Any, bool] = {}
        self._own: dict[Any, tuple[bool, tuple[str, str] | None]] = {}

    def bound(
        self, function: types.FunctionType, parts: list[Fact], names: list[str | None]
    ) -> dict[str, Fact] | None:
        positional = parts[: len(parts) - len(names)]
        by_name = dict(zip(names, parts[len(positional) :], strict=True))
        signature = inspect.signature(function)
        try:
            given = signature.bind(*positional, **{name or "": of for name, of in by_name.items()})
        except TypeError:
            return None
        found = {}
        for name, parameter in signature.parameters.items():
            value = given.arguments.get(name)
            if parameter.kind is parameter.VAR_POSITIONAL:
                of_all = of.list_of(of.join(one.type for one in value or ()))
                found[name] = Fact(EVENT, of_all, ANY, _INSIDE)
            elif parameter.kind is parameter.VAR_KEYWORD:
                found[name] = Fact(EVENT, of.dict_of(ANY, of.STR), ANY, _INSIDE)
            elif value is not None:
                found[name] = replace(value, depends=EVENT, bound=_INSIDE, is_staged=False)
            else:
                default = library.constant(parameter.default)
                is_simple = is_constant(parameter.default)
                found[name] = Fact(CONSTANT, default, default if is_simple else None, _INSIDE)
        return found

    def compiles(self, source: FunctionSource, given: dict[str, Fact], of_numbers: bool) -> bool:
        key = source.original, _key({name: one.type for name, one in given.items()})
        if key not in self._compiles:
            self._compiles[key] = True  # one that calls itself is judged by its other parts
            body = BindingTimes(source, self.schema, frozenset(), given, self.parse, self, RULES)
            compiles, makes_objects = body.compiles()
            self._compiles[key] = compiles or (of_numbers and not makes_objects)
        return self._compiles[key]

    def uses_own(
        self, function: types.FunctionType, given: dict[str, Fact]
    ) -> tuple[bool, tuple[str, str] | None]:
        key = function, _key({name: one.type for name, one in given.items()})
        if key in self._own:
            return self._own[key]
        self._own[key] = False, None
        try:
            source = self.parse(function)
        except Exception:  # its source cannot be read
            return self._own[key]
        hints = of.hints_of(function)
        said = any(
            isinstance(cls, type) and issubclass(cls, OWN_CLASSES)
            for cls in (hints.get(name) for name in given)
        )
        as_numbers = BindingTimes(source, self.schema, frozenset(), given, self.parse, self, RULES)
        as_numbers.compiles()
        is_own = said or bool(as_numbers.dates.own)
        never = as_numbers.dates.never
        if is_own:
            values = {
                name: replace(one, type=own_type(one.type), compiled=None)
                for name, one in given.items()
            }
            never = BindingTimes(
                source, self.schema, frozenset(), values, self.parse, self, RULES
            ).refused()
        problem = next(iter(never.values()), None)
        if problem is not None:
            problem = f"{function.__name__}: {problem[0]}", problem[1]
        self._own[key] = is_own, problem
        return self._own[key]

    def of(self, function: types.FunctionType, given: list[Type]) -> Type:
        names = list(inspect.signature(function).parameters)
        return self.of_bound(function, dict(zip(names, given, strict=False)))

    def of_bound(self, function: types.FunctionType, given: Types) -> Type:
        hint = inspect.get_annotations(function).get("return", MISSING)
        declared = ANY if hint is MISSING else of.of_hint(hint)
        if declared != ANY:
            return declared
        key = function, _key(given)
        if key in self._open or len(self._open) > 20:
            return NEVER  # what calls itself gives what its other returns give
        if key not in self._known:
            self._open.append(key)
            try:
                body = _Body(self.parse(function), self, given)
                self._known[key] = body.run()
                if body.unknown is not None:
                    self.reasons.setdefault(function, body.unknown)
            except Exception:  # its source cannot be read
                self._known[key] = ANY
            self._open.pop()
        return self._known[key]

    def method(self, owner: Type, name: str, arguments: list[ast.expr], given: list[Type]) -> Type:
        owner = of.required(owner)
        if owner.cls is None:
            return library.method(owner, name, arguments, given)
        method = inspect.getattr_static(owner.cls, name, None)
        inner = getattr(method, "__func__", None)
        if isinstance(inner, types.FunctionType):
            of_class = [ANY] if isinstance(method, classmethod) else []
            return self.of(inner, [*of_class, *given])
        if isinstance(method, types.FunctionType):
            return self.of(method, [owner, *given])
        return ANY

    def attribute(self, owner: Type, name: str) -> Type:
        found = library.attribute(owner, name)
        cls = of.required(owner).cls
        if found != ANY or cls is None:
            return found
        held = inspect.getattr_static(cls, name, None)
        if isinstance(held, property) and isinstance(held.fget, types.FunctionType):
            return self.of(held.fget, [owner])
        inner = getattr(held, "func", None)
        if isinstance(held, functools.cached_property) and isinstance(inner, types.FunctionType):
            return self.of(inner, [owner])
        return of.of_value(held) if held is not None and is_constant(held) else ANY


class _Body(BindingTimes):
    """One function, with types for its parameters.

    Attributes:
        types: of its names, where it is gone through.
        returned: what it returns.
        unknown: where what it returns is not known: file, line and text.
    """

    def __init__(self, source: FunctionSource, returns: Returns, given: Types) -> None:
        super().__init__(source, returns.schema, frozenset(), {}, returns.parse, returns, _RULES)
        self.all_returns = returns
        self.types = dict(given)
        self.returned: list[Type] = []
        self.unknown: tuple[str, int, str] | None = None
        self.functions: dict[str, ast.FunctionDef | ast.Lambda] = {}
        self.leaving: list[list[Types]] = []

    def run(self) -> Type:
        """What the function returns."""
        if self.block(self.source.tree.body):
            self.returned.append(NONE)
        return of.join(self.returned)

    # ---- expressions ----

    def staged(self, node: ast.expr, found: Fact) -> Fact:
        """All of it is Python's."""
        return found

    def of(self, node: ast.expr) -> Fact:
        """What is known of an expression; nothing yet, if nothing is known yet of a part."""
        found = super().of(node)
        if found.type != ANY:
            return found
        parts = [*ast.iter_child_nodes(node)]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            parts.append(node.func.value)
        known = [self.found.get(one) for one in parts if isinstance(one, ast.expr)]
        is_open = any(one and one.type == NEVER for one in known)
        return replace(found, type=NEVER) if is_open else found

    def of_local(self, name: str) -> Fact:
        return Fact(EVENT, self.types.get(name, NEVER), None, _INSIDE)

    def chosen(self, node: ast.IfExp) -> Fact:
        before = dict(self.types)
        parts = [self.of(node.test)]
        for part, holds in ((node.body, True), (node.orelse, False)):
            self.types = dict(before)
            self.narrow(node.test, holds)
            parts.append(self.of(part))
        self.types = before
        return joined(parts, of.join(part.type for part in parts[1:]), False)

    def bool_op(self, node: ast.BoolOp) -> Fact:
        before = dict(self.types)
        parts = []
        for value in node.values:
            parts.append(self.of(value))
            self.narrow(value, isinstance(node.op, ast.And))
        self.types = before
        return joined(parts, of.chosen(node.op, [one.type for one in parts]), False)

    def call(self, node: ast.Call) -> Fact:
        inner = self.functions.get(node.func.id) if isinstance(node.func, ast.Name) else None
        if inner is None:
            return of_call(self, node)
        given = [self.of(one).type for one in node.args]
        return Fact(EVENT, self.of_inner(inner, given), None, _INSIDE)

    def inner_result(self, name: str, given: list[Type]) -> Type | None:
        return self.of_inner(self.functions[name], given) if name in self.functions else None

    def of_inner(self, inner: ast.FunctionDef | ast.Lambda, given: list[Type]) -> Type:
        """What a function inside gives; it reads the names around it."""
        if isinstance(inner, ast.Lambda):
            return given_by(self, inner, given)
        key = inner, tuple(given)
        if key in self.all_returns._open:
            return NEVER
        names = [one.arg for one in (*inner.args.posonlyargs, *inner.args.args)]
        around = self.types | dict(zip(names, given, strict=False))
        body = _Body(replace(self.source, tree=inner), self.all_returns, around)
        body.locals |= self.locals
        body.functions |= self.functions
        self.all_returns._open.append(key)
        returned = body.run()
        self.all_returns._open.pop()
        return returned

    def type_of(self, node: ast.expr) -> Type:
        """The type of an expression here; names that it assigns have it from now on."""
        self.found = {}
        for part in ast.walk(node):
            if isinstance(part, ast.NamedExpr):
                self.types[part.target.id] = self.of(part.value).type
                self.found = {}
        return self.of(node).type

    # ---- statements: whether the one behind is reached ----

    def block(self, body: list[ast.stmt]) -> bool:
        return all(self.statement(one) for one in body)

    def statement(self, node: ast.stmt) -> bool:
        rule = getattr(self, f"go_{type(node).__name__}", None)
        return True if rule is None else rule(node) is not False

    def go_Return(self, node: ast.Return) -> bool:
        given = NONE if node.value is None else self.type_of(node.value)
        if node.value is not None and not of.is_known(given) and given != NEVER:
            culprit = self.culprit(node.value)
            text, line = own_name(ast.unparse(culprit)), getattr(culprit, "lineno", node.lineno)
            self.unknown = self.unknown or (self.source.filename, line, text)
        self.returned.append(given)
        return False

    def culprit(self, node: ast.expr) -> ast.expr:
        """The first innermost part whose type is not known."""
        parts = list(ast.iter_child_nodes(node))
        if isinstance(node, ast.Call):
            parts = [*node.args, *parts]
            if isinstance(node.func, ast.Attribute):
                parts = [node.func.value, *node.args]
        for part in parts:
            found = self.found.get(part) if isinstance(part, ast.expr) else None
            is_global = isinstance(part, ast.expr) and self.constant(part) is not MISSING
            if found is not None and not of.is_known(found.type) and not is_global:
                assert isinstance(part, ast.expr)
                return self.culprit(part)
        return node

    def go_Raise(self, node: ast.Raise) -> bool:
        return False

    def go_Continue(self, node: ast.stmt) -> bool:
        self.leaving[-1].append(dict(self.types))
        return False

    go_Break = go_Continue

    def go_Assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            if isinstance(target, ast.Name) and isinstance(node.value, ast.Lambda):
                self.functions[target.id] = node.value
        given = self.type_of(node.value)
        for target in node.targets:
            self.assign(target, given)

    def go_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            given = self.type_of(node.value)
            self.assign(node.target, of.annotated(declared_type(node)) or given)

    def go_AugAssign(self, node: ast.AugAssign) -> None:
        target: Any = node.target
        read = ast.copy_location(type(target)(**{**vars(target), "ctx": ast.Load()}), target)
        made = ast.copy_location(ast.BinOp(read, node.op, node.value), node)
        self.assign(target, self.type_of(made))

    def go_Expr(self, node: ast.Expr) -> None:
        self.type_of(node.value)
        call = node.value
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            return
        given = [self.of(one).type for one in call.args]
        owner, name = call.func.value, call.func.attr
        held = self.of(owner).type
        if name in ("append", "add", "appendleft") and given:
            self.refine(owner, of.list_of(given[0]))
        elif name == "insert" and len(given) == 2:
            self.refine(owner, of.list_of(given[1]))
        elif name in ("extend", "update", "extendleft") and given:
            added = given[0] if given[0].name == "dict" else of.list_of(of.element(given[0]))
            is_counted = held.name == "dict" and added.name == "list"
            self.refine(owner, of.dict_of(NEVER, added.of[0]) if is_counted else added)
        elif name == "setdefault" and len(given) == 2:
            self.refine(owner, of.dict_of(given[1], given[0]))

    def go_If(self, node: ast.If) -> bool:
        self.type_of(node.test)
        return self.ways(node.test, node.body, node.orelse)

    def ways(self, test: ast.expr, body: list[ast.stmt], orelse: list[ast.stmt]) -> bool:
        before, ends = dict(self.types), []
        for part, holds in ((body, True), (orelse, False)):
            self.types = dict(before)
            self.narrow(test, holds)
            if self.block(part):
                ends.append(self.types)
        self.types = _joined_types(ends) if ends else before
        return bool(ends)

    def go_While(self, node: ast.While) -> bool:
        def enter() -> None:
            self.type_of(node.test)
            self.narrow(node.test, True)

        leaves = self.loop(enter, node.body)
        is_endless = isinstance(node.test, ast.Constant) and bool(node.test.value)
        if is_endless and not leaves:
            return False
        self.narrow(node.test, False)
        return self.block(node.orelse)

    def go_For(self, node: ast.For) -> bool:
        def enter() -> None:
            self.assign(node.target, of.element(self.type_of(node.iter)))

        self.loop(enter, node.body)
        return self.block(node.orelse)

    def loop(self, enter: Callable[[], None], body: list[ast.stmt]) -> bool:
        """Goes through a loop until nothing changes; whether something leaves it from inside."""
        leaves: list[Types] = []
        for turn in range(_ROUNDS):
            before = dict(self.types)
            self.leaving.append([])
            enter()
            ends = [self.types] if self.block(body) else []
            leaves = self.leaving.pop()
            after = _joined_types([before, *ends, *leaves])
            if after == before:
                break
            if turn == _ROUNDS - 2:  # what still grows is not known
                after = {
                    name: one if before.get(name) == one else ANY for name, one in after.items()
                }
            self.types = after
        self.types = _joined_types([self.types, before])
        return bool(leaves)

    def go_Try(self, node: ast.Try) -> bool:
        before = dict(self.types)
        reached = self.block(node.body)
        inside = _joined_types([before, self.types])
        ends = [self.types] if reached and self.block(node.orelse) else []
        for handler in node.handlers:
            self.types = dict(inside)
            if handler.name:
                self.types[handler.name] = ANY
            if self.block(handler.body):
                ends.append(self.types)
        self.types = _joined_types(ends) if ends else inside
        return self.block(node.finalbody) and bool(ends)

    def go_With(self, node: ast.With) -> bool:
        for one in node.items:
            self.type_of(one.context_expr)
            if one.optional_vars is not None:
                self.assign(one.optional_vars, ANY)
        return self.block(node.body)

    def go_Match(self, node: ast.Match) -> bool:
        subject = self.type_of(node.subject)
        before, ends = dict(self.types), []
        for case in node.cases:
            self.types = dict(before)
            self.capture(case.pattern, subject)
            if case.guard is not None:
                self.type_of(case.guard)
                self.narrow(case.guard, True)
            if self.block(case.body):
                ends.append(self.types)
        last = node.cases[-1]
        while isinstance(last.pattern, ast.MatchOr):
            last = ast.match_case(last.pattern.patterns[-1], last.guard, [])
        takes_all = isinstance(last.pattern, ast.MatchAs) and last.pattern.pattern is None
        if not takes_all or last.guard is not None:
            ends.append(before)
        self.types = _joined_types(ends) if ends else before
        return bool(ends)

    def capture(self, pattern: ast.pattern, given: Type) -> None:
        given = of.required(given)
        if isinstance(pattern, ast.MatchAs):
            if pattern.pattern is not None:
                self.capture(pattern.pattern, given)
            if pattern.name is not None:
                self.types[pattern.name] = given
        elif isinstance(pattern, ast.MatchOr):
            for one in pattern.patterns:
                self.capture(one, given)
        elif isinstance(pattern, ast.MatchSequence):
            count = len(pattern.patterns)
            for at, one in enumerate(pattern.patterns):
                if isinstance(one, ast.MatchStar):
                    if one.name is not None:
                        self.types[one.name] = of.list_of(of.element(given))
                else:
                    is_tuple = given.name == "tuple" and len(given.of) == count
                    self.capture(one, given.of[at] if is_tuple else of.element(given))
        else:
            for part in ast.walk(pattern):
                name = getattr(part, "name", None)
                if isinstance(part, ast.MatchAs | ast.MatchStar) and name is not None:
                    self.types[name] = ANY

    def go_FunctionDef(self, node: ast.FunctionDef) -> None:
        self.functions[node.name] = node

    # ---- what names are ----

    def assign(self, target: ast.expr, given: Type) -> None:
        if isinstance(target, ast.Name):
            self.types[target.id] = given
        elif isinstance(target, ast.Tuple | ast.List):
            count = len(target.elts)
            for at, one in enumerate(target.elts):
                if isinstance(one, ast.Starred):
                    self.assign(one.value, of.list_of(of.element(given)))
                else:
                    self.assign(one, item(given, at, count))
        elif isinstance(target, ast.Subscript):
            owner, index = self.of(target.value).type, self.of(target.slice).type
            is_dict = of.required(owner).name == "dict"
            self.refine(target.value, of.dict_of(given, index) if is_dict else of.list_of(given))

    def refine(self, node: ast.expr, given: Type) -> None:
        """An object gets elements."""
        if isinstance(node, ast.Name) and node.id in self.types:
            held = self.types[node.id]
            self.types[node.id] = of.join([held, given])
        elif isinstance(node, ast.Subscript):
            owner = of.required(self.of(node.value).type)
            is_dict = owner.name == "dict"
            self.refine(node.value, of.dict_of(given, NEVER) if is_dict else of.list_of(given))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            key = self.of(node.args[0]).type
            if node.func.attr == "setdefault":
                self.refine(node.func.value, of.dict_of(given, key))

    def narrow(self, test: ast.expr, holds: bool) -> None:
        """What names cannot be where a condition holds, or does not."""
        match test:
            case ast.Name() | ast.NamedExpr(target=ast.Name()) if holds:
                name = test.id if isinstance(test, ast.Name) else test.target.id
                self.types[name] = of.required(self.types.get(name, NEVER))
            case ast.UnaryOp(op=ast.Not()):
                self.narrow(test.operand, not holds)
            case ast.BoolOp() if isinstance(test.op, ast.And) == holds:
                for value in test.values:
                    self.narrow(value, holds)
            case ast.Compare(
                left=ast.Name() | ast.NamedExpr(),
                ops=[ast.Is() | ast.Eq() | ast.IsNot() | ast.NotEq()],
                comparators=[ast.Constant(value=None)],
            ):
                if isinstance(test.ops[0], ast.IsNot | ast.NotEq) == holds:
                    self.narrow(test.left, True)
            case ast.Call(func=ast.Name(id="isinstance"), args=[ast.Name() as name, cls]) if holds:
                value = self.constant(cls)
                if isinstance(value, type):
                    self.types[name.id] = of.of_class(value)


_RULES: dict[type[ast.expr], Any] = {
    **RULES,
    ast.BoolOp: _Body.bool_op,
    ast.Call: _Body.call,
    ast.IfExp: _Body.chosen,
}


def _key(given: Types) -> Any:
    """What tells such types from others."""
    return tuple((name, one, of.counted(one)) for name, one in given.items())


def _joined_types(ways: Iterable[Types]) -> Types:
    """Types of names where ways meet in a function whose return type is looked for."""
    found: dict[str, list[Type]] = {}
    for way in ways:
        for name, one in way.items():
            found.setdefault(name, []).append(one)
    return {name: of.join(all_of) for name, all_of in found.items()}
