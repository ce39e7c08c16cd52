"""``specstream profile``: where an operator's conflicts are, on the user's data."""

from __future__ import annotations

import json
from pathlib import Path

import click

from specstream.cli.directories import check_inputs
from specstream.cli.errors import reported_errors
from specstream.cli.options import Command, check_plot, stream_options, threads_option
from specstream.cli.target import load_operator, parse_arguments
from specstream.predictors.predictor import LONGEST_CHUNK, LONGEST_HORIZON

__all__ = ["profile"]


@click.command(cls=Command)
@stream_options(order_is_required=False)
@threads_option
@click.option(
    "--horizon",
    type=click.IntRange(1, LONGEST_HORIZON),
    default=8,
    show_default=True,
    help="Transactions that may start ahead of the next to commit.",
)
@click.option(
    "--chunk",
    type=click.IntRange(1, LONGEST_CHUNK),
    default=8,
    show_default=True,
    help="Events in one transaction.",
)
@click.option(
    "--protocol",
    type=click.Choice(["value", "eager"]),
    default="value",
    show_default=True,
    help="How conflicts are found.",
)
@click.option(
    "--top", type=click.IntRange(min=0), default=10, show_default=True, help="Words to show."
)
def profile(
    *,
    target: str,
    arguments: tuple[str, ...],
    inputs: tuple[tuple[str, Path], ...],
    order_by: str | None,
    source: str | None,
    events: int,
    threads: int,
    horizon: int,
    chunk: int,
    protocol: str,
    top: int,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Show which words of an operator's state make its runs conflict, and on which lines.

    The operator runs over Parquet files, speculatively even if that is slower. For each word that
    caused a run to be dropped, the report names its field, its index and the lines that accessed
    it, and then what may help. MODULE:OPERATOR is as in `specstream run`.
    """
    with reported_errors():
        operator = load_operator(target, parse_arguments(arguments))
        from specstream.tuning.profile import profile_on
        from specstream.tuning.stream import read_stream

        paths, _, _ = check_inputs(inputs, operator, order_by, source)
        check_plot(plot)
        stream = read_stream(paths, operator, order_by, source, events)
        found = profile_on(
            operator, stream, threads=threads, horizon=horizon, chunk=chunk, protocol=protocol
        )
        if plot is not None:
            found.plot(plot)
        if as_json:
            click.echo(json.dumps(found.to_dict()))
        else:
            click.echo(found.text(top))
