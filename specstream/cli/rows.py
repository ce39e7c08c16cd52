"""The first rows of a table on the terminal."""

from __future__ import annotations

import pyarrow as pa
from rich.console import Console
from rich.table import Table

__all__ = ["show_rows"]


def show_rows(found: pa.Table, rows: int) -> None:
    """Prints the first ``rows`` rows, and how many there are behind them."""
    table = Table(*found.column_names, box=None)
    for row in found.slice(0, rows).to_pylist():
        table.add_row(*(str(value) for value in row.values()))
    console = Console()
    console.print(table)
    if found.num_rows > rows:
        console.print(f"... {found.num_rows - rows:,} more")
