"""The operators of the benchmarks as one would write them with a lock.

Each is compiled the same way and run by the same threads, with
``Engine(..., execution="locked", locks=1)``. There is one global lock, held around what touches the
state and around nothing else: hashing, busy work, square roots and emitting are outside. The price
is the order of the events: what such a run emits depends on who got the lock first.
"""

from bench.locked.listing_4_2 import listing_4_2
from bench.locked.nearest_neighbours import nearest_neighbours
from bench.locked.top_k import top_k
from bench.locked.updates import updates

__all__ = ["listing_4_2", "nearest_neighbours", "top_k", "updates"]
