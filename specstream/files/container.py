"""The container of the files that specstream writes: magic word, version, checksum, header, parts.

Snapshots, checkpoint files and the kept rows of batches say in modules of their own what they hold.
What they have in common is here: how it is known that bytes are such a file, that they are whole,
and that this version can read them; and how a file is cut into its parts.

What stands where was fixed before there was one container, and files outlive programs; so a kind of
file says which of these three it is, and the bytes are those that earlier versions read and wrote:

====================  ======================================================  =====================
kind                  bytes                                                   the checksum is of
====================  ======================================================  =====================
version in the magic  magic 8, CRC-32 4, length of header 8, header, parts    header and parts
version beside it     magic 8, CRC-32 4, version 4, length of header 8,       all that follows it
                      header, parts
sealed                content, magic 8, CRC-32 4; its header has the version  the content
====================  ======================================================  =====================

Numbers are little-endian, and the header is a JSON object. A checksum finds what has changed by
accident, a :class:`DamagedFile`. What a whole file says is not to be trusted for that, and goes
through ``untrusted.py``.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from specstream.errors import SnapshotError, SpecstreamError
from specstream.files.untrusted import Buffer, Malformed, natural, object_of

__all__ = ["Container", "Content", "DamagedFile"]

Name = TypeVar("Name", bound=Hashable)

_MARK = struct.Struct("<8sI")  # magic word and checksum
_VERSION = struct.Struct("<I")
_LENGTH = struct.Struct("<Q")


class DamagedFile(SpecstreamError):
    """A file is torn, its bytes have changed, or it is of another kind; says what was found."""


@dataclass(frozen=True)
class Content:
    """What a container holds, which was found whole.

    Attributes:
        header: a JSON object, of which nothing else is known.
        body: the parts, one behind the other.
        checksum: the file's CRC-32.
    """

    header: dict[str, Any]
    body: memoryview
    checksum: int

    def parts(self, lengths: Mapping[Name, int]) -> dict[Name, memoryview]:
        """The parts by their names.

        Args:
            lengths: of each part, in their order; they need not be trusted.

        Raises:
            Malformed: they are not the lengths of all that is there.
        """
        found, at = {}, 0
        for name, length in lengths.items():
            natural(length, f"the length of section {name!r}", len(self.body) - at)
            found[name] = self.body[at : at + length]
            at += length
        if at != len(self.body):
            raise Malformed(f"{len(self.body) - at} bytes follow its last section")
        return found


@dataclass(frozen=True)
class Container:
    """A kind of file.

    Attributes:
        kind: what messages call it.
        magic: the word of eight bytes that it is known by.
        versions: those that are read, the one that is written last; none where it is part of the
            magic word.

    >>> letter = Container("letter", b"A LETTER", (1, 2))
    >>> parts, checksum = letter.pack({"to": "you"}, [b"Dear", b" you"])
    >>> content = letter.unpack(b"".join(parts))
    >>> content.header, bytes(content.parts({"text": 8})["text"])
    ({'to': 'you'}, b'Dear you')
    >>> letter.unpack(b"".join(parts[:-1]))
    Traceback (most recent call last):
    specstream.files.container.DamagedFile: the checksum of its 41 bytes differs
    """

    kind: str
    magic: bytes
    versions: tuple[int, ...] = ()

    @property
    def version(self) -> int:
        """The one that is written."""
        return self.versions[-1]

    def is_in(self, content: Buffer) -> bool:
        """Whether bytes begin as such a file does."""
        return content[: len(self.magic)] == self.magic

    def pack(self, header: Mapping[str, Any], parts: Iterable[Buffer]) -> tuple[list[Buffer], int]:
        """The bytes of a file, to be written one after the other, and its checksum.

        Args:
            header: what JSON can say; the lengths of the parts belong into it.
            parts: they are not copied.
        """
        said = json.dumps(header).encode()
        version = _VERSION.pack(self.version) if self.versions else b""
        length = _LENGTH.pack(len(said))
        rest = [said, *parts]
        # Where the version is beside the magic word, it and the length are under the checksum too.
        checksum = _checksum([version, length, *rest] if self.versions else rest)
        return [_MARK.pack(self.magic, checksum) + version + length, *rest], checksum

    def unpack(self, content: Buffer) -> Content:
        """What :meth:`pack` gave.

        Raises:
            DamagedFile: it is of another kind, cut short, or a byte of it has changed.
            SnapshotError: it is whole, and of a version that this one cannot read.
            Malformed: it is whole, and its header is none.
        """
        if not self.is_in(content):
            raise DamagedFile(f"its {len(content)} bytes do not begin as a {self.kind} does")
        at = _MARK.size + (_VERSION.size if self.versions else 0)
        begin = at + _LENGTH.size
        if len(content) < begin:
            raise DamagedFile(f"its {len(content)} bytes are fewer than any {self.kind} has")
        view = memoryview(content)
        checksum = _checked(view, view[_MARK.size if self.versions else begin :], len(view))
        if self.versions:
            self.check_version(_VERSION.unpack_from(view, _MARK.size)[0])
        body = view[begin:]
        length = natural(_LENGTH.unpack_from(view, at)[0], "the header's length", len(body))
        return Content(object_of(body[:length], "the header"), body[length:], checksum)

    def seal(self, content: Buffer) -> list[Buffer]:
        """Content that is readable as it is, and the mark behind it."""
        return [content, _MARK.pack(self.magic, _checksum([content]))]

    def unseal(self, content: Buffer) -> memoryview:
        """What was given to :meth:`seal`.

        Raises:
            DamagedFile: it is of another kind, cut short, or a byte of it has changed.
        """
        view = memoryview(content)
        mark = view[-_MARK.size :]
        if len(mark) < _MARK.size or not self.is_in(mark):
            raise DamagedFile(f"its {len(content)} bytes do not end as a {self.kind} does")
        _checked(mark, view[: -_MARK.size], len(view))
        return view[: -_MARK.size]

    def check_version(self, version: int) -> None:
        """Whether this version can be read.

        Raises:
            SnapshotError: it cannot; says which can.
        """
        if version not in self.versions:
            raise SnapshotError(
                f"it has version {version} of the format, and this specstream reads up to version "
                f"{self.version}: use the version of specstream that has written it"
            )


def _checksum(parts: Iterable[Buffer]) -> int:
    checksum = 0
    for part in parts:
        checksum = zlib.crc32(part, checksum)
    return checksum


def _checked(mark: memoryview, content: memoryview, size: int) -> int:
    """The checksum that a mark has, where that is the content's."""
    checksum: int = _MARK.unpack_from(mark)[1]
    if zlib.crc32(content) != checksum:
        raise DamagedFile(f"the checksum of its {size} bytes differs")
    return checksum
