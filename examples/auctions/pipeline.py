"""The pipeline: for how long the open auctions have been open, on average, after each day.

After Hallé, *When RV meets CEP* (2016), section 6.3 and figure 4.
"""

# Operators carry no types.
# mypy: allow-untyped-defs, allow-untyped-calls

import specstream as ss
from specstream.verbs import ANY, OTHERWISE

__all__ = ["BIDS", "DAYS", "auction", "auctions"]

NUMBER = ss.nullable(int)
BIDS = {"day": int, "kind": str, "item": ss.nullable(str)}
BIDS |= {"least": NUMBER, "period": NUMBER, "amount": NUMBER}
DAYS = {"day": int, "open": int, "average": float}


class Auction(ss.Record):
    least: int = 0  # it is not sold for less
    period: int = 0  # days that it lasts
    days: int = 0  # that it has been open
    bid: int = 0  # the last one
    day: int = 0  # of the latest event, as is its kind
    kind: str = ""


def note(a, e):
    a.day, a.kind = e.day, e.kind


def begin(a, e):
    a.day, a.kind, a.least, a.period = e.day, e.kind, e.least, e.period


def raise_bid(a, e):
    a.day, a.kind, a.bid = e.day, e.kind, e.amount


def next_day(a, e):
    a.day, a.kind, a.days = e.day, e.kind, a.days + 1


def told(state):
    return lambda a: (state, a.day, a.kind, a.days)


auction = ss.verbs.machine(
    Auction,
    "new",
    [
        ("new", lambda a, e: e.kind == "create", "open", begin),
        ("open", lambda a, e: e.kind == "bid" and e.amount > a.bid, "open", raise_bid),
        ("open", lambda a, e: e.kind == "sold" and a.bid >= a.least, "sold", note),
        ("open", lambda a, e: e.kind == "day" and a.days + 1 < a.period, "open", next_day),
        ("open", lambda a, e: e.kind == "day", "over", note),
        ("sold", lambda a, e: e.kind == "day", "past"),
        ("over", lambda a, e: e.kind == "day", "past"),
        ("past", lambda a, e: e.kind == "day", "past"),
        (ANY, OTHERWISE, "wrong", note),
    ],
    event=BIDS,
    output={state: told(state) for state in ("open", "sold", "over", "wrong")},
    emits={"state": str, "day": int, "kind": str, "days": int},
    name="auction",
)


class Open(ss.Record):
    count: int = 0
    days: int = 0


def add(open, a):
    open.count, open.days = open.count + 1, open.days + a.days


def remove(open, a):
    open.count, open.days = open.count - 1, open.days - a.days


def average(open):
    return open.count, open.days / max(open.count, 1)


def is_closed(a):
    return a.state != "open"


def auctions() -> ss.Pipeline:
    """The pipeline, new; its sinks are ``days`` and ``wrong``."""
    p = ss.Pipeline("auctions")
    bids = p.source("bids", BIDS)
    items = bids.by("item", to_all=lambda e: e.kind == "day").add(auction, name="items")
    # An auction that begins, or a bid, changes no average before the day ends.
    changes = items.filter(lambda a: a.state != "open" or a.kind == "day", name="changes")
    open = changes.across(
        Open, add, remove, average, leave=is_closed, name="open", open=int, average=float
    )
    # After each change how it stands then: after the last one of a day, all have had that day.
    each = changes.by().zip(open)
    after = each.map(lambda a, o: (a.day, o.open, o.average), name="after", emits=DAYS)
    ended = after.zip(after.skip(1)).filter(lambda now, next: now.day != next.day, name="ended")
    p.sink("days", ended.merge(after.last(), name="days"))
    # An item that was wrong once stays so.
    wrong = changes.filter(lambda a: a.state == "wrong", name="is_wrong")
    p.sink("wrong", wrong.take(1, name="wrong"))
    return p
