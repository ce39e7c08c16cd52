"""The picture: prices, both averages, and where was bought and sold."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from matplotlib.dates import ConciseDateFormatter
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from specstream.figures.palette import SPARE
from specstream.figures.style import in_style, new_figure

__all__ = ["draw"]

PANELS = 3
GREY, LIGHT, DARK = "#bbbbbb", SPARE[4].colour, SPARE[0].colour
ORDERS = {"buys": ("^", "#009e73"), "sells": ("v", "#d55e00")}


@in_style
def draw(consumed: dict[str, pa.Table]) -> Figure:
    """The symbols that have most trades, one below the other."""
    averages = consumed["averages"].to_pandas()
    symbols = sorted(averages["symbol"].value_counts().index[:PANELS])
    rows = max(len(symbols), 1)
    title = "Orders where two moving averages cross;\nnone while it is expensive to insure them"
    figure, panels = new_figure(title, 1.2 + 2.4 * rows, rows=rows, sharex=True)
    for symbol, axes in zip(symbols, panels[:, 0], strict=False):
        of = averages[averages["symbol"] == symbol]
        axes.plot(of["time"], of["price"], color=GREY, linewidth=0.7)
        axes.plot(of["time"], of["short"], color=LIGHT, linewidth=1.3)
        axes.plot(of["time"], of["long"], color=DARK, linewidth=1.6)
        for sink, (marker, colour) in ORDERS.items():
            orders = consumed[sink].to_pandas()
            orders = orders[orders["symbol"] == symbol]
            axes.scatter(
                orders["time"], orders["price"], s=60, marker=marker, color=colour,
                edgecolor="white", linewidth=0.8, zorder=3,
            )  # fmt: skip
        axes.set_title(symbol)
        axes.set_ylabel("price")
        axes.grid(axis="y")
    last = panels[-1, 0]
    dates: Any = ConciseDateFormatter
    last.xaxis.set_major_formatter(dates(last.xaxis.get_major_locator()))
    last.set_xlabel("time (UTC)")

    lines = {"price": GREY, "short average": LIGHT, "long average": DARK}
    handles = [Line2D([], [], color=colour, label=name) for name, colour in lines.items()]
    handles += [
        Line2D([], [], color=colour, marker=marker, linestyle="", markersize=8, label=name)
        for name, (marker, colour) in ORDERS.items()
    ]
    figure.legend(
        handles=handles, loc="outside lower center", ncols=5, handlelength=1.2, columnspacing=1.4
    )
    return figure
