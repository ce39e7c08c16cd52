"""``specstream run --from``: an operator fed by NATS, Kafka, TCP or files, without Spark."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, parse_qsl, urlsplit

import click

import specstream as ss
from specstream.cli.errors import needs
from specstream.declarations.options import meant_path
from specstream.monitoring.watch import Watch
from specstream.sources.options import RunOptions
from specstream.sources.running import SourceFeed, stopping_on

__all__ = ["check_from", "feed_of", "from_options", "run_events", "source_of", "url_and_column"]

_URLS = {
    "nats": "nats://HOST:PORT/STREAM[/SUBJECT]",
    "kafka": "kafka://HOST:PORT/TOPIC[,TOPIC]",
    "tcp": "tcp://HOST:PORT",
}
FROM = f"{', '.join(_URLS.values())}, or a directory or file of Parquet"
# What may stand behind the question mark of a URL.
_TEXTS = {
    "nats": ("start", "gone"),
    "kafka": ("start", "gone", "group"),
    "tcp": ("format", "listen"),
}
# What to do with files that the command does not read.
_OTHER_FILES = (
    "The files of --from are Parquet. Convert others, a CSV as with pyarrow.parquet.write_table("
    'pyarrow.csv.read_csv("in.csv"), "in.parquet"); or read them in Python: ss.sources.run(engine, '
    'ss.sources.dataset("in.csv", format="csv"), to=...)'
)


def source_of(origin: str) -> ss.sources.Source:
    """The source that ``--from`` names.

    Raises:
        click.UsageError: it is none such.
        ConfigurationError: an option of it cannot have its value, or its files cannot be read.

    >>> source_of("tcp://127.0.0.1:9999?format=arrow").name
    'tcp://127.0.0.1:9999'
    """
    scheme = origin.partition("://")[0] if "://" in origin else ""
    if not scheme:
        return _files(origin)
    if scheme not in _MADE:
        raise click.UsageError(f"--from {origin}: expected {FROM}")
    url = urlsplit(origin)
    given = dict(parse_qsl(url.query, keep_blank_values=True))
    for name in given:
        if name not in _TEXTS[scheme]:
            raise click.UsageError(
                f"--from {origin}: {name}= is not one of the options {', '.join(_TEXTS[scheme])}"
            )
    try:
        return _MADE[scheme](url, given)
    except (IndexError, ValueError, TypeError) as error:
        if isinstance(error, ss.SpecstreamError):
            raise
        raise click.UsageError(f"--from {origin}: expected {_URLS[scheme]}") from error


def _files(origin: str) -> ss.sources.Source:
    if not Path(origin).exists():
        path, _, options = origin.partition("?")
        if options and Path(path).exists():
            name = options.partition("=")[0]
            raise click.UsageError(
                f"--from {origin}: {name}= is an option, and files have none: give --from {path}. "
                f"{_OTHER_FILES}"
            )
        near = meant_path(origin)
        raise click.UsageError(f"--from {origin}: there is no such file{near}; expected {FROM}")
    try:
        return ss.sources.dataset(origin)
    except ss.ConfigurationError as error:
        why = str(error.__cause__ or error)
        raise ss.ConfigurationError(
            f"--from {origin} cannot be read as Parquet ({why}). If a file is incomplete, "
            f"write it again or take it out of the directory. {_OTHER_FILES}"
        ) from error


def _nats(url: SplitResult, given: dict[str, str]) -> ss.sources.Source:
    needs("nats", "nats")
    stream, _, subject = url.path.removeprefix("/").partition("/")
    if not stream:
        raise ValueError(url.path)
    return ss.sources.nats(f"nats://{url.netloc}", stream, subject or None, **given)


def _kafka(url: SplitResult, given: dict[str, str]) -> ss.sources.Source:
    needs("kafka", "confluent_kafka")
    topics = url.path.removeprefix("/")
    if not topics:
        raise ValueError(url.path)
    return ss.sources.kafka(url.netloc, topics.split(","), **given)


def _tcp(url: SplitResult, given: dict[str, str]) -> ss.sources.Source:
    if url.hostname is None or url.port is None:
        raise ValueError(url.netloc)
    listens = given.pop("listen", None) is not None
    return ss.sources.tcp(url.hostname, url.port, listen=listens, **given)


_MADE: dict[str, Callable[[SplitResult, dict[str, str]], ss.sources.Source]] = {
    "nats": _nats,
    "kafka": _kafka,
    "tcp": _tcp,
}


def from_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """``--from`` and what belongs to it."""
    for option in (
        click.option(
            "--at-most-once",
            is_flag=True,
            help="With --checkpoint and a source that cannot send again, like tcp://: accept that "
            "events in flight are lost if the process is killed.",
        ),
        click.option(
            "--from",
            "origin",
            metavar="URL",
            help=f"Instead of --input: where events come from without Spark, {FROM}. Options "
            "follow a question mark, like ?start=latest. --source with a URL does the same.",
        ),
    ):
        command = option(command)
    return command


def url_and_column(origin: str | None, source: str | None) -> tuple[str | None, str | None]:
    """Where events come from, and the column of sources: a URL given as ``--source`` is no column.

    Raises:
        click.UsageError: both are URLs.

    >>> url_and_column(None, "nats://127.0.0.1:4222/ORDERS"), url_and_column(None, "origin")
    (('nats://127.0.0.1:4222/ORDERS', None), (None, 'origin'))
    """
    if source is None or "://" not in source:
        return origin, source
    if origin is not None:
        raise click.UsageError("--from and --source both say where events come from: give one")
    return source, None


def check_from(
    origin: str | None,
    inputs: object,
    order_by: str | None,
    early: Path | None,
    checkpoint: Path | None,
    files_per_trigger: int | None,
    at_most_once: bool,
) -> None:
    """Whether the options go with ``--from``, or without.

    Args:
        origin: its value; the others are those of other options.
        inputs: see there.
        order_by: see there.
        early: see there.
        checkpoint: see there.
        files_per_trigger: see there.
        at_most_once: see there.

    Raises:
        click.UsageError: they do not.
    """
    if at_most_once and (origin is None or checkpoint is None):
        raise click.UsageError(
            "--at-most-once is for events of --from that --checkpoint may miss: give both, or "
            "leave it out"
        )
    if origin is None and not inputs:
        raise click.UsageError("Missing option '--input' or '--from': where do events come from?")
    if origin is None:
        if not order_by:
            raise click.UsageError("Missing option '--order-by'.")
    elif inputs:
        raise click.UsageError("--from and --input both say where events come from: give one")
    elif files_per_trigger is not None:
        raise click.UsageError(
            "--max-files-per-trigger applies to Spark, which --from does not use"
        )
    elif early is not None and checkpoint is None:
        raise click.UsageError("--early with --from needs --checkpoint: give that as well")


def feed_of(events: ss.sources.Source, engine: ss.Engine, **options: Any) -> SourceFeed:
    """Feeds the engine from a source."""
    return SourceFeed(engine, events, RunOptions(**options))


def run_events(feed: SourceFeed, watch: Watch) -> tuple[float, list[int]]:
    """Runs what comes; the seconds that it took, and the exit status, if a signal has come."""
    watch.begin()
    started = time.perf_counter()
    with stopping_on((signal.SIGTERM, signal.SIGINT)) as stop:
        feed.run(stop)
    ended = [] if stop.signal is None else [128 + stop.signal]
    return time.perf_counter() - started, ended
