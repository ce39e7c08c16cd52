"""The demo's picture: what the operators found, and how the engine fared batch by batch."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
from matplotlib.dates import ConciseDateFormatter
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from specstream.figures.palette import SPARE
from specstream.figures.style import bar_look, draw_bars, from_zero, in_style, new_figure, save

__all__ = ["Batch", "Compared", "draw_demo", "save_plot"]


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


@dataclass(frozen=True)
class Compared:
    """What all events of one operator take, in seconds, and whether the answers were the same.

    Attributes:
        title: what the operator finds.
        python: the sequential check.
        one_core: an engine on one core.
        all_cores: an engine on all.
        threads: that it had.
        is_same: rows and state of the engine that Spark has fed are those of the sequential check.
    """

    title: str
    python: float
    one_core: float
    all_cores: float
    threads: int
    is_same: bool


def save_plot(
    path: Path,
    compared: Sequence[Compared],
    counts: pa.Table,
    leaders: Sequence[str],
    neighbours: pa.Table,
    batches: dict[str, list[Batch]],
) -> None:
    """:func:`draw_demo` into a file."""
    save(draw_demo(compared, counts, leaders, neighbours, batches), path)


@in_style
def draw_demo(
    compared: Sequence[Compared],
    counts: pa.Table,
    leaders: Sequence[str],
    neighbours: pa.Table,
    batches: dict[str, list[Batch]],
) -> Figure:
    """The five panels.

    Args:
        compared: the operators beside one core and the sequential check.
        counts: rows that top-k emitted, with their keys.
        leaders: tail numbers at the end, the most frequent first.
        neighbours: rows that nearest neighbours emitted, with their keys.
        batches: by operator.
    """
    figure, panels = new_figure(
        "2013's departures from New York, in order, on all cores", 15.2, rows=5
    )
    gain, growth, nearest, speed, aborted = panels[:, 0]
    draw_bars(
        gain,
        {
            f"{one.title}   (same answer: {'yes' if one.is_same else 'NO'})": {
                "plain, one core": one.one_core,
                f"specstream, {one.threads} threads": one.all_cores,
            }
            for one in compared
        },
        "{:.2f} s",
    )
    gain.set_title("Time for all departures, and whether the answer is that of Python")
    python = " and ".join(f"{one.python:.0f} s" for one in compared)
    gain.set_xlabel(f"seconds in an engine; the sequential check in Python takes {python}")
    frame = counts.select(["timestamp", "item", "count"]).to_pandas()
    for tail, look in zip(leaders, itertools.cycle(SPARE), strict=False):
        rows = frame[frame["item"] == tail]
        growth.plot(
            rows["timestamp"], rows["count"], label=tail, drawstyle="steps-post",
            color=look.colour,
        )  # fmt: skip
    growth.set_title("Departures of the top aircraft, as estimated when emitted")
    growth.set_ylabel("departures so far")

    found = neighbours.select(["timestamp", "rank", "distance"]).to_pandas()
    weekly = found.groupby([pd.Grouper(key="timestamp", freq="W"), "rank"])["distance"]
    for (rank, means), look in zip(
        weekly.mean().unstack().items(), itertools.cycle(SPARE), strict=False
    ):
        nearest.plot(
            means.index, means, label=f"neighbour {rank}", color=look.colour, linestyle=look.line
        )
    nearest.set_title("Mean distance to the most similar earlier flights, by week")
    nearest.set_ylabel("distance, unit square")

    width = 0.8 / max(len(batches), 1)
    for number, (name, of_operator) in enumerate(batches.items()):
        look = SPARE[number % len(SPARE)]
        at = [batch + (number + 0.5) * width - 0.4 for batch in range(len(of_operator))]
        rates = [batch.events / max(batch.seconds, 1e-9) / 1e6 for batch in of_operator]
        dropped = [
            100 * batch.aborts / max(batch.commits + batch.aborts, 1) for batch in of_operator
        ]
        for axes, heights in ((speed, rates), (aborted, dropped)):
            axes.bar(at, heights, width, label=name, **bar_look(look))
    speed.set_title("Throughput of the engine")
    speed.set_ylabel("million events per second")
    aborted.set_title("Runs dropped, of all runs")
    aborted.set_ylabel("dropped runs (%)")
    for axes in (speed, aborted):
        axes.set_xlabel("micro-batch")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    for axes in (growth, nearest):
        dates: Any = ConciseDateFormatter
        axes.xaxis.set_major_formatter(dates(axes.xaxis.get_major_locator()))
        axes.set_xlabel("time of the departure")
    for axes in (growth, nearest, speed, aborted):
        axes.grid(axis="y")
    for axes in (gain, growth, nearest, speed, aborted):
        # Below the panel, so that nothing is covered. A look that stands twice is named once.
        named = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
        axes.legend(
            named.values(), named.keys(), loc="upper left", bbox_to_anchor=(0.0, -0.2), ncols=3
        )
    from_zero((growth, nearest, speed, aborted))
    return figure
