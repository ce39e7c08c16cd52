"""Entries that crash where a compiled operator cannot: machine code made for the tests."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from llvmlite import binding, ir
from numba.core import types
from numba.extending import intrinsic

import specstream as ss
from specstream._native import ffi
from specstream.compiler.backend.numba_types import Variant
from specstream.compiler.entry_points import Entry

# Numba itself writes no assembly.
binding.initialize_native_asmparser()

I64 = ir.IntType(64)
COLUMNS = int(ffi.offsetof("struct ss_run", "columns"))
# Columns 0 and 1 are timestamp and source.
FIRST_COLUMN = 2


class Sum(ss.State):
    total = ss.scalar(int)
    counts = ss.array(int, 8)


@ss.operator(state=Sum, event={"x": int}, emits={"total": int})
def add(state, event, emit):
    state.total += event.x
    state.counts[event.x % 8] += 1
    emit(state.total)


@intrinsic
def load(typing_context: Any, address: Any) -> Any:
    """The word at an address, whatever the address."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = builder.inttoptr(args[0], I64.as_pointer())
        return builder.load_atomic(pointer, "monotonic", 8)

    return types.int64(types.int64), code


@intrinsic
def store(typing_context: Any, address: Any, value: Any) -> Any:
    """Sets the word at an address."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = builder.inttoptr(args[0], I64.as_pointer())
        builder.store_atomic(args[1], pointer, "monotonic", 8)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), code


def _instructions(text: str) -> Any:
    @intrinsic
    def instructions(typing_context: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            builder.asm(ir.FunctionType(ir.VoidType(), []), text, "", [], True)
            return context.get_dummy_value()

        return types.void(), code

    return instructions


_trap = _instructions("ud2")
_push_for_ever = _instructions("1: pushq $$0; jmp 1b")


@numba.njit
def follow_null() -> None:
    load(8)


@numba.njit
def execute_nothing() -> None:
    _trap()


@numba.njit
def overflow() -> None:
    _push_for_ever()


def crash_at(engine: ss.Engine, variant: Variant, x: int, crash: Callable[[], None]) -> Any:
    """Makes a variant crash at the end of each event with this x. Keep what is returned alive."""
    word = ctypes.c_int64
    address = engine.parts.code.entries[variant].address
    original = ctypes.CFUNCTYPE(ctypes.c_int32, word, word, word, word, word)(address)

    @numba.cfunc(types.int32(types.int64, types.int64, types.int64, types.int64, types.int64))
    def entry(reached, fault, run, first, last):
        column = load(load(run + COLUMNS) + 8 * FIRST_COLUMN)
        for row in range(first, last):
            original(reached, fault, run, row, row + 1)
            if load(reached) != row + 1:
                return 1
            if load(column + 8 * row) == x:
                crash()
        return 0

    engine.parts.native.set_entry(variant, entry.address)
    return entry


def crash_in_operations(
    engine: ss.Engine, crash: Callable[[], None], one_in: int
) -> npt.NDArray[np.int64]:
    """Makes the entries of operations on boosted fields, and of inverses, crash now and then.

    Returns an array whose element 0 counts the crashes; keep it alive.
    """
    word = ctypes.c_int64
    counts = np.zeros(2, np.int64)  # crashes, calls
    crashes, calls = counts.ctypes.data, counts.ctypes.data + 8

    def crashing(compiled: Entry) -> Entry:
        original = ctypes.CFUNCTYPE(ctypes.c_int32, word, word, word)(compiled.address)

        @numba.cfunc(types.int32(types.int64, types.int64, types.int64))
        def entry(returned, fault, run):
            raised = original(returned, fault, run)
            number = load(calls) + 1
            store(calls, number)
            if number % one_in == 0:
                store(crashes, load(crashes) + 1)
                crash()
            return raised

        return Entry(entry.address, (compiled, original, entry))

    for number, entries in enumerate(engine.parts.code.operations):
        engine.parts.code.operations[number] = [crashing(entry) for entry in entries]
    engine.parts.code.set_in(engine.parts.native)
    return counts
