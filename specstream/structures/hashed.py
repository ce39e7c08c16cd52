"""Hash maps and hash sets over words of the state.

A table is a two-dimensional field. Row 0 is its own: column 0 holds the number of keys. Every
other row is a slot: column 0 is 1 where it is in use, column 1 is its key, and the columns behind
are what a map keeps with it. A key lies in the slot that its hash names, or in one of those behind,
without a gap in between; removing one closes the gap.

Two events conflict where they touch the same slots, one of them by a change: with as many slots as
these tables have that is rarely so for two different keys. The number of keys is counted by
commutative updates, so only who asks for it depends on it.

Keys are int64. Strings are kept as such numbers; a uint64 becomes one by
``np.int64(x)``.
"""

from __future__ import annotations

from typing import Any

from specstream.declarations.options import integer, refuses_unknown
from specstream.declarations.state_layout import array
from specstream.errors import DeclarationError
from specstream.structures.commutative import add

__all__ = [
    "contains",
    "find",
    "get",
    "hash_map",
    "hash_set",
    "insert",
    "put",
    "remove",
    "size",
]


@refuses_unknown
def hash_map(capacity: int, words: int = 1) -> Any:
    """A field that maps int64 keys to ``words`` integers each.

    It holds ``capacity`` keys, and somewhat more: the slots are a power of two, at least a third
    more than that. A slot takes 8 bytes for each word, and 16 more.

    Iterate over the slots; their order is that of the sequential run, like everything else:

    >>> import specstream as ss
    >>> from specstream.structures import get, hash_map, put, remove, size
    >>> class Prices(ss.State):
    ...     latest = hash_map(capacity=1000)
    >>> @ss.operator(state=Prices, event={"stock": str, "cents": int}, emits={"change": int})
    ... def changes(state, event, emit):
    ...     emit(event.cents - get(state.latest, event.stock, event.cents))
    ...     put(state.latest, event.stock, event.cents)
    >>> with ss.Engine(changes, threads=2) as engine:
    ...     table = {"stock": ["A", "B", "A", "B"], "cents": [100, 70, 90, 75]}
    ...     engine.process(table)["change"].to_pylist()
    ...     latest = engine.state.latest
    [0, 0, -10, 5]
    >>> sorted(int(row[2]) for row in latest[1:] if row[0] == 1)
    [75, 90]

    Raises:
        DeclarationError: a size is not at least 1.
    """
    return _table("hash_map", capacity, words)


@refuses_unknown
def hash_set(capacity: int) -> Any:
    """A field that holds a set of int64 keys; sizes as of :func:`hash_map`.

    >>> import specstream as ss
    >>> from specstream.structures import hash_set, insert
    >>> class Seen(ss.State):
    ...     users = hash_set(capacity=1000)
    >>> @ss.operator(state=Seen, event={"user": str}, emits={"user": str})
    ... def first_visit(state, event, emit):
    ...     if insert(state.users, event.user):
    ...         emit(event.user)
    >>> with ss.Engine(first_visit, threads=2) as engine:
    ...     engine.process({"user": ["eve", "bob", "eve"]})["user"].to_pylist()
    ['eve', 'bob']
    """
    return _table("hash_set", capacity, 0)


def _table(what: str, capacity: int, words: int) -> Any:
    capacity = integer(f"{what}: capacity", capacity, 1, error=DeclarationError)
    words = integer(f"{what}: words", words, 0, error=DeclarationError)
    slots = 1 << (capacity + capacity // 3).bit_length()
    return array(int, (1 + slots, 2 + words))


def _home(table: Any, key: Any) -> Any:
    """The slot that the hash of a key names."""
    mixed = (key ^ 0) * -7046029254386353131  # a string is a number by its bits only
    return 1 + ((mixed ^ (mixed >> 32)) & (len(table) - 2))


def _after(table: Any, slot: Any) -> Any:
    """The next slot; after the last one the first."""
    return 1 + (slot & (len(table) - 2))


def _probe(table: Any, key: Any) -> Any:
    """The slot that holds a key, or the free one where it belongs; 0: neither."""
    slot = _home(table, key)
    for _ in range(len(table) - 1):
        if table[slot, 0] == 0 or table[slot, 1] == key:
            return slot
        slot = _after(table, slot)
    return 0


def _place(table: Any, key: Any) -> Any:
    """The slot of a key, which may be new; negative where it is."""
    slot = _probe(table, key)
    if slot == 0:
        raise MemoryError("all slots of the hash table are in use: declare a greater capacity")
    if table[slot, 0] != 0:
        return slot
    table[slot, 0] = 1
    table[slot, 1] = key
    add(table, (0, 0), 1)
    return -slot


def find(table: Any, key: Any) -> Any:
    """Inside an operator: the row of a key in ``table``, 0 where it is not there.

    What a map of several words keeps with a key is in columns 2 and on of that row. A row may be
    another key's after a removal.
    """
    slot = _probe(table, key)
    if slot != 0 and table[slot, 0] == 0:
        slot = 0
    return slot


def contains(table: Any, key: Any) -> Any:
    """Inside an operator: whether ``table``, a map or set, has a key."""
    return find(table, key) != 0


def get(table: Any, key: Any, default: Any) -> Any:
    """Inside an operator: the first word that ``table``, a map, keeps with a key; ``default``
    without it."""
    slot = find(table, key)
    return default if slot == 0 else table[slot, 2]


def put(table: Any, key: Any, value: Any) -> Any:
    """Inside an operator: ``value`` becomes the first word that ``table``, a map, keeps with a key.

    The other words of a key that was not there are 0.

    Returns:
        Whether the key was not there.

    Raises:
        MemoryError: all slots are in use.
    """
    slot = _place(table, key)
    table[abs(slot), 2] = value
    return slot < 0


def insert(table: Any, key: Any) -> Any:
    """Inside an operator: puts a key into ``table``, a set; whether it was not there.

    Raises:
        MemoryError: all slots are in use.
    """
    return _place(table, key) < 0


def remove(table: Any, key: Any) -> Any:
    """Inside an operator: takes a key, and what is kept with it, out of ``table``; whether it was
    there."""
    gap = find(table, key)
    if gap == 0:
        return False
    mask = len(table) - 2
    slot = gap
    for _ in range(len(table) - 2):
        slot = _after(table, slot)
        if table[slot, 0] == 0:
            break
        # A key may move to the gap unless that lies before its home.
        if ((slot - _home(table, table[slot, 1])) & mask) >= ((slot - gap) & mask):
            for column in range(1, table.shape[1]):
                table[gap, column] = table[slot, column]
            gap = slot
    for column in range(table.shape[1]):
        table[gap, column] = 0
    add(table, (0, 0), -1)
    return True


def size(table: Any) -> Any:
    """Inside an operator: how many keys ``table`` has. It depends on every event that adds or
    removes one, so it conflicts with all of them."""
    return table[0, 0]
