"""What strings of the state say by their texts: ``in``, ``startswith``, ``endswith``.

The texts are in the engine's table (``core/texts.c``), which compiled code asks by the codes. Order
and length are operators and builtins: see :mod:`specstream.compiler.language.text`.
"""

# Numba's internals are only partly typed.
# mypy: allow-untyped-calls

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numba.core import types

from specstream.compiler.backend.instructions import I64, Value
from specstream.compiler.backend.overloads import Meaning, also
from specstream.compiler.language.text import TEXT, TextType, call_runtime
from specstream.compiler.language.typing_refusals import refuse
from specstream.compiler.library.method_dispatch import method
from specstream.compiler.library.reductions import contains

__all__: list[str] = []


def _asked(name: str) -> Any:
    """Instructions that ask the runtime about two strings."""

    def code(context: Any, builder: Any, sig: Any, values: Sequence[Value]) -> Value:
        return builder.icmp_unsigned("!=", call_runtime(builder, name, *values), I64(0))

    return code


def _of_a_text(name: str, function: str) -> None:
    @method(name).rule
    def rule(context: Any, args: Sequence[types.Type]) -> Meaning | None:
        if not args or not isinstance(args[0], TextType):
            return None
        if len(args) != 2 or not isinstance(args[1], TextType):
            raise refuse(
                f"{name} of a string of the state takes one string here: write "
                f"x.{name}(a) or x.{name}(b)"
            )
        return types.boolean, [TEXT, TEXT], _asked(function)


def _contains(context: Any, args: Sequence[types.Type]) -> Meaning | None:
    part, of = args
    if not isinstance(of, TextType):
        return None
    if not isinstance(part, TextType):
        raise refuse(f"`in` of a string takes a string, not {part}: write x in y of two strings")

    def code(context: Any, builder: Any, sig: Any, values: Sequence[Value]) -> Value:
        return _asked("ss_text_contains")(context, builder, sig, values[::-1])

    return types.boolean, [TEXT, TEXT], code


_of_a_text("startswith", "ss_text_starts")
_of_a_text("endswith", "ss_text_ends")
also(contains, _contains, types.Any, TextType)
