"""Ready operators, each a plain function over a shared state.

=============================== =================================================================
:func:`top_k`                   the most frequent items of a stream
:func:`nearest_neighbours`      the nearest earlier points of each point
=============================== =================================================================
"""

from specstream.operators.nearest_neighbours import nearest_neighbours
from specstream.operators.top_k import top_k

__all__ = ["nearest_neighbours", "top_k"]
