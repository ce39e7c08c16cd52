"""The container of files: what was written is read, and what has changed is found and named."""

from __future__ import annotations

import json
import struct
import zlib

import pytest
from support.checkpoint import crafted

import specstream as ss
from specstream.checkpoint.format.file_format import CHECKPOINT_FILE
from specstream.checkpoint.run.inputs import INPUT
from specstream.engine.snapshot import SNAPSHOT
from specstream.files.container import Container, DamagedFile
from specstream.files.untrusted import Buffer, Malformed

HEADER = {"sections": [3, 4], "name": "ä"}
PARTS: list[Buffer] = [b"abc", memoryview(b"defg")]


def written(container: Container) -> bytes:
    if container is INPUT:
        return b"".join(container.seal(b"abcdefg"))
    return b"".join(container.pack(HEADER, PARTS)[0])


def read(container: Container, content: bytes) -> bytes:
    if container is INPUT:
        return bytes(container.unseal(content))
    return bytes(container.unpack(content).body)


KINDS = pytest.mark.parametrize(
    "container", [SNAPSHOT, CHECKPOINT_FILE, INPUT], ids=lambda one: one.kind
)


def test_the_bytes_are_those_of_version_0_1() -> None:
    header = json.dumps(HEADER).encode()
    body, length = header + b"abcdefg", struct.pack("<Q", len(header))
    mark = struct.pack("<I", zlib.crc32(body))
    assert written(SNAPSHOT) == b"SPECSNP1" + mark + length + body
    rest = struct.pack("<I", 2) + length + body
    assert written(CHECKPOINT_FILE) == b"SPECCKPT" + struct.pack("<I", zlib.crc32(rest)) + rest
    assert written(INPUT) == b"abcdefg" + b"SPECINPT" + struct.pack("<I", zlib.crc32(b"abcdefg"))


@KINDS
def test_any_changed_bit_and_any_torn_end_is_found(container: Container) -> None:
    content = written(container)
    assert read(container, content) == b"abcdefg"
    for at in range(len(content)):
        with pytest.raises(DamagedFile, match=rf"its {at} bytes"):
            read(container, content[:at])
        for bit in range(8):
            changed = content[:at] + bytes([content[at] ^ 1 << bit]) + content[at + 1 :]
            # A snapshot's checksum does not count the length of its header.
            is_counted = container is not SNAPSHOT or not 12 <= at < 20
            with pytest.raises(DamagedFile if is_counted else Malformed):
                read(container, changed)


@KINDS
def test_files_of_another_kind_are_none_of_this(container: Container) -> None:
    for other in (SNAPSHOT, CHECKPOINT_FILE, INPUT):
        if other is not container:
            with pytest.raises(DamagedFile, match=f"do not (begin|end) as a {container.kind} does"):
                read(container, written(other))


def test_a_version_that_is_not_known_is_told_after_the_checksum() -> None:
    later = crafted.marked(written(Container("checkpoint file", CHECKPOINT_FILE.magic, (2, 3))))
    with pytest.raises(ss.SnapshotError, match=r"has version 3 .*reads up to version 2"):
        CHECKPOINT_FILE.unpack(later)
    with pytest.raises(DamagedFile, match="checksum"):
        CHECKPOINT_FILE.unpack(later[:-1] + b"x")
    with pytest.raises(ss.SnapshotError, match="has version 5"):
        INPUT.check_version(5)


@pytest.mark.parametrize(
    ("lengths", "message"),
    [
        ({"a": 3, "b": 3}, "1 bytes follow its last section"),
        ({"a": 3, "b": 5}, "length of section 'b' is 5; expected 0 to 4"),
        ({"a": -1, "b": 8}, "length of section 'a' is -1"),
        ({0: 2**64}, "length of section 0 is"),
        ({}, "7 bytes follow"),
    ],
)
def test_lengths_are_those_of_all_that_is_there(
    lengths: dict[str | int, int], message: str
) -> None:
    content = SNAPSHOT.unpack(written(SNAPSHOT))
    with pytest.raises(Malformed, match=message):
        content.parts(lengths)
    assert bytes(content.parts({"a": 3, "none": 0, "b": 4})["b"]) == b"defg"
