"""A full checkpoint file and the increments on it: together they are the engine after a batch.

A restart goes on from the newest such chain (``restart.py``), and a replay makes the one that ends
where its batch began (``recorded_batch.py``).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from specstream.checkpoint.format.container_changes import applied
from specstream.checkpoint.format.file_format import CheckpointFile
from specstream.columns.strings import string_codes
from specstream.declarations.state_layout import Layout
from specstream.engine.snapshot import Snapshot, refused
from specstream.files.untrusted import Malformed

__all__ = ["Chain"]


class Chain:
    """The engine after the batch of the last file that was added.

    Args:
        full: the file that it begins with.
        what: names that file in errors.

    Raises:
        SnapshotError: it is no full file, although its checksum is right.

    Attributes:
        layout: of the state, as it was declared then.
        last: the file that was added last.
        lengths: of all files, in bytes, the full one first.
        pending: events that wait, as the engine packs them.
    """

    def __init__(self, full: CheckpointFile, what: str) -> None:
        with refused(what):
            if full.about.builds_on is not None:
                raise Malformed("it is an increment, under the name of a full file")
            self.layout = Layout.described(full.about.state, full.about.fields)
        content = Snapshot.from_bytes(full.sections[0], self.layout, what)
        self.last = full
        self.lengths = [full.length]
        self.pending = content.pending
        self._state = replace(content.state, fixed=content.state.fixed.copy())
        # As Arrow has them: ten million strings as Python objects would take a gigabyte.
        self._strings = content.strings.chunks
        # Codes of dropped ones, each with the number of parts that it holds for.
        self._dropped: list[tuple[int, npt.NDArray[np.int64]]] = []
        self._rejected, self._failed = content.rejected_rows, content.failed_events

    @property
    def batch_id(self) -> int:
        """The batch after which the engine was so."""
        return self.last.about.batch_id

    def is_built_on_by(self, increment: CheckpointFile) -> bool:
        """Whether it is the next one of this history, and not only of that number."""
        return increment.about.builds_on == (self.batch_id, self.last.checksum)

    def add(self, increment: CheckpointFile, what: str) -> None:
        """Brings it to the next batch.

        Args:
            increment: a file that builds on this chain.
            what: names it in errors.

        Raises:
            SnapshotError: it does not fit, although its checksum is right.
        """
        with refused(what):
            if increment.about.fields != self.last.about.fields:
                raise Malformed("its fields are not those of the file that it builds on")
            new = increment.apply(self._state.fixed)
            if self.layout.containers:
                changed = increment.named("containers")
                if changed is None:
                    raise Malformed("it has no changes of the containers")
                rows = applied(self.layout, self._state.rows, changed)
                self._state = replace(self._state, rows=rows)
            dropped = increment.named("dropped_strings")
            if dropped is not None:
                if len(dropped) % 8:
                    raise Malformed("its codes of dropped strings are no whole words")
                self._dropped.append((len(self._strings), np.frombuffer(dropped, "<i8")))
            self._strings.append(pa.array(new, pa.large_string()))
        pending = increment.named("arrivals")
        self.pending = self.pending if pending is None else bytes(pending)
        self._rejected = bytes(increment.named("kept") or b"")
        self._failed = bytes(increment.named("kept_failed") or b"")
        self.last = increment
        self.lengths.append(increment.length)

    def _texts(self) -> pa.ChunkedArray:
        """The strings that are there."""
        parts = []
        for number, texts in enumerate(self._strings):
            dropped = [codes for upto, codes in self._dropped if number < upto]
            if dropped and len(texts):
                texts = texts.filter(
                    pa.array(~np.isin(string_codes(texts), np.concatenate(dropped)))
                )
            parts.append(texts)
        return pa.chunked_array(parts, pa.large_string())

    def snapshot(self) -> bytes:
        """The engine as a snapshot."""
        return Snapshot(
            self._state,
            self.last.about.next_sequence,
            self._texts(),
            self.pending,
            self._rejected,
            self._failed,
        ).to_bytes()
