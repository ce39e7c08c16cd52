"""A limit order book, matched by price and then by time.

Each side has a priority queue of its resting orders: the best price first, of equal prices the one
that came first. An order that comes in is matched with the best of the other side as long as their
prices cross, at the price of the order that rests; what is left of a limit order rests.

To cancel an order is to forget it: its entry stays in the queue and is dropped when it comes to
the front (lazy deletion). Most orders of a market are cancelled, many of them far from the best
price, whose entries do not get there; so a queue of which more than half is forgotten is made anew
of the rest. On average that costs each cancelled order as much as one insertion.
"""

# What an operator calls carries no types, as it does not itself.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import specstream as ss
from specstream.declarations.options import integer, refuses_unknown

__all__ = ["order_book"]

_FEW = 16  # a queue of so many entries is never made anew


@refuses_unknown
def order_book(digits: int = 2) -> ss.Operator:
    """The trades of one book, by price-time priority.

    Events have the columns ``action``, ``order``, ``buys``, ``price`` and ``quantity``:

    - ``"limit"``: an order (its number, an int that no resting order has) that buys or sells at
      ``price`` or better; what is not matched rests.
    - ``"market"``: the same at any price; what is not matched is cancelled.
    - ``"cancel"``: takes away what is left of a resting order.

    A price is a decimal (or integer) of at most ``digits`` digits after the point. What an action
    does not need may be null. Rows emitted are ``(what, order, against, price, quantity)``:

    - ``"trade"``: ``order``, the one that came in, trades with ``against``, which rested, at the
      price of that.
    - ``"cancelled"``: what was left, of a resting order or a market order.
    - ``"rejected"``: a cancel came too late, or for no order at all; the quantity is 0.

    Args:
        digits: of a price after the point, 0 to 18.

    State: ``orders``, a dict of the resting orders by number: whether it ``buys``, ``price`` in
    units of the last digit, quantity ``left``, and ``entry``, its number among all that ever
    rested. ``bids`` and ``asks``, priority queues of (price, entry, order), prices of bids as
    -1 - price, so that the best is first. ``rested``, how many orders ever did; ``bidding`` and
    ``asking``, how many do.

    This is one book, of one symbol. Every order looks at the best of the other side and changes its
    own, so that its events are mostly a chain; books do run beside each other, each in an engine.

    The operator raises ValueError for another action, a quantity that is not positive, a limit
    order without a price, an order without ``buys``, and a new order with the number of a resting
    one.

    Raises:
        ConfigurationError: an argument has a value that it cannot have.

    >>> import specstream as ss
    >>> from specstream.operators.business import order_book
    >>> orders = [
    ...     {"action": "limit", "order": 1, "buys": False, "price": 11, "quantity": 5},
    ...     {"action": "limit", "order": 2, "buys": False, "price": 10, "quantity": 5},
    ...     {"action": "limit", "order": 3, "buys": True, "price": 11, "quantity": 7},
    ...     {"action": "cancel", "order": 1, "buys": None, "price": None, "quantity": None},
    ...     {"action": "market", "order": 4, "buys": True, "price": None, "quantity": 1},
    ... ]
    >>> with ss.Engine(order_book(), threads=2) as engine:
    ...     for row in engine.process(orders).to_pylist():
    ...         print(*row.values())
    trade 3 2 10.00 5
    trade 3 1 11.00 2
    cancelled 1 None None 3
    cancelled 4 None None 1
    """
    # One piece: state and operator are read together, and close over the same numbers.
    digits = integer("order_book: digits", digits, 0, 18)
    money = ss.decimal(digits)

    class Order(ss.Record):
        buys: bool
        price: int
        left: int
        entry: int

    class OrderBookState(ss.State):
        orders = ss.dict(int, Order)
        bids = ss.priority_queue((int, int, int))
        asks = ss.priority_queue((int, int, int))
        rested = ss.scalar(int)
        bidding = ss.scalar(int)
        asking = ss.scalar(int)

    def rests(state, entry):
        """Whether the order of an entry is still there; its number may be that of a later one."""
        order = state.orders.get(entry[2])
        return order is not None and order.entry == entry[1]

    def tidy(state, queue, resting):
        """The first entry of a queue rests, and not much less than half of all."""
        while len(queue) > 0 and not rests(state, queue.peek()):
            queue.pop()
        if len(queue) > 2 * resting + _FEW:
            entries = [entry for entry in queue if rests(state, entry)]
            queue.clear()
            for entry in entries:
                queue.push(entry)

    def forget(state, number, buys):
        """An order rests no longer."""
        del state.orders[number]
        if buys:
            state.bidding -= 1
            tidy(state, state.bids, state.bidding)
        else:
            state.asking -= 1
            tidy(state, state.asks, state.asking)

    @ss.operator(
        state=OrderBookState,
        event={
            "action": str,
            "order": int,
            "buys": ss.nullable(bool),
            "price": ss.nullable(money),
            "quantity": ss.nullable(int),
        },
        emits={
            "what": str,
            "order": int,
            "against": ss.nullable(int),
            "price": ss.nullable(money),
            "quantity": int,
        },
        name="order_book",
    )
    def process(state, event, emit):
        if event.action == "cancel":
            resting = state.orders.get(event.order)
            if resting is None:
                emit("rejected", event.order, None, None, 0)
            else:
                emit("cancelled", event.order, None, None, resting.left)
                forget(state, event.order, resting.buys)
            return

        is_limit = event.action == "limit"
        if not is_limit and event.action != "market":
            raise ValueError("order_book: the action is none of limit, market, cancel")
        if event.quantity is None or event.quantity <= 0:
            raise ValueError(f"order_book: order {event.order} has no positive quantity")
        if event.buys is None or (is_limit and event.price is None):
            raise ValueError(f"order_book: order {event.order} lacks its side or its price")
        if event.order in state.orders:
            raise ValueError(f"order_book: there is a resting order {event.order}")

        left = event.quantity
        while left > 0 and (state.asking if event.buys else state.bidding) > 0:
            _, _, number = state.asks.peek() if event.buys else state.bids.peek()
            other = state.orders[number]
            price = other.price
            if is_limit and (price > event.price if event.buys else price < event.price):
                break
            traded = min(left, other.left)
            emit("trade", event.order, number, price, traded)
            left -= traded
            other.left -= traded
            if other.left == 0:
                forget(state, number, not event.buys)

        if left > 0 and is_limit:
            state.rested += 1
            state.orders[event.order] = Order(event.buys, event.price, left, state.rested)
            if event.buys:
                state.bids.push((~event.price, state.rested, event.order))
                state.bidding += 1
            else:
                state.asks.push((event.price, state.rested, event.order))
                state.asking += 1
        elif left > 0:
            emit("cancelled", event.order, None, None, left)

    return process
