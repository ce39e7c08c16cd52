"""What is known of an interpreted operator's function: that it is one, and that it reads
everything."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from specstream.compiler.driver import TIMER, checked_functions
from specstream.compiler.frontend.program import Program, Written
from specstream.compiler.pickling import called_by, written_as
from specstream.declarations.schema import EVENT_ATTRIBUTES, Schema
from specstream.declarations.state_layout import Layout
from specstream.errors import DeclarationError

__all__ = ["interpreted_program"]


def interpreted_program(
    function: Callable[..., Any],
    operator: str,
    event: Schema,
    layout: Layout,
    on_timer: Any = None,
    site: int = 1,
) -> Program:
    """The program of an operator that Python runs as it is written.

    Args:
        site: number of its first line, see :mod:`specstream.compiler.backend.operator_lowering`.

    Raises:
        DeclarationError: the function is not one of (state, event, emit), or is a generator or
            async; there are timers and nothing to run or the other way round; or a field has
            operations, which are compiled.
    """
    if layout.operations:
        names = ", ".join(dict.fromkeys(field.name for field, _ in layout.operations))
        raise DeclarationError(
            f"operator {operator!r} is interpreted, and its state has boosted fields ({names}), "
            "whose operations only compiled code can call; expected fields without boosted(...), "
            "whose functions are called on them, like sorted_insert(state.users, key)"
        )
    checked, fired = checked_functions(function, operator, layout, on_timer)
    for one in (checked, fired):
        _check_runs(one, operator)
    written = _written(checked, site)
    program = _program(checked, operator, frozenset((*event.names, *EVENT_ATTRIBUTES)), written)
    program.strings = tuple(layout.strings)
    if fired is not None:
        site += sum(len(one.text.splitlines()) for one in written.values())
        program.on_timer = _program(fired, operator, frozenset(), _written(fired, site))
        program.on_timer.is_on_timer, program.on_timer.event = True, TIMER
    return program


def _check_runs(function: types.FunctionType | None, operator: str) -> None:
    """A call of a function runs it."""
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        what, hint = "is a generator, which nobody would run", "emit(...) what it yields"
    elif inspect.iscoroutinefunction(function):
        what, hint = "is an async function, which nobody would await", "leave async out"
    else:
        return
    raise DeclarationError(
        f"operator {operator!r}: {function.__name__!r} {what}; expected a plain function: {hint}"
    )


def _written(function: types.FunctionType, site: int) -> dict[types.FunctionType, Written]:
    """A function and those of the user's own that it calls, which come first; none where there is
    no source. Their lines are numbered from ``site`` on."""
    own = written_as(function)
    if own is None:
        return {}
    found: dict[types.FunctionType, Written] = {}
    for one, written in (*called_by({function: own}).items(), (function, own)):
        found[one] = replace(written, site=site)
        site += len(written.text.splitlines())
    return found


def _program(
    function: types.FunctionType,
    operator: str,
    attributes: frozenset[str],
    written: dict[types.FunctionType, Written],
) -> Program:
    return Program(
        operator=operator,
        oracle=function,
        native=function,
        helpers=(),
        strings=(),
        fingerprint=f"interpreted {function.__module__}.{function.__qualname__}",
        reads_timestamp=True,
        attributes=attributes,
        written=written,
        # Walks through containers are put down in the worker's arena.
        uses_arena=True,
        is_interpreted=True,
    )
