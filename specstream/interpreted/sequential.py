"""The sequential run of an interpreted operator: its own function, one event after the other.

It has the face of :class:`specstream.compiler.oracle.oracle.Oracle`, which runs operators that are
compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from specstream.columns.derived import NO_TEXTS
from specstream.columns.exception_texts import leaving
from specstream.columns.strings import StringTable
from specstream.compiler.frontend.program import Program
from specstream.compiler.oracle_objects.entries import Due
from specstream.compiler.oracle_objects.firing import Firing
from specstream.declarations.schema import Schema
from specstream.declarations.state_layout import Field, Layout
from specstream.interpreted.events import Emit, check_returned, make_event, make_timer
from specstream.interpreted.memory import Memory
from specstream.interpreted.state import Elements, make_state
from specstream.interpreted.values import Texts

__all__ = ["Sequential"]


class Sequential(Firing):
    """Runs an interpreted operator over one set of columns.

    Args:
        program: what is run.
        layout: the state's layout.
        words: state words, changed in place; of containers by :meth:`settle`.

    Attributes:
        rows: emitted rows so far: (row of the event, value, value ...).
        by_vertex: of a pipeline, which this is none.
    """

    def __init__(self, program: Program, layout: Layout, words: npt.NDArray[np.int64]) -> None:
        super().__init__(program, layout)
        self._memory = Memory(layout, words)
        self.rows: list[tuple[Any, ...]] = []
        self.by_vertex: dict[str, tuple[int, int]] = {}
        self._row = 0

    def begin(
        self,
        event: Schema,
        emits: Schema,
        columns: Sequence[npt.NDArray[Any]],
        first_sequence: int,
        seed: int,
        sequences: npt.NDArray[np.int64] | None = None,
        strings: StringTable | None = None,
        texts: Mapping[str, object] = NO_TEXTS,
    ) -> None:
        """Sets the columns that :meth:`run` takes its events from; all strings are entered."""
        assert strings is not None
        assert not texts
        memory = self._memory
        self._columns, self._first, self._sequences = columns, first_sequence, sequences
        self._at_event()
        self._texts, self._seed = Texts(None, strings), seed
        elements = Elements(memory, self._layout, strings)
        self._codec = elements.codec
        self._state, self._begin = make_state(self._layout, memory, elements)
        self._event = make_event(event, memory, seed, self._texts)
        self.rows = []
        self._emit = Emit(emits, self._put, strings)

    def _at_event(self) -> None:
        memory = self._memory
        memory.columns, memory.first_sequence = self._columns, self._first
        memory.sequences = self._sequences

    def _put(self, words: tuple[Any, ...]) -> None:
        self.rows.append((self._row, *words))

    def settle(self) -> None:
        """Writes what the containers hold into the words, for whoever looks at those."""
        self._memory.settle()

    def run(self, row: int) -> None:
        """Fires the timers that are due before it, and runs one event; what raises changes nothing
        and emits nothing."""
        memory = self._memory
        time = int(self._columns[0][row])
        if self._layout.goes_by_time:
            self.fire(time)
        memory.row = row
        process, state = self._program.oracle, self._state
        if self._layout.fields:
            self._run(lambda: process(state, self._event, self._emit), row)
        else:
            self._run(lambda: process(self._event, self._emit), row)
        if self._timers:
            self.clocked.clock = max(self.clocked.clock, time)

    def _run(self, function: Callable[[], object], row: int) -> None:
        memory, emitted = self._memory, len(self.rows)
        memory.begin()
        for begin in self._begin:
            begin()
        self._row = row
        try:
            check_returned(function())
        except BaseException as error:
            leaving(error)
            self.take_back()
            del self.rows[emitted:]
            raise

    def take_back(self) -> None:
        """Takes back what the event or firing that ran last has changed; its rows stay."""
        self._memory.undo()

    @property
    def has_changed(self) -> bool:
        """Whether the event or firing that ran last may have changed anything."""
        return bool(self._memory.journal)

    # ---- what goes by time ----

    def store(self, field: Field) -> Any:
        return self._memory.containers[self._layout.container_number(field)]

    def _run_timer(self, program: Program, field: Field, due: Due, time: int, number: int) -> None:
        memory, of, (at, _, key) = self._memory, field.container, due
        assert of is not None
        own = (time, -(2**63), at, *self._codec.to_words(of.key)(key))
        memory.columns, memory.sequences = [np.array([one]) for one in own], None
        memory.row, memory.first_sequence = 0, number
        timer = make_timer(of.key, memory, self._seed, self._texts)
        try:
            self._run(lambda: program.oracle(self._state, timer, self._emit), number - 2**63)
        finally:
            self._at_event()
