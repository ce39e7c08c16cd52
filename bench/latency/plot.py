"""What was measured, as a picture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure

from specstream.figures.palette import LOOKS as KNOWN
from specstream.figures.palette import QUIET, Look
from specstream.figures.style import in_style, legend, new_figure, plain_ticks, plot_line

__all__ = ["LOOKS", "draw_latency"]

MEDIAN, HIGH = "median", "99.9 %"
IDEAL_MEDIAN, IDEAL_HIGH = "median, ideal machine", "99.9 %, ideal machine"
LOOKS = {
    MEDIAN: KNOWN["value"],
    HIGH: KNOWN["eager"],
    IDEAL_MEDIAN: Look(QUIET, "o", ":", "", 1.4),
    IDEAL_HIGH: Look(QUIET, "s", "--", "", 1.4),
}


@in_style
def draw_latency(data: Mapping[str, Any]) -> Figure:
    """A panel for each setting: latency by load.

    Args:
        data: as ``--json`` writes it.
    """
    settings = data["parts"]["load"]["settings"]
    figure, panels = new_figure(
        f"From the arrival of an event to its committed row\n{data['machine']['processor']}",
        3.9,
        1,
        len(settings),
        sharey=True,
    )
    for axes, (name, of) in zip(panels[0], settings.items(), strict=True):
        loads = [100 * one["load"] for one in of["loads"]]
        for label, values in {
            HIGH: [one[HIGH] for one in of["loads"]],
            MEDIAN: [one[MEDIAN][1] for one in of["loads"]],
            IDEAL_HIGH: [one["ideal"][HIGH] for one in of["loads"]],
            IDEAL_MEDIAN: [one["ideal"][MEDIAN] for one in of["loads"]],
        }.items():
            plot_line(axes, loads, values, label, LOOKS[label])
        axes.set_yscale("log")
        axes.set_xlim(0, 100)
        axes.set_xticks(loads)
        axes.set_xlabel("load (% of capacity)")
        axes.set_title(f"{name}\nevents of {of['milliseconds']:g} ms")
        axes.grid(axis="y")
        plain_ticks(axes.yaxis)
    panels[0, 0].set_ylabel("latency (ms)")
    legend(figure, LOOKS, LOOKS)
    return figure
