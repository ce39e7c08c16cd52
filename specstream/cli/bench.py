"""``specstream bench``: an operator beside locks, its plain run, and a loop by hand."""

from __future__ import annotations

import json
from pathlib import Path

import click

from specstream.cli.directories import check_inputs
from specstream.cli.errors import reported_errors
from specstream.cli.measuring import most_threads_option, seconds_option
from specstream.cli.options import Command, check_plot, stream_options
from specstream.cli.target import load_operator, parse_arguments

__all__ = ["bench"]


@click.command(cls=Command)
@stream_options()
@click.option(
    "--locked",
    metavar="MODULE:OPERATOR",
    help="The same operator with locks of your own (ss.locks), to compare with.",
)
@most_threads_option("Threads of the runs that use several; by default one per core.")
@seconds_option(10.0)
def bench(
    *,
    target: str,
    arguments: tuple[str, ...],
    inputs: tuple[tuple[str, Path], ...],
    order_by: str,
    source: str | None,
    events: int,
    plot: Path | None,
    as_json: bool,
    locked: str | None,
    threads: int | None,
    seconds: float,
) -> None:
    """Compare an operator with locks, its plain run, and a loop in Python.

    All run the same events in interleaved rounds: plain on one thread, specstream with Auto, one
    global lock around the operator, the version of --locked if there is one, a loop by hand over
    Python's lists and dicts, and the sequential check, which is what run_sequential does. A run
    under locks has no fixed order, so what it emits differs from run to run. A pipeline is not
    compared with a global lock or a loop.
    """
    with reported_errors():
        from specstream.tuning import machine
        from specstream.tuning.bench import bench_on, check_locked
        from specstream.tuning.progress import progress
        from specstream.tuning.stream import read_stream
        from specstream.tuning.table import print_report

        check_plot(plot)
        operator = load_operator(target, parse_arguments(arguments))
        paths, _, _ = check_inputs(inputs, operator, order_by, source)
        own = None if locked is None else load_operator(locked, parse_arguments(arguments))
        if own is not None:
            check_locked("--locked", own, operator)
        with progress(seconds) as say:
            stream = read_stream(paths, operator, order_by, source, events)
            found = bench_on(operator, own, stream, seconds, threads or machine.cores(), say)
        if plot is not None:
            found.plot(plot)
        if as_json:
            click.echo(json.dumps(found.to_dict()))
        else:
            print_report(found.report())
