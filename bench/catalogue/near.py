"""Pictures of the frequent and the near."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from matplotlib.figure import Figure

from bench.catalogue.runs import CAME, LOOKS, ONE, dots, lines, panel, ran
from specstream import operators
from specstream.figures.palette import SPARE
from specstream.figures.style import in_style, legend

__all__ = ["nearest_neighbours", "top_k"]


@in_style
def top_k() -> Figure:
    """Counts of the items on a list of three; which are the most frequent changes at event 400."""
    rng = np.random.default_rng(3)
    early, late = 1.0 / np.arange(1, 41) ** 1.2, 1.0 / np.roll(np.arange(1, 41), 3) ** 1.2
    items = np.concatenate(
        [rng.choice(40, 400, p=early / early.sum()), rng.choice(40, 600, p=late / late.sum())]
    )
    found = ran(operators.top_k(k=3, width=256), {"item": items})
    figure, axes = panel("event", "count")
    ordered, often = np.unique(found["item"], return_counts=True)
    most = ordered[np.argsort(-often)][:5]
    for item, look in zip(most, SPARE, strict=False):
        which = found["item"] == item
        lines(
            axes,
            found["sequence"][which],
            found["count"][which],
            f"item {item}",
            replace(look, marker=""),
        )
    legend(figure, [f"item {item}" for item in most], LOOKS)
    return figure


@in_style
def nearest_neighbours() -> Figure:
    """80 points, and of each the nearest two of the points before it."""
    rng = np.random.default_rng(2)
    points = rng.random((80, 2))
    points[:, 0] **= 1.5
    operator = operators.nearest_neighbours(grid=4, k=2)
    found = ran(operator, {"x": points[:, 0], "y": points[:, 1]})
    figure, axes = panel("x", "y", 3.4)
    for rank, look in ((1, ONE), (2, CAME)):
        name, which = f"rank {rank}", found["rank"] == rank
        ends = points[found["sequence"][which]], points[found["neighbour"][which]]
        for (x, y), (left, low) in zip(*ends, strict=True):
            lines(axes, [x, left], [y, low], name, look)
    dots(axes, points[:, 0], points[:, 1], "points", ONE)
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    legend(figure, ["points", "rank 1", "rank 2"], LOOKS)
    return figure
