"""No option of the entries that are Spark's takes what it cannot mean; as tests/declarations."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.options import (
    Entry,
    look_at_absurd_values,
    look_at_bools,
    look_at_integers,
    running_total,
)

import specstream as ss
from specstream.spark.sharded import PROVIDER, ROCKSDB

ROWS = pa.table({"x": [1, 2], "time": [1, 2]})
KAFKA = pa.table(
    {
        "value": pa.array([b'{"x": 1}']),
        "topic": ["a"],
        "partition": pa.array([0], pa.int32()),
        "offset": [0],
        "timestamp": pa.array([0], pa.timestamp("us", "UTC")),
    }
)


def nothing(*_: object) -> None:
    pass


class Places:
    """Directories and Spark's objects, as the entries need them."""

    def __init__(self, session: Any, path: Path) -> None:
        self.session, self.path = session, path
        self.frame = session.createDataFrame(ROWS)
        self.files = path / "files"
        self.files.mkdir()
        pq.write_table(ROWS, self.files / "0.parquet")
        self.stream = session.readStream.schema("x long, time long").parquet(str(self.files))
        self.images = path / "images"
        self.made = 0

    def place(self) -> str:
        self.made += 1
        return str(self.path / str(self.made))

    def foreach_batch(self, **options: Any) -> None:
        # errors_limit= is for engines that set events aside.
        with ss.Engine(running_total, threads=1, errors="side") as engine:
            feed = ss.spark.foreach_batch(options.pop("engine", engine), **options)
            feed.close()

    def record(self) -> None:
        with ss.Engine(running_total, threads=1) as engine:
            feed = ss.spark.foreach_batch(
                engine, to=nothing, checkpoint=self.images, keep_batches=1
            )
            feed(self.frame, 0)
            feed.close()

    def stream_directory(self, **options: Any) -> None:
        with ss.Engine(running_total, threads=1) as engine:
            feed = ss.spark.foreach_batch(engine, to=nothing)
            ss.spark.stream_directory(
                **{"feed": feed, "checkpoint": self.place(), "path": self.files, **options}
            )

    def watch(self, **options: Any) -> None:
        ss.spark.watch(**options).close()

    def stop_on_signal(self, **options: Any) -> None:
        ss.spark.stop_on_signal(**options).cancel()

    def entry(self, name: str) -> Entry:
        return getattr(self, f"_{name}")()  # type: ignore[no-any-return]

    def _of(self, called: Callable[..., Any], **given: Any) -> Entry:
        own = getattr(self, called.__name__, called)
        return Entry(called.__name__, called, own, given)

    def _foreach_batch(self) -> Entry:
        return Entry(
            "foreach_batch",
            ss.spark.foreach_batch,
            self.foreach_batch,
            {"to": nothing, "order_by": "time", "watermark": 1},
            {"bad_rows_to": "rejected_rows_to", "ahead": "prefetch"},
            # A text is a duration here, and looked at as one.
            frozenset({"Amount"}),
        )

    def _foreach_batch_with_a_checkpoint(self) -> Entry:
        def call(**options: Any) -> None:
            self.foreach_batch(**{"checkpoint": self.place(), **options})

        names = {"bad_rows_to": "rejected_rows_to", "ahead": "prefetch"}
        given = {"to": nothing, "order_by": "time", "watermark": 1}
        return Entry(
            "foreach_batch",
            ss.spark.foreach_batch,
            call,
            given,
            names,
            frozenset({"Amount"}),
        )

    def _apply(self) -> Entry:
        return self._of(ss.spark.apply, df=self.frame, operator=running_total, order_by=None)

    def _sharded(self) -> Entry:
        self.session.conf.set(PROVIDER, ROCKSDB)
        return self._of(ss.spark.sharded, stream=self.stream, operator=running_total, by="x")

    def _from_kafka(self) -> Entry:
        frame = self.session.createDataFrame(KAFKA)
        return self._of(ss.spark.from_kafka, frame=frame, operator=running_total)

    def _stream_directory(self) -> Entry:
        return self._of(ss.spark.stream_directory, session=self.session)

    def _local_session(self) -> Entry:
        return self._of(ss.spark.local_session)

    def _watch(self) -> Entry:
        return self._of(ss.spark.watch, session=self.session, to=nothing)

    def _stop_on_signal(self) -> Entry:
        return self._of(ss.spark.stop_on_signal)

    def _foreach_sink(self) -> Entry:
        return self._of(ss.spark.foreach_sink, writer=nothing)

    def _replay(self) -> Entry:
        self.record()
        return self._of(ss.spark.replay, checkpoint=self.images, batch=0)


ENTRIES = [name[1:] for name in vars(Places) if name.startswith("_") and name[1] != "_"]
ENTRIES.remove("of")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", ENTRIES)
def test_an_option_takes_what_it_means_and_refuses_the_rest_by_its_name(
    name: str, session: Any, tmp_path: Path
) -> None:
    before = signal.getsignal(signal.SIGTERM)
    entry = Places(session, tmp_path).entry(name)
    for option in entry.options().values():
        look_at_absurd_values(entry, option)
        if name not in ("stream_directory", "apply", "local_session"):  # each would take seconds
            entry()
            look_at_integers(entry, option)
            look_at_bools(entry, option)
    assert signal.getsignal(signal.SIGTERM) is before
    assert not any("object at" in file for file in os.listdir())


@pytest.mark.parametrize("taker", ["apply", "sharded"])
def test_an_option_that_nobody_has_is_named(taker: str, session: Any, tmp_path: Path) -> None:
    entry = Places(session, tmp_path).entry(taker)
    told = f"{taker} has no option zzz=; it has .*threads"
    with pytest.raises(ss.ConfigurationError, match=told):
        entry(zzz=1)


def test_old_and_new_name_of_an_option_are_not_both_given() -> None:
    with ss.Engine(running_total, threads=1) as engine:
        both: dict[str, Any] = {"to": nothing, "ahead": True, "prefetch": False}
        with (
            pytest.warns(DeprecationWarning, match=r"foreach_batch\(prefetch=\)"),
            pytest.raises(ss.ConfigurationError, match="both are given"),
        ):
            ss.spark.foreach_batch(engine, **both)


@pytest.mark.parametrize("inside", ["", "ours"])
def test_one_directory_for_both_checkpoints_is_refused_at_the_first_batch(
    session: Any, tmp_path: Path, inside: str
) -> None:
    """The first start passed, and the second could not: the query had to begin anew."""
    places, spark = Places(session, tmp_path), tmp_path / "spark"
    with ss.Engine(running_total, threads=1) as engine:
        feed = ss.spark.foreach_batch(engine, to=nothing, checkpoint=spark / inside)
        writer = places.stream.writeStream.foreachBatch(feed)
        query = writer.option("checkpointLocation", str(spark)).start()
        try:
            with pytest.raises(Exception, match=r"the checkpointLocation .* a directory beside it"):
                query.processAllAvailable()
        finally:
            query.stop()
            feed.close()
        assert engine.stats.events == 0
