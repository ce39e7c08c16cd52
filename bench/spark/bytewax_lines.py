"""Bytewax over lines of TCP: what has come together is an item, counted by the plain function."""

# Bytewax's classes carry no types everywhere.
# mypy: disable-error-code="misc, no-untyped-call"

from __future__ import annotations

import json
import socket
import threading
from typing import Any

import pyarrow as pa

__all__ = ["run_lines"]


def run_lines(port: int, sink: Any) -> None:
    """Takes lines in until the sink has all."""
    import bytewax.operators as op
    from bytewax.dataflow import Dataflow
    from bytewax.inputs import DynamicSource, StatelessSourcePartition
    from bytewax.testing import TestingSink, cluster_main

    done: threading.Event = sink.done

    class Lines(StatelessSourcePartition[list[bytes]]):
        def __init__(self) -> None:
            self.connection = socket.create_connection(("127.0.0.1", port))
            self.connection.settimeout(0.05)
            self.rest = b""

        def next_batch(self) -> list[list[bytes]]:
            if done.is_set():
                raise StopIteration
            try:
                came = self.connection.recv(1 << 16)
            except TimeoutError:
                return []
            *lines, self.rest = (self.rest + came).split(b"\n")
            return [lines] if lines else []

        def close(self) -> None:
            self.connection.close()

    class Source(DynamicSource[list[bytes]]):
        def build(self, step_id: str, worker_index: int, worker_count: int) -> Lines:
            return Lines()

    def counted(state: dict[int, int] | None, lines: list[bytes]) -> tuple[dict[int, int], Any]:
        counts = state or {}
        sent, found = [], []
        for event in map(json.loads, lines):
            at = event["x"] % 100
            counts[at] = counts.get(at, 0) + 1
            sent.append(event["sent"])
            found.append(counts[at])
        return counts, pa.table({"sent": sent, "count": found})

    def write(item: tuple[str, pa.Table]) -> int:
        sink(item[1], 0)
        return int(item[1].num_rows)

    flow = Dataflow("count")
    lines = op.input("lines", flow, Source())
    keyed = op.key_on("key", lines, lambda some: "all")
    emitted = op.stateful_map("count", keyed, counted)
    op.output("end", op.map("sink", emitted, write), TestingSink([]))
    cluster_main(flow, [], 0)
