"""The entry points that the C runtime calls: the loop over a range of events, for each variant.

The loop is inside of the compiled code, because at 30 ns an event a call per event would cost a
tenth. It calls the user's compiled function and checks the status that Numba's calling convention
returns (a ``cfunc`` would print the exception and drop it).
"""

from __future__ import annotations

import contextlib
import gc
import threading
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numba
from llvmlite import ir
from numba.core import config, types
from numba.core.errors import NumbaWarning
from numba.core.registry import cpu_target
from numba.extending import intrinsic

from specstream._native import lib
from specstream.compiler import cache
from specstream.compiler.backend.diagnosis import translate
from specstream.compiler.backend.instructions import I32, I64, POINTER
from specstream.compiler.backend.memory import Run
from specstream.compiler.backend.numba_pipeline import COMPILE_OPTIONS, OperatorCompiler, compiled
from specstream.compiler.backend.numba_types import (
    BOOSTED,
    EAGER,
    UNDOING,
    EmitType,
    EventType,
    RunType,
    StateType,
    Variant,
)
from specstream.compiler.backend.symbols import register
from specstream.compiler.frontend.nesting import too_deep
from specstream.compiler.frontend.program import Program
from specstream.compiler.language.typing_refusals import refuse
from specstream.compiler.library import (
    state_heaps,  # noqa: F401  (adds containers)
    state_sequence_operators,  # noqa: F401  (adds containers)
    state_tables,  # noqa: F401  (adds containers)
)
from specstream.compiler.library.boosting import operation_entry
from specstream.compiler.library.event import column_number
from specstream.compiler.library.state_timers import TimerType
from specstream.declarations.schema import Schema
from specstream.declarations.state_layout import Layout
from specstream.errors import CompileError

__all__ = ["Entry", "compile_entry", "compile_operation"]


@intrinsic
def _begin_event(typing_context: Any, run: Any, state: Any, row: Any) -> Any:
    """What every event starts with: its row, an empty undo log, a mark in the output, scratch."""
    scratch_bytes = 8 * state.layout.words("scratch")

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        current = Run(context, builder, args[0])
        current.store_member("event", args[2])
        current.store_member("emit_mark", current.load_member("emit_top", POINTER))
        # What Python stores can always be undone.
        if run.variant in UNDOING or state.program.calls_python:
            current.store_member("undo_top", current.load_member("undo_base", POINTER))
        if state.program.uses_arena:
            dirty = builder.icmp_unsigned("!=", current.load_member("arena_dirty", I32), I32(0))
            with builder.if_then(dirty):
                current.call("ss_arena_clear", ir.VoidType(), current.pointer)
        if state.layout.containers:
            current.store_member("found_in", I64(0))
        if state.program.calls_python:
            current.store_member("calls", I64(0))
        if state.program.reads_frozen:
            current.call("ss_arena_enter", ir.VoidType(), current.pointer)
        if scratch_bytes:
            scratch = current.load_member("scratch", POINTER, invariant=True)
            clear = builder.module.declare_intrinsic("llvm.memset", [POINTER, I64])
            builder.call(clear, [scratch, ir.IntType(8)(0), I64(scratch_bytes), ir.IntType(1)(0)])
        return context.get_dummy_value()

    return types.void(run, state, types.int64), code


@intrinsic
def _raises(typing_context: Any, process: Any, run: Any, state: Any, event: Any, emit: Any) -> Any:
    """Runs the user's function; True when it did not return."""
    arguments = (run, state, event, emit)
    result = process.get_call_type(typing_context, arguments, {}).return_type
    if result != types.none:
        raise refuse("the operator returns a value: emit(...) it instead")

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        compiled = process.dispatcher.overloads[arguments]
        context.add_linking_libs((compiled.library,))
        function = context.declare_function(builder.module, compiled.fndesc)
        status, _ = context.call_conv.call_function(
            builder, function, result, arguments, list(args[1:])
        )
        current = Run(context, builder, args[1])
        with builder.if_then(status.is_error, likely=False):
            verdict = current.load_member("verdict", I32)
            unknown = builder.icmp_unsigned("==", verdict, I32(lib.SS_COMPLETED))
            if state.program.calls_python:
                with builder.if_then(unknown):
                    in_timer = I64(int(isinstance(event, TimerType)))
                    current.call("ss_phase_raised", ir.VoidType(), current.pointer, in_timer)
            raised = builder.select(unknown, I32(lib.SS_RAISED), verdict)
            current.store_member("verdict", raised)
        return status.is_error

    return types.boolean(process, *arguments), code


@intrinsic
def _asked_to_yield(typing_context: Any, run: Any) -> Any:
    """Whether the runtime wants the run to stop here; for ``eager`` it never does."""

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        if run.variant in EAGER:
            return ir.IntType(1)(0)
        address = Run(context, builder, args[0]).member_address("yield", I32)
        return builder.icmp_unsigned("!=", builder.load_atomic(address, "monotonic", 4), I32(0))

    return types.boolean(run), code


@intrinsic
def _look_ahead(
    typing_context: Any, run: Any, state: Any, event: Any, row: Any, first: Any, last: Any
) -> Any:
    """Before an event: where the next ones will find their keys, for a few of them at once."""
    state_type, look_ups = state, state.program.look_ups

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        # Speculative runs do not use what is found, but have it in their cache.
        if not look_ups or run.variant == "locked" or isinstance(event, TimerType):
            return context.get_dummy_value()
        row, first, last = args[3:]
        current = Run(context, builder, args[0])
        begins = builder.or_(
            builder.icmp_unsigned("==", row, first),
            builder.icmp_unsigned("==", builder.and_(row, I64(lib.SS_AHEAD - 1)), I64(0)),
        )
        several = builder.icmp_signed(">", builder.sub(last, row), I64(1))
        with builder.if_then(builder.and_(begins, several), likely=False):
            for name, columns in look_ups:
                number = state_type.layout.container_number(state_type.layout.field(name))
                packed = sum(
                    column_number(event, one) << (16 * at) for at, one in enumerate(columns)
                )
                void = ir.VoidType()
                arguments = (I64(number), I64(packed), row, last)
                current.call("ss_keyed_ahead", void, current.pointer, *arguments)
        return context.get_dummy_value()

    return types.void(run, state, event, row, first, last), code


def _run_as(target: types.Type) -> Any:
    """Makes the intrinsic by which an entry point hands the run on as state, event or emit."""

    @intrinsic
    def run_as(typing_context: Any, run: Any) -> Any:
        return target(run), lambda context, builder, sig, args: args[0]

    return run_as


def _entry_function(process: Any, state: StateType, event: EventType, emit: EmitType) -> Any:
    as_state, as_event, as_emit = _run_as(state), _run_as(event), _run_as(emit)

    def entry(run: Any, first: int, last: int) -> int:
        the_state = as_state(run)
        the_event = as_event(run)
        the_emit = as_emit(run)
        row = first
        while row < last:
            _look_ahead(run, the_state, the_event, row, first, last)
            _begin_event(run, the_state, row)
            if _raises(process, run, the_state, the_event, the_emit):
                return row
            row += 1
            if _asked_to_yield(run):
                return row
        return row

    return compiled(entry)


@dataclass(frozen=True)
class Entry:
    """A compiled entry. ``library`` keeps the machine code alive."""

    address: int
    library: Any


def compile_entry(
    program: Program, layout: Layout, event: Schema, emits: Schema, variant: Variant
) -> Entry:
    """Machine code for one variant, from the disk cache where it is there.

    Raises:
        CompileError: a type does not fit; names the line and the way out.
    """
    register()
    key = cache.key(program, layout, event, emits, variant)
    timers = layout.timers if program.is_on_timer else None

    def make() -> Any:
        state = StateType(layout, variant, program)
        of_event = EventType(event)
        if timers is not None and timers.container is not None:
            of_event = TimerType(event, timers.container.key)
        # Inlined into the loop over the events: a call costs 3 ns, a tenth of a short event.
        process = numba.njit(pipeline_class=OperatorCompiler, forceinline=True, **COMPILE_OPTIONS)(
            program.native
        )
        entry = _entry_function(process, state, of_event, EmitType(emits))
        return entry.get_compile_result(types.int64(RunType(variant), types.int64, types.int64))

    return _entry(key, program, make)


# What is in memory already, by its key. Numba keeps the machine code of a library for as long as
# the process lives, whoever else lets go of it: an engine that loaded its own would leave it there.
_loaded: dict[str, Entry] = {}


def _entry(key: str, program: Program, compile_it: Callable[[], Any]) -> Entry:
    """From memory, else from the disk cache, else compiled and put there."""
    known = _loaded.get(key)
    # Of two threads that find nothing, the first one's is kept; either works.
    return known if known is not None else _loaded.setdefault(key, _made(key, program, compile_it))


_compiling = threading.RLock()


@contextlib.contextmanager
def _few_collections() -> Iterator[None]:
    """Numba makes a hundred thousand small objects that all live until the code is done: looking
    through them, and through whatever else the process has, takes up to a fifth of the time."""
    # Numba compiles one function at a time anyway; here, that each puts back what it has found.
    with _compiling:
        before = gc.get_threshold()
        if before[0]:
            gc.set_threshold(max(before[0], 50_000), *before[1:])
        try:
            yield
        finally:
            gc.set_threshold(*before)


def _made(key: str, program: Program, compile_it: Callable[[], Any]) -> Entry:
    """The machine code of an entry point: from the disk cache, or compiled and put there."""
    stored = cache.load(key)
    codegen = cpu_target.target_context.codegen()
    if stored is not None:
        library = codegen.unserialize_library(stored.library)
        return Entry(library.get_pointer_to_function(stored.symbol), library)
    try:
        with _few_collections(), warnings.catch_warnings():
            # About types and passes that no user wrote.
            warnings.simplefilter("ignore", NumbaWarning)
            compiled = compile_it()
    except (CompileError, MemoryError):
        raise
    except Exception as error:
        if "maximum recursion depth exceeded" in str(error):  # Numba puts it into its own words
            raise too_deep(error, program.operator, program.trees()) from None
        # Numba refuses by errors of its own, and now and then stumbles over what it has not met.
        is_numba = type(error).__module__.partition(".")[0] == "numba"
        is_clear = is_numba and not config.DEVELOPER_MODE
        raise translate(error, program) from (None if is_clear else error)
    library = compiled.library
    symbol = compiled.fndesc.llvm_func_name
    address = library.address(symbol)
    cache.store(key, cache.Stored(symbol, library.serialize_using_object_code()))
    return Entry(address, library)


def compile_operation(
    program: Program, layout: Layout, event: Schema, emits: Schema, number: int, is_inverse: bool
) -> Entry:
    """Machine code of an operation on a boosted field, or of its inverse.

    Raises:
        CompileError: as of :func:`compile_entry`.
    """
    register()
    way = "inverse" if is_inverse else "operation"
    key = cache.key(program, layout, event, emits, f"{way} {number}")
    field, _ = layout.operations[number]

    def make() -> Any:
        entry = operation_entry(StateType(layout, BOOSTED, program), field, number, is_inverse)
        return entry.get_compile_result(types.int64(RunType(BOOSTED)))

    return _entry(key, program, make)
