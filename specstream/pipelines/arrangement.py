"""Where everything stands in a picture of a pipeline: boxes, and the lines between them.

From left to right by level, which is the longest way from a source. A line that passes a level has
a place of its own there, like a box, and lines bend only between levels: none goes through a box.
Names of inputs stand inside the box of their vertex, where the lines arrive, so that no two texts
can meet. The order in a level is that with the fewest crossings of some that are tried. The same
graph gives the same picture.

Lengths are points. A graph that cannot be run is arranged as well: what reads something that is not
there, or that comes back from later on, reads a box of its own that says so.
"""

from __future__ import annotations

import bisect
import itertools
import textwrap
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from specstream.errors import DeclarationError
from specstream.pipelines.emissions import emits_at_most_once
from specstream.pipelines.graph import Graph

__all__ = [
    *("LINE", "LOST", "TEXT", "Arrangement", "Box", "Kind", "Line", "Point", "arranged"),
    *("at_most_one_row", "problem_of", "several_rows", "shortened"),
]

Kind = Literal["source", "vertex", "sink", "lost"]
LOST: Kind = "lost"
"""What is read and is not there, or comes from later on."""

TEXT = 10.0
"""Size of the letters, which are all of one width."""
LINE = 14.0
"""From line to line of a text."""
_LETTER = 0.63 * TEXT
_PAD = 8.0
_MARGIN = 14.0
_GAP = 14.0  # between two boxes of a level
_PASSES = 7.0  # above and below a line that passes a level
_LONGEST = 26  # letters
_MOST_COLUMNS = 6
_SWEEPS = 12
_EASED = 10
_WRAPPED = 78

Point = tuple[float, float]


@dataclass
class Box:
    """A source, a vertex or a sink, in its place.

    Attributes:
        kind: which of them.
        name: of it.
        title: the same, shortened.
        lines: of text below.
        inputs: names of its inputs, shortened; of one that has one without a name none.
        several: whether more than one row may come of it in a phase.
        x, y: left upper corner.
        width, height: of it.
    """

    kind: Kind
    name: str
    title: str
    lines: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    several: bool = False
    x: float = 0.0
    y: float = 0.0
    width: float = 0.0
    height: float = 0.0

    def __post_init__(self) -> None:
        rows = 1 + len(self.lines)
        self.height = 2 * _PAD - 2 + LINE * max(rows, len(self.inputs))
        self.width = self.names_width + _wide(self.title, *self.lines) + 2 * _PAD
        if self.kind == "source" or self.kind == "sink":  # round ends
            self.width += LINE

    @property
    def names_width(self) -> float:
        """Of the part with the names of inputs."""
        return _wide(*self.inputs) + 2 * _PAD if self.inputs else 0.0

    @property
    def middle(self) -> Point:
        """Of the text."""
        indent = self.names_width
        right = self.width - (LINE / 2 if self.kind == "sink" else 0.0)
        return self.x + (indent + right) / 2, self.y + self.height / 2

    def entry(self, number: int) -> Point:
        """Where an input arrives."""
        rows = max(len(self.inputs), 1)
        return self.x, self.y + self.height / 2 + LINE * (number - (rows - 1) / 2)

    @property
    def exit(self) -> Point:
        """Where the rows leave."""
        return self.x + self.width, self.y + self.height / 2


@dataclass(frozen=True)
class Line:
    """From a box to an input of another one.

    Attributes:
        stream: name of the source or vertex that it comes from.
        to: name of the vertex or sink that it goes to, and which of the inputs.
        input: name of the input; may be empty.
        several: whether it may carry more than one row in a phase.
        start: where it begins.
        parts: one point for a straight line there, three for a curve.
    """

    stream: str
    to: str
    input: str
    several: bool
    start: Point
    parts: tuple[tuple[Point, ...], ...]

    @property
    def end(self) -> Point:
        return self.parts[-1][-1]


@dataclass(frozen=True)
class Arrangement:
    """All of it.

    Attributes:
        title: name of the pipeline.
        boxes: by level.
        lines: between them.
        notes: texts below.
        width, height: of the picture.
    """

    title: str
    boxes: tuple[Box, ...]
    lines: tuple[Line, ...]
    notes: tuple[str, ...]
    width: float
    height: float


def _wide(*texts: str) -> float:
    def letters(text: str) -> int:
        return sum(2 if unicodedata.east_asian_width(one) in "WF" else 1 for one in text)

    return _LETTER * max(map(letters, texts), default=0)


def shortened(text: str) -> str:
    """A text of few letters: the middle of a long one is left out.

    >>> shortened("moving_average_of_the_last_hundred_prices")
    'moving_average_…red_prices'
    """
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 11]}…{text[-10:]}"


def problem_of(graph: Graph) -> str | None:
    """Why a graph cannot be run; None: it can."""
    try:
        graph.check()
    except DeclarationError as error:
        return str(error)
    return None


def at_most_one_row(graph: Graph) -> set[str]:
    """The vertices of which one run emits one row at most."""
    operators = {of.operator for of in graph.vertices.values()}
    once = {operator for operator in operators if emits_at_most_once(operator)}
    return {name for name, of in graph.vertices.items() if of.operator in once}


def several_rows(graph: Graph) -> set[str]:
    """The vertices of which more than one row may come in a phase, as far as the graph goes; of
    phases by time the sources as well."""
    found = set(graph.vertices) - at_most_one_row(graph)
    found |= set(graph.sources) if graph.by_time else set()
    while True:
        more = {
            name
            for name, of in graph.vertices.items()
            if name not in found and any(one.stream in found for one in of.inputs)
        }
        if not more:
            return found
        found |= more


# ---- what there is, and on which level ----


@dataclass
class _Node:
    """A box, or where a stream passes a level."""

    key: tuple[str, str]
    level: int
    box: Box | None = None
    y: float = 0.0  # of the middle

    @property
    def height(self) -> float:
        return 2 * _PASSES if self.box is None else self.box.height

    @property
    def gap(self) -> float:
        return 0.0 if self.box is None else _GAP


@dataclass(frozen=True)
class _Edge:
    stream: tuple[str, str]
    to: tuple[str, str]
    number: int
    input: str


@dataclass
class _Drawn:
    """What is to be drawn."""

    graph: Graph
    boxes: dict[tuple[str, str], Box] = field(default_factory=dict)
    edges: list[_Edge] = field(default_factory=list)

    def __post_init__(self) -> None:
        graph, several = self.graph, several_rows(self.graph)
        for name, source in graph.sources.items():
            columns = [f"{one}: {column}" for one, column in source.columns]
            if len(columns) > _MOST_COLUMNS:
                columns[_MOST_COLUMNS - 1 :] = [f"and {len(columns) - _MOST_COLUMNS + 1} more"]
            lines = tuple(map(shortened, columns))
            self.boxes["", name] = Box("source", name, shortened(name), lines)
        for name, vertex in graph.vertices.items():
            operator, sign = vertex.operator.name, vertex.operator.sign
            title = sign or shortened(name)
            lines = (shortened(name),) if sign else ()
            lines += () if operator == name or sign else (shortened(operator),)
            lines += ("several rows",) if name in several else ()
            inputs = tuple(shortened(one.name) for one in vertex.inputs if one.name)
            box = Box("vertex", name, title, lines, inputs, name in several)
            self.boxes["", name] = box
        later = _back_edges(graph)
        for name, vertex in graph.vertices.items():
            for number, one in enumerate(vertex.inputs):
                stream = ("", one.stream)
                if one.stream not in graph.names:
                    stream = self.lost(name, one.stream, "not declared")
                elif (name, number) in later:
                    stream = self.lost(name, one.stream, "comes from later on")
                self.edges.append(_Edge(stream, ("", name), number, one.name))
        for name, sink in graph.sinks.items():
            self.boxes["sink", name] = Box("sink", name, shortened(name))
            self.edges.append(_Edge(("", sink.stream), ("sink", name), 0, ""))

    def lost(self, reader: str, name: str, why: str) -> tuple[str, str]:
        key = (f"lost {reader}", name)
        self.boxes[key] = Box(LOST, name, shortened(name), (why,))
        return key

    def levels(self) -> dict[tuple[str, str], int]:
        """Of sources 0; of others one more than the highest that they read; of what is lost one
        less than its reader."""
        before: dict[tuple[str, str], list[tuple[str, str]]] = {key: [] for key in self.boxes}
        for edge in self.edges:
            before[edge.to].append(edge.stream)
        found: dict[tuple[str, str], int] = {}
        left = list(self.boxes)
        while left:  # sources, then what reads them, and so on; there is no cycle any more
            ready = [key for key in left if all(one in found for one in before[key])]
            for key in ready:
                found[key] = 1 + max((found[one] for one in before[key]), default=-1)
            left = [key for key in left if key not in found]
        for edge in self.edges:
            if self.boxes[edge.stream].kind == LOST:
                found[edge.stream] = max(found[edge.to] - 1, 0)
        return found


def _back_edges(graph: Graph) -> set[tuple[str, int]]:
    """The inputs without which there is no cycle: vertex and number of the input."""
    found: set[tuple[str, int]] = set()
    state: dict[str, int] = dict.fromkeys(graph.vertices, 0)  # 1: on the way, 2: done
    for root in graph.vertices:
        way = [(root, 0)] if state[root] == 0 else []
        while way:
            name, number = way.pop()
            state[name] = 1
            inputs = graph.vertices[name].inputs
            if number == len(inputs):
                state[name] = 2
                continue
            way.append((name, number + 1))
            stream = inputs[number].stream
            if state.get(stream) == 1:
                found.add((name, number))
            elif state.get(stream) == 0:
                way.append((stream, 0))
    return found


# ---- order and place ----


Pair = tuple[_Node, _Node, float]
"""Two nodes of neighbouring levels that are joined, and how far from the middle of the second."""


@dataclass
class _Table:
    """The nodes by level, from above to below."""

    levels: list[list[_Node]]
    pairs: list[list[Pair]]

    @classmethod
    def of(cls, drawn: _Drawn) -> tuple[_Table, dict[tuple[str, str], list[_Node]]]:
        """It, and of each stream its own node and those where it passes."""
        levels = drawn.levels()
        table: list[list[_Node]] = [[] for _ in range(max(levels.values(), default=0) + 1)]
        chains: dict[tuple[str, str], list[_Node]] = {}
        last = dict(levels)
        for edge in drawn.edges:
            last[edge.stream] = max(last[edge.stream], levels[edge.to] - 1)
        for key, box in drawn.boxes.items():
            chain = [_Node(key, levels[key], box)]
            chain += [_Node(key, at) for at in range(levels[key] + 1, last[key] + 1)]
            chains[key] = chain
            for node in chain:
                table[node.level].append(node)
        pairs: list[list[Pair]] = [[] for _ in table]
        for chain in chains.values():
            for one, other in itertools.pairwise(chain):
                pairs[one.level].append((one, other, 0.0))
        for edge in drawn.edges:
            chain, node = chains[edge.stream], chains[edge.to][0]
            box = drawn.boxes[edge.to]
            from_middle = box.entry(edge.number)[1] - box.y - box.height / 2
            pairs[node.level - 1].append(
                (chain[node.level - 1 - chain[0].level], node, from_middle)
            )
        return cls(table, pairs), chains

    def untangle(self) -> None:
        """Takes the order of the fewest crossings that sweeps over the levels find."""
        best, least = [list(level) for level in self.levels], self.crossings()
        for sweep in range(_SWEEPS):
            if least == 0:
                break
            forth = sweep % 2 == 0
            range_of = range(1, len(self.levels))
            for at in range_of if forth else reversed(range_of):
                self.sort(at if forth else at - 1, forth)
            found = self.crossings()
            if found < least:
                best, least = [list(level) for level in self.levels], found
        self.levels = best

    def sort(self, at: int, forth: bool) -> None:
        """Orders a level by where the neighbours of its nodes are."""
        other = self.levels[at - 1 if forth else at + 1]
        places = {id(node): place for place, node in enumerate(other)}
        beside: dict[int, list[float]] = {id(node): [] for node in self.levels[at]}
        for one, two, entry in self.pairs[at - 1 if forth else at]:
            own, neighbour = (two, one) if forth else (one, two)
            slight = 0.0 if forth else entry / 1e4  # names of inputs, from above to below
            beside[id(own)].append(places[id(neighbour)] + slight)
        before = {id(node): place for place, node in enumerate(self.levels[at])}

        def wanted(node: _Node) -> tuple[float, int]:
            found = beside[id(node)]
            return (sum(found) / len(found) if found else before[id(node)], before[id(node)])

        self.levels[at].sort(key=wanted)

    def crossings(self) -> int:
        total = 0
        for at, pairs in enumerate(self.pairs[:-1]):
            left = {id(node): place for place, node in enumerate(self.levels[at])}
            right = {id(node): place for place, node in enumerate(self.levels[at + 1])}
            ends = sorted((left[id(a)], right[id(b)], entry) for a, b, entry in pairs)
            seen: list[tuple[int, float]] = []
            for _, *end in ends:
                place = (int(end[0]), end[1])
                total += len(seen) - bisect.bisect_right(seen, place)
                bisect.insort(seen, place)
        return total

    def place(self) -> None:
        """Heights: near the neighbours, in the order, without touching."""
        for level in self.levels:
            for node, y in zip(level, _apart(level, [0.0] * len(level)), strict=True):
                node.y = y
        for sweep in range(_EASED):
            forth = sweep % 2 == 0
            numbers = range(len(self.levels))
            for at in numbers if forth else reversed(numbers):
                wanted: dict[int, list[float]] = {id(node): [] for node in self.levels[at]}
                for one, two, entry in self.pairs[at - 1] if at and (forth or sweep > 1) else ():
                    wanted[id(two)].append(one.y - entry)
                for one, two, entry in self.pairs[at] if not forth or sweep > 1 else ():
                    wanted[id(one)].append(two.y + entry)
                level = self.levels[at]
                means = [
                    sum(wanted[id(node)]) / len(wanted[id(node)]) if wanted[id(node)] else node.y
                    for node in level
                ]
                for node, y in zip(level, _apart(level, means), strict=True):
                    node.y = y


def _apart(level: Sequence[_Node], wanted: Sequence[float]) -> list[float]:
    """Heights as near to those wanted as the order and the room between nodes allow."""
    shift = [0.0]
    for one, other in itertools.pairwise(level):
        shift.append(shift[-1] + (one.height + other.height) / 2 + max(one.gap, other.gap))
    # Least squares under an order: neighbours that would get too near go on as one.
    groups: list[tuple[float, int]] = []
    for value in (want - of for want, of in zip(wanted, shift, strict=False)):
        mean, count = value, 1
        while groups and groups[-1][0] > mean:
            before, many = groups.pop()
            mean, count = (before * many + mean * count) / (many + count), many + count
        groups.append((mean, count))
    flat = [mean for mean, count in groups for _ in range(count)]
    return [round(mean + of, 1) for mean, of in zip(flat, shift, strict=False)]


# ---- the picture ----


def arranged(graph: Graph) -> Arrangement:
    """Where everything stands.

    >>> import specstream as ss
    >>> p = ss.Pipeline("nothing_yet")
    >>> _ = p.source("ticks", {"price": float})
    >>> [(box.kind, box.name, box.lines) for box in arranged(p._graph).boxes]
    [('source', 'ticks', ('price: float',))]
    """
    drawn = _Drawn(graph)
    table, chains = _Table.of(drawn)
    table.untangle()
    table.place()
    problem = problem_of(graph)
    notes = tuple(textwrap.wrap(problem, _WRAPPED)) if problem is not None else ()
    notes = ("a phase is all events of one time",) * graph.by_time + notes
    top = min((node.y - node.height / 2 for of in table.levels for node in of), default=0.0)
    move = _MARGIN + 1.5 * LINE - top
    bottom = _MARGIN + 1.5 * LINE
    bounds: list[tuple[float, float]] = []
    right = _MARGIN
    for at, level in enumerate(table.levels):
        ends = {id(two) for _, two, _ in table.pairs[at - 1]} if at else set()
        if at:
            right += 44.0 + min(2.5 * max(len(table.pairs[at - 1]), len(ends)), 70.0)
        left = right
        for node in level:
            node.y += move
            bottom = max(bottom, node.y + node.height / 2)
            if node.box is not None:
                node.box.x, node.box.y = left, round(node.y - node.height / 2, 1)
                right = max(right, left + node.box.width)
        bounds.append((left, right))
    boxes = tuple(node.box for level in table.levels for node in level if node.box is not None)
    lines = []
    for edge in drawn.edges:
        box, to = drawn.boxes[edge.stream], drawn.boxes[edge.to]
        way = _way(chains[edge.stream], to.entry(edge.number), bounds, chains[edge.to][0].level)
        names = edge.stream[1], edge.to[1], edge.input
        lines.append(Line(*names, box.several, box.exit, tuple(way)))
    wide = max(right, _MARGIN + _wide(graph.name, *notes)) + _MARGIN
    height = bottom + _MARGIN + (LINE * len(notes) + _PAD if notes else 0.0)
    return Arrangement(graph.name, boxes, tuple(lines), notes, round(wide, 1), round(height, 1))


def _way(
    chain: Sequence[_Node], end: Point, bounds: Sequence[tuple[float, float]], level: int
) -> Iterator[tuple[Point, ...]]:
    """The parts of a line: straight along levels, bent between them."""
    first = chain[0]
    assert first.box is not None
    height = first.box.exit[1]
    for at in range(first.level, level):
        right = bounds[at][1]
        yield ((right, height),)
        to = (bounds[at + 1][0], chain[at + 1 - first.level].y) if at + 1 < level else end
        half = (right + to[0]) / 2
        yield (half, height), (half, to[1]), to
        height = to[1]
