"""Chained comparisons, in Numba's terms: ``a < b <= c``.

What stands in the middle is evaluated once, and what follows only if all before it holds. Python's
instructions for a chain do just that and Numba follows them, so a chain stays one. Its operators
would be Numba's, though. Hence its operands are wrapped, in a type whose operators are ours.
"""

# Numba's internals are only partly typed.
# mypy: allow-untyped-calls

from __future__ import annotations

import operator
from typing import Any

from numba.core import cgutils, types
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, models, register_model

from specstream.compiler.backend.instructions import Value
from specstream.compiler.language.operations import OPERATIONS
from specstream.compiler.library import arithmetic
from specstream.compiler.library.reductions import contains

__all__ = ["literal_operand", "operand"]


class OperandType(types.Type):
    """An operand of a chain; a literal's value decides whether it may meet a uint64."""

    def __init__(self, of: types.Type) -> None:
        self.of = of
        super().__init__(f"specstream.operand({of})")


@register_model(OperandType)
class _OperandModel(models.StructModel):
    def __init__(self, manager: object, of: OperandType) -> None:
        super().__init__(manager, of, [("value", types.unliteral(of.of))])


def _wrapping(name: str, literal: bool) -> Any:
    def rule(typing_context: Any, value: Any) -> Any:
        wrapped = OperandType(value if literal else types.unliteral(value))

        def code(context: Any, builder: Any, sig: Any, args: Any) -> Value:
            made = cgutils.create_struct_proxy(wrapped)(context, builder)
            made.value = context.cast(builder, args[0], value, types.unliteral(value))
            return made._getvalue()

        return wrapped(value), code

    rule.__name__ = name
    rule.__doc__ = "A value as an operand of a chain."
    return intrinsic(prefer_literal=literal)(rule)


operand = _wrapping("operand", False)
# Of what is written out. A variable that begins as a literal may be another number in a loop, and
# Numba takes back the first of the two types only where it knows how they meet.
literal_operand = _wrapping("literal_operand", True)


def _compare_operands_by(name: Any, function: Any, swapped: bool = False) -> None:
    """Makes a comparison of two wrapped operands of a chain a call of our own ``function``.

    Numba calls ``operator.contains`` with the container first, ``reductions.contains`` has it last.
    """

    def given(args: Any) -> tuple[Any, ...]:
        return tuple(reversed(args)) if swapped else tuple(args)

    @infer_global(name)
    class _Comparison(AbstractTemplate):
        def generic(self, args: Any, kws: Any) -> Any:
            if not all(isinstance(one, OperandType) for one in args):
                return None
            values = tuple(one.of for one in given(args))
            called = self.context.resolve_value_type(function)
            of = self.context.resolve_function_type(called, values, {})
            return signature(of.return_type, *args)

    @lower_builtin(name, OperandType, OperandType)
    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Value:
        typing_context = context.typing_context
        called = typing_context.resolve_value_type(function)
        values = tuple(one.of for one in given(sig.args))
        of = typing_context.resolve_function_type(called, values, {})
        call = context.get_function(called, of)
        context.add_linking_libs(getattr(call, "libs", ()))
        return call(
            builder,
            [
                context.cast(
                    builder,
                    cgutils.create_struct_proxy(one)(context, builder, value=arg).value,
                    types.unliteral(one.of),
                    wanted,
                )
                for one, arg, wanted in zip(given(sig.args), given(args), of.args, strict=True)
            ],
        )


for _operation in OPERATIONS.values():
    if _operation.group in ("order", "equality"):
        _compare_operands_by(_operation.function, arithmetic.OPERATORS[_operation.node])
_compare_operands_by(operator.contains, contains, swapped=True)
