"""Operations on boosted fields in Numba's terms: ``state.field.operation(key, ...)``.

A speculative run hands the operation to C (``boosting.c``), which calls it back on the shadow. An
in-place run calls it directly, and tells C, which repeats it on the shadow. What C calls is an
entry of its own for each operation and each inverse: its arguments lie in the run, as words.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from specstream._native import ffi, lib
from specstream.compiler.backend.exception_status import raise_known, raise_status, without_site
from specstream.compiler.backend.instructions import F64, I32, I64, POINTER, Value
from specstream.compiler.backend.memory import Run
from specstream.compiler.backend.numba_pipeline import compiled
from specstream.compiler.backend.numba_types import (
    BOOSTED,
    SPECULATIVE,
    UNDOING,
    BoostedType,
    RunType,
    StateType,
    Variant,
)
from specstream.compiler.backend.scalar_kinds import NUMBA_KINDS, check_kind, convert, scalar_kind
from specstream.compiler.language.error_classes import LEAVES
from specstream.compiler.language.typing_refusals import refuse, without_literals
from specstream.compiler.library.state_fields import whole_field
from specstream.declarations.state_layout import Field

__all__ = ["call_operation", "operation_entry"]

_KIND_OF: dict[str | None, Any] = {
    "int64": "int",
    "uint64": "uint",
    "float64": "float",
    "bool": "bool",
}


class _BoostedCallee:
    """A compiled function of a boosted field, for arguments of these types.

    Attributes:
        result: what it returns.
    """

    def __init__(
        self,
        typing_context: Any,
        function: Any,
        boosted: BoostedType,
        variant: Variant,
        arguments: tuple[types.Type, ...],
        what: str,
    ) -> None:
        self.boosted = boosted
        self.view = boosted.view(variant)
        self.function = function
        self.arguments = (RunType(variant), self.view, *arguments)
        called = numba.types.Dispatcher(function)
        self.result = called.get_call_type(typing_context, self.arguments, {}).return_type
        if self.result != types.none and scalar_kind(self.result) is None:
            raise refuse(f"{what} returns {self.result}: return one number, or nothing")

    def call(
        self,
        context: Any,
        builder: Any,
        run: Value,
        arguments: list[Value],
        take_back: Callable[[], None] = lambda: None,
    ) -> Value:
        """Calls a boosted field's operation, or its inverse.

        Where it raises, so does the function that is being compiled, after ``take_back``. The text
        is not known any more: what it is made of may be the shadow's.
        """
        found = self.function.overloads[self.arguments]
        context.add_linking_libs((found.library,))
        function = context.declare_function(builder.module, found.fndesc)
        field = whole_field(context, builder, self.view, run, self.boosted.field)
        status, result = context.call_conv.call_function(
            builder, function, self.result, self.arguments, [run, field, *arguments]
        )
        with builder.if_then(status.is_error, likely=False):
            take_back()
            raise_known(builder, without_site(builder, status.code))
        return result

    def word_of_result(self, run: Run, result: Value) -> Value:
        """The result of a boosted field's operation, as the word that C keeps of it."""
        if self.result == types.none:
            return I64(0)
        return run.to_bits(_KIND_OF[scalar_kind(self.result)], result)


def _number_of_word(builder: Any, of: types.Type, bits: Value) -> Value:
    """The number in a word that C has of a boosted operation: an argument or the result."""
    kind = scalar_kind(of)
    if kind == "float64":
        return builder.bitcast(bits, F64)
    if kind == "bool":
        return builder.icmp_unsigned("!=", bits, I64(0))
    return bits


@intrinsic(prefer_literal=True)
def call_operation(typing_context: Any, run: Any, boosted: Any, name: Any, *values: Any) -> Any:
    """``state.field.name(*values)``."""
    given = values[0] if len(values) == 1 and isinstance(values[0], types.BaseTuple) else values
    if not isinstance(name, types.StringLiteral):
        raise without_literals()
    asked = name.literal_value
    found = boosted.operation(asked) if isinstance(boosted, BoostedType) else None
    if found is None:
        raise refuse(
            f"{_described(boosted)} has no operation {asked!r}: an operation belongs to the "
            "boosted field that declares it, state.field.operation(key)"
        )
    number, operation = found
    kinds = operation.declared.kinds
    what = f"state.{boosted.field.name}.{asked}"
    if len(given) != len(kinds):
        raise refuse(f"{what} takes {len(kinds)} number(s) and gets {len(given)}: give each once")
    for at, (value, kind) in enumerate(zip(given, kinds, strict=True), start=1):
        check_kind(value, kind, f"argument {at} of {what}", keeps_strings=True)
    speculative = run.variant in SPECULATIVE
    # Where something is caught, an operation that raises must have changed nothing.
    catches = boosted.state.program.catches
    undone = catches and run.variant not in UNDOING
    variant = BOOSTED if speculative or undone else run.variant
    taken = tuple(NUMBA_KINDS[kind] for kind in kinds)
    callee = _BoostedCallee(typing_context, operation.native, boosted, variant, taken, what)

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Value:
        current = Run(context, builder, args[0])
        parts = cgutils.unpack_tuple(builder, args[3], len(kinds))
        numbers = [
            convert(context, builder, part, of, kind)
            for part, of, kind in zip(parts, sig.args[3], kinds, strict=True)
        ]

        def operands() -> Value:
            row = cgutils.alloca_once(builder, ir.ArrayType(I64, lib.SS_OPERANDS), zfill=True)
            for at, (kind, of_kind) in enumerate(zip(kinds, numbers, strict=True)):
                builder.store(
                    current.to_bits(kind, of_kind), cgutils.gep_inbounds(builder, row, 0, at)
                )
            return builder.bitcast(row, POINTER)

        if speculative:
            bits = current.call("ss_boost", I64, current.pointer, I64(number), operands())
            if catches:
                _raise_from_shadow(current)
            current.leave_if_verdict()
            if callee.result == types.none:
                return context.get_dummy_value()
            return _number_of_word(builder, callee.result, bits)
        if not catches:
            result = callee.call(context, builder, args[0], numbers)
        else:
            base = current.load_member("undo_base")
            used = builder.sub(current.load_member("undo_top"), base)

            def take_back() -> None:
                current.call("ss_undo_back", ir.VoidType(), current.pointer, used)

            result = callee.call(context, builder, args[0], numbers, take_back)
            if undone:
                top = builder.add(current.load_member("undo_base"), used)
                current.store_member("undo_top", top)
        if run.variant == "plain":
            boosting = current.load_member("boosting", I32, invariant=True)
            with builder.if_then(builder.icmp_unsigned("!=", boosting, I32(0))):
                current.call(
                    "ss_boost_follow",
                    ir.VoidType(),
                    current.pointer,
                    I64(number),
                    operands(),
                    callee.word_of_result(current, result),
                )
        return result

    numbers_given = types.BaseTuple.from_types([types.unliteral(value) for value in given])
    return callee.result(run, boosted, name, numbers_given), code


def _raise_from_shadow(run: Run) -> None:
    """Raises what a boosted field's operation, run on the shadow by C, has raised, if it has.

    What has no number ends the run.
    """
    builder = run.builder
    status = run.load_member("raised", I32)
    verdict = run.load_member("verdict", I32)
    raised = builder.and_(
        builder.icmp_unsigned("==", verdict, I32(lib.SS_RAISED)),
        builder.icmp_unsigned(">", status, I32(LEAVES)),
    )
    with builder.if_then(raised, likely=False):
        run.store_member("verdict", I32(lib.SS_COMPLETED))
        raise_status(builder, without_site(builder, status))


def _described(boosted: Any) -> str:
    return f"field {boosted.field.name!r}" if isinstance(boosted, BoostedType) else str(boosted)


def operation_entry(state: StateType, field: Field, number: int, is_inverse: bool) -> Any:
    """A boosted field's operation, or its inverse, as C calls it: with arguments in the run."""
    boosted = BoostedType(state, field)
    operation = state.program.operations[number]
    kinds = operation.declared.kinds
    taken = tuple(NUMBA_KINDS[kind] for kind in kinds)
    what = f"state.{field.name}.{operation.declared.name}"

    @intrinsic
    def run_operation(typing_context: Any, run: Any) -> Any:
        forward = _BoostedCallee(typing_context, operation.native, boosted, BOOSTED, taken, what)
        arguments = taken
        if is_inverse and operation.declared.inverse_gets_result:
            if forward.result == types.none:
                raise refuse(f"{what} returns nothing, and its inverse asks for it: return it")
            arguments = (*taken, forward.result)
        callee = forward
        if is_inverse:
            callee = _BoostedCallee(
                typing_context, operation.inverse, boosted, BOOSTED, arguments, f"{what}, inverse"
            )

        def code(context: Any, builder: Any, sig: Any, args: Any) -> Value:
            current = Run(context, builder, args[0])
            start = ffi.offsetof("struct ss_run", "operands")
            places = [*range(len(kinds)), lib.SS_OPERANDS]
            numbers = []
            for at, of in zip(places, arguments, strict=False):
                address = builder.gep(args[0], [I64(start + 8 * at)], inbounds=True)
                bits = builder.load(builder.bitcast(address, I64.as_pointer()))
                numbers.append(_number_of_word(builder, of, bits))
            result = callee.call(context, builder, args[0], numbers)
            changed = I32(1)
            if scalar_kind(callee.result) == "bool":
                changed = builder.zext(result, I32)
            current.store_member("changed", changed)
            return callee.word_of_result(current, result)

        return types.int64(run), code

    def entry(run: Any) -> Any:
        return run_operation(run)

    return compiled(entry)
