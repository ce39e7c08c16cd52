"""A random sample of the values so far, each with the same chance of being in it.

Algorithm R (Vitter 1985): the first values fill the sample; the n-th one after that takes a random
place among n, which is in the sample with a chance of its size over n. Random numbers come from the
event, so that a retry draws the same; the number of values so far is a predicted counter, so that
two events conflict only where they change the same place.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from specstream.structures.counters import increment

__all__ = ["offer"]


def offer(sample: Any, offered: Any, event: Any, draw: Any, value: Any) -> Any:
    """Inside an operator: offers a value to a sample.

    Args:
        sample: a field or row of any type; its length is the size of the sample.
        offered: a field ``ss.array(int, 1)``: how many values were offered.
        event: the running event.
        draw: which of the event's random numbers decides: ``event.random_bits(draw)``.
        value: what is offered.

    Returns:
        The place that the value has taken, -1 where it has taken none.

    >>> import specstream as ss
    >>> from specstream.structures import offer
    >>> class Sample(ss.State):
    ...     prices = ss.array(float, 5)
    ...     offered = ss.array(int, 1)
    >>> @ss.operator(state=Sample, event={"price": float}, emits={})
    ... def sampled(state, event, emit):
    ...     offer(state.prices, state.offered, event, 0, event.price)
    >>> with ss.Engine(sampled, threads=2, seed=1) as engine:
    ...     _ = engine.process({"price": [float(i) for i in range(1000)]})
    ...     int(engine.state.offered[0]), len(set(engine.state.prices.tolist()))
    (1000, 5)
    """
    count = increment(offered, 0)
    place = count - 1
    if count > len(sample):
        place = np.int64(event.random_bits(draw) % np.uint64(count))
    if place >= len(sample):
        return -1
    sample[place] = value
    return place
