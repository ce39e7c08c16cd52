"""A run on the command line, as one watches it: a live table, lines of text, or lines of JSON.

All three are made of the same figures. They are taken at intervals, by a thread of their own, which
only looks (``engine.stats``): the run does not wait for whoever reads.
"""

from __future__ import annotations

import datetime
import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any

import pyarrow.dataset
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from specstream.engine import Engine
from specstream.stats import Statistics

if TYPE_CHECKING:
    from specstream.spark.feed import BatchFeed

__all__ = ["JsonLines", "LiveTable", "PlainLines", "Watch", "newest_time"]

Figures = dict[str, Any]
# A terminal at least so wide has room for two figures beside each other.
WIDE = 64


def newest_time(dataset: pyarrow.dataset.Dataset, column: str) -> Any:
    """The last order time of Parquet files, by their own statistics; None: they do not tell."""
    newest: Any = None
    try:
        for fragment in dataset.get_fragments():
            for group in fragment.row_groups:
                last = group.statistics[column]["max"]
                newest = last if newest is None else max(newest, last)
    except (KeyError, TypeError):
        return None
    return newest


def order_number(value: Any) -> float:
    """A value of an order column as a number: seconds where it is a time.

    >>> order_number(datetime.datetime(1970, 1, 2)), order_number(datetime.date(1970, 1, 3))
    (86400.0, 172800.0)
    """
    if isinstance(value, datetime.datetime):
        zone = value.tzinfo or datetime.UTC
        return value.replace(tzinfo=zone).timestamp()
    if isinstance(value, datetime.date):
        return (value - datetime.date(1970, 1, 1)).total_seconds()
    return float(value)


@dataclass(frozen=True)
class _Look:
    at: float
    stats: Statistics


class Watch:
    """Looks at a run every so often and has the figures shown, from ``begin`` on until its end.

    Args:
        engine: a new one, which works for this run alone.
        feed: of the run.
        rows: of the whole input.
        newest: the last order time of the input; None: not known.
        to: shows figures.
        every: seconds from look to look.
    """

    def __init__(
        self,
        engine: Engine,
        feed: BatchFeed,
        *,
        rows: int,
        newest: Any,
        to: JsonLines | LiveTable | PlainLines,
        every: float,
    ) -> None:
        self._engine, self._feed = engine, feed
        self._rows, self._newest = rows, newest
        self._to = to
        self._every = every
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="specstream-watch", daemon=True)
        self._started = 0.0

    def __enter__(self) -> Watch:
        self._to.wait()
        return self

    def begin(self) -> None:
        """Spark is there, and the run begins."""
        self._started = time.perf_counter()
        self._to.begin()
        self._thread.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()
        self._to.close(failed=kind is not None)

    def _watch(self) -> None:
        before = self._look()
        while not self._over.wait(self._every):
            now = self._look()
            try:
                self._to.show(self._figures(before, now))
            except OSError:
                return  # nobody reads any more
            before = now

    def _look(self) -> _Look:
        return _Look(time.perf_counter(), self._engine.stats)

    def _figures(self, before: _Look, now: _Look) -> Figures:
        stats, earlier = now.stats, before.stats
        seconds = max(now.at - before.at, 1e-9)
        commits = stats.commits - earlier.commits
        aborts = sum(stats.aborts.values()) - sum(earlier.aborts.values())
        reached = stats.to_dict()["reached"]
        lag = stats.lag
        if self._newest is not None and stats.reached is not None:
            lag = order_number(self._newest) - order_number(stats.reached)
        return {
            "event": "progress",
            "operator": self._engine.name,
            "seconds": round(now.at - self._started, 3),
            "batches": self._feed.stats.batches,
            "rows_in": stats.events,
            "rows_out": self._feed.stats.rows,
            "rows_pending": max(self._rows - stats.events - stats.bad_rows - stats.late, 0),
            "events_per_second": (stats.events - earlier.events) / seconds,
            "commits": stats.commits,
            "commits_per_second": commits / seconds,
            "commit_rate": commits / (commits + aborts) if commits + aborts else None,
            "aborts": dict(stats.aborts),
            "aborts_per_second": aborts / seconds,
            "threads": stats.threads,
            "horizon": stats.horizon,
            "chunk": stats.chunk,
            "wait_queue": stats.waiting,
            "reached": reached,
            "lag": lag,
            "lag_is_time": isinstance(stats.reached, datetime.date),
            "memory": stats.memory + stats.state_bytes + stats.string_bytes,
        }


def reasons_of(aborts: dict[str, int]) -> str:
    """Aborts in all and by reason, the reasons that occurred.

    >>> reasons_of({"conflict": 1200, "raised": 0, "runaway": 3})
    '1,203 (1,200 conflict, 3 runaway)'
    """
    reasons = ", ".join(f"{count:,} {name}" for name, count in aborts.items() if count)
    return f"{sum(aborts.values()):,}" + (f" ({reasons})" if reasons else "")


def _share(rate: float | None) -> str:
    return "-" if rate is None else f"{100 * rate:.1f} %"


def _lag(figures: Figures) -> str:
    lag = figures["lag"]
    if lag is None:
        return "-"
    if figures["lag_is_time"]:
        return str(datetime.timedelta(seconds=round(lag)))
    return f"{lag:,.6g}"


def _bytes(count: int) -> str:
    size, unit = float(count), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{size:.1f} {unit}" if unit != "B" else f"{count} B"


class JsonLines:
    """One line of JSON for each look, to standard output."""

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write

    def wait(self) -> None:
        """Nothing is written before the first look."""

    def begin(self) -> None:
        """Nor here."""

    def show(self, figures: Figures) -> None:
        """Writes them."""
        told = {name: value for name, value in figures.items() if name != "lag_is_time"}
        self._write(json.dumps(told))

    def close(self, failed: bool) -> None:
        """Nothing is left to write."""


class PlainLines:
    """One line of text for each look, where there is no terminal."""

    def __init__(self, write: Callable[[str], object], operator: str) -> None:
        self._write = write
        self._operator = operator

    def wait(self) -> None:
        """Says what takes the first seconds."""
        self._write(f"{self._operator}: starting Spark")

    def begin(self) -> None:
        """Nothing is written before the first look."""

    def show(self, figures: Figures) -> None:
        """Writes them."""
        self._write(
            f"{self._operator}: {figures['rows_in']:,} events, {figures['rows_pending']:,} "
            f"pending, {figures['events_per_second']:,.0f}/s, commit rate "
            f"{_share(figures['commit_rate'])}, aborts {reasons_of(figures['aborts'])}, horizon "
            f"{figures['horizon']}, chunk {figures['chunk']}, wait queue "
            f"{figures['wait_queue']}, lag {_lag(figures)}"
        )

    def close(self, failed: bool) -> None:
        """Nothing is left to write."""


class LiveTable:
    """A table that is drawn anew at each look, in a terminal."""

    def __init__(self, console: Console, operator: str) -> None:
        self._console = console
        self._operator = operator
        self._live = Live(
            Text(f"{operator}: the first batch is on its way"),
            console=console,
            auto_refresh=False,
            transient=True,
        )

    def wait(self) -> None:
        """Says what takes the first seconds; Spark writes to the terminal as well meanwhile."""
        self._console.print(Text(f"{self._operator}: starting Spark"))

    def begin(self) -> None:
        """Takes the lines that it needs."""
        self._live.start(refresh=True)

    def show(self, figures: Figures) -> None:
        """Draws them."""
        self._live.update(drawn(figures, self._console.width), refresh=True)

    def close(self, failed: bool) -> None:
        """Gives the terminal back. Of a run that failed the last figures stay."""
        self._live.transient = not failed
        self._live.stop()


def drawn(figures: Figures, width: int) -> RenderableType:
    """The live table, at most that wide."""
    total = figures["rows_in"] + figures["rows_pending"]
    elapsed = datetime.timedelta(seconds=int(figures["seconds"]))
    head = Text.assemble(
        (figures["operator"], "bold"),
        f"  {figures['rows_in']:,} of {total:,} events  batches {figures['batches']:,}  {elapsed}",
        overflow="ellipsis",
        no_wrap=True,
    )
    bar = Table.grid()
    bar.add_row(ProgressBar(max(total, 1), figures["rows_in"], width=min(width, 78)))
    pairs = [
        ("events/s", f"{figures['events_per_second']:,.0f}"),
        ("horizon", f"{figures['horizon']:,}"),
        ("commits/s", f"{figures['commits_per_second']:,.0f}"),
        ("chunk", f"{figures['chunk']:,}"),
        ("commit rate", _share(figures["commit_rate"])),
        ("wait queue", f"{figures['wait_queue']:,}"),
        ("aborts/s", f"{figures['aborts_per_second']:,.0f}"),
        ("memory", _bytes(figures["memory"])),
        ("pending", f"{figures['rows_pending']:,}"),
        ("lag", _lag(figures)),
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
    below.add_row("order time", "-" if figures["reached"] is None else str(figures["reached"]))
    below.add_row("aborts", reasons_of(figures["aborts"]))
    return Group(head, bar, grid, below)
