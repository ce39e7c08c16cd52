"""Figure 4.16: the two predictors of the text, over a load whose parallelism comes and goes."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from matplotlib.figure import Figure

from bench.chapter4.experiment import Data, Effort, Experiment, Finding, Say
from bench.chapter4.lab import TRANSACTIONAL
from bench.chapter4.sinusoid import WORDS, follow
from specstream.figures.palette import look
from specstream.figures.style import from_zero, in_style, legend, new_figure

SECONDS = 20.0
WANTED = ("abort-driven", "throughput-driven")
# What a panel shows, with the digits of its values that can be seen; seconds have two.
PANELS = {"size": 0, "rerun": 3, "throughput": -1}
# A panel is some two hundred pixels high: of a series what is nearer than one is left out.
UNSEEN = 0.005
# Words in use where there is little to run in parallel, and where there is much.
NARROW, WIDE = 3, 15


def measure(effort: Effort, say: Say) -> Data:
    """Size of the state, share of dropped runs and throughput, over a period, by protocol."""
    found: dict[str, Any] = {"series": {}, "means": {}}
    for protocol in TRANSACTIONAL:
        say(protocol)
        points = follow(WANTED, protocol, SECONDS * effort.scale)
        found["series"][protocol] = {name: _series(points[name]) for name in WANTED}
        found["means"][protocol] = {name: _means(points[name]) for name in WANTED}
    return found


def _series(points: Sequence[Mapping[str, float]]) -> dict[str, dict[str, list[float]]]:
    """What the panels show: each point the median of some, and no more than can be seen."""
    found = {}
    for what, digits in PANELS.items():
        at = [point["at"] for point in points]
        values = _smooth([point[what] for point in points])
        kept = visible(at, values, UNSEEN * (max(values) - min(values)))
        found[what] = {
            "at": [round(at[number], 2) for number in kept],
            "values": [round(values[number], digits) for number in kept],
        }
    return found


def visible(at: Sequence[float], values: Sequence[float], unseen: float) -> list[int]:
    """The points of a line that can stand for all: nowhere is it farther off than ``unseen``.

    >>> visible([0, 1, 2, 3, 4], [5.0, 5.0, 5.0, 5.2, 9.0], 0.1)
    [0, 2, 3, 4]
    """
    kept = {0, len(values) - 1}
    pieces = [(0, len(values) - 1)]
    while pieces:
        first, last = pieces.pop()
        slope = (values[last] - values[first]) / max(at[last] - at[first], 1e-9)
        apart = [
            abs(values[n] - values[first] - slope * (at[n] - at[first])) for n in range(first, last)
        ]
        if apart and max(apart) > unseen:
            farthest = first + apart.index(max(apart))
            kept.add(farthest)
            pieces += [(first, farthest), (farthest, last)]
    return sorted(kept)


def _smooth(series: list[float], window: int = 5) -> list[float]:
    return [
        statistics.median(series[max(0, at - window) : at + window + 1])
        for at in range(len(series))
    ]


def _means(points: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Throughput, and share of dropped runs while the state is narrow and while it is wide."""
    return {
        "throughput": statistics.harmonic_mean([point["throughput"] for point in points]),
        "narrow": statistics.fmean(p["rerun"] for p in points if p["size"] <= NARROW),
        "wide": statistics.fmean(p["rerun"] for p in points if p["size"] >= WIDE),
    }


@in_style
def draw(data: Data) -> Figure:
    figure, panels = new_figure("", 6.8, 3, 2, sharex=True, sharey="row")
    for column, protocol in enumerate(TRANSACTIONAL):
        for name in WANTED:
            series = data["series"][protocol][name]
            for axes, what, scale in zip(panels[:, column], PANELS, (1, 100, 0.001), strict=True):
                shown = [scale * value for value in series[what]["values"]]
                colour = look(name).colour
                axes.plot(series[what]["at"], shown, label=name, color=colour, linewidth=1.2)
                axes.grid(axis="y")
        panels[0, column].set_title(protocol)
        panels[2, column].set_xlabel("time (s)")
    for axes, label in zip(
        panels[:, 0],
        ("words in use", "dropped runs (%)", "throughput\n(1000 events/s)"),
        strict=True,
    ):
        axes.set_ylabel(label)
    from_zero(panels.flat)
    looks = {name: replace(look(name), marker="", line="-") for name in WANTED}
    legend(figure, WANTED, looks)
    return figure


def judge(data: Data) -> list[Finding]:
    findings = []
    for protocol in TRANSACTIONAL:
        means = data["means"][protocol]
        throughput = {name: means[name]["throughput"] for name in WANTED}
        findings.append(
            Finding(
                f"the throughput-driven predictor reaches the higher throughput ({protocol})",
                ", ".join(f"{name} {mean:,.0f} events/s" for name, mean in throughput.items()),
                throughput["throughput-driven"] > throughput["abort-driven"],
            )
        )
        for name in WANTED:
            narrow, wide = means[name]["narrow"], means[name]["wide"]
            findings.append(
                Finding(
                    f"more is dropped where there is less to run in parallel ({protocol}, {name})",
                    f"{narrow:.0%} at 1 to {NARROW} words, {wide:.0%} at {WIDE} to {WORDS}",
                    narrow > wide,
                )
            )
    return findings


EXPERIMENT = Experiment(
    name="figure_4_16",
    title="Figure 4.16: abort-driven and throughput-driven predictor over time",
    claim=(
        "Without parallelism there are many aborts, also with the abort-driven predictor, which "
        "keeps trying; the throughput-driven one reaches the higher throughput."
    ),
    measure=measure,
    draw=draw,
    judge=judge,
    notes=(
        "Six threads whose work of 100 µs is sleep, a period of 20 seconds; the two take turns "
        "batch by batch."
    ),
)
