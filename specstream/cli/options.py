"""Options that several commands have, each written once."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from specstream.cli.errors import needs
from specstream.declarations.options import meant_path
from specstream.engine.engine import Amount
from specstream.files.places import local_path, not_local

__all__ = [
    "AMOUNT",
    "Command",
    "LocalPath",
    "SecondsRange",
    "argument_option",
    "check_plot",
    "engine_options",
    "inputs_options",
    "json_option",
    "rows_option",
    "stream_options",
    "threads_option",
]

Decorated = Callable[..., Any]
PICTURES = (".png", ".svg", ".pdf")

argument_option = click.option(
    "--arg",
    "arguments",
    multiple=True,
    metavar="NAME=VALUE",
    help="Argument of a function that makes the operator; repeatable.",
)
threads_option = click.option(
    "--threads", default=2, show_default=True, help="Threads of the engine."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
rows_option = click.option(
    "--rows", type=click.IntRange(min=0), default=20, show_default=True, help="Rows to print."
)


class Command(click.Command):
    """A command whose options are given once, unless they can be repeated: of two values the first
    would be lost."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        _, _, order = self.make_parser(ctx).parse_args(args=list(args))
        for param in dict.fromkeys(order):
            is_single = isinstance(param, click.Option) and not (
                param.multiple or param.is_flag or param.count
            )
            if is_single and order.count(param) > 1:
                name = max(param.opts, key=len)
                raise click.UsageError(
                    f"{name} is given {order.count(param)} times: give it once", ctx
                )
        return super().parse_args(ctx, args)


class SecondsRange(click.FloatRange):
    """So many seconds at least; NaN, which passes every comparison, and infinity are no time."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        seconds = float(super().convert(value, param, ctx))
        if not math.isfinite(seconds):
            self.fail(f"{value!r} is not a number of seconds.", param, ctx)
        return seconds


class LocalPath(click.Path):
    """A local or mounted place; what was meant as a URI is refused, and makes no directory."""

    def __init__(self, **options: Any) -> None:
        super().__init__(path_type=Path, **options)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if (trouble := not_local(str(value))) is not None:
            self.fail(f"{str(value)!r}: {trouble}", param, ctx)
        return super().convert(local_path(str(value)), param, ctx)


class InputType(click.ParamType[tuple[str, Path]]):
    """A directory or a file, or that of one source: NAME=DIRECTORY."""

    name = "[source=]directory"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, Path]:
        name, sign, rest = str(value).partition("=")
        is_named = bool(sign) and name.isidentifier() and not Path(value).exists()
        text = rest if is_named else str(value)
        if (trouble := not_local(text)) is not None:
            self.fail(f"{text!r}: {trouble}", param, ctx)
        path = local_path(text)
        if not path.exists():
            self.fail(
                f"directory {str(path)!r} does not exist{meant_path(str(path))}; expected one of "
                "Parquet files",
                param,
                ctx,
            )
        return name if is_named else "", path


def inputs_options(
    command: Decorated, order_is_required: bool = True, input_is_required: bool = True
) -> Decorated:
    """The operator, and where its events are: ``target``, ``arguments``, ``order_by``, ``source``,
    and ``inputs``: directories and the sources that they are of, empty where an ``--input`` names
    none.

    Args:
        command: the function of the command.
        order_is_required: else the files' order is that of the events, unless ``--order-by`` says
            otherwise.
        input_is_required: else the command has another option that says where events are.
    """
    order = "Column of the event time" + (
        "." if order_is_required else "; without it, the order of the files."
    )
    for option in (
        click.option("--source", metavar="COL", help="Column that names the source of each event."),
        click.option("--order-by", required=order_is_required, metavar="COL", help=order),
        click.option(
            "--input",
            "inputs",
            type=InputType(),
            multiple=True,
            required=input_is_required,
            metavar="[SOURCE=]DIRECTORY",
            help="Directory of Parquet files; one for each source if a pipeline has several.",
        ),
        argument_option,
        click.argument("target", metavar="MODULE:OPERATOR"),
    ):
        command = option(command)
    return command


def stream_options(order_is_required: bool = True) -> Callable[[Decorated], Decorated]:
    """Of a command that runs events without Spark: those above, ``events``, ``plot``, ``as_json``.

    Args:
        order_is_required: as above.
    """

    def decorate(command: Decorated) -> Decorated:
        for option in (
            json_option,
            click.option(
                "--plot",
                type=LocalPath(dir_okay=False),
                metavar="FILE",
                help="Draw a figure into a file (png, svg, pdf).",
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
        return inputs_options(command, order_is_required)

    return decorate


class AmountType(click.ParamType[Amount]):
    """An integer, or "auto"."""

    name = "integer or auto"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Amount:
        if value == "auto":
            return "auto"
        try:
            return int(value)
        except ValueError:
            self.fail(f"{value!r} is neither an integer nor 'auto'", param, ctx)


AMOUNT = AmountType()


def engine_options(command: Decorated) -> Decorated:
    """The options that every command with an engine has."""
    for option in (
        click.option(
            "--chunk",
            type=AMOUNT,
            default="auto",
            show_default=True,
            help="Events in one transaction, or auto.",
        ),
        click.option(
            "--horizon",
            type=AMOUNT,
            default="auto",
            show_default=True,
            help="Transactions that may start ahead of the next to commit; 0 means plain, auto "
            "decides by the measured time per event.",
        ),
        threads_option,
    ):
        command = option(command)
    return command


def check_plot(path: Path | None, needs_matplotlib: bool = True) -> None:
    """Finds out before the measurement that nothing can be drawn.

    Raises:
        click.ClickException: matplotlib or the directory is missing, or the ending is unknown.
    """
    if path is None:
        return
    if needs_matplotlib:
        needs("plot", "matplotlib")
    if not path.parent.is_dir():
        raise click.ClickException(f"--plot {path}: there is no directory {str(path.parent)!r}")
    if path.suffix not in PICTURES:
        raise click.ClickException(
            f"--plot {path}: expected a file that ends in .png, .svg or .pdf"
        )
