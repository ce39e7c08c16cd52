"""Where the rows of a micro-batch go; a sink is any callable ``(pyarrow.Table, batch_id)``."""

from specstream.spark.sinks.delta import DeltaSink, delta_sink
from specstream.spark.sinks.early_database import EarlyDatabaseSink, early_database_sink
from specstream.spark.sinks.early_delta import EarlyDeltaSink, early_delta_sink
from specstream.spark.sinks.foreach import ForeachSink, foreach_sink
from specstream.spark.sinks.memory import MemorySink, memory_sink
from specstream.spark.sinks.parquet import ParquetSink, parquet_dataset, parquet_sink
from specstream.spark.sinks.postgres import PostgresSink, postgres_sink

__all__ = [
    "DeltaSink",
    "EarlyDatabaseSink",
    "EarlyDeltaSink",
    "ForeachSink",
    "MemorySink",
    "ParquetSink",
    "PostgresSink",
    "delta_sink",
    "early_database_sink",
    "early_delta_sink",
    "foreach_sink",
    "memory_sink",
    "parquet_dataset",
    "parquet_sink",
    "postgres_sink",
]
