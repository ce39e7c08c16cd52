"""Promotion by calls with ints here and with floats there: what is known of each version.

Their literals are floats in one, and ints in the other. Of how calls get their versions see
:mod:`specstream.compiler.facts.call_versions`.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from specstream.compiler.facts.number_kinds import clash, joined
from specstream.declarations.schema import Schema
from specstream.declarations.state_layout import Layout

__all__ = ["Kinds", "Known"]

Kinds = dict[str, Any]


@dataclass
class Version:
    """A helper, for calls that give it ints and floats in the same places.

    Attributes:
        kinds: of what it is given, by parameter.
        compiled: the function that is compiled for them; None: not called so far.
    """

    kinds: Kinds
    compiled: Any = None


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
        """In promotion by calls, the version of a function for a call; a new one is noted."""
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
        """In promotion by calls, what is compiled for a call, and its version's number."""
        version, versions = self.version(original, given), self.versions[original]
        function: types.FunctionType | None = version.compiled
        if function is None:
            is_first = all(one.compiled is None for one in versions)
            function = version.compiled = original if is_first else _copied_for_version(original)
            self.arguments[function] = version.kinds
        return function, versions.index(version) + 1


def _copied_for_version(function: types.FunctionType) -> types.FunctionType:
    """In promotion by calls, a function of its own that does the same: another version."""
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
