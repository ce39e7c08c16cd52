"""The timer that ``on_timer`` of a vertex gets, in machine code."""

# Numba's internals are only partly typed.
# mypy: allow-untyped-calls

from __future__ import annotations

from typing import Any

from numba.core import types
from numba.extending import models, register_model

from specstream.compiler.backend.instructions import I64, Value
from specstream.compiler.backend.memory import Run
from specstream.compiler.frontend.program import Program
from specstream.compiler.library.event import READERS, event_column, order_key
from specstream.compiler.library.state_timers import TimerType
from specstream.compiler.phases.plan import Planned

__all__ = ["VertexTimerType"]


class VertexTimerType(TimerType):
    """What ``on_timer`` of a vertex gets as its timer."""

    def __init__(self, planned: Planned, fired: Program) -> None:
        timers = planned.layout.timers
        assert timers is not None
        assert timers.container is not None
        super().__init__(fired.event, timers.container.key)
        self.salt = planned.salt
        types.Type.__init__(self, f"specstream.vertex_{self.name}({planned.salt})")


register_model(VertexTimerType)(models.OpaqueModel)


class TimerReader:
    """Reads the timer of a vertex."""

    def __init__(self, context: Any, builder: Any, timer: VertexTimerType, value: Value) -> None:
        self.run, self.timer = Run(context, builder, value), timer

    def column(self, name: str) -> Value:
        return event_column(self.run, self.timer, name)

    def key(self) -> list[Value]:
        return order_key(self.run, self.timer)

    def seed(self) -> Value:
        """The seed of a timer's random numbers: those of two vertices are independent."""
        seed = self.run.load_member("seed", invariant=True)
        return self.run.builder.xor(seed, I64(self.timer.salt))


READERS[VertexTimerType] = TimerReader
