"""What a run says of itself: while it goes on, and at its end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table

import specstream as ss
from specstream.cli.early_log import early_rows
from specstream.display.values import reasons_of
from specstream.monitoring.live import JsonLines, LiveTable, PlainLines

if TYPE_CHECKING:
    from specstream.spark.feed import FeedStats

__all__ = ["print_summary", "shown_by", "summary_of"]


def summary_of(
    operator: str, feed: FeedStats, stats: ss.Statistics, seconds: float, stopped: bool
) -> dict[str, Any]:
    """What a run did, as plain data."""
    return {
        "event": "summary",
        "operator": operator,
        "rows_in": feed.events,
        "rows_out": feed.rows,
        "batches": feed.batches,
        "late": feed.late,
        "failed": feed.failed,
        "stopped": stopped,
        "seconds": seconds,
        "events_per_second": feed.events / seconds,
        "engine_events_per_second": feed.events / max(feed.running, 1e-9),
        "commits": stats.commits,
        "head_runs": stats.head_runs,
        "aborts": dict(stats.aborts),
        "threads": stats.threads,
        "horizon": stats.horizon,
        "chunk": stats.chunk,
        "one_core": stats.why_one_core or None,
    }


def print_summary(summary: dict[str, Any], running: float, is_in_time: bool) -> None:
    """For people, on stdout.

    Args:
        summary: as ``--json`` has it.
        running: seconds in the engine.
        is_in_time: there is a watermark, so rows may have been late.
    """
    table = Table(show_header=False, box=None)
    stopped = ", stopped by a signal" if summary["stopped"] else ""
    before = summary["after_batch"]
    behind = "" if before is None else f", after batch {before}"
    for name, value in (
        ("operator", summary["operator"]),
        ("rows in", f"{summary['rows_in']:,}"),
        ("rows out", f"{summary['rows_out']:,}  in {summary['output']}"),
        ("batches", f"{summary['batches']:,}{stopped}{behind}"),
        *((("late rows", f"{summary['late']:,}"),) if is_in_time else ()),
        *(
            (("failed events", f"{summary['failed']:,}  in {summary['errors']}"),)
            if summary["errors"] is not None
            else ()
        ),
        *early_rows(summary["early"]),
        ("seconds", f"{summary['seconds']:.1f}, of which {running:.2f} in the engine"),
        ("events/s", f"{summary['events_per_second']:,.0f}"),
        ("commits", f"{summary['commits']:,}"),
        ("aborts", reasons_of(summary["aborts"])),
        *((("one core", summary["one_core"]),) if summary["one_core"] else ()),
    ):
        table.add_row(name, value)
    Console().print(table)


def shown_by(
    operator: str, as_json: bool, first: str
) -> tuple[JsonLines | LiveTable | PlainLines, float]:
    """Who shows a run's statistics, and every how many seconds by default; ``first``: what takes
    the first seconds."""
    console = Console(stderr=True)
    if as_json:
        return JsonLines(click.echo), 1.0
    if console.is_terminal and not console.is_dumb_terminal:
        return LiveTable(console, operator, first), 1.0
    return PlainLines(lambda line: click.echo(line, err=True), operator, first), 10.0
