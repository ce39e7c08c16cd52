"""The speed table as a picture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from bench.speed.loads import KINDS
from bench.speed.table import CONTESTANTS
from specstream.figures.style import (
    bars_height,
    draw_bars,
    in_style,
    legend,
    line_at,
    new_figure,
)

__all__ = ["draw_short", "draw_table"]

# What the first page shows: loads of two threads, and whom a user would compare.
SHORT_LOADS = ("5-110ns", "5-0.6us", "20-0.7us", "5-6us", "100-6.5us", "5-6us-all-hot")
SHORT = {"plain": "plain, one thread", "lock": "lock, no order", "Auto": "specstream (Auto)"}


@in_style
def draw_table(data: Mapping[str, Any]) -> Figure:
    """One panel per kind: bars of speed with their quartiles, and the target as a line.

    Args:
        data: as ``--json`` writes it.
    """
    rows = data["rows"]
    titles = list(dict.fromkeys(row["title"] for row in rows))
    figure, panels = new_figure(
        "Two threads against one; an event updates K words of 8 MB\n"
        f"{data['machine']['processor']}",
        1.6 + bars_height(len(titles), len(CONTESTANTS)),
        columns=len(KINDS),
        sharex=True,
    )
    for axes, kind in zip(panels[0], KINDS, strict=True):
        own = {row["title"]: row for row in rows if row["kind"] == kind}
        draw_bars(
            axes,
            {
                title: {
                    name: (one["low"], one["speed"], one["high"])
                    for name in CONTESTANTS
                    # The automatic setting belongs to compiled operators; its place stays free.
                    for one in [own[title]["results"].get(name)]
                    if one is not None
                }
                for title in titles
                if title in own
            },
            marks={title: row["target"] for title, row in own.items()},
            names=axes is panels[0, 0],
            places=len(CONTESTANTS),
        )
        line_at(axes, 1.0, "y")
        axes.set_title("written in C" if kind == "C" else "compiled from Python")
        axes.set_xlabel("speed, log-free = 1")
    legend(
        figure,
        CONTESTANTS,
        bars=True,
        others=[
            Line2D([], [], color="black", linewidth=1.0, label="quartiles"),
            Line2D(
                [],
                [],
                color="black",
                linewidth=2.0,
                marker="|",
                markersize=14,
                markeredgewidth=2,
                linestyle="",
                label="target",
            ),
        ],
    )
    return figure


@in_style
def draw_short(data: Mapping[str, Any]) -> Figure:
    """Operators compiled from Python alone: plain, under a lock, and as an engine chooses.

    Args:
        data: as ``--json`` writes it.
    """
    rows = [row for row in data["rows"] if row["kind"] == "compiled" and row["name"] in SHORT_LOADS]
    figure, panels = new_figure(
        "Two threads against one compiled loop, by length of the event;\n"
        f"it updates K words of 8 MB. {data['machine']['processor']}",
        1.4 + bars_height(len(rows), len(SHORT), 0.5),
    )
    axes = panels[0, 0]
    groups = {}
    for row in rows:
        found = {name: row["results"].get(name) for name in SHORT}
        groups[row["title"]] = {
            SHORT[name]: (one["low"], one["speed"], one["high"])
            for name, one in found.items()
            if one is not None
        }
    draw_bars(axes, groups, room=1.1, gap=0.5)
    line_at(axes, 1.0, "y")
    axes.set_xlabel("speed, log-free loop = 1; line: quartiles")
    legend(figure, SHORT.values(), bars=True)
    return figure
