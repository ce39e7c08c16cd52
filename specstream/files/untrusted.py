"""Bytes that somebody else may have written: JSON and Arrow, checked before anything is made of it.

Snapshots and the files of a checkpoint are copied about, put back, and handed on. A checksum finds
what has changed by accident; who writes a file writes its checksum as well. So no count, length,
type or offset in them is used before it is known to fit, and a file that does not fit is refused as
a whole. What comes from the outside goes through here: JSON becomes the dataclass that it is to be,
member by member, and an Arrow stream becomes a table whose every buffer was looked through.

Arrow reads a stream without looking at what is in its buffers: offsets of strings, indices of
dictionaries and UTF-8 are believed by all that follows, and reach anywhere in memory. That is what
``validate(full=True)`` is for; it takes about as long as a checksum of the same bytes.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import types
import typing
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import pyarrow as pa

from specstream.errors import SnapshotError

__all__ = [
    "MOST",
    "Buffer",
    "Malformed",
    "json_of",
    "made_of",
    "natural",
    "object_of",
    "read_table",
    "read_tables",
]

Buffer = bytes | memoryview
Of = TypeVar("Of")

# Of anything that is counted: far from where int64 ends, so that counting on cannot overflow.
MOST = 2**62
# A row takes a bit at least, and compression makes 255 bytes of one at most. Where columns take no
# memory at all, a few bytes can claim any number of rows, and the first array of that length fails.
_ROWS_OF_A_BYTE = 8 * 255
_FEW_ROWS = 1 << 20
_PLAIN: tuple[Any, ...] = (int, float, str, bool, types.NoneType)


class Malformed(SnapshotError):
    """Bytes are not what they must be; the message says which part, and what was found."""


# ---- JSON ----


def json_of(content: Buffer, what: str) -> Any:
    """What JSON says; nothing is known of it but that it is JSON.

    Raises:
        Malformed: it is none, or nested deeper than Python goes.

    >>> json_of(b"[1", "the header")
    Traceback (most recent call last):
    specstream.files.untrusted.Malformed: the header: no JSON (Expecting ',' delimiter: line 1 ...
    """
    try:
        return json.loads(str(content, "utf-8"))
    except (ValueError, RecursionError) as error:
        raise Malformed(f"{what}: no JSON ({error})") from None


def object_of(content: Buffer, what: str) -> dict[str, Any]:
    """A JSON object, as of :func:`json_of`."""
    value = json_of(content, what)
    if type(value) is not dict:
        raise Malformed(f"{what} is {_shown(value)}; expected a JSON object")
    return value


def made_of(value: Any, of: type[Of], what: str) -> Of:
    """A value as JSON has it, made the type that is expected: dataclasses by their annotations.

    Annotations may be int, float, str, bool, None, ``Literal``, unions of these, lists, tuples,
    typed dicts and dataclasses. An object must have all members that have no default, and no other.

    Args:
        value: as :func:`json.loads` gives it.
        of: the type.
        what: names the value in errors.

    Raises:
        Malformed: it is of another type somewhere; names the member.

    >>> @dataclasses.dataclass
    ... class Place:
    ...     row: int
    ...     names: tuple[str, ...] = ()
    >>> made_of({"row": 3, "names": ["a"]}, Place, "the place")
    Place(row=3, names=('a',))
    >>> made_of({"row": "3"}, Place, "the place")
    Traceback (most recent call last):
    specstream.files.untrusted.Malformed: the place: row is '3'; expected int
    """
    made: Of = _made(value, of, what)
    return made


def _made(value: Any, of: Any, what: str) -> Any:
    origin, args = get_origin(of), get_args(of)
    if origin in (Union, types.UnionType):
        for one in args:
            if one in _PLAIN and _is_plain(value, one):
                return value
        rest = [one for one in args if one not in _PLAIN]
        if len(rest) == 1:
            return _made(value, rest[0], what)
    elif origin is Literal:
        if any(type(value) is type(one) and value == one for one in args):
            return value
    elif origin is list:
        if type(value) is list:
            if args[0] in _PLAIN and all(_is_plain(one, args[0]) for one in value):
                return value
            return [_made(one, args[0], f"{what}[{at}]") for at, one in enumerate(value)]
    elif origin is tuple:
        if type(value) is list:
            each = [args[0]] * len(value) if args[-1] is Ellipsis else list(args)
            if len(each) == len(value):
                return tuple(
                    _made(one, kind, f"{what}[{at}]")
                    for at, (one, kind) in enumerate(zip(value, each, strict=True))
                )
    elif dataclasses.is_dataclass(of):
        needed = {
            one.name
            for one in dataclasses.fields(of)
            if one.default is dataclasses.MISSING and one.default_factory is dataclasses.MISSING
        }
        made: Any = of
        return made(**_members(value, of, needed, what))
    elif typing.is_typeddict(of):
        return _members(value, of, of.__required_keys__, what)
    elif _is_plain(value, of):
        return value
    raise Malformed(f"{what} is {_shown(value)}; expected {_named(of)}")


def _members(value: Any, of: Any, needed: typing.AbstractSet[str], what: str) -> dict[str, Any]:
    if type(value) is not dict:
        raise Malformed(f"{what} is {_shown(value)}; expected a JSON object")
    known = _hints(of)
    for name in (*sorted(needed), *value):
        if name not in value:
            raise Malformed(f"{what} has no member {name!r}")
        if name not in known:
            raise Malformed(f"{what} has a member {_shown(name)}, which it cannot have")
    return {name: _made(one, known[name], f"{what}: {name}") for name, one in value.items()}


_hints = functools.cache(get_type_hints)


def _is_plain(value: Any, of: Any) -> bool:
    if type(value) is not of and not (of is float and type(value) is int):
        return False
    if type(value) is int:
        return -(2**63) <= value < 2**64
    if type(value) is str:
        try:
            value.encode()  # JSON may have half of a surrogate pair, which no text has
        except UnicodeEncodeError:
            return False
    return True


def _shown(value: Any) -> str:
    text = ascii(value) if isinstance(value, str | float | bool | None) else ""
    if type(value) is int:
        text = str(value) if -(2**64) < value < 2**64 else "an integer beyond 64 bits"
    text = text or f"a {type(value).__name__}"
    return text if len(text) <= 80 else f"{text[:80]}..."


def _named(of: Any) -> str:
    return str(of) if get_origin(of) is not None else str(getattr(of, "__name__", of))


def natural(value: int, what: str, most: int = MOST) -> int:
    """A number that counts something.

    Raises:
        Malformed: it is below zero, or above ``most``.
    """
    if not 0 <= value <= most:
        raise Malformed(f"{what} is {_shown(value)}; expected 0 to {most}")
    return value


# ---- Arrow ----


def read_table(content: Buffer, what: str) -> pa.Table:
    """The table of an Arrow stream, which shares no memory with it unless it is ``bytes``.

    Raises:
        Malformed: it is no stream, there is something behind it, or what it holds is no table.
    """
    tables = read_tables(content, what)
    if len(tables) != 1:
        raise Malformed(f"{what} holds {len(tables)} Arrow streams; expected one")
    return tables[0]


def read_tables(content: Buffer, what: str) -> list[pa.Table]:
    """The tables of Arrow streams that lie one behind the other, as of :func:`read_table`."""
    # A copy of what is a part of something: a table must not keep the whole in memory.
    buffer = pa.py_buffer(bytes(content))
    reader = pa.BufferReader(buffer)
    tables = []
    # Whatever Arrow does not like: an ArrowException, or OSError, MemoryError, UnicodeDecodeError.
    try:
        while reader.tell() < buffer.size:
            table = pa.ipc.open_stream(reader).read_all()
            table.validate(full=True)
            for field in table.schema:
                _check_names(field)
            tables.append(table)
    except (pa.ArrowException, OSError, MemoryError, ValueError, RecursionError) as error:
        raise Malformed(f"{what} is no sound Arrow stream ({_first_line(error)})") from None
    for table in tables:
        if table.num_rows > max(_FEW_ROWS, _ROWS_OF_A_BYTE * buffer.size):
            raise Malformed(f"{what} claims {table.num_rows} rows in {buffer.size} bytes")
    return tables


def _check_names(field: pa.Field) -> None:
    """Reads all names that are in it, which are decoded only when somebody asks for them."""
    _ = field.name, str(field.type)
    for at in range(field.type.num_fields):
        _check_names(field.type.field(at))


def _first_line(error: BaseException) -> str:
    return ascii(str(error).strip().split("\n")[0][:200])[1:-1] or type(error).__name__
