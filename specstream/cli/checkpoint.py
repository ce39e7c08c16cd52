"""``specstream checkpoint``: what is in a checkpoint, whether it is whole, and the way back."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from specstream.checkpoint.format.spark_log import SparkLog
from specstream.checkpoint.format.store import Store
from specstream.checkpoint.inspect.inventory import Inventory, Listed, inventory, ranges_of
from specstream.checkpoint.inspect.rollback import Rollback, roll_back
from specstream.checkpoint.run.batch import OF_SOURCES
from specstream.checkpoint.run.run_directory import RECORD, recorded_store, run_directory_of
from specstream.cli.errors import reported_errors
from specstream.cli.options import Command, LocalPath, json_option
from specstream.display.values import size
from specstream.files.part_files import parts_of

__all__ = ["checkpoint"]

directory_argument = click.argument("directory", metavar="CHECKPOINT")
spark_option = click.option(
    "--spark",
    metavar="DIRECTORY",
    help="Spark's checkpointLocation of the same query [default: for specstream run, the one in "
    "CHECKPOINT]",
)


@click.group()
def checkpoint() -> None:
    """Look at a checkpoint, check it, and take a stream back to an earlier batch.

    CHECKPOINT is what foreach_batch(checkpoint=...) got, a directory or a URI, or what specstream
    run --checkpoint got.
    """


@checkpoint.command("list", cls=Command)
@directory_argument
@spark_option
@json_option
def list_(directory: str, spark: str | None, as_json: bool) -> None:
    """List the checkpoint files, one line for each batch, and what can be replayed.

    Nothing is written or locked: the query may be running. "yes" in the column "back to" says that
    a rollback, or specstream state, can go to that batch.
    """
    with reported_errors():
        found, log = _read(directory, spark, inputs=True)
        if as_json:
            click.echo(json.dumps(_as_json(found, log), default=str))
            return
        if found.files:
            _show_files(found)
        else:
            click.echo("no batch is recorded yet")
        _show_replayable(found)
        _show_spark(found, log)


@checkpoint.command(cls=Command)
@directory_argument
@spark_option
@json_option
def verify(directory: str, spark: str | None, as_json: bool) -> None:
    """Read everything, and report what is damaged and the newest state to continue from.

    It reads our checkpoint, Spark's, and the record of specstream run. Nothing is written or
    locked: the query may be running. The exit status is 1 if something is damaged or missing, or if
    the two checkpoints do not belong together.
    """
    with reported_errors():
        found, log = _read(directory, spark, thorough=True)
        run = run_directory_of(directory)
        troubles, missing = _troubles(found), _missing(found)
        if run is not None and run.trouble is not None:
            (troubles if run.is_there else missing)[str(run.path / RECORD)] = run.trouble
        if log is not None:
            troubles |= _troubles_of_spark(found, log)
        elif run is not None and any(one.query not in (None, OF_SOURCES) for one in found.files):
            missing[str(run.spark)] = (
                "Spark's checkpoint of the run is missing, and the run cannot start without it: "
                "restore a copy of it, from the same time as the files"
            )
        apart = None if log is None else found.fits(log)
        if as_json:
            report = {"troubles": {**troubles, **missing}, "gaps": found.gaps}
            click.echo(json.dumps(_as_json(found, log) | report, default=str))
        else:
            files = len(found.files) + len(found.others) + len(found.troubles)
            files += (run is not None and run.is_there) + (0 if log is None else len(log.files))
            click.echo(f"{files} file(s) read, {len(troubles)} of them cannot be used")
            for name, trouble in (*troubles.items(), *missing.items()):
                click.echo(f"{name}: {trouble}")
            if found.gaps:
                click.echo(
                    f"there are no files of the batches {ranges_of(found.gaps)}, so you cannot "
                    "roll back to them; no start needs them"
                )
            _show_restart(found)
            _show_spark(found, log)
    if troubles or missing or apart is not None:
        sys.exit(1)


@checkpoint.command(cls=Command)
@directory_argument
@spark_option
@click.option(
    "--to",
    type=click.IntRange(min=0),
    metavar="N",
    help="Batch to take both checkpoints back to  [default: the newest that both can reach]",
)
@click.option(
    "--output",
    "outputs",
    multiple=True,
    type=LocalPath(exists=True, file_okay=False),
    metavar="DIRECTORY",
    help="Directory of a Parquet sink: list which of its files must be deleted; repeatable  "
    "[default: for specstream run, its own]",
)
@click.option("--dry-run", is_flag=True, help="Show what would be deleted, and delete nothing.")
@json_option
def rollback(
    directory: str,
    spark: str | None,
    to: int | None,
    outputs: tuple[Path, ...],
    dry_run: bool,
    as_json: bool,
) -> None:
    """Take both checkpoints, ours and Spark's, back to the state after batch N.

    The query must not be running: the command refuses a checkpoint that is in use. If it is
    interrupted, you can run it again; a query that is started in between refuses to run. Afterwards
    Spark sends batch N + 1 again; a run without Spark has one checkpoint, and its source sends
    everything after batch N again. Rows of later batches stay in the sinks; the command prints what
    you have to delete.
    """
    with reported_errors():
        run = run_directory_of(directory)
        log, store = _spark_log(directory, spark), recorded_store(directory)
        if log is None:
            _check_alone(directory, store)
        places: list[Any] = list(outputs) or ([] if run is None else run.record().outputs)
        done = roll_back(store, log, to, outputs=places, dry_run=dry_run)
        if as_json:
            click.echo(json.dumps(asdict(done) | {"dry_run": dry_run}))
        else:
            _show_rollback(done, bool(places), dry_run, is_alone=log is None)


def _read(
    directory: str, spark: str | None, *, thorough: bool = False, inputs: bool = False
) -> tuple[Inventory, SparkLog | None]:
    found = inventory(recorded_store(directory), thorough=thorough, inputs=inputs)
    return found, _spark_log(directory, spark)


def _spark_log(directory: str, spark: str | None) -> SparkLog | None:
    run = run_directory_of(directory)
    if spark is None and run is not None and run.spark.is_dir():
        spark = str(run.spark)
    return None if spark is None else SparkLog(spark)


def _check_alone(directory: str, store: Store) -> None:
    """Refuses a checkpoint without Spark's that is not of a stream without Spark.

    Raises:
        click.ClickException: it is of one of Spark's, or has nothing to go back to.
    """
    restart = inventory(store).restart
    if restart is None:
        raise click.ClickException(
            f"{directory}: no file of a batch can be used, so there is none to go back to: put "
            "a copy of the directory back, or begin anew, which the run book describes"
        )
    if restart.query != OF_SOURCES:
        raise click.UsageError(
            "a checkpoint alone would be refused at the next batch: give --spark, the "
            "checkpointLocation of the same query"
        )


def _troubles(found: Inventory) -> dict[str, str]:
    """What cannot be used, by the names of the files."""
    files = {_name(one): one.trouble for one in found.files if one.trouble is not None}
    return {**files, **found.troubles}


def _missing(found: Inventory) -> dict[str, str]:
    """What is not there, and later files build on."""
    return {
        f"{batch:010d}": "the file of this batch is missing, and the next one builds on it: "
        "restore a copy of it"
        for batch in found.missing
    }


def _troubles_of_spark(found: Inventory, log: SparkLog) -> dict[str, str]:
    """Spark's files that are damaged or missing, and what to do, by their names."""
    needed, back = log.troubles_at(), found.both_at(log)
    way_back = "copies of both directories"
    if back:
        way_back = (
            f"take both checkpoints back to batch {back[-1]} with specstream checkpoint rollback "
            f"--to {back[-1]}"
        )
    report = {}
    for name, trouble in (log.damaged | needed).items():
        advice = (
            "Spark cannot continue with it: restore a copy of it, and of the .crc file beside it; "
            "or " + way_back
            if name in needed
            else "no start reads it, only a rollback to that batch does: restore a copy of it, or "
            "leave it"
        )
        report[f"{log.directory}/{name}"] = f"{trouble}. {advice}"
    return report


def _show_restart(found: Inventory) -> None:
    restart = found.restart
    if restart is None:
        click.echo(
            "no file can be used: restore a copy of the checkpoint, with Spark's if there is one"
        )
        return
    click.echo(f"the newest state to continue from is the one after batch {restart.batch_id}")
    if restart.batch_id < found.files[-1].batch_id:
        click.echo(
            f"there are files up to batch {found.files[-1].batch_id}: restore copies of what is "
            "damaged, or take both checkpoints back with specstream checkpoint rollback"
        )
    elif _troubles(found) or found.missing:
        click.echo(
            "no start needs the damaged files: restore copies, or leave them; files of later "
            "batches replace them"
        )


def _name(one: Listed) -> str:
    return f"{one.batch_id:010d}.{'full' if one.is_whole else 'increment'}"


def _as_json(found: Inventory, log: SparkLog | None) -> dict[str, Any]:
    restart = found.restart
    return {
        "files": [{**asdict(one), "written": one.written.isoformat()} for one in found.files],
        "others": found.others,
        "prefetched": found.prefetched,
        "replayable": found.replayable,
        "unrecorded": found.unrecorded,
        "restart": None if restart is None else restart.batch_id,
        "spark": None
        if log is None
        else {"directory": log.directory, "query": log.query, "next_batch": log.next_batch},
        "apart": None if log is None else found.fits(log),
    }


def _show_files(found: Inventory) -> None:
    table = Table(box=None, pad_edge=False)
    for name in ("batch", "written (UTC)", "rows", "bytes", "pending", "operator", "file"):
        right = name in ("batch", "rows", "bytes", "pending")
        table.add_column(name, justify="right" if right else "left", no_wrap=name != "operator")
    table.add_column("back to")
    for one in found.files:
        table.add_row(
            str(one.batch_id),
            f"{one.written:%Y-%m-%d %H:%M:%S}",
            *(_count(one.rows), size(one.size), _count(one.pending)),
            one.operator or "?",
            ("whole" if one.is_whole else "difference") + (", the end" if one.finished else ""),
            "yes" if one.trouble is None else f"no: {one.trouble}",
        )
    # In a file or a pipe a line stays one, however long.
    console = Console()
    (console if console.is_terminal else Console(width=1000)).print(table)


def _show_replayable(found: Inventory) -> None:
    if found.replayable:
        click.echo(f"can be replayed (specstream replay): batch {ranges_of(found.replayable)}")
    for batch_id, raised in found.unrecorded.items():
        why = "it is in progress, or its process ended" if raised is None else raised
        click.echo(f"batch {batch_id} is not recorded, and comes again at the next start: {why}")


def _count(number: int | None) -> str:
    return "?" if number is None else f"{number:,}"


def _show_spark(found: Inventory, log: SparkLog | None) -> None:
    if found.prefetched:
        ids = ", ".join(map(str, found.prefetched))
        click.echo(f"fetched ahead, to run at the next start: batch {ids}")
    if log is None:
        return
    following = log.next_batch
    click.echo(
        "Spark has planned no batch yet"
        if following is None
        else f"Spark continues with batch {following}"
    )
    if (apart := found.fits(log)) is not None:
        click.echo(
            f"the two checkpoints do not belong together: {apart}: restore those that do, or take "
            "both back to one batch with specstream checkpoint rollback"
        )


def _show_rollback(
    done: Rollback, knows_outputs: bool, dry_run: bool, *, is_alone: bool = False
) -> None:
    would, both = "would be" if dry_run else "are", "both checkpoints"
    if is_alone:  # a stream without Spark has one
        would, both = "would be" if dry_run else "is", "the checkpoint"
    tell: Callable[[str], None] = click.echo
    if done.files:
        tell(f"{both} {would} at batch {done.batch_id}; {len(done.files)} file(s) gone:")
        for name in done.files:
            tell(f"  {name}")
    else:
        are = "is" if is_alone else "are"
        tell(f"{both} {are} at batch {done.batch_id} already; nothing is deleted")
    if done.merges_files:
        tell(
            "Spark's log of files cannot be taken back that far: the files of all batches after "
            f"{done.batch_id + 1} come in one batch"
        )
    if done.newest <= done.batch_id and not done.outputs and not done.mixed:
        return
    first = done.batch_id + 1
    # A copy that was put back knows nothing of the batches behind it, whose files are there.
    known = parts_of(os.path.basename(name) for name in done.outputs)
    last = max([done.newest, first, *(part.last for part in known)])
    these = f"batch {first}" if first == last else f"batches {first} to {last}"
    tell(f"Before the query starts again, remove {these} from each sink:")
    if knows_outputs and done.outputs:
        tell("  delete these Parquet files:")
        for name in done.outputs:
            tell(f"    {name}")
    elif knows_outputs and not done.mixed:
        tell("  there are no Parquet files of them")
    elif not knows_outputs:
        tell(f"  parquet_sink: delete part-{first:08d}.parquet to part-{last:08d}.parquet")
    for name, kept in done.mixed.items():
        tell(f"  {name} has earlier batches as well: leave its first {kept:,} rows")
    tell(
        "  delta_sink: DeltaTable(path).restore(version), the last version with a txn of at most "
        f"{done.batch_id} for its app_id, and another app_id= from then on"
    )
    tell(
        f"  a database: delete the rows of batches above {done.batch_id}, and these ids from the "
        "table of written batches"
    )
