"""Priority queues of the state: heaps as CPython has them, plain Python, compiled along.

The same items end up in the same places as with ``heapq``.
"""

# Numba's internals are only partly typed; what is compiled along carries no types, as operators do.
# mypy: allow-untyped-calls, allow-untyped-defs

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numba.core import types

from specstream.compiler.backend.instructions import raise_error
from specstream.compiler.backend.numba_pipeline import compiled
from specstream.compiler.backend.overloads import Meaning
from specstream.compiler.library.arithmetic import lt
from specstream.compiler.library.sequence_methods import Role, plain_python, sequence_method
from specstream.compiler.library.sequence_primitives import append, get, put, take_last
from specstream.compiler.library.state_sequence_types import QueueField

__all__: list[str] = []


def _moved_up(heap, first, at):
    item = get(heap, at)
    while at > first:
        above = (at - 1) >> 1
        parent = get(heap, above)
        if not lt(item, parent):
            break
        put(heap, at, parent)
        at = above
    put(heap, at, item)


def _moved_down(heap, at):
    end = len(heap)
    first = at
    item = get(heap, at)
    child = 2 * at + 1
    while child < end:
        right = child + 1
        if right < end and not lt(get(heap, child), get(heap, right)):
            child = right
        put(heap, at, get(heap, child))
        at = child
        child = 2 * at + 1
    put(heap, at, item)
    _up(heap, first, at)


_up = compiled(_moved_up, apart=True)
_down = compiled(_moved_down, apart=True)


def _pushed(heap, item):
    append(heap, item)
    _up(heap, 0, len(heap) - 1)


def _popped_least(heap):
    last = take_last(heap)
    if len(heap) == 0:
        return last
    least = get(heap, 0)
    put(heap, 0, last)
    _down(heap, 0)
    return least


def _peeked(heap):
    if len(heap) == 0:
        raise_error(IndexError)
    return get(heap, 0)


def _replaced_least(heap, item):
    if len(heap) == 0:
        raise_error(IndexError)
    least = get(heap, 0)
    put(heap, 0, item)
    _down(heap, 0)
    return least


def _pushed_and_popped(heap, item):
    if len(heap) > 0 and lt(get(heap, 0), item):
        least = get(heap, 0)
        put(heap, 0, item)
        _down(heap, 0)
        return least
    return item


def _of_queues(name: str, function: Callable[..., Any], *roles: Role) -> None:
    rule = plain_python(function, *roles)

    @sequence_method(name, (QueueField,))
    def checked(context: Any, args: Sequence[types.Type]) -> Meaning | None:
        assert isinstance(args[0], QueueField)
        return rule(context, args)


_of_queues("push", _pushed, "element")
_of_queues("pop", _popped_least)
_of_queues("peek", _peeked)
_of_queues("replace", _replaced_least, "element")
_of_queues("pushpop", _pushed_and_popped, "element")
