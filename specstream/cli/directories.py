"""The directories that commands read and write, looked at before anything is started."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pyarrow as pa
import pyarrow.dataset

from specstream.monitoring.watch import newest_time
from specstream.operator.operator import Operator

__all__ = ["DIRECTORY", "check_fresh", "check_input", "check_no_files"]

DIRECTORY = click.Path(file_okay=False, path_type=Path)


def check_input(
    directory: Path, operator: Operator, order_by: str | None, source: str | None
) -> tuple[int, Any]:
    """Rows and last order time of the Parquet files of a directory that will do.

    The time is None where the files do not tell.

    Raises:
        click.ClickException: there is no Parquet file, or a column is missing.
    """
    try:
        dataset = pyarrow.dataset.dataset(directory, format="parquet")
        names = dataset.schema.names
        rows: int = dataset.count_rows()
    except (pa.ArrowException, OSError) as error:
        raise click.ClickException(
            f"--input {directory}: not readable as Parquet: {error}"
        ) from error
    if not dataset.files:
        raise click.ClickException(f"--input {directory}: there are no Parquet files in it")
    needed = dict.fromkeys(operator.event.names, f"operator {operator.name!r} reads")
    for option, column in (("--order-by", order_by), ("--source", source)):
        if column is not None:
            needed.setdefault(column, f"{option} names")
    for column, why in needed.items():
        if column not in names:
            raise click.ClickException(
                f"{why} column {column!r}, which --input {directory} has not (columns: "
                f"{', '.join(names)})"
            )
    return rows, None if order_by is None else newest_time(dataset, order_by)


def check_fresh(output: Path, checkpoint: Path | None) -> None:
    """Refuses directories of an earlier run.

    A checkpoint knows which files were read, but not the operator's state after them; and old
    files among the new ones would look like output of this run.

    Raises:
        click.ClickException: one of the directories was used before.
    """
    if checkpoint is not None and any((checkpoint / "offsets").glob("[0-9]*")):
        raise click.ClickException(
            f"--checkpoint {checkpoint}: it belongs to an earlier run, whose operator state is "
            "gone; name a new or empty directory"
        )
    check_no_files("--output", output)


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
