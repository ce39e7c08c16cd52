"""``specstream run``: an operator over a directory of Parquet files, through Spark."""

from __future__ import annotations

import json
import signal
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table

import specstream as ss
from specstream.cli.directories import DIRECTORY, check_fresh, check_inputs, check_no_files
from specstream.cli.early_log import EarlyLog, check_early, early_rows
from specstream.cli.errors import needs, reported_errors
from specstream.cli.event_time_options import event_time_options, feed_options
from specstream.cli.options import engine_options, inputs_options
from specstream.cli.target import load_operator, parse_arguments
from specstream.display.values import reasons_of
from specstream.engine.engine import Amount
from specstream.monitoring.live import JsonLines, LiveTable, PlainLines
from specstream.monitoring.watch import Watch

if TYPE_CHECKING:
    from specstream.spark.feed import FeedStats

__all__ = ["run"]


@click.command()
@inputs_options
@click.option(
    "--output", type=DIRECTORY, required=True, help="Directory for the emitted rows; new or empty."
)
@event_time_options
@click.option(
    "--early",
    "early_output",
    type=DIRECTORY,
    help="With --watermark: directory for the changes of early results, new or empty. Events are "
    "applied as they come, and what they give is told before it is final.",
)
@click.option(
    "--errors",
    "errors_output",
    type=DIRECTORY,
    help="Directory for events whose function raises, new or empty: they are set aside with the "
    "error, and the run goes on. Without it the run ends with the first.",
)
@click.option(
    "--errors-limit",
    type=click.IntRange(min=0),
    help="With --errors: so many events of a micro-batch may fail; all by default.",
)
@engine_options
@click.option(
    "--protocol",
    default="value",
    show_default=True,
    help="How conflicts are found: value or eager.",
)
@click.option(
    "--checkpoint",
    type=DIRECTORY,
    help="Spark's checkpoint directory, new or empty; temporary by default.",
)
@click.option(
    "--max-files-per-trigger",
    type=click.IntRange(min=1),
    help="Files in one micro-batch; all by default.",
)
@click.option(
    "--every",
    type=click.FloatRange(min=0.05),
    metavar="SECONDS",
    help="From look to look at the statistics; by default 1, and 10 where stderr is no terminal.",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print statistics as lines of JSON instead of a live table; the last line is the summary.",
)
def run(
    *,
    target: str,
    arguments: tuple[str, ...],
    inputs: tuple[tuple[str, Path], ...],
    order_by: str,
    source: str | None,
    output: Path,
    threads: int,
    horizon: Amount,
    chunk: Amount,
    protocol: str,
    checkpoint: Path | None,
    max_files_per_trigger: int | None,
    every: float | None,
    as_json: bool,
    early_output: Path | None,
    errors_output: Path | None,
    errors_limit: int | None,
    **event_time: Any,
) -> None:
    """Run an operator over a directory of Parquet files, through Spark.

    MODULE is a module name or the path of a .py file; OPERATOR an operator in it, or a function
    that makes one from the --arg values. Files are taken in the order in which they were last
    modified; within a micro-batch, events run in the order (--order-by, --source, position), and
    with --watermark across micro-batches as well. With --early, events that wait for the watermark
    have told their results before; "specstream latest" reads them. SIGTERM ends the run behind the
    micro-batch under way.

    A pipeline with several sinks writes the rows of each into a directory of its name in --output.
    One with several sources has a directory of each, --input ticks=DIRECTORY
    --input news=DIRECTORY, with the column of --order-by in all. Or it reads tables with a column
    "stream", which names each event's source, and the columns of all, like "ticks.price", which are
    null in the events of others.
    """
    with reported_errors():
        operator = load_operator(target, parse_arguments(arguments))
        input_, rows, newest = check_inputs(inputs, operator, order_by, source)
        directories = directories_of(operator, output)
        for directory in directories.values():
            check_fresh(directory, checkpoint)
        check_no_files("--output", output)
        shared = [one for one in (order_by, source) if one is not None]
        needs("spark", "pyspark", "pandas")
        in_time = feed_options(**event_time)
        check_early(early_output, in_time, [output, event_time["late_output"]])
        failed = errors_options(errors_output, errors_limit)
        show, default = shown_by(operator.name, as_json)
        with (
            leaving_none_empty(
                [
                    *(output, *directories.values()),
                    *(() if errors_output is None else (errors_output,)),
                    *(() if early_output is None else (early_output,)),
                    *(
                        ()
                        if early_output is None
                        else directories_of(operator, early_output).values()
                    ),
                ]
            ),
            ss.Engine(
                operator,
                threads=threads,
                horizon=horizon,
                chunk=chunk,
                protocol=protocol,
                early=early_output is not None,
                errors="raise" if errors_output is None else "side",
            ) as engine,
            nullcontext(str(checkpoint)) if checkpoint else tempfile.TemporaryDirectory() as place,
        ):
            feed = ss.spark.foreach_batch(
                engine,
                order_by=order_by,
                source=source,
                to=sinks_in(directories),
                **in_time,
                **failed,
            )
            early = None if early_output is None else EarlyLog(engine, early_output)
            watch = Watch(engine, feed, rows=rows, newest=newest, to=show, every=every or default)
            with watch:
                session = ss.spark.local_session(
                    f"specstream run {target}", settings={"spark.log.level": "OFF"}
                )
                try:
                    watch.begin()
                    started = time.perf_counter()
                    with ending_at_once(engine), put_off_exit() as ended:
                        ss.spark.stream_directory(
                            session,
                            input_,
                            feed,
                            checkpoint=place,
                            files_per_trigger=max_files_per_trigger,
                            shared=shared if isinstance(input_, dict) else (),
                            on_batch=None if early is None else early.write,
                        )
                        if in_time:
                            feed.finish()
                        if early is not None:
                            early.write()
                    seconds = time.perf_counter() - started
                finally:
                    session.stop()
            stats = engine.stats
        summary = {
            **summary_of(operator.name, feed.stats, stats, seconds, bool(ended)),
            "protocol": protocol,
            "output": str(output),
            "early": None if early is None else early.summary(stats),
            "errors": None if errors_output is None else str(errors_output),
        }
        if as_json:
            click.echo(json.dumps(summary))
        else:
            print_summary(summary, feed.stats.running, bool(in_time))
        if ended:
            sys.exit(ended[0])


def errors_options(directory: Path | None, limit: int | None) -> dict[str, Any]:
    """``--errors`` and what belongs to it, as :func:`specstream.spark.foreach_batch` takes them.

    Raises:
        click.UsageError: the limit is given alone.
        click.ClickException: there are files in the directory.
    """
    if directory is None:
        if limit is not None:
            raise click.UsageError(
                "--errors-limit is about events that are set aside when they fail: give --errors "
                "DIRECTORY as well, or leave it out"
            )
        return {}
    check_no_files("--errors", directory)
    return {"errors_to": ss.spark.parquet_sink(directory), "errors_limit": limit}


def directories_of(operator: ss.Operator, output: Path) -> dict[str, Path]:
    """Where rows go, by sink; of an operator, or of a pipeline with one, under an empty name."""
    sinks = operator.sinks
    return {name: output / name for name in sinks} if len(sinks) > 1 else {"": output}


@contextmanager
def leaving_none_empty(directories: Iterable[Path]) -> Iterator[None]:
    """What is refused, or fails before the first batch, leaves no directories behind."""
    new = [one for one in dict.fromkeys(directories) if not one.exists()]
    try:
        yield
    except BaseException:
        for one in reversed(new):  # those inside first
            with suppress(OSError):
                one.rmdir()
        raise


def sinks_in(directories: dict[str, Path]) -> Any:
    """What writes them there."""
    found = {name: ss.spark.parquet_sink(directory) for name, directory in directories.items()}
    return found.get("", found)


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
    }


def print_summary(summary: dict[str, Any], running: float, is_in_time: bool) -> None:
    """For people, on stdout.

    Args:
        summary: as ``--json`` has it.
        running: seconds in the engine.
        is_in_time: there is a watermark, so rows may have been late.
    """
    table = Table(show_header=False, box=None)
    stopped = ", stopped by SIGTERM" if summary["stopped"] else ""
    for name, value in (
        ("operator", summary["operator"]),
        ("rows in", f"{summary['rows_in']:,}"),
        ("rows out", f"{summary['rows_out']:,}  in {summary['output']}"),
        ("batches", f"{summary['batches']:,}{stopped}"),
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
    ):
        table.add_row(name, value)
    Console().print(table)


def shown_by(operator: str, as_json: bool) -> tuple[JsonLines | LiveTable | PlainLines, float]:
    """Who shows a run's statistics, and every how many seconds by default."""
    console = Console(stderr=True)
    if as_json:
        return JsonLines(click.echo), 1.0
    if console.is_terminal and not console.is_dumb_terminal:
        return LiveTable(console, operator), 1.0
    return PlainLines(lambda line: click.echo(line, err=True), operator), 10.0


@contextmanager
def ending_at_once(engine: ss.Engine) -> Iterator[None]:
    """Ctrl-C ends the batch in flight at its next event; Spark itself waits for the batch."""
    asked = False

    def end(number: int, frame: object) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        # Nothing is raised the first time: it would be out of a call into Spark, which logs that.
        # A batch of a closed engine fails, and the query with it.
        asked = True
        engine.close()

    # Spark has set a handler of its own when its session was made.
    before = signal.signal(signal.SIGINT, end)
    try:
        yield
    except Exception:
        if not asked:
            raise
    finally:
        signal.signal(signal.SIGINT, before)
    if asked:
        raise KeyboardInterrupt


@contextmanager
def put_off_exit() -> Iterator[list[Any]]:
    """After SIGTERM the summary comes first; the list has the exit status then."""
    ended: list[Any] = []
    try:
        yield ended
    except SystemExit as end:
        ended.append(end.code)
