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

__all__ = ["draw_table"]


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
