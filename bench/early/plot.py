"""What was measured, as a picture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure

from bench.early.measure import CURVES, DELAYS, EARLY, PLAIN, SPECULATIVE, WITH_EARLY
from specstream.figures.palette import LOOKS as KNOWN
from specstream.figures.palette import SPARE
from specstream.figures.style import (
    from_zero,
    in_style,
    legend,
    line_at,
    new_figure,
    plain_ticks,
    plot_line,
)

__all__ = ["LOOKS", "draw_early"]

LOOKS = {
    PLAIN: KNOWN["no speculation"],
    SPECULATIVE: KNOWN["value"],
    WITH_EARLY: SPARE[1],
    EARLY: SPARE[2],
    **{
        f"late by up to {delay:g} s": look
        for delay, look in zip(DELAYS, (SPARE[0], SPARE[3], SPARE[4]), strict=True)
    },
}


@in_style
def draw_early(data: Mapping[str, Any]) -> Figure:
    """Two sources above, late events below, on the most threads.

    Args:
        data: as ``--json`` writes it.
    """
    rates, delays = data["parts"]["rates"], data["parts"]["delays"]
    figure, panels = new_figure(
        f"Early results: two sources, and late events\n{data['machine']['processor']}", 7.6, 2, 2
    )
    percent = [100 * one["difference"] for one in rates["points"]]
    latency, revised = panels[0]
    for curve in CURVES:
        medians = [one["milliseconds"][curve]["median"][1] for one in rates["points"]]
        plot_line(latency, percent, medians, curve, LOOKS[curve])
    latency.set_yscale("log")
    plain_ticks(latency.yaxis)
    latency.set_ylabel("latency, median (ms)")
    shares = [100 * one["revised"][1] for one in rates["points"]]
    plot_line(revised, percent, shares, EARLY, LOOKS[EARLY])
    revised.set_ylabel("early rows revised (%)")
    for axes in panels[0]:
        axes.set_xlabel("B slower by so many percent")
    threads = max(one["threads"] for one in delays["points"])
    names = []
    for delay in dict.fromkeys(one["delay"] for one in delays["points"]):
        points = [
            one for one in delays["points"] if (one["delay"], one["threads"]) == (delay, threads)
        ]
        name = f"late by up to {delay:g} s"
        names.append(name)
        late = [100 * one["late"] for one in points]
        again = [100 * one["revised"][1] for one in points]
        plot_line(panels[1, 0], late, again, name, LOOKS[name])
        speed = [one["throughput"]["told"][1] for one in points]
        plot_line(panels[1, 1], late, speed, name, LOOKS[name])
    line_at(panels[1, 1], 1.0)
    panels[1, 0].set_ylabel("early rows revised (%)")
    panels[1, 1].set_ylabel("throughput, without early = 1")
    for axes in panels[1]:
        axes.set_xlabel(f"events late (%), {threads} threads")
    for axes in panels.flat:
        axes.grid(axis="y")
    from_zero([revised, *panels[1]])
    legend(figure, [*CURVES, *names], LOOKS)
    return figure
