"""Caught exceptions whose texts are emitted, in Numba's terms: a status, and what was put down.

Of the sites that a status says see :mod:`specstream.compiler.frontend.error_texts`.
"""

# Numba's internals are only partly typed.
# mypy: allow-untyped-calls

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, models, register_model

from specstream.compiler.backend.exception_status import STATUS, raise_known
from specstream.compiler.backend.instructions import BIT, I64, POINTER, Value
from specstream.compiler.backend.memory import Run
from specstream.compiler.backend.none_types import may_be_none, missing, present, value_or_zero
from specstream.compiler.backend.scalar_kinds import NUMBA_KINDS, scalar_kind
from specstream.compiler.frontend.error_texts import RECORDED
from specstream.compiler.language.error_classes import CLASSES
from specstream.compiler.language.text import TextType
from specstream.declarations.forms import ERROR_WORDS, packed_kinds

__all__ = ["CaughtType", "caught", "tell", "tell_again", "words_of"]

_SCALARS = {"int64": "int", "uint64": "uint", "float64": "float", "bool": "bool"}


class CaughtType(types.Type):
    """A caught exception."""

    def __init__(self) -> None:
        super().__init__("specstream.caught")


_CAUGHT = CaughtType()


@register_model(CaughtType)
class _CaughtModel(models.StructModel):
    def __init__(self, manager: object, of: CaughtType) -> None:
        names = [f"word_{at}" for at in range(ERROR_WORDS)]
        super().__init__(manager, of, [(name, types.int64) for name in names])


def _told(run: Run, at: int) -> Value:
    row = run.member_address("told", ir.ArrayType(I64, ERROR_WORDS - 1))
    return run.builder.gep(row, [I64(0), I64(at)], inbounds=True)


@intrinsic
def caught(typing_context: Any, run: Any, error: Any) -> Any:
    """The exception that was raised last, with its status."""

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Value:
        own = Run(context, builder, args[0])
        made = cgutils.create_struct_proxy(_CAUGHT)(context, builder)
        made.word_0 = args[1]
        for at in range(1, ERROR_WORDS):
            setattr(made, f"word_{at}", builder.load(_told(own, at - 1)))
        return made._getvalue()

    return _CAUGHT(run, types.int64), code


@intrinsic
def tell_again(typing_context: Any, run: Any, error: Any) -> Any:
    """Puts down what an exception is made of that is raised once more."""

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Value:
        own = Run(context, builder, args[0])
        kept = cgutils.create_struct_proxy(_CAUGHT)(context, builder, value=args[1])
        for at in range(1, ERROR_WORDS):
            builder.store(getattr(kept, f"word_{at}"), _told(own, at - 1))
        return context.get_dummy_value()

    return types.void(run, error), code


@intrinsic
def tell(typing_context: Any, run: Any, *told: Any) -> Any:
    """Puts down what an exception is made of; its status, or that of its class where a part is
    nothing that could be put down. ``told`` is the status, and the parts."""
    whole = told[0] if len(told) == 1 and isinstance(told[0], types.BaseTuple) else told
    given = list(whole)[1:]
    kinds = [_kind_put_down(part) for part in given]

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Value:
        own = Run(context, builder, args[0])
        status, *values = cgutils.unpack_tuple(builder, args[1], 1 + len(given))
        unknown = builder.and_(status, I64(CLASSES - 1))
        known = [kind for kind in kinds if kind is not None]
        if len(known) < len(kinds):
            return unknown
        words = []
        for of, value, kind in zip(given, values, known, strict=True):
            if may_be_none(of):
                is_none = missing(context, builder, of, value)
                status = builder.select(is_none, unknown, status)
                value = value_or_zero(context, builder, of, value)
            value = context.cast(builder, value, present(of), NUMBA_KINDS[kind])
            words.append(own.to_bits(kind, value))
        own.store_told(tuple(known), words)
        return status

    taken = types.BaseTuple.from_types([types.int64, *map(types.unliteral, given)])
    return types.int64(run, taken), code


def _kind_put_down(of: types.Type) -> Any:
    """The kind as which a row has a part of a caught exception; None: it could not have it."""
    of = present(of)
    if isinstance(of, TextType):
        return "str"
    return _SCALARS.get(scalar_kind(of) or "")


def words_of(run: Run, of: CaughtType, value: Value, asks: bool) -> list[Value]:
    """What a row has of a caught exception; where its text is not known here, the event asks.

    Args:
        asks: it does so in any case, as what is made of the exception may raise.
    """
    builder = run.builder
    parts = cgutils.create_struct_proxy(of)(run.context, builder, value=value)
    words = [getattr(parts, f"word_{at}") for at in range(ERROR_WORDS)]
    is_known = BIT(0) if asks else builder.icmp_unsigned(">=", words[0], I64(CLASSES))
    answer = run.call("ss_answer", POINTER, run.pointer, builder.zext(is_known, I64))
    is_answered = cgutils.is_not_null(builder, answer)
    run.leave_if(builder.not_(builder.or_(is_known, is_answered)))
    slots = [cgutils.alloca_once_value(builder, word) for word in words[:3]]
    with builder.if_then(is_answered, likely=False):
        answered = builder.bitcast(answer, I64.as_pointer())
        status = builder.load(builder.gep(answered, [I64(1)], inbounds=True))
        with builder.if_then(builder.icmp_unsigned("!=", status, I64(0)), likely=False):
            raise_known(builder, builder.trunc(status, STATUS))
        record = [I64(RECORDED), I64(packed_kinds(("str",))), builder.load(answered)]
        for slot, word in zip(slots, record, strict=True):
            builder.store(word, slot)
    return [*map(builder.load, slots), *words[3:]]
