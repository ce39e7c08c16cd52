"""The rows that a micro-batch came with, kept in the checkpoint so that it can be replayed.

Spark can send a batch again only while it has not acknowledged it, and only where its source still
has the rows. What is kept here needs neither: ``0000000012.input`` holds the rows of batch 12 as
they were fetched, the operator as it was declared, and what else its outcome depends on. With the
checkpoint file of batch 11 that is all that ``specstream replay`` needs (see ``replay.py``).

The input of a batch that fails is always kept, until the batch has been applied. To keep those of
the last K batches costs their rows on disk, and checkpoint files that reach back as far. They are
written before the events run, so that the batch in which a process dies is among them. Nothing that
is promised depends on them: they are not synced, and one that cannot be written is a warning.

A file is an Arrow stream, which any Arrow library opens, and a checksum behind its end. What is not
a row is in the metadata of its schema.
"""

from __future__ import annotations

import json
import re
import warnings
from dataclasses import asdict, dataclass, replace

import pyarrow as pa

from specstream.checkpoint.format.file_format import changed_blocks
from specstream.checkpoint.format.recorded_operator import pickled, unpickled
from specstream.checkpoint.format.store import Store
from specstream.checkpoint.run.event_time import PlainEventTime
from specstream.columns.failed_events import Errors
from specstream.columns.rejected_rows import Policy
from specstream.declarations.container_words import count
from specstream.declarations.state_content import fixed_words
from specstream.definition.operator import Operator
from specstream.engine.engine import Engine
from specstream.errors import EngineClosedError, SnapshotError, SpecstreamError
from specstream.files.arrow_stream import stream_of
from specstream.files.container import Container
from specstream.files.untrusted import Malformed, made_of, natural, object_of, read_table

__all__ = ["Input", "Inputs", "Origin", "Raised", "input_batches", "read_input"]

# Version 1 has nothing of event time, version 2 nothing of the end of a stream, and version 3 has
# nothing of events that are set aside.
INPUT = Container("kept input", b"SPECINPT", (1, 2, 3, 4))
_NAME = re.compile(r"([0-9]{10})\.input")


@dataclass(frozen=True)
class Raised:
    """What ended a batch.

    Attributes:
        event: place of the event in the order of the batch's events; None: no event was run.
        type: name of the exception's class.
        message: its text.
    """

    event: int | None
    type: str
    message: str

    def __str__(self) -> str:
        where = "before any event ran" if self.event is None else f"at event {self.event}"
        return f"{self.type} {where}: {self.message}"


@dataclass(frozen=True)
class Origin:
    """What a batch's outcome depends on beside rows, operator and state.

    Attributes:
        batch_id: of the micro-batch.
        query: id of Spark's streaming query; None for a batch given by hand.
        operator: its name.
        seed: the engine's.
        keys: whether the engine adds the order key to its output.
        bad_rows: the engine's policy.
        order_by: column of the event time, or None.
        source: column of the source, or None.
        next_sequence: of the engine, before the batch.
        builds_on: batch id and checksum of the checkpoint file before; None: there was none.
        waits: whether events wait in the engine for the frontier of their source.
        raised: what the batch raised; None: nothing, or the process ended meanwhile.
        event_time: what decides which events the batch commits, beside those that wait and its
            rows (:meth:`EventTime.describe`); None: it commits its own.
        ends: whether the stream has ended with the batch, which has no rows.
        errors: what the engine does with an event that raises.
        errors_limit: so many events of a batch may fail; None: all of them.
    """

    batch_id: int
    query: str | None
    operator: str
    seed: int
    keys: bool
    bad_rows: Policy
    order_by: str | None
    source: str | None
    next_sequence: int
    builds_on: tuple[int, int] | None
    waits: bool = False
    raised: Raised | None = None
    event_time: PlainEventTime | None = None
    ends: bool = False
    errors: Errors = "raise"
    errors_limit: int | None = None


@dataclass(frozen=True)
class Input:
    """A batch's rows and what belongs to them.

    Attributes:
        origin: see :class:`Origin`.
        rows: as they were fetched.
        pickled: the operator; empty if it could not be pickled.
        before: a snapshot of the engine before the batch where no file holds it; else empty.
    """

    origin: Origin
    rows: pa.Table
    pickled: bytes
    before: bytes = b""

    def to_bytes(self) -> bytes:
        """As a file has it.

        >>> origin = Origin(3, None, "count", 0, False, "error", None, None, 6, (2, 77))
        >>> kept = Input(origin, pa.table({"x": [1, 2]}), b"")
        >>> Input.from_bytes(kept.to_bytes()) == kept
        True
        """
        about = {"version": INPUT.version, "columns": self.rows.schema.metadata is not None}
        metadata = {
            **(self.rows.schema.metadata or {}),
            b"specstream": json.dumps({**about, **asdict(self.origin)}).encode(),
            b"specstream.operator": self.pickled,
            b"specstream.before": self.before,
        }
        rows = self.rows.replace_schema_metadata(metadata)
        return b"".join(INPUT.seal(stream_of(rows, compression="lz4")))

    @classmethod
    def from_bytes(cls, content: bytes) -> Input:
        """Unpacks and checks one.

        Raises:
            DamagedFile: it is cut short, or a byte of it has changed.
            SnapshotError: it is whole, and of a version that this one cannot read, or no input
                although its checksum is right.
        """
        rows = read_table(INPUT.unseal(content), "rows")
        metadata = dict(rows.schema.metadata or {})
        about = object_of(metadata.pop(b"specstream", b""), "the origin")
        pickled = metadata.pop(b"specstream.operator", b"")
        before = metadata.pop(b"specstream.before", b"")
        version = made_of(about.pop("version", None), int, "the origin: version")
        had_metadata = made_of(about.pop("columns", None), bool, "the origin: columns")
        INPUT.check_version(version)
        origin = made_of(about, Origin, "the origin")
        natural(origin.seed, "the origin: seed", 2**64 - 1)
        natural(origin.next_sequence, "the origin: next_sequence")
        if origin.event_time is not None and origin.order_by is None:
            raise Malformed("the origin has event_time and no order_by")
        rows = rows.replace_schema_metadata(metadata if had_metadata else None)
        return cls(origin, rows, pickled, before)

    def operator(self) -> Operator:
        """The operator as it was declared when the batch ran.

        Raises:
            SnapshotError: it was not recorded, or cannot be made here.
        """
        what = f"batch {self.origin.batch_id}: the operator {self.origin.operator!r}"
        hint = "name it, as MODULE:OPERATOR or operator="
        if not self.pickled:
            raise SnapshotError(f"{what} could not be recorded: {hint}")
        try:
            made = unpickled(self.pickled)
        except Exception as error:
            raise SnapshotError(
                f"{what} cannot be made from the record ({type(error).__name__}: {error}): {hint}"
            ) from error
        if not isinstance(made, Operator):
            raise SnapshotError(f"{what} is a {type(made).__name__} in the record: {hint}")
        return made


class Inputs:
    """Keeps the inputs of a query's batches.

    Args:
        store: where the checkpoint files are.
        engine: the engine.
        keep: how many batches' inputs are kept; that of one that fails is, in any case.
        order_by: column of the event time, or None.
        source: column of the source, or None.
        event_time: see :class:`Origin`.
        errors_limit: likewise.
    """

    def __init__(
        self,
        store: Store,
        engine: Engine,
        keep: int,
        order_by: str | None,
        source: str | None,
        event_time: PlainEventTime | None = None,
        errors_limit: int | None = None,
    ) -> None:
        self._store = store
        self._engine = engine
        self._keep = keep
        self._order_by = order_by
        self._source = source
        self._event_time = event_time
        self._errors_limit = errors_limit
        # Without it a replay takes the operator from the user's own module.
        self._pickled = pickled(engine.operator)
        self._has_files = True
        self._current: Input | None = None

    def begin(
        self,
        batch_id: int,
        query: str | None,
        rows: pa.Table,
        builds_on: tuple[int, int] | None,
        ends: bool = False,
    ) -> None:
        """A batch, which may end the stream, is about to run on the state of a checkpoint file;
        None: it is in none."""
        engine = self._engine
        origin = Origin(
            batch_id,
            query,
            engine.name,
            engine.seed,
            engine.durable.keys,
            engine.durable.rejected.policy,
            self._order_by,
            self._source,
            engine.durable.next_sequence,
            builds_on,
            len(engine.durable.pending.sources) > 0,
            event_time=self._event_time,
            ends=ends,
            errors=engine.durable.failed.policy,
            errors_limit=self._errors_limit,
        )
        before = b"" if builds_on is not None or _is_new(engine) else engine.snapshot()
        self._current = Input(origin, rows, self._pickled, before)
        if self._keep:
            self._write(self._current)

    def failed(self, error: BaseException) -> None:
        """The batch that :meth:`begin` told of has raised."""
        current, self._current = self._current, None
        if current is None or not isinstance(error, Exception) or _is_ended(error):
            return
        partial = getattr(error, "specstream_partial", None)
        event = None if partial is None else partial.consumed
        raised = Raised(event, type(error).__name__, str(error))
        waits = len(self._engine.durable.pending.sources) > 0  # the first batch has brought them
        self._write(replace(current, origin=replace(current.origin, waits=waits, raised=raised)))

    def applied(self, batch_id: int) -> None:
        """The batch is recorded: inputs that are not to be kept any longer are deleted."""
        self._current = None
        if not self._has_files:
            return
        self._has_files = bool(self._keep)
        try:
            for kept in input_batches(self._store):
                if kept <= batch_id - self._keep:
                    self._store.delete(_name(kept))
        except OSError as error:
            _warn(f"inputs in {self._store!r} are left, because they cannot be deleted: {error}")

    def _write(self, kept: Input) -> None:
        name = _name(kept.origin.batch_id)
        try:
            self._store.note(name, [kept.to_bytes()])
            self._has_files = True
        except (OSError, pa.ArrowException) as error:
            _warn(f"{name} cannot be kept in {self._store!r}, for a replay of the batch: {error}")


def _is_new(engine: Engine) -> bool:
    """Whether the engine is as an engine of its operator begins."""
    if engine.durable.next_sequence or engine.durable.pending.segments.left:
        return False
    layout, words = engine.operator.layout, engine.durable.words
    if any(count(words, field) for field in layout.containers):
        return False
    fixed, new = fixed_words(layout, words), fixed_words(layout, layout.allocate())
    return not len(changed_blocks(fixed, new))


def _is_ended(error: Exception) -> bool:
    """Whether the engine was closed, which says nothing of the batch."""
    return isinstance(error, EngineClosedError)


def _name(batch_id: int) -> str:
    return f"{batch_id:010d}.input"


def _warn(message: str) -> None:
    warnings.warn(message, RuntimeWarning, stacklevel=3)


def input_batches(store: Store) -> list[int]:
    """Ids of the batches whose inputs are there, ascending."""
    return sorted(int(match[1]) for match in map(_NAME.fullmatch, store.names()) if match)


def read_input(store: Store, batch_id: int) -> Input:
    """The input of a batch.

    Raises:
        FileNotFoundError: it is not there.
        SnapshotError: it is damaged, or of a version that this one cannot read.
    """
    name = _name(batch_id)
    try:
        kept = Input.from_bytes(store.read(name))
        if kept.origin.batch_id != batch_id:
            raise Malformed(f"it is the input of batch {kept.origin.batch_id}")
        return kept
    except SpecstreamError as error:
        raise SnapshotError(f"{name} in {store!r}: {error}: it cannot be replayed") from None
