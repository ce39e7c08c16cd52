"""What all native code is written with: LLVM's types and instructions, faults, calls of C.

Where Python raises, native code raises the exception's class
(:mod:`specstream.compiler.backend.exception_status`). Its text is found by running the oracle on
the same event.
"""

# Numba's internals are only partly typed.
# mypy: allow-untyped-calls

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from specstream._native import lib
from specstream.compiler.backend.exception_status import raise_if
from specstream.compiler.frontend.error_texts import NOT_A_NUMBER

__all__ = [
    "BIT",
    "F32",
    "F64",
    "I8",
    "I32",
    "I64",
    "POINTER",
    "Instructions",
    "OperatorFault",
    "Value",
    "raise_error",
]

I64 = ir.IntType(64)
I32 = ir.IntType(32)
I8 = ir.IntType(8)
F32 = ir.FloatType()
BIT = ir.IntType(1)
F64 = ir.DoubleType()
POINTER = I8.as_pointer()

Value = Any
"""An LLVM value."""


_FAILURES: dict[int, type[Exception]] = {
    lib.SS_VALUE_ERROR: ValueError,
    lib.SS_OVERFLOW_ERROR: OverflowError,
    lib.SS_ZERO_DIVISION_ERROR: ZeroDivisionError,
}


class OperatorFault(Exception):
    """What no handler catches: the event is left. Also ends a block whose end is never reached."""


@intrinsic
def raise_error(typing_context: Any, error: Any) -> Any:
    """The instructions of a fault, as an intrinsic that plain Python calls: raises the class.

    For library code, and what ``@overload`` compiles; to Numba, the code goes on behind it.
    """

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Value:
        Instructions(context, builder).fault_if(BIT(1), error.exc_class)
        return context.get_dummy_value()

    return types.void(error), code


class Instructions:
    """Writes LLVM instructions where the builder stands; knows how to fail and how to call C."""

    def __init__(self, context: Any, builder: Any) -> None:
        self.context = context
        self.builder = builder

    def fault_if(
        self, condition: Value, error: type[Exception] | None = None, site: int = 0
    ) -> None:
        """Raises ``error`` if ``condition``; without one, what no handler catches.

        ``site`` says what Python's text is (:mod:`specstream.compiler.frontend.error_texts`).
        """
        raise_if(self.context, self.builder, condition, error or OperatorFault, site)

    def fault_either(
        self,
        condition: Value,
        first: Value,
        error: type[Exception],
        other: type[Exception],
        site: int = 0,
    ) -> None:
        """Raises if ``condition``: ``error`` if ``first``, else ``other``."""
        with self.builder.if_then(condition, likely=False):
            self.fault_if(first, error, site)
            self.fault_if(BIT(1), other)

    def leave_if(self, condition: Value) -> None:
        """Leaves the event if ``condition``, for the runtime's reasons: past every handler."""
        raise_if(self.context, self.builder, condition, OperatorFault)

    def call(self, symbol: str, result: Any, *arguments: Value) -> Value:
        """Calls the C function ``symbol``, found by its name when the code is linked."""
        function_type = ir.FunctionType(result, [argument.type for argument in arguments])
        function = cgutils.get_or_insert_function(self.builder.module, function_type, symbol)
        function.attributes.add("nounwind")
        return self.builder.call(function, arguments)

    def call_checked(self, symbol: str, *arguments: Value, result: ir.Type = F64) -> Value:
        """Calls a C function that writes a result and returns 0, or how it failed."""
        slot = cgutils.alloca_once(self.builder, result)
        failed = self.call(symbol, I32, *arguments, slot)
        with self.builder.if_then(self.builder.icmp_unsigned("!=", failed, I32(0)), likely=False):
            for code, error in _FAILURES.items():
                self.fault_if(self.builder.icmp_unsigned("==", failed, I32(code)), error)
            self.leave_if(BIT(1))
        return self.builder.load(slot)

    def llvm(self, name: str, *arguments: Value) -> Value:
        """Calls an LLVM intrinsic over doubles; only those that are exact on every processor."""
        function_type = ir.FunctionType(F64, [F64] * len(arguments))
        intrinsic = self.builder.module.declare_intrinsic(name, [F64], function_type)
        return self.builder.call(intrinsic, arguments)

    def is_nan(self, value: Value) -> Value:
        return self.builder.fcmp_unordered("uno", value, value)

    def to_float(self, value: Value, kind: str) -> Value:
        """Any scalar as a double, rounded half to even."""
        if kind == "float64":
            return value
        if kind == "int64":
            return self.builder.sitofp(value, F64)
        return self.builder.uitofp(value, F64)

    def to_bool(self, value: Value, kind: str) -> Value:
        if kind == "bool":
            return value
        if kind == "float64":
            return self.builder.fcmp_unordered("une", value, F64(0.0))
        return self.builder.icmp_unsigned("!=", value, I64(0))

    def to_int64(self, value: Value) -> Value:
        """A double, truncated; a fault for a NaN and out of range."""
        builder = self.builder
        inside = builder.and_(
            builder.fcmp_ordered(">=", value, F64(-(2.0**63))),
            builder.fcmp_ordered("<", value, F64(2.0**63)),
        )
        nan = self.is_nan(value)
        self.fault_either(builder.not_(inside), nan, ValueError, OverflowError, NOT_A_NUMBER)
        return builder.fptosi(value, I64)

    def to_uint64(self, value: Value) -> Value:
        builder = self.builder
        inside = builder.and_(
            builder.fcmp_ordered(">", value, F64(-1.0)),
            builder.fcmp_ordered("<", value, F64(2.0**64)),
        )
        nan = self.is_nan(value)
        self.fault_either(builder.not_(inside), nan, ValueError, OverflowError, NOT_A_NUMBER)
        return builder.fptoui(value, I64)
