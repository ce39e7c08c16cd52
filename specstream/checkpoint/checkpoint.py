"""What outlives a crash: the engine after each micro-batch, and the rows that it emitted.

Spark acknowledges batch N when the callback returns, and after a crash runs again the batch that it
has not acknowledged, under the same id and with the same rows. So the callback must leave no gap
between what is done and what is known to be done. It goes:

1. the events run; all that they change is in memory;
2. an *image* is written: state, strings, next sequence number, events that wait for the watermark,
   batch id **and the emitted rows**;
3. the rows go to the sink, and the callback returns.

A crash before the image is complete leaves the image of batch N-1: the events of N run again, and
nobody has seen anything of their first run. A crash after that leaves image N: the batch that Spark
sends again is not run, and the sink gets the rows that the image holds. The rows are in the image,
and the image comes before the sink, so that all calls of the sink for one batch id get the same
rows, even if somebody changes the operator between crash and restart. With a sink that is
idempotent by batch id, that is exactly once.

Images are numbered by their batch. Each is an increment to the one before, or full; two full ones
that were found good are kept, with all images after the earlier of them, so that damage to any one
file still leaves a state to go on from. Deletion goes from late to early images: whenever it is
interrupted, each image that is left still has what it builds on.
"""

from __future__ import annotations

import json
import os
import re
import threading
import warnings
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from specstream.checkpoint import failpoints
from specstream.checkpoint.batch import Result
from specstream.checkpoint.file_format import (
    About,
    CheckpointFile,
    changed_blocks,
    copy_blocks,
    increment,
    pack,
)
from specstream.checkpoint.settings import check_settings
from specstream.checkpoint.store import Store, store_of
from specstream.declarations.state import Layout
from specstream.engine.engine import Engine, Savepoint
from specstream.engine.snapshot import Migrate, Snapshot, refused
from specstream.errors import ConfigurationError, SnapshotError
from specstream.files.arrow_stream import stream_of
from specstream.files.container import DamagedFile
from specstream.files.untrusted import Buffer, Malformed, read_table

if TYPE_CHECKING:
    from specstream.checkpoint.file_format import Words

__all__ = ["Checkpoint", "Recorded"]

# So many increments at most follow a full image: a restart reads them all.
INCREMENTS = 100
# Full images that are kept, with the increments on them.
KEPT = 2

_NAME = re.compile(r"([0-9]{10})\.(full|increment)")


@dataclass(frozen=True)
class Recorded:
    """The batch of the last image."""

    batch_id: int
    query: str | None
    output: pa.Table
    checksum: int
    late: pa.Table | None = None
    rejected: pa.Table | None = None
    finished: bool = False

    @property
    def result(self) -> Result:
        """What the sinks are to have."""
        return Result(self.output, self.late, self.rejected)


@dataclass(frozen=True, order=True)
class _Name:
    """The name of an image's file; they sort by age."""

    batch_id: int
    kind: str

    def __str__(self) -> str:
        return f"{self.batch_id:010d}.{self.kind}"


# Who uses a store in this process: the store's own lock only tells processes apart.
_users: weakref.WeakValueDictionary[str, Checkpoint] = weakref.WeakValueDictionary()
_users_guard = threading.Lock()


class Checkpoint:
    """The images of one query in one directory, and the engine that they are of.

    Making one brings the engine to the last image.

    Args:
        engine: the engine.
        directory: path or URI.
        migrate: as of :meth:`specstream.Engine.restore`.
        in_use: whether a query works with this checkpoint now; while it does, nobody else in the
            process can have the directory.
        keep_batches: images reach back at least so many batches, where so many were written.
        settings: options that decide what the query answers; they must be those of the last image,
            where it has them.

    Raises:
        ConfigurationError: the directory cannot be had, or somebody else uses it.
        SnapshotError: its images are of another operator, layout or other settings, or all of them
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
        in_use: Callable[[], bool] = lambda: True,
        keep_batches: int = 0,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self._engine = engine
        self._settings = dict(settings or {})
        self._in_use = in_use
        self._keep_batches = keep_batches
        self._closed = False
        self.recorded: Recorded | None = None
        self._store = store_of(directory)
        self._take_store()
        weakref.finalize(self, self._store.close)  # where nobody calls close()
        self._what = f"checkpoint {self._store!r} of operator {engine.name!r}"
        self._damaged: list[str] = []
        self._good: set[_Name] = set()  # images read whole, or written, by this process
        self._full_length = 0
        self._increments = 0
        self._increments_length = 0
        self._must_be_full = True
        self._may_have_later = True
        try:
            self._restore(migrate)
        except BaseException:
            self.close()
            raise
        # What the last image holds. Zero where the state is, so that a large state of which little
        # is used takes little here as well.
        self._before: Words = np.zeros(len(engine.durable.words), np.int64)
        copy_blocks(
            engine.durable.words, self._before, changed_blocks(engine.durable.words, self._before)
        )
        self._note_mark(engine.durable.pending.to_bytes())

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
            self._store.open()
            _users[self._store.key] = self

    @property
    def store(self) -> Store:
        """Where the images are."""
        return self._store

    def close(self) -> None:
        """Releases the directory lock."""
        if not self._closed:
            self._closed = True
            self._store.close()

    # ---- batches ----

    def answer(self, query: str | None, batch_id: int) -> pa.Table | None:
        """The rows of a batch that is recorded; None for the one that comes next.

        Raises:
            ConfigurationError: it is neither, or the images are of another query.
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
                    "start the query with a new checkpointLocation"
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
            return recorded.output
        if batch_id != recorded.batch_id + 1:
            damaged = f" Damaged: {'; '.join(self._damaged)}." if self._damaged else ""
            raise ConfigurationError(
                f"{self._what} holds the state after batch {recorded.batch_id}, and the query "
                f"goes on with batch {batch_id}; expected {recorded.batch_id} or "
                f"{recorded.batch_id + 1}.{damaged} It is the checkpoint of another "
                "checkpointLocation, or one of the two was put back without the other: give those "
                "that belong together, or take Spark's back to the same batch (docs/spark.md)"
            )
        return None

    @property
    def image(self) -> tuple[int, int] | None:
        """Batch id and checksum of the last image; None if there is none."""
        recorded = self.recorded
        return None if recorded is None else (recorded.batch_id, recorded.checksum)

    def mark(self) -> Savepoint:
        """The engine as the last image has it."""
        return self._mark

    def is_over(self, query: str | None, batch_id: int) -> bool:
        """Whether it is the last batch before the end of the stream, which the sink has had.

        Only Spark did not come to know.
        """
        last = self.recorded
        if last is None or not last.finished or batch_id != last.batch_id - 1:
            return False
        return query is None or query == last.query

    def _note_mark(self, arrivals: bytes) -> None:
        engine = self._engine
        self._mark = Savepoint(
            self._before,
            engine.durable.next_sequence,
            len(engine.durable.strings),
            engine.durable.rejected.savepoint(),
            arrivals,
            engine.durable.reached,
        )

    def record(
        self,
        query: str | None,
        batch_id: int,
        output: pa.Table,
        late: pa.Table | None = None,
        rejected: pa.Table | None = None,
        *,
        finished: bool = False,
    ) -> None:
        """Writes the image of a batch that the engine has run.

        Args:
            query: id of Spark's query.
            batch_id: the batch.
            output: what it has emitted.
            late: its late rows that go to a sink.
            rejected: its rejected rows that do; those that the engine keeps are recorded as well.
            finished: no other batch comes.

        When it raises, :meth:`mark` is the state before the batch if it is not recorded, and that
        after it if it is.
        """
        engine = self._engine
        failpoints.hit("before-write", batch_id)
        with engine.durable.exclusive():
            words = engine.durable.words
            changed = changed_blocks(words, self._before)
            full, sections = self._sections(changed, output)
            # Nothing commits: what is pending waits for a frontier that only batches move.
            arrivals = engine.durable.pending.to_bytes()
            # Where there never was a source, the images before have nothing of it either.
            named: dict[str, Buffer] = {}
            if arrivals and not full:
                named["arrivals"] = arrivals
            kept = engine.durable.rejected.to_bytes()
            if kept and not full:
                named["kept"] = kept
            for key, rows in (("late", late), ("bad_rows", rejected)):
                if rows is not None:
                    named[key] = stream_of(rows)
            if self._settings:
                named["settings"] = json.dumps(self._settings).encode()
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
            parts, checksum = pack(about, [*sections, *([content] for content in named.values())])
            name = _Name(batch_id, "full" if full else "increment")
            length = self._store.write(str(name), parts, batch_id)
            copy_blocks(words, self._before, changed)
            self._note_mark(arrivals)
            self.recorded = Recorded(batch_id, query, output, checksum, late, rejected, finished)
        self._count(full, length)
        self._good.add(name)
        failpoints.hit("before-delete", batch_id)
        try:
            self._delete_superseded(name)
        except OSError as error:
            warnings.warn(
                f"{self._what}: superseded images are left, because they cannot be deleted: "
                f"{error}",
                RuntimeWarning,
                stacklevel=2,
            )

    def _sections(self, changed: Words, output: pa.Table) -> tuple[bool, list[list[Buffer]]]:
        """Whether the next image is a full one, and its sections."""
        engine = self._engine
        rows = stream_of(output)
        if not self._must_be_full and self._increments < INCREMENTS:
            strings = engine.durable.strings.to_arrow().slice(self._mark.strings).to_pylist()
            sections = increment(engine.durable.words, changed, strings, rows)
            length = sum(len(part) for section in sections for part in section)
            if self._increments_length + length < self._full_length:
                return False, sections
        return True, [[engine.durable.image()], [rows]]

    def _count(self, full: bool, length: int) -> None:
        if full:
            self._full_length, self._increments, self._increments_length = length, 0, 0
        else:
            self._increments += 1
            self._increments_length += length
        self._must_be_full = False

    # ---- files ----

    def _names(self) -> list[_Name]:
        """The images that are there, early ones first."""
        matches = map(_NAME.fullmatch, self._store.names())
        return sorted(_Name(int(match[1]), match[2]) for match in matches if match)

    def _delete_superseded(self, newest: _Name) -> None:
        """Deletes what the images that are kept do not need.

        That is also what is later than the newest: a history that a damaged image has ended.
        """
        if newest.kind == "increment" and not self._may_have_later:
            return
        self._may_have_later = False
        names = self._names()
        kept = newest.batch_id
        found = 0
        reach = newest.batch_id - self._keep_batches
        for name in reversed(names):
            if found >= KEPT and kept <= reach:
                break
            if name <= newest and name.kind == "full" and self._is_good(name):
                found, kept = found + 1, name.batch_id
        if found < KEPT:
            kept = 0
        for name in reversed(names):
            after = name.batch_id >= newest.batch_id and name != newest
            if after or name.batch_id < kept:
                self._store.delete(str(name))
                failpoints.hit("between-deletes", newest.batch_id)

    def _is_good(self, name: _Name) -> bool:
        """Whether an image is whole: the last thing to ask before it is all that can be had."""
        if name not in self._good:
            try:
                self._read(name)
            except (DamagedFile, SnapshotError):
                return False
        return True

    def _read(self, name: _Name) -> CheckpointFile:
        content = self._store.read(str(name))
        what = f"{self._what}, image {name}"
        with refused(what):
            try:
                image = CheckpointFile.from_bytes(content)
            except Malformed:
                raise
            except SnapshotError as error:
                raise SnapshotError(f"{what}: {error}") from None
            if image.about.batch_id != name.batch_id:
                raise Malformed(f"it is the image of batch {image.about.batch_id}")
        self._good.add(name)
        return image

    # ---- restart ----

    def _restore(self, migrate: Migrate | None) -> None:
        """Brings the engine to the last image that can be had."""
        names = self._names()
        for full in reversed([name for name in names if name.kind == "full"]):
            try:
                image = self._read(full)
            except DamagedFile as error:
                self._damaged.append(f"{full}, because {error}")
                continue
            self._full_length = image.length
            self._build(full, image, migrate)
            break
        else:
            if names:
                raise SnapshotError(
                    f"{self._what} has {len(names)} image(s), none of which can be used: "
                    f"{'; '.join(self._damaged) or 'there is no full one'}. Put a copy of the "
                    "directory back, or begin again: without its images, and with a new "
                    "checkpointLocation"
                )
        if self._damaged:
            assert self.recorded is not None
            warnings.warn(
                f"{self._what}: cannot use {'; '.join(self._damaged)}; going on from the state "
                f"after batch {self.recorded.batch_id}, the newest that is whole",
                RuntimeWarning,
                stacklevel=5,
            )

    def _build(self, full: _Name, image: CheckpointFile, migrate: Migrate | None) -> None:
        """Brings the engine to a full image and the increments on it."""
        about = image.about
        self._check(about, full)
        what = f"{self._what}, image {full}"
        with refused(what):
            layout = Layout.described(about.state, about.fields)
        content = Snapshot.from_bytes(image.sections[0], layout, what)
        # As Arrow has them: ten million strings as Python objects would take a gigabyte.
        words, strings = content.words.copy(), content.strings.chunks
        arrivals, kept = content.pending, content.rejected_rows
        while (following := self._following(image)) is not None:
            what = f"{self._what}, image {_Name(following.about.batch_id, 'increment')}"
            with refused(what):
                if following.about.fields != about.fields:
                    raise Malformed("its fields are not those of the image that it builds on")
                strings.append(pa.array(following.apply(words), pa.large_string()))
            pending = following.named("arrivals")
            arrivals = arrivals if pending is None else bytes(pending)
            kept = bytes(following.named("kept") or b"")
            image = following
            self._count(False, image.length)
        about = image.about
        settings = image.named("settings")
        if settings is not None:
            check_settings(
                bytes(settings),
                self._settings,
                f"{self._what}, batch {about.batch_id}",
                "start the query as before; or, to have the whole stream run in the new way, with "
                "a new checkpoint= and a new checkpointLocation, from the first row on "
                "(docs/spark.md)",
            )
        known = pa.chunked_array(strings, pa.large_string())
        built = Snapshot(words, about.next_sequence, known, arrivals, kept).to_bytes(layout)
        with refused(what):
            output = image.output
            late, rejected = (
                None if found is None else read_table(found, f"section {name!r}")
                for name in ("late", "bad_rows")
                for found in (image.named(name),)
            )
        # Last, as all that may be refused has been read: the engine has the new state or its own.
        try:
            self._engine.restore(built, migrate=migrate)
        except SnapshotError as error:
            raise SnapshotError(f"{self._what}, batch {about.batch_id}: {error}") from None
        self.recorded = Recorded(
            about.batch_id,
            about.query,
            output,
            image.checksum,
            late,
            rejected,
            about.finished,
        )
        # Blocks of one layout mean nothing in another.
        same = about.fields == self._engine.operator.layout.describe()
        self._must_be_full = migrate is not None or not same

    def _following(self, image: CheckpointFile) -> CheckpointFile | None:
        """The increment on an image, if there is one that can be had."""
        at = image.about.batch_id
        name = _Name(at + 1, "increment")
        try:
            following = self._read(name)
        except DamagedFile as error:
            self._damaged.append(f"{name}, because {error}")
            return None
        except FileNotFoundError:
            later = [name for name in self._names() if name.batch_id > at]
            if later and later[0].kind == "increment":
                self._damaged.append(f"{later[0]}, because image {at + 1} is not there")
            return None
        if following.about.builds_on != (at, image.checksum):
            self._damaged.append(f"{name}, because it builds on another image {at}")
            return None
        return following

    def _check(self, about: About, name: _Name) -> None:
        engine = self._engine
        for field, found, expected in (
            ("operator", about.operator, engine.name),
            ("seed", about.seed, engine.seed),
        ):
            if found != expected:
                raise SnapshotError(
                    f"{self._what}, image {name}: field {field!r} is {found!r} in the image and "
                    f"{expected!r} in the engine: give the checkpoint= of this operator, or an "
                    f"engine with the {field} that has written it"
                )
