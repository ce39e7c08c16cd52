"""Durations of an operator that is no benchmark, recorded as ``specstream tune`` does."""

from __future__ import annotations

import functools

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from specstream.operators.business import order_book
from specstream.tuning.forecast.recording import record

__all__ = ["order_book_times"]

ORDERS, BEFORE = 3000, 1000


def order_book_times(mean: int, count: int) -> npt.NDArray[np.int64]:
    """Nanoseconds of the orders of a book, one after the other, as parts of such a mean.

    An order that is matched with many takes many times as long as one that rests.
    """
    taken = _recorded()
    again = np.resize(taken, count)
    scaled: npt.NDArray[np.int64] = np.rint(again * (mean / again.mean())).astype(np.int64)
    return scaled


@functools.cache
def _recorded() -> npt.NDArray[np.float64]:
    rng = np.random.default_rng(8)
    middle = 1000.0 + np.cumsum(rng.normal(0.0, 0.4, ORDERS))
    buys = rng.random(ORDERS) < 0.5
    away = np.where(buys, -1.0, 1.0) * rng.normal(1.5, 1.5, ORDERS)
    orders = pa.table(
        {
            "action": pa.array(["limit"] * ORDERS),
            "order": np.arange(ORDERS),
            "buys": buys,
            "price": np.round(middle + away).astype(np.int64),
            "quantity": rng.geometric(0.1, ORDERS),
        }
    )
    order = {"order_by": "order", "source": None}
    found = record(order_book(), orders.slice(0, BEFORE), orders.slice(BEFORE), order)
    return np.array([event.plain for event in found.events])
