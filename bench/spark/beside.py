"""What runs beside Spark: Bytewax, and the plain Python function.

Bytewax reads the same files itself, and an item is a whole batch as Arrow: row by row it would be
many times slower. State is a value under one key, as bytes, kept through its own recovery store.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import specstream as ss
from bench.spark.carried import carried
from bench.spark.loads import Load, operator_of
from specstream.columns.events import read_events
from specstream.columns.strings import StringTable
from specstream.engine.engine import Engine
from specstream.tuning.rivals import warm_oracle

__all__ = ["BYTEWAX", "PYTHON", "bytewax_seconds", "has_bytewax", "python_seconds"]

BYTEWAX = "Bytewax"
PYTHON = "sequential check"


def has_bytewax() -> bool:
    """Whether it is installed."""
    return find_spec("bytewax") is not None


def bytewax_seconds(load: Load, batches: Sequence[Sequence[Path]], home: Path) -> list[float]:
    """Seconds between the outputs of two batches, the first left out: it holds the start."""
    import bytewax.operators as op
    from bytewax.dataflow import Dataflow
    from bytewax.recovery import RecoveryConfig, init_db_dir
    from bytewax.testing import TestingSink, TestingSource, cluster_main

    sink = ss.sinks.parquet_sink(home / "rows")
    store = home / "recovery"
    store.mkdir()
    init_db_dir(store, 1)
    clone = carried(load.name)
    done: list[float] = []

    def mapper(state: bytes | None, files: Sequence[Path]) -> tuple[bytes, pa.Table]:
        clone.begin(state)
        output = clone.run(pa.concat_tables(map(pq.read_table, files)))
        return clone.end(), output

    def write(item: tuple[str, pa.Table]) -> int:
        sink(item[1], len(done))
        done.append(time.perf_counter())
        return len(done)

    flow = Dataflow("operator")
    files = op.input("files", flow, TestingSource(list(batches)))
    keyed = op.key_on("key", files, lambda batch: "all")
    emitted = op.stateful_map("operator", keyed, mapper)
    written = op.map("sink", emitted, write)
    op.output("end", written, TestingSink([]))
    cluster_main(
        flow,
        [],
        0,
        epoch_interval=timedelta(0),
        recovery_config=RecoveryConfig(str(store)),
    )
    return [after - before for before, after in itertools.pairwise(done)]


def python_seconds(load: Load, engine: Engine, rows: pa.Table, limit: float) -> float:
    """Seconds per event of the plain function, over a copy of an engine's warm state."""
    operator = operator_of(load.name)
    oracle = warm_oracle(operator, engine)
    read = read_events(rows, operator.event, StringTable(()), operator.name, 0)
    oracle.begin(operator.event, operator.emits, read.columns, 0, 0)
    began = time.perf_counter()
    for row in range(read.count):
        oracle.run(row)
        taken = time.perf_counter() - began
        if taken > limit:
            return taken / (row + 1)
    return taken / read.count
