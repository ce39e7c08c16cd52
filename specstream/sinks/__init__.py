"""Where the rows of a micro-batch go; a sink is any callable ``(pyarrow.Table, batch_id)``.

A batch may come again, after an error or a restart. These sinks know it by its id, so that each row
is there once. They serve :func:`specstream.sources.run` and :func:`specstream.spark.foreach_batch`
alike, and none of them needs PySpark.
"""

from specstream.sinks.compaction import Compaction, compact
from specstream.sinks.delta import DeltaSink, delta_sink
from specstream.sinks.early_database import EarlyDatabaseSink, early_database_sink
from specstream.sinks.early_delta import EarlyDeltaSink, early_delta_sink
from specstream.sinks.latest import latest
from specstream.sinks.memory import MemorySink, memory_sink
from specstream.sinks.parquet import ParquetSink, parquet_dataset, parquet_sink
from specstream.sinks.postgres import PostgresSink, postgres_sink

__all__ = [
    "Compaction",
    "DeltaSink",
    "EarlyDatabaseSink",
    "EarlyDeltaSink",
    "MemorySink",
    "ParquetSink",
    "PostgresSink",
    "compact",
    "delta_sink",
    "early_database_sink",
    "early_delta_sink",
    "latest",
    "memory_sink",
    "parquet_dataset",
    "parquet_sink",
    "postgres_sink",
]
