"""Tables on the terminal, with rich where it is installed."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Collection, Iterator, Sequence

__all__ = ["print_table", "progress", "progress_bar"]


def progress(text: str) -> None:
    """One line that replaces the one before; nothing where nobody looks."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


@contextlib.contextmanager
def progress_bar(total: int) -> Iterator[tuple[Callable[[str], None], Callable[[], None]]]:
    """A bar on a terminal: what to call to say what is done, and when one step is."""
    try:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
        from rich.progress import TimeElapsedColumn as Elapsed
    except ImportError:
        yield (lambda text: None), (lambda: None)
        return
    console = Console(stderr=True)
    columns = (BarColumn(), MofNCompleteColumn(), Elapsed(), TextColumn("{task.description}"))
    # Redrawn only when something is said: a thread that redraws would take part in the race.
    bar = Progress(
        *columns,
        console=console,
        transient=True,
        auto_refresh=False,
        disable=not console.is_terminal,
    )
    with bar:
        task = bar.add_task("", total=total)
        yield (
            lambda text: bar.update(task, description=text, refresh=True),
            lambda: bar.update(task, advance=1, refresh=True),
        )


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
