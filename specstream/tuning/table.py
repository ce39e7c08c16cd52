"""Measurements as a table, on the terminal and in a notebook."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from specstream.tuning.contest import Measurement

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["HEAD", "as_text", "cells", "measurements_table", "print_report"]

HEAD = ("", "speed", "quartiles", "ns/event", "aborts", "rounds")


def measurements_table(
    title: str, rows: Sequence[tuple[str, Measurement]], marked: str, with_answer: bool = False
) -> Table:
    """One row for each contestant; the marked one is set off.

    Args:
        title: above the table.
        rows: names and measurements.
        marked: name of the row to set off.
        with_answer: add whether the rows were those of the sequential run.
    """
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    for column in HEAD:
        table.add_column(column, justify="right" if column else "left")
    if with_answer:
        table.add_column("rows")
    for name, measured in rows:
        table.add_row(*cells(name, measured, with_answer), style="bold" if name == marked else None)
    return table


def cells(name: str, measured: Measurement, with_answer: bool = False) -> list[str]:
    """The texts of one row, as of :data:`HEAD`."""
    found = [
        name,
        f"{measured.speed:.3g}",
        f"{measured.low:.3g} .. {measured.high:.3g}",
        f"{measured.nanoseconds:,.0f}",
        "" if measured.aborts is None else f"{measured.aborts:.1%}",
        str(measured.rounds),
    ]
    return [*found, answer_text(measured.same)] if with_answer else found


def answer_text(same: float) -> str:
    """Whether rows were the sequential ones.

    >>> answer_text(1.0), answer_text(0.25)
    ('as in sequence', 'differ in 75% of rounds')
    """
    return "as in sequence" if same == 1.0 else f"differ in {1 - same:.0%} of rounds"


def print_report(parts: Iterable[Table | str]) -> None:
    """To stdout, wide enough not to fold the cells of a table when it is a file."""
    from rich.console import Console

    console = Console(width=None if sys.stdout.isatty() else 120)
    for part in parts:
        if isinstance(part, str):
            print(part)
        else:
            console.print(part)


def as_text(parts: Iterable[Table | str]) -> str:
    """The same as text, its tables up to 120 characters wide."""
    from rich.console import Console

    console = Console(width=120, file=io.StringIO())
    texts = []
    for part in parts:
        if isinstance(part, str):
            texts.append(f"{part}\n")
        else:
            with console.capture() as captured:
                console.print(part)
            texts.append(captured.get())
    return "".join(texts)
