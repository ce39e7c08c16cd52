"""Calls of one helper with ints here and floats there: each kind of call has a version of its own.

A nested function is copied in the tree, behind itself; a function of a module is compiled once
more (:class:`specstream.compiler.facts.promoted_versions.Known`).
"""

from __future__ import annotations

import ast
import copy
import types

from specstream.compiler.facts.literal_promotion import LiteralPromotion
from specstream.compiler.facts.number_kinds import clash, joined
from specstream.compiler.facts.promoted_versions import Kinds
from specstream.compiler.facts.refused_constructs import Check
from specstream.compiler.frontend.scopes import version_name

__all__ = ["tell_calls_apart"]


def tell_calls_apart(joining: LiteralPromotion, check: Check) -> bool:
    """Gives calls their versions; whether the tree has other functions than before, so that what is
    known of it has to be found again."""
    calls = [
        node
        for node in ast.walk(joining.tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    ]
    for name, definition in joining.functions.items():
        versions: list[tuple[Kinds, list[ast.Call]]] = []
        for call in calls:
            assert isinstance(call.func, ast.Name)
            if call.func.id == name:
                _sort_in(versions, joining.given(definition.args, call), call)
        for _, called in versions[1:]:
            _copy_for(called, joining, check, name, definition)
        if len(versions) > 1:
            return True
    for call in calls:
        assert isinstance(call.func, ast.Name)
        value = joining.values.get(call.func.id)
        if joining.is_helper(value) and call.func.id not in joining.webs.names:
            _version_of_helper(joining, call, call.func, value)
    return False


def _sort_in(versions: list[tuple[Kinds, list[ast.Call]]], given: Kinds, call: ast.Call) -> None:
    for kinds, calls in versions:
        if not any(clash(kinds.get(name), kind) for name, kind in given.items()):
            calls.append(call)
            break
    else:
        kinds = {}
        versions.append((kinds, [call]))
    for name, kind in given.items():
        kinds[name] = joined(kinds.get(name), kind)


def _copy_for(
    calls: list[ast.Call],
    joining: LiteralPromotion,
    check: Check,
    name: str,
    definition: ast.FunctionDef | ast.Lambda,
) -> None:
    """A nested function once more, behind where it is defined."""
    block, at = _place_of_helper(joining.tree, definition)
    made = copy.deepcopy(block[at])
    for one, other in zip(ast.walk(block[at]), ast.walk(made), strict=True):
        if one in check.raising:
            check.raising.add(other)
    joining.known.names += 1
    functions = {name, *(inner for inner in joining.functions if _binds(definition, inner))}
    renamed = {one: version_name(one, joining.known.names) for one in functions}
    for node in ast.walk(made):
        if isinstance(node, ast.Name):
            node.id = renamed.get(node.id, node.id)
        elif isinstance(node, ast.FunctionDef):
            node.name = renamed.get(node.name, node.name)
    for call in calls:
        assert isinstance(call.func, ast.Name)
        call.func.id = renamed[name]
    block.insert(at + 1, made)
    check.locals |= set(renamed.values())


def _binds(definition: ast.FunctionDef | ast.Lambda, name: str) -> bool:
    return any(
        (isinstance(node, ast.FunctionDef) and node.name == name and node is not definition)
        or (isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store))
        for node in ast.walk(definition)
    )


def _place_of_helper(tree: ast.AST, definition: ast.AST) -> tuple[list[ast.stmt], int]:
    """Where versions of a helper are put: the block and statement that define it."""
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            found = getattr(node, name, None)
            block: list[ast.stmt] = found if isinstance(found, list) else []
            for at, one in enumerate(block):
                if one is definition or getattr(one, "value", None) is definition:
                    return block, at
    raise AssertionError("a function that is defined nowhere")


def _version_of_helper(
    joining: LiteralPromotion, call: ast.Call, callee: ast.Name, value: types.FunctionType
) -> None:
    tree = joining.parsed(value)
    if tree is None:
        return
    function, number = joining.known.function(value, joining.given(tree.args, call))
    if function is not value:
        callee.id = version_name(callee.id, number)
        joining.values[callee.id] = function
