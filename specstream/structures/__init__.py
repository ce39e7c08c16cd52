"""Structures for operators: plain functions over fields of the state.

They are compiled along with the operator that calls them, so what they do is logged, rolled back
and committed like everything else that the operator does.
"""

from specstream.structures.boosting import boosted, boosted_set
from specstream.structures.commutative import add, maximum, minimum
from specstream.structures.counters import (
    approximate_count,
    approximate_counter,
    increment,
    unique_id,
)
from specstream.structures.hashed import (
    contains,
    find,
    get,
    hash_map,
    hash_set,
    insert,
    put,
    remove,
    size,
)
from specstream.structures.heap import allocate, heap, release
from specstream.structures.reservoir import offer
from specstream.structures.sorted_list import (
    sorted_contains,
    sorted_insert,
    sorted_list,
    sorted_remove,
)

__all__ = [
    "add",
    "allocate",
    "approximate_count",
    "approximate_counter",
    "boosted",
    "boosted_set",
    "contains",
    "find",
    "get",
    "hash_map",
    "hash_set",
    "heap",
    "increment",
    "insert",
    "maximum",
    "minimum",
    "offer",
    "put",
    "release",
    "remove",
    "size",
    "sorted_contains",
    "sorted_insert",
    "sorted_list",
    "sorted_remove",
    "unique_id",
]
