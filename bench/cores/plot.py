"""Speed and shares of time by the number of cores, as a picture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure

from specstream.figures.palette import LOOKS as KNOWN
from specstream.figures.style import (
    from_zero,
    in_style,
    legend,
    new_figure,
    plain_ticks,
    plot_line,
)

__all__ = ["LOOKS", "SHARES", "draw_cores"]

SHARES = ("running", "committing", "waiting")
LOOKS = {
    "the machine": KNOWN["specstream"],
    "one for each core": KNOWN["ideal"],
    "as scheduled ideally": KNOWN["plain"],
    "running": KNOWN["value"],
    "committing": KNOWN["eager"],
    "waiting": KNOWN["sequential check"],
}


@in_style
def draw_cores(data: Mapping[str, Any]) -> Figure:
    """The speed by kind of duration beside its ideal; below, where the time of the cores goes.

    Args:
        data: as ``--json`` writes it.
    """
    rows = data["parts"]["cores"]
    kinds = list(dict.fromkeys(row["kind"] for row in rows))
    figure, panels = new_figure(
        "More cores than there are: the runtime's own code on a virtual machine\n"
        "events of 50 µs on average, 10 reads, 2 writes",
        7.6,
        2,
        len(kinds),
    )
    for column, kind in enumerate(kinds):
        own = [row for row in rows if row["kind"] == kind]
        cores = [row["cores"] for row in own]
        speed, shares = panels[0, column], panels[1, column]
        speed.sharex(shares)
        speed.tick_params(labelbottom=False)
        plot_line(speed, cores, cores, "one for each core", LOOKS["one for each core"])
        ideals = [row["ideal"] for row in own]
        plot_line(speed, cores, ideals, "as scheduled ideally", LOOKS["as scheduled ideally"])
        found = [row["machine"] for row in own]
        plot_line(speed, cores, found, "the machine", LOOKS["the machine"])
        speed.set_yscale("log", base=2)
        plain_ticks(speed.yaxis, cores)
        speed.set_title(kind.removeprefix("lognormal, "))
        for share in SHARES:
            percent = [100 * row[share] for row in own]
            plot_line(shares, cores, percent, share, LOOKS[share])
        shares.set_ylim(0, 105)
        for axes in (speed, shares):
            axes.set_xscale("log", base=2)
            plain_ticks(axes.xaxis, cores[::2])
            axes.minorticks_off()
            axes.grid(axis="y")
        shares.set_xlabel("cores")
    panels[0, 0].set_ylabel("times as fast as one core")
    panels[1, 0].set_ylabel("time of the cores (%)")
    from_zero(panels[1])
    legend(figure, list(LOOKS), LOOKS)
    return figure
