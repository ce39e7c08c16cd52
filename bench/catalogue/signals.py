"""Pictures of the operators over series of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from bench.catalogue.runs import (
    CAME,
    LOOKS,
    ONE,
    THREE,
    TWO,
    dots,
    lines,
    of_key,
    panel,
    ran,
    steps,
)
from specstream.figures.style import in_style, legend
from specstream.operators import signals

__all__ = ["adwin", "bollinger_bands", "crossing", "cusum", "exponential_average", "moving_average"]


def _walk(count: int, seed: int) -> Any:
    """Prices: a random walk that is drawn back to 100."""
    rng = np.random.default_rng(seed)
    price, found = 100.0, []
    for step in rng.normal(0.0, 1.0, count):
        price += step + 0.02 * (100.0 - price)
        found.append(price)
    return np.array(found)


@in_style
def moving_average() -> Figure:
    """300 values, and the means of the last 10 and of the last 50 of them."""
    values = _walk(300, 7)
    figure, axes = panel("event", "value")
    lines(axes, range(300), values, "what came", CAME)
    for n, look in ((10, TWO), (50, ONE)):
        found = ran(signals.moving_average(n=n), of_key(values))
        lines(axes, found["sequence"], found["mean"], f"n={n}", look)
    legend(figure, ["what came", "n=10", "n=50"], LOOKS)
    return figure


@in_style
def exponential_average() -> Figure:
    """A level that jumps, and means that forget half of a value in 5 and in 25 events."""
    values = steps([(0.0, 100), (5.0, 100), (2.0, 100)], 1.0, 3)
    figure, axes = panel("event", "value")
    lines(axes, range(300), values, "what came", CAME)
    for half, look in ((5, TWO), (25, ONE)):
        found = ran(signals.exponential_average(half_life=half), of_key(values))
        lines(axes, found["sequence"], found["mean"], f"half_life={half}", look)
    legend(figure, ["what came", "half_life=5", "half_life=25"], LOOKS)
    return figure


@in_style
def bollinger_bands() -> Figure:
    """The mean of the last 20 values, two standard deviations around it, and the values outside."""
    values = _walk(200, 11)
    found = ran(signals.bollinger_bands(n=20), of_key(values))
    at, side = found["sequence"], found["side"]
    figure, axes = panel("event", "value")
    axes.fill_between(at, found["lower"], found["upper"], color=ONE.colour, alpha=0.15, linewidth=0)
    lines(axes, range(200), values, "what came", CAME)
    lines(axes, at, found["mean"], "mean", ONE)
    for sign, name, look, marker in (
        (1, "side = 1", THREE, "^"),
        (-1, "side = -1", TWO, "v"),
    ):
        outside = at[side == sign]
        dots(axes, outside, values[outside], name, look, marker)
    legend(figure, ["what came", "mean", "side = 1", "side = -1"], LOOKS)
    return figure


@in_style
def crossing() -> Figure:
    """Where the mean of the last 10 values gets above that of the last 40, or below it."""
    values = _walk(400, 5)
    found = ran(signals.crossing(short=10, long=40), of_key(values))
    figure, axes = panel("event", "value")
    lines(axes, range(400), values, "what came", CAME)
    for n, name, look in ((10, "last 10", ONE), (40, "last 40", THREE)):
        means = ran(signals.moving_average(n=n), of_key(values))
        lines(axes, means["sequence"], means["mean"], name, look)
    for up, name, marker in ((True, "up", "^"), (False, "down", "v")):
        which = found["up"] == up
        dots(axes, found["sequence"][which], found["long"][which], name, TWO, marker)
    legend(figure, ["what came", "last 10", "last 40", "up", "down"], LOOKS)
    return figure


@in_style
def cusum() -> Figure:
    """Alarms, each at the right end of a line from the event since which the mean has shifted."""
    values = steps([(0.0, 100), (1.5, 60), (0.0, 80), (-1.0, 60)], 1.0, 4)
    found = ran(signals.cusum(threshold=8.0, drift=0.5, target=0.0), of_key(values))
    figure, axes = panel("event", "value")
    lines(axes, range(300), values, "what came", CAME)
    height = {True: values.max() + 0.8, False: values.min() - 0.8}
    for up, since, at in zip(found["up"], found["since"], found["sequence"], strict=True):
        look = THREE if up else TWO
        axes.plot([since, at], [height[up]] * 2, color=look.colour, linewidth=1.6)
    for up, name, look, marker in ((True, "up", THREE, "^"), (False, "down", TWO, "v")):
        at = found["sequence"][found["up"] == up]
        dots(axes, at, [height[up]] * len(at), f"alarm: {name}", look, marker)
    legend(figure, ["what came", "alarm: up", "alarm: down"], LOOKS)
    return figure


@in_style
def adwin() -> Figure:
    """The window that is left when values were dropped from it, at the height of its mean."""
    values = np.clip(steps([(0.3, 150), (0.7, 150), (0.45, 150)], 0.1, 2), 0.0, 1.0)
    found = ran(signals.adwin(), of_key(values))
    figure, axes = panel("event", "value")
    lines(axes, range(450), values, "what came", CAME)
    ends = found["sequence"]
    for end, after, width in zip(ends, found["after"], found["width"], strict=True):
        axes.plot([end - width + 1, end], [after] * 2, color=ONE.colour, linewidth=1.0)
    dots(axes, ends, found["after"], "values were dropped", ONE)
    legend(figure, ["what came", "values were dropped"], LOOKS)
    return figure
