"""Pictures of pipelines: all of it is there, nothing covers anything, the same each time."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import itertools
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text
from support.pipelines.graphs import random_pipeline
from support.pipelines.vertices import SOURCE, always, both, several

import specstream as ss
from specstream.pipelines.arrangement import Arrangement, Box, Line, arranged
from specstream.pipelines.drawing import arrow, outline
from specstream.pipelines.picture import draw_pipeline

SVG = "{http://www.w3.org/2000/svg}"


def small() -> ss.Pipeline:
    p = ss.Pipeline("crossings")
    ticks = p.source("ticks", SOURCE)
    fast, many = p.add(always, ticks, name="fast"), p.add(several, ticks, name="many")
    p.sink("signals", p.add(both, a=fast, b=many))
    return p


def cyclic() -> ss.Pipeline:
    p = ss.Pipeline("cyclic")
    ticks = p.source("ticks", SOURCE)
    p.add(both, name="one", a=ticks, b="two")
    p.sink("out", p.add(both, name="two", a="one", b="nowhere"))
    return p


def large() -> ss.Pipeline:
    """40 vertices and more: whoever draws 36 of them has 3 sources and 11 sinks as well."""
    return random_pipeline(11, most=40)


def of_long_names() -> ss.Pipeline:
    p = ss.Pipeline('"long" & <odd>\\')
    ticks = p.source("ticks_" * 12, {f"column_{n}" * 5: int for n in range(9)} | {"x": int})
    named = p.add(ss.operator(state=S, event={"x": int}, emits={"x": int})(passed), ticks)
    p.sink("preise_für_größe_und_währung", named)
    return p


class S(ss.State):
    count = ss.scalar(int)


def passed(state, event, emit):
    emit(event.x)


def nothing() -> ss.Pipeline:
    return ss.Pipeline("empty")


PIPELINES = [small, cyclic, large, of_long_names, nothing]
RANDOM = [(seed, 3 if seed % 2 else 20) for seed in range(8)]


@pytest.fixture(
    params=[*PIPELINES, *RANDOM], ids=[*(of.__name__ for of in PIPELINES), *map(str, RANDOM)]
)
def p(request: pytest.FixtureRequest) -> ss.Pipeline:
    of = request.param
    return random_pipeline(*of) if isinstance(of, tuple) else of()


def points(line: Line) -> Iterator[tuple[float, float]]:
    """Along a line."""
    at = line.start
    for part in line.parts:
        if len(part) == 1:
            ends: Any = (at, at, part[0], part[0])
        else:
            ends = (at, *part)
        for n in range(31):
            t = n / 30
            w = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3)
            x, y = (sum(w * e[axis] for w, e in zip(w, ends, strict=True)) for axis in (0, 1))
            yield x, y
        at = part[-1]


def overlap(one: Box, other: Box, room: float) -> bool:
    beside = one.x + one.width + room <= other.x or other.x + other.width + room <= one.x
    above = one.y + one.height + room <= other.y or other.y + other.height + room <= one.y
    return not (beside or above)


def test_boxes_keep_apart_and_lines_go_around_them(p: ss.Pipeline) -> None:
    picture = arranged(p._graph)
    for one, other in itertools.combinations(picture.boxes, 2):
        assert not overlap(one, other, 13.5), (one.name, other.name)
    for line in picture.lines:
        for x, y in points(line):
            assert 0 <= x <= picture.width
            assert 0 <= y <= picture.height
            for box in picture.boxes:
                inside = box.x + 0.2 < x < box.x + box.width - 0.2
                assert not (inside and box.y < y < box.y + box.height), (line, box.name)
    for box in picture.boxes:
        for part in outline(box):
            for x, y in part:
                assert box.x - 1e-6 <= x <= box.x + box.width + 1e-6
                assert box.y - 1e-6 <= y <= box.y + box.height + 1e-6


def test_every_edge_is_drawn_to_the_name_of_its_input(p: ss.Pipeline) -> None:
    graph, picture = p._graph, arranged(p._graph)
    wanted = [(one.stream, n, one.name) for n, of in graph.vertices.items() for one in of.inputs]
    wanted += [(sink.stream, name, "") for name, sink in graph.sinks.items()]
    assert sorted((one.stream, one.to, one.input) for one in picture.lines) == sorted(wanted)
    of_vertex = {box.name: box for box in picture.boxes if box.kind == "vertex"}
    for line in picture.lines:
        if line.input:
            box = of_vertex[line.to]
            number = [one.name for one in graph.vertices[line.to].inputs].index(line.input)
            assert line.end == box.entry(number)
            assert box.y < line.end[1] < box.y + box.height
        assert arrow(line.end)[2] == line.end


def test_it_goes_from_left_to_right(p: ss.Pipeline) -> None:
    picture = arranged(p._graph)
    ends = {
        **{("lost", box.name): box.x + box.width for box in picture.boxes if box.kind == "lost"},
    }
    for line in picture.lines:
        assert line.start[0] < line.end[0]
        assert all(a[0] <= b[0] + 1e-6 for a, b in itertools.pairwise(points(line)))
    places = {box.name: box.x for box in picture.boxes if box.kind in ("source", "vertex")}
    if not ends and p.name not in ("cyclic", "empty") and len(p._graph.vertices) > 1:
        levels = {one.name: one.level for one in p.describe().vertices}
        at = {
            level: {places[n] for n, of in levels.items() if of == level}
            for level in levels.values()
        }
        assert all(len(found) == 1 for found in at.values())
        in_order = [at[level].pop() for level in sorted(at)]
        assert in_order == sorted(set(in_order))


def painted(picture: Arrangement) -> tuple[Any, list[Text]]:
    figure = draw_pipeline(picture)
    canvas: Any = FigureCanvasAgg(figure)
    canvas.draw()
    return figure, [one for one in figure.findobj(Text) if one.get_text()]


def test_no_text_meets_another_one_or_leaves_its_box(p: ss.Pipeline) -> None:
    picture = arranged(p._graph)
    figure, texts = painted(picture)
    frames = [(one.get_text(), one.get_window_extent()) for one in texts]
    for (text, one), (of, other) in itertools.combinations(frames, 2):
        assert not one.overlaps(other), (text, of)
    width, height = figure.canvas.get_width_height()
    scale = width / picture.width
    boxes = [
        (box.x * scale, (box.x + box.width) * scale,
         height - (box.y + box.height) * scale, height - box.y * scale)
        for box in picture.boxes
    ]  # fmt: skip
    for text, frame in frames:
        assert frame.x0 >= 0
        assert frame.x1 <= width
        for left, right, bottom, top in boxes:
            x, y = (frame.x0 + frame.x1) / 2, (frame.y0 + frame.y1) / 2
            if left < x < right and bottom < y < top:
                assert left < frame.x0, text
                assert frame.x1 < right, text
                assert bottom < frame.y0 + 1.5, text
                assert frame.y1 - 1.5 < top, text


def test_svg_is_well_formed_and_says_all_names(p: ss.Pipeline) -> None:
    text = p._repr_svg_()
    assert text is not None
    root = ElementTree.fromstring(text)
    assert root.tag == f"{SVG}svg"
    titles = [one.text for one in root.iter(f"{SVG}title")]
    assert titles[0] == f"pipeline {p.name}"
    graph = p._graph
    for kind, names in (
        ("source", graph.sources),
        ("vertex", graph.vertices),
        ("sink", graph.sinks),
    ):
        for name in names:
            assert f"{kind} {name}" in titles
    allowed = {"svg", "title", "rect", "text", "path", "polygon", "g", "line"}
    assert {one.tag.removeprefix(SVG) for one in root.iter()} <= allowed, "nothing that runs"
    shown = {one.text for one in root.iter(f"{SVG}text")}
    assert {one.name for of in graph.vertices.values() for one in of.inputs if one.name} <= shown


def test_the_same_graph_gives_the_same_picture(p: ss.Pipeline, tmp_path: Path) -> None:
    again = arranged(p._graph)
    assert arranged(p._graph) == again
    assert p._repr_svg_() == p._repr_svg_()
    for name in ("a.png", "b.png"):
        p.draw(tmp_path / name)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


def test_dot_has_every_box_and_edge(p: ss.Pipeline) -> None:
    graph, text = p._graph, p.to_dot()
    lines = text.splitlines()
    assert lines[0].startswith("digraph ")
    assert lines[-1] == "}"
    edges = [line for line in lines if " -> " in line and 'label="pipeline' not in line]
    assert len(edges) == len(graph.sinks) + sum(len(of.inputs) for of in graph.vertices.values())
    for name in graph.names:
        assert sum(line.startswith(f'  "{name}" [') for line in lines) == 1
    for name in graph.sinks:
        assert sum(line.startswith(f'  "sink {name}" [shape=house') for line in lines) == 1
    for line in lines:  # quotes in pairs, but for those that are escaped
        assert line.replace("\\\\", "").replace('\\"', "").count('"') % 2 == 0


def test_a_wrong_graph_is_drawn_and_says_what_is_wrong() -> None:
    p = cyclic()
    picture = arranged(p._graph)
    lost = {(box.name, box.lines) for box in picture.boxes if box.kind == "lost"}
    assert ("nowhere", ("not declared",)) in lost
    assert {lines for _, lines in lost} == {("not declared",), ("comes from later on",)}
    assert "reads 'nowhere'" in " ".join(picture.notes)
    assert "reads &#x27;nowhere&#x27;" in str(p._repr_svg_())
    assert "style=dashed" in p.to_dot()
    q = ss.Pipeline("round")
    q.source("ticks", SOURCE)
    q.add(both, name="one", a="ticks", b="two")
    q.sink("out", q.add(always, "one", name="two"))
    notes = " ".join(arranged(q._graph).notes)
    assert "vertex 'one' reads what comes from itself" in notes or "from itself: " in notes


def test_shapes_and_widths_tell_without_colours() -> None:
    picture = arranged(small()._graph)
    shapes = {box.kind: tuple(len(part) for part in outline(box)) for box in picture.boxes}
    assert len(set(shapes.values())) == 3
    assert {(line.stream, line.several) for line in picture.lines} == {
        *(("ticks", False), ("fast", False), ("many", True), ("both", True))
    }
    boxes = {box.name: box for box in picture.boxes}
    assert boxes["many"].lines == ("several", "several rows")
    assert boxes["both"].inputs == ("a", "b")


def test_files_of_all_kinds(tmp_path: Path) -> None:
    p = small()
    for ending, start in ((".svg", b"<svg"), (".dot", b"digraph"), (".gv", b"digraph"),
                          (".png", b"\x89PNG"), (".pdf", b"%PDF")):  # fmt: skip
        path = tmp_path / f"p{ending}"
        p.draw(path)
        assert path.read_bytes().startswith(start)
    with pytest.raises(OSError, match="missing"):
        p.draw(tmp_path / "missing" / "p.svg")


def test_without_matplotlib_a_file_needs_the_extra_and_a_notebook_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    absent: Any = None
    monkeypatch.setitem(sys.modules, "matplotlib", absent)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", absent)
    monkeypatch.delitem(sys.modules, "specstream.pipelines.picture", raising=False)
    p = small()
    with pytest.raises(ImportError, match=r'pip install "specstream\[plot\]"'):
        p.draw(tmp_path / "p.png")
    p.draw(tmp_path / "p.svg")
    assert p._repr_svg_()


def test_a_graph_too_large_for_a_notebook_shows_as_text() -> None:
    p = ss.Pipeline("long")
    stream = p.source("ticks", SOURCE)
    for n in range(220):
        stream = p.add(always, stream, name=f"v{n}")
    p.sink("out", stream)
    assert p._repr_svg_() is None
    assert repr(p) == "Pipeline('long': 1 source, 220 vertices, 1 sink)"


def test_the_order_of_boxes_lessens_crossings() -> None:
    """Reading straight across: the streams of a shuffled bundle come out in order."""
    p = ss.Pipeline("bundle")
    names = [f"s{n}" for n in range(8)]
    for name in names:
        p.source(name, SOURCE)
    random.Random(1).shuffle(names)
    for name in names:
        p.sink(f"of_{name}", p.add(always, name, name=f"v_{name}"))
    picture = arranged(p._graph)
    columns = [
        [box.name[-1] for box in sorted(picture.boxes, key=lambda box: box.y) if box.kind == kind]
        for kind in ("source", "vertex", "sink")
    ]
    assert columns[0] == columns[1] == columns[2]
