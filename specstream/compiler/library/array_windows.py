"""Windows of arrays, which are rows or slices: filled, copied and read whole, in LLVM.

An assignment has NumPy's meaning: a number goes to every element; of another row or slice each
element goes to its own, axes of length 1 are repeated, missing ones in front are too, and any other
difference of shape is an error. Where the two windows overlap, it is as if the source had been
copied first. So it is: into a buffer of the worker, which grows and never shrinks. Overlap is
decided by the first and last element of each window, which errs towards copying.

A source of one axis is logged as a whole while speculating. It then is such a copy already. So is
a target whose elements are neighbours: as many axes as it has.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils

from specstream.compiler.backend.instructions import F64, I64, POINTER, Value
from specstream.compiler.backend.memory import Run
from specstream.compiler.backend.numba_types import ViewType
from specstream.declarations.element_types import storage_of

__all__ = ["Window", "copy", "fill", "read_whole", "whole_type"]

# Elements of the shortest target that is logged as a whole. Each word needs its slot in the index
# either way, so what is saved is half of the log: measured against a loop of single stores, rows of
# 8 and 16 elements lose up to a sixth, those of 24 and 32 are even, from 48 on they gain 3 to 25 %.
SHORTEST_STORED = 32

_WIDE: dict[str, type] = {
    "int": int,
    "uint": np.uint64,
    "float": float,
    "bool": bool,
    "str": str,
}


@dataclass(frozen=True)
class Window:
    """Elements of a field: where the first lies, how many along each axis, and how far apart."""

    run: Run
    type: ViewType
    offset: Value
    shape: list[Value]
    strides: list[Value]

    def at(self, indices: tuple[Value, ...]) -> Value:
        """Number of an element of a window of an array, from the start of its space."""
        builder = self.run.builder
        place = self.offset
        for index, stride in zip(indices, self.strides, strict=True):
            place = builder.add(place, builder.mul(index, stride))
        return place

    def load(self, indices: tuple[Value, ...]) -> Value:
        view = self.type
        return self.run.load(view.space, view.variant, view.storage, self.at(indices))

    def store(self, indices: tuple[Value, ...], element: Value) -> None:
        view = self.type
        self.run.store(view.space, view.variant, view.storage, self.at(indices), element)


def fill(target: Window, element: Value) -> None:
    """Every element of the target becomes ``element``, which is of the target's kind."""
    _store_window(target, lambda indices: element)


def copy(target: Window, source: Window, convert: Callable[[Value], Value]) -> None:
    """Copies a window of an array into another one; a fault where the shapes do not fit."""
    builder = target.run.builder
    if source.type.is_logged and len(source.shape) == 1:
        source = read_whole(source)
    source = _broadcast(source, target)

    def directly() -> None:
        _store_window(target, lambda indices: convert(source.load(indices)))

    same = (target.type.space, target.type.storage) == (source.type.space, source.type.storage)
    if not same:
        directly()  # two fields
        return
    with builder.if_else(_overlap(target, source)) as (overlapping, apart):
        with overlapping:
            _by_way_of_a_buffer(target, source, convert)
        with apart:
            directly()


def whole_type(source: ViewType) -> ViewType:
    """The type of a window of an array that was read whole: its elements are whole words."""
    storage = storage_of(_WIDE[source.storage.number], "an element")
    return ViewType(storage, 1, "range", source.variant)


def read_whole(source: Window) -> Window:
    """The elements of a window of an array, of one axis, read together: where they are now.

    Neighbours that are logged are one range; others are read one by one, into the worker's buffer.
    """
    run, builder = source.run, source.run.builder
    (length,), (stride,) = source.shape, source.strides
    address = cgutils.alloca_once(builder, POINTER)
    together = builder.and_(
        builder.icmp_signed("==", stride, I64(1)), builder.icmp_signed(">", length, I64(1))
    )
    if not source.type.is_logged:
        together = ir.Constant(ir.IntType(1), 0)
    with builder.if_else(together) as (neighbours, scattered):
        with neighbours:
            builder.store(run.load_range(source.type.variant, source.offset, length), address)
        with scattered:
            words = run.call("ss_buffer", POINTER, run.pointer, length)
            run.leave_if(cgutils.is_null(builder, words))
            with cgutils.for_range(builder, length, intp=I64) as loop:
                word = _as_word(builder, source.load((loop.index,)))
                builder.store(word, run.address(words, loop.index, 8))
            builder.store(words, address)
    first = run.word_number(builder.load(address))
    return Window(run, whole_type(source.type), first, [length], [I64(1)])


def _store_window(target: Window, element_at: Callable[[tuple[Value, ...]], Value]) -> None:
    """Stores every element of a window of an array, in the order of the indices.

    They are stored together where they are neighbours that are logged.

    What ``element_at`` reads may not be stored to here: words that are stored together hold nothing
    before all of them are written.
    """
    run, builder = target.run, target.run.builder

    def store_to(window: Window) -> None:
        with cgutils.loop_nest(builder, window.shape, I64) as indices:
            window.store(indices, element_at(indices))

    if not target.type.is_logged:
        store_to(target)
        return
    address = cgutils.alloca_once(builder, POINTER)
    builder.store(cgutils.get_null_value(POINTER), address)
    neighbours, count = _contiguous(target)
    long_enough = builder.icmp_signed(">=", count, I64(SHORTEST_STORED))
    with builder.if_then(builder.and_(neighbours, long_enough)):
        builder.store(run.store_range(target.type.variant, target.offset, count), address)
    words = builder.load(address)
    with builder.if_else(cgutils.is_null(builder, words)) as (one_by_one, together):
        with one_by_one:
            run.leave_if_verdict()
            store_to(target)
        with together:
            first = run.word_number(words)
            store_to(replace(target, type=whole_type(target.type), offset=first))


def _contiguous(window: Window) -> tuple[Value, Value]:
    """Whether a window of an array lies in one piece, and how many elements it has."""
    builder = window.run.builder
    dense, count = ir.Constant(ir.IntType(1), 1), I64(1)
    for length, stride in zip(reversed(window.shape), reversed(window.strides), strict=True):
        dense = builder.and_(dense, builder.icmp_signed("==", stride, count))
        count = builder.mul(count, length)
    return dense, count


def _broadcast(source: Window, target: Window) -> Window:
    """Broadcasts a window of an array to the shape of another; a repeated axis has stride 0."""
    run, builder = target.run, target.run.builder
    missing = len(target.shape) - len(source.shape)
    for length in source.shape[: max(-missing, 0)]:
        run.fault_if(builder.icmp_signed("!=", length, I64(1)), ValueError)
    lengths = [I64(1)] * missing + source.shape[max(-missing, 0) :]
    strides = [I64(0)] * missing + source.strides[max(-missing, 0) :]
    repeated = []
    for length, stride, wanted in zip(lengths, strides, target.shape, strict=True):
        fits = builder.icmp_signed("==", length, wanted)
        one = builder.icmp_signed("==", length, I64(1))
        run.fault_if(builder.not_(builder.or_(fits, one)), ValueError)
        repeated.append(builder.select(fits, stride, I64(0)))
    return Window(run, source.type, source.offset, target.shape, repeated)


def _overlap(target: Window, source: Window) -> Value:
    """Whether two windows of arrays may overlap, that is, have an element in common."""
    builder = target.run.builder
    ends = []
    for window in (target, source):
        low = high = window.offset
        for length, stride in zip(window.shape, window.strides, strict=True):
            way = builder.mul(builder.sub(length, I64(1)), stride)
            backwards = builder.icmp_signed("<", way, I64(0))
            low = builder.add(low, builder.select(backwards, way, I64(0)))
            high = builder.add(high, builder.select(backwards, I64(0), way))
        ends.append((low, high))
    (low, high), (source_low, source_high) = ends
    return builder.and_(
        builder.icmp_signed("<=", low, source_high), builder.icmp_signed("<=", source_low, high)
    )


def _by_way_of_a_buffer(target: Window, source: Window, convert: Callable[[Value], Value]) -> None:
    run, builder = target.run, target.run.builder
    count = I64(1)
    for length in target.shape:
        count = builder.mul(count, length)
    words = run.call("ss_buffer", POINTER, run.pointer, count)
    run.leave_if(cgutils.is_null(builder, words))
    position = cgutils.alloca_once(builder, I64)

    def next_word() -> Value:
        at = builder.load(position)
        builder.store(builder.add(at, I64(1)), position)
        return run.address(words, at, 8)

    builder.store(I64(0), position)
    with cgutils.loop_nest(builder, target.shape, I64) as indices:
        element = source.load(indices)
        kind = element.type
        builder.store(_as_word(builder, element), next_word())
    builder.store(I64(0), position)
    _store_window(
        target, lambda indices: convert(_from_word(builder, builder.load(next_word()), kind))
    )


def _as_word(builder: Any, element: Value) -> Value:
    if element.type == F64:
        return builder.bitcast(element, I64)
    return element if element.type == I64 else builder.zext(element, I64)


def _from_word(builder: Any, word: Value, kind: ir.Type) -> Value:
    if kind == F64:
        return builder.bitcast(word, F64)
    return word if kind == I64 else builder.trunc(word, kind)
