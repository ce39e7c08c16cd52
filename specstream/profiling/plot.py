"""A profile as a picture: which words cost the most, and where in their fields they lie."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.colors import LinearSegmentedColormap, PowerNorm
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from specstream.figures.palette import CONFLICTS
from specstream.figures.style import BAR, from_zero, in_style, new_figure, save
from specstream.profiling.hot_words import HotWord

__all__ = ["draw_profile", "heat", "save_plot"]

_BARS = 12
_STRIPS = 3
_BINS = 256
_TEXT = 58  # characters of a line of source
_TITLE = 76  # characters of a line of the title


def save_plot(
    hot: Sequence[HotWord], shapes: Mapping[str, tuple[int, ...]], title: str, path: Path
) -> None:
    """:func:`draw_profile` into a file, whose ending says the format."""
    save(draw_profile(hot, shapes, title), path)


@in_style
def draw_profile(
    hot: Sequence[HotWord], shapes: Mapping[str, tuple[int, ...]], title: str
) -> Figure:
    """Bars of the hottest words with their hottest lines; below, a heat strip of each field.

    Args:
        hot: those that cost the most first; without any the picture says so.
        shapes: of the fields that they are in.
        title: above it.
    """
    words = hot[:_BARS]
    fields = list(dict.fromkeys(word.field for word in hot if word.index))[:_STRIPS]
    strips = [heat(hot, field, shapes[field]) for field in fields]
    heights = [0.7 + 3.2 * BAR * max(len(words), 1), *map(_height, strips)]
    figure, panels = new_figure(
        textwrap.fill(title, _TITLE), 1.0 + sum(heights), rows=1 + len(fields),
        height_ratios=heights,
    )  # fmt: skip
    _draw_bars(panels[0, 0], words)
    for axes, field, strip in zip(panels[1:, 0], fields, strips, strict=True):
        _draw_strip(axes, field, strip, math.prod(shapes[field]))
    return figure


def _draw_bars(axes: Any, words: Sequence[HotWord]) -> None:
    if not words:
        axes.text(0.5, 0.5, "no conflicts", ha="center", va="center", transform=axes.transAxes)
        axes.set_axis_off()
        return
    # Each word takes two lines of text and a bar.
    for place, word in enumerate(words):
        top = 3.2 * place
        axes.barh(top + 2.5, 100 * word.share, 0.86, color=CONFLICTS.colour)
        said = [(0.5, f"{word.name}  {word.share:.1%}", "bold")]
        if word.lines:
            line = word.lines[0]
            text = line.text if len(line.text) <= _TEXT else line.text[: _TEXT - 3] + "..."
            said.append((1.5, f"line {line.line}: {text}", "normal"))
        for below, text, weight in said:
            axes.annotate(
                text, (0, top + below), xycoords=("axes fraction", "data"), xytext=(2, 0),
                textcoords="offset points", va="center", family="monospace", fontweight=weight,
            )  # fmt: skip
    axes.set_ylim(3.2 * len(words), 0)
    axes.set_yticks([])
    from_zero([axes], axis="x")
    axes.set_xlabel("share of the conflicts (%)")


def heat(hot: Sequence[HotWord], field: str, shape: tuple[int, ...]) -> npt.NDArray[np.float64]:
    """Percent of the conflicts along a field: rows of a grid of two axes where that is small enough
    to be drawn, else one row of at most 256 bins of elements in memory order.

    >>> word = HotWord("x", (3,), aborts=2, share=0.5, record=-1, lines=())
    >>> heat([word], "x", (5,)).tolist()
    [[0.0, 0.0, 0.0, 50.0, 0.0]]
    """
    size = math.prod(shape)
    as_grid = len(shape) == 2 and shape[0] <= 64 and shape[1] <= _BINS
    bins = min(size, _BINS)
    drawn = np.zeros(shape if as_grid else (1, bins))
    for word in hot:
        if word.field != field:
            continue
        element = int(np.ravel_multi_index(word.index, shape))
        at = word.index if as_grid else (0, element * bins // size)
        drawn[at] += 100 * word.share
    return drawn


def _height(drawn: npt.NDArray[np.float64]) -> float:
    """Inches that a strip takes."""
    return min(1.1 + 0.08 * len(drawn), 2.8)


def _draw_strip(axes: Any, field: str, drawn: npt.NDArray[np.float64], elements: int) -> None:
    rows, columns = drawn.shape
    last = columns if rows > 1 else elements
    # By the square root, so that what is lukewarm shows beside what is hot.
    image = axes.imshow(
        drawn,
        aspect="auto",
        cmap=LinearSegmentedColormap.from_list("conflicts", ["white", CONFLICTS.colour]),
        norm=PowerNorm(0.5, vmin=0),
        interpolation="nearest",
        extent=(-0.5, last - 0.5, rows - 0.5, -0.5),
    )
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.set_title(field, family="monospace")
    axes.set_xlabel("column" if rows > 1 else "element")
    if rows == 1:
        axes.set_yticks([])
    else:
        axes.set_ylabel("row")
    bar = axes.figure.colorbar(image, ax=axes, pad=0.01)
    bar.set_label("share (%)")
