"""``specstream run``: an operator over a directory of Parquet files, through Spark."""

from __future__ import annotations

import json
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import click

import specstream as ss
from specstream.checkpoint.run.run_directory import RunDirectory
from specstream.cli.directories import (
    DIRECTORY,
    check_apart,
    check_inputs,
    check_no_file,
    check_no_files,
    check_no_patterns,
)
from specstream.cli.early_log import EarlyLog, check_early
from specstream.cli.errors import needs, reported_errors
from specstream.cli.event_time_options import event_time_options, feed_options
from specstream.cli.from_source import (
    check_from,
    feed_of,
    from_options,
    run_events,
    source_of,
    url_and_column,
)
from specstream.cli.options import Command, SecondsRange, engine_options, inputs_options
from specstream.cli.run_directories import (
    directories_of,
    leaving_none_empty,
    settings_of,
    sinks_in,
)
from specstream.cli.run_summary import print_summary, shown_by, summary_of
from specstream.cli.target import load_operator, parse_arguments
from specstream.engine.engine import Amount
from specstream.monitoring.watch import Watch

__all__ = ["run"]


@click.command(cls=Command)
@partial(inputs_options, order_is_required=False, input_is_required=False)
@from_options
@click.option(
    "--output", type=DIRECTORY, required=True, help="Directory for the emitted rows; new or empty."
)
@event_time_options
@click.option(
    "--early",
    "early_output",
    type=DIRECTORY,
    help="With --watermark: directory for the changes of early results, new or empty. Events are "
    "applied as they arrive, and their results are written before they are final.",
)
@click.option(
    "--errors",
    "errors_output",
    type=DIRECTORY,
    help="Directory for events for which the operator raises, new or empty: they are set aside "
    "with the error, and the run continues. Without it, the run ends at the first.",
)
@click.option(
    "--errors-limit",
    type=click.IntRange(min=0),
    help="With --errors: how many events of a micro-batch may fail; all by default.",
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
    help="Directory for the run's checkpoint, new or empty at first. The same command with it "
    "continues where the run was killed or stopped. Without it, a run cannot be resumed.",
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
    type=SecondsRange(min=0.05),
    metavar="SECONDS",
    help="Seconds between two reports of the statistics; by default 1, and 10 if stderr is not a "
    "terminal.",
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
    origin: str | None,
    at_most_once: bool,
    order_by: str | None,
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
    errors_output: Path | None,
    errors_limit: int | None,
    **event_time: Any,
) -> None:
    """Run an operator over a directory of Parquet files, through Spark, or over another source.

    MODULE is a module name or the path of a .py file; OPERATOR an operator in it, or a function
    that makes one from the --arg values. Files are taken in the order in which they were last
    modified; within a micro-batch, events run in the order (--order-by, --source, position), and
    with --watermark across micro-batches as well. With --early, events that wait for the watermark
    give their results early; "specstream latest" reads them. SIGTERM ends the run after
    the current micro-batch.

    With --from instead of --input, events come from NATS JetStream, Kafka, a TCP connection or
    files, without Spark; they run in the order in which they arrive, or in that of --order-by. Such
    a run ends when its source ends, or on SIGTERM or Ctrl-C after the current micro-batch.

    With --checkpoint a run may be killed at any instant. The same command continues it, and the
    output is that of a run that was never interrupted. It also continues when there are more files.

    A pipeline with several sinks writes the rows of each into a directory of its name in --output.
    One with several sources has a directory of each, --input ticks=DIRECTORY
    --input news=DIRECTORY, with the column of --order-by in all. Or it reads tables with a column
    "stream", which names each event's source, and the columns of all sources, like
    "ticks.price", which are null in the events of other sources.
    """
    with reported_errors():
        if keep_batches is not None and checkpoint is None:
            raise click.UsageError("--keep-batches keeps rows in --checkpoint: give that as well")
        origin, source = url_and_column(origin, source)
        check_from(
            *(origin, inputs, order_by, early_output, checkpoint, max_files_per_trigger),
            at_most_once,
        )
        operator = load_operator(target, parse_arguments(arguments))
        input_: Path | dict[str, Path] = Path()
        rows, newest, events = 0, None, None
        if origin is None:
            check_no_file(inputs)
            input_, rows, newest = check_inputs(inputs, operator, order_by, source)
            check_no_patterns(path for _, path in inputs)
        else:
            events = source_of(origin)
        late_output = event_time["late_output"]
        outputs = {
            "--output": output,
            "--late-output": late_output,
            "--early": early_output,
            "--errors": errors_output,
        }
        read = {f"--input {path}": path for _, path in inputs}
        if origin is not None and "://" not in origin:
            read = {f"--from {origin}": Path(origin)}
        check_apart(read, {**outputs, "--checkpoint": checkpoint})
        place = None if checkpoint is None else RunDirectory(checkpoint)
        settings = settings_of(
            operator,
            arguments,
            {
                "--order-by": order_by,
                "--source": source,
                **({} if events is None else {"--from": events.name}),
            },
            dict(inputs),
            outputs,
            is_in_time=event_time["watermark"] is not None,
        )
        goes_on = place is not None and place.check(settings)
        directories = directories_of(operator, output)
        for directory in (output, *directories.values()):
            if not goes_on:
                check_no_files("--output", directory, checkpoint)
        if goes_on and not any(output.rglob("*.parquet")):
            click.echo(
                f"Warning: --output {output} has none of the files that this run has written: put "
                "them back, unless they were moved on purpose; they are not written again",
                err=True,
            )
        shared = [one for one in (order_by, source) if one is not None]
        if events is None:
            needs("spark", "pyspark", "pandas")
        in_time = feed_options(**event_time, is_new=not goes_on)
        check_early(early_output, in_time, [output, late_output], is_new=not goes_on)
        changed = place is not None and goes_on and bool(place.changes(settings))
        is_lost = place is not None and goes_on and not place.is_there
        is_own = place is not None and goes_on and (is_lost or place.writes(errors_output))
        is_shared = errors_output in (output, late_output, early_output)
        failed = errors_options(errors_output, errors_limit, is_new=is_shared or not is_own)
        written = list(directories.values())
        if errors_output is not None:
            written.append(errors_output)
        if early_output is not None:
            written += directories_of(operator, early_output).values()
        tops = [one for one in (output, early_output) if one is not None]
        first = "starting Spark" if events is None else f"waiting for {events.name}"
        show, default = shown_by(operator.name, as_json, first)
        with (
            leaving_none_empty([*tops, *written]),
            ss.Engine(
                operator,
                threads=threads,
                horizon=horizon,
                chunk=chunk,
                protocol=protocol,
                early=early_output is not None,
                errors="raise" if errors_output is None else "side",
            ) as engine,
            nullcontext(str(place.spark)) if place else tempfile.TemporaryDirectory() as spark,
            ExitStack() as stack,
        ):
            is_fed = place is not None
            early = None if early_output is None else EarlyLog(engine, early_output, is_fed=is_fed)
            feed_from: Any = (
                ss.spark.foreach_batch
                if events is None
                else partial(feed_of, events, at_most_once=at_most_once)
            )
            feed: Any = feed_from(
                engine,
                order_by=order_by,
                source=source,
                to=sinks_in(directories),
                checkpoint=None if place is None else place.files,
                keep_batches=keep_batches or 0,
                early_to=early.to if early is not None and is_fed else None,
                **in_time,
                **failed,
            )
            stack.callback(feed.close)
            if place is not None and (changed or is_lost or not goes_on):
                late = [] if late_output is None else [late_output]
                (place.note if goes_on else place.begin)(settings, [*written, *late])
            recorded = None if feed.checkpoint is None else feed.checkpoint.recorded
            before = None if recorded is None else recorded.batch_id
            left = rows - events_of(engine)
            watch = Watch(engine, feed, rows=left, newest=newest, to=show, every=every or default)
            with watch:
                if events is not None:
                    seconds, ended = run_events(feed, watch)
                else:
                    seconds, ended = through_spark(
                        f"specstream run {target}",
                        input_,
                        engine,
                        feed,
                        watch,
                        early,
                        ends=bool(in_time),
                        checkpoint=spark,
                        files_per_trigger=max_files_per_trigger,
                        shared=shared if isinstance(input_, dict) else (),
                    )
            stats = engine.stats
        summary = {
            **summary_of(operator.name, feed.stats, stats, seconds, bool(ended)),
            "protocol": protocol,
            "output": str(output),
            "early": None if early is None else early.summary(stats),
            "after_batch": before,
            "errors": None if errors_output is None else str(errors_output),
        }
        if as_json:
            click.echo(json.dumps(summary))
        else:
            print_summary(summary, feed.stats.running, bool(in_time))
        if ended:
            sys.exit(ended[0])


def through_spark(
    name: str,
    directories: Path | dict[str, Path],
    engine: ss.Engine,
    feed: Any,
    watch: Watch,
    early: EarlyLog | None,
    *,
    ends: bool,
    **options: Any,
) -> tuple[float, list[Any]]:
    """Streams directories through a feed; the seconds that it took, and the exit status after
    SIGTERM, if that came."""
    session = ss.spark.local_session(name, settings={"spark.log.level": "OFF"})
    try:
        watch.begin()
        started = time.perf_counter()
        with ending_at_once(engine), put_off_exit() as ended:
            on_batch = None if early is None else early.write
            ss.spark.stream_directory(session, directories, feed, on_batch=on_batch, **options)
            if ends:
                feed.finish()
            if early is not None:
                early.write()
        return time.perf_counter() - started, ended
    finally:
        session.stop()


def events_of(engine: ss.Engine) -> int:
    """How many events an engine has applied before, in other processes."""
    numbered = sum(source.next_sequence for source in engine.durable.pending.sources)
    return engine.durable.next_sequence + numbered - engine.stats.pending


def errors_options(directory: Path | None, limit: int | None, *, is_new: bool) -> dict[str, Any]:
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
    if is_new:
        check_no_files("--errors", directory)
    return {"errors_to": ss.sinks.parquet_sink(directory), "errors_limit": limit}


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
