"""What a replay has found, for the terminal and as plain data."""

from __future__ import annotations

import traceback
from dataclasses import asdict
from typing import Any

import pyarrow as pa
from rich.console import Console
from rich.table import Table
from rich.text import Text

from specstream.checkpoint.inspect.replay import Replay
from specstream.pipelines.tables import by_sink

__all__ = ["show", "to_dict"]


def verdict(found: Replay) -> str:
    """In one line, how the replay compares with the record."""
    if not found.is_whole:
        return f"left the debugger at event {found.done}: nothing is compared"
    if found.difference is not None:
        return f"differs from the record; the first difference: {found.difference}"
    if found.recorded is not None:
        return "identical to the record: every row, and the state"
    if found.raised is not None:
        return "raises what the record says"
    return "nothing is recorded to compare with: the process ended before the batch was recorded"


def to_dict(found: Replay, rows: int) -> dict[str, Any]:
    """All that was found, with the first rows of the output."""
    error = found.error
    difference = found.difference
    return {
        "operator": found.operator.name,
        "batch": found.batch_id,
        "events": found.events,
        "applied": found.done,
        "waiting": found.waiting,
        "rows_out": found.output.num_rows,
        "rows": found.output.slice(0, rows).to_pylist(),
        "failed": 0 if found.failed is None else found.failed.num_rows,
        "failed_events": [] if found.failed is None else found.failed.slice(0, rows).to_pylist(),
        "error": None if error is None else {"type": type(error).__name__, "message": str(error)},
        "recorded": found.is_recorded,
        "recorded_error": None if found.raised is None else asdict(found.raised),
        "identical": difference is None if found.is_recorded else None,
        "difference": None if difference is None else asdict(difference),
    }


def _drawn(rows: pa.Table, of: str | None, kind: str = "sink ") -> Table:
    title = None if of is None else f"{kind}{of}"
    table = Table(box=None, header_style="bold", title=title, title_justify="left")
    for name in rows.column_names:
        table.add_column(name, justify="right")
    for row in zip(*(column.to_pylist() for column in rows.columns), strict=True):
        table.add_row(*(Text("null" if value is None else str(value)) for value in row))
    return table


def show(found: Replay, rows: int) -> None:
    """Prints it: results on stdout, a traceback on stderr."""
    console = Console()
    shown = found.output.slice(0, rows)
    if shown.num_rows:
        events: list[Any] = found.places[: shown.num_rows].tolist()
        for at, (key, time) in found.timers.items():
            if at < shown.num_rows:
                events[at] = f"timer {key!r} at {time}"
        shown = shown.add_column(0, "event", pa.array(map(str, events)))
        by_name = by_sink(shown)
        for sink, of in by_name.items() if isinstance(by_name, dict) else [(None, by_name)]:
            if of.num_rows:
                console.print(_drawn(of, sink))
    if found.output.num_rows > shown.num_rows:
        console.print(f"and {found.output.num_rows - shown.num_rows:,} more rows (--rows)")
    if found.failed is not None:
        failed = found.failed.drop(["traceback"])
        console.print(_drawn(failed.slice(0, rows), "failed events", ""))
        if failed.num_rows > rows:
            console.print(f"and {failed.num_rows - rows:,} more failed events (--rows)")
    if found.error is not None:
        traceback.print_exception(found.error)
    console.print(
        f"operator {found.operator.name!r}, batch {found.batch_id}: {found.done:,} of "
        f"{found.events:,} events applied, "
        + (f"{found.failed.num_rows:,} of them failed, " if found.failed is not None else "")
        + f"{found.output.num_rows:,} rows"
        + (f", {found.waiting:,} events wait" if found.waiting else ""),
        highlight=False,
    )
    console.print(verdict(found), highlight=False, markup=False)
