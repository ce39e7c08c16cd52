"""One image of a checkpoint: what an engine was after a micro-batch, and what the batch emitted.

A *full* image holds an engine's snapshot. An *increment* holds what has changed since the image
before it: blocks of the state, and strings that are new. Both hold the rows that their batch has
emitted, and its bad rows. A large state of which a batch touches little costs little to keep.

The format is a magic word, a CRC-32 of all that follows, the version, the length of a JSON header,
the header, and sections whose lengths the header gives. An increment names the image that it builds
on by batch id and checksum: after a restart from an earlier image, a later one of the abandoned
history has the right number and must not be built on.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from specstream.bad_rows import as_stream
from specstream.errors import SnapshotError, SpecstreamError

__all__ = [
    "BLOCK_WORDS",
    "About",
    "DamagedImage",
    "Image",
    "changed_blocks",
    "copy_blocks",
    "increment",
    "pack",
    "packed_rows",
]

MAGIC = b"SPECCKPT"
VERSION = 1
_PREFIX = struct.Struct("<8sIIQ")
_CHECKED_FROM = 12  # after the magic word and the checksum

# A page of memory. Smaller blocks would make increments of scattered changes smaller, and their
# lists longer.
BLOCK_WORDS = 512
# So many words are compared at a time: the comparison's own array stays in cache.
_STRETCH = 1 << 17

Words = npt.NDArray[np.int64]
Buffer = bytes | memoryview


class DamagedImage(SpecstreamError):
    """An image is torn or its bytes have changed; the message says what was found."""


@dataclass(frozen=True)
class About:
    """What an image says about itself.

    Attributes:
        batch_id: the micro-batch after which the engine was so.
        query: id of Spark's streaming query; None for a batch given by hand.
        operator: its name.
        seed: the engine's.
        state: name of the state, and
        fields: its layout, as :meth:`specstream.state.Layout.describe` gives it.
        next_sequence: of the engine.
        builds_on: batch id and checksum of the image before; None for a full image.
    """

    batch_id: int
    query: str | None
    operator: str
    seed: int
    state: str
    fields: list[dict[str, Any]]
    next_sequence: int
    builds_on: tuple[int, int] | None = None


@dataclass(frozen=True)
class Image:
    """An image that was read and found whole.

    Attributes:
        about: its header.
        sections: of a full image the snapshot and the output; of an increment the new strings, the
            numbers of the changed blocks, the blocks, and the output.
        checksum: its CRC-32.
        length: in bytes.
    """

    about: About
    sections: tuple[memoryview, ...]
    checksum: int
    length: int

    @classmethod
    def from_bytes(cls, content: bytes) -> Image:
        """Unpacks and checks one.

        Raises:
            DamagedImage: it is cut short, or a byte of it has changed.
            SnapshotError: it is whole, and of a version that this one cannot read.
        """
        if len(content) < _PREFIX.size or content[:8] != MAGIC:
            raise DamagedImage(f"its {len(content)} bytes do not begin as an image does")
        _, checksum, version, header_length = _PREFIX.unpack_from(content)
        view = memoryview(content)
        if zlib.crc32(view[_CHECKED_FROM:]) != checksum:
            raise DamagedImage(f"the checksum of its {len(content)} bytes differs")
        if version != VERSION:
            raise SnapshotError(
                f"it has version {version} of the format, and this specstream reads version "
                f"{VERSION}: use the version of specstream that has written it"
            )
        at = _PREFIX.size + header_length
        header = json.loads(bytes(view[_PREFIX.size : at]))
        sections = []
        for length in header.pop("sections"):
            sections.append(view[at : at + length])
            at += length
        if header["builds_on"] is not None:
            header["builds_on"] = tuple(header["builds_on"])
        return cls(About(**header), tuple(sections), checksum, len(content))

    @property
    def output(self) -> pa.Table:
        """What the batch has emitted."""
        # A copy, or the rows would keep the whole image in memory.
        return pa.ipc.open_stream(pa.py_buffer(bytes(self.sections[-1]))).read_all()

    @property
    def bad_rows(self) -> tuple[pa.Table | None, bytes]:
        """The batch's bad rows that go to a sink, and those that the engine keeps, packed."""
        content = bytes(self.sections[-1])
        reader = pa.BufferReader(content)
        pa.ipc.open_stream(reader).read_all()
        if reader.tell() == len(content):
            return None, b""  # of an earlier version
        delivered = pa.ipc.open_stream(reader).read_all()
        return delivered if delivered.num_columns else None, content[reader.tell() :]

    def apply(self, words: Words, strings: list[str]) -> None:
        """Brings state and strings of the image before to those of this increment."""
        new, numbers, blocks, _ = self.sections
        strings.extend(json.loads(bytes(new)))
        at = np.frombuffer(blocks, "<i8")
        done = 0
        for number in np.frombuffer(numbers, "<i8"):
            block = words[number * BLOCK_WORDS : (number + 1) * BLOCK_WORDS]
            block[:] = at[done : done + len(block)]
            done += len(block)


def pack(about: About, sections: Sequence[Sequence[Buffer]]) -> tuple[list[Buffer], int]:
    """The parts of an image's file, and its checksum.

    Args:
        about: its header.
        sections: each as parts to be written one after the other; nothing is copied.

    >>> about = About(0, None, "count", 0, "Seen", [], 3)
    >>> parts, checksum = pack(about, [[b"snapshot"], [b"out", b"put"]])
    >>> image = Image.from_bytes(b"".join(parts))
    >>> image.about == about, image.checksum == checksum, bytes(image.sections[1])
    (True, True, b'output')
    """
    lengths = [sum(map(len, section)) for section in sections]
    header = json.dumps({**asdict(about), "sections": lengths}).encode()
    parts: list[Buffer] = [header, *(part for section in sections for part in section)]
    checksum = zlib.crc32(_PREFIX.pack(MAGIC, 0, VERSION, len(header))[_CHECKED_FROM:])
    for part in parts:
        checksum = zlib.crc32(part, checksum)
    return [_PREFIX.pack(MAGIC, checksum, VERSION, len(header)), *parts], checksum


def increment(
    words: Words, changed: Words, strings: list[str], rows: list[Buffer]
) -> list[list[Buffer]]:
    """The sections of an increment: views of the state, no copy.

    ``rows`` is the last one, as :func:`packed_rows` makes it.
    """
    blocks: list[Buffer] = [
        _bytes_of(words[number * BLOCK_WORDS : (number + 1) * BLOCK_WORDS])
        for number in changed.tolist()
    ]
    new = json.dumps(strings).encode()
    return [[new], [_bytes_of(changed)], blocks, rows]


def packed_rows(output: pa.Table, bad_rows: pa.Table | None, kept: bytes) -> list[Buffer]:
    """What a batch has emitted, its bad rows for a sink, and those that the engine keeps.

    All are Arrow streams, one behind the other.
    """
    delivered = pa.table({}) if bad_rows is None else bad_rows
    return [as_stream(output), as_stream(delivered), kept]


def _bytes_of(words: Words) -> memoryview:
    # An empty array cannot be cast.
    return words.data.cast("B") if len(words) else memoryview(b"")


def changed_blocks(words: Words, before: Words) -> Words:
    """Numbers of the blocks in which two states of one length differ, ascending.

    >>> before = np.zeros(3 * BLOCK_WORDS + 7, np.int64)
    >>> after = before.copy()
    >>> after[[5, 6, -1]] = 1
    >>> changed_blocks(after, before)
    array([0, 3])
    """
    found = [np.empty(0, np.int64)]
    for begin in range(0, len(words), _STRETCH):
        differs = words[begin : begin + _STRETCH] != before[begin : begin + _STRETCH]
        starts = np.arange(0, len(differs), BLOCK_WORDS)
        of_stretch = np.flatnonzero(np.logical_or.reduceat(differs, starts))
        found.append(of_stretch + begin // BLOCK_WORDS)
    return np.concatenate(found)


def copy_blocks(source: Words, target: Words, numbers: Iterable[int]) -> None:
    """Copies some blocks. It takes no memory, so that it cannot fail halfway."""
    for number in numbers:
        begin = number * BLOCK_WORDS
        target[begin : begin + BLOCK_WORDS] = source[begin : begin + BLOCK_WORDS]
