"""Stock that is reserved before it is sold; a reservation that nobody confirms expires.

What is received is available. A reservation takes its quantity out of that at once, so that nothing
is sold twice; it is confirmed, or cancelled, or its timer fires, which gives the quantity back. At
any time what was received is what is available, held and confirmed.
"""

# What an operator calls carries no types, as it does not itself.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import specstream as ss
from specstream.declarations.options import integer, refused, refuses_unknown

__all__ = ["inventory"]

_MOST = 2**63 - 1


@refuses_unknown
def inventory(hold: int, item: type = str, time_unit: str | None = None) -> ss.Operator:
    """Stock by item, with reservations that are held for ``hold`` units of time.

    Events have the columns ``action``, ``item``, ``reservation`` and ``quantity``; they are ordered
    by a column of times or integers (``order_by=``):

    - ``"receive"``: ``quantity`` more of ``item``.
    - ``"reserve"``: holds ``quantity`` of ``item`` under the number ``reservation``, if so many are
      available; all of them or none.
    - ``"confirm"``, ``"cancel"``: ends ``reservation``, for good or giving its quantity back.

    What an action does not need may be null. Each event emits one row ``(what, reservation, item,
    quantity, available)``, where ``available`` is what there is of the item afterwards and ``what``
    is one of "received", "reserved", "refused", "confirmed", "cancelled" and "unknown": there is no
    such reservation, or no longer. A reservation that expires emits a row as well, "expired". It
    does so before the first event ``hold`` units after it was made, or later.

    Args:
        hold: units of ``event.timestamp``, 1 to 2**62: 15 minutes of timestamps in microseconds are
            ``900_000_000``.
        item: type of the column, ``int`` or ``str``.
        time_unit: of ``hold``, as of :func:`specstream.operator`: an order column of times
            is cast to it.

    State: ``available``, a dict by item; ``held``, a dict from reservations to (item, quantity);
    and ``timers`` by reservation. Events of different items do not conflict. Timers fire one after
    the other, those of confirmed and cancelled reservations never.

    Events count in the order in which they come. One may be older than one before it, as in a later
    table: a reservation ends ``hold`` after its own time, before the next event if that has passed.

    The operator raises ValueError for another action, a quantity that is not positive, what an
    action needs and is null, and a reservation whose number is in use; and OverflowError where what
    is available of an item would not fit into 64 bits. What is held is not counted: where more than
    2**62 of an item come, a reservation may find no room for what it gives back, and its timer
    raises, and leaves it held.

    Raises:
        ConfigurationError: an argument has a value that it cannot have.

    >>> import specstream as ss
    >>> from specstream.operators.business import inventory
    >>> events = {
    ...     "action": ["receive", "reserve", "reserve", "confirm", "reserve", "confirm"],
    ...     "item": ["tea", "tea", "tea", None, "tea", None],
    ...     "reservation": [None, 1, 2, 1, 3, 2],
    ...     "quantity": [5, 2, 3, None, 1, None],
    ...     "time": [0, 10, 20, 30, 40, 80],
    ... }
    >>> with ss.Engine(inventory(hold=60), threads=2) as engine:
    ...     for row in engine.process(events, order_by="time").to_pylist():
    ...         print(*row.values())
    received None tea 5 5
    reserved 1 tea 2 3
    reserved 2 tea 3 0
    confirmed 1 tea 2 0
    refused 3 tea 1 0
    expired 2 tea 3 3
    unknown 2 None None None
    """
    # One piece: state and operator are read together, and close over the same numbers.
    hold = integer("inventory: hold", hold, 1, 2**62)
    if item is not int and item is not str:
        raise refused("inventory: item", item, "int or str")

    class InventoryState(ss.State):
        available = ss.dict(item, int)
        held = ss.dict(int, (item, int))
        timers = ss.timers(int)

    def put(state, item, quantity):
        """So many more of an item; returns how many there are."""
        available = state.available.get(item, 0)
        if available > _MOST - quantity:
            raise OverflowError("inventory: what there is of an item leaves 64 bits")
        state.available[item] = available + quantity
        return available + quantity

    def expire(state, timer, emit):
        item, quantity = state.held.pop(timer.key)
        emit("expired", timer.key, item, quantity, put(state, item, quantity))

    @ss.operator(
        state=InventoryState,
        event={
            "action": str,
            "item": ss.nullable(item),
            "reservation": ss.nullable(int),
            "quantity": ss.nullable(int),
        },
        emits={
            "what": str,
            "reservation": ss.nullable(int),
            "item": ss.nullable(item),
            "quantity": ss.nullable(int),
            "available": ss.nullable(int),
        },
        on_timer=expire,
        name="inventory",
        time_unit=time_unit,
    )
    def process(state, event, emit):
        if event.action not in ("receive", "reserve", "confirm", "cancel"):
            raise ValueError("inventory: the action is none of receive, reserve, confirm, cancel")
        if event.action != "receive" and event.reservation is None:
            raise ValueError("inventory: no reservation is given")

        if event.action in ("confirm", "cancel"):
            number = event.reservation
            if number not in state.held:
                emit("unknown", number)
                return
            item, quantity = state.held.pop(number)
            state.timers.cancel(number)
            if event.action == "confirm":
                emit("confirmed", number, item, quantity, state.available[item])
            else:
                emit("cancelled", number, item, quantity, put(state, item, quantity))
            return

        item, quantity = event.item, event.quantity
        if item is None or quantity is None or quantity <= 0:
            raise ValueError("inventory: an item and a positive quantity are needed")
        if event.action == "receive":
            emit("received", None, item, quantity, put(state, item, quantity))
            return
        number = event.reservation
        if number in state.held:
            raise ValueError(f"inventory: reservation {number} is in use")
        available = state.available.get(item, 0)
        if quantity > available:
            emit("refused", number, item, quantity, available)
            return
        state.available[item] = available - quantity
        state.held[number] = item, quantity
        state.timers.set(number, event.timestamp + hold)
        emit("reserved", number, item, quantity, available - quantity)

    return process
