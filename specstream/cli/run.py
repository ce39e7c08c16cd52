"""``specstream run``: an operator over a directory of Parquet files, through Spark."""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table

import specstream as ss
from specstream.checkpoint.run_directory import RunDirectory
from specstream.cli.directories import DIRECTORY, check_inputs, check_no_files
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
    help="Directory of what outlives the process, new or empty at first. The same command with it "
    "goes on where the run was killed or stopped. Without it a run cannot be started again.",
)
@click.option(
    "--keep-batches",
    type=click.IntRange(min=0),
    metavar="K",
    help="With --checkpoint: keep the rows of the last K micro-batches for specstream replay, and "
    "files that a rollback needs; the rows of a batch that fails are kept anyway.",
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
    keep_batches: int | None,
    max_files_per_trigger: int | None,
    every: float | None,
    as_json: bool,
    early_output: Path | None,
    **event_time: Any,
) -> None:
    """Run an operator over a directory of Parquet files, through Spark.

    MODULE is a module name or the path of a .py file; OPERATOR an operator in it, or a function
    that makes one from the --arg values. Files are taken in the order in which they were last
    modified; within a micro-batch, events run in the order (--order-by, --source, position), and
    with --watermark across micro-batches as well. With --early, events that wait for the watermark
    have told their results before; "specstream latest" reads them. SIGTERM ends the run behind the
    micro-batch under way.

    With --checkpoint a run may be killed at any instant. The same command goes on with it, and the
    output is that of a run that was never interrupted; so it does when there are more files.

    A pipeline with several sinks writes the rows of each into a directory of its name in --output.
    One with several sources has a directory of each, --input ticks=DIRECTORY
    --input news=DIRECTORY, with the column of --order-by in all. Or it reads tables with a column
    "stream", which names each event's source, and the columns of all, like "ticks.price", which are
    null in the events of others.
    """
    with reported_errors():
        if keep_batches is not None and checkpoint is None:
            raise click.UsageError("--keep-batches keeps rows in --checkpoint: give that as well")
        operator = load_operator(target, parse_arguments(arguments))
        input_, rows, newest = check_inputs(inputs, operator, order_by, source)
        place = None if checkpoint is None else RunDirectory(checkpoint)
        late_output = event_time["late_output"]
        settings = settings_of(
            operator,
            arguments,
            {"--order-by": order_by, "--source": source},
            dict(inputs),
            {"--output": output, "--late-output": late_output, "--early": early_output},
            is_in_time=event_time["watermark"] is not None,
        )
        goes_on = place is not None and place.check(settings)
        directories = directories_of(operator, output)
        for directory in (output, *directories.values()):
            if not goes_on:
                check_no_files("--output", directory)
        shared = [one for one in (order_by, source) if one is not None]
        needs("spark", "pyspark", "pandas")
        in_time = feed_options(**event_time, is_new=not goes_on)
        check_early(early_output, in_time, [output, late_output], is_new=not goes_on)
        early_directories = {} if early_output is None else directories_of(operator, early_output)
        written = [*directories.values(), *early_directories.values()]
        written += [] if late_output is None else [late_output]
        show, default = shown_by(operator.name, as_json)
        with (
            leaving_none_empty(
                [
                    *(output, *directories.values()),
                    *(() if early_output is None else (early_output,)),
                    *early_directories.values(),
                ]
            ),
            ss.Engine(
                operator,
                threads=threads,
                horizon=horizon,
                chunk=chunk,
                protocol=protocol,
                early=early_output is not None,
            ) as engine,
            nullcontext(str(place.spark)) if place else tempfile.TemporaryDirectory() as spark,
        ):
            early = (
                None
                if early_output is None
                else EarlyLog(engine, early_output, is_fed=place is not None)
            )
            feed = ss.spark.foreach_batch(
                engine,
                order_by=order_by,
                source=source,
                to=sinks_in(directories),
                checkpoint=None if place is None else place.files,
                keep_batches=keep_batches or 0,
                early_to=None if early is None or place is None else early.to,
                **in_time,
            )
            if place is not None and not goes_on:
                place.begin(settings, written)
            recorded = None if feed.checkpoint is None else feed.checkpoint.recorded
            before = None if recorded is None else recorded.batch_id
            left = rows - events_of(engine)
            watch = Watch(engine, feed, rows=left, newest=newest, to=show, every=every or default)
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
                            checkpoint=spark,
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
            feed.close()
        summary = {
            **summary_of(operator.name, feed.stats, stats, seconds, bool(ended)),
            "protocol": protocol,
            "output": str(output),
            "early": None if early is None else early.summary(stats),
            "after_batch": before,
        }
        if as_json:
            click.echo(json.dumps(summary))
        else:
            print_summary(summary, feed.stats.running, bool(in_time))
        if ended:
            sys.exit(ended[0])


def settings_of(
    operator: ss.Operator,
    arguments: Iterable[str],
    columns: Mapping[str, str | None],
    inputs: Mapping[str, Path],
    outputs: Mapping[str, Path | None],
    *,
    is_in_time: bool,
) -> dict[str, str | None]:
    """What each start of a run has to be given again, by option.

    The operator's own file is not in it: what it does may change, as in any query.
    """
    names = ("--input" if not name else f"--input {name}" for name in inputs)
    return {
        "operator": operator.name,
        "--arg": " ".join(sorted(arguments)) or None,
        **columns,
        **dict(zip(names, map(os.path.realpath, inputs.values()), strict=True)),
        **{
            option: None if path is None else os.path.realpath(path)
            for option, path in outputs.items()
        },
        "watermark": "given" if is_in_time else None,
    }


def events_of(engine: ss.Engine) -> int:
    """How many events an engine has applied before, in other processes."""
    numbered = sum(source.next_sequence for source in engine.durable.pending.sources)
    return engine.durable.next_sequence + numbered - engine.stats.pending


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
    before = summary["after_batch"]
    behind = "" if before is None else f", after batch {before}"
    for name, value in (
        ("operator", summary["operator"]),
        ("rows in", f"{summary['rows_in']:,}"),
        ("rows out", f"{summary['rows_out']:,}  in {summary['output']}"),
        ("batches", f"{summary['batches']:,}{stopped}{behind}"),
        *((("late rows", f"{summary['late']:,}"),) if is_in_time else ()),
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
