"""Primitives of all sequences: local lists, and lists, deques and queues of the state.

Two classes write the same few instructions, for a sequence of the event
(:class:`~specstream.compiler.library.local_lists.List`) and for one of the state
(:class:`~specstream.compiler.library.state_sequences.Elements`). What takes no loop is written over
either as instructions, because Numba needs 10 to 30 ms for each function that is compiled along.
For what takes a loop, and is plain Python, the primitives are functions here.
"""

# Numba's internals are only partly typed.
# mypy: allow-untyped-calls

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numba.core import types
from numba.extending import intrinsic

from specstream.compiler.backend.instructions import I64, Value
from specstream.compiler.backend.local_types import ListType, takes
from specstream.compiler.backend.numba_types import RunType
from specstream.compiler.backend.overloads import Core, Meaning
from specstream.compiler.library.local_lists import List, element_of
from specstream.compiler.library.method_dispatch import sized, written_by
from specstream.compiler.library.state_sequence_types import SequenceType, stored
from specstream.compiler.library.state_sequences import Elements

__all__ = [
    "SEQUENCES",
    "append",
    "delete",
    "get",
    "insert",
    "limit_of",
    "meaning",
    "put",
    "run_of",
    "run_of_either",
    "stored_in",
    "take_last",
    "turned",
]

SEQUENCES = (ListType, SequenceType)


def _writer(context: Any, builder: Any, of: types.Type, pointer: Value) -> List | Elements:
    if isinstance(of, SequenceType):
        return Elements(context, builder, of, pointer)
    return List(context, builder, of, pointer)


meaning = written_by(_writer)


def stored_in(of: types.Type, given: types.Type) -> types.Type:
    """As what type a sequence keeps a value; refuses one that does not fit."""
    if isinstance(of, SequenceType):
        return stored(of, given)
    assert isinstance(of, ListType)
    return takes(of, given)


# ---- what all else is made of ----

get = Core("get_element", "it takes a position")
put = Core("put_element", "it takes a position and a value")
append = Core("append_element", "it takes a value")
take_last = Core("take_last", "it takes a sequence")
insert = Core("insert_element", "it takes a position and a value")
delete = Core("delete_elements", "it takes a first position, a step and a number")
turned = Core("turned", "it takes a deque")


@get.rule
def _get(context: Any, args: Sequence[types.Type]) -> Meaning:
    """Primitive of sequences, in LLVM: loads an element that is there."""
    of = args[0]
    return meaning(element_of(of), (of, types.int64), lambda head, sig, args: head.get(args[1]))


@put.rule
def _put(context: Any, args: Sequence[types.Type]) -> Meaning:
    """Primitive of sequences, in LLVM: stores an element over another one."""
    of, _, value = args
    taken = (of, types.int64, stored_in(of, value))
    return meaning(types.none, taken, lambda head, sig, args: head.put(*args[1:]))


@append.rule
def _append(context: Any, args: Sequence[types.Type]) -> Meaning:
    """Primitive of sequences, in LLVM: puts an element behind all."""
    of, value = args
    return meaning(
        types.none, (of, stored_in(of, value)), lambda head, sig, args: head.append(args[1])
    )


@take_last.rule
def _take_last(context: Any, args: Sequence[types.Type]) -> Meaning:
    """Primitive of sequences, in LLVM: takes the last element out.

    IndexError where there is none."""
    (of,) = args
    return meaning(element_of(of), (of,), lambda head, sig, args: head.take_last())


@insert.rule
def _insert(context: Any, args: Sequence[types.Type]) -> Meaning:
    """Primitive of sequences, in LLVM: puts an element in, before another.

    The position is from 0 to the length."""
    of, _, value = args
    taken = (of, types.int64, stored_in(of, value))
    return meaning(types.none, taken, lambda head, sig, args: head.insert(*args[1:]))


@delete.rule
def _delete(context: Any, args: Sequence[types.Type]) -> Meaning:
    """Primitive of sequences, in LLVM: takes several elements out.

    So many that are there: first, first + step ..."""
    taken = (args[0], types.int64, types.int64, types.int64)
    return meaning(types.none, taken, lambda head, sig, args: head.delete(*args[1:]))


@turned.rule
def _turned(context: Any, args: Sequence[types.Type]) -> Meaning:
    """Primitive of the state's sequences: who goes through a deque is to be told."""
    return meaning(types.none, args, lambda head, sig, args: head.changed())


@intrinsic
def run_of(typing_context: Any, of: Any) -> Any:
    """Primitive of the state's sequences: the run."""
    return RunType(of.state.variant)(of), lambda context, builder, sig, args: args[0]


@intrinsic
def limit_of(typing_context: Any, of: Any) -> Any:
    """Primitive of the state's sequences: how many elements one holds at most, a constant."""
    most = of.container.limit
    return types.int64(of), lambda context, builder, sig, args: I64(most)


@intrinsic
def run_of_either(typing_context: Any, left: Any, right: Any) -> Any:
    """Primitive of the state's sequences: the run, by two values of which one is such."""
    at = 0 if isinstance(left, SequenceType) else 1
    run = RunType((left, right)[at].state.variant)
    return run(left, right), lambda context, builder, sig, args: args[at]


for _kind in SEQUENCES:
    sized(_kind, meaning)
