"""The demo's picture: what the operators found, and how the engine fared batch by batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
import pandas as pd
import pyarrow as pa

from specstream.files.writing import writing

mpl.use("Agg")

from matplotlib import pyplot

__all__ = ["Batch", "save_plot"]


@dataclass(frozen=True)
class Batch:
    """One micro-batch of one operator.

    Attributes:
        events: rows taken in.
        seconds: time in the engine.
        commits: transactions committed.
        aborts: speculative runs dropped.
    """

    events: int
    seconds: float
    commits: int
    aborts: int


def save_plot(
    path: Path,
    counts: pa.Table,
    leaders: Sequence[str],
    neighbours: pa.Table,
    batches: dict[str, list[Batch]],
) -> None:
    """Draws the four panels into a PNG file.

    Args:
        path: of the file.
        counts: rows that top-k emitted, with their keys.
        leaders: tail numbers at the end, the most frequent first.
        neighbours: rows that nearest neighbours emitted, with their keys.
        batches: by operator.
    """
    figure, ((growth, nearest), (speed, aborted)) = pyplot.subplots(
        2, 2, figsize=(13, 8.5), layout="constrained"
    )
    frame = counts.select(["timestamp", "item", "count"]).to_pandas()
    for tail in leaders:
        rows = frame[frame["item"] == tail]
        growth.plot(rows["timestamp"], rows["count"], label=tail, drawstyle="steps-post")
    growth.set_title("Departures of the top aircraft, as estimated when each was emitted")
    growth.set_ylabel("departures so far")
    growth.legend(title="tail number", frameon=False)

    found = neighbours.select(["timestamp", "rank", "distance"]).to_pandas()
    weekly = found.groupby([pd.Grouper(key="timestamp", freq="W"), "rank"])["distance"]
    for rank, means in weekly.mean().unstack().items():
        nearest.plot(means.index, means, label=f"neighbour {rank}", linewidth=1.6)
    nearest.set_title("Mean distance to the most similar earlier flights, by week")
    nearest.set_ylabel("distance in the unit square")
    nearest.legend(frameon=False)

    width = 0.8 / max(len(batches), 1)
    for number, (name, of_operator) in enumerate(batches.items()):
        at = [batch + number * width for batch in range(len(of_operator))]
        rates = [batch.events / max(batch.seconds, 1e-9) / 1000 for batch in of_operator]
        speed.bar(at, rates, width, label=name)
        dropped = [
            100 * batch.aborts / max(batch.commits + batch.aborts, 1) for batch in of_operator
        ]
        aborted.bar(at, dropped, width, label=name)
    speed.set_title("Throughput of the engine")
    speed.set_ylabel("thousand events per second")
    aborted.set_title("Runs dropped, of all runs")
    aborted.set_ylabel("percent")
    for axes in (speed, aborted):
        axes.set_xlabel("micro-batch")
        axes.margins(y=0.2)  # room for the legend
        axes.legend(frameon=False, loc="upper left", ncols=2)
    for axes in (growth, nearest):
        axes.tick_params(axis="x", rotation=30)
    for axes in (growth, nearest, speed, aborted):
        axes.grid(alpha=0.25)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle("specstream: 2013's departures from New York, in order, on all cores")
    with writing(path):
        figure.savefig(path, dpi=120)
    pyplot.close(figure)
