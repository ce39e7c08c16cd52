"""Latency where two sources must be merged: Figures 4.15 and 4.20.

Source A sends with a mean rate, B with that rate divided by 1 + d; both with exponential intervals.
An event may be committed only when the other source has sent something later. The latency of an
event is the time from its arrival to the moment when its rows are polled. Without speculation it
starts to run when its turn has come; with speculation it has run by then, if all went well.

Some of the latency no operator can avoid: an infinitely fast one waits for the other source as
well. This wait follows from the arrivals alone.
"""

from __future__ import annotations

import statistics
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import specstream as ss
from bench.chapter4.experiment import Data, Effort, Finding, Say
from bench.chapter4.margin import above, quartiles, shown
from bench.chapter4.slowed import SlowedEngine, busy_rounds
from specstream.figures.palette import QUIET, Look
from specstream.figures.style import from_zero, in_style, legend, new_figure, plot_line

__all__ = [
    "DEFINITIONS",
    "DIFFERENCES",
    "HALF",
    "RATE",
    "ROUNDS",
    "SECONDS",
    "SECONDS_EQUAL",
    "SETTINGS",
    "SPECULATIVE",
    "Curves",
    "Latency",
    "Load",
    "Values",
    "draw_panels",
    "mean_latency",
    "measure_curves",
    "peaks_at_equal_rates",
    "speculation_is_below",
]

# Events per second of source A, and the part of its period that an event then takes at most: two
# sources of that rate keep the operator busy for 0.94 of the time.
RATE = 1000.0
HALF = 0.47
ROUNDS = 5
# At equal rates a queue takes long to become as it stays: hundreds of events.
SECONDS, SECONDS_EQUAL = 1.5, 4.0
SETTLING = 1 / 8
# Seconds until rows are looked for again at the latest: little beside latencies of milliseconds.
LOOK = 0.0002

# d: by how much A sends more than B.
DIFFERENCES = (0.0, 0.5, 1.0, 2.0, 4.0)

SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "no speculation": {"horizon": 0},
    "value": {"horizon": 16, "chunk": 1},
    "eager": {"horizon": 16, "chunk": 1, "protocol": "eager"},
}
SPECULATIVE = ("value", "eager")
WAITING = "wait for the other source"
LOOKS = {WAITING: Look(QUIET, "", "-", "", 1.4)}
DEFINITIONS = {
    "latency": "mean time from the arrival of an event to the moment when its rows are there, ms",
    "difference": "A sends (1 + d) times as many events as B; 0 %: equally many",
    WAITING: (
        "what an infinitely fast operator would take: the time until the other source has sent "
        "something later, computed from the arrivals"
    ),
    "dropped": "speculative runs that were dropped, per committed transaction of one event",
}

Values = Callable[[np.random.Generator, int], list[dict[str, Any]]]


@dataclass(frozen=True)
class Load:
    """What a panel is measured with.

    Attributes:
        operator: run for each event.
        values: draws the columns of so many events.
        work: seconds of busy work after each event's accesses.
        rate: events per second of source A.
        share: of the usual time; less where no queue can grow.
    """

    operator: ss.Operator
    values: Values
    work: float
    rate: float = RATE
    share: float = 1.0


@dataclass(frozen=True)
class Latency:
    """Of one stream of events.

    Attributes:
        seconds: mean from arrival to commit, when the queue has settled.
        waiting: of that, seconds for which an infinitely fast operator would wait.
        dropped: speculative runs per transaction.
    """

    seconds: float
    waiting: float
    dropped: float


# By setting, and by place in DIFFERENCES: quartiles of "milliseconds" and, relative to those
# without speculation in the same round, "ratio"; medians of "waiting" (ms) and "dropped".
Curves = Mapping[str, Any]


def mean_latency(
    load: Load, setting: str, difference: float, seconds: float, rounds: int, seed: int
) -> Latency:
    """Of the events that arrive within so many seconds.

    Args:
        rounds: of the busy loop in each event.
    """
    generator = np.random.default_rng(seed)
    times = _times(load.rate, difference, seconds, generator)
    arrivals = sorted((at, source) for source, ats in times.items() for at in ats)
    drawn = load.values(generator, len(arrivals))
    with SlowedEngine(
        load.operator, threads=1, sources=["A", "B"], keys=True, **SETTINGS[setting]
    ) as slowed:
        engine = slowed.engine
        first = _compile(engine, drawn[0])
        slowed.pace(rounds=rounds)
        before = slowed.runs()
        waiting = deque(arrivals)
        latency: list[float] = []
        began = time.perf_counter()

        def collect(timeout: float) -> None:
            engine.poll_rows(timeout=timeout)
            now = time.perf_counter() - began
            # Events count, not rows: an event may emit none, or several.
            committed = engine.stats.events - first - len(latency)
            latency.extend(now - waiting.popleft()[0] for _ in range(committed))

        for (at, source), columns in zip(arrivals, drawn, strict=True):
            while (rest := at - (time.perf_counter() - began)) > 0:
                collect(min(rest, LOOK))
            # Microseconds: integer keys are what a program that wants low latency uses.
            engine.submit_event(int(at * 1e6), source, ordered=True, **columns)
        # A queue may be left. What waits for the other source has no end.
        end = min(ats[-1] for ats in times.values())
        free = sum(at < end for at, _ in arrivals)
        while len(latency) < free:
            collect(LOOK)
        runs = slowed.runs() - before
    settled = int(SETTLING * free)
    return Latency(
        statistics.fmean(latency[settled:free]),
        _waiting(arrivals[settled:free], times),
        runs.dropped_per_transaction,
    )


def _times(
    rate: float, difference: float, seconds: float, generator: np.random.Generator
) -> dict[str, list[float]]:
    """When each source sends within so many seconds."""
    return {
        source: [
            float(at)
            for at in np.cumsum(generator.exponential(mean, int(2 * seconds / mean) + 10))
            if at < seconds
        ]
        for source, mean in (("A", 1 / rate), ("B", (1 + difference) / rate))
    }


def _compile(engine: ss.Engine, columns: Mapping[str, Any]) -> int:
    """Runs an event of each source, as code is compiled when the first one comes; how many."""
    for source in ("A", "B"):
        engine.submit_event(-1, source, **columns)
        engine.advance(source, 0)
    while engine.stats.events < 2:
        engine.poll_rows(timeout=0.05)
    return 2


def _waiting(arrivals: Sequence[tuple[float, str]], times: Mapping[str, Sequence[float]]) -> float:
    """Mean time until the other source has sent something later."""
    waits = []
    for at, source in arrivals:
        others = times["B" if source == "A" else "A"]
        waits.append(others[int(np.searchsorted(others, at))] - at)
    return statistics.fmean(waits)


def measure_curves(load: Load, title: str, effort: Effort, say: Say) -> dict[str, Any]:
    """The curves of a panel, out of interleaved rounds.

    Args:
        title: to be said.
    """
    rounds = round(load.work * busy_rounds())
    taken: dict[str, list[list[Latency]]] = {s: [[] for _ in DIFFERENCES] for s in SETTINGS}
    for number in range(effort.times(ROUNDS)):
        say(f"{title}, round {number + 1}")
        for place, difference in enumerate(DIFFERENCES):
            usual = SECONDS if difference else SECONDS_EQUAL
            seconds = max(effort.scale * load.share * usual, 60 / load.rate)
            for setting in SETTINGS:
                seed = 100 * number + place
                taken[setting][place].append(
                    mean_latency(load, setting, difference, seconds, rounds, seed)
                )
    plain = taken["no speculation"]
    return {
        "milliseconds": {
            setting: [quartiles([1000 * one.seconds for one in point]) for point in points]
            for setting, points in taken.items()
        },
        "ratio": {
            setting: [
                quartiles([a.seconds / b.seconds for a, b in zip(mine, theirs, strict=True)])
                for mine, theirs in zip(taken[setting], plain, strict=True)
            ]
            for setting in SPECULATIVE
        },
        "waiting": [statistics.median(1000 * one.waiting for one in point) for point in plain],
        "dropped": {
            setting: [statistics.median(one.dropped for one in point) for point in taken[setting]]
            for setting in SPECULATIVE
        },
    }


@in_style
def draw_panels(data: Data, titles: Mapping[str, str], columns: int = 2) -> Figure:
    """A panel for each of the curves in ``data``; ``titles`` by their names."""
    rows = -(-len(titles) // columns)
    figure, panels = new_figure("", 0.9 + 3.1 * rows, rows, columns)
    percent = [100 * difference for difference in data["differences"]]
    for axes, (name, title) in zip(panels.flat, titles.items(), strict=True):
        curves = data["curves"][name]
        for setting, curve in curves["milliseconds"].items():
            plot_line(axes, percent, [middle for _, middle, _ in curve], setting)
        plot_line(axes, percent, curves["waiting"], WAITING, LOOKS[WAITING])
        axes.set_title(title)
        axes.set_xlabel("A sends so many percent more than B")
        axes.grid(axis="y")
    from_zero(panels.flat)
    for row in panels:
        row[0].set_ylabel("mean latency (ms)")
    legend(figure, (*SETTINGS, WAITING), LOOKS)
    return figure


def peaks_at_equal_rates(
    what: str, differences: Sequence[float], curves: Curves, setting: str
) -> Finding:
    """Whether the latency at d = 0 is above that at all other differences."""
    points = curves["milliseconds"][setting]
    less = [
        [value - waited for value in point]
        for point, waited in zip(points, curves["waiting"], strict=True)
    ]
    own = (
        "less the wait for the other source, which no operator can avoid "
        f"({_list(differences, [f'{waited:.2f}' for waited in curves['waiting']])} ms), it is "
        f"{_list(differences, [shown(point) for point in less])} ms"
    )
    if all(above(less[0], other) for other in less[1:]):
        because = f"the wait for the other source grows with the difference: {own}. That peaks."
    elif all(less[0][1] > other[1] for other in less[1:]):
        because = (
            f"the wait for the other source grows with the difference: {own}. The medians peak, "
            "and the rounds differ by more."
        )
    else:
        because = f"Not explained by the wait for the other source: {own}."
    return Finding(
        what,
        f"{_list(differences, [shown(point) for point in points])} ms",
        all(above(points[0], other) for other in points[1:]),
        because,
    )


def speculation_is_below(
    what: str,
    differences: Sequence[float],
    curves: Curves,
    protocol: str,
    control: Curves | None = None,
) -> Finding:
    """Whether speculation has the lower latency wherever A sends more than B.

    Args:
        control: the same where there are fewer conflicts.
    """
    ratios, dropped = curves["ratio"][protocol], curves["dropped"][protocol]
    lost = [place for place, difference in enumerate(differences) if difference > 0]
    lost = [place for place in lost if not above([1.0] * 3, ratios[place])]
    at = [differences[place] for place in lost]
    seen = f"dropped runs per transaction {_list(at, [f'{dropped[p]:.2f}' for p in lost])}"
    plain = curves["milliseconds"]["no speculation"]
    more = [f"{plain[place][1] - curves['waiting'][place]:.2f}" for place in lost]
    seen += (
        f"; what speculation could save, the latency without it less the wait: {_list(at, more)} ms"
    )
    because = f"Not explained: {seen}."
    if control is not None:
        seen += (
            f"; with fewer conflicts ({_list(at, [_dropped(control, protocol, p) for p in lost])}) "
            f"the ratios are {_list(at, [shown(control['ratio'][protocol][p]) for p in lost])}"
        )
        better = all(above([1.0] * 3, control["ratio"][protocol][place]) for place in lost)
        because = f"conflicts: {seen}." if better else f"Not explained by conflicts: {seen}."
    shares = [shown(ratios[place]) for place, d in enumerate(differences) if d > 0]
    return Finding(
        what,
        f"{_list([d for d in differences if d > 0], shares)} of the latency without speculation",
        not lost,
        because,
    )


def _dropped(curves: Curves, protocol: str, place: int) -> str:
    return f"{curves['dropped'][protocol][place]:.2f}"


def _list(differences: Sequence[float], texts: Sequence[str]) -> str:
    return ", ".join(f"{100 * d:.0f} %: {text}" for d, text in zip(differences, texts, strict=True))
