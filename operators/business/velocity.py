"""Velocity checks: too many payments of a card, or too much money, within a time.

Each card has a deque of its payments within the window, with a running count and sum: a payment is
put in at one end, and those that have become too old are taken out at the other. Amounts are
decimals, which are integers inside of an operator, so that what is added and later subtracted
leaves exactly nothing, which of floats is not so.

A container holds no containers: the deques are one dict, by card and number.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

import specstream as ss
from specstream.declarations.chosen_columns import named_column
from specstream.declarations.options import integer, refused, refuses_unknown

__all__ = ["velocity"]

_MOST = 2**63 - 1
_LARGEST = Decimal(_MOST)


@refuses_unknown
def velocity(
    window: int,
    most_events: int | None = None,
    most_amount: Decimal | int | None = None,
    card: type | Mapping[str, type] = str,
    digits: int = 2,
    time_unit: str | None = None,
) -> ss.Operator:
    """An alarm for each payment with which a card has more than its due within ``window``.

    Events have the columns ``card`` and ``amount``, a decimal (or integer) of at most ``digits``
    digits after the point; they are ordered by a column of times or integers (``order_by=``). The
    window of a payment at time t holds those of its card after t - ``window``, this one included.
    If they are more than ``most_events``, or their amounts more than ``most_amount``, a row
    ``(card, events, amount)`` is emitted, with what the window holds.

    Args:
        window: units of ``event.timestamp``, 1 to 2**61: an hour of timestamps in microseconds is
            ``3_600_000_000``.
        most_events: payments within the window that raise no alarm yet; None: any number.
        most_amount: sum of their amounts that raises no alarm yet; None: any sum.
        card: type of the column, ``int`` or ``str``; with another name for it ``{"account": str}``.
        digits: of an amount after the point, 0 to 18.
        time_unit: of the window, as of :func:`specstream.operator`: an order column of times
            is cast to it.

    State: ``payments``, a dict from (card, number) to (time, amount), and ``cards``, a dict of
    records: the number of the ``first`` payment within the window, the number that is ``next``, the
    ``total``, and the time ``at`` of the last. Events of different cards do not conflict. A card
    that pays nothing for a window is forgotten, and its payments go within two windows; an event
    of the card soon after that may run twice.

    The operator raises ValueError for a negative amount and for a payment before the last one of
    its card, as a later batch may have (with ``submit``, or ``watermark=`` in Spark, there is
    none; a card that is forgotten by then begins anew instead); and OverflowError where the amounts
    within a window do not fit into 64 bits.

    Raises:
        ConfigurationError: an argument has a value that it cannot have.

    >>> import specstream as ss
    >>> from specstream.operators.business import velocity
    >>> payments = {
    ...     "card": ["a", "a", "b", "a", "a"],
    ...     "amount": [10, 20, 500, 30, 40],
    ...     "time": [0, 10, 20, 30, 70],
    ... }
    >>> operator = velocity(window=60, most_events=2, most_amount=100)
    >>> with ss.Engine(operator, threads=2) as engine:
    ...     for row in engine.process(payments, order_by="time").to_pylist():
    ...         print(row["card"], row["events"], row["amount"])
    b 1 500.00
    a 3 60.00
    """
    # One piece: state and operator are read together, and close over the same numbers.
    window = integer("velocity: window", window, 1, 2**61)
    if most_events is None and most_amount is None:
        raise ss.ConfigurationError(
            "velocity: neither most_events nor most_amount is given; expected one of them or both"
        )
    named, card = named_column("velocity: card", card, "card", taken=("events", "amount"))
    digits = integer("velocity: digits", digits, 0, 18)
    events_limit = _MOST
    if most_events is not None:
        events_limit = integer("velocity: most_events", most_events, 0, _MOST, " or None")
    amount_limit = _MOST if most_amount is None else _units(most_amount, digits)

    class Card(ss.Record):
        first: int
        next: int
        total: int
        at: int

    class VelocityState(ss.State):
        payments = ss.dict((card, int), (int, int), expire_after=2 * window)
        cards = ss.dict(card, Card, expire_after=window)

    @ss.operator(
        state=VelocityState,
        event={named: card, "amount": ss.decimal(digits)},
        emits={named: card, "events": int, "amount": ss.decimal(digits)},
        name="velocity",
        time_unit=time_unit,
    )
    def process(state, event, emit):  # type: ignore[no-untyped-def]
        own = getattr(event, named)
        amount = event.amount
        if amount < 0:
            raise ValueError(f"velocity: amount={amount} units; expected at least 0")
        now = event.timestamp
        first = 0
        number = 0
        total = 0
        known = state.cards.get(own)
        if known is not None:
            if now < known.at:
                raise ValueError(
                    f"velocity: payment at {now}; the card's last was at {known.at}; sort the "
                    "events of all tables, submit() them, or take watermark= in Spark"
                )
            first, number, total = known.first, known.next, known.total
            # What leaves now was within the window of the card's last payment, which is less than
            # one window ago: so it has not expired before it is subtracted.
            while first < number:
                at, paid = state.payments[own, first]
                if now - at < window:
                    break
                total -= paid
                del state.payments[own, first]
                first += 1

        if total > _MOST - amount:
            raise OverflowError("velocity: the amounts within the window leave 64 bits")
        total += amount
        state.payments[own, number] = now, amount
        number += 1
        state.cards[own] = Card(first, number, total, now)
        if number - first > events_limit or total > amount_limit:
            emit(own, number - first, total)

    return process


def _units(amount: object, digits: int) -> int:
    """The amount in units of the last digit."""
    if isinstance(amount, Decimal | int) and not isinstance(amount, bool):
        units = Decimal(amount).scaleb(digits)
        if units.is_finite() and units == units.to_integral_value() and 0 <= units <= _MOST:
            return int(units)
    raise refused(
        "velocity: most_amount",
        amount,
        f"an int or Decimal from 0 to {_LARGEST.scaleb(-digits)} with at most {digits} digits "
        "after the point, or None",
    )
