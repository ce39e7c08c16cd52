"""What the search for an answer may take, and how long it has taken."""

from __future__ import annotations

import time as clock
from functools import partial
from typing import Any

from specstream.declarations.options import function, integer, number
from specstream.definition.operator import Operator
from specstream.errors import ConfigurationError
from specstream.verify.properties import Property
from specstream.verify.questions import holds
from specstream.verify.solvers import Budget
from specstream.verify.states import MOST_STATES, Bounds

__all__ = ["Limits", "check_operator"]


class Limits:
    """The options that all questions have, of one that begins now.

    Attributes:
        events: length of streams, at least ``least``.
        rounds: turns of a loop without a known end.
        memory: megabytes of the solvers; None: as many as they need.
        budget: of the solvers.
        paths_until: when the paths have to be known, by ``time.monotonic``: half of the time is for
            the questions.

    Raises:
        ConfigurationError: an option is not what it must be; names it.
    """

    def __init__(
        self,
        *,
        events: int,
        rounds: int,
        effort: float,
        time: float,
        memory: int | None = None,
        least: int = 0,
    ) -> None:
        self._began = clock.monotonic()
        seconds = "seconds above 0, as a number"
        time = number("time", time, 1e-9, 1e9, seconds)
        effort = number("effort", effort, 1e-9, 1e9, "a number above 0")
        self.events = integer("events", events, least, 1000)
        self.rounds = integer("rounds", rounds, 0, 1000)
        self.memory = None if memory is None else integer("memory", memory, 16, 2**20)
        self.budget = Budget(effort, self._began + time)
        self.paths_until = self._began + time / 2
        self._until = self._began + time

    def bounds(
        self, events: int | None, within_states: Any, progress: Any, operator: Operator
    ) -> Bounds:
        """Those of an exploration of all states."""
        if progress is not None:
            function("progress", progress, "a function of the number of states")
        most, inside = MOST_STATES, None
        if callable(within_states):
            of = Property(within_states, operator, ("state",), "within_states=")
            inside = partial(_holds_of_state, of)
        elif within_states is not None:
            other = ", or a function of (state)"
            most = integer("within_states", within_states, 1, 10**9, other)
        length = None if events is None else self.events
        return Bounds(length, most, inside, self._until, progress)

    @property
    def seconds(self) -> float:
        """Since it began."""
        return clock.monotonic() - self._began


def _holds_of_state(of: Property, state: Any) -> bool:
    return holds(of, state=state)


def check_operator(question: str, operator: Operator) -> None:
    """Whether a question can be asked of an operator, or of a pipeline.

    Raises:
        ConfigurationError: it is none.
        DeclarationError: it takes no events by itself.
    """
    if not isinstance(operator, Operator):
        raise ConfigurationError(f"verify.{question}: {operator!r} is no operator; expected one")
    operator.check_alone()
