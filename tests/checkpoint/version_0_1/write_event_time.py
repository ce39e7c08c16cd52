"""Writes ``event_time/`` as version 0.1 does; kept to say where these files are from.

They were written at commit 1422d46, the last one of the day that version 0.1 is dated with, whose
package was installed in an environment of its own (Python 3.11.7, Numba 0.68.1, PySpark 4.3.0):

    PYTHONPATH=tests python tests/checkpoint/version_0_1/write_event_time.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from support.checkpoint import ledger

import specstream as ss

TO = Path(__file__).with_name("event_time")
WRITTEN = 5  # batches; the others are for the version that goes on


def main() -> None:
    output: list[pa.Table] = []
    with ss.Engine(ledger.ledger, threads=2, horizon=4, chunk=2, seed=3) as engine:
        feed: Any = ss.spark.foreach_batch(
            engine,
            order_by="day",
            source="source",
            to=lambda table, batch_id: output.append(table),
            checkpoint=TO / "checkpoint",
            keep_batches=2,
            watermark=f"{ledger.DELAY} seconds",
            sources=ledger.SOURCES,
        )
        for batch_id, rows in enumerate(ledger.batches()[:WRITTEN]):
            feed._apply("q", rows, batch_id, 0.0)  # what Spark's callback does with a batch
        print(engine.stats.pending, "events wait;", engine.stats.late, "were late")
        (TO / "ledger.snapshot").write_bytes(engine.snapshot())
        feed.close()
    pq.write_table(pa.concat_tables(output), TO / "output.parquet", compression="zstd")


if __name__ == "__main__":
    main()
