"""A sharded stream in a cluster of this machine, whose executors get killed. Run by a test.

Executors die by their own workers' hands, so that it is certain at which point: once behind the
shards, when rows have come out that no one has committed yet, and once before them. Markers in
the directory see to it that each happens once.

Usage: killing DIRECTORY SHARDS. DIRECTORY/files has the input, output-N.parquet is batch N.
"""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

import os
import signal
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import specstream as ss
from support.spark import java_classes
from support.spark.state_store import ROCKSDB, STATE_STORE

os.environ["PYSPARK_PYTHON"] = sys.executable
FATAL_ROWS = {"behind": 75, "before": 140}


def main(directory: Path, shards: int) -> None:
    # As __main__ it is pickled by value: executors do not have this file as a module.
    from support.spark.sharded_chain import chain

    session = (
        SparkSession.builder.master("local-cluster[2,1,1024]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.log.level", "OFF")
        .config("spark.executor.extraJavaOptions", java_classes.options())
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config(STATE_STORE, ROCKSDB)
        .getOrCreate()
    )

    def deadly(where: str) -> Any:
        def rows(batches):
            # Worker, its daemon, the executor.
            status = Path(f"/proc/{os.getppid()}/status").read_text()
            executor = int(status.split("PPid:")[1].split()[0])
            command = Path(f"/proc/{executor}/cmdline").read_text()
            assert "CoarseGrainedExecutorBackend" in command, "this is no executor"
            for batch in batches:
                with (directory / "executors").open("a") as file:
                    file.write(f"{executor}\n")
                yield batch
                marker = directory / f"killed-{where}"
                if FATAL_ROWS[where] in batch.column("x").to_pylist() and not marker.exists():
                    marker.write_text(str(executor))
                    os.kill(executor, signal.SIGKILL)
                    signal.pause()  # the worker ends when its executor is gone

        return rows

    files = str(directory / "files")
    schema = session.read.parquet(files).schema
    stream = (
        session.readStream.schema(schema)
        .option("maxFilesPerTrigger", 1)
        .parquet(files)
        .mapInArrow(deadly("before"), schema)
    )
    rows = ss.spark.sharded(
        stream, chain, by="account", shards=shards, order_by="time", source="origin"
    )
    rows = rows.mapInArrow(deadly("behind"), rows.schema)

    def sink(frame, batch_id):
        pq.write_table(frame.toArrow(), directory / f"output-{batch_id}.parquet")

    query = (
        rows.writeStream.foreachBatch(sink)
        .option("checkpointLocation", str(directory / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    session.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
