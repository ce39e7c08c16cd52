"""Random draws of the event: ``random_bits``, ``random``, ``normal``, ``integer``, ``choice``.

Each is a function of the engine's seed, the event's order key and the number of the draw, computed
by the C function that the oracle calls (``random.c``).
"""

# Numba's internals are only partly typed.
# mypy: allow-untyped-calls

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numba.core import types
from numba.extending import intrinsic

from specstream.compiler.backend.instructions import F64, I64, Value
from specstream.compiler.backend.memory import Run
from specstream.compiler.backend.numba_types import EventType
from specstream.compiler.backend.overloads import Meaning, of_values
from specstream.compiler.backend.scalar_kinds import scalar_kind
from specstream.compiler.language.typing_refusals import refuse
from specstream.compiler.library.event import READERS, order_key
from specstream.compiler.library.method_dispatch import method

__all__ = ["INTRINSICS", "METHODS"]


def draw_key(
    context: Any, builder: Any, event: EventType, pointer: Value, draw: Value
) -> list[Any]:
    """The run, and what a random draw of the running event is a function of.

    That is seed, order key and ``draw``."""
    reader = READERS.get(type(event))
    if reader is not None:
        of = reader(context, builder, event, pointer)
        return [of.run, of.seed(), *of.key(), draw]
    run = Run(context, builder, pointer)
    seed = run.load_member("seed", invariant=True)
    return [run, seed, *order_key(run, event), draw]


def _random_word(
    context: Any, builder: Any, event: EventType, pointer: Value, draw: Value
) -> Value:
    run, *key = draw_key(context, builder, event, pointer, draw)
    return run.call("ss_random_bits", I64, *key)


def _check_draw(event: types.Type, draw: types.Type) -> None:
    if not isinstance(event, EventType):
        raise refuse(f"random and random_bits are methods of the event, not of {event}")
    if scalar_kind(draw) != "int64":
        raise refuse(f"the number of a draw is an int, not {draw}: write event.random(0)")


@intrinsic
def event_random_bits(typing_context: Any, event: Any, draw: Any) -> Any:
    """``event.random_bits(i)`` of the running event: 64 random bits.

    They are a function of seed, order key and ``draw``."""
    _check_draw(event, draw)

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Value:
        return _random_word(context, builder, event, args[0], args[1])

    return types.uint64(event, types.int64), code


@intrinsic
def event_random(typing_context: Any, event: Any, draw: Any) -> Any:
    """``event.random(i)`` of the running event: a float in [0, 1), of the upper 53 bits."""
    _check_draw(event, draw)

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Value:
        word = _random_word(context, builder, event, args[0], args[1])
        upper = builder.uitofp(builder.lshr(word, I64(11)), F64)
        return builder.fmul(upper, F64(2.0**-53))

    return types.float64(event, types.int64), code


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


INTRINSICS: dict[str, Any] = {"random": event_random, "random_bits": event_random_bits}
"""By the name of a draw of one argument, its number: what the rewriting calls."""
METHODS = ("normal", "integer", "choice")
"""The names of those that are called as methods of containers are."""
_draw("normal", ("i",), types.float64, _normal)
_draw("integer", ("low", "high", "i"), types.int64, _integer)
_draw("choice", ("n", "i"), types.int64, _choice)
