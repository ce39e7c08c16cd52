"""Events of an auction site, made from a seed: a JSON object a line, in the style of CRV 2016.

- ``{"day": 3, "kind": "create", "item": "i7", "least": 50, "period": 5}``: an auction begins, which
  lasts five days; the item is not to be sold for less than 50.
- ``{"day": 3, "kind": "bid", "item": "i7", "amount": 20}``: more than the last one.
- ``{"day": 5, "kind": "sold", "item": "i7"}``: to whom has bid last; this ends the auction.
- ``{"day": 5, "kind": "day"}``: the day ends, for all auctions.
"""

from __future__ import annotations

import itertools
import json
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["FEWEST", "WRONG", "made", "write"]

FEWEST = 1_000  # events
CREATED = 0.036  # of all events, as there
SOLD = 0.013  # of the others, where the last bid is enough: about as many as there
PERIODS = (3, 5, 7, 10, 14)  # days
# What may be wrong: such an event of an item that is open, sold or over, or was never created.
WRONG = (
    ("open", "bid"),  # as high as the last one
    ("open", "create"),
    ("open", "sold"),  # for too little
    ("sold", "bid"),
    ("sold", "sold"),
    ("over", "bid"),
    ("over", "sold"),
    ("unknown", "bid"),
)

Event = dict[str, Any]


@dataclass
class Item:
    name: str
    least: int = 0
    period: int = 0
    end: int = 0
    bid: int = 0

    def event(self, kind: str, amount: int = 0) -> Event:
        """One of this item; a bid is so much more than the last one."""
        of_kind: Event = {}
        if kind == "create":
            of_kind = {"least": self.least, "period": self.period}
        elif kind == "bid":
            self.bid += amount
            of_kind = {"amount": self.bid}
        return {"kind": kind, "item": self.name, **of_kind}


class Site:
    """Items by what has become of them; those with which something was wrong have left."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.items: dict[str, list[Item]] = {"open": [], "sold": [], "over": []}
        self.names = (f"i{number}" for number in itertools.count(1))

    def taken(self, state: str) -> Item | None:
        """One of these items, which is none of them any more."""
        items = self.items.get(state)
        if not items:
            return None
        at = self.random.randrange(len(items))
        items[at], items[-1] = items[-1], items[at]
        return items.pop()

    def right(self, day: int) -> Event:
        """An event that is right."""
        chance = self.random.random()
        # More auctions begin in the middle of a week.
        is_new = chance < CREATED * (1.0 - 0.6 * math.cos(math.tau * day / 7))
        item = None if is_new else self.taken("open")
        if item is None:
            least, period = self.random.randint(10, 250), self.random.choice(PERIODS)
            item = Item(next(self.names), least, period, day + period - 1)
            self.items["open"].append(item)
            return item.event("create")
        if chance > 1.0 - SOLD and item.bid >= item.least:
            self.items["sold"].append(item)
            return item.event("sold")
        self.items["open"].append(item)
        return item.event("bid", self.random.randint(1, 20))

    def wrong(self, state: str, kind: str) -> Event:
        """An event that is wrong: a bid on nothing, if there is no such item yet."""
        item = self.taken(state)
        if item is None:
            return Item(next(self.names)).event("bid", 1)
        if (state, kind) == ("open", "sold") and item.bid >= item.least:
            kind = "create"
        return item.event(kind, amount=0 if state == "open" else 1)

    def end(self, day: int) -> Event:
        """The end of a day, which is that of some auctions."""
        items = self.items["open"]
        self.items["open"] = [item for item in items if item.end > day]
        self.items["over"] += [item for item in items if item.end == day]
        return {"kind": "day"}


def made(count: int, days: int, seed: int, violations: int) -> Iterator[tuple[Event, bool]]:
    """So many events, and of each whether it is wrong.

    Args:
        count: of all of them.
        days: so many of them end a day, the last one included.
        seed: they are made from it.
        violations: so many of them are wrong.
    """
    site = Site(seed)
    ends = [count * day // days - 1 for day in range(1, days + 1)]
    # Not on the first days, when nothing has ended.
    late = sorted(set(range(count // 3, count)) - set(ends))
    wrong = dict(zip(sorted(site.random.sample(late, violations)), itertools.cycle(WRONG)))
    day = 1
    for at in range(count):
        if at == ends[day - 1]:
            event = site.end(day)
        else:
            event = site.wrong(*wrong[at]) if at in wrong else site.right(day)
        yield {"day": day, **event}, at in wrong
        day += at == ends[day - 1]


def write(path: Path, count: int, days: int, seed: int, violations: int) -> list[Event]:
    """Writes such events into a file; returns those that are wrong."""
    wrong = []
    with path.open("w", encoding="utf-8") as file:
        for event, is_wrong in made(count, days, seed, violations):
            file.write(json.dumps(event) + "\n")
            if is_wrong:
                wrong.append(event)
    return wrong
