"""``specstream run --early DIRECTORY``: the changes of early results, as Parquet files.

After each micro-batch, and at the end of the input, one file with the changes since the one before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
import pyarrow as pa
import pyarrow.compute as pc

import specstream as ss
from specstream.cli.directories import check_no_files
from specstream.engine.engine import Engine

__all__ = ["CHANGES", "EarlyLog", "check_early", "early_rows"]

CHANGES = ("early", "withdrawn", "final")


def check_early(
    directory: Path | None,
    event_time: Mapping[str, Any],
    others: Iterable[Path | None],
    is_new: bool = True,
) -> None:
    """Whether there can be early results, and whether their directory is theirs alone.

    Args:
        directory: of ``--early``, or None.
        event_time: the options of a feed in event time; none without ``--watermark``.
        others: where else rows are written.
        is_new: the run has written nothing before.

    Raises:
        click.UsageError: there cannot, or it is not.
        click.ClickException: there are files in it.
    """
    if directory is None:
        return
    if not event_time:
        raise click.UsageError(
            "--early gives the results of events that wait for a watermark: give --watermark as "
            'well, like --watermark "10 seconds", or leave --early out'
        )
    own = directory.resolve()
    for other in others:
        if other is not None and (
            own.is_relative_to(other.resolve()) or other.resolve().is_relative_to(own)
        ):
            raise click.UsageError(
                f"--early {directory}: other rows are written to {other}, and a reader of one "
                "would also read the other: name a directory beside it"
            )
    for one in (directory, *directory.glob("*/")) if is_new else ():
        check_no_files("--early", one)


class EarlyLog:
    """What the early results of a run have told, in a directory.

    A run with a checkpoint has its feed tell them, so that a batch that comes again replaces its
    file; without one they are fetched from the engine behind each batch.

    Args:
        engine: of the run; it has worked for nobody yet.
        directory: new, empty, or of the run that goes on; of a pipeline with several sinks, that of
            theirs.
        is_fed: whether the feed tells them.

    Attributes:
        to: what ``early_to=`` is given.
    """

    def __init__(self, engine: Engine, directory: Path, *, is_fed: bool = False) -> None:
        self._engine, self._directory, self._is_fed = engine, directory, is_fed
        names = engine.operator.sinks
        self._batches: set[int] = set()
        self._told: Counter[str] = Counter()
        self._sinks = {
            name: _Changes(directory / name, self._count)
            for name in (names if len(names) > 1 else [""])
        }
        self.to: Any = self._sinks.get("", self._sinks)
        self._next = 0
        if not is_fed:
            # From the first look on the engine keeps what it tells of.
            engine.poll_early()

    def _count(self, table: pa.Table, batch_id: int) -> None:
        self._batches.add(batch_id)
        for found in pc.value_counts(table["change"]).to_pylist():
            self._told[found["values"]] += found["counts"]

    def write(self, _batch_id: int | None = None) -> None:
        """Fetches what has changed and writes it, unless the feed does that.

        Raises:
            SinkError: it cannot be written.
        """
        if self._is_fed:
            return
        changes = self._engine.poll_early(timeout=None).changes
        for name, table in (changes if isinstance(changes, Mapping) else {"": changes}).items():
            self._sinks[name](table, self._next)
        self._next += 1

    def summary(self, stats: ss.Statistics) -> dict[str, Any]:
        """What was told and what it has cost, as plain data."""
        figures = {} if stats.early is None else asdict(stats.early)
        return {
            "output": str(self._directory),
            "answers": len(self._batches),
            "changes": {change: self._told[change] for change in CHANGES},
            **figures,
        }


class _Changes:
    """The sink of changes: a file for each batch that has any."""

    def __init__(self, directory: Path, count: Callable[[pa.Table, int], None]) -> None:
        self._sink = ss.sinks.parquet_sink(directory)
        self._count = count

    def __repr__(self) -> str:
        return f"early changes in {str(self._sink.path)!r}"

    @property
    def path(self) -> Path:
        """The directory."""
        path: Path = self._sink.path
        return path

    @property
    def place(self) -> str:
        """Equal for two sinks that write to one directory."""
        place: str = self._sink.place
        return place

    def check_first_batch(self, batch_id: int, *, is_new: bool) -> None:
        """As of the sink."""
        self._sink.check_first_batch(batch_id, is_new=is_new)

    def __call__(self, table: pa.Table, batch_id: int) -> None:
        """Writes them, in place of what a run that was killed has written of the batch."""
        if table.num_rows:
            self._count(table, batch_id)
        if table.num_rows or self._sink.file(batch_id).exists():
            self._sink(table, batch_id)


def early_rows(summary: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    """The same for people: names and texts."""
    if summary is None:
        return []
    counts = ", ".join(f"{count:,} {change}" for change, count in summary["changes"].items())
    return [
        ("early changes", f"{counts}  in {summary['output']}"),
        (
            "revocations",
            f"{summary['revocations']:,}; transactions: {summary['republished']:,} republished, "
            f"{summary['rerun']:,} rerun",
        ),
    ]
