"""Tables on the terminal, with rich where it is installed."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence

__all__ = ["print_table", "progress"]


def progress(text: str) -> None:
    """One line that replaces the one before; nothing where nobody looks."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


def print_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], numbers: Collection[int]
) -> None:
    """Prints a table; the columns of ``numbers`` are flush right."""
    try:
        from rich.console import Console
        from rich.table import Table
    except ImportError:
        _print_plain(title, columns, rows, numbers)
        return
    table = Table(*columns, title=title, title_justify="left")
    for place in numbers:
        table.columns[place].justify = "right"
    for row in rows:
        table.add_row(*row)
    # Wide enough not to fold the cells when the output goes to a file.
    Console(width=None if sys.stdout.isatty() else 160).print(table)


def _print_plain(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], numbers: Collection[int]
) -> None:
    everything = [columns, *rows]
    widths = [max(len(row[number]) for row in everything) for number in range(len(columns))]
    print(f"\n{title}")
    for row in everything:
        cells = [
            cell.rjust(width) if number in numbers else cell.ljust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        print("  ".join(cells).rstrip())
