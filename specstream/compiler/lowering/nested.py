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
from typing import Any

from specstream.compiler.backend.numba_pipeline import compiled
from specstream.compiler.facts.refused_constructs import Check
from specstream.compiler.frontend.made_nodes import load
from specstream.compiler.frontend.operator_analysis import FunctionSource
from specstream.compiler.frontend.scopes import bound_names, own_name
from specstream.compiler.frontend.signatures import bind, parameters_of
from specstream.compiler.lowering.native_rewriter import (
    RUN,
    Definition,
    Handler,
    NativeRewriter,
    Nested,
)

__all__ = [
    "HANDLERS",
    "call",
    "call_lambda",
    "call_nested",
    "captured",
    "define",
    "find_nested",
    "lift",
]


def find_nested(source: FunctionSource, check: Check) -> Nested:
    """Finds which names are functions of this one."""
    tree = ast.Module(source.tree.body, [])
    nested = Nested(dict(filter(None, map(_definition_in, ast.walk(tree)))))
    if nested.defined:
        _require_one_definition(source, check, tree, nested)
    return nested


def _require_one_definition(
    source: FunctionSource, check: Check, tree: ast.Module, nested: Nested
) -> None:
    bound: Counter[str] = Counter(source.parameters)
    for node in ast.walk(tree):
        names = [node.name] if isinstance(node, ast.FunctionDef) else []
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            names = [node.id]
        for name in names:
            bound[name] += 1
            if bound[name] > 1 and name in nested.defined:
                check.refuse(
                    node,
                    f"{name!r} is a function, and is assigned more than once",
                    "give each function a name of its own, and choose where it is called: "
                    "f(x) if a else g(x)",
                )


def define(rewriter: NativeRewriter, name: str, node: Definition, at: ast.AST) -> list[ast.stmt]:
    """What a definition does when it is met: it evaluates the defaults."""
    statements: list[ast.stmt] = []
    for parameter, default in _defaults(node):
        if not isinstance(default, ast.Constant):
            target = ast.Name(_kept_default(name, parameter), ast.Store())
            kept = ast.Assign([target], rewriter.visit(copy.deepcopy(default)))
            statements.append(ast.copy_location(kept, at))
    return statements or [ast.copy_location(ast.Pass(), at)]


def _definition(rewriter: NativeRewriter, node: ast.FunctionDef) -> Any:
    return define(rewriter, node.name, node, node)


def _refuse_lambda(rewriter: NativeRewriter, node: ast.Lambda) -> Any:
    rewriter.check.refuse(
        node,
        "a lambda is not called here",
        "give it a name, f = lambda x: ..., and call that, or give it to min or max as key=; "
        "functions cannot be stored or passed on",
    )


def call_nested(rewriter: NativeRewriter, node: ast.Call, name: str) -> ast.expr:
    """A call of a nested function by its name."""
    definition = rewriter.nested.defined[name]
    if name not in rewriter.nested.lifted:
        if name in rewriter.nested.open:
            rewriter.check.refuse(node, f"{name!r} calls itself", "write the recursion as a loop")
        rewriter.nested.open.append(name)
        rewriter.nested.lifted[name] = _lift_definition(rewriter, definition)
        rewriter.nested.open.pop()
    return _call_lifted(
        rewriter, node, own_name(name), definition, rewriter.nested.lifted[name], name
    )


def call_lambda(rewriter: NativeRewriter, node: ast.Call, function: ast.Lambda) -> ast.expr:
    """A call of a lambda where it is written."""
    before = define(rewriter, "", function, node)
    if not isinstance(before[0], ast.Pass):
        rewriter.check.refuse(
            node, "a lambda that is called at once has defaults", "give the values in the call"
        )
    return _call_lifted(
        rewriter, node, "lambda", function, _lift_definition(rewriter, function), ""
    )


def _lift_definition(rewriter: NativeRewriter, definition: Definition) -> str:
    body = definition.body
    statements = body if isinstance(body, list) else [_returned(body)]
    names = [*parameters_of(definition.args).names, *captured(rewriter, [definition])]
    return lift(rewriter, names, statements, definition)


def _call_lifted(
    rewriter: NativeRewriter,
    node: ast.Call,
    shown: str,
    definition: Definition,
    lifted: str,
    name: str,
) -> ast.expr:
    given = bind(node, shown, parameters_of(definition.args), rewriter.check.refuse)
    arguments = [rewriter.visit(argument) for argument in node.args]
    named = [(one, rewriter.visit(given[one])) for one in list(given)[len(node.args) :]]
    for parameter, default in _defaults(definition):
        if parameter in given:
            continue
        if isinstance(default, ast.Constant):
            named.append((parameter, rewriter.visit(copy.deepcopy(default))))
        else:
            named.append((parameter, load(_kept_default(name, parameter))))
    return call(rewriter, lifted, arguments, named, captured(rewriter, [definition]), node)


def call(
    rewriter: NativeRewriter,
    lifted: str,
    arguments: Sequence[ast.expr],
    named: Sequence[tuple[str, ast.expr]],
    captured: Iterable[str],
    at: ast.AST,
) -> ast.Call:
    """A call of a lifted function; what is captured is read last."""
    given = [*named, *((name, load(name)) for name in captured)]
    for value in (*arguments, *(value for _, value in given)):
        ast.copy_location(value, at) if not hasattr(value, "lineno") else None
    keywords = [ast.keyword(name, rewriter.argument(value)) for name, value in given]
    call = ast.Call(load(lifted), [load(RUN), *map(rewriter.argument, arguments)], keywords)
    ast.copy_location(call, at)
    return ast.fix_missing_locations(call)


def captured(
    rewriter: NativeRewriter, nodes: Sequence[ast.AST], assigned_outside: Collection[str] = ()
) -> list[str]:
    """The names that nodes have and that belong outside of them, in a fixed order."""
    own: set[str] = set().union(*map(bound_names, nodes)) - set(assigned_outside)
    found: set[str] = set()
    _capture(rewriter, nodes, own, found, set())
    return sorted(found)


def _capture(
    rewriter: NativeRewriter,
    nodes: Sequence[ast.AST],
    own: set[str],
    found: set[str],
    met: set[str],
) -> None:
    names = {part.id for node in nodes for part in ast.walk(node) if isinstance(part, ast.Name)}
    for name in names:
        definition = rewriter.nested.defined.get(name)
        if definition is None:
            if name in rewriter.check.locals and name not in own:
                found.add(name)
        elif name not in met:
            met.add(name)
            found |= {
                _kept_default(name, parameter)
                for parameter, default in _defaults(definition)
                if name not in own and not isinstance(default, ast.Constant)
            }
            _capture(rewriter, [definition], own | bound_names(definition), found, met)


def lift(
    rewriter: NativeRewriter, parameters: Sequence[str], body: Sequence[ast.stmt], at: ast.AST
) -> str:
    """Makes a function of statements, which are not rewritten yet; gives the name that it is
    called by."""
    inner = NativeRewriter(
        rewriter.analysis, rewriter.source, rewriter.check, rewriter.handlers, rewriter.nested
    )
    statements = inner.statements(copy.deepcopy(list(body)))
    name = f"__ss_nested_{len(rewriter.source.nested) + 1}"
    arguments = [ast.arg(one) for one in (RUN, *parameters)]
    tree = ast.FunctionDef(
        name,
        ast.arguments([], arguments, None, [], [], None, []),
        statements or [ast.Pass()],
        [],
    )
    tree = ast.fix_missing_locations(ast.copy_location(tree, at))
    rewriter.source.nested.append(tree)
    function = rewriter.source.compile(tree, rewriter.source.native_namespace)
    rewriter.source.lifted.append(function)
    rewriter.source.native_namespace[name] = compiled(function)
    return name


def _definition_in(node: ast.AST) -> tuple[str, Definition] | None:
    """The function that a statement gives a name, with that."""
    if isinstance(node, ast.FunctionDef):
        return node.name, node
    targets = node.targets if isinstance(node, ast.Assign) else []
    targets = [node.target] if isinstance(node, ast.AnnAssign) else targets
    value = getattr(node, "value", None)
    if isinstance(value, ast.Lambda) and len(targets) == 1 and isinstance(targets[0], ast.Name):
        return targets[0].id, value
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


def _returned(value: ast.expr) -> ast.stmt:
    return ast.copy_location(ast.Return(value), value)


HANDLERS: dict[type[ast.AST], Handler] = {
    ast.FunctionDef: _definition,
    ast.Lambda: _refuse_lambda,
}
