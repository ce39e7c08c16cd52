"""Random draws of the event that are more than bits: ``normal``, ``integer`` and ``choice``.

Each is a function of the engine's seed, the event's order key and the number of the draw, computed
by the C function that the oracle calls (``random.c``).
"""

# Numba's internals are only partly typed.
# mypy: allow-untyped-calls

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numba.core import types

from specstream.compiler.backend.instructions import F64, I64, Value
from specstream.compiler.backend.memory import Run
from specstream.compiler.backend.numba_types import EventType
from specstream.compiler.backend.overloads import Meaning, of_values
from specstream.compiler.backend.scalar_kinds import scalar_kind
from specstream.compiler.language.refusals import refuse
from specstream.compiler.library.event import draw_key
from specstream.compiler.library.method_dispatch import method

__all__ = ["METHODS"]


def _draw(name: str, takes: tuple[str, ...], result: types.Type, write: Any) -> None:
    @method(name).rule
    @of_values
    def rule(typing_context: Any, args: Sequence[types.Type]) -> Meaning | None:
        event, *given = args
        if not isinstance(event, EventType):
            return None
        hint = f"write event.{name}({', '.join(takes)})"
        if len(given) != len(takes):
            raise refuse(f"{name} takes {len(takes)} integers, and gets {len(given)}: {hint}")
        for one in given:
            if scalar_kind(one) not in ("int64", "bool"):
                raise refuse(f"{name} takes integers, and gets {types.unliteral(one)}: {hint}")

        def code(context: Any, builder: Any, sig: Any, values: Sequence[Value]) -> Value:
            run, *key = draw_key(context, builder, event, values[0], values[-1])
            return write(run, key, *values[1:-1])

        return result, [event, *[types.int64] * len(takes)], code


def _normal(run: Run, key: Sequence[Value]) -> Value:
    return run.call("ss_random_normal", F64, *key)


def _integer(run: Run, key: Sequence[Value], low: Value, high: Value) -> Value:
    return run.call_checked("ss_random_integer", *key, low, high, result=I64)


def _choice(run: Run, key: Sequence[Value], count: Value) -> Value:
    return _integer(run, key, I64(0), count)


METHODS = ("normal", "integer", "choice")
"""Their names."""
_draw("normal", ("i",), types.float64, _normal)
_draw("integer", ("low", "high", "i"), types.int64, _integer)
_draw("choice", ("n", "i"), types.int64, _choice)
