"""What an engine has told early, looked at when all is told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

import specstream as ss

__all__ = ["Log", "Row", "look", "standing"]

# Time and source of the event, and the place among its rows: no source has two events of one time.
Row = tuple[int, Any, int]


@dataclass
class Log:
    """Of each row that was told.

    Attributes:
        first: when it was told for the first time, early or final.
        final: when it was told to be final.
        early: rows that were told before they were final.
        revised: those that were told once more with another content, or withdrawn.
    """

    first: dict[Row, float] = field(default_factory=dict)
    final: dict[Row, float] = field(default_factory=dict)
    early: set[Row] = field(default_factory=set)
    revised: set[Row] = field(default_factory=set)

    @property
    def share_revised(self) -> float:
        """Of those that were told early."""
        return len(self.revised) / max(1, len(self.early))


def look(answers: Sequence[tuple[float, pa.Table]], emits: Sequence[str]) -> Log:
    """The log of an engine's changes.

    Args:
        answers: when they came, and the changes.
        emits: columns of the operator's rows.
    """
    log, stands = Log(), dict[Row, Any]()
    for at, changes in answers:
        columns = [changes[name].to_pylist() for name in ("timestamp", "source", "n")]
        contents = zip(*(changes[name].to_pylist() for name in emits), strict=True)
        for row, change, content in zip(
            zip(*columns, strict=True), changes["change"].to_pylist(), contents, strict=True
        ):
            log.first.setdefault(row, at)
            now = None if change == "withdrawn" else content
            if stands.get(row, now) != now:
                log.revised.add(row)
            stands[row] = now
            if change == "early":
                log.early.add(row)
            elif change == "final":
                log.final[row] = at
    return log


def standing(answers: Sequence[tuple[float, pa.Table]], emits: Sequence[str]) -> pa.Table:
    """The rows that stand when all is told."""
    return ss.early.latest([changes for _, changes in answers]).select(list(emits))
