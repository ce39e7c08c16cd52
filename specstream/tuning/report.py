"""What ``tune`` and ``bench`` have found, as text, for notebooks, and as a picture."""

from __future__ import annotations

import importlib.util
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from specstream.display.sheet import Sheet
from specstream.tuning.contest import Measurement
from specstream.tuning.stream import Stream
from specstream.tuning.table import as_text, cells, head, measurements_table

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["Report"]

_AXIS = "speed relative to plain"


class Report(ABC):
    """Contestants, and how fast each was relative to plain.

    A notebook shows it as a table and, with matplotlib, a picture; ``print`` as text.

    Attributes:
        name: of the operator.
        stream: the events.
        threads: most that were used.
        capacity: what so many threads that share nothing ran at, relative to one.
        machine: description of it.
    """

    name: str
    stream: Stream
    threads: int
    capacity: float
    machine: dict[str, Any]
    _with_answer = False

    @property
    @abstractmethod
    def nanoseconds(self) -> float:
        """Per event, plain."""

    @property
    @abstractmethod
    def rows(self) -> list[tuple[str, Measurement]]:
        """Each contestant and its measurement, the fastest first."""

    @property
    @abstractmethod
    def marked(self) -> str:
        """The row that is set off in the table."""

    @abstractmethod
    def notes(self) -> list[str]:
        """How the table is to be read, and what follows, in sentences."""

    @property
    def title(self) -> str:
        """What was measured."""
        return f"{self.name}: {self.stream.about}; {self.nanoseconds:,.0f} ns/event plain"

    def report(self) -> list[Table | str]:
        """For people: tables, and paragraphs between them."""
        table = measurements_table(self.title, self.rows, self.marked, self._with_answer)
        return [table, "\n".join(self.notes())]

    def plot(self, path: str | Path) -> None:
        """Draws the contestants as bars into a file.

        Args:
            path: the file; its suffix says the format (``.png``, ``.svg``).

        Raises:
            ImportError: matplotlib is not installed.
        """
        from specstream.figures.style import save

        save(self._figure(), Path(path))

    def _figure(self) -> Any:
        from specstream.tuning.picture import draw_measurements

        about = f"{self.machine['processor']}, {self.machine['cores']} cores"
        return draw_measurements(f"{self.title}\n{about}", _AXIS, self.rows, self._answer_mark())

    def _answer_mark(self) -> str:
        """The bar that is called the answer, if one is."""
        return ""

    def _about_threads(self) -> list[str]:
        if self.threads == 1:
            return []
        found = f"{self.threads} threads that share nothing ran at {self.capacity:.2f} of one"
        if self.capacity < 1.2:
            found += ": other programs had the cores; measure again when they are idle"
        return [f"{found}."]

    def __str__(self) -> str:
        return as_text(self.report())

    def _repr_html_(self) -> str:
        rows = [cells(name, measured, self._with_answer) for name, measured in self.rows]
        shown = Sheet(self.title, rows, head(self._with_answer), self.notes()).html()
        if importlib.util.find_spec("matplotlib") is None:
            return shown
        from specstream.figures.style import notebook_image

        return shown + notebook_image(self._figure())
