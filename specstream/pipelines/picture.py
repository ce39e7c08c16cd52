"""A pipeline drawn by matplotlib, for files of any kind that it knows."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path as File
from typing import Any

from matplotlib.figure import Figure
from matplotlib.patches import PathPatch, Polygon
from matplotlib.path import Path

from specstream.figures.style import in_style, save
from specstream.pipelines.arrangement import LINE, LOST, TEXT, Arrangement, Point
from specstream.pipelines.drawing import COLOURS, arrow, line_colours, outline, stroke, texts

__all__ = ["draw_pipeline", "save_picture"]

_INCH = 72.0  # points


def save_picture(picture: Arrangement, path: File) -> None:
    """:func:`draw_pipeline` into a file, whose ending says the format."""
    save(draw_pipeline(picture), path)


@in_style
def draw_pipeline(picture: Arrangement) -> Figure:
    """The picture, a point of it as large as one of the letters."""
    figure = Figure(figsize=(picture.width / _INCH, picture.height / _INCH))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, picture.width)
    axes.set_ylim(picture.height, 0)
    axes.set_axis_off()
    _write(axes, (LINE, 1.5 * LINE), picture.title, "left", bold=True)
    colours = line_colours(picture)
    for line in picture.lines:
        colour = colours[line.stream]
        way = _path(((line.start,), *line.parts))
        width = stroke(line.several)
        axes.add_patch(PathPatch(way, fill=False, edgecolor=colour, linewidth=width))
        axes.add_patch(Polygon(arrow(line.end), facecolor=colour, linewidth=0))
    for box in picture.boxes:
        edge, inside = COLOURS[box.kind]
        axes.add_patch(
            PathPatch(
                _path(outline(box)), facecolor=inside, edgecolor=edge, linewidth=1.3,
                linestyle=(0, (3, 2)) if box.kind == LOST else "-",
            )
        )  # fmt: skip
        for number, name in enumerate(box.inputs):
            x, y = box.entry(number)
            _write(axes, (x + LINE / 2, y), name, "left")
        if box.inputs:
            x = box.x + box.names_width
            axes.plot([x, x], [box.y, box.y + box.height], color=edge, linewidth=0.6)
        for place, text, bold in texts(box):
            _write(axes, place, text, "center", bold)
    for number, note in enumerate(reversed(picture.notes)):
        _write(axes, (LINE, picture.height - LINE * (number + 1)), note, "left")
    return figure


def _path(parts: Iterable[tuple[Point, ...]]) -> Path:
    points: list[Point] = []
    codes: list[Any] = []
    for part in parts:
        codes += [Path.CURVE4] * 3 if len(part) == 3 else [Path.LINETO if points else Path.MOVETO]
        points += part
    return Path(points, codes)


def _write(axes: Any, place: Point, text: str, side: str, bold: bool = False) -> None:
    axes.text(
        *place, text, ha=side, va="center_baseline", family="monospace", fontsize=TEXT,
        fontweight="bold" if bold else "normal", parse_math=False,
    )  # fmt: skip
