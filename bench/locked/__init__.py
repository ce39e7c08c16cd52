"""The operators of the benchmarks as one would write them with locks.

Each is compiled the same way and run by the same threads, with ``Engine(..., execution="locked")``.
Of each there is a version with one global lock, held around what touches the state and around
nothing else (hashing, busy work, square roots and emitting are outside), and a fine-grained one: a
lock for each sketch counter and one for the list, for each bucket, for each entry, for each part of
the words. The price is the order of the events: what such a run emits depends on who got a lock
first. Around an operator whose events say which keys they touch, :func:`under_sorted_locks` puts
one lock for each.
"""

from bench.locked.listing_4_2 import listing_4_2
from bench.locked.nearest_neighbours import nearest_neighbours
from bench.locked.sorted_locks import under_sorted_locks
from bench.locked.top_k import top_k
from bench.locked.updates import PARTS, updates

__all__ = ["PARTS", "listing_4_2", "nearest_neighbours", "top_k", "under_sorted_locks", "updates"]
