"""``specstream latest``: the rows that stand, by the log of ``specstream run --early``."""

from __future__ import annotations

from pathlib import Path

import click
import pyarrow as pa
import pyarrow.dataset

import specstream as ss
from specstream.cli.errors import reported_errors
from specstream.cli.options import Command, LocalPath, rows_option
from specstream.cli.rows import FILE, check_one_way, give_table

__all__ = ["latest"]


@click.command(cls=Command)
@click.argument("directory", type=LocalPath(exists=True, file_okay=False))
@click.option(
    "--by",
    multiple=True,
    metavar="COLUMN",
    help="Column that identifies what a row is about, like an account: print only the last row "
    "for each. Repeatable.",
)
@rows_option
@click.option("--csv", type=FILE, help="Write all rows to this file instead.")
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
    """Print the current rows of a log of early results.

    DIRECTORY is what specstream run --early got, also while the run goes on. It prints the newest
    version of each row, in the order of events, and leaves out withdrawn rows.
    """
    with reported_errors():
        check_one_way(csv, parquet, as_json)
        found = ss.early.latest(_log(directory), by=by)
        give_table(found, rows, csv, parquet, as_json)


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
    logs = sorted({_without_partitions(Path(file), directory) for file in dataset.files})
    if len(logs) > 1:
        raise click.ClickException(
            f"{directory}: there are the logs of several sinks in it, each with rows of its own: "
            f"give one of {', '.join(map(str, logs))}"
        )
    return log


def _without_partitions(file: Path, directory: Path) -> Path:
    """The directory of the log that has a file, which may lie further down, as in ``day=1``."""
    inner = file.parent.relative_to(directory).parts
    return directory.joinpath(*(name for name in inner if "=" not in name))
