"""The engine's setting for an operator, on the user's data: ``ss.tune``, ``specstream tune``."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from specstream.declarations.options import (
    instance,
    integer,
    items,
    number,
    one_of,
    refuses_unknown,
)
from specstream.definition.operator import Operator
from specstream.display.sheet import Sheet
from specstream.tuning import machine
from specstream.tuning.contest import Measurement
from specstream.tuning.forecast.forecast import Forecast, forecast_cores
from specstream.tuning.forecast.report import forecast_table, forecast_text, forecast_to_dict
from specstream.tuning.progress import progress
from specstream.tuning.search import Finding, search
from specstream.tuning.stream import Stream, as_stream
from specstream.tuning.table import HEAD, as_text, cells, measurements_table

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["PROTOCOLS", "Tuned", "tune", "tune_on"]

PROTOCOLS = ("value", "eager")
MOST_THREADS = 256
SHORTEST = 0.1  # seconds


@dataclass(frozen=True, repr=False)
class Tuned:
    """What :func:`specstream.tune` has found.

    A notebook shows it as a table and, with matplotlib, a picture; ``print`` as text.

    Attributes:
        name: of the operator.
        expression: how Python code names it.
        stream: the events.
        finding: the settings that were tried, and the best.
        forecast: for more cores, if it was asked for.
        threads: most that were tried.
        capacity: what so many threads that share nothing ran at, relative to one.
        machine: description of it.
    """

    name: str
    expression: str
    stream: Stream
    finding: Finding
    forecast: Forecast | None
    threads: int
    capacity: float
    machine: dict[str, Any]

    @property
    def options(self) -> dict[str, Any]:
        """The best setting, as options of :class:`specstream.Engine`."""
        return self.finding.best.options()

    @property
    def title(self) -> str:
        """What was measured."""
        return f"{self.name}: {self.stream.about}; {self.finding.nanoseconds:,.0f} ns/event plain"

    @property
    def rows(self) -> list[tuple[str, Measurement]]:
        """Each setting and its measurement, the fastest first."""
        return [(str(one.candidate), one.measured) for one in self.finding.tried]

    @property
    def answer(self) -> str:
        """Which setting to use, and why."""
        finding = self.finding
        use = "Plain is the answer" if finding.best.is_plain else f"Use {finding.best}"
        return f"{use}: {finding.reason}."

    @property
    def line(self) -> str:
        """The Python expression that makes the engine."""
        return self.finding.best.line(self.expression)

    def notes(self) -> list[str]:
        """How the table is to be read, in sentences."""
        finding = self.finding
        found = [
            "Speed is relative to plain in the same round; the conversion from and to Arrow takes "
            f"{finding.around:,.0f} ns/event more, whatever the setting."
        ]
        if self.threads > 1:
            found.append(
                f"{self.threads} threads that share nothing ran at {self.capacity:.2f} of one."
            )
        if finding.short:
            found.append(
                "The input is short: a batch takes less than 2 ms, and that includes starting it."
            )
        return found

    def plot(self, path: str | Path) -> None:
        """Draws the settings as bars into a file, and a forecast into one beside it.

        Args:
            path: the file; its suffix says the format (``.png``, ``.svg``). The forecast's has
                ``-cores`` before the suffix.

        Raises:
            ImportError: matplotlib is not installed.
        """
        from specstream.tuning.picture import save_forecast, save_measurements

        path = Path(path)
        save_measurements(path, *self._drawn())
        if self.forecast is not None:
            save_forecast(
                path.with_stem(f"{path.stem}-cores"),
                f"{self.name}: forecast for more cores",
                self.forecast,
            )

    def _drawn(self) -> tuple[str, str, list[tuple[str, Measurement]], str]:
        about = f"{self.machine['processor']}, {self.machine['cores']} cores"
        axis = "speed relative to plain"
        return f"{self.title}\n{about}", axis, self.rows, str(self.finding.best)

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain data, for JSON."""
        finding = self.finding
        return {
            "operator": self.name,
            "events": self.stream.count,
            "batch": finding.batch,
            "short": finding.short,
            "plain_nanoseconds": finding.nanoseconds,
            "conversion_nanoseconds": finding.around,
            "seconds": finding.seconds,
            "answer": "plain" if finding.best.is_plain else "speculation",
            "engine": self.line,
            "reason": finding.reason,
            "best": asdict(finding.best),
            "candidates": [
                {**asdict(one.candidate), "last": one.last, **asdict(one.measured)}
                for one in finding.tried
            ],
            "machine": {**self.machine, "threads": self.threads, "capacity": self.capacity},
            "model": None if self.forecast is None else forecast_to_dict(self.forecast),
        }

    def report(self) -> list[Table | str]:
        """For people: tables, and paragraphs between them."""
        table = measurements_table(self.title, self.rows, str(self.finding.best))
        notes = "\n".join(self.notes())
        parts: list[Table | str] = [table, f"{notes}\n\n{self.answer}\n\n    {self.line}\n"]
        if self.forecast is not None:
            capacity = self.capacity if self.threads > 1 else None
            parts += [
                forecast_table(f"{self.name}: more cores, a forecast", self.forecast),
                forecast_text(self.forecast, capacity),
            ]
        return parts

    def __str__(self) -> str:
        return as_text(self.report())

    def __repr__(self) -> str:
        return f"{self.title}\n{self.answer}\n    {self.line}"

    def _repr_html_(self) -> str:
        rows = [cells(name, measured) for name, measured in self.rows]
        notes = [self.answer, self.line, *self.notes()]
        shown = Sheet(self.title, rows, HEAD, notes).html()
        if importlib.util.find_spec("matplotlib") is None:
            return shown
        from specstream.figures.style import notebook_image
        from specstream.tuning.picture import draw_measurements

        return shown + notebook_image(draw_measurements(*self._drawn()))


@refuses_unknown
def tune(
    operator: Operator,
    events: Any,
    *,
    order_by: str | None = None,
    source: str | None = None,
    threads: int | None = None,
    protocols: Sequence[str] = PROTOCOLS,
    seconds: float = 20.0,
    cores: int | None = None,
) -> Tuned:
    """Finds the engine's setting for an operator on your own events, as ``specstream tune`` does.

    Runs them with different threads, horizons, chunks and protocols, plain and Auto among them, in
    interleaved rounds, and checks that all settings give the same rows. Progress is shown on
    stderr.

    Args:
        operator: what to run; a pipeline, too.
        events: as for :meth:`specstream.Engine.process`: at least some ten thousand, of your own.
        order_by: column of the event time; None: the rows are in order.
        source: column that tells sources apart; breaks ties.
        threads: the most to try; None: one per core.
        protocols: to try, of "value" and "eager".
        seconds: for measuring, from 0.1 on; compiling comes before.
        cores: forecast the speed on a machine with so many, 2 to 256; None: do not.

    Raises:
        ConfigurationError: an option has a value that it cannot have, or the operator is declared
            with ``speculate=False``.
        InputError: a column is missing or has the wrong type, or there are no events.
        Exception: what the operator raises on these events.

    >>> import specstream as ss
    >>> class Seen(ss.State):
    ...     total = ss.scalar(int)
    >>> @ss.operator(state=Seen, event={"x": int}, emits={"total": int})
    ... def running_total(state, event, emit):
    ...     state.total += event.x
    ...     emit(state.total)
    >>> found = ss.tune(running_total, {"x": range(10_000)}, threads=1, seconds=0.1)
    >>> print(found.line)
    ss.Engine(running_total, threads=1, horizon=0)
    >>> with ss.Engine(running_total, **found.options) as engine:
    ...     engine.process({"x": [1, 2]})["total"].to_pylist()
    [1, 3]
    """
    instance("operator", operator, Operator, "an operator or a pipeline")
    most = machine.cores()
    if threads is not None:
        most = integer("threads", threads, 1, MOST_THREADS, " or None")
    expected = f"a list of {' and '.join(map(repr, PROTOCOLS))}"
    tried = tuple(
        one_of("protocols", one, PROTOCOLS) for one in items("protocols", protocols, expected)
    )
    seconds = number("seconds", seconds, SHORTEST, math.inf, f"at least {SHORTEST}")
    if cores is not None:
        cores = integer("cores", cores, 2, MOST_THREADS, " or None")
    stream = as_stream(events, operator, order_by, source)
    with progress(seconds) as say:
        return tune_on(
            operator, stream, operator.name, seconds, most, tried or PROTOCOLS, cores, say
        )


def tune_on(
    operator: Operator,
    stream: Stream,
    expression: str,
    seconds: float,
    most: int,
    protocols: tuple[str, ...],
    cores: int | None,
    say: Any,
) -> Tuned:
    """:func:`tune` with arguments that are known to be right.

    Args:
        expression: how Python code names the operator.
        most: threads to try.
        say: told now and then what is going on.
    """
    memory = machine.free_memory() // 2
    finding = search(operator, stream, seconds, most, protocols, memory, say)
    forecast = None
    if cores is not None:
        checking = min(seconds / 4, 5.0)
        forecast = forecast_cores(
            operator, stream, cores, machine.cores(), checking, say, protocols
        )
    say("what the cores can do")
    capacity = machine.capacity(most) if most > 1 else 1.0
    about = machine.describe()
    return Tuned(operator.name, expression, stream, finding, forecast, most, capacity, about)
