"""Figure 4.16: the two predictors of the text, over a load whose parallelism comes and goes."""

from __future__ import annotations

import statistics

from matplotlib.figure import Figure

from bench.chapter4.experiment import Data, Effort, Experiment, Finding, Say
from bench.chapter4.lab import TRANSACTIONAL
from bench.chapter4.sinusoid import follow

SECONDS = 20.0
WANTED = ("abort-driven", "throughput-driven")
PREDICTOR_COLOURS = {"abort-driven": "#d95f02", "throughput-driven": "#1b7837"}


def measure(effort: Effort, say: Say) -> Data:
    """Size of the state, share of dropped runs and throughput, over a period, by protocol."""
    points = {}
    for protocol in TRANSACTIONAL:
        say(protocol)
        points[protocol] = follow(WANTED, protocol, SECONDS * effort.scale)
    return {"points": points}


def draw(data: Data) -> Figure:
    figure = Figure(figsize=(11, 7), layout="constrained")
    panels = figure.subplots(3, 2, sharex=True, sharey="row")
    for column, protocol in enumerate(TRANSACTIONAL):
        for name in WANTED:
            points = data["points"][protocol][name]
            at = [point["at"] for point in points]
            for axes, what, scale in zip(
                panels[:, column], ("size", "rerun", "throughput"), (1, 100, 0.001), strict=True
            ):
                series = _smooth([scale * point[what] for point in points])
                axes.plot(at, series, label=name, color=PREDICTOR_COLOURS[name])
        panels[0, column].set_title(protocol)
        panels[2, column].set_xlabel("seconds")
    for axes, label in zip(
        panels[:, 0], ("words in use", "percent dropped", "1000 events/s"), strict=True
    ):
        axes.set_ylabel(label)
        axes.set_ylim(bottom=0)
    panels[0, 0].legend(fontsize=8)
    return figure


def _smooth(series: list[float], window: int = 5) -> list[float]:
    return [
        statistics.median(series[max(0, at - window) : at + window + 1])
        for at in range(len(series))
    ]


def judge(data: Data) -> list[Finding]:
    findings = []
    for protocol in TRANSACTIONAL:
        means = {
            name: statistics.harmonic_mean(
                [p["throughput"] for p in data["points"][protocol][name]]
            )
            for name in WANTED
        }
        findings.append(
            Finding(
                f"the throughput-driven predictor reaches the higher throughput ({protocol})",
                ", ".join(f"{name} {mean:,.0f} events/s" for name, mean in means.items()),
                means["throughput-driven"] > means["abort-driven"],
            )
        )
        for name in WANTED:
            points = data["points"][protocol][name]
            narrow = [p["rerun"] for p in points if p["size"] <= 3]
            wide = [p["rerun"] for p in points if p["size"] >= 15]
            findings.append(
                Finding(
                    f"more is dropped where there is less to run in parallel ({protocol}, {name})",
                    f"{statistics.fmean(narrow):.0%} at 1 to 3 words, "
                    f"{statistics.fmean(wide):.0%} at 15 to 20",
                    statistics.fmean(narrow) > statistics.fmean(wide),
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
