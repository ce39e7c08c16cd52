"""``specstream compact``: the many small files of a Parquet sink, put together into few."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from specstream.cli.errors import reported_errors
from specstream.cli.options import Command, SecondsRange, json_option
from specstream.sinks.compaction import TARGET_SIZE, compact

__all__ = ["command"]


@click.command("compact", cls=Command)
@click.argument("directory", metavar="DIRECTORY")
@click.option(
    "--target-size",
    type=click.IntRange(min=1),
    default=TARGET_SIZE,
    show_default=True,
    metavar="BYTES",
    help="Approximate largest size of a merged file; larger files stay as they are.",
)
@click.option(
    "--leave",
    type=click.IntRange(min=0),
    default=1,
    show_default=True,
    metavar="K",
    help="Leave the files of the newest K batches alone, so that a rollback can take them out.",
)
@click.option(
    "--in-place",
    is_flag=True,
    help="For object stores, and network filesystems that cannot exchange a directory: until it is "
    "done, only ss.sinks.parquet_dataset sees each row once.",
)
@click.option(
    "--grace",
    type=SecondsRange(min=0),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to keep old files for readers that are listing them.",
)
@json_option
def command(
    directory: str, target_size: int, leave: int, in_place: bool, grace: float, as_json: bool
) -> None:
    """Merge the small files of a Parquet sink into a few larger ones.

    DIRECTORY is what parquet_sink or specstream run --output got, a directory or a URI. The query
    may keep running, and readers see each row exactly once at any moment. If the command is killed
    at any instant, run it again.
    """
    with reported_errors():
        done = compact(
            directory, target_size=target_size, leave=leave, in_place=in_place, grace=grace
        )
        if as_json:
            click.echo(json.dumps(asdict(done)))
        elif not done.before:
            click.echo(f"{done.path}: the sink has written no batch there yet")
        else:
            click.echo(
                f"{done.path}: {done.before:,} file(s) are {done.after:,} now; {done.merged:,} "
                f"were put together, with {done.rows:,} row(s)"
            )
