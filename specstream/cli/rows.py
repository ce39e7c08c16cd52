"""A table as somebody wants it: its first rows on the terminal, lines of JSON, or a file."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import click
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from specstream.cli.options import LocalPath

__all__ = ["FILE", "check_one_way", "give_table", "json_line"]

FILE = LocalPath(dir_okay=False)


def json_line(data: Any) -> str:
    """Values of users as JSON. It has no NaN and no infinities: they are strings, as Spark's
    ``to_json`` writes them.

    >>> json_line({"price": float("nan"), "last": [float("-inf"), 1.5]})
    '{"price": "NaN", "last": ["-Infinity", 1.5]}'
    """
    return json.dumps(_finite(data), default=str)


def _finite(data: Any) -> Any:
    match data:
        case dict():
            return {key: _finite(value) for key, value in data.items()}
        case list() | tuple():
            return list(map(_finite, data))
        case float() if not math.isfinite(data):
            return json.dumps(data)
    return data


def check_one_way(csv: Path | None, parquet: Path | None, as_json: bool) -> None:
    """Whether no more is asked for than one.

    Raises:
        click.UsageError: more is.
    """
    if sum((csv is not None, parquet is not None, as_json)) > 1:
        raise click.UsageError("--csv, --parquet and --json: give one of them")


def give_table(
    table: pa.Table, rows: int, csv: Path | None, parquet: Path | None, as_json: bool
) -> None:
    """Writes all rows to a file, prints all as JSON, or else the first ``rows`` of them."""
    if as_json:
        for row in table.to_pylist():
            click.echo(json_line(row))
    elif csv is not None or parquet is not None:
        try:
            if csv is not None:
                pyarrow.csv.write_csv(table, csv)
            else:
                pq.write_table(table, parquet)
        except OSError as error:
            raise click.ClickException(f"the table cannot be written: {error}") from error
    else:
        _show_rows(table, rows)


def _show_rows(found: pa.Table, rows: int) -> None:
    """Prints the first ``rows`` rows, and how many there are behind them."""
    table = Table(*found.column_names, box=None)
    for row in found.slice(0, rows).to_pylist():
        table.add_row(*(str(value) for value in row.values()))
    console = Console()
    console.print(table)
    if found.num_rows > rows:
        console.print(f"... {found.num_rows - rows:,} more")
