"""What fires and what expires in a sequential run, between its events."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from specstream.compiler.frontend.program import Program
from specstream.compiler.oracle_objects.entries import Due, MemoryTimers
from specstream.compiler.oracle_objects.timers import timer_key, timer_text
from specstream.declarations.state_layout import Field, Layout
from specstream.errors import is_of_signal_handler

__all__ = ["Firing"]


class Firing(ABC):
    """A run whose timers fire.

    Attributes:
        firings: number and time of the timers that have fired.
        fired: key and time for which they were set, by number; see :func:`timer_key`.
        failed_timer: what the last event, or the end, has raised, a timer has; else None.
    """

    def __init__(self, program: Program, layout: Layout) -> None:
        self._program, self._layout = program, layout
        self._timers = layout.all_timers
        self._expiring = [one for one in layout.containers if one.container.expires]  # type: ignore[union-attr]
        self.firings: list[tuple[int, int]] = []
        self.fired: dict[int, tuple[Any, int]] = {}
        self.failed_timer: Due | None = None
        self._ends: list[int] | None = None

    @abstractmethod
    def store(self, field: Field) -> Any:
        """The entries of a field."""

    @abstractmethod
    def _run_timer(self, program: Program, field: Field, due: Due, time: int, number: int) -> None:
        """Runs what a timer runs."""

    @property
    def clocked(self) -> MemoryTimers:
        """Those that have the clock, and the number of firings."""
        found: MemoryTimers = self.store(self._timers[0])
        return found

    def _due(self, time: int, ends: Sequence[int] | None = None) -> tuple[Field, Due] | None:
        """The next timer that is due by ``time``, and where it is; or of those that have a stamp up
        to these. Of those for one time that of the first field comes first."""
        found: tuple[Field, Due] | None = None
        for rank, field in enumerate(self._timers):
            due = self.store(field).due(time, None if ends is None else ends[rank])
            if due is not None and (found is None or due[0] < found[1][0]):
                found = field, due
        return found

    def fire(self, time: int) -> None:
        """Fires what is due by a time, or by that of an event before; and what expires goes."""
        self.failed_timer = self._ends = None
        if self._timers:
            while (due := self._due(max(time, self.clocked.clock))) is not None:
                self._fire(*due)
            time = max(time, self.clocked.clock)
        self._expire(time)

    def _expire(self, time: int) -> None:
        for field in self._expiring:
            self.store(field).expire(time)

    def end(self) -> None:
        """The input ends: fires the timers that wait, and not those that they set."""
        self.failed_timer = None
        if self._ends is None:
            self._ends = [self.store(field).last_stamp for field in self._timers]
        while (due := self._due(self.clocked.clock, self._ends)) is not None:
            self._fire(*due)
        self._ends = None

    def _fire(self, field: Field, due: Due) -> None:
        at, _, key = due
        time = max(at, self.clocked.clock)
        self._expire(time)
        self.store(field).remove(key)
        self.fire_alone(field, at, key, time, self.clocked.fired)

    def fire_alone(self, field: Field, at: int, key: Any, time: int, number: int) -> None:
        """Runs what a timer runs, which has been taken out of the state."""
        timers, clocked, program = self.store(field), self.clocked, self._program.on_timer
        assert program is not None
        clocked.fired, clocked.clock, timers.floor = number + 1, time, at
        self.firings.append((number, time))
        self.fired[number] = timer_key(key, field), at
        try:
            self._run_timer(program, field, (at, 0, key), time, number)
        except Exception as error:  # and not KeyboardInterrupt, which is nobody's
            if is_of_signal_handler(error):
                raise
            self.failed_timer = at, 0, key
            vars(error)["specstream_timer"] = timer_key(key, field), at
            error.add_note(
                f"raised by operator {program.operator!r} when the timer "
                f"{timer_text(key, field)} fired, which was set for {at}"
            )
            raise
        finally:
            timers.floor = None
