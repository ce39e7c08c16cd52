"""What an experiment is: something to measure, something to draw, and what must be seen.

An experiment is a module named after its figure or table. It measures, which gives plain data that
is written as JSON; it draws that data; and it looks whether the shapes that the text describes are
there. Drawing and judging see nothing but the data, so both can be done again from the file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from matplotlib.figure import Figure

__all__ = ["Data", "Effort", "Experiment", "Finding", "Say"]

Data = Mapping[str, Any]
Say = Callable[[str], None]


@dataclass(frozen=True)
class Effort:
    """How much to measure.

    Attributes:
        quick: for tests: as little as shows that everything works.
        scale: what repetitions and durations are multiplied with.
    """

    quick: bool = False

    @property
    def scale(self) -> float:
        return 0.05 if self.quick else 1.0

    def times(self, count: int, least: int = 1) -> int:
        return max(round(count * self.scale), least)


@dataclass(frozen=True)
class Finding:
    """One thing that must appear.

    Attributes:
        what: in words.
        seen: the numbers that decide it.
        holds: whether it appeared.
        because: where it did not: the cause, with the numbers of what was measured to show it.
    """

    what: str
    seen: str
    holds: bool
    because: str = ""


@dataclass(frozen=True)
class Experiment:
    """One figure or table.

    Attributes:
        name: of its files, like "figure_4_5".
        title: like "Figure 4.5: mean cost of one access".
        claim: what the text says, in our words.
        measure: gives the data, which must be fit for JSON.
        draw: the data as a picture.
        judge: what was to be seen, and whether it was.
        notes: what is different from the text, and why.
        section: of the text, like "4.5.1".
        definitions: what the words of the picture mean, by word, with units.
    """

    name: str
    title: str
    claim: str
    measure: Callable[[Effort, Say], Data]
    draw: Callable[[Data], Figure]
    judge: Callable[[Data], list[Finding]]
    notes: str = ""
    section: str = ""
    definitions: Mapping[str, str] = field(default_factory=dict)
