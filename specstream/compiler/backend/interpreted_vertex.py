"""A vertex of a pipeline that Python runs as it is written, among those that are compiled.

The code of a phase calls the runtime where such a vertex stands, and that calls Python. What the
vertex reads is handed over as words, in the order of :attr:`InterpretedVertex.given`: the order key
of what runs, the seed of random numbers, the path, whether each input has a row, and of those that
have one the values of their columns. What is kept of the others Python reads in the state, as far
as the function asks for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from specstream.compiler.frontend.program import Program
from specstream.declarations.containers import Shape
from specstream.declarations.schema import Column, Schema
from specstream.declarations.state_layout import Field, Layout

__all__ = ["KEY", "Input", "InterpretedVertex", "note_vertex", "shown_path"]

KEY = ("timestamp", "source", "sequence", "seed")
"""The first words that such a vertex is given."""


@dataclass(frozen=True)
class Input:
    """One input of the vertex.

    Attributes:
        name: of it; empty where the operator has an event.
        columns: that are read of it.
        last: of each column that is kept for phases in which it has no row, the fields of the state
            that hold the value and whether it was null.
        known: the field that says whether it ever had a row; None: it always has one.
    """

    name: str
    columns: Schema
    last: dict[str, tuple[Field, Field | None]]
    known: Field | None


@dataclass(frozen=True)
class InterpretedVertex:
    """What is known of it when a phase is compiled, and when one runs.

    Attributes:
        name: of the vertex.
        pipeline: name of its pipeline.
        program: its function.
        layout: of its own fields, where they lie in the state of all.
        emits: columns of its rows.
        inputs: what it reads.
        levels: of the numbers of a path.
        by_time: whether a phase is all events of one time.
        salt: what its random numbers differ by from those of others.
    """

    name: str
    pipeline: str
    program: Program
    layout: Layout
    emits: Schema
    inputs: tuple[Input, ...]
    levels: tuple[int, ...]
    by_time: bool
    salt: int

    @cached_property
    def given(self) -> dict[str, int]:
        """Where each word stands: those of the key, ``path.0``, ``changed.input``, and of a column
        ``input.column``, with ``null`` in front whether it is null."""
        names = [*KEY, *(f"path.{axis}" for axis in range(len(self.levels)))]
        names += [f"changed.{one.name}" for one in self.inputs]
        for one in self.inputs:
            names += [f"{one.name}.{name}" for name in one.columns.names]
            names += [f"null {one.name}.{name}" for name in one.columns.nullable]
        return {name: at for at, name in enumerate(names)}

    @property
    def row_words(self) -> int:
        """Words of a row that it sends."""
        return self.emits.row_words - 1

    @property
    def key(self) -> Shape:
        """Of its timers."""
        timers = self.layout.timers
        assert timers is not None
        assert timers.container is not None
        return timers.container.key

    def column(self, of: int, name: str) -> Column:
        """A column of an input, by its number."""
        columns = self.inputs[of].columns
        return columns.columns[columns.names.index(name)]


def shown_path(levels: Sequence[int], by_time: bool, path: Sequence[int]) -> str:
    """Where an interpreted vertex ran, as its errors show it: a path with all levels' numbers.

    Elsewhere a path has no numbers of the levels where they are always 0.

    >>> shown_path((1, 3), False, (0, 2))
    '0, 0, 2'
    """
    first = 0 if by_time else 1
    numbers = dict(zip(levels, path, strict=True))
    last = max((level for level, number in numbers.items() if number), default=first)
    return ", ".join(str(numbers.get(level, 0)) for level in range(first, last + 1))


def note_vertex(error: BaseException, vertex: str, pipeline: str, path: str) -> None:
    """Tells in an exception which vertex has raised it, and in which run of it."""
    error.add_note(f"raised by vertex {vertex!r} of pipeline {pipeline!r}, path ({path})")
    vars(error)["specstream_vertex"] = vertex
