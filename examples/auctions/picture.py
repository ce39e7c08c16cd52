"""The picture: how many auctions are open after each day, and for how many days they have been."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from specstream.figures.palette import SPARE
from specstream.figures.style import from_zero, in_style, new_figure

__all__ = ["draw"]


@in_style
def draw(days: pd.DataFrame) -> Figure:
    """One panel above the other.

    Args:
        days: with the columns day, open and average.
    """
    title = "The auctions that are open when a day ends"
    figure, panels = new_figure(title, 5.2, rows=2, sharex=True)
    for axes, column, heading, label, look in (
        (panels[0, 0], "average", "For how long they have been open, on average", "days", SPARE[0]),
        (panels[1, 0], "open", "How many there are", "auctions", SPARE[2]),
    ):
        axes.plot(days["day"], days[column], color=look.colour, drawstyle="steps-mid")
        axes.set_title(heading)
        axes.set_ylabel(label)
        axes.grid(axis="y")
    from_zero(panels[:, 0])
    panels[1, 0].set_xlabel("day")
    return figure
