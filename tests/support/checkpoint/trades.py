"""Batches of trades: of several sources, with nulls, ties in time and texts that only one has."""

from __future__ import annotations

import numpy as np
import pyarrow as pa


def rows_of(batch_id: int, count: int = 40) -> pa.Table:
    """The same for ever: files of earlier versions were written from these."""
    rng = np.random.default_rng(batch_id)
    names = [None, "a", "b", f"batch {batch_id}"]
    return pa.table(
        {
            "time": rng.integers(0, 20, count),
            "origin": [f"o{at}" for at in rng.integers(0, 3, count)],
            "price": rng.integers(14, 500, count),
            "weight": rng.normal(size=count),
            "name": [names[at] for at in rng.integers(0, 4, count)],
        }
    )
