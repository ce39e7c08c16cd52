"""What was measured, as a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from matplotlib.figure import Figure

from bench.transactional.measure import Seen
from bench.transactional.page import at
from bench.transactional.schemes import AUTO, COARSE, DETERMINISTIC, FINE, RIVALS
from bench.transactional.workloads import WORKLOADS
from specstream.figures.palette import SPARE, look
from specstream.figures.style import (
    from_zero,
    in_style,
    legend,
    line_at,
    new_figure,
    plot_line,
)

__all__ = ["LOOKS", "draw_transactional"]

# Two lines of one colour that often lie on each other.
LOOKS = {DETERMINISTIC: SPARE[3], COARSE: replace(look(COARSE), line=":")}
_ROWS = {
    "skew": "skew",
    "length": "work (µs)",
    "reads": "only read (%)",
    "aborts": "refused (%)",
    "multi": "many keys (%)",
}
_FACTORS = {"skew": 1.0, "length": 1e6}


@in_style
def draw_transactional(data: Mapping[str, Any]) -> Figure:
    """A column for each workload; in the rows its speed by each knob, and by sleeping threads.

    Args:
        data: as ``--json`` writes it.
    """
    of = data["workloads"]
    names = [name for name in WORKLOADS if name in of]
    figure, panels = new_figure(
        "Schemes on two threads; one thread without speculation = 1\n"
        f"{data['machine']['processor']}",
        1.5 * (len(_ROWS) + 1) + 1.2,
        rows=len(_ROWS) + 1,
        columns=len(names),
        sharey="row",
    )
    drawn = []
    for column, name in enumerate(names):
        panels[0, column].set_title(WORKLOADS[name].title)
        for row, (knob, label) in enumerate(_ROWS.items()):
            axes = panels[row, column]
            if knob not in WORKLOADS[name].knobs:
                axes.remove()
                continue
            values = at(of[name], knob)
            lines = {
                scheme: [Seen(*point["schemes"][scheme]).speed for point in values.values()]
                for scheme in (*RIVALS, AUTO)
            }
            factor = _FACTORS.get(knob, 100.0)
            _lines(axes, [f"{factor * value:g}" for value in values], lines)
            axes.set_xlabel(label)
            drawn.append(axes)
        axes = panels[-1, column]
        asleep = of[name]["asleep"]["schemes"]
        threads = list(next(iter(asleep.values())))
        _lines(
            axes,
            threads,
            {name: [Seen(*one).speed for one in of.values()] for name, of in asleep.items()},
        )
        axes.set_xlabel("threads, asleep")
        drawn.append(axes)
    from_zero(drawn)
    for axes in panels[:, 0]:
        axes.set_ylabel("speed")
    legend(figure, ["value", "eager", AUTO, DETERMINISTIC, FINE, COARSE], LOOKS)
    return figure


def _lines(axes: Any, ticks: Sequence[str], lines: Mapping[str, Sequence[float]]) -> None:
    """Lines over what is no scale, but a few values."""
    for name, speeds in lines.items():
        plot_line(axes, range(len(ticks)), speeds, name, LOOKS.get(name) or look(name))
    line_at(axes, 1.0)
    axes.set_xticks(range(len(ticks)), ticks)
    axes.margins(x=0.12)
    axes.grid(axis="y")
