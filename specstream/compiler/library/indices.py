"""Indices and slices of what has elements in a row, as positions in LLVM instructions."""

# Numba's internals are only partly typed.
# mypy: allow-untyped-calls

from __future__ import annotations

from abc import ABC, abstractmethod

from numba.core import types
from numba.cpython import slicing

from specstream.compiler.backend.instructions import I64, Instructions, Value
from specstream.compiler.backend.none_types import present, unwrapped
from specstream.compiler.backend.scalar_kinds import scalar_kind
from specstream.compiler.language.text import TextType
from specstream.compiler.language.typing_refusals import refuse

__all__ = ["Indexed", "check_index", "index_type", "slice_of"]


class Indexed(Instructions, ABC):
    """Writes instructions about what has a number of elements."""

    @abstractmethod
    def count(self) -> Value:
        """How many there are."""

    def position(self, index: Value, of: types.Type, site: int = 0) -> Value:
        """An index as a position; a fault when it is outside, whose text ``site`` says."""
        builder = self.builder
        index, of = unwrapped(self.context, builder, of, index), present(of)
        count = self.count()
        if types.unliteral(of) == types.int64:
            negative = builder.icmp_signed("<", index, I64(0))
            index = builder.select(negative, builder.add(index, count), index)
        self.fault_if(builder.icmp_unsigned(">=", index, count), IndexError, site)
        return index

    def clipped(self, index: Value, of: types.Type) -> Value:
        """An index as a position from 0 to the end, as slices have them."""
        builder = self.builder
        index, of = unwrapped(self.context, builder, of, index), present(of)
        count = self.count()
        if types.unliteral(of) == types.int64:
            negative = builder.icmp_signed("<", index, I64(0))
            shifted = builder.add(index, count)
            shifted = builder.select(builder.icmp_signed("<", shifted, I64(0)), I64(0), shifted)
            index = builder.select(negative, shifted, index)
        beyond = builder.icmp_unsigned(">", index, count)
        return builder.select(beyond, count, index)

    def selected(self, of: types.SliceType, index: Value) -> tuple[Value, Value, Value]:
        """First position, step and number of what a slice selects."""
        return slice_of(self, of, index, self.count())


def slice_of(
    writer: Instructions, of: types.SliceType, index: Value, count: Value
) -> tuple[Value, Value, Value]:
    """First position, step and number of what a slice selects of so many."""
    builder = writer.builder
    part = writer.context.make_helper(builder, of, index)
    if of.has_step:
        writer.fault_if(builder.icmp_signed("==", part.step, I64(0)), ValueError)
    slicing.fix_slice(builder, part, count)
    return part.start, part.step, slicing.get_slice_length(builder, part)


def check_index(of: types.Type) -> None:
    """Refuses what is no index of a list."""
    if isinstance(of, TextType):
        raise refuse("an index is a string: a list is indexed with integers")
    if scalar_kind(present(of)) not in ("int64", "uint64"):
        raise refuse(f"an index has type {of}: write int(x)")


def index_type(given: types.Type) -> types.Type:
    """The type of an index, which is one."""
    check_index(given)
    return types.unliteral(given)
