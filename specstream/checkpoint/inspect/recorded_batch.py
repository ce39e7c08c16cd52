"""A micro-batch as a checkpoint has it: its input, the engine before it, and the engine after it.

The checkpoint is read and nothing else: no lock, no file. A query that writes to it may go on, and
may delete a file between two looks; then it is looked again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

import pyarrow as pa

from specstream.checkpoint.format.chain import Chain
from specstream.checkpoint.format.checkpoint_files import (
    NO_FILES,
    CheckpointFiles,
    FileName,
    names_of,
    read_file,
)
from specstream.checkpoint.format.file_format import CheckpointFile
from specstream.checkpoint.format.restart import Newest, newest_chain
from specstream.checkpoint.format.store import Store
from specstream.checkpoint.inspect.inventory import inventory, ranges_of
from specstream.checkpoint.run.inputs import Input, input_batches, read_input
from specstream.declarations.state_content import StateContent
from specstream.declarations.state_layout import Layout
from specstream.engine.snapshot import Snapshot, refused
from specstream.errors import ConfigurationError, SnapshotError
from specstream.files.container import DamagedFile
from specstream.files.untrusted import read_table

__all__ = [
    "After",
    "RecordedBatch",
    "newest_batch",
    "newest_state",
    "read_batch",
    "restored",
    "state_after",
]

# Looks at a directory in which somebody deletes.
_LOOKS = 3

_KEPT = (
    "rows of the last K batches are kept by foreach_batch(..., checkpoint=..., keep_batches=K) or "
    "specstream run --keep-batches K, and those of a batch that fails"
)


@dataclass(frozen=True)
class After:
    """What a batch has made.

    Attributes:
        snapshot: the engine after it.
        pending: events that wait then, as the engine packs them.
        output: what it has emitted.
        failed: its failed events that were for a sink; None: there were none, or no sink.
    """

    snapshot: bytes
    pending: bytes
    output: pa.Table
    failed: pa.Table | None = None


@dataclass(frozen=True)
class RecordedBatch:
    """A batch that can be replayed.

    Attributes:
        given: what it came with.
        before: a snapshot of the engine before it; empty: the engine was new.
        after: what it has made; None: that was not recorded.
    """

    given: Input
    before: bytes
    after: After | None


def restored(snapshot: bytes, layout: Layout, what: str) -> Snapshot:
    """What a snapshot holds, or a new engine where it is empty, in the layout of an operator.

    Raises:
        SnapshotError: it does not fit the layout, or is none.
    """
    if not snapshot:
        return Snapshot(StateContent.new(layout), 0, pa.chunked_array([], pa.large_string()))
    return Snapshot.from_bytes(snapshot, layout, what)


def newest_batch(store: Store) -> int:
    """The newest batch that can be replayed: the one that failed, if one has.

    Raises:
        ConfigurationError: there is no such directory, or no batch's rows are there.
    """
    _names(store)
    kept = input_batches(store)
    if not kept:
        raise ConfigurationError(f"no batch of {store!r} can be replayed: {_KEPT}")
    return kept[-1]


def read_batch(store: Store, batch_id: int) -> RecordedBatch:
    """A batch, with what is there of the engine around it.

    Raises:
        ConfigurationError: there is no such directory, or the batch's rows are not there.
        SnapshotError: what is needed is damaged, or not there any more.
    """
    for look in range(_LOOKS):
        names = _names(store)
        try:
            given = read_input(store, batch_id)
            before = _before(store, names, given)
            after = _after(store, names, batch_id) if _has(names, batch_id) else None
            return RecordedBatch(given, before, after)
        except FileNotFoundError as error:
            if look == _LOOKS - 1:
                _refuse(store, names, batch_id, error)
    raise AssertionError


def state_after(store: Store, batch_id: int) -> Chain:
    """The engine after a batch.

    Raises:
        ConfigurationError: there is no such directory, or no file of that batch.
        SnapshotError: a file that leads to it is damaged, or not there any more.
    """
    for look in range(_LOOKS):
        names = _names(store)
        if not _has(names, batch_id):
            raise ConfigurationError(
                f"batch {batch_id} has no file in checkpoint {store!r}; {_there(store)}; how far "
                "they reach back is what keep_batches= says"
            )
        try:
            return _chain(store, names, batch_id)
        except FileNotFoundError as error:
            if look == _LOOKS - 1:
                raise SnapshotError(
                    f"the state after batch {batch_id} cannot be had from {store!r}: a file that "
                    f"leads to it is not there any more ({error}); {_there(store)}"
                ) from None
        except SnapshotError as error:
            raise SnapshotError(f"{error}; {_there(store)}") from None
    raise AssertionError


def _there(store: Store) -> str:
    return f"give one of those whose state can be had: {ranges_of(inventory(store).usable)}"


def newest_state(store: Store) -> tuple[Chain, Newest]:
    """The engine after the newest batch that a start could go on from; and what was found damaged
    behind it.

    Raises:
        ConfigurationError: there is no such directory, or no checkpoint file in it.
        SnapshotError: none of its files can be used.
    """
    what = f"checkpoint {store!r}"
    for look in range(_LOOKS):
        if not _names(store):
            raise ConfigurationError(f"{what} {NO_FILES}")
        try:
            found = newest_chain(CheckpointFiles(store, what, 0))
        except FileNotFoundError:
            if look == _LOOKS - 1:
                raise
            continue
        if found.chain is None:
            raise SnapshotError(
                f"{what} has {found.files} checkpoint file(s), none of which can be used: "
                f"{'; '.join(found.damaged) or 'there is no full one'}"
            )
        return found.chain, found
    raise AssertionError


def _refuse(store: Store, names: list[FileName], batch_id: int, error: OSError) -> NoReturn:
    kept = input_batches(store)
    if not names and not kept:
        raise ConfigurationError(f"checkpoint {store!r} {NO_FILES}") from None
    there = f"batches that can be replayed: {', '.join(map(str, kept)) or 'none'}"
    if batch_id not in kept:
        recorded = _has(names, batch_id)
        raise ConfigurationError(
            f"batch {batch_id} of {store!r} cannot be replayed: "
            + ("it is recorded, but " if recorded else "")
            + f"its rows are not there; {there}; {_KEPT}"
        ) from None
    raise SnapshotError(
        f"batch {batch_id} of {store!r} cannot be replayed: a checkpoint file of the state before "
        f"it is not there any more ({error})"
    ) from None


def _names(store: Store) -> list[FileName]:
    try:
        return names_of(store)
    except OSError as error:
        raise ConfigurationError(
            f"checkpoint={store!r} cannot be read: {error}; expected the directory that "
            "foreach_batch(checkpoint=...) or specstream run --checkpoint got"
        ) from None


def _has(names: list[FileName], batch_id: int) -> bool:
    return any(name.batch_id == batch_id for name in names)


def _before(store: Store, names: list[FileName], given: Input) -> bytes:
    origin = given.origin
    if origin.builds_on is None:
        return given.before
    batch_id, checksum = origin.builds_on
    chain = _chain(store, names, batch_id)
    if chain.last.checksum != checksum:
        raise SnapshotError(
            f"batch {origin.batch_id} of {store!r} cannot be replayed: its rows are of another "
            f"history than the checkpoint file of batch {batch_id}, which was written anew since"
        )
    return chain.snapshot()


def _after(store: Store, names: list[FileName], batch_id: int) -> After:
    chain = _chain(store, names, batch_id)
    with refused(f"the checkpoint file of batch {batch_id} in {store!r}"):
        output, section = chain.last.output, chain.last.named("failed")
        failed = None if section is None else read_table(section, "section 'failed'")
    return After(chain.snapshot(), chain.pending, output, failed)


def _chain(store: Store, names: list[FileName], batch_id: int) -> Chain:
    """The files that lead to the engine after a batch."""
    fulls = [name for name in names if name.is_full and name.batch_id <= batch_id]
    if not fulls:
        raise FileNotFoundError(f"no full file up to batch {batch_id}")
    chain = Chain(_file(store, fulls[-1]), _what(store, fulls[-1]))
    while chain.batch_id < batch_id:
        name = FileName(chain.batch_id + 1, "increment")
        following = _file(store, name)
        if not chain.is_built_on_by(following):
            raise SnapshotError(
                f"{_what(store, name)} builds on another file of batch {chain.batch_id}"
            )
        chain.add(following, _what(store, name))
    return chain


def _file(store: Store, name: FileName) -> CheckpointFile:
    what = _what(store, name)
    try:
        return read_file(store, name, what)
    except DamagedFile as error:
        raise SnapshotError(f"{what} cannot be used: {error}") from None


def _what(store: Store, name: FileName) -> str:
    return f"{name} in {store!r}"
