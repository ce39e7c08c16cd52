"""A checkpoint file: what an engine was after a micro-batch, and what the batch emitted.

A *full* file holds an engine's snapshot. An *increment* holds what has changed since the file
before it: blocks of the state's fields, entries of its containers (``container_changes.py``), and
strings that are new or dropped; and all events that wait for the
watermark, with the sources' frontiers. Both hold the rows that their batch has emitted, and those
that were late or bad. A large state of which a batch touches little costs little to keep.

In its container (``files/container.py``) the header gives the lengths of the sections, which are
its parts. An increment names the file that it builds on by batch id and checksum: after a restart
from an earlier file, a later one of the abandoned history has the right number and must not be
built on.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from specstream.declarations.state_layout import Description
from specstream.files.container import Container
from specstream.files.untrusted import Buffer, Malformed, json_of, made_of, natural, read_table

__all__ = [
    "BLOCK_WORDS",
    "About",
    "CheckpointFile",
    "changed_blocks",
    "copy_blocks",
    "increment",
    "pack",
]

# Version 1 has no named sections.
CHECKPOINT_FILE = Container("checkpoint file", b"SPECCKPT", (1, 2))

# A page of memory. Smaller blocks would make increments of scattered changes smaller, and their
# lists longer.
BLOCK_WORDS = 512
# So many words are compared at a time: the comparison's own array stays in cache.
_STRETCH = 1 << 17

Words = npt.NDArray[np.int64]


@dataclass(frozen=True)
class About:
    """What a checkpoint file says about itself.

    Attributes:
        batch_id: the micro-batch after which the engine was so.
        query: id of Spark's streaming query; None for a batch given by hand.
        operator: its name.
        seed: the engine's.
        state: name of the state, and
        fields: its layout, as given by
            :meth:`specstream.declarations.state_layout.Layout.describe`.
        next_sequence: of the engine.
        builds_on: batch id and checksum of the file before; None for a full file.
        named: names of the sections that follow the others.
        finished: the stream has ended with this batch.
    """

    batch_id: int
    query: str | None
    operator: str
    seed: int
    state: str
    fields: list[Description]
    next_sequence: int
    builds_on: tuple[int, int] | None = None
    named: tuple[str, ...] = ()
    finished: bool = False


@dataclass(frozen=True)
class CheckpointFile:
    """One that was read and found whole.

    Attributes:
        about: its header.
        sections: of a full file the snapshot and the output; of an increment the new strings, the
            numbers of the changed blocks, the blocks, and the output; then the named ones.
        checksum: its CRC-32.
        length: in bytes.
    """

    about: About
    sections: tuple[memoryview, ...]
    checksum: int
    length: int

    @classmethod
    def from_bytes(cls, content: bytes) -> CheckpointFile:
        """Unpacks and checks one.

        Raises:
            DamagedFile: it is cut short, or a byte of it has changed.
            SnapshotError: it is whole, and of a version that this one cannot read, or none
                although its checksum is right.
        """
        unpacked = CHECKPOINT_FILE.unpack(content)
        header = unpacked.header
        lengths = made_of(header.pop("sections", None), list[int], "the header: sections")
        about = made_of(header, About, "the header")
        if len(set(about.named)) < len(about.named):
            raise Malformed("the header: named has one name twice")
        expected = (2 if about.builds_on is None else 4) + len(about.named)
        if len(lengths) != expected:
            raise Malformed(f"the header: {len(lengths)} sections; expected {expected}")
        natural(about.batch_id, "the header: batch_id")
        natural(about.next_sequence, "the header: next_sequence")
        sections = unpacked.parts(dict(enumerate(lengths)))
        return cls(about, tuple(sections.values()), unpacked.checksum, len(content))

    @property
    def output(self) -> pa.Table:
        """What the batch has emitted.

        Raises:
            Malformed: it is no table.
        """
        return read_table(self.sections[-1 - len(self.about.named)], "output")

    def named(self, name: str) -> memoryview | None:
        """The section of that name; None: it has not got one."""
        sections = self.sections[len(self.sections) - len(self.about.named) :]
        return dict(zip(self.about.named, sections, strict=True)).get(name)

    def apply(self, words: Words) -> list[str]:
        """Brings the state of the file before to that of this increment, but for containers; gives
        the new strings.

        Raises:
            Malformed: it is none to such a state, which is as it was then.
        """
        new, numbers, blocks = self.sections[:3]
        strings = made_of(json_of(new, "new strings"), list[str], "new strings")
        if len(numbers) % 8 or len(blocks) % 8:
            raise Malformed("its blocks are no whole words")
        changed, at = np.frombuffer(numbers, "<i8"), np.frombuffer(blocks, "<i8")
        count = -(-len(words) // BLOCK_WORDS)
        if (changed[1:] <= changed[:-1]).any() or ((changed < 0) | (changed >= count)).any():
            raise Malformed(f"its changed blocks are not some of {count}, in their order")
        is_last_short = len(changed) > 0 and changed[-1] == count - 1
        expected = BLOCK_WORDS * len(changed) - is_last_short * (BLOCK_WORDS * count - len(words))
        if len(at) != expected:
            raise Malformed(f"its blocks have {len(at)} words; expected {expected}")
        done = 0
        for number in changed.tolist():
            block = words[number * BLOCK_WORDS : (number + 1) * BLOCK_WORDS]
            block[:] = at[done : done + len(block)]
            done += len(block)
        return strings


def pack(about: About, sections: Sequence[Sequence[Buffer]]) -> tuple[list[Buffer], int]:
    """The bytes of a checkpoint file, in parts, and its checksum.

    Args:
        about: its header.
        sections: each as parts to be written one after the other; nothing is copied.

    >>> about = About(0, None, "count", 0, "Seen", [], 3)
    >>> parts, checksum = pack(about, [[b"snapshot"], [b"out", b"put"]])
    >>> file = CheckpointFile.from_bytes(b"".join(parts))
    >>> file.about == about, file.checksum == checksum, bytes(file.sections[1])
    (True, True, b'output')
    """
    lengths = [sum(map(len, section)) for section in sections]
    return CHECKPOINT_FILE.pack(
        {**asdict(about), "sections": lengths},
        [part for section in sections for part in section],
    )


def increment(
    words: Words, changed: Words, strings: list[str], output: Buffer
) -> list[list[Buffer]]:
    """The sections of an increment: views of the state, no copy.

    Args:
        words: of the state's fields, without containers, and
        changed: the numbers of the blocks that have changed.
        output: what the batch has emitted, as an Arrow stream.
    """
    blocks: list[Buffer] = [
        _bytes_of(words[number * BLOCK_WORDS : (number + 1) * BLOCK_WORDS])
        for number in changed.tolist()
    ]
    new = json.dumps(strings).encode()
    return [[new], [_bytes_of(changed)], blocks, [output]]


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
