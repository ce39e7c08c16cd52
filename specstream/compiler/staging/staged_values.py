"""Derived values of what is staged out of a function: one for each expression, with what guards it.

Here an expression of the operator becomes one for Python, over columns of the event and other
derived values: local names are what they were assigned, a call of a function marked as pure is a
value of its own. See :mod:`specstream.compiler.staging.staging`.
"""

from __future__ import annotations

import ast
import copy
import operator
import types
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from specstream.compiler.facts import value_types as of
from specstream.compiler.facts.binding_time_rules import RULES
from specstream.compiler.facts.binding_times import STATE, BindingTimes
from specstream.compiler.facts.list_use import list_part
from specstream.compiler.facts.name_bindings import look_up
from specstream.compiler.facts.return_types import Returns
from specstream.compiler.facts.value_types import BOOL, FLOAT, INT, STR, Type
from specstream.compiler.frontend.made_nodes import at_place
from specstream.compiler.frontend.operator_analysis import Analysis, FunctionSource
from specstream.compiler.staging.derived_functions import Made, Unpack
from specstream.compiler.staging.staged_loops import taken_apart
from specstream.declarations.derived import Derived, Part, name_of
from specstream.declarations.forms import Form
from specstream.declarations.pure import Pure, pure_mark
from specstream.declarations.state_layout import Layout

__all__ = ["INNER", "Guard", "Shape", "Staged", "StagedValues"]


class Staged:
    """What is staged out of an operator's functions.

    Args:
        analysis: of the operator.
        parse: gives the source of a function.
        layout: of the state.

    Attributes:
        returns: tells what functions give that Python calls.
        derived: the values that are derived, in the order in which they are computed.
        forms: formatted strings of more than the event, which are emitted as their parts.
    """

    def __init__(
        self,
        analysis: Analysis,
        parse: Callable[[types.FunctionType], FunctionSource],
        layout: Layout,
    ) -> None:
        self.analysis = analysis
        self.parse = parse
        self.layout = layout
        self.returns = Returns(analysis.event, parse)
        self.derived: list[Derived] = []
        self.forms: list[Form] = []
        self._known: dict[Any, int] = {}

    def add(self, derived: Derived, key: Any) -> int:
        """Adds a staged value, one for each expression, and gives its number.

        One that is there already is not computed again.
        """
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = len(self.derived)
            self.derived.append(replace(derived, tells=self.analysis.tells and derived.is_seen))
        return known


@dataclass(frozen=True)
class Shape:
    """What a derived value is to an operator: see :class:`Derived`."""

    parts: tuple[Part, ...]
    is_tuple: bool
    is_seen: bool


INNER = Shape((), is_tuple=False, is_seen=False)
"""Of what no column has: other derived values, or an exception, are made of it."""

Guard = tuple[ast.expr, bool]
"""A condition, and whether it holds where it guards."""


class StagedValues:
    """The derived values of one function.

    Args:
        staging: what is staged out of all functions of the operator.
        source: of the function.
        events: its parameters that are the event.

    Attributes:
        event: the name of the event in it.
        alone: what its expressions depend on.
        guards: the conditions around what is gone through.
        guards_of: those around the assignment of a name.
        names: the globals that functions for Python use.
        dropped: names that compiled code has not got, with their types.
        used: local names that stand in something staged.
        of_name: the derived values of local names.
        caught: names of caught exceptions.
    """

    def __init__(self, staging: Staged, source: FunctionSource, events: frozenset[str]) -> None:
        self.staging = staging
        self.source = source
        self.event = min(events, default="")
        self.alone = BindingTimes(
            source, staging.analysis.event, events, {}, staging.parse, staging.returns, RULES
        )
        self.guards: list[Guard] = []
        self.names: dict[str, Any] = {}
        self.dropped: dict[str, Type] = {}
        self.used: set[str] = set()
        self.of_name: dict[str, int] = {}
        self.guards_of: dict[str, list[Guard]] = {}
        self.caught = {
            node.name
            for node in ast.walk(source.tree)
            if isinstance(node, ast.ExceptHandler) and node.name
        }

    def refuse(self, node: ast.AST, problem: str, hint: str) -> NoReturn:
        self.staging.analysis.refuse(self.source, node, problem, hint)

    def check(self, number: int, at: int | None = None) -> ast.expr:
        """What raises where a derived value did; with a place, the read of that hidden column."""
        return ast.Attribute(ast.Name(self.event, ast.Load()), name_of(number, at), ast.Load())

    # ---- derived values ----

    def staged(self, node: ast.expr, given: Type, unpack: Unpack = (0, None)) -> ast.expr:
        """The reads of hidden columns that stand for an expression."""
        number = self.seen(node, given, unpack)
        count = len(given.of) if given.name == "tuple" else 1
        if any(one.name == "list" for one in (given, *given.of)):
            self.uses_arena()
        reads = [self.check(number, at) for at in range(count)]
        made = ast.Tuple(reads, ast.Load()) if given.name == "tuple" else reads[0]
        placed: ast.expr = at_place(made, node)
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
        self.staging.analysis.uses_arena = True

    def drop_assigned(self, node: ast.expr) -> None:
        """Names that are assigned within something staged are gone."""
        for part in ast.walk(node):
            if isinstance(part, ast.NamedExpr):
                self.dropped[part.target.id] = self.alone.of(part.value).type

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
        function, key = made.function(at_place(body, node), guards, unpack)
        self.names |= made.names
        derived = Derived(
            text=ast.unparse(node),
            inputs=tuple(made.inputs.values()),
            parts=shape.parts,
            is_tuple=shape.is_tuple,
            is_seen=shape.is_seen,
            function=function,
            in_place=made.in_place,
        )
        return self.staging.add(derived, (key, shape))

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

    def is_emit(self, callee: ast.expr) -> bool:
        return isinstance(callee, ast.Name) and callee.id in self.source.parameters

    def is_safe(self, node: ast.expr) -> bool:
        """Whether a condition is for Python what it is for compiled code: there integers wrap, and
        a null is a zero."""
        found = self.alone.found.get(node)
        if found is None or found.depends == STATE or found.is_bound:
            return False
        if found.is_staged or isinstance(node, ast.Constant):
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
            if binding.at is None:
                self.of_name[name] = self.derive(binding.value, INNER)
            else:
                at, count = binding.at
                whole = self.derive(binding.value, INNER, unpack=(count, binding.star))
                self.of_name[name] = self.item(whole, at)
            self.guards = guards
        return self.of_name[name]

    def item(self, whole: int, at: int) -> int:
        """The derived value that is an element of another."""
        derived = Derived(f"[{at}]", (whole,), is_seen=False, function=operator.itemgetter(at))
        return self.staging.add(derived, ("item", whole, at))

    # ---- the same expression for Python ----

    def python(self, node: Any, made: Made) -> Any:
        """A copy of an expression, over the inputs of a derived value."""
        if node in self.alone.dates.never:
            self.refuse(node, *self.alone.dates.never[node])
        copied = self.numbers(node, made)
        if node in self.alone.dates.own:
            return ast.Call(ast.Name("__ss_own", ast.Load()), [copied], [])
        return copied

    def numbers(self, node: Any, made: Made) -> Any:
        """The same, where columns of dates, times and decimals are numbers."""
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
                return made.call(self.called(node, mark))
        copied = copy.copy(node)
        for name, value in ast.iter_fields(node):
            if isinstance(value, list):
                setattr(copied, name, [self.python_part(one, made) for one in value])
            else:
                setattr(copied, name, self.python_part(value, made))
        found = self.alone.found.get(node) if isinstance(node, ast.expr) else None
        is_computed = isinstance(node, ast.BinOp | ast.UnaryOp | ast.Call)
        if found is not None and is_computed and found.type == INT and not found.is_wide:
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
            if binding.at is None and self.alone.elements.is_used_up(binding.value):
                return self.made_anew(node, binding.value, made)
            if binding.at is None and self.alone.elements.is_changed_object(
                name, self.alone.of(node).type
            ):
                return self.made_anew(node, binding.value, made)
            is_simple = isinstance(binding.value, ast.Constant | ast.Name | ast.Attribute)
            if binding.at is None and is_simple and name not in self.of_name:
                inlined: ast.expr = self.python(binding.value, made)
                return inlined
            read = made.input(f"__ss_local_{name}", self.local(name))
            declared = None if binding.annotation is None else of.annotated(binding.annotation)
            if declared is not None and of.required(declared) == FLOAT and binding.at is None:
                read = ast.Call(ast.Name("__ss_float", ast.Load()), [read], [])
            return read
        if name not in self.alone.locals:
            made.use(name)
        return node

    def made_anew(self, node: ast.Name, value: ast.expr, made: Made) -> ast.expr:
        """An iterator or object that has a name and changes: not that of other events."""
        if not self.alone.elements.is_read_once(node.id):
            if self.alone.elements.is_used_up(value):
                what = "an iterator, which can be used only once,"
                hint = (
                    f"make a list of it where it is made, {node.id} = list(...), and take the "
                    "items from that; or go through it in a function marked @ss.pure"
                )
            else:
                what = f"a {of.described(self.alone.of(node).type)}, which a function changes,"
                hint = "do all of it in a function marked @ss.pure, and return what is needed"
            self.refuse(
                node, f"{node.id!r} is {what} and is read in several places or in a loop", hint
            )
        self.local(node.id)
        inside: ast.expr = self.python(value, made)
        return inside

    def argument(self, node: ast.expr) -> str | int:
        """What a function that is marked as pure is given."""
        is_column = isinstance(node, ast.Attribute) and self.alone.is_event(node.value)
        if isinstance(node, ast.Attribute) and is_column and node not in self.alone.dates.own:
            return node.attr
        return self.derive(node, INNER)

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
        return self.staging.add(derived, ("call", id(constant), inputs, names))


def _by_keyword(function: Callable[..., Any], names: tuple[str, ...]) -> Callable[..., Any]:
    def call(*values: Any) -> Any:
        positional = len(values) - len(names)
        return function(*values[:positional], **dict(zip(names, values[positional:], strict=True)))

    return call


def _part(given: Type) -> Part:
    if given.name == "list":
        return list_part(given)
    kind: Any = of.required(given).name
    return Part(kind, given.name == "optional")
