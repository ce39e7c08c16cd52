"""Snapshots and files of a checkpoint that somebody has changed, with checksums that are right.

A file is taken apart, one thing or a few in it are changed, a count, a length, a type, a value, an
Arrow buffer, and it is put together again. The formats are written down here once more, so that
what reads them and what changes them have no mistake in common.
"""

from __future__ import annotations

import copy
import json
import random
import struct
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

# Where types end, and next to it.
EDGES = sorted(
    {sign * 2**bits + by for bits in (0, 1, 2, 7, 8, 31, 32, 40, 62, 63, 64) for sign in (1, -1)
     for by in (-1, 0, 1)}
)  # fmt: skip
ODD: tuple[Any, ...] = (
    None, True, False, 0.5, float("nan"), float("inf"), 1e300, 10**40, "", "a", "int", "\ud800",
    "key", "x" * 300, [], {}, [[]], [0], [-1, -1], {"name": "a"}, [None], ["a", 1], "None",
)  # fmt: skip
NESTED = "[" * 100_000


def nodes(value: Any) -> list[tuple[Any, Any]]:
    """Every place in plain data: (container, key)."""
    keys = list(value) if isinstance(value, dict) else range(len(value))
    found = [(value, key) for key in keys]
    for key in keys:
        if isinstance(value[key], dict | list):
            found += nodes(value[key])
    return found


def other_json(rng: random.Random, value: Any) -> Any:
    """Plain data with one place changed."""
    value = copy.deepcopy(value)
    places = nodes(value) if isinstance(value, dict | list) else []
    if not places:
        return rng.choice(ODD)
    container, key = rng.choice(places)
    old = container[key]
    is_number = type(old) is int
    way = rng.randrange(8 if is_number else 5)
    if way == 0 and isinstance(container, dict):
        del container[key]
    elif way == 0:
        container.insert(key, copy.deepcopy(old))
    elif way == 1 and isinstance(container, dict):
        container[rng.choice([f"{key}x", "held", "\udc00", "name"])] = container.pop(key)
    elif way == 1:
        rng.shuffle(container)
    elif way == 2:
        container[key] = rng.choice(ODD)
    elif way == 3:
        container[key] = rng.choice(EDGES)
    elif way == 4:
        container[key] = (
            copy.deepcopy(rng.choice(rng.choice(places)[:1])) if rng.random() < 0.5 else [old]
        )
    else:
        container[key] = old + rng.choice([-8, -1, 1, 8, 40, 2**20])
    return value


def as_json(rng: random.Random, value: Any) -> bytes:
    """As text; now and then one that no parser likes."""
    text = json.dumps(value)
    if rng.random() < 0.01:
        text = rng.choice([NESTED, text[:-1], text + text, "[]", "", f'{{"state": {NESTED}'])
    return text.encode()


def other_bytes(rng: random.Random, content: bytes) -> bytes:
    """Bytes with some changed, most of them as words where words lie."""
    if not content:
        return rng.randbytes(rng.choice([1, 7, 8, 64]))
    made = bytearray(content)
    for _ in range(rng.choice([1, 1, 2, 4])):
        if not made:
            break
        size = rng.choice([4, 8, 8])
        at = rng.randrange(max(1, len(made) // size)) * size
        way = rng.randrange(9)
        if way < 4:
            word = rng.choice(EDGES) & (2 ** (8 * size) - 1)
            made[at : at + size] = word.to_bytes(size, "little")[: len(made) - at]
        elif way == 4:
            made[rng.randrange(len(made))] ^= 1 << rng.randrange(8)
        elif way == 5:
            made[rng.randrange(len(made))] = rng.choice([0, 1, 0x7F, 0x80, 0xC0, 0xFF])
        elif way == 6:
            del made[rng.choice([at, len(made) - size, at + size]) :]
        elif way == 7:
            made[at:at] = made[at : at + size * rng.choice([1, 2, 16])]
        else:
            old = int.from_bytes(made[at : at + size], "little")
            word = (old + rng.choice([-8, -1, 1, 8, 64, 2**20])) % 2 ** (8 * size)
            made[at : at + size] = word.to_bytes(size, "little")[: len(made) - at]
    return bytes(made)


def tables(content: bytes) -> list[pa.Table]:
    """The tables of good Arrow streams."""
    reader = pa.BufferReader(content)
    found = []
    while reader.tell() < len(content):
        found.append(pa.ipc.open_stream(reader).read_all())
    return found


def stream(table: pa.Table, compression: str | None = None) -> bytes:
    """A table as an Arrow stream."""
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _strange(rng: random.Random, rows: int) -> pa.Array:
    """A column of a type that nobody expects."""
    times = pa.array(np.arange(rows), pa.timestamp("us"))
    makers: list[Callable[[], pa.Array]] = [
        lambda: pa.nulls(rows),
        lambda: pa.array([None, "b"] * rows, pa.string())[:rows],
        lambda: pa.array(["a"] * rows).dictionary_encode(),
        lambda: pa.array([[1, None]] * rows, pa.list_(pa.int8())),
        lambda: pa.array([{"a": 1}] * rows, pa.struct([("a", pa.int8())])),
        lambda: pa.RunEndEncodedArray.from_arrays([rows], [7]) if rows else pa.nulls(0),
        lambda: pa.array([b"\xff"] * rows, pa.binary()),
        lambda: pa.array([0.5] * rows),
        lambda: pa.array([2**64 - 1] * rows, pa.uint64()),
        lambda: pa.array([float("nan")] * rows),
        lambda: times,
        lambda: times.cast(pa.timestamp("us", "Nowhere/Nothing")),
        lambda: pa.array([None] * rows, pa.month_day_nano_interval()),
        lambda: pa.array(range(rows), pa.duration("s")),
        lambda: pa.array(["a"] * rows, pa.string_view()),
        lambda: pa.array([1] * rows, pa.decimal128(38, 3)),
    ]
    return rng.choice(makers)()


def _other_table(rng: random.Random, table: pa.Table) -> pa.Table:
    way = rng.randrange(9)
    metadata = dict(table.schema.metadata or {})
    if metadata and way < 4:
        key = rng.choice(list(metadata))
        try:
            about = json.loads(metadata[key])
            metadata[key] = as_json(rng, other_json(rng, about))
        except ValueError:
            metadata[key] = other_bytes(rng, metadata[key])
        if rng.random() < 0.03:
            del metadata[key]
        return table.replace_schema_metadata(metadata)
    if table.num_columns == 0 or way == 4:
        return table.append_column(rng.choice(["x", "reason", ""]), _strange(rng, table.num_rows))
    at = rng.randrange(table.num_columns)
    name, column = table.column_names[at], table.column(at)
    if way == 5:
        return table.set_column(at, name, _strange(rng, table.num_rows))
    if way == 6:
        return table.remove_column(at) if rng.random() < 0.5 else table.append_column(name, column)
    if way == 7:
        rows = [rng.randrange(max(table.num_rows, 1)) for _ in range(rng.choice([0, 1, 2, 9, 40]))]
        return table.take(pa.array(rows, pa.int64())) if table.num_rows else table
    values = column.to_pylist()
    if values:
        row = rng.randrange(len(values))
        values[row] = rng.choice([None, values[0], values[-1], *rng.sample(EDGES, 3), "\0", 0.5])
        try:
            return table.set_column(at, table.schema.field(at), pa.array(values, column.type))
        except (pa.ArrowException, OverflowError, TypeError, ValueError):
            pass
    return table.rename_columns([rng.choice([one, "x", "key", ""]) for one in table.column_names])


def other_arrow(rng: random.Random, content: bytes) -> bytes:
    """Arrow streams with something changed: as tables, or their bytes."""
    if not content or rng.random() < 0.4:
        return other_bytes(rng, content)
    parts = tables(content)
    at = rng.randrange(len(parts))
    way = rng.random()
    if way < 0.05:
        parts.append(parts[at])
    elif way < 0.1:
        del parts[at]
    else:
        parts[at] = _other_table(rng, parts[at])
    compression = rng.choice([None] * 8 + ["lz4", "zstd"])
    made = b"".join(stream(table, compression) for table in parts)
    return other_bytes(rng, made) if rng.random() < 0.1 else made


# ---- what all files have around what they hold ----

# Where the checksum begins to count, and where header and parts begin; the mark is in front.
_FRAMES = {b"SPECSNP1": (20, 20), b"SPECCKPT": (12, 24)}
SEALED = b"SPECINPT"  # behind the content


def marked(content: bytes) -> bytes:
    """A file of any kind, its checksum made right as far as it has got a place for one."""
    magic = content[:8]
    if magic in _FRAMES:
        checksum = zlib.crc32(content[_FRAMES[magic][0] :])
        return content[:8] + struct.pack("<I", checksum) + content[12:]
    return content[:-4] + struct.pack("<I", zlib.crc32(content[:-12]))


def other_frame(rng: random.Random, content: bytes) -> bytes:
    """A file of any kind with something around its content changed; never the same bytes."""
    made = bytearray(content)
    begin = _FRAMES.get(content[:8], (0, 0))[1]
    way = rng.randrange(8)
    if way == 0:
        del made[rng.randrange(len(made)) :]
    elif way == 1:
        made += rng.randbytes(rng.choice([1, 4, 8, 12, 24]))
    elif way == 2:
        at = 0 if begin else len(made) - 12
        made[at : at + 8] = rng.choice([*_FRAMES, SEALED, b"SPECSNP2", rng.randbytes(8)])
    elif way == 3 and begin == 24:
        made[12:16] = struct.pack("<I", rng.choice([0, 1, 3, 2**31, 2**32 - 1]))
    elif way == 4 and begin:
        length = rng.choice([*EDGES, len(made), len(made) - begin, len(made) - begin + 1]) % 2**64
        made[begin - 8 : begin] = struct.pack("<Q", length)
    elif way == 5 and begin:
        (length,) = struct.unpack_from("<Q", content, begin - 8)
        header = as_json(rng, other_json(rng, json.loads(content[begin : begin + length])))
        made[begin : begin + length] = header
        made[begin - 8 : begin] = struct.pack("<Q", len(header))
    else:
        made[rng.randrange(len(made))] ^= 1 << rng.randrange(8)
    if rng.random() < 0.7:
        made = bytearray(marked(bytes(made)))
    if made == content:
        made[-1] ^= 1
    return bytes(made)


# ---- snapshots ----

_SNAPSHOT = struct.Struct("<8sIQ")


def snapshot_parts(content: bytes) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The header of a snapshot, and its sections."""
    _, _, length = _SNAPSHOT.unpack_from(content)
    body = content[_SNAPSHOT.size :]
    header = json.loads(body[:length])
    strings = header["strings"]
    sizes = {
        "strings": strings if isinstance(strings, int) else 0,
        "arrivals": header.get("arrivals", 0),
        "bad_rows": header.get("bad_rows", 0),
    }
    sections, at = {}, len(body) - sum(sizes.values())
    sections["words"] = body[length:at]
    for name, size in sizes.items():
        sections[name], at = body[at : at + size], at + size
    return header, sections


def snapshot_of(header: bytes, sections: dict[str, bytes], length: int | None = None) -> bytes:
    """A snapshot of parts; its checksum is right."""
    body = b"".join((header, *sections.values()))
    length = len(header) if length is None else length
    return _SNAPSHOT.pack(b"SPECSNP1", zlib.crc32(body), length) + body


def other_snapshot(rng: random.Random, content: bytes) -> bytes:
    """A snapshot with something changed."""
    header, sections = snapshot_parts(content)
    if rng.random() < 0.05:
        body = other_bytes(rng, content[_SNAPSHOT.size :])
        return content[:8] + struct.pack("<I", zlib.crc32(body)) + content[12:20] + body
    ways = ["header", *(name for name in sections if sections[name])]
    for way in rng.sample(ways, rng.choice([1, 1, 2])):
        if way == "header":
            header = other_json(rng, header)
            continue
        change = other_bytes if way == "words" else other_arrow
        sections[way] = change(rng, sections[way])
        if isinstance(header, dict) and type(header.get(way)) is int and rng.random() < 0.9:
            header[way] = len(sections[way])
    length = rng.choice([*EDGES]) % 2**64 if rng.random() < 0.01 else None
    return snapshot_of(as_json(rng, header), sections, length)


# ---- files of a checkpoint ----

_CHECKPOINT_FILE = struct.Struct("<8sIIQ")


def checkpoint_file_parts(content: bytes) -> tuple[dict[str, Any], list[bytes]]:
    """The header of a checkpoint file, and its sections."""
    length = _CHECKPOINT_FILE.unpack_from(content)[3]
    body = content[_CHECKPOINT_FILE.size :]
    header, at = json.loads(body[:length]), length
    sections = []
    for size in header["sections"]:
        sections.append(body[at : at + size])
        at += size
    return header, sections


def checkpoint_file_of(header: bytes, sections: list[bytes], version: int = 2) -> bytes:
    """A checkpoint file of parts; its checksum is right."""
    rest = struct.pack("<IQ", version, len(header)) + b"".join((header, *sections))
    return b"SPECCKPT" + struct.pack("<I", zlib.crc32(rest)) + rest


def checksum_of(content: bytes) -> int:
    """The checksum that a checkpoint file has."""
    found: int = _CHECKPOINT_FILE.unpack_from(content)[1]
    return found


def rebuilt_on(content: bytes, checksum: int) -> bytes:
    """An increment, as one on a file with that checksum."""
    header, sections = checkpoint_file_parts(content)
    header["builds_on"][1] = checksum
    return checkpoint_file_of(json.dumps(header).encode(), sections)


def other_checkpoint_file(rng: random.Random, content: bytes) -> bytes:
    """A checkpoint file with something changed."""
    header, sections = checkpoint_file_parts(content)
    is_full = header["builds_on"] is None
    if rng.random() < 0.4:
        header = other_json(rng, header)
    else:
        at = rng.randrange(len(sections))
        if is_full and at == 0:
            sections[at] = other_snapshot(rng, sections[at])
        elif not is_full and at == 0:
            sections[at] = as_json(rng, other_json(rng, json.loads(sections[at])))
        else:
            change = other_bytes if not is_full and at in (1, 2) else other_arrow
            sections[at] = change(rng, sections[at])
        if rng.random() < 0.95:
            header["sections"] = list(map(len, sections))
    return checkpoint_file_of(as_json(rng, header), sections, rng.choice([1, 2, 2, 2, 2]))


def other_input(rng: random.Random, content: bytes) -> bytes:
    """The kept rows of a batch with something changed; never the operator, which is a program."""
    body = content[: -struct.calcsize("<8sI")]
    [table] = tables(body)
    metadata = dict(table.schema.metadata)
    pickled = b"specstream.operator"
    assert not metadata[pickled], "a changed pickle could do anything"
    if rng.random() < 0.5:
        key = rng.choice([b"specstream", b"specstream", b"specstream.before"])
        if key == b"specstream":
            metadata[key] = as_json(rng, other_json(rng, json.loads(metadata[key])))
        else:
            metadata[key] = other_snapshot(rng, metadata[key]) if metadata[key] else b"x"
        body = stream(table.replace_schema_metadata(metadata), "lz4")
    else:
        body = other_arrow(rng, body)
    return input_of(body)


def input_of(body: bytes) -> bytes:
    """The kept rows of a batch of their stream; the checksum is right."""
    return body + struct.pack("<8sI", b"SPECINPT", zlib.crc32(body))
