"""Stages what depends on the event alone and cannot be compiled out of an operator's functions.

``event.key.startswith("EU")`` becomes ``event.__ss_derived_0``, a column that nobody else sees, and
a function of the event's columns that Python calls for each distinct key before the operator runs
(:mod:`specstream.columns.derived`). That happens to the syntax tree, before anything else is done
with it, so that the oracle and compiled code read the same column.

Staged is the smallest expression that cannot be compiled and that gives what a column can hold
(:mod:`specstream.compiler.facts.binding_times`). Conditions around it that depend on nothing else
than it does itself go along, so that nothing is computed, and no exception is made, where the
operator never gets. They only save work: an exception is raised where the operator gets to it.
"""

from __future__ import annotations

import ast
import inspect
import types
from collections.abc import Callable
from typing import Any

from specstream.compiler.facts.name_bindings import look_up
from specstream.compiler.frontend.loop_names import tell_apart
from specstream.compiler.frontend.operator_analysis import Analysis, FunctionSource
from specstream.compiler.frontend.single_assignment import name_steps
from specstream.compiler.staging.staged_function import StagedFunction
from specstream.compiler.staging.staged_values import Staged
from specstream.declarations.pure import pure_mark
from specstream.declarations.state_layout import Layout

__all__ = ["Staging"]


class Staging(Staged):
    """Goes through an operator's functions; what it finds is in :class:`Staged`.

    Attributes:
        events: of each function, the parameters that are the event.
    """

    def __init__(
        self,
        analysis: Analysis,
        parse: Callable[[types.FunctionType], FunctionSource],
        layout: Layout,
    ) -> None:
        super().__init__(analysis, parse, layout)
        self.events: dict[types.FunctionType, frozenset[str]] = {}

    def begin(self, function: types.FunctionType, event: str) -> None:
        """Finds out which parameters of the operator's functions are the event.

        Args:
            function: the operator's.
            event: its parameter.
        """
        sites: dict[types.FunctionType, list[tuple[types.FunctionType, ast.Call]]] = {}
        _collect_calls(function, self.parse, sites, [])
        self.events[function] = frozenset([event])
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

    def stage(self, source: FunctionSource) -> dict[str, Any]:
        """Stages what there is in a function, and changes its tree; gives the names it uses."""
        events = self.events.get(source.original, frozenset())
        stored = {
            node.id
            for node in ast.walk(source.tree)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }
        events -= stored
        tell_apart(source.tree)
        if events:
            name_steps(source.tree, events)
        return StagedFunction(self, source, events).stage()


def _collect_calls(
    function: types.FunctionType,
    parse: Callable[[types.FunctionType], FunctionSource],
    sites: dict[types.FunctionType, list[tuple[types.FunctionType, ast.Call]]],
    seen: list[types.FunctionType],
) -> None:
    """Before staging: collects the calls of plain functions, from an operator's function on."""
    if function in seen:
        return
    seen.append(function)
    for node in ast.walk(parse(function).tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            callee = look_up(function, node.func.id)
            if isinstance(callee, types.FunctionType) and pure_mark(callee) is None:
                sites.setdefault(callee, []).append((function, node))
                try:
                    _collect_calls(callee, parse, sites, seen)
                except Exception:  # whoever compiles it says what is wrong
                    continue
