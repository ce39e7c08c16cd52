"""What was measured, as a picture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from matplotlib.figure import Figure

from bench.rules.page import DATA, HAND, MSTLO, REELAY, RTAMT
from specstream.figures.palette import QUIET, SPARE
from specstream.figures.style import in_style, legend, line_at, new_figure, plain_ticks

__all__ = ["LOOKS", "draw_rules"]

BY_HAND = "operator by hand"
WITH_DATA = "reelay, data"
LOOKS = {
    "reelay": SPARE[0],
    "mstlo": SPARE[1],
    "rtamt": SPARE[2],
    WITH_DATA: SPARE[4],
    BY_HAND: SPARE[3],
}
ASKED = {"reelay": REELAY, "mstlo": MSTLO, "rtamt": RTAMT, WITH_DATA: DATA, BY_HAND: HAND}


def _ratios(parts: Mapping[str, Any]) -> Iterator[tuple[str, float, float]]:
    """Of each row beside somebody: who, what an event of ours takes, and how many times as long
    his takes."""
    for part, names in {
        "past": ("reelay",),
        "future": ("mstlo", "rtamt"),
        "data": ("reelay",),
    }.items():
        for row in parts[part]["rows"]:
            for name in names:
                if name in row:
                    who = WITH_DATA if part == "data" else name
                    yield who, row["ours"], row[name]["ratio"][1]
    for row in parts["by_hand"]["rows"]:
        if "ratio" in row:
            yield BY_HAND, row["ours"], row["ratio"][1]


@in_style
def draw_rules(data: Mapping[str, Any]) -> Figure:
    """Each row by what our event takes, and how many times as long the other one's does.

    Args:
        data: as ``--json`` writes it.
    """
    figure, panels = new_figure(
        "Rules: how many times as long an event takes the others\n"
        f"{data['machine']['processor']}, one thread",
        4.6,
    )
    axes = panels[0, 0]
    found = list(_ratios(data["parts"]))
    names = [name for name in LOOKS if any(who == name for who, _, _ in found)]
    for name in names:
        look = LOOKS[name]
        points = [(took, ratio) for who, took, ratio in found if who == name]
        axes.plot(
            [took for took, _ in points],
            [ratio for _, ratio in points],
            color=look.colour,
            marker=look.marker,
            linestyle="",
            markeredgecolor="white",
            markeredgewidth=0.5,
            label=name,
        )
        line = axes.axhline(ASKED[name], color=look.colour, linestyle=look.line, linewidth=0.8)
        line.set_label("_asked")
    axes.set_xscale("log")
    axes.set_yscale("log")
    plain_ticks(axes.xaxis)
    plain_ticks(axes.yaxis)
    line_at(axes, 1.0)
    axes.set_xlabel("an event of ours (ns); a thin line: what was asked for")
    axes.set_ylabel("times as long, of the other one")
    axes.grid(color=QUIET, alpha=0.2)
    legend(figure, names, LOOKS)
    return figure
