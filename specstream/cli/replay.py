"""``specstream replay``: one recorded micro-batch again, alone."""

from __future__ import annotations

import sys
from contextlib import nullcontext

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from specstream.cli.errors import reported_errors
from specstream.cli.options import Command, argument_option, rows_option
from specstream.cli.target import load_operator, parse_arguments

__all__ = ["replay"]


@click.command(cls=Command)
@click.argument("checkpoint")
@click.argument("target", metavar="[MODULE:OPERATOR]", required=False)
@argument_option
@click.option(
    "--batch",
    type=int,
    metavar="N",
    help="Id of the micro-batch  [default: the newest that was kept; if one failed, that one]",
)
@click.option("--pdb", is_flag=True, help="Stop in pdb at --event, and when the operator raises.")
@click.option(
    "--event",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    metavar="K",
    help="Where --pdb stops: position of an event in the order of the batch.",
)
@rows_option
@click.option("--json", "as_json", is_flag=True, help="Print what was found as one JSON object.")
def replay(
    checkpoint: str,
    target: str | None,
    arguments: tuple[str, ...],
    batch: int | None,
    pdb: bool,
    event: int,
    rows: int,
    as_json: bool,
) -> None:
    """Run one recorded micro-batch again, alone, under plain Python.

    CHECKPOINT is what foreach_batch(checkpoint=...) got, a directory or a URI, or what specstream
    run --checkpoint got. The checkpoint is only read, and Spark is not needed. Without --batch, the
    command takes the newest batch whose rows were kept: the one that failed, if one has. Without
    MODULE:OPERATOR, it runs the operator as it was when the batch ran. It compares rows and state
    with the record; the exit status is 1 if they differ.
    """
    with reported_errors():
        if pdb and as_json:
            raise click.UsageError("--pdb and --json both use stdout: give one")
        if event and not pdb:
            raise click.UsageError("--event says where --pdb stops: give --pdb as well")
        arguments_given = parse_arguments(arguments)
        if target is None and arguments_given:
            raise click.UsageError("--arg belongs to MODULE:OPERATOR: name it as well")
        operator = None if target is None else load_operator(target, arguments_given)
        from specstream.checkpoint.inspect import replay_text
        from specstream.checkpoint.inspect.replay import replay as replayed
        from specstream.cli.rows import json_line

        with progress_bar(Console(stderr=True)) if not pdb else nullcontext() as progress:

            def show(done: int, count: int) -> None:
                if progress is not None:
                    progress.update(task, completed=done, total=count)

            if progress is not None:
                name = "newest batch" if batch is None else f"batch {batch}"
                task = progress.add_task(name, total=None, detail="under the oracle")
            found = replayed(checkpoint, batch, operator, pdb=pdb, event=event, progress=show)
        if as_json:
            click.echo(json_line(replay_text.to_dict(found, rows)))
        else:
            replay_text.show(found, rows)
    if found.difference is not None:
        sys.exit(1)


def progress_bar(console: Console) -> Progress:
    """The progress line of a replay; none where nobody watches."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("events  {task.fields[detail]}"),
        TimeElapsedColumn(),
        console=console,
        disable=not console.is_terminal,
    )
