"""Options that several commands have, each written once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

__all__ = [
    "argument_option",
    "check_no_files",
    "check_plot",
    "input_options",
    "json_option",
    "stream_options",
]

Command = Callable[..., Any]
PICTURES = (".png", ".svg", ".pdf")

argument_option = click.option(
    "--arg",
    "arguments",
    multiple=True,
    metavar="NAME=VALUE",
    help="Argument of a function that makes the operator; repeatable.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


def input_options(command: Command) -> Command:
    """The operator, and where its events are: ``target``, ``arguments``, ``input_``, ``order_by``
    and ``source``."""
    return _with_input(command, order="Column of the event time.", is_required=True)


def stream_options(order_is_required: bool = True) -> Callable[[Command], Command]:
    """Of a command that runs events without Spark: those above, ``events``, ``plot``, ``as_json``.

    Args:
        order_is_required: else the files' order is that of the events, unless ``--order-by`` says
            otherwise.
    """

    def decorate(command: Command) -> Command:
        for option in (
            json_option,
            click.option(
                "--plot",
                type=click.Path(dir_okay=False, path_type=Path),
                metavar="FILE",
                help="Draw the figures into a file (png, svg, pdf).",
            ),
            click.option(
                "--events",
                type=click.IntRange(min=1),
                default=1_000_000,
                show_default=True,
                help="Rows to read at most.",
            ),
        ):
            command = option(command)
        order = "Column of the event time" + (
            "." if order_is_required else "; else the files' order."
        )
        return _with_input(command, order, order_is_required)

    return decorate


def _with_input(command: Command, order: str, is_required: bool) -> Command:
    for option in (
        click.option("--source", metavar="COL", help="Column that tells sources apart."),
        click.option("--order-by", required=is_required, metavar="COL", help=order),
        click.option(
            "--input",
            "input_",
            type=click.Path(exists=True, file_okay=False, path_type=Path),
            required=True,
            help="Directory of Parquet files.",
        ),
        argument_option,
        click.argument("target", metavar="MODULE:OPERATOR"),
    ):
        command = option(command)
    return command


def check_no_files(option: str, directory: Path) -> None:
    """Refuses a directory for rows that has some of an earlier run.

    Raises:
        click.ClickException: names the option.
    """
    if any(directory.glob("*.parquet")):
        raise click.ClickException(
            f"{option} {directory}: there are Parquet files in it already; name a new or empty "
            "directory"
        )


def check_plot(path: Path | None) -> None:
    """Finds out before the measurement that nothing can be drawn.

    Raises:
        click.ClickException: matplotlib or the directory is missing, or the ending is unknown.
    """
    if path is None:
        return
    from specstream.cli import needs

    needs("plot", "matplotlib")
    if not path.parent.is_dir():
        raise click.ClickException(f"--plot {path}: there is no directory {str(path.parent)!r}")
    if path.suffix not in PICTURES:
        raise click.ClickException(
            f"--plot {path}: expected a file that ends in .png, .svg or .pdf"
        )
