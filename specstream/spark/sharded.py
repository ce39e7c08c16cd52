"""Sharded mode: an operator whose state divides by key, on all machines that Spark has.

The key of a row decides its shard. Each shard is an operator of its own: its own state, its own
sequence numbers, an engine that runs it. Spark's ``transformWithStateInPandas`` brings the rows of
a shard to one task, and keeps the shard's snapshot in its state store. So a batch and the states
behind it are committed together, by Spark, and a task that fails, or whose executor dies, is run
again from the states before the batch.

A task must not trust the memory of its process. The same worker may meet a shard again after a
failed attempt, after another worker had it in between, or in a query that was started anew. So the
store has a version beside each snapshot, an identifier that is never given twice, and an engine
that was kept is used only if it is the one that left that version.

Nor must it trust the query: restarted with another number of shards, say, a key would begin anew
elsewhere, and no shard that the batch meets need have been there before. So each batch with rows
meets one more group, that of a *mark*, whose state is a record of the options that decide the
answer. The task that has it raises where they are not those of the query; then Spark commits
nothing of the batch, neither states nor rows.
"""

from __future__ import annotations

import ast
import copy
import json
import re
import uuid
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import (
    DataType,
    DateType,
    IntegralType,
    LongType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from specstream.checkpoint.format.settings import check_settings
from specstream.columns.tables import whole_microseconds
from specstream.declarations.options import integer, shown, whole
from specstream.definition.operator import Operator
from specstream.engine.engine import Engine, check_engine_options
from specstream.errors import ConfigurationError, InputError
from specstream.spark import packing
from specstream.spark.apply import needed_columns

__all__ = ["sharded"]

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
MOST_SHARDS = 1 << 20
# What shards had beside their version before there was a record.
_EARLIER = re.compile(r"(\d+) shards by (.*)", re.DOTALL)
# Stands where a shard has its version.
_RECORDED = "settings"
# The most bytes that the engines kept in one Python worker take, states included.
KEPT_BYTES = 1 << 28
# Options of an engine that mean nothing here, and why.
_REFUSED = {
    "initial": "all shards would begin with all of it",
    "restore": "a shard starts from Spark's state store, or empty",
    "migrate": "a shard's fields are matched by name; new ones get their fill",
    "on_abort": "a hook would run in Spark's executors, not here",
    "on_commit": "a hook would run in Spark's executors, not here",
    "on_post_commit": "a hook would run in Spark's executors, not here",
    "sources": "the rows of a micro-batch are run at once, in their order",
    "late": "the rows of a micro-batch are run at once, in their order",
    "errors": "its rows are the emitted ones, and failed events would be in no sink",
}


@dataclass
class _Kept:
    engine: Engine
    version: str

    @property
    def memory(self) -> int:
        stats = self.engine.stats
        return stats.memory + stats.state_bytes + stats.string_bytes


# Of this process, by (call of sharded, shard); the one used last is the last.
_kept: OrderedDict[tuple[str, int], _Kept] = OrderedDict()


def _keep(place: tuple[str, int], kept: _Kept) -> None:
    _kept[place] = kept
    total = sum(other.memory for other in _kept.values())
    while total > KEPT_BYTES and len(_kept) > 1:
        _, oldest = _kept.popitem(last=False)
        total -= oldest.memory
        oldest.engine.close()


@dataclass
class _Shards(StatefulProcessor):
    """Runs the shards that Spark gives to a task. It travels to the executors pickled."""

    operator: Operator
    order_by: str | None
    source: str | None
    options: dict[str, Any]
    settings: dict[str, Any]
    call: str

    def init(self, handle: StatefulProcessorHandle) -> None:
        # The column keeps its old name: Spark has it in the checkpoints of running queries.
        self.snapshot = handle.getValueState("snapshot", "image binary")
        # Apart from the snapshot, so that it can be read without it. Of the mark: the settings.
        self.version = handle.getValueState("version", "version string, sharding string")

    def handleInputRows(self, key: Any, rows: Iterable[Any], timerValues: Any) -> Iterator[Any]:
        shard = int(key[0])
        if shard == packing.MARK:
            self._meet_mark()
            return iter(())
        try:
            return self._run(shard, rows)
        except Exception as error:
            by, shards = self.settings["by"], self.settings["shards"]
            where = f"in shard {shard} ({shards} shards by {by!r})"
            error.add_note(f"{where} of operator {self.operator.name!r}")
            raise
        except BaseException as error:
            # Such as SystemExit, which would end the worker without a word of what it was.
            raise RuntimeError(
                f"operator {self.operator.name!r}, shard {shard}: {type(error).__name__} raised in "
                "a streaming query, where operators must raise ordinary exceptions only"
            ) from error

    def close(self) -> None:
        pass

    def _meet_mark(self) -> None:
        """Compares the query's options with those of the checkpoint, or records them.

        A checkpoint that has states and no record is of an earlier version of specstream. Its
        shards know by= and shards=, and compare them when they are met.
        """
        stored = self.version.get()
        if stored is None:
            self.version.update((_RECORDED, json.dumps(self.settings)))
        else:
            self._check(stored[1])

    def _check(self, recorded: str) -> None:
        """Whether states go on under the options that they were made with.

        Raises:
            SnapshotError: they do not; names the options.
        """
        earlier = _EARLIER.fullmatch(recorded)
        if earlier is not None:
            by = ast.literal_eval(earlier[2])
            recorded = json.dumps({"shards": int(earlier[1]), "by": by})
        check_settings(
            recorded,
            self.settings,
            f"operator {self.operator.name!r}: the query's checkpoint",
            "start the query as before; or, to have the whole stream run in the new way, with a "
            "new checkpointLocation, from the first row on (guide: Sharded mode)",
        )

    def _run(self, shard: int, rows: Iterable[Any]) -> Iterator[Any]:
        import pandas as pd

        table = _joined(rows)
        kept = self._engine(shard)
        try:
            output = kept.engine.process(table, order_by=self.order_by, source=self.source)
            output = whole_microseconds(output)  # Spark reads no others from Arrow
            snapshot = kept.engine.snapshot()
            kept.version = uuid.uuid4().hex
            self.snapshot.update((snapshot,))
            self.version.update((kept.version, json.dumps(self.settings)))
        except BaseException:
            kept.engine.close()
            raise
        _keep((self.call, shard), kept)
        pieces = range(0, output.num_rows, packing.MOST_ROWS)
        return (
            pd.DataFrame({"rows": [packing.to_bytes(output.slice(at, packing.MOST_ROWS))]})
            for at in pieces
        )

    def _engine(self, shard: int) -> _Kept:
        """The shard's engine in the state that Spark's store has; it is in no one else's hands."""
        kept = _kept.pop((self.call, shard), None)
        stored = self.version.get()
        version = "" if stored is None else stored[0]
        if stored is not None:
            self._check(stored[1])
        if kept is not None and kept.version == version:
            return kept
        if kept is not None:
            kept.engine.close()
        found = self.snapshot.get() if version else None
        restore = bytes(found[0]) if found is not None else None
        # A predictor among the options has a state of its own, one for each engine.
        options = copy.deepcopy(self.options)
        return _Kept(Engine(self.operator, restore=restore, **options), version)


def _joined(frames: Iterable[Any]) -> pa.Table:
    """The rows of all pieces, by their positions."""
    pieces = [
        piece for frame in frames for piece in zip(frame["position"], frame["rows"], strict=True)
    ]
    pieces.sort(key=lambda piece: piece[0])
    return pa.concat_tables(packing.to_table(piece) for _, piece in pieces)


def sharded(
    stream: DataFrame,
    operator: Operator,
    *,
    by: str,
    shards: int = 64,
    order_by: str | None = None,
    source: str | None = None,
    **engine_options: Any,
) -> DataFrame:
    """One engine for each group of keys, inside Spark's executors; a streaming DataFrame of rows.

    A row goes to the shard ``pmod(xxhash64(key), shards)``, with Spark's ``xxhash64`` of the key as
    bigint or string. Within a micro-batch the rows of a shard run in the order (``order_by``,
    ``source``, position), and what they emit, and the shard's state, are those of
    ``operator.run_sequential`` over the shard's rows in this order, batch after batch. Between
    shards there is no order. The position is that in Spark's partitions; behind a shuffle it is not
    certain, and ``order_by`` and ``source`` together have to tell rows apart.

    Args:
        stream: a streaming DataFrame.
        operator: made by :func:`specstream.operator`; travels to the executors pickled.
        by: column of the key: strings, integers, dates or timestamps.
        shards: number of shards, 1 to 1,048,576.
        order_by: column of the event time.
        source: column that tells apart the sources of events with equal times.
        engine_options: as for :class:`specstream.Engine`, ``seed=`` among them. One thread is the
            default, because Spark runs a task on each core already.

    Returns:
        A streaming DataFrame with the columns of ``emits``, for ``writeStream`` in the output mode
        "append".

    Raises:
        ConfigurationError: an option has a value that it cannot have; the session does not use the
            RocksDB state store, which the function needs; or ``protobuf`` or pandas is missing.
        InputError: the stream lacks a column, or the key has a type that cannot be hashed.
        CompileError: the operator's types do not fit.

    A query is started again from its checkpoint with the ``shards``, ``by``, ``order_by``,
    ``source``, ``seed`` and operator's name that it was begun with: its first batch with rows
    raises a SnapshotError otherwise, which names the option.

    What the operator raises fails the query; Spark's exception has its text, with the event and the
    shard. Started again from the checkpoint, the query runs the batch again.

    ::

        session.conf.set("spark.sql.streaming.stateStore.providerClass", "org.apache.spark.sql."
                         "execution.streaming.state.RocksDBStateStoreProvider")
        rows = ss.spark.sharded(stream, operator, by="account", order_by="time")
        rows.writeStream.format("parquet").option("checkpointLocation", checkpoint).start(path)
    """
    # Long for what it says; the code is one plan, from its checks to its last step.
    columns = needed_columns(stream, operator, order_by, source, "stream")
    source = operator.source_column(source)
    what = f"operator {operator.name!r}"
    _check(stream, operator, by, engine_options)
    shards = integer(f"{what}: shards", shards, 1, MOST_SHARDS)
    options = {"threads": 1, **engine_options}
    needed = stream.select(*map(packing.quoted, columns))
    # On an empty batch: options and types are found wrong here, and not in an executor.
    with Engine(operator, **copy.deepcopy(options)) as engine:
        empty = engine.process(packing.empty_table(needed), order_by=order_by, source=source)
    key, kind = _key(stream, by, what)
    shard = F.pmod(F.xxhash64(key), F.lit(shards))
    settings = {
        "operator": operator.name,
        "by": by,
        "the key's type": kind.simpleString(),  # of equal texts and numbers the hash differs
        "shards": shards,
        "order_by": order_by,
        "source": source,
        "seed": whole(options.get("seed", 0)),
    }
    processor = _Shards(operator, order_by, source, options, settings, uuid.uuid4().hex)
    return (
        packing.pack(stream, columns, shard, marked=True)
        .groupBy("shard")
        .transformWithStateInPandas(
            statefulProcessor=processor,
            outputStructType="rows binary",
            outputMode="append",
            timeMode="none",
        )
        .mapInArrow(packing.unpack("rows"), from_arrow_schema(empty.schema, True))
    )


def _check(stream: DataFrame, operator: Operator, by: object, options: dict[str, Any]) -> None:
    what = f"operator {operator.name!r}"
    if not stream.isStreaming:
        raise ConfigurationError(
            f"{what}: sharded takes a streaming DataFrame, and this one is static: use "
            "ss.spark.apply, or readStream"
        )
    if not isinstance(by, str) or by not in stream.columns:
        raise InputError(
            f"{what}: by={shown(by)} is no column of the stream ({', '.join(stream.columns)}): "
            "expected the column of the key"
        )
    for option, why in _REFUSED.items():
        if option in options:
            raise ConfigurationError(
                f"{what}: {option}= cannot be given in sharded mode: {why}: leave it out, or use "
                "foreach_batch"
            )
    check_engine_options(sharded, options)
    if len(operator.sinks) > 1:
        raise ConfigurationError(
            f"pipeline {operator.name!r} has the sinks {', '.join(operator.sinks)}, and sharded "
            "mode gives one DataFrame of rows: make a pipeline with one sink for each, or use "
            "foreach_batch"
        )
    if operator.event.phases:
        raise ConfigurationError(
            f"pipeline {operator.name!r} has phases by time, and in sharded mode nothing says when "
            "a time is complete: use foreach_batch with watermark="
        )
    if len(operator.emits) == 0:
        raise ConfigurationError(
            f"{what} emits no columns, and a streaming query without columns cannot be written: "
            "declare emits="
        )
    provider = stream.sparkSession.conf.get(PROVIDER)
    if provider != ROCKSDB:
        raise ConfigurationError(
            f"{what}: sharded mode needs Spark's RocksDB state store, and the session has "
            f"{provider}: session.conf.set({PROVIDER!r}, {ROCKSDB!r}) before the query starts"
        )
    # Without protobuf the Python worker just exits.
    for module, package in (("google.protobuf", "protobuf"), ("pandas", "pandas")):
        if _is_missing(module):
            raise ConfigurationError(
                f"{what}: sharded mode needs {package}, here and on the executors: pip install "
                '"specstream[spark]"'
            )


def _is_missing(module: str) -> bool:
    try:
        return find_spec(module) is None
    except ModuleNotFoundError:  # its parent is missing
        return True


def _key(stream: DataFrame, by: str, what: str) -> tuple[Column, DataType]:
    """The key as it is hashed, and its type."""
    key, kind = F.col(packing.quoted(by)), stream.schema[by].dataType
    if isinstance(kind, IntegralType):
        return key.cast(LongType()), LongType()
    if not isinstance(kind, StringType | DateType | TimestampType | TimestampNTZType):
        raise InputError(
            f"{what}: key column {by!r} has type {kind.simpleString()}; expected strings, "
            "integers, dates or timestamps: cast it"
        )
    return key, kind
