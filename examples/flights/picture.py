"""The picture: delays over the year with the jams, and the routes that lost most."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pyarrow as pa
from matplotlib.dates import ConciseDateFormatter
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from specstream.figures.palette import QUIET, SPARE
from specstream.figures.style import from_zero, in_style, new_figure

__all__ = ["draw"]

JAM = "#f0b27a"


def spans(changes: pd.DataFrame, end: Any) -> list[tuple[Any, Any]]:
    """From when to when each jam was; the last may not have ended."""
    begins = changes.loc[changes["begins"], "time"].tolist()
    ends = changes.loc[~changes["begins"], "time"].tolist()
    ends += [end] * (len(begins) - len(ends))
    return list(zip(begins, ends, strict=True))


@in_style
def draw(departures: pd.DataFrame, routes: pa.Table, jams: pa.Table) -> Figure:
    """Two panels.

    Args:
        departures: with the columns time and delay.
        routes: rows of ``worst_routes``.
        jams: rows of ``jams``.
    """
    figure, panels = new_figure(
        "Departures from New York in 2013: jams, and what was lost", 6.6, rows=2, sharex=True
    )
    daily, growth = panels[:, 0]
    means = departures.groupby(departures["time"].dt.floor("D"))["delay"].mean()
    end = departures["time"].max()
    for jam in spans(jams.to_pandas(), end):
        daily.axvspan(*jam, color=JAM, linewidth=0.4)
    marker = "o" if len(means) < 30 else ""
    daily.plot(means.index, means, color=QUIET, linewidth=1.2, marker=marker)
    daily.set_title("Mean delay of each day")
    daily.set_ylabel("minutes")
    daily.legend(
        handles=[
            Line2D([], [], color=QUIET, label="mean delay"),
            Patch(color=JAM, label="jam of the three airports"),
        ],
        loc="upper left",
        bbox_to_anchor=(0.0, -0.02),
        ncols=2,
    )

    rows = routes.to_pandas()
    rows["route"] = rows["origin"] + " to " + rows["dest"]
    last = rows.groupby("route")["minutes"].max().sort_values(ascending=False)
    for route, look in zip(last.index, SPARE, strict=False):
        of = rows[rows["route"] == route]
        # From the first row up, and from the last one on.
        times = [of["time"].iloc[0], *of["time"], end]
        hours = [0.0, *(of["minutes"] / 60), of["minutes"].iloc[-1] / 60]
        growth.plot(times, hours, label=route, drawstyle="steps-post", color=look.colour)
    growth.set_title("Hours lost on the routes that lost most, once on the list")
    growth.set_ylabel("hours")
    growth.set_xlabel("departure (UTC)")
    growth.legend(loc="upper left", bbox_to_anchor=(0.0, -0.2), ncols=3)
    dates: Any = ConciseDateFormatter
    growth.xaxis.set_major_formatter(dates(growth.xaxis.get_major_locator()))
    for axes in (daily, growth):
        axes.grid(axis="y")
    from_zero((growth,))
    return figure
