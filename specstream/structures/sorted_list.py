"""A set of int64 keys as a sorted linked list: the structure that speculation does not like.

To come to its place in the list an event reads all smaller keys, so it conflicts with every change
below, whether that matters or not (Brito 2010, 4.4.1). It is here to be compared with
:func:`~specstream.structures.hash_set`, which has the same operations; there is no other reason to
use it, but for iterating in order.

The list is built of the blocks of a heap. A block holds a key and the number of the next block; the
first block's number stands in row 0, in the column behind the heap's own.
"""

from __future__ import annotations

from typing import Any

from specstream.declarations.options import integer, refuses_unknown
from specstream.errors import DeclarationError
from specstream.structures.heap import allocate, heap, release

__all__ = ["sorted_contains", "sorted_insert", "sorted_list", "sorted_remove"]


@refuses_unknown
def sorted_list(capacity: int) -> Any:
    """A field that holds a sorted set of ``capacity`` keys.

    Raises:
        DeclarationError: the capacity is not at least 1.

    >>> import specstream as ss
    >>> from specstream.structures import sorted_insert, sorted_list
    >>> class Seen(ss.State):
    ...     users = sorted_list(capacity=1000)
    >>> @ss.operator(state=Seen, event={"user": int}, emits={"user": int})
    ... def first_visit(state, event, emit):
    ...     if sorted_insert(state.users, event.user):
    ...         emit(event.user)
    >>> with ss.Engine(first_visit, threads=2) as engine:
    ...     engine.process({"user": [7, 5, 7, 6]})["user"].to_pylist()
    [7, 5, 6]
    """
    return heap(integer("sorted_list: capacity", capacity, 1, error=DeclarationError), 3)


def _next(keys: Any, block: Any) -> Any:
    """The block behind another one, or the first one behind row 0; 0: there is none."""
    return keys[0, 3] if block == 0 else keys[block, 2]


def _link(keys: Any, block: Any, following: Any) -> Any:
    if block == 0:
        keys[0, 3] = following
    else:
        keys[block, 2] = following


def _before(keys: Any, key: Any) -> Any:
    """The last block with a smaller key, or row 0."""
    block = 0
    following = _next(keys, 0)
    for _ in range(len(keys)):
        if following == 0 or keys[following, 1] >= key:
            break
        block = following
        following = _next(keys, block)
    return block


def sorted_contains(keys: Any, key: Any) -> Any:
    """Inside an operator: whether ``keys``, the set, has a key."""
    block = _next(keys, _before(keys, key))
    return block != 0 and keys[block, 1] == key


def sorted_insert(keys: Any, key: Any) -> Any:
    """Inside an operator: puts a key into ``keys``, the set; whether it was not there.

    Raises:
        MemoryError: the set is full.
    """
    before = _before(keys, key)
    following = _next(keys, before)
    if following != 0 and keys[following, 1] == key:
        return False
    block = allocate(keys)
    keys[block, 1] = key
    keys[block, 2] = following
    _link(keys, before, block)
    return True


def sorted_remove(keys: Any, key: Any) -> Any:
    """Inside an operator: takes a key out of ``keys``, the set; whether it was there."""
    before = _before(keys, key)
    block = _next(keys, before)
    if block == 0 or keys[block, 1] != key:
        return False
    _link(keys, before, keys[block, 2])
    release(keys, block)
    return True
