"""Latency where two sources must be merged: Figures 4.15 and 4.20.

Source A sends with a mean rate, B with that rate divided by 1 + d; both with exponential intervals.
An event may be committed only when the other source has sent something later. The latency of an
event is the time from its arrival to the moment when its rows are polled. Without speculation it
starts to run when its turn has come; with speculation it has run by then, if all went well.
"""

from __future__ import annotations

import statistics
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import specstream as ss
from bench.chapter4.experiment import Data, Effort, Finding, Say
from bench.chapter4.slowed import SlowedEngine, busy_rounds
from specstream.figures.style import from_zero, in_style, legend, new_figure, plot_line

__all__ = [
    "DIFFERENCES",
    "SETTINGS",
    "Values",
    "draw_panels",
    "mean_latency",
    "measure_curves",
    "speculation_is_below",
]

# Events per second of source A.
RATE = 1000.0
SECONDS = 0.5
ROUNDS = 3

# d: by how much A sends more than B.
DIFFERENCES = (0.0, 0.5, 1.0, 2.0, 3.0, 4.0)

SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "no speculation": {"horizon": 0},
    "value": {"horizon": 16, "chunk": 1},
    "eager": {"horizon": 16, "chunk": 1, "protocol": "eager"},
}

Values = Callable[[np.random.Generator], dict[str, Any]]


def mean_latency(
    operator: ss.Operator,
    setting: str,
    values: Values,
    rate: float,
    difference: float,
    seconds: float,
    rounds: int,
    seed: int,
) -> float:
    """Seconds, mean over the events that arrive within so many seconds.

    Args:
        operator: run for each event.
        values: draws the columns of an event.
        rate: events per second of source A.
        rounds: of the busy loop before each event.
    """
    generator = np.random.default_rng(seed)
    arrivals = sorted(
        (at, source)
        for source, mean in (("A", 1 / rate), ("B", (1 + difference) / rate))
        for at in np.cumsum(generator.exponential(mean, int(2 * seconds / mean) + 10))
        if at < seconds
    )
    drawn = [values(generator) for _ in arrivals]
    with SlowedEngine(
        operator, threads=1, sources=["A", "B"], keys=True, **SETTINGS[setting]
    ) as slowed:
        engine = slowed.engine
        # First an event of each source: the code is compiled when the first one comes.
        for source in ("A", "B"):
            engine.submit_event(-1, source, **drawn[0])
            engine.advance(source, 0)
        while engine.stats.events < 2:
            engine.poll_rows(timeout=0.05)
        slowed.pace(rounds=rounds)
        waiting = deque(arrivals)
        latency: list[float] = []
        began = time.perf_counter()

        def collect(timeout: float) -> None:
            engine.poll_rows(timeout=timeout)
            now = time.perf_counter() - began
            # Events count, not rows: an event may emit none, or several.
            committed = engine.stats.events - 2 - len(latency)
            latency.extend(now - waiting.popleft()[0] for _ in range(committed))

        for (at, source), columns in zip(arrivals, drawn, strict=True):
            while (rest := at - (time.perf_counter() - began)) > 0:
                collect(min(rest, 0.0002))
            # Microseconds: integer keys are what a program that wants low latency uses.
            engine.submit_event(int(at * 1e6), source, ordered=True, **columns)
    return float(np.mean(latency))


def measure_curves(
    operator: ss.Operator, values: Values, work: float, title: str, effort: Effort, say: Say
) -> dict[str, list[float]]:
    """Milliseconds by setting, one for each of DIFFERENCES: medians of interleaved rounds.

    Args:
        work: seconds of busy work before each event.
        title: to be said.
    """
    rounds = round(work * busy_rounds())
    taken: dict[str, list[list[float]]] = {s: [[] for _ in DIFFERENCES] for s in SETTINGS}
    for number in range(effort.times(ROUNDS)):
        say(f"{title}, round {number + 1}")
        for place, difference in enumerate(DIFFERENCES):
            for setting in SETTINGS:
                seed = 100 * number + place
                mean = mean_latency(
                    operator, setting, values, RATE, difference, SECONDS, rounds, seed
                )
                taken[setting][place].append(1000 * mean)
    return {
        setting: [statistics.median(means) for means in places] for setting, places in taken.items()
    }


@in_style
def draw_panels(data: Data, titles: Mapping[str, str], sharey: bool = False) -> Figure:
    """A panel for each of the curves in ``data``; ``titles`` by their names."""
    figure, panels = new_figure("", 4.2, columns=len(titles), sharey=sharey)
    percent = [100 * difference for difference in data["differences"]]
    for axes, (name, title) in zip(panels[0], titles.items(), strict=True):
        for setting, curve in data["milliseconds"][name].items():
            plot_line(axes, percent, curve, setting)
        axes.set_title(title)
        axes.set_xlabel("source A sends so many\npercent more than B")
        axes.grid(axis="y")
    from_zero(panels[0])
    panels[0, 0].set_ylabel("mean time from arrival to commit (ms)")
    legend(figure, SETTINGS)
    return figure


def speculation_is_below(
    what: str, differences: list[float], curves: Mapping[str, list[float]], protocol: str
) -> Finding:
    """Whether speculation has the lower latency wherever A sends at least twice as much as B."""
    waits, aheads = curves["no speculation"], curves[protocol]
    points = [
        (100 * difference, waited, ahead)
        for difference, waited, ahead in zip(differences, waits, aheads, strict=True)
        if difference >= 1
    ]
    return Finding(
        what,
        ", ".join(f"{d:.0f} %: {a:.2f} against {w:.2f} ms" for d, w, a in points),
        all(ahead < waited for _, waited, ahead in points),
    )
