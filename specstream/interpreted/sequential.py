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
from specstream.compiler.oracle_objects.entries import MemoryTimers
from specstream.compiler.oracle_objects.timers import timer_key, timer_text
from specstream.declarations.schema import Schema
from specstream.declarations.state_layout import Layout
from specstream.interpreted.events import Emit, check_returned, make_event, make_timer
from specstream.interpreted.memory import Memory
from specstream.interpreted.state import Elements, make_state
from specstream.interpreted.values import Texts

__all__ = ["Sequential"]


class Sequential:
    """Runs an interpreted operator over one set of columns.

    Args:
        program: what is run.
        layout: the state's layout.
        words: state words, changed in place; of containers by :meth:`settle`.

    Attributes:
        rows: emitted rows so far: (row of the event, value, value ...).
        firings: number and time of the timers that have fired.
        fired: key and time for which they were set, by number.
        failed_timer: what :meth:`run` or :meth:`end` has raised, a timer has; else None.
        by_vertex: of a pipeline, which this is none.
    """

    def __init__(self, program: Program, layout: Layout, words: npt.NDArray[np.int64]) -> None:
        self._program, self._layout = program, layout
        self._memory = Memory(layout, words)
        self.rows: list[tuple[Any, ...]] = []
        self.firings: list[tuple[int, int]] = []
        self.fired: dict[int, tuple[Any, int]] = {}
        self.failed_timer: Any = None
        self.by_vertex: dict[str, tuple[int, int]] = {}
        self._ends: int | None = None
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
        timers = self._timers
        if timers is not None:
            timers.clock = max(timers.clock, time)

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
            memory.undo()
            del self.rows[emitted:]
            raise

    # ---- what goes by time ----

    @property
    def _timers(self) -> MemoryTimers | None:
        field = self._layout.timers
        if field is None:
            return None
        found: MemoryTimers = self._memory.containers[self._layout.container_number(field)]
        return found

    def fire(self, time: int) -> None:
        """Fires what is due by a time, or by that of an event before; and what expires goes."""
        timers, self.failed_timer, self._ends = self._timers, None, None
        if timers is not None:
            while (due := timers.due(max(time, timers.clock))) is not None:
                self._fire(timers, *due)
            time = max(time, timers.clock)
        self._memory.expire(time)

    def end(self) -> None:
        """The input ends: fires the timers that wait, and not those that they set."""
        timers, self.failed_timer = self._timers, None
        if timers is None:
            return
        if self._ends is None:
            self._ends = timers.last_stamp
        while (due := timers.due(timers.clock, self._ends)) is not None:
            self._fire(timers, *due)
        self._ends = None

    def _fire(self, timers: MemoryTimers, at: int, _: int, key: Any) -> None:
        memory, field, program = self._memory, timers.field, self._program.on_timer
        assert program is not None
        time, firing = max(at, timers.clock), timers.fired
        memory.expire(time)
        timers.remove(key)
        timers.fired, timers.clock, timers.floor = firing + 1, time, at
        self.firings.append((firing, time))
        own = (time, -(2**63), at, *self._codec.to_words(timers.of.key)(key))
        memory.columns, memory.sequences = [np.array([one]) for one in own], None
        memory.row, memory.first_sequence = 0, firing
        timer = make_timer(timers.of.key, memory, self._seed, self._texts)
        self.fired[firing] = timer_key(key, field), at
        try:
            self._run(lambda: program.oracle(self._state, timer, self._emit), firing - 2**63)
        except BaseException as error:
            self.failed_timer = at, 0, key
            vars(error)["specstream_timer"] = timer_key(key, field), at
            error.add_note(
                f"raised by operator {program.operator!r} when the timer "
                f"{timer_text(key, field)} fired, which was set for {at}"
            )
            raise
        finally:
            timers.floor = None
            self._at_event()
