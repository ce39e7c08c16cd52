"""``specstream latest``: the rows that stand, by the log of ``specstream run --early``."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet as pq

import specstream as ss
from specstream.cli.errors import reported_errors
from specstream.cli.rows import show_rows

__all__ = ["latest"]

FILE = click.Path(dir_okay=False, path_type=Path)


@click.command()
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--by",
    multiple=True,
    metavar="COLUMN",
    help="What a row is about, like an account: of each only the last row. Once for each column.",
)
@click.option(
    "--rows", type=click.IntRange(min=0), default=20, show_default=True, help="Rows to print."
)
@click.option("--csv", type=FILE, help="Write all of them to this file instead.")
@click.option("--parquet", type=FILE, help="Likewise.")
@click.option("--json", "as_json", is_flag=True, help="Print all of them as lines of JSON.")
def latest(
    directory: Path,
    by: tuple[str, ...],
    rows: int,
    csv: Path | None,
    parquet: Path | None,
    as_json: bool,
) -> None:
    """Print the rows that stand, by a log of early results.

    DIRECTORY is what specstream run --early got, also while the run goes on. Each row is told in
    its newest version, in the order of events; those that were withdrawn are left out.
    """
    with reported_errors():
        if sum((csv is not None, parquet is not None, as_json)) > 1:
            raise click.UsageError("--csv, --parquet and --json: give one of them")
        found = ss.early.latest(_log(directory), by=by)
        if csv is not None:
            pyarrow.csv.write_csv(found, csv)
        if parquet is not None:
            pq.write_table(found, parquet)
        if as_json:
            for row in found.to_pylist():
                click.echo(json.dumps(row, default=str))
        elif csv is None and parquet is None:
            show_rows(found, rows)


def _log(directory: Path) -> pa.Table:
    try:
        dataset = pyarrow.dataset.dataset(directory, format="parquet")
        log = dataset.to_table()
    except (pa.ArrowException, OSError) as error:
        raise click.ClickException(f"{directory}: not readable as Parquet: {error}") from error
    if not dataset.files:
        raise click.ClickException(
            f"{directory}: there are no Parquet files in it; expected what specstream run --early "
            "has written"
        )
    return log
