"""Snapshots: committed state, string table and next sequence number, as bytes.

In their container (``files/container.py``) the header has layout, sequence number and strings, and
the parts are the state's words in little-endian order, the strings as an Arrow stream where they
are too many for the header, and what was submitted out of order and is not committed (see
:meth:`specstream.engine.pending_events.PendingEvents.to_bytes`), and rejected rows that nobody has
fetched (see :meth:`specstream.columns.rejected_rows.RejectedRows.to_bytes`), if anything.

A snapshot of another layout is brought into the operator's: field by field, by name, or by the
user's own function. A state may be large, so nothing here copies its words without need.

A snapshot may come from anywhere: nothing in it is used before it was checked (``untrusted.py``),
and one that does not fit is refused before anything of an engine has changed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from specstream.columns.strings import StringTable
from specstream.declarations import options
from specstream.declarations.codes import EMPTY
from specstream.declarations.options import whole
from specstream.declarations.state import Description, Field, Layout, StateView
from specstream.errors import InputError, SnapshotError
from specstream.files.arrow_stream import stream_of
from specstream.files.container import Container, DamagedFile
from specstream.files.untrusted import Buffer, Malformed, made_of, natural, read_table

__all__ = ["Migrate", "Snapshot", "checked_snapshot", "refused"]

SNAPSHOT = Container("snapshot", b"SPECSNP1")
# So many strings at most are in the header.
_LISTED = 4096

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
    arrivals: int = 0  # the pending events; so they are called in the file
    bad_rows: int = 0  # the rejected rows; so it is called in the file


@dataclass(frozen=True)
class Snapshot:
    """The content of a snapshot."""

    words: npt.NDArray[np.int64]
    next_sequence: int
    strings: pa.ChunkedArray  # of large_string
    pending: bytes = b""
    rejected_rows: bytes = b""

    def to_bytes(self, layout: Layout) -> bytes:
        """Packs it."""
        strings = _packed(self.strings) if len(self.strings) > _LISTED else None
        header = {
            "state": layout.name,
            "fields": layout.describe(),
            "next_sequence": self.next_sequence,
            "strings": self.strings.to_pylist() if strings is None else strings.nbytes,
            **({"arrivals": len(self.pending)} if self.pending else {}),
            **({"bad_rows": len(self.rejected_rows)} if self.rejected_rows else {}),
        }
        words = self.words.astype("<i8", copy=False).data.cast("B")
        texts: list[Buffer] = [] if strings is None else [strings]
        parts, _ = SNAPSHOT.pack(header, [words, *texts, self.pending, self.rejected_rows])
        return b"".join(parts)

    @classmethod
    def from_bytes(
        cls,
        content: Buffer,
        layout: Layout,
        what: str,
        migrate: Migrate | None = None,
    ) -> Snapshot:
        """Unpacks and checks it; the words come in the order of ``layout``.

        Args:
            content: what :meth:`to_bytes` gave.
            layout: of the operator that it is restored into.
            what: names the engine in errors.
            migrate: gives the fields' values where the snapshot's own do not do.

        Raises:
            SnapshotError: it is damaged, no snapshot although its checksum is right, its fields do
                not fit the layout, or what ``migrate`` returns does not; names the field.
        """
        if not isinstance(content, bytes | bytearray | memoryview) or not SNAPSHOT.is_in(content):
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
            saved = Layout.described(header.state, header.fields)
            sections = unpacked.parts(
                {
                    "state": 8 * saved.words("state"),
                    "strings": header.strings if isinstance(header.strings, int) else 0,
                    "arrivals": header.arrivals,
                    "bad_rows": header.bad_rows,
                }
            )
            words = np.frombuffer(sections["state"], "<i8").astype(np.int64, copy=False)
            saved.check(words)
            if isinstance(header.strings, int):
                strings = _unpacked(sections["strings"])
            else:
                strings = pa.chunked_array([pa.array(header.strings, pa.large_string())])
        if migrate is not None:
            words, strings = _migrate(saved, words, strings, layout, what, migrate)
        elif header.fields != layout.describe():
            words = _match(saved, words, layout, what)
        return cls(
            words,
            header.next_sequence,
            strings,
            bytes(sections["arrivals"]),
            bytes(sections["bad_rows"]),
        )

    def table(self, known: Iterable[str], layout: Layout) -> StringTable:
        """The strings as a table, behind those that are ``known`` without it.

        Raises:
            Malformed: two of them are the same, or have the same code, or the state holds one that
                is not among them; names the field.
        """
        table = StringTable(known)
        try:
            for texts in self.strings.chunks:
                table.add_all(texts)
        except InputError as error:
            raise Malformed(f"strings: {error}") from None
        for field in layout.texts:
            unknown = _unknown(layout.elements(self.words, field), table)
            if unknown is not None:
                raise Malformed(f"field {field.name!r} holds the code {unknown} of no string")
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


def _match(
    saved: Layout, words: npt.NDArray[np.int64], layout: Layout, what: str
) -> npt.NDArray[np.int64]:
    """The words in the operator's layout: fields go by their names, new ones have their fill."""
    declared = {field["name"]: field for field in layout.describe()}
    for old in saved.describe():
        name = old["name"]
        new = declared.get(name)
        if new is None:
            raise SnapshotError(
                f"{what}: the snapshot has a field {name!r}, which the operator does not declare: "
                "declare it, or give migrate=, a function from the old fields' values to the new "
                "ones', that leaves it out"
            )
        if new != old:
            changed = [key for key in {**old, **new} if old.get(key) != new.get(key)]
            raise SnapshotError(
                f"{what}: field {name!r} has {_list(changed, old)} in the snapshot and "
                f"{_list(changed, new)} in the operator: declare it as it was, or give migrate=, a "
                "function from the old fields' values to the new ones', that converts it"
            )
    matched = layout.allocate()
    for field in saved.fields:
        target = layout.field(field.name)
        assert target is not None
        layout.elements(matched, target)[...] = saved.elements(words, field)
    return matched


def _list(keys: list[str], description: Mapping[str, object]) -> str:
    return ", ".join(f"{key} {description.get(key)}" for key in keys)


def _unknown(codes: npt.NDArray[np.int64], table: StringTable) -> int | None:
    """A code that is of no string of the table; None: there is none."""
    held = np.unique(codes)
    strange = held[table.texts(held).is_null().to_numpy(zero_copy_only=False) & (held != 0)]
    return int(strange[0]) if len(strange) else None


def _migrate(
    saved: Layout,
    words: npt.NDArray[np.int64],
    strings: pa.ChunkedArray,
    layout: Layout,
    what: str,
    migrate: Migrate,
) -> tuple[npt.NDArray[np.int64], pa.ChunkedArray]:
    """The words that the user's function makes of the snapshot's fields, and the strings."""
    with refused(what):
        table = Snapshot(words, 0, strings).table((), saved)
    try:
        values = migrate(StateView(saved, words, table.objects).to_dict())
    except Exception as error:
        names = ", ".join(field.name for field in saved.fields)
        error.add_note(f"raised by migrate= of {what}; the snapshot has the fields {names}")
        raise
    if not isinstance(values, Mapping):
        raise SnapshotError(
            f"{what}: migrate= returned {type(values).__name__}; expected a dict from the names of "
            "the new fields to their values"
        )
    migrated = layout.allocate()
    for name, value in values.items():
        field = layout.field(name) if isinstance(name, str) else None
        if field is None or field.space != "state":
            names = ", ".join(field.name for field in layout.fields if field.space == "state")
            raise SnapshotError(
                f"{what}: migrate= returned a field {name!r}, which the operator does not declare "
                f"(it declares {names}): leave it out, or declare it"
            )
        if field.kind == "str":
            layout.elements(migrated, field)[...] = _codes(value, field, table, what)
        else:
            _store(value, layout.elements(migrated, field), field, what)
    return migrated, table.to_arrow()


def _codes(value: Any, field: Field, table: StringTable, what: str) -> npt.NDArray[np.int64]:
    """What a field of strings holds: of strings, or of codes that an int field has held."""
    given = np.asarray(value, object)
    _check_shape(given, field, what)
    codes = np.empty(given.shape, np.int64)
    for place, one in np.ndenumerate(given):
        code = whole(one)
        if isinstance(one, str):
            codes[place] = table.add(one) if one else 0
        elif code is not None and (code == 0 or table.text(code) is not None):
            codes[place] = code
        else:
            raise SnapshotError(
                f"{what}: migrate= returned {one!r} for field {field.name!r}, which holds strings: "
                "give a str, or the code of a string that the snapshot has"
            )
    codes[codes == EMPTY] = 0
    return codes


def _check_shape(given: npt.NDArray[Any], field: Field, what: str) -> None:
    if given.shape != field.shape:
        raise SnapshotError(
            f"{what}: migrate= returned shape {given.shape} for field {field.name!r}, which is "
            f"declared with shape {field.shape}: bring it into that shape"
        )


_ACCEPTED = {"int": "iu", "uint": "iu", "float": "iuf", "bool": "b"}
_WRITE = {
    "int": "round it, and keep it within the type's range",
    "uint": "round it, and keep it within the type's range",
    "float": "cast it with .astype(np.float64)",
    "bool": "compare it, so that it becomes a bool",
}


def _store(value: Any, elements: npt.NDArray[Any], field: Field, what: str) -> None:
    try:
        given = np.asarray(value)
    except ValueError as error:
        raise SnapshotError(
            f"{what}: migrate= returned no array for field {field.name!r} ({error}); expected "
            f"shape {field.shape}"
        ) from None
    _check_shape(given, field, what)
    fits = given.dtype.kind in _ACCEPTED[field.kind]
    if fits and field.kind in ("int", "uint"):
        limits = np.iinfo(elements.dtype)
        fits = limits.min <= int(given.min()) and int(given.max()) <= limits.max
    if not fits:
        raise SnapshotError(
            f"{what}: migrate= returned {given.dtype} values for field {field.name!r} that do not "
            f"fit its type, {field.storage.name}: {_WRITE[field.kind]}"
        )
    if field.kind == "float":
        _check_integers(value, given, elements.dtype.type, field, what)
    elements[...] = given
    if field.kind == "float":
        elements[np.isnan(elements)] = np.nan  # all NaNs of a state have the same bits


# Every integer up to here is a float32.
_SMALL = 2**24


def _check_integers(
    value: Any, given: npt.NDArray[Any], of: type[np.floating[Any]], field: Field, what: str
) -> None:
    """Refuses integers that would be rounded, which no cast of the user's has asked for."""
    if given.dtype.kind in "iu":
        large = given[(given > _SMALL) | (given < -_SMALL)].tolist()
    elif isinstance(value, np.ndarray):
        return
    else:  # numbers of Python, among which NumPy has made floats of the integers
        large = [one for one in np.asarray(value, object).flat if whole(one) is not None]
    for one in large:
        stored = float(of(one))
        if stored != one:
            raise SnapshotError(
                f"{what}: migrate= returned {one} for field {field.name!r}, which its type, "
                f"{field.storage.name}, holds as {stored!r} only: give float({one}), or an array "
                "of floats, if it may be rounded; or declare the field as an int"
            )
