"""From what the C runtime has counted (``profile.c``) to fields, indices and lines of source.

It counts the words that runs were dropped for, in a table of fixed size, and with
``Engine(..., profile=True)`` the lines on which they were accessed.
"""

from __future__ import annotations

import ast
import bisect
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from specstream.compiler.frontend.program import Program, Written
from specstream.declarations.state_layout import Field, Layout
from specstream.profiling.container_parts import container_of

if TYPE_CHECKING:
    from specstream._native import ss_hot_place

__all__ = [
    *("HotPlace", "HotWord", "Line", "conflicts_by_vertex", "hot_places", "hot_words"),
    "uses_of",
]

_WORD_BYTES = 8


@dataclass(frozen=True)
class HotPlace:
    """One remembered place, as the runtime knows it.

    Attributes:
        word: index in the state.
        bytes: mask of the element's bytes in the word; 0 for all.
        site: number of the line; 0 where lines are not counted.
        aborts: runs dropped for it, at least.
    """

    word: int
    bytes: int
    site: int
    aborts: int


@dataclass(frozen=True)
class Line:
    """A line of an operator's source.

    Attributes:
        filename: of the source.
        line: its number.
        function: that it is in.
        text: of the line.
        aborts: runs dropped for what it had accessed; None: not counted, but it names the field.
    """

    filename: str
    line: int
    function: str
    text: str
    aborts: int | None

    def __str__(self) -> str:
        return f"{os.path.basename(self.filename)}:{self.line} in {self.function}: {self.text}"


@dataclass(frozen=True)
class HotWord:
    """An element of the state that speculative runs were dropped for.

    Attributes:
        field: its name.
        index: in the field; empty for a scalar.
        aborts: runs dropped for it, at least.
        share: of all conflicts, 0 to 1.
        record: under protocol "eager": number of the ownership record. Elements with the same one
            conflict with each other. Under "value" -1.
        lines: that accessed it, those that cost most first.
        part: of a container what it is: ``positions['IBM']``, ``len(positions)``; of a record which
            field, ``orders[3].price``; else empty.
    """

    field: str
    index: tuple[int, ...]
    aborts: int
    share: float
    record: int
    lines: tuple[Line, ...]
    part: str = ""

    @property
    def vertex(self) -> str:
        """Whose field it is, of a pipeline; else empty."""
        vertex, dot, _ = self.field.partition(".")
        return vertex if dot else ""

    @property
    def name(self) -> str:
        """As the operator writes it: ``total``, ``counts[3]``, ``positions['IBM']``."""
        return self.part or self.field + (
            f"[{', '.join(map(str, self.index))}]" if self.index else ""
        )


def hot_places(remembered: Iterable[ss_hot_place]) -> tuple[HotPlace, ...]:
    """What the runtime remembers, ``struct ss_hot_place``s; the counts of all threads together."""
    counted: Counter[tuple[int, int, int]] = Counter()
    for one in remembered:
        counted[one.word, one.bytes, one.site] += one.aborts - one.others
    return tuple(HotPlace(*key, aborts) for key, aborts in counted.most_common())


def conflicts_by_vertex(layout: Layout, places: Sequence[HotPlace]) -> dict[str, int]:
    """Of a pipeline: runs dropped for the state of each vertex, the most first."""
    fields = [field for field in layout.fields if field.space == "state"]
    starts = [field.offset for field in fields]
    found: Counter[str] = Counter()
    for place in places:
        field = container_of(layout, place.word)
        field = field or fields[bisect.bisect_right(starts, place.word) - 1]
        found[field.name.partition(".")[0]] += place.aborts
    return dict(found.most_common())


def hot_words(
    program: Program,
    layout: Layout,
    places: Sequence[HotPlace],
    protocol: str,
    record_shift: int,
    conflicts: int,
    part: Callable[[Field, int], str],
) -> tuple[HotWord, ...]:
    """Elements of the state, those that cost the most first.

    ``part`` says which part of a container a word is.
    """
    fields = [field for field in layout.fields if field.space == "state"]
    starts = [field.offset for field in fields]
    regions = layout.regions(record_shift)
    by_element: defaultdict[_Element, Counter[int]] = defaultdict(Counter)
    for place in places:
        record = _record(regions, place.word) if protocol == "eager" else -1
        container = container_of(layout, place.word)
        if container is not None:
            element: _Element = container.name, (), record, part(container, place.word)
        else:
            field = fields[bisect.bisect_right(starts, place.word) - 1]
            element = field.name, _index(field, place), record, ""
            if field.record is not None:
                *index, of_record = element[1]
                where = f"[{', '.join(map(str, index))}]" if index else ""
                said = f"{field.name}{where}.{field.record.names[of_record]}"
                element = field.name, tuple(index), record, said
        by_element[element][place.site] += place.aborts
    hot = [
        HotWord(
            name,
            index,
            sites.total(),
            sites.total() / max(conflicts, 1),
            record,
            _lines(program, name, sites),
            said,
        )
        for (name, index, record, said), sites in by_element.items()
    ]
    return tuple(sorted(hot, key=lambda word: (-word.aborts, word.name)))


_Element = tuple[str, tuple[int, ...], int, str]


def _index(field: Field, place: HotPlace) -> tuple[int, ...]:
    """Which element of a field lies there; of a word without a mask the first."""
    lowest = (place.bytes & -place.bytes).bit_length() - 1 if place.bytes else 0
    byte = (place.word - field.offset) * _WORD_BYTES + lowest
    at = byte // field.storage.size
    index = []
    for length in reversed(field.shape):
        at, within = divmod(at, length)
        index.append(within)
    return tuple(reversed(index))


def _record(regions: list[tuple[int, int]], word: int) -> int:
    """A number for the ownership record: the first word of those that share it."""
    first, shift = regions[bisect.bisect_right([region[0] for region in regions], word) - 1]
    return int(first + ((word - first) >> shift << shift))


def _lines(program: Program, field: str, sites: Counter[int]) -> tuple[Line, ...]:
    counted = []
    for site, aborts in sites.most_common():
        for function, written in _functions_of(program, field):
            lines = written.text.splitlines()
            if 0 <= site - written.site < len(lines):
                counted.append(_line(function, written, site - written.site, aborts))
    return tuple(counted) or tuple(
        _line(function, written, node.lineno - 1, None)  # type: ignore[attr-defined]
        for function, written, node in uses_of(program, field)
    )


def _line(function: Any, written: Written, at: int, aborts: int | None) -> Line:
    text = written.text.splitlines()[at].strip()
    return Line(written.filename, written.line + at, function.__name__, text, aborts)


def uses_of(program: Program, field: str) -> Iterator[tuple[Any, Written, ast.AST]]:
    """Every ``x.field`` in an operator's functions, in the order of their lines.

    Of a pipeline fields are called ``vertex.field``, and functions ``vertex.function``; of what is
    kept of an input, ``vertex.input.column``, it is where that is read.
    """
    name = field.partition(".")[2] or field
    for function, written in _functions_of(program, field):
        found = [node for node in ast.walk(written.tree()) if _is_use(node, name)]
        for node in sorted(found, key=lambda node: (node.lineno, node.col_offset)):  # type: ignore[attr-defined]
            yield function, written, node


def _functions_of(program: Program, field: str) -> Iterator[tuple[Any, Written]]:
    """Those that can access a field: of a pipeline, its vertex's."""
    vertex, dot, _ = field.partition(".")
    for function, written in program.written.items():
        if not dot or function.__name__.startswith(f"{vertex}."):
            yield function, written


def _is_use(node: ast.AST, name: str) -> bool:
    one, _, column = name.partition(".")
    if column == "known" and isinstance(node, ast.Call):
        asks = isinstance(node.func, ast.Attribute) and node.func.attr == column
        return asks and any(isinstance(of, ast.Constant) and of.value == one for of in node.args)
    if not isinstance(node, ast.Attribute):
        return False
    if not column:
        return node.attr == name
    of_input = isinstance(node.value, ast.Attribute) and node.value.attr == one
    return of_input and node.attr == column.removesuffix(".null")
