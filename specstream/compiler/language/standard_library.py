"""What operators get for functions of the standard library: plain Python, compiled along.

``heapq``, ``bisect`` and ``itertools`` are written in C, or do more than an operator needs. Here is
the same in the operators' own language, so that the oracle and the native code come from one text.
Those of ``itertools`` make lists: what they go through is read before the first item is used.
"""

from __future__ import annotations

import bisect
import heapq
import itertools
from collections.abc import Callable
from typing import Any

__all__ = ["BY_COUNT", "OF_MAPPINGS", "PREFIX", "SAME", "by_argument"]

PREFIX = "specstream·"
"""Begins the names under which operators find what is here."""

# Operators carry no types, and these are parts of them.
# mypy: allow-untyped-defs, allow-untyped-calls
# mypy: disable-error-code=var-annotated


# ---- heapq, as CPython has it: the same items end up in the same places ----


def move_up(heap, first, at):
    item = heap[at]
    while at > first:
        above = (at - 1) >> 1
        parent = heap[above]
        if not item < parent:
            break
        heap[at] = parent
        at = above
    heap[at] = item


def move_down(heap, at):
    end = len(heap)
    first = at
    item = heap[at]
    child = 2 * at + 1
    while child < end:
        right = child + 1
        if right < end and not heap[child] < heap[right]:
            child = right
        heap[at] = heap[child]
        at = child
        child = 2 * at + 1
    heap[at] = item
    move_up(heap, first, at)


def settle_pushed(heap):
    """After an item was appended."""
    move_up(heap, 0, len(heap) - 1)


def heappush(heap, item):
    heap.append(item)
    move_up(heap, 0, len(heap) - 1)


def heappop(heap):
    if len(heap) == 0:
        raise IndexError("index out of range")
    least = heap.pop()
    if len(heap) > 0:
        last = least
        least = heap[0]
        heap[0] = last
        move_down(heap, 0)
    return least


def heapify(heap):
    for at in range(len(heap) // 2 - 1, -1, -1):
        move_down(heap, at)


def heapreplace(heap, item):
    if len(heap) == 0:
        raise IndexError("index out of range")
    least = heap[0]
    heap[0] = item
    move_down(heap, 0)
    return least


def heappushpop(heap, item):
    if len(heap) > 0 and heap[0] < item:
        least = heap[0]
        heap[0] = item
        item = least
        move_down(heap, 0)
    return item


# ---- bisect ----


def bisect_right(values, value):
    low = 0
    high = len(values)
    while low < high:
        middle = (low + high) // 2
        if value < values[middle]:
            high = middle
        else:
            low = middle + 1
    return low


def bisect_left(values, value):
    low = 0
    high = len(values)
    while low < high:
        middle = (low + high) // 2
        if values[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


def insort_right(values, value):
    values.insert(bisect_right(values, value), value)


def insort_left(values, value):
    values.insert(bisect_left(values, value), value)


def settle_right(values):
    """What operators get for ``bisect.insort_right``: plain Python, of an item appended."""
    value = values.pop()
    values.insert(bisect_right(values, value), value)


def settle_left(values):
    value = values.pop()
    values.insert(bisect_left(values, value), value)


# ---- itertools ----


def product_of_two(first, second):
    others = list(second)
    return [(a, b) for a in list(first) for b in others]


def product_of_three(first, second, third):
    seconds = list(second)
    thirds = list(third)
    return [(a, b, c) for a in list(first) for b in seconds for c in thirds]


def twice(values):
    items = list(values)
    return [(a, b) for a in items for b in items]


def three_times(values):
    items = list(values)
    return [(a, b, c) for a in items for b in items for c in items]


def pairs(values):
    items = list(values)
    n = len(items)
    return [(items[i], items[j]) for i in range(n) for j in range(i + 1, n)]


def triples(values):
    items = list(values)
    n = len(items)
    return [
        (items[i], items[j], items[k])
        for i in range(n)
        for j in range(i + 1, n)
        for k in range(j + 1, n)
    ]


def ordered_pairs(values):
    items = list(values)
    n = len(items)
    return [(items[i], items[j]) for i in range(n) for j in range(n) if i != j]


def neighbours(values):
    items = list(values)
    return [(items[i], items[i + 1]) for i in range(len(items) - 1)]


def flattened(parts):
    return [item for part in parts for item in part]


def transposed(rows):
    shortest = min([len(row) for row in rows], default=0)
    return [[row[at] for row in rows] for at in range(shortest)]


def running_sums(values):
    made = list(values)
    for at in range(1, len(made)):
        made[at] = made[at - 1] + made[at]
    return made


def running_maxima(values):
    made = list(values)
    for at in range(1, len(made)):
        if not made[at] > made[at - 1]:
            made[at] = made[at - 1]
    return made


def running_minima(values):
    made = list(values)
    for at in range(1, len(made)):
        if not made[at] < made[at - 1]:
            made[at] = made[at - 1]
    return made


def first_of(values, stop):
    if stop is not None and stop < 0:
        if stop == -1:
            raise ValueError(
                "Stop argument for islice() must be None or an integer: 0 <= x <= sys.maxsize."
            )
        raise ValueError("Indices for islice() must be None or an integer: 0 <= x <= sys.maxsize.")
    return list(values)[:stop]


def part_of(values, start, stop):
    if stop is not None and stop < 0:
        if stop == -1:
            raise ValueError(
                "Stop argument for islice() must be None or an integer: 0 <= x <= sys.maxsize."
            )
        raise ValueError("Indices for islice() must be None or an integer: 0 <= x <= sys.maxsize.")
    if start is not None and start < 0:
        raise ValueError("Indices for islice() must be None or an integer: 0 <= x <= sys.maxsize.")
    return list(values)[start:stop]


def rest_of(values, start):
    if start is not None and start < 0:
        raise ValueError("Indices for islice() must be None or an integer: 0 <= x <= sys.maxsize.")
    return list(values)[start:]


# ---- collections ----


def counted(values):
    counts = {}
    for value in values:
        counts[value] = counts.get(value, 0) + 1
    return counts


def count_into(counts, values):
    for value in values:
        counts[value] = counts.get(value, 0) + 1


def counted_before(counts):
    """``counted`` of a mapping: it has the counts."""
    return dict(counts)


def add_counts(counts, added):
    """``count_into`` of a mapping."""
    if len(counts) == 0:
        counts.update(added)
    else:
        for value, count in added.items():
            counts[value] = count + counts.get(value, 0)


def last_of(values, most):
    items = list(values)
    return items[max(len(items) - most, 0) :]


def cut_left(items, most):
    if len(items) > most:
        del items[0]


def cut_right(items, most):
    if len(items) > most:
        items.pop()


def cut_to(items, most):
    if len(items) > most:
        del items[: len(items) - most]


def greatest_length(most):
    if most is None:
        return 9223372036854775807
    if most < 0:
        raise ValueError("maxlen must be non-negative")
    return most


def item_of(items, at):
    if not -len(items) <= at < len(items):
        raise IndexError("deque index out of range")
    return items[at]


def place_in(items, at):
    if not -len(items) <= at < len(items):
        raise IndexError("deque index out of range")
    return at


def index_in(items, item):
    for at in range(len(items)):
        if items[at] == item:
            return at
    raise ValueError(f"{item!r} is not in deque")


def index_from(items, item, first):
    for at in range(len(items[:first]), len(items)):
        if items[at] == item:
            return at
    raise ValueError(f"{item!r} is not in deque")


def index_between(items, item, first, last):
    for at in range(len(items[:first]), len(items[:last])):
        if items[at] == item:
            return at
    raise ValueError(f"{item!r} is not in deque")


def remove_from(items, item):
    del items[index_in(items, item)]


def take(items):
    if len(items) == 0:
        raise IndexError("pop from an empty deque")
    return items.pop()


def take_left(items):
    if len(items) == 0:
        raise IndexError("pop from an empty deque")
    return items.pop(0)


def put_in(items, at, item, most):
    if len(items) >= most:
        raise IndexError("deque already at its maximum size")
    items.insert(at, item)


def push(items, item, most):
    items.append(item)
    if len(items) > most:
        del items[0]


def push_left(items, item, most):
    items.insert(0, item)
    if len(items) > most:
        items.pop()


def push_all(items, values, most):
    for value in list(values):
        items.append(value)
        if len(items) > most:
            del items[0]


def put_before(items, values):
    items[:0] = list(values)[::-1]


def push_all_left(items, values, most):
    items[:0] = list(values)[::-1]
    del items[most:]


def rotate(items, by):
    if len(items) > 0:
        by %= len(items)
        items[:] = items[len(items) - by :] + items[: len(items) - by]


OF_MAPPINGS: dict[Any, Any] = {counted: counted_before, count_into: add_counts}
"""What is called in place of a function where its last argument is a mapping."""


def by_argument(
    function: Any,
    is_mapping: Callable[[Any], bool],
    made: Callable[[Any], Any] = lambda function: function,
) -> Any:
    """A function of the standard library, for Python: calls another where it gets a mapping.

    Args:
        is_mapping: what is asked of the last argument.
        made: of each of the two, what is called.
    """
    of_mapping = OF_MAPPINGS.get(function)
    if of_mapping is None:
        return made(function)
    plain, other = made(function), made(of_mapping)

    def choose(*arguments: Any) -> Any:
        return (other if is_mapping(arguments[-1]) else plain)(*arguments)

    return choose


SAME: dict[Any, Any] = {
    heapq.heappush: heappush,
    heapq.heappop: heappop,
    heapq.heapify: heapify,
    heapq.heapreplace: heapreplace,
    heapq.heappushpop: heappushpop,
    bisect.bisect_left: bisect_left,
    bisect.bisect_right: bisect_right,
    bisect.insort_left: insort_left,
    bisect.insort_right: insort_right,
    itertools.pairwise: neighbours,
    itertools.chain.from_iterable: flattened,
}
"""What is written for a function that takes the same."""
BY_COUNT: dict[Any, dict[int, Any]] = {
    itertools.product: {2: product_of_two, 3: product_of_three},
    itertools.islice: {2: first_of, 3: part_of},
}
"""Likewise, by the number of arguments."""
