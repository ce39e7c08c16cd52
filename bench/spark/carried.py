"""The compiled function where its state comes and goes as bytes: in a worker of Spark or Bytewax.

A worker process keeps the engine, because compiling takes longer than a batch; the state is the one
that it is given, as it must be where a task may run in another process the next time.
"""

from __future__ import annotations

import struct
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

import specstream as ss
from bench.spark.loads import operator_of
from specstream.declarations.state_content import StateContent
from specstream.engine.engine import Savepoint

__all__ = ["Carried", "carried"]

_SEQUENCE = struct.Struct("<q")


class Carried:
    """The log-free clone of an operator, without threads."""

    def __init__(self, name: str) -> None:
        self.engine = ss.Engine(operator_of(name), threads=1, execution="log_free")
        self.columns = self.engine.operator.event.names
        self._empty = self.engine.savepoint()

    def begin(self, state: bytes | None) -> None:
        """Puts the state into place; None: the first one."""
        if state is None:
            self.engine.rollback(self._empty)
            return
        words = np.frombuffer(state, np.int64, offset=_SEQUENCE.size)
        (sequence,) = _SEQUENCE.unpack_from(state)
        content = StateContent(self.engine.operator.layout, words)
        self.engine.rollback(Savepoint(content, sequence, self._empty.strings))

    def run(self, rows: Any) -> pa.Table:
        """Runs some rows."""
        return self.engine.process(rows)

    def end(self) -> bytes:
        """The state after them."""
        sequence = _SEQUENCE.pack(self.engine.durable.next_sequence)
        return b"".join((sequence, self.engine.durable.words.data))


@cache
def carried(name: str) -> Carried:
    """The one of this process."""
    return Carried(name)
