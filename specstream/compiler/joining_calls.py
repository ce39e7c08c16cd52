"""Functions that are called with ints here and with floats there: each gets a version for each.

Their literals are floats in one, and ints in the other. A nested function is copied in the tree,
one of the module is compiled once more; the call has the name of the version that it means.
"""

from __future__ import annotations

import ast
import copy
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from specstream.compiler.number_kinds import clash, joined
from specstream.compiler.scopes import version_name
from specstream.declarations.schema import Schema
from specstream.declarations.state import Layout

if TYPE_CHECKING:
    from specstream.compiler.check import Check
    from specstream.compiler.joining import Joining

__all__ = ["Kinds", "Known", "tell_calls_apart"]

Kinds = dict[str, Any]


@dataclass
class Version:
    """A helper, for calls that give it ints and floats in the same places.

    Attributes:
        kinds: of what it is given, by parameter.
        function: that is compiled for them; None: not called so far.
    """

    kinds: Kinds
    function: types.FunctionType | None = None


@dataclass
class Known:
    """What an operator knows before it is compiled.

    Attributes:
        arguments: kinds of what a function is given, by parameter.
        open: functions on the way to the present one.
        versions: of each helper.
        returned: kinds of results, by helper and what it is given.
        held: likewise, of what it was given when it has run: it may have put something into a list.
        names: how many names were made up.
    """

    event: Schema
    layout: Layout
    parse: Callable[[types.FunctionType], ast.FunctionDef]
    arguments: dict[types.FunctionType, Kinds] = field(default_factory=dict)
    open: list[types.FunctionType] = field(default_factory=list)
    versions: dict[types.FunctionType, list[Version]] = field(default_factory=dict)
    returned: dict[Any, Any] = field(default_factory=dict)
    held: dict[Any, Kinds] = field(default_factory=dict)
    names: int = 0

    def version(self, function: types.FunctionType, given: Kinds) -> Version:
        """The one for a call."""
        versions = self.versions.setdefault(function, [])
        for one in versions:
            if not any(clash(one.kinds.get(name), kind) for name, kind in given.items()):
                break
        else:
            one = Version({})
            versions.append(one)
        for name, kind in given.items():
            one.kinds[name] = joined(one.kinds.get(name), kind)
        return one

    def function(
        self, original: types.FunctionType, given: Kinds
    ) -> tuple[types.FunctionType, int]:
        """What is compiled for a call, and its number among the versions."""
        version, versions = self.version(original, given), self.versions[original]
        function = version.function
        if function is None:
            is_first = all(one.function is None for one in versions)
            function = version.function = original if is_first else _copied(original)
            self.arguments[function] = version.kinds
        return function, versions.index(version) + 1


def _copied(function: types.FunctionType) -> types.FunctionType:
    """A function of its own that does the same."""
    made = types.FunctionType(
        function.__code__,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    made.__kwdefaults__ = function.__kwdefaults__
    made.__qualname__, made.__module__ = function.__qualname__, function.__module__
    made.__dict__.update(function.__dict__)
    return made


def tell_calls_apart(joining: Joining, check: Check) -> bool:
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
    joining: Joining,
    check: Check,
    name: str,
    definition: ast.FunctionDef | ast.Lambda,
) -> None:
    """A nested function once more, behind where it is defined."""
    block, at = _place(joining.tree, definition)
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


def _place(tree: ast.AST, definition: ast.AST) -> tuple[list[ast.stmt], int]:
    """The block, and the statement of it, that define a function."""
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            found = getattr(node, name, None)
            block: list[ast.stmt] = found if isinstance(found, list) else []
            for at, one in enumerate(block):
                if one is definition or getattr(one, "value", None) is definition:
                    return block, at
    raise AssertionError("a function that is defined nowhere")


def _version_of_helper(
    joining: Joining, call: ast.Call, callee: ast.Name, value: types.FunctionType
) -> None:
    tree = joining.parsed(value)
    if tree is None:
        return
    function, number = joining.known.function(value, joining.given(tree.args, call))
    if function is not value:
        callee.id = version_name(callee.id, number)
        joining.values[callee.id] = function
