"""Polls in loops: where a run that is no longer wanted leaves its event."""

from __future__ import annotations

from typing import Any

from numba.core import types
from numba.extending import (
    intrinsic,
)

from specstream.compiler.backend.instructions import Value
from specstream.compiler.backend.memory import Run
from specstream.compiler.backend.numba_types import (
    BOOSTED,
    SPECULATIVE,
    VARIANTS,
    ContainerType,
    RunType,
)

__all__ = ["goes_on", "poll_for", "poll_in", "poll_while"]


def _poll(name: str, variants: tuple[str, ...], why: str) -> Any:
    def rule(typing_context: Any, run: types.Type) -> Any:
        assert isinstance(run, RunType)

        def code(context: Any, builder: Any, sig: Any, args: Any) -> Value:
            if run.variant in variants:
                Run(context, builder, args[0]).poll()
            return context.get_dummy_value()

        return types.void(run), code

    rule.__name__ = name
    rule.__doc__ = why
    return intrinsic(rule)


poll_for = _poll(
    "poll_for",
    (*SPECULATIVE, BOOSTED),
    "In a bounded loop: on inconsistent data the bound may be anything.",
)
poll_while = _poll(
    "poll_while",
    # Each of them: one load, as in the plain code that the log-free one is the baseline of.
    (*VARIANTS, BOOSTED),
    "In an unbounded loop: the user's own endless loop must not outlive Ctrl-C.",
)


@intrinsic
def poll_in(typing_context: Any, values: types.Type) -> Any:
    """``poll_for`` in a loop over a container, where that is one of the state.

    What the event has made itself is as long as it has made it.
    """

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Value:
        if isinstance(values, ContainerType) and values.state.variant in (*SPECULATIVE, BOOSTED):
            Run(context, builder, args[0]).poll()
        return context.get_dummy_value()

    return types.void(values), code


@intrinsic
def goes_on(typing_context: Any, run: types.Type) -> Any:
    """Of an endless loop: always true, which LLVM sees and Numba does not."""

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Value:
        return context.get_constant(types.boolean, True)

    return types.boolean(run), code
