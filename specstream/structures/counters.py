"""Counting events, and naming them, without making every two of them conflict (Brito 2010, 4.4.2).

A counter that every event increments is the one word that all of them read and write. Which of
these fits depends on what the operator does with the number:

| needed | take | conflicts |
| --- | --- | --- |
| nothing, inside the operator: the state has it | :func:`~specstream.structures.add` | none |
| a name for the event | :func:`unique_id` | none: no state is used |
| about how many there were | :func:`approximate_count` | once in ``within``: who runs then |
| exactly how many there were | :func:`increment` | none where the prediction is right |

All of them give the answer of the sequential run. The dissertation's unique identifier is a counter
outside of the state that each run of an event increments, also one that is dropped later, and its
approximate counter is one that is decremented again. Both would depend on which runs were dropped:
two runs over the same input, or a replay after a crash, would give one event two identifiers. So
here an identifier follows from the event's order key, and how far the approximate counter lags
behind follows from it as well.
"""

from __future__ import annotations

from typing import Any

from specstream.declarations.state_layout import array
from specstream.declarations.updates import check_update, update
from specstream.structures.commutative import add

__all__ = ["approximate_count", "approximate_counter", "increment", "unique_id"]


def unique_id(event: Any, index: Any) -> Any:
    """Inside an operator: an identifier that no other event gets, nor another index of this one.

    It is a function of the event's source and sequence number, so a retry, a replay and the
    sequential run give the same. Of one source, later events have greater identifiers, and of one
    event greater indices; with one source they rise from event to event.

    Args:
        event: the running event.
        index: which of its identifiers, 0 to 4095.

    Raises:
        ValueError: the index is outside of its range; the source is not one of the numbers 0 to
            4095, as those that have names are not (emit ``event.source`` and ``event.sequence``
            then: together they are unique); or the sequence number is beyond 2**39 - 1.

    >>> import specstream as ss
    >>> from specstream.structures import unique_id
    >>> class Nothing(ss.State):
    ...     unused = ss.scalar(int)
    >>> @ss.operator(state=Nothing, event={"x": int}, emits={"id": int, "x": int})
    ... def name(state, event, emit):
    ...     emit(unique_id(event, 0), event.x)
    >>> with ss.Engine(name, threads=2) as engine:
    ...     engine.process({"x": [7, 7, 7]})["id"].to_pylist()
    [0, 16777216, 33554432]
    """
    if index < 0 or index >= 4096:
        raise ValueError("the index of an identifier is 0 to 4095")
    if event.source < 0 or event.source >= 4096 or event.sequence >= 549755813888:
        raise ValueError("identifiers are for sources 0 to 4095, and 2**39 events of each")
    return (event.sequence * 4096 + event.source) * 4096 + index


@update
def increment(container: Any, key: Any) -> Any:
    """``container[key] += 1``, and the sum; with the name of a scalar field, of ``state.name``.

    While it speculates, an event does not read the element but predicts what it will be, from what
    earlier events have done and are expected to do. A wrong prediction makes it run again. So
    events that all increment one counter and use the result hardly ever conflict. Nor do those of
    which some increment it, as long as events have come to their increments by the time at which
    later ones do: what they have done by then is known, and the rest is expected in the mean. So
    where most increment it, each event that does not makes predictions wrong while it runs.

    An engine predicts the first four elements that its operator increments. Further ones are read
    like any other element. Where events come by ``submit``, one that comes late, between others,
    makes the predictions of those behind it wrong that have run already.

    Args:
        container: an array of the state or a view of one, or the state itself.
        key: an index of one element, or the name of a scalar field, written out. The element is
            declared ``int``.

    Returns:
        The element after the increment.

    Raises:
        IndexError: the index is out of bounds.
        TypeError: the element is not declared ``int``; compiled operators are refused for that.

    >>> import specstream as ss
    >>> from specstream.structures import increment
    >>> class Seen(ss.State):
    ...     events = ss.scalar(int)
    >>> @ss.operator(state=Seen, event={"x": int}, emits={"nth": int})
    ... def every_third(state, event, emit):
    ...     nth = increment(state, "events")
    ...     if nth % 3 == 0:
    ...         emit(nth)
    >>> with ss.Engine(every_third, threads=2, horizon=8, chunk=1) as engine:
    ...     engine.process({"x": [0] * 10})["nth"].to_pylist()
    [3, 6, 9]
    """
    check_update("increment", container, key)
    if isinstance(key, str):
        value = getattr(container, key) + 1
        setattr(container, key, value)
    else:
        value = container[key] + 1
        container[key] = value
    return value


def approximate_counter() -> Any:
    """A field for :func:`approximate_count`: element 0 is the exact count.

    >>> import specstream as ss
    >>> class Seen(ss.State):
    ...     events = ss.structures.approximate_counter()
    >>> Seen.layout().words("state")
    2
    """
    return array(int, 2)


def approximate_count(counter: Any, event: Any, within: Any) -> Any:
    """Inside an operator: counts the event, and gives about how many were counted.

    What it gives is the count at the last event whose sequence number is a multiple of ``within``:
    it never falls, is never too large, and lags by ``within`` counted events at most where there is
    one source. Only those events read the counter. What they store all others read, so that those
    which have run ahead of one run again.

    Args:
        counter: a field declared as :func:`approximate_counter`.
        event: the running event.
        within: how far it may lag, at least 1, which is an exact counter. Where it is not many
            times the horizon, most events conflict.

    >>> import specstream as ss
    >>> from specstream.structures import approximate_count, approximate_counter
    >>> class Seen(ss.State):
    ...     events = approximate_counter()
    >>> @ss.operator(state=Seen, event={"x": int}, emits={"about": int})
    ... def count(state, event, emit):
    ...     emit(approximate_count(state.events, event, 4))
    >>> with ss.Engine(count, threads=2) as engine:
    ...     engine.process({"x": [0] * 10})["about"].to_pylist()
    ...     int(engine.state.events[0])
    [1, 1, 1, 1, 5, 5, 5, 5, 9, 9]
    10
    """
    add(counter, 0, 1)
    if event.sequence % within == 0:
        counter[1] = counter[0]
    return counter[1]
