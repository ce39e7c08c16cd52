"""A table as an Arrow stream: the one way in which tables are written into files and messages.

They are read by :func:`specstream.files.untrusted.read_table`, which trusts none of them.
"""

from __future__ import annotations

import pyarrow as pa

__all__ = ["stream_of"]


def stream_of(table: pa.Table, compression: str | None = None) -> memoryview:
    """A table as bytes, with its schema; they are not copied.

    Args:
        table: the table.
        compression: of the buffers: ``"lz4"``, ``"zstd"`` or None.

    >>> from specstream.files.untrusted import read_table
    >>> table = pa.table({"x": [1, None]})
    >>> read_table(stream_of(table), "it").equals(table)
    True
    """
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return memoryview(sink.getvalue())
