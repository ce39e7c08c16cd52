"""``specstream tune``: the engine's setting for an operator, on the user's data."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from specstream.cli.directories import check_inputs
from specstream.cli.errors import reported_errors
from specstream.cli.measuring import about_stream, most_threads_option, progress, seconds_option
from specstream.cli.options import check_plot, stream_options
from specstream.cli.target import expression, load_operator, parse_arguments

if TYPE_CHECKING:
    from specstream.tuning.contest import Measurement
    from specstream.tuning.forecast.forecast import Forecast
    from specstream.tuning.search import Finding
    from specstream.tuning.stream import Stream

__all__ = ["tune"]


@click.command()
@stream_options()
@most_threads_option("Largest number of threads to try; by default one per core.")
@click.option(
    "--protocol",
    "protocols",
    multiple=True,
    type=click.Choice(["value", "eager"]),
    help="Protocol to try; repeatable; by default both.",
)
@seconds_option(20.0)
@click.option(
    "--cores",
    type=click.IntRange(2, 256),
    help="Forecast the speed of the events on a machine with this many cores.",
)
def tune(
    *,
    target: str,
    arguments: tuple[str, ...],
    inputs: tuple[tuple[str, Path], ...],
    order_by: str,
    source: str | None,
    events: int,
    plot: Path | None,
    as_json: bool,
    threads: int | None,
    protocols: tuple[str, ...],
    seconds: float,
    cores: int | None,
) -> None:
    """Find the engine's setting for an operator, on your own data.

    Runs the operator over the input with different threads, horizons, chunks and protocols, plain
    and Auto among them, in interleaved rounds; prints the speedup of each, and the line to write.
    It checks that all settings give the same rows. With --cores, the events are replayed on a
    virtual machine, by the runtime's own code. This forecasts the speed on a larger machine, and
    shows how accurate such a forecast is for this one.
    """
    with reported_errors():
        from specstream.tuning import machine
        from specstream.tuning.forecast.forecast import forecast_cores
        from specstream.tuning.search import search
        from specstream.tuning.stream import read_stream

        check_plot(plot)
        operator = load_operator(target, parse_arguments(arguments))
        paths, _, _ = check_inputs(inputs, operator, order_by, source)
        most = threads or machine.cores()
        tried = protocols or ("value", "eager")
        forecast = None
        with progress(seconds) as say:
            stream = read_stream(paths, operator, order_by, source, events)
            memory = machine.free_memory() // 2
            finding = search(operator, stream, seconds, most, tried, memory, say)
            if cores is not None:
                checking = min(seconds / 4, 5.0)
                forecast = forecast_cores(
                    operator, stream, cores, machine.cores(), checking, say, tried
                )
            say("what the cores can do")
            capacity = machine.capacity(most) if most > 1 else 1.0
        tuned = _Tuned(
            operator.name,
            expression(target, arguments, operator),
            stream,
            finding,
            forecast,
            most,
            capacity,
            machine.describe(),
        )
        if plot is not None:
            tuned.draw(plot)
        if as_json:
            click.echo(json.dumps(tuned.to_dict()))
        else:
            tuned.show()


@dataclass(frozen=True)
class _Tuned:
    """What was found, as a picture, as plain data, and as text.

    Attributes:
        name: of the operator.
        expression: how Python code names it.
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
    def title(self) -> str:
        stream = about_stream(self.stream.count, self.stream.left_out)
        return f"{self.name}: {stream}; {self.finding.nanoseconds:,.0f} ns/event plain"

    @property
    def rows(self) -> list[tuple[str, Measurement]]:
        return [(str(one.candidate), one.measured) for one in self.finding.tried]

    def draw(self, path: Path) -> None:
        """Bars into a file, and a forecast into another one beside it."""
        from specstream.tuning.picture import save_forecast, save_measurements

        save_measurements(
            path,
            f"{self.title}\n{self.machine['processor']}, {self.machine['cores']} cores",
            "speed relative to plain",
            self.rows,
            str(self.finding.best),
        )
        if self.forecast is not None:
            save_forecast(
                path.with_stem(f"{path.stem}-cores"),
                f"{self.name}: forecast for more cores",
                self.forecast,
            )

    def to_dict(self) -> dict[str, Any]:
        """The object of ``--json``."""
        from specstream.tuning.forecast.report import forecast_to_dict

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
            "engine": finding.best.line(self.expression),
            "reason": finding.reason,
            "best": asdict(finding.best),
            "candidates": [
                {**asdict(one.candidate), "last": one.last, **asdict(one.measured)}
                for one in finding.tried
            ],
            "machine": {**self.machine, "threads": self.threads, "capacity": self.capacity},
            "model": None if self.forecast is None else forecast_to_dict(self.forecast),
        }

    def show(self) -> None:
        """For people, on stdout."""
        from specstream.tuning.forecast.report import forecast_table, forecast_text
        from specstream.tuning.table import measurements_table, print_table

        finding = self.finding
        print_table(measurements_table(self.title, self.rows, str(finding.best)))
        click.echo("Speed is relative to plain in the same round; the conversion from and to Arrow")
        click.echo(f"takes {finding.around:,.0f} ns/event more, whatever the setting.")
        if self.threads > 1:
            click.echo(
                f"{self.threads} threads that share nothing ran at {self.capacity:.2f} of one."
            )
        if finding.short:
            click.echo(
                "The input is short: a batch takes less than 2 ms, and that includes starting it."
            )
        answer = "Plain is the answer" if finding.best.is_plain else f"Use {finding.best}"
        line = finding.best.line(self.expression)
        click.echo(f"\n{answer}: {finding.reason}.\n\n    {line}\n")
        if self.forecast is not None:
            print_table(forecast_table(f"{self.name}: more cores, a forecast", self.forecast))
            capacity = self.capacity if self.threads > 1 else None
            click.echo(forecast_text(self.forecast, capacity))
