"""``specstream profile``: where an operator's conflicts are, on the user's data."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pyarrow as pa
import pyarrow.dataset

import specstream as ss
from specstream.cli.directories import check_input
from specstream.cli.errors import reported_errors
from specstream.cli.options import check_plot, stream_options, threads_option
from specstream.cli.target import load_operator, parse_arguments

__all__ = ["profile"]


@click.command()
@stream_options(order_is_required=False)
@threads_option
@click.option(
    "--horizon",
    type=click.IntRange(min=1),
    default=8,
    show_default=True,
    help="Transactions that may start ahead of the next to commit.",
)
@click.option(
    "--chunk",
    type=click.IntRange(min=1),
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
@click.option("--top", default=10, show_default=True, help="Words to show.")
def profile(
    *,
    target: str,
    arguments: tuple[str, ...],
    input_: Path,
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

    The operator runs over Parquet files, speculatively whether that pays or not. Each word that a
    run was dropped for is named with its field, its index and the lines that accessed it; below
    stands what may help. MODULE:OPERATOR is as in `specstream run`.
    """
    with reported_errors():
        operator = load_operator(target, parse_arguments(arguments))
        check_input(input_, operator.event.names, operator, order_by, source)
        check_plot(plot)
        table = _read(input_, operator, order_by, source, events)
        with ss.Engine(
            operator,
            threads=threads,
            horizon=horizon,
            chunk=chunk,
            protocol=protocol,
            execution="speculate",
            profile=True,
        ) as engine:
            whole = bool(operator.event.phases)  # as far as it goes
            engine.process(table, order_by=order_by, source=source, end=whole)
            found = engine.profile()
        if plot is not None:
            found.plot(plot)
        if as_json:
            click.echo(json.dumps(found.to_dict()))
        else:
            click.echo(found.text(top))


def _read(
    directory: Path, operator: ss.Operator, order_by: str | None, source: str | None, events: int
) -> pa.Table:
    """The columns that are needed, of the first rows."""
    needed = dict.fromkeys((*operator.event.names, order_by, source))
    columns = [name for name in needed if name is not None]
    dataset = pyarrow.dataset.dataset(directory, format="parquet")
    return dataset.head(events, columns=columns)
