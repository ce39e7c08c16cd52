"""The options of ``specstream run`` for streams whose events come out of order across batches."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

import specstream as ss
from specstream.cli.directories import check_no_files
from specstream.cli.options import LocalPath

__all__ = ["event_time_options", "feed_options"]

Delay = int | float | str


class DelayType(click.ParamType[Delay]):
    """A duration, or a number in the order column's own unit; the feed says what is none."""

    name = "delay"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Delay:
        for number in (int, float):
            try:
                return number(value)
            except ValueError:
                continue
        return str(value)


def event_time_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """``--watermark`` and what belongs to it."""
    for option in (
        click.option(
            "--late-output",
            type=LocalPath(file_okay=False),
            help="With --watermark: directory for late rows, new or empty.",
        ),
        click.option(
            "--late",
            type=click.Choice(["error", "drop"]),
            help="With --watermark: whether late rows end the run (the default) or are only "
            "counted.",
        ),
        click.option(
            "--idle-timeout",
            type=DelayType(),
            metavar="DELAY",
            help="With --watermark: a source that lags behind the others by more than this does "
            "not hold them back.",
        ),
        click.option(
            "--watermark",
            type=DelayType(),
            metavar="DELAY",
            help='How far events may come out of order across files: "10 seconds", or a number '
            "in the unit of --order-by. Events wait that long. Without it, micro-batches run one "
            "after the other.",
        ),
    ):
        command = option(command)
    return command


def feed_options(
    watermark: Delay | None,
    idle_timeout: Delay | None,
    late: str | None,
    late_output: Path | None,
    is_new: bool = True,
) -> dict[str, Any]:
    """The options as :func:`specstream.spark.foreach_batch` takes them.

    Args:
        watermark: ``--watermark``, and so on.
        idle_timeout: see there.
        late: see there.
        late_output: see there.
        is_new: the run has written nothing before.

    Raises:
        click.UsageError: one is given that needs another one, or excludes it.
        click.ClickException: there are files in the directory for late rows.
    """
    if watermark is None:
        for option, given in (
            ("--idle-timeout", idle_timeout),
            ("--late", late),
            ("--late-output", late_output),
        ):
            if given is not None:
                raise click.UsageError(
                    f"{option} is about events that wait for a watermark: give --watermark as "
                    f'well, like --watermark "10 seconds", or leave {option} out'
                )
        return {}
    options: dict[str, Any] = {"watermark": watermark, "idle_timeout": idle_timeout}
    if late_output is None:
        return {**options, "late": late or "error"}
    if late is not None:
        raise click.UsageError(
            f"--late {late} and --late-output {late_output} say different things about late rows: "
            "give one of them"
        )
    if is_new:
        check_no_files("--late-output", late_output)
    return {**options, "late": "side", "late_to": ss.sinks.parquet_sink(late_output)}
