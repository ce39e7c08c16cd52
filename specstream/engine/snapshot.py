"""Snapshots: committed state, string table and next sequence number, as bytes.

In their container (``files/container.py``) the header has layout, sequence number and strings, and
the parts are the state's words in little-endian order, of containers their entries and elements one
behind the other (``declarations/state_content.py``), the strings as an Arrow stream where they are
too many for the header, and what was submitted out of order and is not committed (see
:func:`specstream.engine.pending_bytes.pack_pending`), and rejected rows that nobody has
fetched (see :meth:`specstream.columns.rejected_rows.RejectedRows.to_bytes`), and failed events
likewise (:meth:`specstream.columns.failed_events.FailedEvents.to_bytes`), if anything.

A snapshot of another layout is brought into the operator's: field by field, by name, or by the
user's own function. A state may be large, so nothing here copies its words without need.

A snapshot may come from anywhere: nothing in it is used before it was checked (``untrusted.py``),
and one that does not fit is refused before anything of an engine has changed.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from specstream.columns.field_values import FieldValues
from specstream.columns.strings import StringTable
from specstream.declarations import options
from specstream.declarations.state_content import StateContent
from specstream.declarations.state_layout import Description, Field, Layout
from specstream.declarations.state_view import StateView
from specstream.errors import InputError, SnapshotError
from specstream.files.arrow_stream import stream_of
from specstream.files.container import Container, DamagedFile
from specstream.files.untrusted import Buffer, Malformed, made_of, natural, read_table

__all__ = ["Migrate", "Snapshot", "checked_snapshot", "refused"]

SNAPSHOT = Container("snapshot", b"SPECSNP1")
# So many strings at most are in the header.
_LISTED = 4096
# Versions of early results are numbers of 64 bits, with the incarnation in the upper 23.
_MOST_INCARNATIONS = 1 << 22

# From the snapshot's fields, as StateView.to_dict() shows them, to those of the new state.
Migrate = Callable[[dict[str, Any]], Mapping[str, Any]]


@contextlib.contextmanager
def refused(what: str) -> Iterator[None]:
    """What is found :class:`Malformed` inside is said of ``what``."""
    try:
        yield
    except Malformed as error:
        raise SnapshotError(
            f"{what}: its checksum is right, but specstream has not written it so: {error}: use "
            "an earlier one, or a copy from where you trust it"
        ) from None


@dataclass(frozen=True)
class _Header:
    """The header: texts, or the length in bytes of their stream; lengths of other sections."""

    state: str
    fields: list[Description]
    next_sequence: int
    strings: list[str] | int
    rows: list[int] = field(default_factory=list)  # of each container, how many
    arrivals: int = 0  # the pending events; so they are called in the file
    bad_rows: int = 0  # the rejected rows; so it is called in the file
    failed_events: int = 0
    early: int = 0
    early_rows: int = 0


@dataclass(frozen=True)
class Snapshot:
    """The content of a snapshot.

    Attributes:
        early: incarnation of the early results that the engine has told; 0: it has told none.
        early_rows: those that are final without its having told so.
    """

    state: StateContent
    next_sequence: int
    strings: pa.ChunkedArray  # of large_string
    pending: bytes = b""
    rejected_rows: bytes = b""
    failed_events: bytes = b""
    early: int = 0
    early_rows: bytes = b""

    def to_bytes(self) -> bytes:
        """Packs it."""
        return b"".join(self.to_parts())

    def to_parts(self) -> list[Buffer]:
        """:meth:`to_bytes`, to be written one after the other; they share the state's memory."""
        strings = _packed(self.strings) if len(self.strings) > _LISTED else None
        state, layout = self.state, self.state.layout
        header = {
            "state": layout.name,
            "fields": layout.describe(),
            "next_sequence": self.next_sequence,
            "strings": self.strings.to_pylist() if strings is None else strings.nbytes,
            **({"rows": [len(rows) for rows in state.rows]} if state.rows else {}),
            **({"arrivals": len(self.pending)} if self.pending else {}),
            **({"bad_rows": len(self.rejected_rows)} if self.rejected_rows else {}),
            **({"failed_events": len(self.failed_events)} if self.failed_events else {}),
            **({"early": self.early} if self.early else {}),
            **({"early_rows": len(self.early_rows)} if self.early_rows else {}),
        }
        texts: list[Buffer] = [] if strings is None else [strings]
        kept = (self.pending, self.rejected_rows, self.failed_events, self.early_rows)
        return SNAPSHOT.pack(header, [*state.buffers(), *texts, *kept])[0]

    @classmethod
    def as_saved(cls, content: Buffer, what: str) -> Snapshot:
        """Unpacks and checks it; the state comes in the layout that it was saved with.

        Args:
            content: what :meth:`to_bytes` gave.
            what: names who asks for it in errors.

        Raises:
            SnapshotError: it is damaged, or no snapshot although its checksum is right.
        """
        is_bytes = isinstance(content, bytes | bytearray | memoryview)
        if is_bytes and not memoryview(content).nbytes:
            raise SnapshotError(
                f"{what}: no snapshot is given, or an empty one (0 bytes): give what snapshot() "
                "returned; a file of 0 bytes was never written to its end"
            )
        if not is_bytes or not SNAPSHOT.is_in(content):
            raise SnapshotError(
                f"{what}: these bytes are no snapshot: give what snapshot() returned"
            )
        with refused(what):
            try:
                unpacked = SNAPSHOT.unpack(content)
            except DamagedFile as error:
                raise SnapshotError(
                    f"{what}: the snapshot is damaged ({error}): use an earlier one"
                ) from None
            header = made_of(unpacked.header, _Header, "the header")
            natural(header.next_sequence, "the header: next_sequence")
            natural(header.early, "the header: early", _MOST_INCARNATIONS)
            saved = Layout.described(header.state, header.fields)
            sections = unpacked.parts(
                {
                    "state": StateContent.size(saved, header.rows),
                    "strings": header.strings if isinstance(header.strings, int) else 0,
                    "arrivals": header.arrivals,
                    "bad_rows": header.bad_rows,
                    "failed_events": header.failed_events,
                    "early_rows": header.early_rows,
                }
            )
            state = StateContent.from_bytes(saved, sections["state"], header.rows)
            if isinstance(header.strings, int):
                strings = _unpacked(sections["strings"])
            else:
                strings = pa.chunked_array([pa.array(header.strings, pa.large_string())])
        return cls(
            state,
            header.next_sequence,
            strings,
            bytes(sections["arrivals"]),
            bytes(sections["bad_rows"]),
            bytes(sections["failed_events"]),
            header.early,
            bytes(sections["early_rows"]),
        )

    @classmethod
    def from_bytes(
        cls,
        content: Buffer,
        layout: Layout,
        what: str,
        migrate: Migrate | None = None,
    ) -> Snapshot:
        """Unpacks and checks it; the state comes as one of ``layout``.

        Args:
            content: what :meth:`to_bytes` gave.
            layout: of the operator that it is restored into.
            what: names the engine in errors.
            migrate: gives the fields' values where the snapshot's own do not do.

        Raises:
            SnapshotError: it is damaged, no snapshot although its checksum is right, its fields do
                not fit the layout, or what ``migrate`` returns does not; names the field.
        """
        saved = cls.as_saved(content, what)
        state, strings = saved.state, saved.strings
        if migrate is not None:
            state, strings = _migrate(state, strings, layout, what, migrate)
        elif state.layout.describe() != layout.describe():
            state = _match(state, layout, what)
        return dataclasses.replace(
            saved, state=dataclasses.replace(state, layout=layout), strings=strings
        )

    def table(self, known: Iterable[str]) -> StringTable:
        """The strings as a table, behind those that are ``known`` without it.

        Raises:
            Malformed: two of them are the same, or have the same code, or the state holds one that
                is not among them; names the field.
        """
        table = StringTable(known)
        try:
            for texts in self.strings.chunks:
                _check_distinct(table.add_all(texts), table)
        except InputError as error:
            raise Malformed(f"strings: {error}") from None
        for name, codes in self.state.codes_by_field.items():
            unknown = _unknown(codes, table)
            if unknown is not None:
                raise Malformed(f"field {name!r} holds the code {unknown} of no string")
        return table


def checked_snapshot(option: str, snapshot: object, migrate: object) -> None:
    """Looks whether they are bytes, and a function; None is neither.

    Raises:
        SnapshotError: the one is something else.
        ConfigurationError: the other one is.
    """
    if not isinstance(snapshot, bytes | bytearray | memoryview | None):
        raise options.refused(
            option, snapshot, "what snapshot() returned: it is no snapshot", SnapshotError
        )
    if migrate is not None:
        options.function(
            "migrate", migrate, "a function from the old fields' values to the new ones'"
        )


def _check_distinct(codes: npt.NDArray[np.int64], table: StringTable) -> None:
    kinds, counts = np.unique(codes, return_counts=True)
    if len(kinds) < len(codes):
        text = table.text(int(kinds[counts.argmax()]))
        raise Malformed(f"strings: string {text!r} comes twice")


def _packed(strings: pa.ChunkedArray) -> memoryview:
    return stream_of(pa.table([strings], names=["strings"]))


def _unpacked(stream: memoryview) -> pa.ChunkedArray:
    table = read_table(stream, "strings")
    if table.column_names != ["strings"] or table.schema.types != [pa.large_string()]:
        raise Malformed(f"strings have the columns {_columns(table)}; expected texts alone")
    if table.column(0).null_count:
        raise Malformed(f"strings: {table.column(0).null_count} of them are null")
    return table.column(0)


def _columns(table: pa.Table) -> str:
    return ", ".join(f"{field.name} ({field.type})" for field in table.schema) or "none"


def _match(state: StateContent, layout: Layout, what: str) -> StateContent:
    """The state in the operator's layout: fields go by their names, new ones have their fill, and
    last values that nobody reads any more are left out."""
    saved = state.layout
    declared = {field["name"]: field for field in layout.describe()}
    for old in saved.describe():
        name = old["name"]
        new = declared.get(name)
        if new is None and layout.is_unread(name):
            continue
        if new is None:
            part, _, own = name.partition(".")
            if layout.parts and part not in layout.parts:
                difference = (
                    f"field {own!r} of a vertex {part!r}, which the pipeline does not have: add"
                )
            else:
                difference = f"field {name!r}, which the operator does not declare: declare"
            raise SnapshotError(
                f"{what}: the snapshot has a {difference} it, or give migrate=, a function from "
                "the old fields' values to the new ones', that leaves it out, or has it under "
                "its new name"
            )
        changed = [key for key in {**old, **new} if old.get(key) != new.get(key)]
        # More or less may be in it; all that is in it has to find room (below).
        if changed and changed != ["limit"]:
            raise SnapshotError(
                f"{what}: field {name!r} has {_list(changed, old)} in the snapshot and "
                f"{_list(changed, new)} in the operator: declare it as it was, or give migrate=, a "
                "function from the old fields' values to the new ones', that converts it"
            )
    matched = StateContent.new(layout)
    for one in saved.plain:
        if layout.is_unread(one.name):
            continue
        matched.elements(_field(layout, one.name))[...] = state.elements(one)
    for one in saved.containers:
        matched.kept(_field(layout, one.name))[:] = state.kept(one)
    _keep_clock(matched, state)
    rows = list(matched.rows)
    for one in saved.containers:
        held, target = state.rows_of(one), _field(layout, one.name)
        assert target.container is not None
        if len(held) > target.container.most:
            raise SnapshotError(
                f"{what}: field {one.name!r} has {len(held)} entries in the snapshot, and the "
                f"operator declares limit={target.container.limit}: declare a larger limit=, or "
                "give migrate=, a function from the old fields' values to the new ones', that "
                "leaves some out"
            )
        rows[layout.containers.index(target)] = held
    return dataclasses.replace(matched, rows=tuple(rows))


def _keep_clock(content: StateContent, state: StateContent) -> None:
    """That of the timers, which the first field of them has, whichever that is."""
    layout, clocked = content.layout, state.layout.timers
    for one in layout.all_timers:
        is_first = one == layout.timers
        content.kept(one)[:] = state.kept(clocked) if is_first and clocked is not None else 0


def _field(layout: Layout, name: str) -> Field:
    field = layout.field(name)
    assert field is not None
    return field


def _list(keys: list[str], description: Mapping[str, object]) -> str:
    return ", ".join(f"{key} {description.get(key)}" for key in keys)


def _unknown(codes: npt.NDArray[np.int64], table: StringTable) -> int | None:
    """A code that is of no string of the table; None: there is none."""
    held = np.unique(codes)
    strange = held[table.texts(held).is_null().to_numpy(zero_copy_only=False) & (held != 0)]
    return int(strange[0]) if len(strange) else None


def _migrate(
    state: StateContent, strings: pa.ChunkedArray, layout: Layout, what: str, migrate: Migrate
) -> tuple[StateContent, pa.ChunkedArray]:
    """The state that the user's function makes of the snapshot's fields, and the strings."""
    saved = state.layout
    with refused(what):
        table = Snapshot(state, 0, strings).table(())
    try:
        values = migrate(StateView(saved, state, table.objects).to_dict())
    except Exception as error:
        names = ", ".join(field.name for field in saved.fields)
        error.add_note(f"raised by migrate= of {what}; the snapshot has the fields {names}")
        raise
    if not isinstance(values, Mapping):
        raise SnapshotError(
            f"{what}: migrate= returned {type(values).__name__}; expected a dict from the names of "
            "the new fields to their values"
        )
    values = {name: value for name, value in values.items() if not layout.is_unread(name)}
    given = FieldValues(layout, table, f"{what}: migrate= returned", SnapshotError, codes=True)
    content = given.content(values)
    # No value of a field, and so nothing that the function could give: time goes on.
    _keep_clock(content, state)
    return content, table.to_arrow()
