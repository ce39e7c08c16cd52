"""``specstream bench``: an operator beside locks, its plain run, and a loop by hand."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from specstream.cli.directories import check_inputs
from specstream.cli.errors import reported_errors
from specstream.cli.measuring import most_threads_option, seconds_option
from specstream.cli.options import check_plot, stream_options
from specstream.cli.target import load_operator, parse_arguments
from specstream.definition.operator import Operator

__all__ = ["bench"]


@click.command()
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
        from specstream.tuning.progress import progress
        from specstream.tuning.rivals import BASELINE, compare
        from specstream.tuning.stream import read_stream
        from specstream.tuning.table import measurements_table, print_report

        check_plot(plot)
        operator = load_operator(target, parse_arguments(arguments))
        paths, _, _ = check_inputs(inputs, operator, order_by, source)
        own = None if locked is None else load_locked(locked, arguments, operator, target)
        most = threads or machine.cores()
        with progress(seconds) as say:
            stream = read_stream(paths, operator, order_by, source, events)
            found = compare(operator, own, stream, seconds, most, say)
            say("what the cores can do")
            capacity = machine.capacity(most) if most > 1 else 1.0
        about = machine.describe()
        rows = list(found.measured.items())
        title = f"{operator.name}: {stream.about}; {found.nanoseconds:,.0f} ns/event plain"
        if plot is not None:
            from specstream.tuning.picture import save_measurements

            save_measurements(
                plot,
                f"{title}\n{about['processor']}, {about['cores']} cores",
                "speed relative to plain",
                rows,
            )
        if as_json:
            summary = {
                "operator": operator.name,
                "events": stream.count,
                "batch": found.batch,
                "baseline": BASELINE,
                "no_loop_by_hand": found.no_loop or None,
                "contestants": [
                    {"name": name, "chunk": found.settings.get(name), **asdict(measured)}
                    for name, measured in rows
                ],
                "machine": {**about, "threads": most, "capacity": capacity},
            }
            click.echo(json.dumps(summary))
            return
        print_report([measurements_table(title, rows, BASELINE, with_answer=True)])
        click.echo("Speed is relative to plain in the same round.")
        if found.no_loop:
            click.echo(f"There is no loop by hand: {found.no_loop}.")
        if most > 1 and found.settings:
            click.echo(
                "A run under locks has no fixed order, so what it emits differs from run to run."
            )
        if most > 1:
            click.echo(f"{most} threads that share nothing ran at {capacity:.2f} of one.")


def load_locked(
    locked: str, arguments: tuple[str, ...], operator: Operator, target: str
) -> Operator:
    """The operator of ``--locked``, which has to read what the other one reads.

    Raises:
        click.ClickException: it has no locks, or reads other columns.
    """
    own = load_operator(locked, parse_arguments(arguments))
    if own.layout.words("locks") == 0:
        raise click.ClickException(
            f"--locked {locked}: its state declares no locks, so threads would overwrite each "
            "other's values: declare locks = ss.locks(n), and take them in the operator"
        )
    if set(own.event.names) - set(operator.event.names):
        raise click.ClickException(
            f"--locked {locked}: it reads other columns ({', '.join(own.event.names)}) "
            f"than {target} ({', '.join(operator.event.names)})"
        )
    return own
