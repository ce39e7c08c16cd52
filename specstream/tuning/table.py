"""Measurements as a table on the terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from specstream.tuning.contest import Measurement

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["measurements_table", "print_table"]


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
    table.add_column("")
    for column in ("speed", "quartiles", "ns/event", "aborts", "rounds"):
        table.add_column(column, justify="right")
    if with_answer:
        table.add_column("rows")
    for name, measured in rows:
        cells = [
            name,
            f"{measured.speed:.3g}",
            f"{measured.low:.3g} .. {measured.high:.3g}",
            f"{measured.nanoseconds:,.0f}",
            "" if measured.aborts is None else f"{measured.aborts:.1%}",
            str(measured.rounds),
        ]
        if with_answer:
            cells.append(answer_text(measured.same))
        table.add_row(*cells, style="bold" if name == marked else None)
    return table


def answer_text(same: float) -> str:
    """Whether rows were the sequential ones.

    >>> answer_text(1.0), answer_text(0.25)
    ('as in sequence', 'differ in 75% of rounds')
    """
    return "as in sequence" if same == 1.0 else f"differ in {1 - same:.0%} of rounds"


def print_table(table: Table) -> None:
    """To stdout, wide enough not to fold the cells when it is a file."""
    from rich.console import Console

    Console(width=None if sys.stdout.isatty() else 120).print(table)
