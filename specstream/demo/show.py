"""The course of the demo: files, two streams, results, comparison."""

from __future__ import annotations

import json
import shutil
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
from rich import box
from rich.console import Console, Group
from rich.live import Live
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table

import specstream as ss
from specstream.columns.strings import string_code
from specstream.demo.compare import first_difference_in_rows, first_difference_in_state
from specstream.demo.flights import Files, load_flights, write_files
from specstream.demo.plot import Batch, Compared, save_plot
from specstream.demo.tasks import TASKS, Oracle, Oracles, Task, oracles_beside, timed
from specstream.engine.engine import Amount
from specstream.files.writing import writing

__all__ = ["run_demo"]


@dataclass(frozen=True)
class Streamed:
    """What one operator gave through Spark."""

    task: Task
    output: pa.Table
    state: dict[str, Any]
    stats: ss.Statistics
    batches: list[Batch]
    seconds: float

    @property
    def events_per_second(self) -> float:
        """Events by the time in the engine."""
        return self.stats.events / max(sum(batch.seconds for batch in self.batches), 1e-9)

    @property
    def aborts(self) -> int:
        """Speculative runs dropped, for whatever reason."""
        return sum(self.stats.aborts.values())


def _progress(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description:<26}"),
        BarColumn(bar_width=8),
        MofNCompleteColumn(),
        TextColumn("{task.fields[detail]}"),
        TimeElapsedColumn(),
        console=console,
    )


def _leaders(state: dict[str, Any], tails: dict[int, str]) -> list[tuple[str, int]]:
    """Tail numbers and estimated counts of a top-k state, the most frequent first."""
    pairs = zip(state["items"].tolist(), state["counts"].tolist(), strict=True)
    named = [(tails[code], count) for code, count in pairs if code in tails]
    return sorted(named, key=lambda pair: (-pair[1], pair[0]))


def _leader_table(leaders: list[tuple[str, int]], exact: dict[str, int] | None = None) -> Table:
    table = Table(title="Most frequent aircraft", title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("rank", justify="right")
    table.add_column("tail number")
    table.add_column("departures (sketch)", justify="right")
    if exact is not None:
        table.add_column("departures (exact)", justify="right")
    for rank, (tail, count) in enumerate(leaders, 1):
        row = [str(rank), tail, f"{count:,}"]
        table.add_row(*row, *([f"{exact.get(tail, 0):,}"] if exact is not None else []))
    return table


def _events_of(task: Task, events: pd.DataFrame) -> pd.DataFrame:
    return events.query(task.where.replace("is not null", ".notna()")) if task.where else events


def _stream(
    session: Any,
    task: Task,
    files: Files,
    output: Path,
    tails: dict[int, str],
    console: Console,
    threads: int,
    horizon: Amount,
    chunk: Amount,
) -> Streamed:
    """Streams all files through one operator."""
    total = len(_events_of(task, files.events))
    progress = _progress(console)
    line = progress.add_task(task.title, total=total, detail="starting")
    batches: list[Batch] = []
    with (
        ss.Engine(task.make(), threads=threads, horizon=horizon, chunk=chunk, keys=True) as engine,
        Live(progress, console=console, refresh_per_second=8) as live,
    ):
        path = output / task.name
        feed = ss.spark.foreach_batch(
            engine, order_by="time", source="origin", to=ss.sinks.parquet_sink(path)
        )
        before, running = engine.stats, 0.0
        started = time.perf_counter()

        def show(batch_id: int) -> None:
            nonlocal before, running
            stats = engine.stats
            batches.append(
                Batch(
                    stats.events - before.events,
                    feed.stats.running - running,
                    stats.commits - before.commits,
                    sum(stats.aborts.values()) - sum(before.aborts.values()),
                )
            )
            before, running = stats, feed.stats.running
            progress.update(
                line,
                completed=stats.events,
                detail=f"{sum(stats.aborts.values()):,} aborts",
            )
            if task.name == "top_k":
                leaders = _leaders(engine.state.to_dict(), tails)
                live.update(Group(progress, _leader_table(leaders)))

        ss.spark.stream_directory(
            session,
            files.directory,
            feed,
            checkpoint=output / f"checkpoint-{task.name}",
            files_per_trigger=files.per_trigger,
            where=task.where,
            on_batch=show,
        )
        live.update(progress)
        streamed = Streamed(
            task,
            pyarrow.dataset.dataset(path, format="parquet").to_table(),
            engine.state.to_dict(),
            engine.stats,
            batches,
            time.perf_counter() - started,
        )
    if not console.is_terminal:
        console.print()  # away from a terminal, Live ends without a line break
    return streamed


def _in_order(files: Files, output: Path) -> list[Path]:
    """The events of each operator, in order, as a file."""
    paths = []
    for task in TASKS:
        paths.append(output / f"in-order-{task.name}.parquet")
        with writing(paths[-1]):
            events = pa.Table.from_pandas(_events_of(task, files.events), preserve_index=False)
            pq.write_table(events, paths[-1])
    return paths


def _awaited(oracles: Oracles, paths: list[Path], console: Console) -> list[Oracle]:
    """What both operators give in plain Python over all events, in order."""
    with _progress(console) as progress:
        lines: list[TaskID] = [
            progress.add_task(
                f"check in Python: {task.name}"[:26],
                total=pq.read_metadata(path).num_rows,
                detail="events",
            )
            for task, path in zip(TASKS, paths, strict=True)
        ]

        def report(done: list[int]) -> None:
            for line, count in zip(lines, done, strict=True):
                progress.update(line, completed=count)

        found = oracles.wait(report)
        for line in lines:
            progress.update(line, completed=progress.tasks[line].total)
    return found


def _differences(streamed: list[Streamed], oracles: list[Oracle]) -> list[str]:
    return [
        f"{stream.task.name}: {difference}"
        for stream, oracle in zip(streamed, oracles, strict=True)
        for difference in (
            first_difference_in_rows(oracle.output, stream.output),
            first_difference_in_state(oracle.state, stream.state),
        )
        if difference is not None
    ]


def _similar(events: pd.DataFrame, neighbours: pa.Table) -> Table:
    """The neighbours of the last flight of the year, as flights."""

    def describe(flight: Any) -> tuple[str, ...]:
        return (
            f"{flight.carrier}{flight.flight}",
            f"{flight.origin} to {flight.dest}",
            f"{flight.distance:,}",
            f"{flight.time:%Y-%m-%d %H:%M}",
        )

    last = neighbours["sequence"][-1].as_py()
    rows = neighbours.filter(pa.compute.field("sequence") == last).to_pylist()
    table = Table(
        title="Flights most similar to a late one", title_justify="left", box=box.SIMPLE_HEAD
    )
    for name in ("", "flight", "route", "miles", "scheduled (UTC)"):
        table.add_column(name)
    table.add_row("the flight", *describe(events.iloc[last]))
    for row in rows:
        table.add_row(f"similar {row['rank']}", *describe(events.iloc[row["neighbour"]]))
    return table


def _figures(streamed: list[Streamed]) -> Table:
    table = Table(
        title="Runs",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
    )
    for name in ("operator", "events", "rows", "batches", "events/s", "commits", "aborts"):
        table.add_column(name, justify="left" if name == "operator" else "right")
    for stream in streamed:
        table.add_row(
            stream.task.name,
            f"{stream.stats.events:,}",
            f"{stream.output.num_rows:,}",
            str(len(stream.batches)),
            f"{stream.events_per_second:,.0f}",
            f"{stream.stats.commits:,}",
            f"{stream.aborts:,}",
        )
    reasons: dict[str, int] = {}
    for stream in streamed:
        for reason, count in stream.stats.aborts.items():
            reasons[reason] = reasons.get(reason, 0) + count
    table.caption = "aborts by reason: " + (
        ", ".join(f"{reason} {count:,}" for reason, count in reasons.items() if count) or "none"
    )
    table.caption_justify = "left"
    return table


def run_demo(
    output: Path, *, quick: bool, threads: int, horizon: Amount, chunk: Amount, as_json: bool
) -> bool:
    """Runs the demo and prints it.

    Args:
        output: directory for files, results and the plot; those of an earlier demo are replaced.
        quick: twelve weeks instead of the year.
        threads: of the engine.
        horizon: of the engine.
        chunk: of the engine.
        as_json: results as one JSON object on stdout, everything else on stderr.

    Returns:
        Whether all rows and states are identical to the sequential run.
    """
    started = time.perf_counter()
    console = Console(stderr=as_json)
    live = Console(stderr=True) if as_json else console
    ss.spark.find_java()
    events_path = output / "events"
    for name in ("events", *(task.name for task in TASKS)):
        shutil.rmtree(output / name, ignore_errors=True)
    for task in TASKS:
        shutil.rmtree(output / f"checkpoint-{task.name}", ignore_errors=True)

    with live.status("reading the flights and writing them as files"):
        flights = load_flights().rename(columns={"tailnum": "item"})
        files = write_files(flights, events_path, quick=quick)
        tails = {string_code(tail): tail for tail in flights["item"].dropna().unique()}
    paths = _in_order(files, output)
    with oracles_beside(paths) as oracles:
        with live.status("starting Spark"):
            session = ss.spark.local_session("specstream demo", settings={"spark.log.level": "OFF"})
        try:
            streamed = [
                _stream(session, task, files, output, tails, live, threads, horizon, chunk)
                for task in TASKS
            ]
        finally:
            session.stop()

        top, neighbours = streamed
        leaders = _leaders(top.state, tails)
        exact = files.events["item"].value_counts().to_dict()
        console.print(_leader_table(leaders, exact))
        console.print(_similar(files.events, neighbours.output))
        console.print(_figures(streamed))
        found = _awaited(oracles, paths, live)
    differences = _differences(streamed, found)
    with live.status("timing both on one core and on all, without Spark"):
        compared = [
            Compared(
                stream.task.title,
                oracle.seconds,
                *timed(stream.task, path, [batch.events for batch in stream.batches], threads),
                threads,
                not _differences([stream], [oracle]),
            )
            for stream, oracle, path in zip(streamed, found, paths, strict=True)
        ]
    plot = output / "demo.png"
    save_plot(
        plot,
        compared,
        top.output,
        [tail for tail, _ in leaders],
        neighbours.output,
        {stream.task.name: stream.batches for stream in streamed},
    )
    console.print(f"plot: {plot}")
    for difference in differences:
        console.print(f"first difference: {difference}", highlight=False)
    verdict = f"identical to the sequential run: {'no' if differences else 'yes'}"
    if as_json:
        seconds = time.perf_counter() - started
        result = _as_json(differences, plot, seconds, leaders, streamed, compared)
        print(verdict, file=sys.stderr)
        print(json.dumps(result))
    else:
        print(verdict)
    return not differences


def _as_json(
    differences: list[str],
    plot: Path,
    seconds: float,
    leaders: list[tuple[str, int]],
    streamed: list[Streamed],
    compared: list[Compared],
) -> dict[str, Any]:
    return {
        "identical": not differences,
        "differences": differences,
        "plot": str(plot),
        "seconds": seconds,
        "top_k": [{"item": tail, "count": count} for tail, count in leaders],
        "operators": {
            stream.task.name: {
                "events": stream.stats.events,
                "rows": stream.output.num_rows,
                "batches": len(stream.batches),
                "events_per_second": stream.events_per_second,
                "stream_seconds": stream.seconds,
                "engine_seconds": beside.all_cores,
                "one_core_seconds": beside.one_core,
                "check_seconds": beside.python,
                "commits": stream.stats.commits,
                "head_runs": stream.stats.head_runs,
                "aborts": dict(stream.stats.aborts),
            }
            for stream, beside in zip(streamed, compared, strict=True)
        },
    }
