"""How a run shows: a live table, lines of text, or lines of JSON, all of the same numbers."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from specstream.display.values import duration, reasons_of, size

__all__ = ["JsonLines", "LiveTable", "PlainLines", "Progress", "drawn"]

# What a look has found; see Watch.
Progress = dict[str, Any]
# A terminal at least so wide has room for two numbers beside each other.
WIDE = 64


def _share(rate: float | None) -> str:
    return "-" if rate is None else f"{100 * rate:.1f} %"


def _lag(progress: Progress) -> str:
    lag = progress["lag"]
    if lag is None:
        return "-"
    if progress["lag_is_time"]:
        return str(datetime.timedelta(seconds=round(lag)))
    return f"{lag:,.6g}"


def _lead(early: dict[str, Any]) -> str:
    """Median and 99th percentile."""
    median, high = early["lead_median"], early["lead_p99"]
    return "-" if median is None else f"{duration(median)}, 99 % {duration(high)}"


class JsonLines:
    """One line of JSON for each look, to standard output."""

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write

    def wait(self) -> None:
        """Nothing is written before the first look."""

    def begin(self) -> None:
        """Nor here."""

    def show(self, progress: Progress) -> None:
        """Writes them."""
        values = {name: value for name, value in progress.items() if name != "lag_is_time"}
        self._write(json.dumps(values))

    def close(self, failed: bool) -> None:
        """Nothing is left to write."""


class PlainLines:
    """One line of text for each look, where there is no terminal."""

    def __init__(self, write: Callable[[str], object], operator: str, first: str) -> None:
        self._write = write
        self._operator = operator
        self._first = first
        self._one_core: str | None = None  # why it does, at the last look

    def wait(self) -> None:
        """Says what takes the first seconds."""
        self._write(f"{self._operator}: {self._first}")

    def begin(self) -> None:
        """Nothing is written before the first look."""

    def show(self, progress: Progress) -> None:
        """Writes them."""
        early = progress["early"]
        failed = f", {progress['failed']:,} failed" if progress["failed"] else ""
        rejected = (
            f", {early['transactions']:,} not final, {early['revocations']:,} revocations, "
            f"{early['republished']:,} republished, {early['rerun']:,} rerun, lead {_lead(early)}"
            if early is not None
            else ""
        )
        self._write(
            f"{self._operator}: {progress['rows_in']:,} events, {progress['rows_pending']:,} "
            f"pending{failed}, {progress['events_per_second']:,.0f}/s, commit rate "
            f"{_share(progress['commit_rate'])}, aborts {reasons_of(progress['aborts'])}, horizon "
            f"{progress['horizon']}, chunk {progress['chunk']}, wait queue "
            f"{progress['wait_queue']}, lag {_lag(progress)}{rejected}"
        )
        why = progress["one_core"]
        if why and not self._one_core:
            self._write(f"{self._operator}: on one core: {why}")
        self._one_core = why

    def close(self, failed: bool) -> None:
        """Nothing is left to write."""


class LiveTable:
    """A table that is drawn anew at each look, in a terminal."""

    def __init__(self, console: Console, operator: str, first: str) -> None:
        self._console = console
        self._operator = operator
        self._first = first
        self._live = Live(
            Text(f"{operator}: the first batch is on its way"),
            console=console,
            auto_refresh=False,
            transient=True,
        )

    def wait(self) -> None:
        """Says what takes the first seconds; Spark writes to the terminal as well meanwhile."""
        self._console.print(Text(f"{self._operator}: {self._first}"))

    def begin(self) -> None:
        """Takes the lines that it needs."""
        self._live.start(refresh=True)

    def show(self, progress: Progress) -> None:
        """Draws them."""
        self._live.update(drawn(progress, self._console.width), refresh=True)

    def close(self, failed: bool) -> None:
        """Gives the terminal back. Of a run that failed the last numbers stay."""
        self._live.transient = not failed
        self._live.stop()


def drawn(progress: Progress, width: int) -> RenderableType:
    """The live table, at most that wide."""
    total = progress["rows_in"] + progress["rows_pending"]
    elapsed = datetime.timedelta(seconds=int(progress["seconds"]))
    head = Text.assemble(
        (progress["operator"], "bold"),
        f"  {progress['rows_in']:,} of {total:,} events",
        f"  batches {progress['batches']:,}  {elapsed}",
        overflow="ellipsis",
        no_wrap=True,
    )
    bar = Table.grid()
    bar.add_row(ProgressBar(max(total, 1), progress["rows_in"], width=min(width, 78)))
    pairs = [
        ("events/s", f"{progress['events_per_second']:,.0f}"),
        ("horizon", f"{progress['horizon']:,}"),
        ("commits/s", f"{progress['commits_per_second']:,.0f}"),
        ("chunk", f"{progress['chunk']:,}"),
        ("commit rate", _share(progress["commit_rate"])),
        ("wait queue", f"{progress['wait_queue']:,}"),
        ("aborts/s", f"{progress['aborts_per_second']:,.0f}"),
        ("memory", size(progress["memory"])),
        ("pending", f"{progress['rows_pending']:,}"),
        ("lag", _lag(progress)),
    ]
    if progress["failed"]:
        pairs.append(("failed", f"{progress['failed']:,}"))
    early = progress["early"]
    if early is not None:
        pairs += [
            ("not final", f"{early['transactions']:,}"),
            ("revocations", f"{early['revocations']:,}"),
            ("republished", f"{early['republished']:,}"),
            ("rerun", f"{early['rerun']:,}"),
        ]
    beside = 2 if width >= WIDE else 1
    grid = Table.grid(padding=(0, 2))
    for _ in range(beside):
        grid.add_column(style="dim", no_wrap=True, min_width=11)
        grid.add_column(justify="right", no_wrap=True, min_width=16)
    for at in range(0, len(pairs), beside):
        grid.add_row(*(cell for pair in pairs[at : at + beside] for cell in pair))
    below = Table.grid(padding=(0, 2))
    below.add_column(style="dim", no_wrap=True, min_width=11)
    below.add_column(overflow="fold")
    below.add_row("order time", "-" if progress["reached"] is None else str(progress["reached"]))
    if early is not None:
        below.add_row("lead", _lead(early))
    below.add_row("aborts", reasons_of(progress["aborts"]))
    if progress["one_core"]:
        below.add_row("one core", progress["one_core"])
    return Group(head, bar, grid, below)
