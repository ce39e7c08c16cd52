"""``specstream explain``: an operator in words."""

from __future__ import annotations

import json

import click

from specstream.cli.errors import reported_errors
from specstream.cli.options import Command, argument_option, json_option
from specstream.cli.target import load_operator, parse_arguments

__all__ = ["explain"]


@click.command(cls=Command)
@click.argument("target", metavar="MODULE:OPERATOR")
@argument_option
@json_option
def explain(*, target: str, arguments: tuple[str, ...], as_json: bool) -> None:
    """Show what an operator does with its state, and where its events could conflict.

    Its source, the layout of its state in words, the lines that read, write and update each field,
    and the pairs of lines over which two events that run at once could conflict. Nothing is run.
    MODULE:OPERATOR is as in `specstream run`. For a pipeline, it prints this for each vertex.
    """
    with reported_errors():
        found = load_operator(target, parse_arguments(arguments)).explain()
        click.echo(json.dumps(found.to_dict()) if as_json else str(found))
