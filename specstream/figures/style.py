"""One style of all pictures: legible at the width of a phone, opaque, nothing over the data.

A picture is as wide as a phone is at this size of letters; what does not fit beside each other
stands one below the other. Legends stand outside of the panels, limits are set when all is drawn.
"""

from __future__ import annotations

import base64
import functools
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter

from specstream.figures.palette import QUIET, Look
from specstream.figures.palette import look as look_of
from specstream.files.writing import writing

__all__ = [
    "BAR",
    "WIDTH",
    "bar_look",
    "bars_height",
    "draw_bars",
    "from_zero",
    "in_style",
    "legend",
    "line_at",
    "new_figure",
    "notebook_image",
    "plain_ticks",
    "plot_line",
    "save",
]

# Inches, and points of the letters: 7.6 pixels on a phone that shows the picture 350 pixels wide.
WIDTH = 6.4
TEXT = 10
DPI = 150
# Inches that a bar takes, of which the coloured part is the most.
BAR = 0.185

_STYLE: Any = {
    "font.size": TEXT,
    "axes.titlesize": TEXT,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.labelsize": TEXT,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.edgecolor": "#444444",
    "figure.titlesize": TEXT + 1,
    "xtick.labelsize": TEXT,
    "ytick.labelsize": TEXT,
    "legend.fontsize": TEXT,
    "legend.frameon": False,
    "legend.handlelength": 2.4,
    "figure.facecolor": "white",
    "axes.facecolor": "white",
    "savefig.facecolor": "white",
    "savefig.transparent": False,
    "grid.color": "#e0e0e0",
    "hatch.linewidth": 0.6,
    "lines.markersize": 5.5,
    "lines.linewidth": 1.6,
    "svg.hashsalt": "specstream",
}

# Behind a number, so that no line goes through it.
_PAPER = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}

P = ParamSpec("P")
R = TypeVar("R")


def in_style(function: Callable[P, R]) -> Callable[P, R]:
    """Has a function draw in this style, whatever the user's own settings are."""

    @functools.wraps(function)
    def inside(*args: P.args, **kwargs: P.kwargs) -> R:
        with mpl.rc_context():
            mpl.rcdefaults()
            mpl.rcParams.update(_STYLE)
            return function(*args, **kwargs)

    return inside


@in_style
def save(figure: Figure, path: str | Path) -> None:
    """Writes a picture; the ending of the file says the format.

    Raises:
        OSError: it cannot be written; the error names the file.
    """
    with writing(path):
        figure.savefig(path, dpi=DPI)


def notebook_image(figure: Figure) -> str:
    """A picture as HTML that has it in itself, for notebooks."""
    written = io.BytesIO()
    figure.savefig(written, format="png", dpi=DPI)
    content = base64.b64encode(written.getvalue()).decode()
    return f"<img src='data:image/png;base64,{content}' style='max-width:{WIDTH * 100:.0f}px'>"


def new_figure(
    title: str, height: float, rows: int = 1, columns: int = 1, **options: Any
) -> tuple[Figure, Any]:
    """A figure of so many inches and its panels, as a grid; the title may have several lines."""
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    if title:
        figure.suptitle(title, x=0.01, ha="left")
    panels = figure.subplots(rows, columns, squeeze=False, **options)
    return figure, panels


def _line(look: Look) -> dict[str, Any]:
    """Its properties, for matplotlib."""
    return {
        "color": look.colour,
        "linestyle": look.line,
        "linewidth": look.width,
        "marker": look.marker,
        "markersize": 4.0 + look.width,
        "markeredgecolor": "white",
        "markeredgewidth": 0.5,
    }


def bar_look(look: Look) -> dict[str, Any]:
    """Properties of a bar, for matplotlib."""
    return {"facecolor": look.colour, "hatch": look.hatch, "edgecolor": "white", "linewidth": 0}


def plot_line(
    axes: Any, x: Sequence[float], y: Sequence[float], name: str, look: Look | None = None
) -> None:
    """A line with markers, in the look that belongs to its name."""
    look = look or look_of(name)
    axes.plot(x, y, **_line(look), label=name)


def line_at(axes: Any, value: float, along: str = "x") -> None:
    """A thin line to compare with: that of the same speed, say.

    Args:
        along: "x" for a horizontal one, "y" for a vertical one.
    """
    draw = axes.axhline if along == "x" else axes.axvline
    draw(value, color=QUIET, linewidth=1.2, zorder=0.5)


def from_zero(panels: Iterable[Any], room: float = 1.06, axis: str = "y") -> None:
    """Limits from zero to above all that is drawn, in the panels that share an axis as well.

    To be called when everything is drawn: limits that are set earlier would cut off what comes.
    """
    for axes in panels:
        shared = getattr(axes, f"get_shared_{axis}_axes")().get_siblings(axes)
        top = max(getattr(one.dataLim, f"{axis}1") for one in shared)
        top = top if np.isfinite(top) and top > 0 else 1.0
        getattr(axes, f"set_{axis}lim")(0.0, room * top)


def plain_ticks(axis: Any, ticks: Sequence[float] | None = None) -> None:
    """Numbers as people write them on a logarithmic axis: 0.5, 100, 1,000,000."""
    if ticks is not None:
        axis.set_ticks(ticks)
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.9g}"))
    axis.set_minor_formatter(FuncFormatter(lambda value, _: ""))


def bars_height(groups: int, bars: int, gap: float = 0.9) -> float:
    """Inches that :func:`draw_bars` takes for so many groups of so many bars."""
    return BAR * groups * (bars + 1.0 + gap)


def draw_bars(
    axes: Any,
    groups: Mapping[str, Mapping[str, float | tuple[float, float, float]]],
    text: str = "{:.2f}",
    looks: Mapping[str, Look] | None = None,
    room: float = 1.2,
    marks: Mapping[str, float] | None = None,
    names: bool = True,
    gap: float = 0.9,
    places: int = 0,
) -> None:
    """Horizontal bars in groups, each group below its name, each bar with its number.

    Args:
        groups: by name, the values by contestant; a value is a number, or the first quartile, the
            median and the third quartile.
        text: how a number is written.
        looks: of contestants that have none of their own.
        room: the axis ends so many times behind the longest bar: its number stands there.
        marks: by group, where a short line is drawn across it; the numbers then stand at the right.
        names: False: leave the names out, as the panel at the left has them.
        gap: below each group, in bars.
        places: bars that a group has room for at least, so that panels side by side agree.
    """
    place = 0.0
    for group, values in groups.items():
        if names:
            axes.annotate(
                group, (0, place + 0.5), xycoords=("axes fraction", "data"), xytext=(2, 0),
                textcoords="offset points", va="center", fontweight="bold", bbox=_PAPER,
            )  # fmt: skip
        first = place + 1.0
        for number, (name, value) in enumerate(values.items()):
            look = (looks or {}).get(name) or look_of(name)
            low, middle, high = value if isinstance(value, tuple) else (value,) * 3
            at = first + 0.5 + number
            axes.barh(at, middle, 0.86, label=name, **bar_look(look))
            if high > low:
                axes.plot([low, high], [at, at], color="black", linewidth=1.0, label="_quartiles")
            beside = ("axes fraction", "data") if marks else "data"
            axes.annotate(
                text.format(middle), (1.0 if marks else max(middle, high), at), xycoords=beside,
                xytext=(3, -0.5), textcoords="offset points", va="center", bbox=_PAPER,
                annotation_clip=False,
            )  # fmt: skip
        place = first + max(len(values), places) + gap
        if marks and group in marks:
            ends = [first - 0.05, place - gap + 0.05]
            axes.plot([marks[group]] * 2, ends, color="black", linewidth=2.0, label="_mark")
    axes.set_ylim(place - gap + 0.5, 0.0)
    axes.set_yticks([])
    axes.grid(axis="x")
    from_zero([axes], 1.04 if marks else room, "x")


def legend(
    figure: Figure,
    names: Iterable[str],
    looks: Mapping[str, Look] | None = None,
    bars: bool = False,
    others: Sequence[Any] = (),
) -> None:
    """What the looks mean, below all panels, in as many columns as there is room for.

    Args:
        names: of contestants.
        looks: of those that have none of their own.
        bars: show bars, not lines.
        others: more handles, with labels.
    """
    handles: list[Any] = []
    for name in names:
        look = (looks or {}).get(name) or look_of(name)
        if bars:
            handles.append(Patch(**bar_look(look), label=name))
        else:
            handles.append(Line2D([], [], **_line(look), label=name))
    handles += others
    # A canvas of pixels, which measures letters.
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    FigureCanvasAgg(figure)
    for columns in range(len(handles), 0, -1):
        found = figure.legend(handles=handles, loc="outside lower center", ncols=columns)
        renderer = figure.canvas.get_renderer()  # type: ignore[attr-defined]
        if columns == 1 or found.get_window_extent(renderer).width < 0.98 * figure.bbox.width:
            return
        found.remove()
