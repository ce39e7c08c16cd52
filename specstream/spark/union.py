"""Several DataFrames as the one stream of events that a pipeline with several sources reads."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from specstream.compiler.frontend.inputs import column_of
from specstream.compiler.phases.plan import SOURCE
from specstream.declarations.options import instance, items, refused, refuses_unknown, shown
from specstream.errors import ConfigurationError, InputError
from specstream.spark.packing import quoted

__all__ = ["checked_shared", "union"]

_EXAMPLE = 'ss.spark.union({"ticks": frame, "news": other}, shared=["time"])'


@refuses_unknown
def union(frames: Mapping[str, DataFrame], *, shared: Iterable[str] = ()) -> DataFrame:
    """One DataFrame out of several, as a pipeline with several sources reads it.

    It has a column ``stream``, the name of each row's source; the ``shared`` columns; and every
    column of every DataFrame, called ``source.column``, which is null in the rows of the others.
    What the pipeline does not read is not fetched from Spark.

    Args:
        frames: by the names of the pipeline's sources: all streaming ones, or all static ones.
        shared: columns that all of them have, with one type, and that the rows keep under their
            own names as well: those that ``order_by=``, ``source=`` or ``by=`` will name. The name
            of a row's source breaks ties in time without being among them.

    Returns:
        The DataFrame, for ``writeStream.foreachBatch(ss.spark.foreach_batch(...))``, for
        :func:`apply` or :func:`sharded`.

    Raises:
        ConfigurationError: ``frames`` are no DataFrames by name, or some of them stream and others
            do not; or ``shared`` is no list of names.
        InputError: one of them lacks a shared column, or has it with another type.

    ::

        events = ss.spark.union({"ticks": ticks, "news": news}, shared=["time"])
        query = (events.writeStream
                 .foreachBatch(ss.spark.foreach_batch(
                     engine, order_by="time", to={"signals": signals, "audit": audit}))
                 .option("checkpointLocation", checkpoint)
                 .start())
    """
    given = _checked(frames)
    common = _shared(given, shared)
    parts = [_part(given, name, common) for name in given]
    return functools.reduce(DataFrame.union, parts)


def _checked(frames: object) -> dict[str, DataFrame]:
    expected = f"DataFrames by the names of a pipeline's sources: {_EXAMPLE}"
    if not isinstance(frames, Mapping) or not frames:
        raise refused("frames", frames, expected)
    for name, frame in frames.items():
        if not isinstance(name, str) or not name.isidentifier():
            raise ConfigurationError(f"frames: a source is called {shown(name)}; expected a name")
        instance(f"frames[{name!r}]", frame, DataFrame, "a DataFrame of Spark")
    if len(frames) == 1:
        raise ConfigurationError(
            f"frames: there is one DataFrame, of {next(iter(frames))!r}; a pipeline with one "
            "source reads it as it is, and one with several sources needs one of each"
        )
    streaming = [name for name, frame in frames.items() if frame.isStreaming]
    static = [name for name in frames if name not in streaming]
    if streaming and static:
        raise ConfigurationError(
            f"frames: {streaming[0]!r} is a stream and {static[0]!r} is static, which Spark cannot "
            "put into one: read both with readStream, or both with read"
        )
    return dict(frames)


def checked_shared(shared: object) -> list[str]:
    """The names of shared columns.

    Raises:
        ConfigurationError: it is no list of such.
    """
    common = list(items("shared", shared, f"a list of columns' names: {_EXAMPLE}"))
    for column in common:
        if not isinstance(column, str) or column == SOURCE:
            raise ConfigurationError(
                f"shared: {shown(column)}; expected the name of a column, other than {SOURCE!r}, "
                "which has the name of each row's source"
            )
    return common


def _shared(frames: Mapping[str, DataFrame], shared: object) -> list[str]:
    """The shared columns, which every DataFrame has with the same type."""
    common = checked_shared(shared)
    (first, frame), *others = frames.items()
    for column in common:
        for name, of in frames.items():
            if column not in of.columns:
                raise InputError(
                    f"shared column {column!r} is none of source {name!r} (columns: "
                    f"{', '.join(of.columns)}): select or rename it before"
                )
        for name, of in others:
            one, other = frame.schema[column].dataType, of.schema[column].dataType
            if one != other:
                raise InputError(
                    f"shared column {column!r} is {one.simpleString()} in source {first!r} and "
                    f"{other.simpleString()} in source {name!r}: cast one of them before"
                )
    return list(dict.fromkeys(common))


def _part(frames: Mapping[str, DataFrame], source: str, shared: Iterable[str]) -> DataFrame:
    """The rows of one source, in the columns of all."""
    columns: list[Column] = [F.lit(source).alias(SOURCE), *(F.col(quoted(one)) for one in shared)]
    for name, frame in frames.items():
        for field in frame.schema:
            column = F.col(quoted(field.name))
            if name != source:
                column = F.lit(None).cast(field.dataType)
            columns.append(column.alias(column_of(name, field.name)))
    return frames[source].select(*columns)
