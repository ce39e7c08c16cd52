"""What is in a checkpoint, file by file, and what of it a restart could go on from.

Everything is read and nothing else: no lock, no file. A query that writes to the directory may go
on, and what it deletes meanwhile is left out.
"""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Sequence
from dataclasses import dataclass, field

from specstream.checkpoint.format.chain import Chain
from specstream.checkpoint.format.checkpoint_files import NO_FILES, FileName, names_of, read_file
from specstream.checkpoint.format.file_format import CheckpointFile
from specstream.checkpoint.format.spark_log import SparkLog
from specstream.checkpoint.format.store import Store
from specstream.checkpoint.run.early_changes import read_incarnation
from specstream.checkpoint.run.inputs import input_batches, read_input
from specstream.checkpoint.run.prefetch import kept_rows, read_rows
from specstream.engine.packed_pending import unpacked
from specstream.engine.snapshot import Snapshot, refused
from specstream.errors import ConfigurationError, SnapshotError, SpecstreamError
from specstream.files.container import DamagedFile
from specstream.files.untrusted import read_table

__all__ = ["Inventory", "Listed", "inventory", "ranges_of"]


@dataclass(frozen=True)
class Listed:
    """A checkpoint file.

    Attributes:
        batch_id: the micro-batch after which the engine was so.
        is_whole: it holds the whole state; else the difference to the file before it.
        size: in bytes.
        written: when.
        operator: its name; None: that cannot be read, nor what follows.
        query: id of Spark's query.
        rows: that the batch has emitted.
        pending: events that wait behind it.
        finished: the stream has ended with it.
        trouble: why no start can go on from here; None: one could.
    """

    batch_id: int
    is_whole: bool
    size: int
    written: datetime.datetime
    operator: str | None = None
    query: str | None = None
    rows: int | None = None
    pending: int | None = None
    finished: bool = False
    trouble: str | None = None


@dataclass
class Inventory:
    """A checkpoint, read from its first file to its last.

    Attributes:
        files: the checkpoint files, early ones first.
        others: other files that belong to it: the number of rows of those that are whole, by name,
        troubles: and what is wrong with those that are not.
        missing: batches without a file that later ones build on.
        gaps: other batches between the first and the last that have none.
        prefetched: ids of batches whose rows were fetched ahead and that have not run.
        replayable: ids of batches whose rows were kept for a replay.
        unrecorded: what is known of those of them that are not recorded: what they have raised;
            None: nothing, they are under way or their process has ended.
    """

    files: list[Listed] = field(default_factory=list)
    others: dict[str, int | None] = field(default_factory=dict)
    troubles: dict[str, str] = field(default_factory=dict)
    missing: list[int] = field(default_factory=list)
    gaps: list[int] = field(default_factory=list)
    prefetched: list[int] = field(default_factory=list)
    replayable: list[int] = field(default_factory=list)
    unrecorded: dict[int, str | None] = field(default_factory=dict)

    @property
    def usable(self) -> list[int]:
        """Batches that can be gone back to, or on from."""
        return [one.batch_id for one in self.files if one.trouble is None]

    @property
    def restart(self) -> Listed | None:
        """What a start goes on from: the newest that can be had."""
        return next((one for one in reversed(self.files) if one.trouble is None), None)

    def both_at(self, spark: SparkLog) -> list[int]:
        """Batches that this checkpoint and Spark's can be gone back to, or on from."""
        return [one for one in self.usable if one in spark.planned and not spark.troubles_at(one)]

    def fits(self, spark: SparkLog) -> str | None:
        """What is wrong between this checkpoint and Spark's; None: they belong together."""
        following, restart = spark.next_batch, self.restart
        if restart is None or following is None:
            return None
        if spark.query is not None and restart.query not in (None, spark.query):
            return (
                f"it is of the streaming query {restart.query}, and {spark.directory!r} of the "
                f"query {spark.query}"
            )
        at = max([restart.batch_id, *self.prefetched])
        expected = [at, at + 1]
        if restart.finished:  # by a batch that Spark does not know
            expected = [at - 1, at]
        if following in expected:
            return None
        return (
            f"it ends with batch {at}, and Spark continues with batch {following}; expected "
            f"{expected[0]} or {expected[1]}"
        )


def ranges_of(batches: Sequence[int]) -> str:
    """Ids of batches, in few words.

    >>> ranges_of([2, 3, 4, 7]), ranges_of([])
    ('2 to 4, 7', 'none')
    """
    runs: list[list[int]] = []
    for batch in batches:
        if runs and batch <= runs[-1][-1] + 1:
            runs[-1].append(batch)
        else:
            runs.append([batch])
    shown = (f"{run[0]} to {run[-1]}" if run[0] < run[-1] else str(run[0]) for run in runs)
    return ", ".join(shown) or "none"


def inventory(store: Store, *, thorough: bool = False, inputs: bool = False) -> Inventory:
    """Reads a checkpoint.

    Args:
        store: where it is.
        thorough: whether what is not needed for a restart is read as well, and each state that a
            full file leads to is looked through.
        inputs: whether batches that can be replayed are looked at; then they will do without a
            checkpoint file, as where the first batch has failed.

    Raises:
        ConfigurationError: there is no such directory, or no checkpoint file in it.
        OSError: a file cannot be read.
    """
    try:
        names = names_of(store)
    except OSError as error:
        raise ConfigurationError(
            f"checkpoint={store!r} cannot be read: {error}; expected the directory that "
            "foreach_batch(checkpoint=...) or specstream run --checkpoint got"
        ) from None
    replayable = input_batches(store) if inputs else []
    if not names and not replayable:
        raise ConfigurationError(f"checkpoint={store!r} {NO_FILES}")
    found = Inventory(prefetched=kept_rows(store), replayable=replayable)
    chain: Chain | None = None
    for at, name in enumerate(names):
        try:
            file, size, trouble = _read(store, name)
            written = store.modified(str(name))
        except FileNotFoundError:
            continue  # superseded meanwhile
        before = names[at - 1].batch_id if at else name.batch_id - 1
        without = range(before + 1, name.batch_id)
        # In front of a full file nothing needs them: the deletion of early ones was broken off.
        (found.gaps if name.is_full else found.missing).extend(without)
        if trouble is None and file is not None:
            chain, trouble = _on(chain, file, name, is_there=at > 0 and not without)
        else:
            chain = None
        ends = at + 1 == len(names) or names[at + 1].is_full
        if trouble is None and chain is not None and thorough:
            trouble = _looked_through(chain, file, ends)
        found.files.append(_listed(name, size, written, file, chain, trouble))
    if thorough:
        _read_others(store, found)
    last = names[-1].batch_id if names else -1
    for batch_id in (one for one in replayable if one > last):
        with contextlib.suppress(FileNotFoundError, SpecstreamError):  # verify tells of damage
            raised = read_input(store, batch_id).origin.raised
            found.unrecorded[batch_id] = None if raised is None else str(raised)
    return found


def _read(store: Store, name: FileName) -> tuple[CheckpointFile | None, int, str | None]:
    """A file, how long it is, and what is wrong with it."""
    try:
        file = read_file(store, name, "it")
        return file, file.length, None
    except (DamagedFile, SnapshotError) as error:
        return None, len(store.read(str(name))), str(error)


def _on(
    chain: Chain | None, file: CheckpointFile, name: FileName, *, is_there: bool
) -> tuple[Chain | None, str | None]:
    """The chain with a file behind it, or what is in the way; ``is_there``: the file before is."""
    try:
        if name.is_full:
            return Chain(file, "it"), None
        before = name.batch_id - 1
        if chain is None or chain.batch_id != before:
            why = "cannot be used" if is_there else "is not there"
            return None, f"the file of batch {before}, which it builds on, {why}"
        if not chain.is_built_on_by(file):
            return None, f"it builds on another file of batch {before}"
        chain.add(file, "it")
        return chain, None
    except SnapshotError as error:
        return None, str(error)


def _listed(
    name: FileName,
    size: int,
    written: datetime.datetime,
    file: CheckpointFile | None,
    chain: Chain | None,
    trouble: str | None,
) -> Listed:
    if file is None:
        return Listed(name.batch_id, name.is_full, size, written, trouble=trouble)
    rows = pending = None
    try:
        with refused("it"):
            rows = file.output.num_rows
            if chain is not None:
                pending = unpacked(chain.pending).events.num_rows if chain.pending else 0
    except SnapshotError as error:
        trouble = trouble or str(error)
    about = file.about
    return Listed(
        name.batch_id,
        name.is_full,
        size,
        written,
        about.operator,
        about.query,
        rows,
        pending,
        about.finished,
        trouble,
    )


def _looked_through(chain: Chain, file: CheckpointFile | None, ends: bool) -> str | None:
    """What is wrong with all that a file holds beside the state, and at a chain's end with that."""
    try:
        with refused("it"):
            for name in ("late", "bad_rows", "early"):
                section = None if file is None else file.named(name)
                if section is not None:
                    read_table(section, f"section {name!r}")
            if ends:
                Snapshot.from_bytes(chain.snapshot(), chain.layout, "it").table(())
    except SnapshotError as error:
        return str(error)
    return None


def _read_others(store: Store, found: Inventory) -> None:
    for batch_id in input_batches(store):
        name = f"{batch_id:010d}.input"
        try:
            found.others[name] = read_input(store, batch_id).rows.num_rows
        except FileNotFoundError:
            continue
        except SpecstreamError as error:
            found.troubles[name] = str(error)
    for batch_id in kept_rows(store):
        name = f"{batch_id:010d}.rows"
        try:
            found.others[name] = read_rows(store, batch_id)[1].num_rows
        except FileNotFoundError:
            continue
        except SpecstreamError as error:
            found.troubles[name] = str(error)
    try:
        read_incarnation(store)
    except SpecstreamError as error:
        found.troubles["incarnation"] = str(error)
