"""What an engine is made of. Each part knows those before it, and none knows the engine."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from specstream.definition.operator import Operator
from specstream.engine.committed_state import Committed
from specstream.engine.flight import Flight
from specstream.engine.hooks import Hooks
from specstream.engine.interpreted_code import InterpretedCode
from specstream.engine.lifetime import Lifetime
from specstream.engine.machine_code import MachineCode
from specstream.engine.native import Native
from specstream.engine.options import Options
from specstream.engine.turn import Turn
from specstream.predictors.predictor import Predictor

__all__ = ["Parts"]


@dataclass(frozen=True)
class Parts:
    """The parts of one engine.

    Attributes:
        options: as they were given, checked.
        predictor: moves horizon and chunk.
        longest: the horizon that the memory allows.
        committed: state, strings, sequence numbers, pending events.
        code: the operator's machine code, or what runs it in Python.
        native: the engine in the runtime.
        lifetime: who may use it, and its end.
        flight: the batch or the open job in flight.
        turn: makes the state stand still.
        hooks: the user's.
    """

    options: Options
    predictor: Predictor
    longest: int
    committed: Committed
    code: MachineCode | InterpretedCode
    native: Native
    lifetime: Lifetime
    flight: Flight
    turn: Turn
    hooks: Hooks

    @cached_property
    def operator(self) -> Operator:
        """What the engine runs."""
        return self.options.operator

    @cached_property
    def name(self) -> str:
        """Of the operator."""
        return self.options.operator.name
