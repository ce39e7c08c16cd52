"""What outlives a crash: the engine after each micro-batch, and the rows that it emitted.

Spark acknowledges batch N when the callback returns, and after a crash runs again the batch that it
has not acknowledged, under the same id and with the same rows. So the callback must leave no gap
between what is done and what is known to be done. It goes:

1. the events run; all that they change is in memory;
2. a *checkpoint file* is written: state, strings, next sequence number, events that wait for the
   watermark, batch id **and the emitted rows**;
3. the rows go to the sink, and the callback returns.

A crash before the file is complete leaves the one of batch N-1: the events of N run again, and
nobody has seen anything of their first run. A crash after that leaves the file of N: the batch that
Spark sends again is not run, and the sink gets the rows that the file holds. The rows are in the
file, and the file comes before the sink, so that all calls of the sink for one batch id get the
same rows, even if somebody changes the operator between crash and restart. With a sink that is
idempotent by batch id, that is exactly once.

What is in a file says ``file_format.py``, which files are kept ``checkpoint_files.py``, and which
ones a restart goes on from ``restart.py``.
"""

from __future__ import annotations

import json
import os
import threading
import warnings
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from specstream.checkpoint.format import failpoints
from specstream.checkpoint.format.chain import Chain
from specstream.checkpoint.format.checkpoint_files import CheckpointFiles, FileName
from specstream.checkpoint.format.container_changes import Held, changes
from specstream.checkpoint.format.file_format import (
    About,
    changed_blocks,
    copy_blocks,
    increment,
    pack,
)
from specstream.checkpoint.format.lease import SECONDS
from specstream.checkpoint.format.restart import newest_chain
from specstream.checkpoint.format.settings import check_settings
from specstream.checkpoint.format.store import Store, store_of
from specstream.checkpoint.run.batch import OF_SOURCES, Result
from specstream.columns.tables import in_zones
from specstream.declarations.state_content import StateContent, fixed_words, row_bytes
from specstream.engine.engine import Engine, Savepoint
from specstream.engine.pending_bytes import pack_pending, pending_words
from specstream.engine.snapshot import Migrate, refused
from specstream.errors import ConfigurationError, SnapshotError
from specstream.files.arrow_stream import stream_of
from specstream.files.untrusted import Buffer, read_table

if TYPE_CHECKING:
    from specstream.checkpoint.format.file_format import Words

__all__ = ["Checkpoint", "Recorded"]

# So many increments at most follow a full file: a restart reads them all.
INCREMENTS = 100


@dataclass(frozen=True)
class Recorded:
    """The batch of the last checkpoint file."""

    batch_id: int
    query: str | None
    output: pa.Table
    checksum: int
    late: pa.Table | None = None
    rejected: pa.Table | None = None
    early: pa.Table | None = None
    finished: bool = False
    failed: pa.Table | None = None
    position: bytes | None = None

    @property
    def result(self) -> Result:
        """What the sinks are to have."""
        return Result(self.output, self.late, self.rejected, self.early, self.failed)


# Who uses a store in this process: the store's own lock only tells processes apart.
_users: weakref.WeakValueDictionary[str, Checkpoint] = weakref.WeakValueDictionary()
_users_guard = threading.Lock()


class Checkpoint:
    """The checkpoint files of one query in one directory, and the engine that they are of.

    Making one brings the engine to the last of them.

    Args:
        engine: the engine.
        directory: path or URI.
        migrate: as of :meth:`specstream.Engine.restore`.
        rename: what the operator of the files is called now, by the name that they have.
        in_use: whether a query works with this checkpoint now; while it does, nobody else in the
            process can have the directory.
        keep_batches: files reach back at least so many batches, where so many were written.
        settings: options that decide what the query answers; they must be those of the last file,
            where it has them.
        lease: how long a process that has the directory, and has not been heard of, is waited for,
            in seconds, where there are no locks.

    Raises:
        ConfigurationError: the directory cannot be had, or somebody else uses it.
        SnapshotError: its files are of another operator, layout or other settings, or all of them
            are damaged.

    Attributes:
        recorded: the last batch; None if there is none.
    """

    def __init__(
        self,
        engine: Engine,
        directory: str | os.PathLike[str],
        *,
        migrate: Migrate | None = None,
        rename: Mapping[str, str] | None = None,
        in_use: Callable[[], bool] = lambda: True,
        keep_batches: int = 0,
        settings: Mapping[str, Any] | None = None,
        lease: float = SECONDS,
    ) -> None:
        self._engine = engine
        self._lease = lease
        self._settings = dict(settings or {})
        self._rename = dict(rename or {})
        self._in_use = in_use
        self._closed = False
        self.recorded: Recorded | None = None
        self._store = store_of(directory)
        self._take_store()
        weakref.finalize(self, self._store.close)  # where nobody calls close()
        self._what = f"checkpoint {self._store!r} of operator {engine.name!r}"
        self._damaged: list[str] = []
        # Newest batch of files that this start has skipped, until a batch tells how far Spark is.
        self._skipped: int | None = None
        self._files = CheckpointFiles(self._store, self._what, keep_batches)
        # Of the last full file and the increments on it, in bytes; none: the next one must be full.
        self._lengths: list[int] = []
        try:
            self._restore(migrate)
        except BaseException:
            self.close()
            raise
        # What the last file holds. Zero where the state is, so that a large state of which little
        # is used takes little here as well.
        fixed, self._held = self._look()
        self._before: Words = np.zeros(len(fixed), np.int64)
        copy_blocks(fixed, self._before, changed_blocks(fixed, self._before))
        self._note_savepoint(pack_pending(engine.durable.pending))

    def __repr__(self) -> str:
        batch = "empty" if self.recorded is None else f"batch {self.recorded.batch_id}"
        return f"Checkpoint({self._store!r}, {batch})"

    def _take_store(self) -> None:
        with _users_guard:
            user = _users.get(self._store.key)
            if user is not None and not user._closed:
                if user._in_use():
                    raise ConfigurationError(
                        f"checkpoint={self._store!r} is in use by a streaming query of operator "
                        f"{user._engine.name!r} in this process: stop that query, or give every "
                        "query a checkpoint of its own"
                    )
                # Closed before it is opened again: closing a file ends all locks that the process
                # has on it.
                user.close()
            self._store.open(self._lease)
            _users[self._store.key] = self

    @property
    def store(self) -> Store:
        """Where the files are."""
        return self._store

    def check_held(self) -> None:
        """Looks whether no other process has taken the directory over, and its sinks with it.

        Raises:
            ConfigurationError: one has; names it.
        """
        self._store.check_held()

    def close(self) -> None:
        """Releases the directory lock."""
        if not self._closed:
            self._closed = True
            self._store.close()

    # ---- batches ----

    def answer(self, query: str | None, batch_id: int) -> pa.Table | None:
        """The rows of a batch that is recorded; None for the one that comes next.

        Raises:
            ConfigurationError: it is neither, or the files are of another query.
        """
        if self._closed:
            raise ConfigurationError(
                f"{self._what}: another foreach_batch has taken the directory over: start the "
                "query with that one"
            )
        recorded = self.recorded
        if recorded is None:
            if batch_id > 0 and self._engine.durable.next_sequence == 0:
                raise ConfigurationError(
                    f"{self._what} is empty and the engine is new, but the query goes on with "
                    f"batch {batch_id}: expected batch 0. Give the checkpoint= that this query has "
                    f"used, or an engine with restore= the state after batch {batch_id - 1}, or "
                    "begin anew, with a new checkpointLocation and with empty sinks"
                )
            return None
        if query is not None and recorded.query is not None and query != recorded.query:
            raise ConfigurationError(
                f"{self._what} was written by the streaming query {recorded.query}, and this is "
                f"the query {query}, at batch {batch_id}: give each query a checkpoint= of its "
                "own, beside its checkpointLocation"
            )
        if recorded.finished and batch_id >= recorded.batch_id:
            raise ConfigurationError(
                f"{self._what}: finish() has ended the stream with batch {recorded.batch_id}, and "
                f"the query goes on with batch {batch_id}: begin a new stream, with a checkpoint= "
                "and a checkpointLocation of its own; where more can come, let events wait instead "
                "of calling finish()"
            )
        if batch_id == recorded.batch_id:
            self._skipped = None
            return recorded.output
        if batch_id != recorded.batch_id + 1:
            damaged = f" Damaged: {'; '.join(self._damaged)}." if self._damaged else ""
            raise ConfigurationError(
                f"{self._what} holds the state after batch {recorded.batch_id}, and the query "
                f"goes on with batch {batch_id}; expected {recorded.batch_id} or "
                f"{recorded.batch_id + 1}.{damaged} It is the checkpoint of another "
                "checkpointLocation, or one of the two was put back without the other: give those "
                "that belong together, or take both back to one batch with specstream checkpoint "
                "rollback (guide: Run book)"
            )
        self._skipped = None
        return None

    def check_finish(self) -> None:
        """Whether the id after the last batch is free, as far as can be known.

        Raises:
            ConfigurationError: a newer file was there that cannot be used, and no batch has come
                since: Spark, and the sinks, may be further.
        """
        if self._skipped is None or self.recorded is None:
            return
        at = self.recorded.batch_id
        raise ConfigurationError(
            f"{self._what} holds the state after batch {at}, and its files up to batch "
            f"{self._skipped} cannot be used ({'; '.join(self._damaged)}): Spark may have "
            f"acknowledged batch {self._skipped}, and finish() would replace the rows of batch "
            f"{at + 1} in the sinks. Put back copies of both directories, or take both back to "
            f"batch {at} with specstream checkpoint rollback and start the query, which sends "
            f"batch {at + 1} again (guide: Run book)"
        )

    @property
    def skipped(self) -> int | None:
        """The newest batch whose file was there at the start and cannot be used, until a batch has
        told that nobody is so far; None: all could be."""
        return self._skipped

    @property
    def newest(self) -> tuple[int, int] | None:
        """Batch id and checksum of the last file, which the next one builds on; None: no file."""
        recorded = self.recorded
        return None if recorded is None else (recorded.batch_id, recorded.checksum)

    def savepoint(self) -> Savepoint:
        """The engine as the last file has it."""
        return self._savepoint

    def is_over(self, query: str | None, batch_id: int) -> bool:
        """Whether it is the last batch before the end of the stream, which the sink has had.

        Only Spark did not come to know.
        """
        last = self.recorded
        if last is None or not last.finished or batch_id != last.batch_id - 1:
            return False
        return query is None or query == last.query

    def _look(self) -> tuple[Words, list[Held]]:
        """The words of the fields that are no containers, and what the containers hold: a copy."""
        layout, words = self._engine.operator.layout, self._engine.durable.words
        return fixed_words(layout, words), [Held.of(words, one) for one in layout.containers]

    def _state(self, fixed: Words, held: list[Held]) -> StateContent:
        return StateContent(self._engine.operator.layout, fixed, tuple(one.rows for one in held))

    def _note_savepoint(self, pending: bytes) -> None:
        engine = self._engine
        strings = engine.durable.strings
        self._savepoint = Savepoint(
            self._state(self._before, self._held),
            engine.durable.next_sequence,
            strings,
            engine.durable.rejected.savepoint(),
            pending,
            tuple(pending_words(engine.durable.pending)),
            engine.durable.reached,
            engine.durable.failed.savepoint(),
        )
        strings.track_drops = True
        strings.take_dropped()
        self._recorded_to = strings.mark

    def record(
        self,
        query: str | None,
        batch_id: int,
        output: pa.Table,
        late: pa.Table | None = None,
        rejected: pa.Table | None = None,
        early: pa.Table | None = None,
        failed: pa.Table | None = None,
        *,
        finished: bool = False,
        position: bytes | None = None,
    ) -> None:
        """Writes the file of a batch that the engine has run.

        Args:
            query: id of Spark's query.
            batch_id: the batch.
            output: what it has emitted.
            late: its late rows that go to a sink.
            rejected: its rejected rows that do; those that the engine keeps are recorded as well.
            early: its rows that have become final, for a sink of early results.
            failed: its failed events that go to a sink; likewise.
            finished: no other batch comes.
            position: of the source behind it; None: whoever sends the batch knows.

        When it raises, :meth:`savepoint` is the state before the batch if it is not recorded, and
        that after it if it is.
        """
        engine = self._engine
        failpoints.hit("before-write", batch_id)
        with engine.durable.exclusive():
            fixed, held = self._look()
            changed = changed_blocks(fixed, self._before)
            edits = changes(self._held, held)
            dropped = row_bytes(engine.durable.strings.take_dropped())
            full, sections = self._sections(fixed, held, changed, [*edits, dropped], output)
            # Nothing commits: what is pending waits for a frontier that only batches move.
            pending = pack_pending(engine.durable.pending)
            # Where there never was a source, the files before have nothing of it either.
            named: dict[str, list[Buffer]] = {}
            if edits and not full:
                named["containers"] = edits
            if dropped and not full:
                named["dropped_strings"] = [dropped]
            if pending and not full:
                named["arrivals"] = [pending]
            for key, kept in (
                ("kept", engine.durable.rejected.to_bytes()),
                ("kept_failed", engine.durable.failed.to_bytes()),
            ):
                if kept and not full:
                    named[key] = [kept]
            for key, rows in (
                ("late", late),
                ("bad_rows", rejected),
                ("early", early),
                ("failed", failed),
            ):
                if rows is not None:
                    named[key] = [stream_of(rows)]
            if position is not None:
                named["position"] = [position]
            if self._settings:
                named["settings"] = [json.dumps(self._settings).encode()]
            last = self.recorded
            about = About(
                batch_id,
                query,
                engine.name,
                engine.seed,
                engine.operator.layout.name,
                engine.operator.layout.describe(),
                engine.durable.next_sequence,
                None if full or last is None else (last.batch_id, last.checksum),
                tuple(named),
                finished,
            )
            parts, checksum = pack(about, [*sections, *named.values()])
            name = FileName(batch_id, "full" if full else "increment")
            length = self._files.write(name, parts)
            copy_blocks(fixed, self._before, changed)
            self._held = held
            self._note_savepoint(pending)
            self.recorded = Recorded(
                batch_id,
                query,
                output,
                checksum,
                late,
                rejected,
                early,
                finished,
                failed,
                position,
            )
            if self._skipped is not None and batch_id >= self._skipped:
                self._skipped = None
        self._lengths = [length] if full else [*self._lengths, length]
        failpoints.hit("before-delete", batch_id)
        try:
            self._files.delete_superseded(name)
        except OSError as error:
            warnings.warn(
                f"{self._what}: superseded files are left, because they cannot be deleted: {error}",
                RuntimeWarning,
                stacklevel=2,
            )

    def _sections(
        self,
        fixed: Words,
        held: list[Held],
        changed: Words,
        edits: list[Buffer],
        output: pa.Table,
    ) -> tuple[bool, list[list[Buffer]]]:
        """Whether the next file is a full one, and its sections but for those that are named."""
        engine = self._engine
        rows = stream_of(output)
        strings = engine.durable.strings
        if 0 < len(self._lengths) <= INCREMENTS and strings is self._savepoint.strings:
            full_one, *increments = self._lengths
            new = strings.since(self._recorded_to)
            # Of which most may be referred to no more, and a full file has only what is.
            if sum(increments) + new.nbytes < full_one:
                sections = increment(fixed, changed, new.to_pylist(), rows)
                length = sum(len(part) for section in [*sections, edits] for part in section)
                if sum(increments) + length < full_one:
                    return False, sections
        return True, [engine.durable.snapshot_of(self._state(fixed, held)), [rows]]

    # ---- restart ----

    def _restore(self, migrate: Migrate | None) -> None:
        """Brings the engine to the last file that can be had."""
        found = newest_chain(self._files)
        self._damaged = found.damaged
        if found.chain is None or found.full is None:
            if found.files:
                raise SnapshotError(
                    f"{self._what} has {found.files} checkpoint file(s), none of which can be "
                    f"used: {'; '.join(self._damaged) or 'there is no full one'}. Put a copy of "
                    "the directory back, or begin anew: without its files, in Spark with a new "
                    "checkpointLocation as well, and with empty sinks (guide: Run book)"
                )
            return
        self._check(found.chain.last.about, found.full)
        self._go_on_from(found.chain, migrate)
        if self._damaged:
            self._skipped = found.newest
            warnings.warn(
                f"{self._what}: cannot use {'; '.join(self._damaged)}; going on from the state "
                f"after batch {found.chain.batch_id}, the newest that is whole",
                RuntimeWarning,
                stacklevel=5,
            )

    def _go_on_from(self, chain: Chain, migrate: Migrate | None) -> None:
        """Brings the engine to where a chain of files ends."""
        last, about = chain.last, chain.last.about
        what = f"{self._what}, batch {about.batch_id}"
        settings = last.named("settings")
        if settings is not None:
            check_settings(
                bytes(settings),
                self._settings,
                what,
                "start the run as before; or, to have the whole stream run in the new way, with a "
                "new checkpoint= and empty sinks, from the first row on"
                if about.query == OF_SOURCES
                else "start the query as before; or, to have the whole stream run in the new way, "
                "with a new checkpoint=, a new checkpointLocation and empty sinks, from the "
                "first row on (guide: Run book)",
            )
        with refused(what):
            expected = self._engine.operator.emits.arrow()
            output = in_zones(last.output, expected)
            late, rejected, early, failed = (
                None if section is None else read_table(section, f"section {name!r}")
                for name in ("late", "bad_rows", "early", "failed")
                for section in (last.named(name),)
            )
            early = None if early is None else in_zones(early, expected)
        recorded = last.named("position")
        position = None if recorded is None else bytes(recorded)
        # Last, as all that may be refused has been read: the engine has the new state or its own.
        try:
            self._engine.restore(chain.snapshot(), migrate=migrate)
        except SnapshotError as error:
            raise SnapshotError(f"{what}: {error}") from None
        self.recorded = Recorded(
            about.batch_id,
            about.query,
            output,
            last.checksum,
            late,
            rejected,
            early,
            about.finished,
            failed,
            position,
        )
        # Blocks of one layout mean nothing in another.
        same = about.fields == self._engine.operator.layout.describe()
        self._lengths = list(chain.lengths) if migrate is None and same else []

    def _check(self, about: About, name: FileName) -> None:
        engine = self._engine
        called = self._rename.get(about.operator, about.operator)
        for field, found, expected in (
            ("operator", called, engine.name),
            ("seed", about.seed, engine.seed),
        ):
            if found != expected:
                hint = f"an engine with the {field} that has written it"
                if field == "operator":
                    hint += (
                        ", or, where the operator is the same and only its name has changed, "
                        f"rename={{{about.operator!r}: {engine.name!r}}}"
                    )
                raise SnapshotError(
                    f"{self._files.what(name)}: field {field!r} is {found!r} in the file and "
                    f"{expected!r} in the engine: give the checkpoint= of this operator, or "
                    f"{hint}"
                )
