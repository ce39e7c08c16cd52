"""Both checkpoints of a stream, ours and Spark's, taken back to an earlier batch.

A stream without Spark has ours alone, with the position of its source in it.

Files are deleted and none is written, the latest first, and ours before Spark's. So whenever it is
broken off, what is left is a state that ours ends in and Spark is behind of: a query that is
started then is refused, and nothing is lost by running the command again. Only when Spark's last
file has gone, both are where they were after that batch.

What is in a sink stays there, and cannot be taken back from here: a rollback says what it is.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import pyarrow.parquet as pq

from specstream.checkpoint.format.checkpoint_files import names_of
from specstream.checkpoint.format.spark_log import Deletion, SparkLog
from specstream.checkpoint.format.store import Store
from specstream.checkpoint.inspect.inventory import Inventory, inventory, ranges_of
from specstream.checkpoint.run.batch import OF_SOURCES
from specstream.checkpoint.run.inputs import input_batches
from specstream.checkpoint.run.prefetch import kept_rows
from specstream.errors import ConfigurationError, SnapshotError
from specstream.files.part_files import batches_of, check_written, parts_of
from specstream.files.places import not_local
from specstream.files.tree import LocalTree

__all__ = ["Rollback", "roll_back"]


@dataclass(frozen=True)
class Rollback:
    """What a rollback has done, or would do.

    Attributes:
        batch_id: that both checkpoints are at afterwards.
        newest: the last batch of which either knew; what lies between is what sinks must forget.
        files: what is deleted, in that order.
        merges_files: whether the files of later batches come in one batch, because the log of
            their source cannot be taken back.
        outputs: of the directories of Parquet files that were named, those files that the sink must
            forget.
        mixed: those that a compaction has put together of earlier batches and of such ones: how
            many of their rows, the first ones, are to stay.
    """

    batch_id: int
    newest: int
    files: list[str]
    merges_files: bool
    outputs: list[str]
    mixed: dict[str, int] = field(default_factory=dict)


def roll_back(
    store: Store,
    spark: SparkLog | None,
    to: int | None = None,
    *,
    outputs: Iterable[str | os.PathLike[str]] = (),
    dry_run: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Rollback:
    """Takes both checkpoints back.

    Args:
        store: where our checkpoint files are. It is locked meanwhile, where it can be.
        spark: Spark's checkpoint of the same query; None: it is a stream without Spark.
        to: the batch after which they are to be; None: the newest that both can be at.
        outputs: directories of Parquet files, as ``parquet_sink`` has them.
        dry_run: whether nothing is deleted.
        progress: called with each file before it goes.

    Raises:
        ConfigurationError: a query uses the directory, there is no such batch, or the two are not
            of one query.
        SnapshotError: no file of that batch can be used; says which can.
    """
    inventory(store)  # a directory of something else is not made one of checkpoint files
    store.open()
    try:
        found = inventory(store)
        restart = found.restart
        if spark is None:
            batch_id = _target(store, found, None, to)
            files = _of_later(store, batch_id)
            newest = max([batch_id, *(one.batch_id for one in found.files)])
        elif to is None and restart is not None and _fit(found, spark):
            # All that may be left to do is what was broken off behind Spark's last plan.
            batch_id = newest = restart.batch_id
            is_known = batch_id in spark.planned and not found.prefetched
            files = spark.back_to(batch_id) if is_known else []
        else:
            batch_id = _target(store, found, spark, to)
            files = [*_of_later(store, batch_id), *spark.back_to(batch_id)]
            known = [*found.prefetched, *spark.planned, *(one.batch_id for one in found.files)]
            newest = max([batch_id, *known])
        later, mixed = _later(outputs, batch_id)
        done = Rollback(
            batch_id,
            newest,
            [str(one) for one in files],
            bool(files) and spark is not None and spark.merges_files(batch_id),
            later,
            mixed,
        )
        for one in files if not dry_run else ():
            if progress is not None:
                progress(str(one))
            one.apply()
        return done
    finally:
        store.close()


def _fit(found: Inventory, spark: SparkLog) -> bool:
    """Whether a query could go on with both."""
    return found.fits(spark) is None and not spark.troubles_at()


def _of_later(store: Store, batch_id: int) -> list[Deletion]:
    """Our files of later batches, the latest first: each that is left has what it builds on."""
    names = [str(name) for name in reversed(names_of(store)) if name.batch_id > batch_id]
    # What was kept of them belongs to the history that ends here.
    for ids, ending in ((kept_rows(store), "rows"), (input_batches(store), "input")):
        names += [f"{number:010d}.{ending}" for number in ids if number > batch_id]
    return [Deletion(store, name) for name in names]


def _target(store: Store, found: Inventory, spark: SparkLog | None, to: int | None) -> int:
    """The batch to go back to, which both can be at."""
    restart = found.restart
    if restart is None:
        raise SnapshotError(
            f"checkpoint {store!r} has {len(found.files)} checkpoint file(s), none of which can be "
            "used: put a copy of both directories back"
        )
    if spark is None and restart.query != OF_SOURCES:
        raise ConfigurationError(
            f"checkpoint {store!r} is of a query of Spark's, and alone it would be refused at the "
            "next batch: give the checkpointLocation of the same query (--spark)"
        )
    if spark is not None and spark.query is not None and restart.query not in (None, spark.query):
        raise ConfigurationError(
            f"checkpoint {store!r} is of the streaming query {restart.query}, and "
            f"{spark.directory!r} of the query {spark.query}: give those that belong together"
        )
    if to is None and spark is None:
        return restart.batch_id
    if to is None and spark is not None:
        both = found.both_at(spark)
        if not both:
            raise ConfigurationError(
                f"checkpoint {store!r} can be at the batches {ranges_of(found.usable)}, and "
                f"{spark.directory!r} knows {ranges_of(spark.planned)}{_damaged_in(spark)}: there "
                "is none that both can be at; put a copy of both directories back"
            )
        return both[-1]
    if to is None or to not in found.usable:
        trouble = next((f.trouble for f in found.files if f.batch_id == to and f.trouble), None)
        why = "there is no checkpoint file of it" if trouble is None else f"its file: {trouble}"
        raise SnapshotError(
            f"checkpoint {store!r} cannot be taken back to batch {to}: {why}; it can be to "
            f"{ranges_of(found.usable)}. How far files reach back is what keep_batches= says"
        )
    troubles = {} if spark is None else spark.troubles_at(to)
    if spark is not None and troubles and to in spark.planned:
        raise SnapshotError(
            f"{spark.directory!r} cannot be taken back to batch {to}: "
            f"{'; '.join(map(': '.join, troubles.items()))}; both checkpoints "
            f"can be at {ranges_of(found.both_at(spark))}"
        )
    return to


def _damaged_in(spark: SparkLog) -> str:
    damaged = spark.damaged
    return f", with damaged files ({', '.join(damaged)})" if damaged else ""


def _later(
    outputs: Iterable[str | os.PathLike[str]], batch_id: int
) -> tuple[list[str], dict[str, int]]:
    """The files of later batches in the directories of Parquet sinks; and those that have rows of
    earlier ones as well, with the number of these."""
    later, mixed = [], {}
    for output in outputs:
        if (trouble := not_local(os.fspath(output))) is not None:
            raise ConfigurationError(f"outputs: {os.fspath(output)!r}: {trouble}")
        tree = LocalTree(output)
        check_written("outputs", tree, alone=False)
        for part in parts_of(tree.files()):
            path = str(tree.path / part.name)
            if part.first > batch_id:
                later.append(path)
            elif part.last > batch_id:
                with tree.reading(part.name) as source, pq.ParquetFile(source) as file:
                    batches = batches_of(part, file)
                mixed[path] = sum(rows for batch, rows in batches if batch <= batch_id)
    return later, mixed
