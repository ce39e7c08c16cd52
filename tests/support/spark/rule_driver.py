"""A rule with a deadline as a query over files of orders, and the process that tests kill.

``rule_driver DIRECTORY`` reads ``DIRECTORY/events``, one file per micro-batch. Events come out of
order, by less than the watermark; one comes too late. Alarms go to ``DIRECTORY/out``, late events
to ``DIRECTORY/late``, and ``DIRECTORY/recorded`` is the checkpoint.
"""

# Rules carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import specstream as ss
from specstream.rules import eventually, implies

SECOND = 1_000_000
MINUTE = 60 * SECOND
WITHIN, WATERMARK = 30 * MINUTE, 2 * MINUTE
FILES, ORDERS = 10, 400
UNPAID = 0.15
# After the batch of this file the frontier is exactly at the deadline of the order SILENT.
AT_THE_DEADLINE = 3
SILENT = "silent"
# Paid in time; the payment comes behind an event that is later than the deadline, a file before.
CROSSED = "crossed"
# Paid in time, which comes too late.
TARDY = "tardy"


@ss.rule(event={"order": str, "kind": str}, key="order")
def paid_in_time(e):
    return implies(
        e.kind == "placed",
        eventually(lambda later: later.kind in ("paid", "cancelled"), within="30 minutes"),
    )


def write_orders(directory: Path, seed: int = 7) -> None:
    """Files in the order of arrival. No two events have the same time: a kill while Spark plans a
    micro-batch can make it put two files into one, in any order."""
    rng = np.random.default_rng(seed)
    placed = np.sort(rng.integers(0, 100 * MINUTE, ORDERS))
    is_paid = rng.random(ORDERS) >= UNPAID
    # Some after their deadline.
    paid = (placed + rng.integers(1, 33 * MINUTE, ORDERS))[is_paid]
    number = np.arange(ORDERS)
    time = np.concatenate([placed, paid])
    order = [f"o{at}" for at in (*number, *number[is_paid])]
    kind = np.repeat(["placed", "paid"], [ORDERS, len(paid)])
    came = np.argsort(time + rng.integers(0, WATERMARK, len(time)), kind="stable")
    parts = [
        [(int(time[at]), order[at], str(kind[at])) for at in part]
        for part in np.array_split(came, FILES)
    ]
    reached = max(row[0] for part in parts[: AT_THE_DEADLINE + 1] for row in part)
    crossed = reached - MINUTE
    parts[0] += [
        (crossed + SECOND - WITHIN, CROSSED, "placed"),
        (reached - WATERMARK - WITHIN, SILENT, "placed"),
        (3 * MINUTE, TARDY, "placed"),
    ]
    parts[AT_THE_DEADLINE + 1].append((crossed, CROSSED, "paid"))
    parts[-1].append((4 * MINUTE, TARDY, "paid"))
    times = [row[0] for part in parts for row in part]
    assert len(set(times)) == len(times)
    directory.mkdir(parents=True)
    for at, part in enumerate(parts):
        columns = dict(zip(("time", "order", "kind"), zip(*part, strict=True), strict=True))
        table = pa.table({name: list(values) for name, values in columns.items()})
        table = table.set_column(0, "time", table["time"].cast(pa.timestamp("us", "UTC")))
        path = directory / f"{at:05d}.parquet"
        pq.write_table(table, path)
        os.utime(path, (1_000_000_000 + at, 1_000_000_000 + at))


def is_late(events: pa.Table) -> Any:
    """Which of them comes too late."""
    return pc.and_(pc.equal(events["order"], TARDY), pc.equal(events["kind"], "paid"))


def sequential(directory: Path) -> pa.Table:
    """The alarms of the plain run over all events in the order of time, to the end of all time."""
    files = sorted((directory / "events").iterdir())
    events = pa.concat_tables(map(pq.read_table, files))
    events = events.filter(pc.invert(is_late(events))).sort_by("time")
    return paid_in_time.run_sequential(events, order_by="time", end=True).output


def stream(session: Any, directory: Path, early_to: Any = None) -> None:
    """Runs the query until all files are processed, and ends the stream."""
    early = early_to is not None
    with ss.Engine(paid_in_time, threads=2, horizon=4, chunk=4, early=early) as engine:
        feed = ss.spark.foreach_batch(
            engine,
            order_by="time",
            watermark="2 minutes",
            late="side",
            late_to=ss.sinks.parquet_sink(directory / "late"),
            to=ss.sinks.parquet_sink(directory / "out"),
            checkpoint=directory / "recorded",
            early_to=early_to,
        )
        ss.spark.stream_directory(
            session,
            directory / "events",
            feed,
            checkpoint=directory / "spark",
            files_per_trigger=1,
        )
        feed.finish()
        assert not engine.state.waiting


if __name__ == "__main__":
    stream(ss.spark.local_session("rule", settings={"spark.log.level": "OFF"}), Path(sys.argv[1]))
