"""What all native code is written with: LLVM's types and instructions, faults, calls of C.

Where Python raises, native code returns Numba's status of a user exception, always with
:class:`OperatorFault`. Which exception it was is found by running the oracle on the same event.
"""

# Numba's internals are only partly typed.
# mypy: allow-untyped-calls

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils

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


class OperatorFault(Exception):
    """Compiled code met a case in which Python raises."""


class Instructions:
    """Writes LLVM instructions where the builder stands; knows how to fail and how to call C."""

    def __init__(self, context: Any, builder: Any) -> None:
        self.context = context
        self.builder = builder

    def fault_if(self, condition: Value) -> None:
        """Leaves the compiled function with the status of a user exception if ``condition``."""
        builder = self.builder
        after = builder.append_basic_block("sound")
        branch = builder.cbranch(condition, self._fault_block(), after)
        branch.set_weights([1, 99])
        builder.position_at_end(after)

    def _fault_block(self) -> Any:
        # One per function: a loop body of ten checks would otherwise hold ten copies.
        function = self.builder.function
        block = getattr(function, "_specstream_fault", None)
        if block is None:
            block = function.append_basic_block("fault")
            with self.builder.goto_block(block):
                self.context.call_conv.return_user_exc(self.builder, OperatorFault, ())
            function._specstream_fault = block
        return block

    def call(self, symbol: str, result: Any, *arguments: Value) -> Value:
        """Calls the C function ``symbol``, found by its name when the code is linked."""
        function_type = ir.FunctionType(result, [argument.type for argument in arguments])
        function = cgutils.get_or_insert_function(self.builder.module, function_type, symbol)
        function.attributes.add("nounwind")
        return self.builder.call(function, arguments)

    def call_checked(self, symbol: str, *arguments: Value) -> Value:
        """Calls a C function that returns whether it failed and writes a double."""
        slot = cgutils.alloca_once(self.builder, F64)
        failed = self.call(symbol, I32, *arguments, slot)
        self.fault_if(self.builder.icmp_unsigned("!=", failed, I32(0)))
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
        self.fault_if(builder.not_(inside))
        return builder.fptosi(value, I64)

    def to_uint64(self, value: Value) -> Value:
        builder = self.builder
        inside = builder.and_(
            builder.fcmp_ordered(">", value, F64(-1.0)),
            builder.fcmp_ordered("<", value, F64(2.0**64)),
        )
        self.fault_if(builder.not_(inside))
        return builder.fptoui(value, I64)
