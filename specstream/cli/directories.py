"""The directories that commands read and write, looked at before anything is started."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import pyarrow as pa
import pyarrow.dataset

from specstream.cli.options import LocalPath
from specstream.definition.operator import Operator
from specstream.files.patterns import REFUSED_NAME, pattern_below
from specstream.monitoring.watch import newest_time

__all__ = [
    "DIRECTORY",
    "check_apart",
    "check_input",
    "check_inputs",
    "check_no_file",
    "check_no_files",
    "check_no_patterns",
]

DIRECTORY = LocalPath(file_okay=False)


def check_inputs(
    given: Sequence[tuple[str, Path]],
    operator: Operator,
    order_by: str | None,
    source: str | None,
) -> tuple[Path | dict[str, Path], int, Any]:
    """The directory, or those of the sources; rows and last order time of all.

    Raises:
        click.ClickException: they are not those that the operator needs, or as of
            :func:`check_input`.
    """
    names, what = [name for name, _ in given if name], f"operator {operator.name!r}"
    sources = operator.sources
    example = " ".join(f"--input {name}=DIRECTORY" for name in sources)
    if not names:
        if len(given) > 1:
            more = f": {example}" if sources else ""
            raise click.ClickException(f"--input is given {len(given)} times, without names{more}")
        path = given[0][1]
        return path, *check_input(path, operator.event.names, operator, order_by, source)
    if not sources:
        raise click.ClickException(f"{what} has no sources with names: give --input DIRECTORY")
    unknown = [name for name in names if name not in sources]
    if unknown:
        raise click.ClickException(
            f"{what} has no source {unknown[0]!r}; it has {', '.join(sources)}: {example}"
        )
    if len(given) != len(sources) or set(names) != set(sources):
        raise click.ClickException(f"{what} needs one --input for each source: {example}")
    # Spark's checkpoint knows the sources by their places, and a start may name them otherwise.
    paths = {name: dict(given)[name] for name in sources}
    found = [
        check_input(paths[name], columns, operator, order_by, source)
        for name, columns in sources.items()
    ]
    times = [time for _, time in found]
    are_alike = len({type(time) for time in times}) == 1 and times[0] is not None
    newest = max(times) if are_alike else None
    rows = sum(rows for rows, _ in found)
    return next(iter(paths.values())) if len(paths) == 1 else paths, rows, newest


def check_input(
    directory: Path,
    columns: Iterable[str],
    operator: Operator,
    order_by: str | None,
    source: str | None,
) -> tuple[int, Any]:
    """Rows and last order time of the Parquet files of a directory that will do.

    The time is None where the files do not tell.

    Args:
        directory: the directory.
        columns: that the operator reads of it.
        operator: for messages.
        order_by: the column of the time.
        source: the column that names each event's source.

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
    needed = dict.fromkeys(columns, f"operator {operator.name!r} reads")
    for option, column in (("--order-by", order_by), ("--source", source)):
        if column is not None:
            needed.setdefault(column, f"{option} names")
    for column, why in needed.items():
        if column not in names:
            raise click.ClickException(
                f"{why} column {column!r}, which --input {directory} does not have (columns: "
                f"{', '.join(names)})"
            )
    return rows, None if order_by is None else newest_time(dataset, order_by)


def check_no_files(option: str, directory: Path, checkpoint: Path | None = None) -> None:
    """Refuses a directory for rows that has some of an earlier run.

    Args:
        option: names it in the error.
        directory: see there.
        checkpoint: of the run, which has no batch; None: it has none.

    Raises:
        click.ClickException: names the option.
    """
    if any(directory.glob("*.parquet")):
        lost = ""
        if checkpoint is not None:
            lost = (
                f"; or, if they are of this run, --checkpoint {checkpoint}, which has no batch, is "
                "another directory than before, or lost: the run book has what to do then"
            )
        raise click.ClickException(
            f"{option} {directory}: there are Parquet files in it already; name a new or empty "
            f"directory{lost}"
        )


def check_no_file(inputs: Iterable[tuple[str, Path]]) -> None:
    """Refuses a file for Spark, which streams directories.

    Raises:
        click.ClickException: says what to give.
    """
    for name, path in inputs:
        if not path.is_dir():
            of = f"{name}=" if name else ""
            other = "" if name else f"; or --from {path} in place of --input, without Spark"
            raise click.ClickException(
                f"--input {of}{path} is a file, and Spark reads directories: give its directory, "
                f"--input {of}{path.parent}{other}"
            )


def check_no_patterns(directories: Iterable[Path]) -> None:
    """Refuses a directory for Spark whose files it would mix up, by their names.

    Raises:
        click.ClickException: names the file or directory.
    """
    for directory in directories:
        if (pattern := pattern_below(directory)) is not None:
            raise click.ClickException(
                f"--input {directory}: {pattern!r}: {REFUSED_NAME}, or give --from in place of "
                "--input"
            )


def check_apart(read: Mapping[str, Path], written: Mapping[str, Path | None]) -> None:
    """Refuses directories that are written to below one that is read, as the next start reads
    both, and a checkpoint where rows are written.

    What is below a name that begins with ``.`` or ``_`` is not read.

    Args:
        read: the directories of the input, by the option with its value.
        written: those of the output, by option; None where it is not given.

    Raises:
        click.ClickException: names both.
    """
    for origin, above in read.items():
        for option, directory in written.items():
            if directory is None:
                continue
            path = os.path.relpath(os.path.realpath(directory), os.path.realpath(above))
            names = [] if path == "." else path.split(os.sep)
            if not any(name[0] in "._" for name in names):
                raise click.ClickException(
                    f"{option} {directory}: it is in {origin}, and its files would be read as "
                    "input: name a directory elsewhere"
                )
    places = {name: os.path.realpath(path) for name, path in written.items() if path is not None}
    checkpoint = places.pop("--checkpoint", None)
    for option, place in places.items():
        if place == checkpoint:
            raise click.ClickException(
                f"{option} and --checkpoint are the same directory, {written[option]}: readers of "
                "the rows would find files of the checkpoint: give each its own"
            )
