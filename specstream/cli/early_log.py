"""``specstream run --early DIRECTORY``: the changes of early results, as Parquet files.

After each micro-batch, and at the end of the input, one file with the changes since the one before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
import pyarrow.compute as pc

import specstream as ss
from specstream.cli.directories import check_no_files

__all__ = ["CHANGES", "EarlyLog", "check_early", "early_rows"]

CHANGES = ("early", "withdrawn", "final")


def check_early(
    directory: Path | None, event_time: Mapping[str, Any], others: Iterable[Path | None]
) -> None:
    """Whether there can be early results, and whether their directory is theirs alone.

    Args:
        directory: of ``--early``, or None.
        event_time: the options of a feed in event time; none without ``--watermark``.
        others: where else rows are written.

    Raises:
        click.UsageError: there cannot, or it is not.
        click.ClickException: there are files in it.
    """
    if directory is None:
        return
    if not event_time:
        raise click.UsageError(
            "--early tells the results of events that wait for a watermark: give --watermark as "
            'well, like --watermark "10 seconds", or leave --early out'
        )
    own = directory.resolve()
    for other in others:
        if other is not None and (
            own.is_relative_to(other.resolve()) or other.resolve().is_relative_to(own)
        ):
            raise click.UsageError(
                f"--early {directory}: other rows are written to {other}, and who reads the one "
                "would read the other: name a directory beside it"
            )
    for one in (directory, *directory.glob("*/")):
        check_no_files("--early", one)


class EarlyLog:
    """What the early results of a run have told, in a directory.

    Args:
        engine: of the run; it has worked for nobody yet.
        directory: new or empty; of a pipeline with several sinks, that of theirs.
    """

    def __init__(self, engine: ss.Engine, directory: Path) -> None:
        self._engine, self._directory = engine, directory
        names = engine.operator.sinks
        self._sinks = {
            name: ss.spark.parquet_sink(directory / name)
            for name in (names if len(names) > 1 else [""])
        }
        self._answers = 0
        self._told: Counter[str] = Counter()
        # From the first look on the engine keeps what it tells of.
        engine.poll_early()

    def write(self, _batch_id: int | None = None) -> None:
        """Writes what has changed; no file, if nothing has.

        Raises:
            SinkError: it cannot be written.
        """
        changes = self._engine.poll_early(timeout=None).changes
        tables = changes if isinstance(changes, Mapping) else {"": changes}
        if not any(table.num_rows for table in tables.values()):
            return
        for name, table in tables.items():
            if table.num_rows:
                self._sinks[name](table, self._answers)
            for found in pc.value_counts(table["change"]).to_pylist():
                self._told[found["values"]] += found["counts"]
        self._answers += 1

    def summary(self, stats: ss.Statistics) -> dict[str, Any]:
        """What was told and what it has cost, as plain data."""
        figures = {} if stats.early is None else asdict(stats.early)
        return {
            "output": str(self._directory),
            "answers": self._answers,
            "changes": {change: self._told[change] for change in CHANGES},
            **figures,
        }


def early_rows(summary: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    """The same for people: names and texts."""
    if summary is None:
        return []
    told = ", ".join(f"{count:,} {change}" for change, count in summary["changes"].items())
    return [
        ("early changes", f"{told}  in {summary['output']}"),
        (
            "revocations",
            f"{summary['revocations']:,}; transactions: {summary['republished']:,} republished, "
            f"{summary['rerun']:,} rerun",
        ),
    ]
