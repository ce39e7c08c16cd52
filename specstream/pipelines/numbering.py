"""Numbers for the vertices of an acyclic graph, after Zimmerman and Chandy (section 3.1.1).

They are topological, and more: S(v), the vertices all of whose predecessors are numbered v or
lower, is {1, ..., m(v)} for every v. So when the vertices up to v have done a phase, exactly those
up to m(v) know all of their inputs for it, changes and the absence of changes alike.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Mapping, Sequence

__all__ = ["known_after", "numbered"]


def numbered(predecessors: Mapping[str, Sequence[str]]) -> list[str]:
    """The vertices in the order of such numbers; the first one's is 1.

    A vertex comes in as soon as the last of its predecessors has a number. Where several do at
    once, they keep the order in which they are given.

    Args:
        predecessors: of each vertex, by its name.

    Returns:
        Fewer than there are, where the others wait for each other: they are on a cycle or behind
        one.

    >>> numbered({"both": ["ticks", "fast"], "ticks": [], "fast": ["ticks"]})
    ['ticks', 'fast', 'both']
    """
    waits = {name: len(set(before)) for name, before in predecessors.items()}
    behind: dict[str, list[str]] = {name: [] for name in predecessors}
    for name, before in predecessors.items():
        for one in dict.fromkeys(before):
            behind[one].append(name)
    order = [name for name, count in waits.items() if count == 0]
    for done in order:  # grows meanwhile
        for name in behind[done]:
            waits[name] -= 1
            if waits[name] == 0:
                order.append(name)
    if len(order) == len(waits):
        number = {name: at for at, name in enumerate(order, start=1)}
        known_after([[number[one] for one in predecessors[name]] for name in order])
    return order


def known_after(predecessors: Sequence[Sequence[int]]) -> list[int]:
    """m(v) for v from 0 to N: how many vertices have predecessors numbered v or lower only.

    Args:
        predecessors: numbers of the predecessors of vertex 1, 2, ..., N.

    Raises:
        ValueError: the numbers are not topological, or the vertices of some S(v) are not numbered
            one after the other; names the first v.

    >>> known_after([[], [1], [1, 2]])
    [1, 2, 3, 3]
    """
    count = len(predecessors)
    last = [max(before, default=0) for before in predecessors]
    for v, one in enumerate(last, start=1):
        if one >= v:
            raise ValueError(f"vertex {v} has predecessor {one}: not topological")
    # Vertex w is in S(v) from v = last(w) on.
    for w, (one, following) in enumerate(itertools.pairwise(last), start=1):
        if following < one:
            raise ValueError(f"S({following}) has vertex {w + 1}, and not vertex {w}")
    known = [bisect.bisect_right(last, v) for v in range(count + 1)]
    # Equations (2), (3) and (4) of the paper follow.
    assert all(one <= other for one, other in itertools.pairwise(known))
    assert all(v < known[v] for v in range(1, count))
    assert known[count] == count
    return known
