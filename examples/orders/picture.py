"""The picture: the alarms of the day, by rule, and how long each took to be settled."""

from __future__ import annotations

import pandas as pd
from matplotlib.dates import ConciseDateFormatter
from matplotlib.figure import Figure

from specstream.figures.palette import SPARE
from specstream.figures.style import in_style, new_figure

__all__ = ["draw"]


@in_style
def draw(alarms: dict[str, pd.DataFrame]) -> Figure:
    """A line for each alarm, from its event to where it was settled.

    Args:
        alarms: by rule, with the columns time and decided.
    """
    figure, panels = new_figure("Orders that violate a rule", 1.2 + 0.9 * len(alarms))
    axes = panels[0, 0]
    for row, (of, look) in enumerate(zip(alarms.values(), SPARE, strict=False)):
        # Those of a rule stand apart, so that each is seen.
        height = [row + 0.3 * ((n % 7) / 3.0 - 1.0) for n in range(len(of))]
        axes.hlines(height, of["time"], of["decided"], color=look.colour, linewidth=1.0)
        axes.scatter(
            of["time"], height, s=24, color=look.colour, marker=look.marker, edgecolor="white",
            linewidth=0.5, zorder=3,
        )  # fmt: skip
    axes.set_yticks(range(len(alarms)), [f"{name}: {len(of)}" for name, of in alarms.items()])
    axes.set_ylim(len(alarms) - 0.5, -0.5)
    axes.set_title("From the event to the time of its verdict")
    dates: type = ConciseDateFormatter
    axes.xaxis.set_major_formatter(dates(axes.xaxis.get_major_locator()))
    axes.set_xlabel("time (UTC)")
    return figure
