"""What the examples with Spark take for granted: a session, and a stream that comes to an end."""

from __future__ import annotations

import datetime
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import specstream as ss

session: Any = ss.spark.local_session("pages")


def stream_of(columns: Mapping[str, Any]) -> Any:
    """A stream of two files; a query over it ends with `availableNow`."""
    folder = Path(tempfile.mkdtemp())
    table = pa.table(dict(columns))
    half = table.num_rows // 2
    pq.write_table(table.slice(0, half), folder / "1.parquet")
    pq.write_table(table.slice(half), folder / "2.parquet")
    schema = session.read.parquet(str(folder)).schema
    options = {"maxFilesPerTrigger": "1", "latestFirst": "false"}
    return session.readStream.schema(schema).options(**options).parquet(str(folder))


def records_of(values: Mapping[int, list[str]]) -> Any:
    """A stream with the columns of Spark's Kafka source, by partition."""
    began = datetime.datetime(2026, 1, 5, tzinfo=datetime.UTC)
    rows = [
        {
            "key": None,
            "value": value.encode(),
            "topic": "orders",
            "partition": partition,
            "offset": offset,
            "timestamp": began + datetime.timedelta(seconds=offset),
            "timestampType": 0,
        }
        for partition, of in values.items()
        for offset, value in enumerate(of)
    ]
    table = pa.Table.from_pylist(rows, _RECORD)
    return stream_of({name: table[name] for name in table.column_names})


_RECORD = pa.schema(
    {
        "key": pa.binary(),
        "value": pa.binary(),
        "topic": pa.string(),
        "partition": pa.int32(),
        "offset": pa.int64(),
        "timestamp": pa.timestamp("us", "UTC"),
        "timestampType": pa.int32(),
    }
)
