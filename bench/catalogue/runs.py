"""What the pictures of the catalogue have in common: runs of operators, streams, looks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import specstream as ss
from specstream.figures.palette import SPARE, Look
from specstream.figures.style import new_figure, plot_line

__all__ = [
    "CAME",
    "LOOKS",
    "ONE",
    "THREE",
    "TWO",
    "dots",
    "lines",
    "of_key",
    "panel",
    "ran",
    "steps",
]

ONE, TWO, THREE = (replace(one, marker="", line="-") for one in SPARE[:3])
# What went into an operator stands behind what came out.
CAME = Look("#8c8c8c", "", "-", "", 1.0)

# By their names in the legends.
LOOKS: dict[str, Look] = {}


def panel(x: str, y: str, height: float = 2.5, columns: int = 1) -> tuple[Figure, Any]:
    """A figure and its panel, or panels, with the names of the axes."""
    figure, panels = new_figure("", height, columns=columns, sharey=columns > 1)
    for axes in panels[0]:
        axes.set_xlabel(x)
    panels[0, 0].set_ylabel(y)
    return figure, panels[0, 0] if columns == 1 else panels[0]


def lines(axes: Any, x: Any, y: Any, name: str, look: Look) -> None:
    """A line, in the look that belongs to its name in the legend."""
    if LOOKS.setdefault(name, look) != look:
        raise ValueError(f"{name!r} has another look already: name it otherwise")
    plot_line(axes, x, y, name, look)


def dots(axes: Any, x: Any, y: Any, name: str, look: Look, marker: str = "o") -> None:
    """Markers without a line, likewise."""
    lines(axes, x, y, name, replace(look, line="", marker=marker))


def ran(operator: ss.Operator, table: Any, **options: Any) -> dict[str, Any]:
    """The columns that an operator emits, and ``sequence``, the events' numbers.

    Every engine gives the same rows.
    """
    output = operator.run_sequential(table, keys=True, **options).output
    return {name: np.array(output[name].to_pylist()) for name in output.column_names}


def of_key(values: Any) -> dict[str, Any]:
    """The events of a series: one key."""
    return {"key": ["A"] * len(values), "value": [float(value) for value in values]}


def steps(levels: Sequence[tuple[float, int]], spread: float, seed: int) -> Any:
    """Normal values around one level after the other, of so many values each."""
    rng = np.random.default_rng(seed)
    means = np.concatenate([np.full(count, level) for level, count in levels])
    return means + rng.normal(0.0, spread, len(means))
