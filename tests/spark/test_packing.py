"""Pieces of rows on their way through Spark say where they were."""

from __future__ import annotations

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from specstream.spark import packing


def test_the_pieces_of_a_partition_are_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "MOST_ROWS", 2)
    shards = pa.array([1, 0], pa.int32())
    batches = [
        pa.RecordBatch.from_pydict({"shard": shards, "column 0": [at, 10 + at]}) for at in range(3)
    ]
    found = pa.Table.from_batches(packing.pack_rows(batches, ["x"])).to_pylist()
    assert [(piece["position"], piece["shard"]) for piece in found] == [
        (at, shard) for at in range(3) for shard in (0, 1)
    ]
    rows = [packing.to_table(piece["rows"])["x"].to_pylist() for piece in found]
    assert rows == [[10], [0], [11], [1], [12], [2]]
