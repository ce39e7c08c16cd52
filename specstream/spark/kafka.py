"""Records of Kafka as events: bytes in, the columns that an operator declares out.

Spark's Kafka source gives frames of one shape, whatever is in the topics. The record's value is
decoded here, inside Spark. A value that cannot be decoded must not become an event of zeros and
nulls: all columns that come from it are null then, which the engine takes for a bad row, because at
least one of them may not be null.

An offset says where a record stands in its partition, and nothing about records of other
partitions. The order (offset, partition) is therefore made up, but it is the same in every run of
the batch, and it is that of each partition.
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from specstream.declarations import schema
from specstream.declarations.options import instance, refuses_unknown, shown
from specstream.definition.operator import Operator
from specstream.engine.options import checked_operator
from specstream.errors import ConfigurationError, DeclarationError, InputError
from specstream.spark.packing import quoted

__all__ = ["from_kafka"]

# Columns of the record itself that an operator may declare.
RECORD = ("key", "topic", "partition", "offset")
NEEDED = ("value", "topic", "partition", "offset", "timestamp")
_CORRUPT = "_corrupt_record"
_VALUE = "_value"


@refuses_unknown
def from_kafka(frame: DataFrame, operator: Operator, *, value: str | Column = "json") -> DataFrame:
    """The records of a Kafka-shaped DataFrame as the events that an operator declares.

    Args:
        frame: what Spark's Kafka source gives, streaming or static: at least ``value`` (bytes, or a
            string), ``topic``, ``partition``, ``offset`` and ``timestamp``.
        operator: made by :func:`specstream.operator`. Its columns named key (text), topic,
            partition and offset are the record's own; all others are fields of the value.
        value: ``"json"``: the value is a JSON object in UTF-8. Times are ISO 8601, in UTC where
            they say no zone. Or a Column of structs made from the frame's columns, such as
            ``from_avro(frame.value, schema)``.

    Returns:
        A DataFrame with the operator's columns, and topic, partition, offset and timestamp for
        ``order_by=`` and ``source=``; and ``source``, the partition with its topic as Kafka writes
        it (``"orders-3"``), where there are several topics.

    A value that is missing, no JSON, or has a field of another type gives nulls in the columns that
    come from it: an error of the batch that names the column, or with ``rejected_rows="side"`` a
    row on the side. Hence at least one of them must not be nullable.

    Raises:
        InputError: a column of a Kafka source is missing, or the structs lack a field.
        DeclarationError: ``operator`` is none, or declares only nullable columns.
        ConfigurationError: ``value`` is neither "json" nor a Column.

    ::

        records = (
            session.readStream.format("kafka")
            .option("kafka.bootstrap.servers", "broker:9092")
            .option("subscribe", "orders")
            .load()
        )
        feed = ss.spark.foreach_batch(engine, order_by="offset", source="partition", to=sink)
        query = ss.spark.from_kafka(records, operator).writeStream.foreachBatch(feed).start()
    """
    own = _own_columns(frame, operator)
    decoded = {name: column for name, column in operator.event if name not in RECORD}
    columns = [_text("key") if name == "key" else F.col(quoted(name)) for name in own]
    if not decoded:
        return _with_source(frame.select(*columns), operator)
    struct = _struct(operator, decoded, value)
    if "key" in own:
        # A key that is no text must not be taken for none.
        struct = F.when(F.col("key").isNull() | _text("key").isNotNull(), struct)
    records = frame.select(*columns, struct.alias(_VALUE))
    fields = _fields(records, operator)
    missing = [name for name in decoded if name not in fields]
    if missing:
        raise InputError(
            f"operator {operator.name!r} reads field {missing[0]!r}, which value= has not (fields: "
            f"{', '.join(fields)}): rename it in the struct, or in the operator"
        )
    whole = records[_VALUE].isNotNull()
    if _CORRUPT in fields:
        whole &= records[_VALUE][_CORRUPT].isNull()
    taken = [F.when(whole, records[_VALUE].getField(name)).alias(name) for name in decoded]
    return _with_source(records.select(*taken, *map(quoted, own)), operator)


def _own_columns(frame: DataFrame, operator: Operator) -> list[str]:
    """The columns of the frame that are kept as they are; a missing one is named."""
    instance("frame", frame, DataFrame, "a DataFrame of Spark")
    checked_operator(operator)
    of = operator.event.one_of
    if of is not None:
        names = ", ".join(name for name, _ in of.required)
        raise ConfigurationError(
            f"pipeline {operator.name!r} has the sources {names}, and records are decoded for one: "
            "call from_kafka for each of them, with an operator that declares its columns, and put "
            "them together with ss.spark.union"
        )
    needed = dict.fromkeys([*NEEDED, *(name for name in operator.event.names if name in RECORD)])
    for column in needed:
        if column not in frame.columns:
            raise InputError(
                f"operator {operator.name!r}: the DataFrame has no column {column!r}, which "
                f"Spark's Kafka source gives (columns: {', '.join(frame.columns)}): give "
                "from_kafka what readStream.format('kafka').load() returns"
            )
    return [column for column in needed if column != "value"]


def _struct(operator: Operator, decoded: dict[str, schema.Column], value: str | Column) -> Column:
    """The value as a struct with the fields that the operator reads."""
    if all(column.nullable for column in decoded.values()):
        raise DeclarationError(
            f"operator {operator.name!r} declares only nullable columns "
            f"({', '.join(decoded)}): a value that cannot be decoded would be an event of nulls; "
            "declare one that every event has without ss.nullable"
        )
    if isinstance(value, Column):
        return value
    if isinstance(value, str) and value == "json":
        return _json(decoded)
    raise ConfigurationError(
        f"value={shown(value)}; expected 'json' or a Column of structs, such as "
        "from_avro(frame.value, schema)"
    )


def _text(column: str) -> Column:
    """Bytes as text; null where they are no UTF-8."""
    return F.try_validate_utf8(F.col(column).cast("string")).alias(column)


def _with_source(records: DataFrame, operator: Operator) -> DataFrame:
    name = F.concat_ws("-", "topic", "partition").alias("source")
    ordered = [quoted(name) for name in operator.event.names]
    others = [quoted(name) for name in records.columns if name not in operator.event.names]
    return records.select(*ordered, *others, name)


def _fields(records: DataFrame, operator: Operator) -> list[str]:
    of = records.schema[_VALUE].dataType
    if not isinstance(of, T.StructType):
        raise InputError(
            f"operator {operator.name!r}: value= is a Column of {of.simpleString()}; expected "
            "structs with the fields that the operator reads: F.struct(...)"
        )
    return list(of.names)


def _json(columns: dict[str, schema.Column]) -> Column:
    """The value as a struct; its last field is not null where it is no such JSON."""
    fields = [T.StructField(name, _spark_type(column)) for name, column in columns.items()]
    fields.append(T.StructField(_CORRUPT, T.StringType()))
    return F.from_json(
        _text("value"),
        T.StructType(fields),
        {"columnNameOfCorruptRecord": _CORRUPT, "timeZone": "UTC"},
    )


def _spark_type(column: schema.Column) -> T.DataType:
    """The type that a field of JSON is read as; what does not fit the column is left to it."""
    if pa.types.is_timestamp(column.arrow):
        return T.TimestampType()
    if pa.types.is_date(column.arrow):
        return T.DateType()
    if pa.types.is_decimal(column.arrow):
        # All digits that a column may have, so that one too many is not rounded away here.
        return T.DecimalType(38, 18)
    plain = {"int": T.LongType, "float": T.DoubleType, "bool": T.BooleanType, "str": T.StringType}
    return plain[column.kind]()
