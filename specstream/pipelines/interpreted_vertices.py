"""The interpreted vertices of a pipeline in its oracle: beside those that are compiled.

Their functions are run as they are written, over a memory of their own
(:mod:`specstream.interpreted.memory`), which shares the words of the state with the oracle's and
has other fields of it. Where the oracle only says what a compiled vertex has raised in an engine,
they are not run: their rows are those that they have sent there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from specstream.columns.strings import StringTable
from specstream.compiler.backend.interpreted_vertex import InterpretedVertex
from specstream.compiler.language.text import Text
from specstream.compiler.oracle.oracle import seed_of
from specstream.compiler.oracle_objects.entries import MemoryEntries
from specstream.declarations.codes import EMPTY
from specstream.declarations.state_layout import Layout
from specstream.errors import SpecstreamError
from specstream.interpreted.events import Emit, check_returned, make_timer
from specstream.interpreted.memory import Memory
from specstream.interpreted.state import Elements, make_state
from specstream.interpreted.values import Texts
from specstream.interpreted.vertex_events import make_vertex_event

__all__ = ["InterpretedVertices", "Recorded"]

Rows = list[tuple[Any, ...]]


class _Vertex:
    """A vertex over the memory."""

    def __init__(
        self,
        of: InterpretedVertex,
        memory: Memory,
        elements: Elements,
        strings: StringTable,
        seed: int,
    ) -> None:
        texts = Texts(None, strings)
        self.of, self.memory = of, memory
        self.rows: Rows = []
        self.state, self.begin = make_state(of.layout, memory, elements)
        self.event = make_vertex_event(of, memory, texts, elements.of)
        self.emit = Emit(of.emits, self._send, strings)
        self.timer: Any = None
        if of.program.on_timer is not None:
            self.timer = make_timer(of.key, memory, (seed ^ of.salt) % 2**64, texts)

    def _send(self, words: tuple[Any, ...]) -> None:
        self.rows.append(words)

    def call(self, fires: bool) -> Rows:
        self.rows = []
        for begin in self.begin:
            begin()
        program, given = self.of.program, (self.event, self.emit)
        function: Callable[..., object] = program.oracle
        if fires:
            assert program.on_timer is not None
            function, given = program.on_timer.oracle, (self.timer, self.emit)
        check_returned(function(self.state, *given) if self.of.layout.fields else function(*given))
        return self.rows


class InterpretedVertices:
    """The interpreted vertices over the words of a state.

    Args:
        vertices: them.
        layout: of the state of all.
        words: of it.
    """

    def __init__(
        self,
        vertices: Sequence[InterpretedVertex],
        layout: Layout,
        words: npt.NDArray[np.int64],
    ) -> None:
        self._of = {one.name: one for one in vertices}
        self._layout = layout
        own = [
            number
            for number, field in enumerate(layout.containers)
            if field.name.rpartition(".")[0] in self._of
        ]
        self._memory = Memory(layout, words)
        self._numbers = {layout.containers[number].name: number for number in own}
        self._vertices: dict[str, _Vertex] = {}

    def begin(self, strings: StringTable | None, seed: int) -> None:
        """From now on events have these strings, and random numbers this seed."""
        assert strings is not None
        memory = self._memory
        elements = Elements(memory, self._layout, strings)
        self._codec = elements.codec
        self._vertices = {
            name: _Vertex(of, memory, elements, strings, seed) for name, of in self._of.items()
        }

    def has(self, field: str) -> bool:
        """Whether a container is one of theirs."""
        return field in self._numbers

    def store(self, field: str) -> MemoryEntries:
        """The entries of one with keys."""
        found: MemoryEntries = self._memory.containers[self._numbers[field]]
        return found

    def begin_event(self) -> None:
        self._memory.begin()

    def undo(self) -> None:
        self._memory.undo()

    def settle(self) -> None:
        """Writes what the containers hold into the words."""
        self._memory.settle()

    # ---- a run ----

    def run(
        self,
        name: str,
        event: Any,
        path: Sequence[int],
        changed: Sequence[bool],
        values: dict[str, Any],
        nulls: set[str],
    ) -> Rows:
        """Runs a vertex; the rows that it sends, as words.

        Args:
            name: of it.
            event: that has the order key and the seed; of a timer that fires also what it is.
            path: of the run.
            changed: whether each input has a row.
            values: of the columns, by their names in the event.
            nulls: those that are null.
        """
        vertex, memory = self._vertices[name], self._memory
        of = vertex.of
        time, source, number = int(event.timestamp), int(event.source), int(event.sequence)
        memory.columns, memory.row = [np.array([time])], 0
        given: list[Any] = [time, source, number, seed_of(event), *path, *changed]
        for one in of.inputs:
            prefix = f"{one.name}." if one.name else ""
            given += [_word(values[prefix + name]) for name in one.columns.names]
            given += [prefix + name in nulls for name in one.columns.nullable]
        memory.words_given = given
        return vertex.call(fires=False)

    def fire(self, name: str, timer: Any) -> Rows:
        """Likewise where its timer fires."""
        vertex, memory = self._vertices[name], self._memory
        field = self._layout.field(f"{name}.{self._timers_of(vertex.of)}")
        assert field is not None
        of_timers = field.container
        assert of_timers is not None
        own = [int(timer.timestamp), -(2**63), int(timer.at)]
        own += self._codec.to_words(of_timers.key)(timer.key)
        memory.columns, memory.row = [np.array([one]) for one in own], 0
        memory.sequences, memory.first_sequence = None, int(timer.sequence)
        return vertex.call(fires=True)

    @staticmethod
    def _timers_of(of: InterpretedVertex) -> str:
        timers = of.layout.timers
        assert timers is not None
        return timers.name


def _word(value: Any) -> Any:
    """A value of the oracle as a vertex is given it."""
    if isinstance(value, Text):
        return value.code or EMPTY
    return value


class Recorded:
    """The interpreted vertices of a phase that an engine has run: what they have sent there.

    Args:
        calls: rows of each run, one after the other.
    """

    def __init__(self, calls: Sequence[Rows]) -> None:
        self._calls = iter(calls)

    def begin(self, strings: StringTable | None, seed: int) -> None:
        pass

    def begin_event(self) -> None:
        pass

    def undo(self) -> None:
        pass

    def settle(self) -> None:
        pass

    def has(self, field: str) -> bool:
        """No container: what fires is looked up in the engine's state."""
        return False

    def store(self, field: str) -> MemoryEntries:
        raise KeyError(field)

    def run(self, *_: Any) -> Rows:
        rows = next(self._calls, None)
        if rows is None:
            raise SpecstreamError(
                "an interpreted vertex runs in the sequential run, and did not in the engine. "
                "Please report the pipeline and the event"
            )
        return rows

    fire = run
