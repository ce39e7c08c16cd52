"""Snapshots: committed state, string table and next sequence number, as bytes.

The format is a magic word, a CRC-32 of all that follows, the length of a JSON header, the header
(layout, sequence number, strings), and the state's words in little-endian order.
"""

from __future__ import annotations

import json
import struct
import zlib
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from specstream.errors import SnapshotError
from specstream.state import Layout

__all__ = ["Snapshot"]

MAGIC = b"SPECSNP1"
_PREFIX = struct.Struct("<8sIQ")


@dataclass(frozen=True)
class Snapshot:
    """The content of a snapshot."""

    words: npt.NDArray[np.int64]
    next_sequence: int
    strings: list[str]

    def to_bytes(self, layout: Layout) -> bytes:
        """Packs it."""
        header = json.dumps(
            {
                "state": layout.name,
                "fields": layout.describe(),
                "next_sequence": self.next_sequence,
                "strings": self.strings,
            }
        ).encode()
        body = header + self.words.astype("<i8", copy=False).tobytes()
        return _PREFIX.pack(MAGIC, zlib.crc32(body), len(header)) + body

    @classmethod
    def from_bytes(cls, image: bytes, layout: Layout, what: str) -> Snapshot:
        """Unpacks and checks it.

        Raises:
            SnapshotError: it is damaged, or of another layout; names the field.
        """
        if len(image) < _PREFIX.size or image[:8] != MAGIC:
            raise SnapshotError(
                f"{what}: these bytes are no snapshot: give what snapshot() returned"
            )
        _, checksum, length = _PREFIX.unpack_from(image)
        body = image[_PREFIX.size :]
        if zlib.crc32(body) != checksum:
            raise SnapshotError(
                f"{what}: the snapshot is damaged (its checksum differs): use an earlier one"
            )
        header = json.loads(body[:length])
        _check_layout(header["fields"], layout, what)
        words = np.frombuffer(body, "<i8", offset=length).astype(np.int64)
        return cls(words, header["next_sequence"], header["strings"])


def _check_layout(saved: list[dict[str, object]], layout: Layout, what: str) -> None:
    declared = layout.describe()
    if saved == declared:
        return
    saved_names = [field["name"] for field in saved]
    for field in declared:
        if field["name"] not in saved_names:
            raise SnapshotError(
                f"{what}: the snapshot has no field {field['name']!r}, which the operator "
                "declares: restore it into the operator that it was taken of"
            )
    for old in saved:
        new = next((field for field in declared if field["name"] == old["name"]), None)
        if new is None:
            raise SnapshotError(
                f"{what}: the snapshot has a field {old['name']!r}, which the operator does not "
                "declare: restore it into the operator that it was taken of"
            )
        if new != old:
            raise SnapshotError(
                f"{what}: field {old['name']!r} is {old['kind']} of shape {old['shape']} in the "
                f"snapshot and {new['kind']} of shape {new['shape']} in the operator: restore it "
                "into the operator that it was taken of"
            )
    raise SnapshotError(
        f"{what}: the snapshot has its fields in the order {', '.join(map(str, saved_names))}: "
        "declare them in that order"
    )
