"""A profile as a picture: which words cost the most, and where in their fields they lie."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import numpy.typing as npt

from specstream.files.writing import writing
from specstream.profiling.hot_words import HotWord

mpl.use("Agg")

from matplotlib import pyplot
from matplotlib.colors import PowerNorm
from matplotlib.ticker import MaxNLocator

__all__ = ["heat", "save_plot"]

_BARS = 12
_STRIPS = 3
_BINS = 256
_TEXT = 58  # characters of a line of source


def save_plot(
    hot: Sequence[HotWord], shapes: Mapping[str, tuple[int, ...]], title: str, path: Path
) -> None:
    """Bars of the hottest words with their hottest lines; below, a heat strip of each field.

    Args:
        hot: those that cost the most first; without any the picture says so.
        shapes: of the fields that they are in.
        title: above it.
        path: of the file; its ending says the format.
    """
    words = hot[:_BARS]
    fields = list(dict.fromkeys(word.field for word in hot if word.index))[:_STRIPS]
    strips = [heat(hot, field, shapes[field]) for field in fields]
    heights = [0.5 + 0.42 * max(len(words), 2), *map(_height, strips)]
    figure, panels = pyplot.subplots(
        1 + len(fields),
        figsize=(11, 1.6 + sum(heights) + 0.3 * len(fields)),
        height_ratios=heights,
        layout="constrained",
        squeeze=False,
    )
    _draw_bars(panels[0, 0], words)
    for axes, field, strip in zip(panels[1:, 0], fields, strips, strict=True):
        _draw_strip(axes, field, strip, math.prod(shapes[field]))
    figure.suptitle(title, fontsize=11)
    with writing(path):
        figure.savefig(path, dpi=120)
    pyplot.close(figure)


def _draw_bars(axes: Any, words: Sequence[HotWord]) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    if not words:
        axes.text(0.5, 0.5, "no conflicts", ha="center", va="center", transform=axes.transAxes)
        axes.set_axis_off()
        return
    at = range(len(words))
    longest = 100 * words[0].share
    axes.barh(at, [100 * word.share for word in words], height=0.62, color="#b5473c")
    axes.set_yticks(at, [word.name for word in words], family="monospace")
    axes.invert_yaxis()
    # A bar is followed by its line, so the axis is longer than the longest bar.
    axes.set_xlim(0, 2.4 * longest)
    axes.set_xticks([tick for tick in axes.get_xticks() if tick <= max(longest, 1)])
    axes.set_xlabel("percent of the conflicts", loc="left")
    for place, word in enumerate(words):
        said = f" {word.share:.1%}"
        if word.lines:
            line = word.lines[0]
            text = line.text if len(line.text) <= _TEXT else line.text[: _TEXT - 3] + "..."
            said += f"   line {line.line}: {text}"
        axes.text(100 * word.share, place, said, va="center", fontsize=8, family="monospace")


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
    return min(0.6 + 0.08 * len(drawn), 2.6)


def _draw_strip(axes: Any, field: str, drawn: npt.NDArray[np.float64], elements: int) -> None:
    rows, columns = drawn.shape
    last = columns if rows > 1 else elements
    # By the square root, so that what is lukewarm shows beside what is hot.
    image = axes.imshow(
        drawn,
        aspect="auto",
        cmap="Reds",
        norm=PowerNorm(0.5, vmin=0),
        interpolation="nearest",
        extent=(-0.5, last - 0.5, rows - 0.5, -0.5),
    )
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.set_ylabel(field, family="monospace", rotation=0, ha="right", va="center")
    if drawn.shape[0] == 1:
        axes.set_yticks([])
    axes.tick_params(labelsize=8)
    bar = axes.figure.colorbar(image, ax=axes, pad=0.01)
    bar.ax.tick_params(labelsize=7)
    bar.set_label("%", fontsize=8)
