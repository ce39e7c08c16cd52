"""Columns of Parquet files that Spark's reader refuses, described in words of the files.

Spark says of which physical type a column is, and neither its name nor its file. It refuses them
also where nobody reads the column.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.dataset

__all__ = ["unreadable_column"]

_DECIMAL_DIGITS = 38


def unreadable_column(directory: str) -> str | None:
    """What is wrong with the first column that Spark does not read, and what to do; None: there is
    none, or the files cannot be read here.

    >>> import pyarrow.parquet as pq, tempfile
    >>> with tempfile.TemporaryDirectory() as path:
    ...     pq.write_table(pa.table({"at": pa.array([1], pa.timestamp("ns"))}), path + "/a.parquet")
    ...     told = unreadable_column(path)
    >>> told.partition(": ")[0].partition("/tmp")[0], "coerce_timestamps" in told
    ("Spark does not read column 'at', timestamp[ns], of file '", True)
    """
    try:
        found = pyarrow.dataset.dataset(directory, format="parquet")
        for fragment in found.get_fragments():
            for field in fragment.physical_schema:
                if (instead := _instead(field.type)) is not None:
                    return (
                        f"Spark does not read column {field.name!r}, {field.type}, of file "
                        f"{fragment.path!r}: {instead}; or read the files without Spark, by "
                        "ss.sources.dataset(path), specstream run --from PATH"
                    )
    except (OSError, ValueError, pa.ArrowException):
        return None  # Spark's own error says more
    return None


def _instead(of: pa.DataType) -> str | None:
    """What to write in place of a type that Spark does not read."""
    types = pa.types
    if types.is_timestamp(of) and of.unit == "ns":
        return (
            "write its times in microseconds, with pandas df.to_parquet(path, "
            'coerce_timestamps="us", allow_truncated_timestamps=True)'
        )
    if types.is_time(of):
        return "write a number or a text"
    if types.is_float16(of):
        return "write float32"
    if types.is_decimal(of) and of.precision > _DECIMAL_DIGITS:
        return f"write decimals of at most {_DECIMAL_DIGITS} digits"
    if isinstance(of, pa.UuidType):
        return "write its text"
    inner = (of.field(number).type for number in range(of.num_fields))
    return next(filter(None, map(_instead, inner)), None)
