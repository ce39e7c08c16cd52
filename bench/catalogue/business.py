"""Pictures of orders, limits, stock, rankings and prices."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from bench.catalogue.runs import CAME, LOOKS, ONE, THREE, TWO, dots, lines, panel, ran
from specstream.figures.palette import SPARE
from specstream.figures.style import from_zero, in_style, legend
from specstream.operators import business

__all__ = ["inventory", "leaderboard", "option_price", "order_book", "token_bucket", "velocity"]


@in_style
def order_book() -> Figure:
    """The limits of 300 orders to buy and to sell, and the trades that come of them."""
    rng = np.random.default_rng(8)
    middle = 100.0 + np.cumsum(rng.normal(0.0, 0.4, 300))
    buys = rng.random(300) < 0.5
    price = np.round(middle + np.where(buys, -1.0, 1.0) * rng.normal(1.5, 1.5, 300)).astype(int)
    orders = {
        "action": ["limit"] * 300,
        "order": list(range(300)),
        "buys": buys.tolist(),
        "price": price.tolist(),
        "quantity": rng.integers(1, 10, 300).tolist(),
    }
    found = ran(business.order_book(), orders)
    figure, axes = panel("event", "price")
    at = np.arange(300)
    dots(axes, at[buys], price[buys], "to buy", replace(THREE, width=0.6), "^")
    dots(axes, at[~buys], price[~buys], "to sell", replace(TWO, width=0.6), "v")
    lines(axes, found["sequence"], found["price"].astype(float), "trades", ONE)
    legend(figure, ["to buy", "to sell", "trades"], LOOKS)
    return figure


@in_style
def leaderboard() -> Figure:
    """The places of five players, whose scores add up, over 60 games."""
    rng = np.random.default_rng(21)
    names = ["ann", "bob", "cid", "eve", "kim"]
    games = {
        "player": [str(one) for one in rng.choice(names, 60)],
        "score": rng.integers(0, 40, 60).tolist(),
    }
    found = ran(business.leaderboard(places=5, scores="sum"), games)
    board: dict[int, str] = {}
    places: dict[str, list[float]] = {name: [] for name in names}
    rows = list(zip(found["sequence"], found["place"], found["player"], strict=True))
    for event in range(60):
        board |= {int(place): str(player) for at, place, player in rows if at == event}
        held = {player: float(place) for place, player in sorted(board.items(), reverse=True)}
        for name, of in places.items():
            of.append(held.get(name, np.nan))
    figure, axes = panel("event", "place")
    for (name, of), look in zip(places.items(), SPARE, strict=True):
        known = [event for event in range(60) if of[event] == of[event]]
        lines(axes, known, [of[event] for event in known], name, replace(look, marker=""))
    axes.set_yticks(range(1, 6))
    axes.invert_yaxis()
    legend(figure, names, LOOKS)
    return figure


@in_style
def option_price() -> Figure:
    """Prices of calls at a strike of 100, with two standard errors to each side."""
    spots = np.linspace(80.0, 120.0, 21)
    count = len(spots)
    quotes = {
        "spot": spots,
        "strike": [100.0] * count,
        "rate": [0.03] * count,
        "volatility": [0.2] * count,
        "years": [0.5] * count,
    }
    figure, axes = panel("spot", "price")
    lines(axes, spots, np.maximum(spots - 100.0, 0.0), "at maturity", CAME)
    for dates, name, look, marker in ((1, "European", ONE, "o"), (12, "Asian, 12 dates", TWO, "s")):
        found = ran(business.option_price(paths=100, dates=dates), quotes, seed=1)
        price, error = found["price"], found["error"]
        axes.vlines(spots, price - 2 * error, price + 2 * error, color=look.colour, linewidth=1.4)
        dots(axes, spots, price, name, look, marker)
    legend(figure, ["at maturity", "European", "Asian, 12 dates"], LOOKS)
    return figure


@in_style
def token_bucket() -> Figure:
    """What is left in a bucket of ten tokens, one of which comes back per unit of time."""
    rng = np.random.default_rng(1)
    gaps = np.concatenate([rng.integers(1, 4, 20), rng.integers(0, 2, 30), rng.integers(1, 4, 20)])
    times = np.cumsum(gaps)
    requests = {"time": times.tolist(), "key": ["A"] * 70, "cost": rng.integers(1, 3, 70).tolist()}
    found = ran(business.token_bucket(), requests, order_by="time")
    allowed, left = found["allowed"], found["remaining"]
    figure, axes = panel("time", "tokens left")
    lines(axes, times, left, "a bucket", CAME)
    dots(axes, times[allowed], left[allowed], "allowed", ONE)
    dots(axes, times[~allowed], left[~allowed], "refused", TWO, "X")
    legend(figure, ["allowed", "refused"], LOOKS)
    return figure


@in_style
def velocity() -> Figure:
    """The payments of a card, and alarms: more than 5 of them within an hour, or more than 300."""
    rng = np.random.default_rng(6)
    times = np.sort(np.concatenate([rng.integers(0, 600, 30), rng.integers(280, 330, 8)]))
    amounts = rng.integers(5, 80, 38)
    amounts[-6] = 280
    payments = {"time": times.tolist(), "card": ["A"] * 38, "amount": amounts.tolist()}
    operator = business.velocity(window=60, most_events=5, most_amount=300)
    found = ran(operator, payments, order_by="time")
    figure, axes = panel("minute", "amount")
    axes.vlines(times, 0, amounts, color=CAME.colour, linewidth=1.6)
    dots(axes, times, amounts, "payments", CAME)
    dots(axes, found["timestamp"], found["amount"].astype(float), "alarm: sum of the hour", TWO)
    from_zero([axes])
    legend(figure, ["payments", "alarm: sum of the hour"], LOOKS)
    return figure


def _orders(count: int, seed: int) -> list[dict[str, Any]]:
    """Reservations of one item, of which some are confirmed and some are cancelled."""
    rng = np.random.default_rng(seed)
    rows: list[dict[str, Any]] = [
        {"time": 0, "action": "receive", "reservation": None, "quantity": 20}
    ]
    for number in range(count):
        time = 3 + 5 * number
        quantity = int(rng.integers(1, 6))
        rows.append(
            {"time": time, "action": "reserve", "reservation": number, "quantity": quantity}
        )
        what = ("confirm", "cancel", "")[rng.choice(3, p=(0.3, 0.3, 0.4))]
        if what:
            later = time + int(rng.integers(4, 25))
            rows.append({"time": later, "action": what, "reservation": number, "quantity": None})
    rows.append({"time": 75, "action": "receive", "reservation": None, "quantity": 15})
    return [{"item": "tea", **row} for row in sorted(rows, key=lambda row: row["time"])]


@in_style
def inventory() -> Figure:
    """What is available of an item whose reservations are held for 30 units of time."""
    found = ran(business.inventory(hold=30), _orders(28, 4), order_by="time")
    known = found["what"] != "unknown"
    times, what = found["timestamp"][known], found["what"][known]
    available = found["available"][known].astype(float)
    figure, axes = panel("time", "available")
    axes.step(times, available, where="post", color=CAME.colour, linewidth=1.0)
    marks = {
        "received": (THREE, "^"),
        "reserved": (ONE, "o"),
        "refused": (TWO, "X"),
        "expired": (SPARE[3], "D"),
    }
    for name, (look, marker) in marks.items():
        dots(axes, times[what == name], available[what == name], name, look, marker)
    legend(figure, list(marks), LOOKS)
    return figure
