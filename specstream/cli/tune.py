"""``specstream tune``: the engine's setting for an operator, on the user's data."""

from __future__ import annotations

import json
from pathlib import Path

import click

from specstream.cli.directories import check_inputs
from specstream.cli.errors import reported_errors
from specstream.cli.measuring import most_threads_option, seconds_option
from specstream.cli.options import Command, check_plot, stream_options
from specstream.cli.target import expression, load_operator, parse_arguments

__all__ = ["tune"]


@click.command(cls=Command)
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
        from specstream.tuning.progress import progress
        from specstream.tuning.stream import read_stream
        from specstream.tuning.table import print_report
        from specstream.tuning.tune import PROTOCOLS, tune_on

        check_plot(plot)
        operator = load_operator(target, parse_arguments(arguments))
        paths, _, _ = check_inputs(inputs, operator, order_by, source)
        named = expression(target, arguments, operator)
        most = threads or machine.cores()
        with progress(seconds) as say:
            stream = read_stream(paths, operator, order_by, source, events)
            found = tune_on(
                operator, stream, named, seconds, most, protocols or PROTOCOLS, cores, say
            )
        if plot is not None:
            found.plot(plot)
        if as_json:
            click.echo(json.dumps(found.to_dict()))
        else:
            print_report(found.report())
