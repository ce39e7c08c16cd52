"""Functions inside of a function, in the rewriting for Numba: each becomes a function of its own.

What it captures it is given as arguments, at each call. As nothing else runs meanwhile, and nothing
inside may rebind a captured name, that is what Python's cells hold. So a nested function may be
called, and that is all: where it went elsewhere, nobody would know what to give it.
"""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from specstream.compiler.backend.numba_pipeline import compiled
from specstream.compiler.frontend.scopes import bound_names, own_name
from specstream.compiler.frontend.signatures import bind, parameters_of
from specstream.compiler.lowering.rewriter_base import NativeParts

__all__ = ["RUN", "Nested", "NestedFunctions"]

RUN = "__ss_run"
Definition = ast.FunctionDef | ast.Lambda


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


class NestedFunctions(NativeParts):
    """What the native rewriting does with nested functions and lambdas."""

    nested: Nested

    def find_nested(self) -> Nested:
        """Finds which names are functions of this one."""
        nested = Nested()
        tree = ast.Module(self.source.tree.body, [])
        for node in ast.walk(tree):
            name = _defined_name(node)
            if name is not None and not isinstance(node, ast.FunctionDef):
                assert isinstance(node, ast.Assign | ast.AnnAssign)
                assert isinstance(node.value, ast.Lambda)
                nested.defined[name] = node.value
            elif name is not None:
                assert isinstance(node, ast.FunctionDef)
                nested.defined[name] = node
        if nested.defined:
            self.require_one_definition(tree, nested)
        return nested

    def require_one_definition(self, tree: ast.Module, nested: Nested) -> None:
        bound: Counter[str] = Counter(self.source.parameters)
        for node in ast.walk(tree):
            names = [node.name] if isinstance(node, ast.FunctionDef) else []
            if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                names = [node.id]
            for name in names:
                bound[name] += 1
                if bound[name] > 1 and name in nested.defined:
                    self.check.refuse(
                        node,
                        f"{name!r} is a function, and is assigned more than once",
                        "give each function a name of its own, and choose where it is called: "
                        "f(x) if a else g(x)",
                    )

    # ---- definitions ----

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        return self.define(node.name, node, node)

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        self.check.refuse(
            node,
            "a lambda is not called here",
            "give it a name, f = lambda x: ..., and call that, or give it to min or max as key=; "
            "functions cannot be stored or passed on",
        )

    def define(self, name: str, node: Definition, at: ast.AST) -> list[ast.stmt]:
        """What a definition does when it is met: it evaluates the defaults."""
        statements: list[ast.stmt] = []
        for parameter, default in _defaults(node):
            if not isinstance(default, ast.Constant):
                target = ast.Name(_kept_default(name, parameter), ast.Store())
                kept = ast.Assign([target], self.visit(copy.deepcopy(default)))
                statements.append(ast.copy_location(kept, at))
        return statements or [ast.copy_location(ast.Pass(), at)]

    # ---- calls ----

    def call_nested(self, node: ast.Call, name: str) -> ast.expr:
        """A call of a nested function by its name."""
        definition = self.nested.defined[name]
        if name not in self.nested.lifted:
            if name in self.nested.open:
                self.check.refuse(node, f"{name!r} calls itself", "write the recursion as a loop")
            self.nested.open.append(name)
            self.nested.lifted[name] = self.lift_definition(definition)
            self.nested.open.pop()
        return self.call_lifted(node, own_name(name), definition, self.nested.lifted[name], name)

    def call_lambda(self, node: ast.Call, function: ast.Lambda) -> ast.expr:
        """A call of a lambda where it is written."""
        before = self.define("", function, node)
        if not isinstance(before[0], ast.Pass):
            self.check.refuse(
                node, "a lambda that is called at once has defaults", "give the values in the call"
            )
        return self.call_lifted(node, "lambda", function, self.lift_definition(function), "")

    def lift_definition(self, definition: Definition) -> str:
        body = definition.body
        statements = body if isinstance(body, list) else [_returned(body)]
        names = [*parameters_of(definition.args).names, *self.captured([definition])]
        return self.lift(names, statements, definition)

    def call_lifted(
        self, node: ast.Call, shown: str, definition: Definition, lifted: str, name: str
    ) -> ast.expr:
        given = bind(node, shown, parameters_of(definition.args), self.check.refuse)
        arguments = [self.visit(argument) for argument in node.args]
        named = [(one, self.visit(given[one])) for one in list(given)[len(node.args) :]]
        for parameter, default in _defaults(definition):
            if parameter in given:
                continue
            if isinstance(default, ast.Constant):
                named.append((parameter, self.visit(copy.deepcopy(default))))
            else:
                named.append((parameter, _load(_kept_default(name, parameter))))
        return self.call(lifted, arguments, named, self.captured([definition]), node)

    def call(
        self,
        lifted: str,
        arguments: Sequence[ast.expr],
        named: Sequence[tuple[str, ast.expr]],
        captured: Iterable[str],
        at: ast.AST,
    ) -> ast.Call:
        """A call of a lifted function; what is captured is read last."""
        given = [*named, *((name, _load(name)) for name in captured)]
        for value in (*arguments, *(value for _, value in given)):
            ast.copy_location(value, at) if not hasattr(value, "lineno") else None
        keywords = [ast.keyword(name, self.argument(value)) for name, value in given]
        call = ast.Call(_load(lifted), [_load(RUN), *map(self.argument, arguments)], keywords)
        ast.copy_location(call, at)
        return ast.fix_missing_locations(call)

    # ---- functions of their own ----

    def captured(
        self, nodes: Sequence[ast.AST], assigned_outside: Collection[str] = ()
    ) -> list[str]:
        """The names that nodes have and that belong outside of them, in a fixed order."""
        own: set[str] = set().union(*map(bound_names, nodes)) - set(assigned_outside)
        found: set[str] = set()
        self._capture(nodes, own, found, set())
        return sorted(found)

    def _capture(
        self, nodes: Sequence[ast.AST], own: set[str], found: set[str], met: set[str]
    ) -> None:
        names = {part.id for node in nodes for part in ast.walk(node) if isinstance(part, ast.Name)}
        for name in names:
            definition = self.nested.defined.get(name)
            if definition is None:
                if name in self.check.locals and name not in own:
                    found.add(name)
            elif name not in met:
                met.add(name)
                found |= {
                    _kept_default(name, parameter)
                    for parameter, default in _defaults(definition)
                    if name not in own and not isinstance(default, ast.Constant)
                }
                self._capture([definition], own | bound_names(definition), found, met)

    def lift(self, parameters: Sequence[str], body: Sequence[ast.stmt], at: ast.AST) -> str:
        """Makes a function of statements, which are not rewritten yet; gives the name that it is
        called by."""
        inner = type(self)(self.analysis, self.source, self.check)
        inner.begin(self.nested)
        statements = inner.statements(copy.deepcopy(list(body)))
        name = f"__ss_nested_{len(self.source.nested) + 1}"
        arguments = [ast.arg(one) for one in (RUN, *parameters)]
        tree = ast.FunctionDef(
            name,
            ast.arguments([], arguments, None, [], [], None, []),
            statements or [ast.Pass()],
            [],
        )
        tree = ast.fix_missing_locations(ast.copy_location(tree, at))
        self.source.nested.append(tree)
        function = self.source.compile(tree, self.source.native_namespace)
        self.source.lifted.append(function)
        self.source.native_namespace[name] = compiled(function)
        return name


def _defined_name(node: ast.AST) -> str | None:
    """The name that a statement makes a function's."""
    if isinstance(node, ast.FunctionDef):
        return node.name
    targets = node.targets if isinstance(node, ast.Assign) else []
    targets = [node.target] if isinstance(node, ast.AnnAssign) else targets
    is_lambda = isinstance(getattr(node, "value", None), ast.Lambda)
    if is_lambda and len(targets) == 1 and isinstance(targets[0], ast.Name):
        return targets[0].id
    return None


def _defaults(definition: Definition) -> list[tuple[str, ast.expr]]:
    arguments = definition.args
    positional = [*arguments.posonlyargs, *arguments.args]
    plain = positional[len(positional) - len(arguments.defaults) :]
    pairs: list[tuple[ast.arg, ast.expr | None]] = [
        *zip(plain, arguments.defaults, strict=True),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    ]
    return [(one.arg, default) for one, default in pairs if default is not None]


def _kept_default(function: str, parameter: str) -> str:
    return f"__ss_default_{function}_{parameter}"


def _load(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _returned(value: ast.expr) -> ast.stmt:
    return ast.copy_location(ast.Return(value), value)
