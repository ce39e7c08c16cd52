"""Commutative updates: adding to an element of the state, or taking a minimum or maximum.

An operator that only adds to a word need not know what is in it. ``state.total += x`` reads it
nonetheless, so that of two events that run at once the later one has to run again. An update given
by one of these functions is logged as it is, and applied at the commit: one after the other, in the
order of the events, as the sequential run does it, float sums in every bit. Events that only update
a word this way never conflict; an event that reads it as well does, like any other reader.

The functions are plain Python. They work on whatever has elements or attributes.
"""

from __future__ import annotations

from typing import Any

from specstream.declarations.updates import check_update, update

__all__ = ["add", "maximum", "minimum"]


@update
def add(container: Any, key: Any, value: Any) -> None:
    """``container[key] += value``; with the name of a scalar field, ``state.name += value``.

    Args:
        container: an array of the state or a view of one, or the state itself.
        key: an index of one element, or the name of a scalar field, written out.
        value: an int, float or uint64, as it could be stored there. For the narrow integer types
            it is an int64 of any size.

    Raises:
        IndexError: the index is out of bounds.
        OverflowError: the element is of a narrow integer type that does not hold the sum.

    >>> import specstream as ss
    >>> from specstream.structures import add, maximum, minimum
    >>> class Trades(ss.State):
    ...     volume = ss.array(float, 10)
    ...     count = ss.scalar(int)
    ...     highest = ss.scalar(float, fill=float("-inf"))
    ...     lowest = ss.scalar(float, fill=float("inf"))
    >>> @ss.operator(state=Trades, event={"stock": int, "price": float}, emits={})
    ... def trades(state, event, emit):
    ...     add(state.volume, event.stock, event.price)
    ...     add(state, "count", 1)
    ...     maximum(state, "highest", event.price)
    ...     minimum(state, "lowest", event.price)
    >>> with ss.Engine(trades, threads=2, horizon=8, chunk=1) as engine:
    ...     _ = engine.process({"stock": [1, 2, 1, 1], "price": [9.5, 7.0, 8.5, 9.0]})
    ...     engine.state.volume[:3].tolist(), engine.state.count, engine.state.lowest
    ([0.0, 27.0, 7.0], 4, 7.0)

    On anything else they do the same:

    >>> prices = [1.5, 2.0]
    >>> add(prices, 0, 1)
    >>> prices
    [2.5, 2.0]
    """
    check_update("add", container, key)
    own = _get(container, key)
    _set(container, key, own + _like(own, value))


@update
def minimum(container: Any, key: Any, value: Any) -> None:
    """``container[key] = min(container[key], value)``; arguments and errors as of :func:`add`.

    Of equal values, and where one of the two is NaN, what is there stays, as with Python's ``min``.

    >>> prices = [1.5, 2.0]
    >>> minimum(prices, 1, 0.5)
    >>> prices
    [1.5, 0.5]
    """
    check_update("minimum", container, key)
    own = _get(container, key)
    given = _like(own, value)
    _set(container, key, given if given < own else own)


@update
def maximum(container: Any, key: Any, value: Any) -> None:
    """``container[key] = max(container[key], value)``; arguments and errors as of :func:`add`.

    >>> prices = [1.5, 2.0]
    >>> maximum(prices, 0, 3)
    >>> prices
    [3.0, 2.0]
    """
    check_update("maximum", container, key)
    own = _get(container, key)
    given = _like(own, value)
    _set(container, key, given if given > own else own)


def _like(own: Any, value: Any) -> Any:
    """An int that meets a float becomes one first: two ints that differ may be one float."""
    return float(value) if isinstance(own, float) else value


def _get(container: Any, key: Any) -> Any:
    return getattr(container, key) if isinstance(key, str) else container[key]


def _set(container: Any, key: Any, value: Any) -> None:
    if isinstance(key, str):
        setattr(container, key, value)
    else:
        container[key] = value
