"""A pipeline as text that others draw: SVG for notebooks, and Graphviz.

Shapes say what is what: a source has round ends, a vertex is a rectangle, a sink points to the
right; what is not there is dashed. A thick line may carry more than one row in a phase.
"""

from __future__ import annotations

import html
from collections.abc import Iterator

from specstream.figures.palette import QUIET, SPARE, look
from specstream.pipelines.arrangement import (
    LINE,
    LOST,
    TEXT,
    Arrangement,
    Box,
    Kind,
    Point,
    problem_of,
    several_rows,
)
from specstream.pipelines.graph import Graph

__all__ = ["COLOURS", "arrow", "line_colours", "outline", "stroke", "svg", "to_dot"]

COLOURS: dict[Kind, tuple[str, str]] = {
    "source": (look("value").colour, "#e6f1f8"),
    "vertex": ("#444444", "#ffffff"),
    "sink": (look("Auto").colour, "#e5f5f0"),
    "lost": (look("eager").colour, "#ffffff"),
}
"""Of the edge of a box, and inside."""
_FONT = "DejaVu Sans Mono, Menlo, Consolas, monospace"
_NAMESPACE = "//www.w3.org/2000/svg"  # a name, which leads nowhere
_ROUND = 0.5523  # where the handles of a quarter of a circle are
_ARROW = 6.0
_MOST_ALIKE = 12

Part = tuple[Point, ...]


def stroke(several: bool) -> float:
    """Width of a line."""
    return 2.4 if several else 1.1


def line_colours(picture: Arrangement) -> dict[str, str]:
    """Of each stream; of a few lines all have one."""
    streams = list(dict.fromkeys(line.stream for line in picture.lines))
    if len(picture.lines) <= _MOST_ALIKE:
        return dict.fromkeys(streams, QUIET)
    found: dict[str, str] = {}
    for number, name in enumerate(streams):
        readers = {line.to for line in picture.lines if line.stream == name}
        # Those that arrive at the same box differ, as far as there are colours.
        beside = {found.get(line.stream) for line in picture.lines if line.to in readers}
        in_turn = [SPARE[(number + more) % len(SPARE)].colour for more in range(len(SPARE))]
        found[name] = next((one for one in in_turn if one not in beside), in_turn[0])
    return found


def outline(box: Box) -> tuple[Part, ...]:
    """Of a box: where it begins, then one point for a straight line there, three for a curve."""
    left, top, right, bottom = box.x, box.y, box.x + box.width, box.y + box.height
    if box.kind == "source":
        r = min(box.height / 2, LINE)
        h = r * (1 - _ROUND)
        return (
            ((left + r, top),),
            ((right - r, top),),
            ((right - h, top), (right, top + h), (right, top + r)),
            ((right, bottom - r),),
            ((right, bottom - h), (right - h, bottom), (right - r, bottom)),
            ((left + r, bottom),),
            ((left + h, bottom), (left, bottom - h), (left, bottom - r)),
            ((left, top + r),),
            ((left, top + h), (left + h, top), (left + r, top)),
        )
    if box.kind == "sink":
        tip, middle = right - LINE, (top + bottom) / 2
        return (
            ((left, top),), ((tip, top),), ((right, middle),), ((tip, bottom),),
            ((left, bottom),), ((left, top),),
        )  # fmt: skip
    return (
        ((left, top),), ((right, top),), ((right, bottom),), ((left, bottom),), ((left, top),)
    )  # fmt: skip


def arrow(end: Point) -> tuple[Point, Point, Point]:
    """The head of a line that arrives there, from the left."""
    x, y = end
    return (x - _ARROW, y - _ARROW / 2), (x - _ARROW, y + _ARROW / 2), (x, y)


# ---- SVG ----


def svg(picture: Arrangement) -> str:
    """The picture, with nothing that runs and nothing from elsewhere.

    >>> import specstream as ss
    >>> from specstream.pipelines.arrangement import arranged
    >>> p = ss.Pipeline("a < b")
    >>> _ = p.source("ticks", {"price": float})
    >>> svg(arranged(p._graph)).partition("</title>")[0].partition("<title>")[2]
    'pipeline a &lt; b'
    """
    return "\n".join(_svg(picture)) + "\n"


def _svg(picture: Arrangement) -> Iterator[str]:
    width, height = picture.width, picture.height
    yield (
        f'<svg xmlns="http:{_NAMESPACE}" width="{width:g}" height="{height:g}" '
        f'viewBox="0 0 {width:g} {height:g}" font-family="{_FONT}" font-size="{TEXT:g}">'
    )
    yield f"<title>{html.escape(f'pipeline {picture.title}')}</title>"
    yield '<rect width="100%" height="100%" fill="#ffffff"/>'
    yield _text((LINE, 1.5 * LINE), picture.title, "start", bold=True)
    colours = line_colours(picture)
    for line in picture.lines:
        colour = colours[line.stream]
        title = f"{line.stream} to {line.to}" + (f", as {line.input}" if line.input else "")
        yield (
            f'<path d="{_path(((line.start,), *line.parts))}" fill="none" stroke="{colour}" '
            f'stroke-width="{stroke(line.several):g}"><title>{html.escape(title)}</title></path>'
        )
        points = " ".join(f"{x:g},{y:g}" for x, y in arrow(line.end))
        yield f'<polygon points="{points}" fill="{colour}"/>'
    for box in picture.boxes:
        edge, inside = COLOURS[box.kind]
        dashes = ' stroke-dasharray="4 3"' if box.kind == LOST else ""
        yield f"<g><title>{html.escape(f'{box.kind} {box.name}')}</title>"
        yield (
            f'<path d="{_path(outline(box))} Z" fill="{inside}" stroke="{edge}" '
            f'stroke-width="1.3"{dashes}/>'
        )
        for number, name in enumerate(box.inputs):
            x, y = box.entry(number)
            yield _text((x + LINE / 2, y), name, "start")
        if box.inputs:
            x = box.x + box.names_width
            ends = f'y1="{box.y:g}" y2="{box.y + box.height:g}"'
            yield f'<line x1="{x:g}" x2="{x:g}" {ends} stroke="{edge}" stroke-width="0.6"/>'
        for place, text, bold in texts(box):
            yield _text(place, text, "middle", bold)
        yield "</g>"
    for number, note in enumerate(reversed(picture.notes)):
        yield _text((LINE, height - LINE * (number + 1)), note, "start")
    yield "</svg>"


def texts(box: Box) -> Iterator[tuple[Point, str, bool]]:
    """The lines of a box: the middle of each, and whether it is the name."""
    x, y = box.middle
    every = (box.title, *box.lines)
    for number, text in enumerate(every):
        yield (x, y + LINE * (number - (len(every) - 1) / 2)), text, number == 0


def _path(parts: tuple[Part, ...]) -> str:
    (start,), *others = parts
    commands = [f"M{start[0]:g} {start[1]:g}"]
    for part in others:
        points = " ".join(f"{x:g} {y:g}" for x, y in part)
        commands.append(f"{'L' if len(part) == 1 else 'C'}{points}")
    return " ".join(commands)


def _text(place: Point, text: str, anchor: str, bold: bool = False) -> str:
    x, y = place
    weight = ' font-weight="bold"' if bold else ""
    return (
        f'<text x="{x:g}" y="{y + 0.35 * TEXT:g}" text-anchor="{anchor}" fill="#000000"{weight}>'
        f"{html.escape(text)}</text>"
    )


# ---- Graphviz ----


def to_dot(graph: Graph) -> str:
    """A graph in the language of Graphviz."""
    return "\n".join(_dot(graph)) + "\n"


def _dot(graph: Graph) -> Iterator[str]:
    several, problem = several_rows(graph), problem_of(graph)
    yield f"digraph {_quoted(graph.name)} {{"
    yield "  rankdir=LR;"
    yield "  node [fontname=monospace];"
    yield "  edge [fontname=monospace];"
    if problem is not None:
        yield f"  label={_quoted(problem)};"
        yield "  labelloc=b;"
    for name, source in graph.sources.items():
        columns = [f"{one}: {column}" for one, column in source.columns]
        yield f"  {_quoted(name)} [shape=oval, label={_quoted(name, *columns)}];"
    for name, vertex in graph.vertices.items():
        operator = vertex.operator.sign or vertex.operator.name
        more = [operator] * (operator != name) + ["several rows"] * (name in several)
        yield f"  {_quoted(name)} [shape=box, label={_quoted(name, *more)}];"
    declared = set(graph.names)
    lost = [one.stream for of in graph.vertices.values() for one in of.inputs]
    for name in dict.fromkeys(one for one in lost if one not in declared):
        yield f"  {_quoted(name)} [shape=box, style=dashed, label={_quoted(name, 'not declared')}];"
    for name in graph.sinks:
        yield f"  {_quoted(f'sink {name}')} [shape=house, orientation=270, label={_quoted(name)}];"
    for name, vertex in graph.vertices.items():
        for one in vertex.inputs:
            how = _edge(one.name, one.stream in several)
            yield f"  {_quoted(one.stream)} -> {_quoted(name)}{how};"
    for name, sink in graph.sinks.items():
        to = _quoted(f"sink {name}")
        yield f"  {_quoted(sink.stream)} -> {to}{_edge('', sink.stream in several)};"
    yield "}"


def _edge(name: str, several: bool) -> str:
    attributes = [f"label={_quoted(name)}"] * bool(name) + ["penwidth=2.5"] * several
    return f" [{', '.join(attributes)}]" if attributes else ""


def _quoted(*lines: str) -> str:
    def plain(text: str) -> str:
        return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

    return '"' + "\\n".join(map(plain, lines)) + '"'
