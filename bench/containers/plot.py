"""What was measured, as pictures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure

from specstream.figures.palette import CONFLICTS, SPARE, look
from specstream.figures.style import (
    from_zero,
    in_style,
    legend,
    line_at,
    new_figure,
    plain_ticks,
    plot_line,
)

__all__ = ["draw_skew", "draw_speed"]

LOOKS = {"ss.dict": SPARE[0], "by hand": SPARE[1], "typed dict": look("typed dict")}
LABELS = {
    "ss.dict": "ss.dict",
    "by hand": "table written by hand",
    "typed dict": "Numba's typed dict, no engine",
}


@in_style
def draw_speed(data: Mapping[str, Any]) -> Figure:
    """Time of an event by the number of keys, on one thread and on two.

    Args:
        data: as ``--json`` writes it.
    """
    figure, panels = new_figure(
        f"Number and sum by key: time of an event\n{data['machine']['processor']}",
        4.4,
        columns=2,
        sharey=True,
    )
    sizes = sorted({one["keys"] for one in data["speed"]})
    for axes, ending, title in zip(
        panels[0], ("", ", 2 threads"), ("one thread", "two threads"), strict=True
    ):
        for name, own in LOOKS.items():
            points = [one for one in data["speed"] if one["contestant"] == name + ending]
            if points:
                keys = [one["keys"] for one in points]
                plot_line(axes, keys, [one["nanoseconds"] for one in points], LABELS[name], own)
        axes.set_xscale("log")
        plain_ticks(axes.xaxis, [size for size in sizes if size in (1_000, 1_000_000)] or sizes)
        axes.set_xlabel("keys")
        axes.set_title(title)
        axes.grid(axis="y")
    from_zero(panels[0])
    panels[0, 0].set_ylabel("time per event (ns)")
    legend(figure, LABELS.values(), {LABELS[name]: own for name, own in LOOKS.items()})
    return figure


@in_style
def draw_skew(data: Mapping[str, Any]) -> Figure:
    """Speed-up and dropped runs by the exponent of Zipf's law.

    Args:
        data: as ``--json`` writes it.
    """
    found = data["skew"]
    kinds = list(dict.fromkeys((one["kind"], one["threads"]) for one in found))
    figure, panels = new_figure(
        f"A dict of the state under skew, 10,000 keys\n{data['machine']['processor']}",
        5.8,
        rows=2,
        columns=len(kinds),
        sharex=True,
    )
    ideal = look("ideal")
    for column, (kind, threads) in enumerate(kinds):
        points = [one for one in found if one["kind"] == kind]
        at = [one["exponent"] for one in points]
        above, below = panels[:, column]
        plot_line(above, at, [one["speedup"] for one in points], "value")
        line_at(above, 1.0)
        above.axhline(threads, color=ideal.colour, linestyle=ideal.line, linewidth=1.2)
        above.set_title(f"{threads} threads, {kind}")
        dropped = [100 * one["aborts"] for one in points]
        plot_line(below, at, dropped, "dropped runs", CONFLICTS)
        below.set_xlabel("exponent of Zipf's law\n(0: all keys alike)")
        for axes in (above, below):
            axes.grid(axis="y")
    from_zero(panels.flat)
    for axes in panels[1]:
        # A point at zero lies on the axis and is drawn whole.
        for line in axes.lines:
            line.set_clip_on(False)
    panels[0, 0].set_ylabel("speed, one thread = 1")
    panels[1, 0].set_ylabel("dropped speculative runs (%)")
    legend(figure, ["value", "ideal", "dropped runs"], {"dropped runs": CONFLICTS})
    return figure
