"""Properties: plain functions of a state, an event and its rows, and what they mean to the solver.

A property is rewritten so that nothing in it forks: ``a and b`` becomes a call, and ``all(... for
x in state.field)`` one that has the loop's body as a function. What comes out is a *formula*, which
is read in two ways: of what is to be shown, ``all`` is about an unknown key; of what is assumed,
about every key that the event touches. On a state that is known the same code computes with
Python's numbers.
"""

# z3 carries no types.
# mypy: allow-untyped-calls

from __future__ import annotations

import ast
import inspect
import types
from dataclasses import dataclass
from typing import Any, NoReturn

from specstream.compiler.language.definitions import definition_of
from specstream.definition.operator import Operator
from specstream.errors import ConfigurationError
from specstream.verify import formulas

__all__ = ["Property", "PropertyError"]

_BUILTINS = ("all", "any", "sum", "len", "min", "max", "abs", "int", "float", "bool")
_METHODS = ("values", "keys", "items", "get", "is_null")
_EXPRESSIONS = (
    *(ast.BoolOp, ast.BinOp, ast.UnaryOp, ast.Compare, ast.IfExp, ast.Call, ast.Attribute),
    *(ast.Subscript, ast.Name, ast.Constant, ast.Tuple, ast.GeneratorExp, ast.Starred),
)
_OF_EVENTS = ("timestamp", "sequence", "is_null")
_STATEMENTS = (ast.Return, ast.If, ast.Assign, ast.Expr, ast.Pass)


class PropertyError(ConfigurationError):
    """A question that is none: a property that changes something, or asks for what is not there."""


class Property:
    """A property of a state, or of an event and what it does.

    Attributes:
        raised: what it has raised, where it was asked last and did; "": nothing.

    Args:
        function: plain, of any of ``parameters``.
        operator: whose state and events it is about.
        parameters: that it may take.
    """

    def __init__(
        self, function: Any, operator: Operator, parameters: tuple[str, ...], option: str
    ) -> None:
        if not isinstance(function, types.FunctionType):
            raise PropertyError(
                f"{option} is {function!r}; expected a plain function of ({', '.join(parameters)})"
            )
        self.name = function.__name__
        self.function, self.operator, self._option = function, operator, option
        self._file = function.__code__.co_filename
        found = definition_of(function)
        if found is None:
            raise PropertyError(f"the source of property {self.name!r} cannot be read")
        self.line = found.line
        taken = tuple(inspect.signature(function).parameters)
        if not taken or any(one not in parameters for one in taken):
            self.refuse(
                found.tree,
                f"takes ({', '.join(taken)})",
                f"{option} takes any of ({', '.join(parameters)})",
            )
        self.parameters = taken
        self.raised = ""
        self._code = self._rewritten(function, found.tree)

    def refuse(self, node: ast.AST, problem: str, hint: str) -> NoReturn:
        line = getattr(node, "lineno", self.line)
        raise PropertyError(f"property {self.name!r}, {self._file}:{line}: {problem}; {hint}")

    def refuse_all(self, problem: str, hint: str) -> NoReturn:
        """Refuses it as a whole."""
        self.refuse(ast.Pass(lineno=self.line), problem, hint)

    # ---- what may stand in it ----

    def _check(self, tree: ast.FunctionDef, parameters: tuple[str, ...]) -> None:
        bound = {
            one.id
            for one in ast.walk(tree)
            if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
        } | set(parameters)
        for node in ast.walk(tree):
            if isinstance(node, ast.stmt) and node is not tree:
                self._check_statement(node)
            elif isinstance(node, ast.expr):
                self._check_expression(node, bound)

    def _check_statement(self, node: ast.stmt) -> None:
        if not isinstance(node, _STATEMENTS):
            kind = type(node).__name__.lower()
            if isinstance(node, ast.AugAssign):
                self.refuse(node, "stores something", "a property changes nothing: return a bool")
            self.refuse(
                node,
                f"has a statement that properties do not have ({kind})",
                "write if, assignments to names, and return",
            )
        targets = node.targets if isinstance(node, ast.Assign) else []
        for target in targets:
            if not isinstance(target, ast.Name):
                self.refuse(node, "stores something", "a property changes nothing: return a bool")

    def _check_expression(self, node: ast.expr, bound: set[str]) -> None:
        if not isinstance(node, _EXPRESSIONS):
            self.refuse(
                node,
                f"has {ast.unparse(node)}, which properties do not have",
                "write comparisons, arithmetic, all, any, sum and len",
            )
        if isinstance(node, ast.Name) and node.id not in bound:
            self._global(node)
        if isinstance(node, ast.Attribute):
            self._check_attribute(node)

    def _global(self, node: ast.Name) -> Any:
        value = _look_up(self.function, node.id)
        if value is _MISSING:
            self.refuse(node, f"there is no name {node.id!r}", "define it, or mend the name")
        is_known = isinstance(value, bool | int | float | str | types.FunctionType)
        if node.id not in _BUILTINS and not is_known:
            self.refuse(
                node,
                f"{node.id!r} is {type(value).__name__}",
                f"expected a number, a string, or one of {', '.join(_BUILTINS)}",
            )
        return value

    def _check_attribute(self, node: ast.Attribute) -> None:
        owner = node.value.id if isinstance(node.value, ast.Name) else ""
        if owner in ("state", "before", "after"):
            layout = self.operator.layout
            names = [one.name for one in layout.fields if one.space == "state"]
            if node.attr not in names and not layout.has_part(node.attr):
                self.refuse(
                    node, f"the state has no field {node.attr!r}", f"it has {', '.join(names)}"
                )
        elif isinstance(node.value, ast.Attribute):
            self._check_field_of_vertex(node, node.value)
        elif owner == "event":
            known = (*self.operator.event.names, *self.operator.sources, *_OF_EVENTS)
            if node.attr not in known:
                self.refuse(
                    node,
                    f"the event has no column {node.attr!r}",
                    f"it has {', '.join(self.operator.event.names)}, timestamp, sequence",
                )

    def _check_field_of_vertex(self, node: ast.Attribute, of: ast.Attribute) -> None:
        layout = self.operator.layout
        is_state = isinstance(of.value, ast.Name) and of.value.id in ("state", "before", "after")
        if not is_state or not layout.has_part(of.attr):
            return
        if layout.field(f"{of.attr}.{node.attr}") is None:
            fields = [one.name for one in layout.fields if one.name.startswith(f"{of.attr}.")]
            self.refuse(
                node,
                f"vertex {of.attr!r} has no field {node.attr!r}",
                f"it has {', '.join(one.partition('.')[2] for one in fields)}",
            )

    # ---- what it is rewritten to ----

    def _rewritten(self, function: types.FunctionType, tree: ast.FunctionDef) -> Any:
        tree = _Untyped().visit(tree)
        self._check(tree, self.parameters)
        _Rewriter(self).visit(tree)
        ast.fix_missing_locations(tree)
        namespace: dict[str, Any] = {}
        for name in {one.id for one in ast.walk(tree) if isinstance(one, ast.Name)}:
            value = _look_up(function, name)
            if isinstance(value, types.FunctionType) and name not in _BUILTINS:
                helper = definition_of(value)
                if helper is None:
                    raise PropertyError(f"the source of {name!r} cannot be read")
                taken = tuple(inspect.signature(value).parameters)
                of_helper = self._like(value, taken)
                value = of_helper._rewritten(value, helper.tree)
            if value is not _MISSING:
                namespace[name] = value
        namespace |= formulas.NAMES
        exec(compile(ast.Module([tree], []), self._file, "exec"), namespace)
        return namespace[tree.name]

    def _like(self, function: types.FunctionType, parameters: tuple[str, ...]) -> Property:
        made = object.__new__(Property)
        vars(made).update(vars(self))
        made.function, made.parameters = function, parameters
        return made

    def formula(self, **values: Any) -> Any:
        """What it says of these values, a :class:`formulas.Formula`."""
        given = {name: values[name] for name in self.parameters}
        try:
            found = formulas.of_function(lambda: self._code(**given))
        except AttributeError as error:
            self.refuse_all(*str(error).partition("; ")[::2])
        if found is None:
            raise PropertyError(
                f"property {self.name!r}, {self._file}:{self.line}: it returns no bool; compare "
                "with something"
            )
        return found

    def holds(self, **values: Any) -> bool:
        """Whether it holds of values that are known."""
        given = {name: values[name] for name in self.parameters}
        found = self._code(**given)
        if not isinstance(found, bool):
            try:
                found = formulas.known_truth(found)
            except TypeError:
                raise PropertyError(
                    f"property {self.name!r}, {self._file}:{self.line}: it returns "
                    f"{type(found).__name__}, no bool; compare with something"
                ) from None
        return found


_MISSING = object()


def _look_up(function: types.FunctionType, name: str) -> Any:
    closure = inspect.getclosurevars(function)
    for names in (closure.nonlocals, closure.globals, closure.builtins):
        if name in names:
            return names[name]
    return function.__globals__.get(name, _MISSING)


class _Untyped(ast.NodeTransformer):
    """Takes away what says nothing about the values: decorators and annotations."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        node.decorator_list, node.returns = [], None
        self.generic_visit(node)
        return node

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        return ast.copy_location(ast.Assign([node.target], node.value), node)


@dataclass
class _Rewriter(ast.NodeTransformer):
    """Makes calls of what would ask for a truth."""

    of: Property

    def _call(self, name: str, *arguments: ast.expr, at: ast.AST) -> ast.expr:
        made = ast.Call(ast.Name(f"__v_{name}", ast.Load()), list(arguments), [])
        return ast.copy_location(made, at)

    def _later(self, node: ast.expr) -> ast.expr:
        none = ast.arguments([], [], None, [], [], None, [])
        return ast.copy_location(ast.Lambda(none, node), node)

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        self.generic_visit(node)
        name = "and" if isinstance(node.op, ast.And) else "or"
        found = node.values[-1]
        for one in reversed(node.values[:-1]):
            found = self._call(name, one, self._later(found), at=node)
        return found

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        self.generic_visit(node)
        if isinstance(node.op, ast.Not):
            return self._call("not", node.operand, at=node)
        return node

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        self.generic_visit(node)
        return self._call(
            "if", node.test, self._later(node.body), self._later(node.orelse), at=node
        )

    def visit_Compare(self, node: ast.Compare) -> Any:
        self.generic_visit(node)
        pairs = [node.left, *node.comparators]
        parts: list[ast.expr] = []
        for left, op, right in zip(pairs, node.ops, pairs[1:], strict=False):
            if isinstance(op, ast.In | ast.NotIn):
                found = self._call("in", left, right, at=node)
                parts.append(found if isinstance(op, ast.In) else self._call("not", found, at=node))
            elif isinstance(op, ast.Is | ast.IsNot):
                found = self._call("is_none", left, at=node)
                parts.append(found if isinstance(op, ast.Is) else self._call("not", found, at=node))
            else:
                parts.append(ast.copy_location(ast.Compare(left, [op], [right]), node))
        found = parts[-1]
        for one in reversed(parts[:-1]):
            found = self._call("and", one, self._later(found), at=node)
        return found

    def visit_Call(self, node: ast.Call) -> Any:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if isinstance(node.func, ast.Attribute) and node.func.attr not in _METHODS:
            self.of.refuse(
                node, f"calls the method {node.func.attr}()", f"properties have {_METHODS}"
            )
        loop = node.args[0] if len(node.args) == 1 else None
        if name in ("all", "any", "sum") and isinstance(loop, ast.GeneratorExp):
            return self._quantified(name, loop, node)
        self.generic_visit(node)
        if name in _BUILTINS and node.keywords:
            given = ", ".join(f"{one.arg}=" for one in node.keywords)
            self.of.refuse(node, f"{name} with {given}", "write it without")
        if name in _BUILTINS:
            return self._call(name, *node.args, at=node)
        return node

    def _quantified(self, name: str, loop: ast.GeneratorExp, node: ast.Call) -> Any:
        if len(loop.generators) != 1:
            self.of.refuse(node, f"{name} of two loops", "write one loop over one field")
        one = loop.generators[0]
        if isinstance(one.target, ast.Name):
            names, several = [one.target.id], False
        elif isinstance(one.target, ast.Tuple) and all(
            isinstance(part, ast.Name) for part in one.target.elts
        ):
            names, several = [part.id for part in one.target.elts], True  # type: ignore[attr-defined]
        else:
            self.of.refuse(node, "a loop over something else than names", "for key, value in ...")
        taken = ast.arguments([], [ast.arg(one) for one in names], None, [], [], None, [])
        tests = [self.visit(test) for test in one.ifs]
        test: ast.expr = ast.Constant(True)
        for found in reversed(tests):
            test = self._call("and", found, self._later(test), at=node)
        pair = ast.Tuple([test, self._later(self.visit(loop.elt))], ast.Load())
        body = ast.copy_location(ast.Lambda(taken, pair), node)
        each = self.visit(one.iter)
        return self._call(f"{name}_of", each, body, ast.Constant(several), at=node)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> Any:
        self.of.refuse(node, "a loop that is not in all, any or sum", "write all(... for x in ...)")
