"""``specstream state``: the state of a stream at a batch, as its checkpoint has it."""

from __future__ import annotations

from pathlib import Path

import click

import specstream as ss
from specstream.cli.errors import reported_errors
from specstream.cli.options import Command, rows_option
from specstream.cli.rows import FILE, check_one_way, give_table, json_line

__all__ = ["state"]


@click.command(cls=Command)
@click.argument("directory", metavar="CHECKPOINT")
@click.option(
    "--batch",
    type=click.IntRange(min=0),
    metavar="N",
    help="Show the state after this micro-batch  [default: the newest that is complete]",
)
@click.option("--field", metavar="F", help="Show only this field, as a table.")
@rows_option
@click.option("--csv", type=FILE, help="Write the table to this file instead.")
@click.option("--parquet", type=FILE, help="Likewise.")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print one JSON object with the tables of all fields; with --field a line for each row.",
)
def state(
    directory: str,
    batch: int | None,
    field: str | None,
    rows: int,
    csv: Path | None,
    parquet: Path | None,
    as_json: bool,
) -> None:
    """Show the state of a stream after a micro-batch.

    CHECKPOINT is what foreach_batch(checkpoint=...) got, a directory or a URI, or what specstream
    run --checkpoint got. It is only read, the query may be running, and neither Spark nor the
    operator is needed. "specstream checkpoint list" shows which batches there are. If a newer
    file is damaged, stderr says so. A container is a table with a row for each entry, an array one
    with a row for each element.
    """
    with reported_errors():
        check_one_way(csv, parquet, as_json)
        found = ss.checkpoint_state(directory, batch)
        if found.damaged:
            click.echo(
                f"this is the state after batch {found.batch_id}; there are files up to batch "
                f"{found.newest_batch}, but they cannot be used: {'; '.join(found.damaged)}. "
                "specstream checkpoint verify says what to do",
                err=True,
            )
        names = found.fields
        if field is None and len(names) == 1 and (csv or parquet):
            field = names[0]
        if field is None and (csv or parquet):
            raise click.UsageError(
                f"a file has the table of one field: give --field, one of {', '.join(names)}"
            )
        if field is not None and field not in names:
            raise click.ClickException(
                f"operator {found.operator!r} has no field {field!r} after batch "
                f"{found.batch_id}; it has: {', '.join(names)}"
            )
        if field is None:
            if as_json:
                click.echo(json_line(_all(found)))
            else:
                click.echo(repr(found))
            return
        give_table(found.table(field), rows, csv, parquet, as_json)


def _all(found: ss.CheckpointState) -> dict[str, object]:
    return {
        "operator": found.operator,
        "batch": found.batch_id,
        "newest_batch": found.newest_batch,
        "damaged": list(found.damaged),
        "query": found.query,
        "finished": found.finished,
        "pending": found.pending,
        "next_sequence": found.next_sequence,
        "rejected_rows": found.rejected_rows,
        "failed_events": found.failed_events,
        "fields": {name: table.to_pylist() for name, table in found.tables().items()},
    }
