"""``specstream pipeline``: what a pipeline consists of, in words, as data, as a picture."""

from __future__ import annotations

import json
from pathlib import Path

import click

from specstream.cli.errors import reported_errors
from specstream.cli.options import Command, LocalPath, argument_option, check_plot, json_option
from specstream.cli.target import PIPELINE, load_operator, parse_arguments
from specstream.pipelines.pipeline import Pipeline

__all__ = ["pipeline"]


@click.command(cls=Command)
@click.argument("target", metavar="MODULE:PIPELINE")
@argument_option
@click.option(
    "--plot",
    type=LocalPath(dir_okay=False),
    metavar="FILE",
    help="Draw the graph into a file (svg, png, pdf).",
)
@click.option("--dot", is_flag=True, help="Print the graph in Graphviz format.")
@json_option
def pipeline(
    *, target: str, arguments: tuple[str, ...], plot: Path | None, dot: bool, as_json: bool
) -> None:
    """Show what a pipeline consists of.

    Its sources with their columns; its vertices with their operators, the numbers that order them
    in a phase, their levels and inputs, and whether they may emit more than one row; its sinks.
    Nothing is run. A graph that is wrong is drawn as well, and then refused.
    """
    with reported_errors():
        if dot and as_json:
            raise click.UsageError("--dot and --json both print to stdout: give one")
        if plot is not None:
            check_plot(plot, needs_matplotlib=plot.suffix != ".svg")
        found = load_operator(target, parse_arguments(arguments), PIPELINE)
        if not isinstance(found, Pipeline):
            raise click.ClickException(
                f"{target} is operator {found.name!r}, not a pipeline made with ss.Pipeline; "
                "`specstream explain` shows operators"
            )
        if plot is not None:
            found.draw(plot)
        if dot:
            click.echo(found.to_dot(), nl=False)
        description = found.describe()
        if as_json:
            click.echo(json.dumps(description.to_dict()))
        elif not dot:
            click.echo(str(description))
