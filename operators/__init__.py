"""Ready operators, each a plain function over a state, by what they are for.

=================================== ============================================================
:mod:`~specstream.operators.basic`  filters, joins, running aggregates
``business``                        accounts, limits, orders, prices
``learning``                        models that predict each event, and mostly learn from it then
``signals``                         means, bands, alarms and changes of a series
``synopses``                        what a long stream comes to, in little memory
:func:`top_k`                       the most frequent items of a stream
:func:`nearest_neighbours`          the nearest earlier points of each point
=================================== ============================================================
"""

from specstream.operators import basic, business, learning, signals, synopses
from specstream.operators.nearest_neighbours import nearest_neighbours
from specstream.operators.top_k import top_k

__all__ = [
    "basic",
    "business",
    "learning",
    "nearest_neighbours",
    "signals",
    "synopses",
    "top_k",
]
