"""What is asked of two operators over the same events."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from specstream.definition.operator import Operator
from specstream.errors import ConfigurationError
from specstream.verify.counterexample import Replay, Table, events_seen
from specstream.verify.properties import Property
from specstream.verify.questions import holds
from specstream.verify.rerun import difference, sequence_difference

__all__ = ["Question"]


class Question:
    """Whether they give the same, or what somebody says of the rows of both.

    Attributes:
        of: that, of ``(event, old, new)``; None: that they are the same.
        in_sequence: rows are compared one after the other, whenever they come.
        name: in reports.

    Raises:
        ConfigurationError: the property is none, or both are asked for.
    """

    def __init__(
        self, each: Callable[..., Any] | None, operator: Operator, in_sequence: bool
    ) -> None:
        self.of, self.in_sequence, self.name = None, in_sequence, "same rows"
        if each is not None:
            self.of = Property(each, operator, ("event", "old", "new"), "each=")
            self.name = self.of.name
            if in_sequence:
                raise ConfigurationError(
                    f"verify.same: each={self.name} is about the rows of one event; expected "
                    'rows="stepwise" with it'
                )

    def is_so(self, event: Any, old: Any, new: Any) -> bool:
        """Whether the property holds of an event."""
        assert self.of is not None
        values = {"event": event, "old": old, "new": new}
        return holds(self.of, **{name: values[name] for name in self.of.parameters})

    def difference(self, table: Table, old: Replay, new: Replay) -> str:
        """How what came out of both is not as was asked; "": it is."""
        if self.in_sequence:
            return sequence_difference(old, new)
        names = [[[name for name, _ in one] for one in of.raised] for of in (old, new)]
        if self.of is None or names[0] != names[1]:
            return difference(old, new)
        for at, (one, other) in enumerate(
            zip(events_seen(table, old), events_seen(table, new), strict=True)
        ):
            if not self.is_so(other["event"], one["rows"], other["rows"]):
                return f"event {at + 1}: of old {one['rows']}, new {other['rows']}"
        return ""
