"""What was measured, as a picture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from bench.pipelines.graphs import GRAPHS
from specstream.figures.palette import SPARE, look
from specstream.figures.style import (
    bars_height,
    draw_bars,
    from_zero,
    in_style,
    legend,
    line_at,
    new_figure,
    plain_ticks,
    plot_line,
)

__all__ = ["LOOKS", "draw_pipelines"]

# By what runs; one thread is hatched.
_OF = {"pipeline": SPARE[0], "one function": SPARE[1], "engines by hand": SPARE[2]}
LOOKS = {
    **{f"{name}, 2 threads": replace(own, hatch="") for name, own in _OF.items()},
    **{f"{name}, 1 thread": replace(own, hatch="....") for name, own in _OF.items()},
    **_OF,
}
# As the data call them.
_BARS = {
    "pipeline, 2 threads": "pipeline, 2 threads",
    "function, 2 threads": "one function, 2 threads",
    "engines, 2 threads": "engines by hand, 2 threads",
    "pipeline, 1 thread": "pipeline, 1 thread",
    "engines, 1 thread": "engines by hand, 1 thread",
}
_LINES = {"pipeline": "pipeline", "function": "one function", "engines": "engines by hand"}


@in_style
def draw_pipelines(data: Mapping[str, Any]) -> Figure:
    """Bars of the graphs, busy; below them speed by the number of sleeping threads.

    Args:
        data: as ``--json`` writes it.
    """
    parts = data["parts"]
    graphs = [graph.name for graph in GRAPHS if graph.name in parts]
    sleeping = [graph.name for graph in GRAPHS if f"{graph.name}-asleep" in parts]
    above, below = bars_height(len(graphs), len(_BARS)), 2.4
    figure, panels = new_figure(
        "A pipeline, its vertices in engines chained by hand, and one function\n"
        f"{data['machine']['processor']}",
        above + below + 2.6,
        rows=2,
        columns=len(sleeping),
        height_ratios=[above, below],
    )
    # The bars take the whole width.
    grid = panels[0, 0].get_gridspec()
    for one in panels[0]:
        one.remove()
    axes, panels = figure.add_subplot(grid[0, :]), panels[1]
    groups = {}
    for name in graphs:
        of = parts[name]["contestants"]
        groups[parts[name]["title"]] = {
            shown: tuple(of[one]["speed"]) for one, shown in _BARS.items()
        }
    draw_bars(axes, groups, "{:.2f}", LOOKS)
    line_at(axes, 1.0, "y")
    axes.set_xlabel("speed, one function on one thread = 1")
    ideal = look("ideal")
    for panel, name in zip(panels, sleeping, strict=True):
        speed = parts[f"{name}-asleep"]["speed"]
        threads = sorted({int(one.split()[1]) for one in speed})
        for one, shown in _LINES.items():
            medians = [speed[f"{one}, {count} threads"][1] for count in threads]
            plot_line(panel, threads, medians, shown, LOOKS[shown])
        panel.plot(
            threads, threads, color=ideal.colour, linestyle=ideal.line, linewidth=1.2, label="ideal"
        )
        line_at(panel, 1.0)
        plain_ticks(panel.xaxis, threads)
        panel.set_title(f"{parts[f'{name}-asleep']['title']}, asleep")
        panel.set_xlabel("threads")
        panel.grid(axis="y")
    panels[0].set_ylabel("speed, one thread = 1")
    from_zero(panels)
    legend(
        figure,
        [*_BARS.values()],
        LOOKS,
        bars=True,
        others=[
            *panels[0].get_lines()[: len(_LINES) + 1],
            Line2D([], [], color="black", linewidth=1.0, label="quartiles"),
        ],
    )
    return figure
