"""Figure 4.17: dynamic and static horizons over the sinusoidal load."""

from __future__ import annotations

import statistics

from matplotlib.figure import Figure

from bench.chapter4.experiment import Data, Effort, Experiment, Finding, Say
from bench.chapter4.lab import TRANSACTIONAL
from bench.chapter4.sinusoid import PREDICTORS, follow
from specstream.figures.style import bars_height, draw_bars, in_style, legend, new_figure

SECONDS = 12.0


def measure(effort: Effort, say: Say) -> Data:
    """Share of dropped runs and throughput, means over a period, by protocol and predictor."""
    means = {}
    for protocol in TRANSACTIONAL:
        say(protocol)
        followed = follow(PREDICTORS, protocol, SECONDS * effort.scale)
        means[protocol] = {
            name: {
                "rerun": statistics.fmean(point["rerun"] for point in points),
                "throughput": statistics.harmonic_mean([p["throughput"] for p in points]),
            }
            for name, points in followed.items()
        }
    return {"means": means}


@in_style
def draw(data: Data) -> Figure:
    figure, panels = new_figure(
        "", 1.3 + bars_height(len(PREDICTORS), len(TRANSACTIONAL)), columns=2
    )
    for axes, what, scale, label in zip(
        panels[0],
        ("rerun", "throughput"),
        (100, 0.001),
        ("dropped runs (%)", "throughput (1000 events/s)"),
        strict=True,
    ):
        draw_bars(
            axes,
            {
                name: {p: scale * data["means"][p][name][what] for p in TRANSACTIONAL}
                for name in PREDICTORS
            },
            "{:.1f}",
        )
        axes.set_xlabel(label)
    legend(figure, TRANSACTIONAL, bars=True)
    return figure


def judge(data: Data) -> list[Finding]:
    findings = []
    for protocol in TRANSACTIONAL:
        means = data["means"][protocol]
        dropped = {name: means[name]["rerun"] for name in PREDICTORS}
        findings.append(
            Finding(
                f"the abort-driven predictor drops the fewest runs ({protocol})",
                ", ".join(f"{name} {share:.1%}" for name, share in dropped.items()),
                min(dropped, key=dropped.__getitem__) == "abort-driven",
            )
        )
        static = max(means[name]["throughput"] for name in ("static 5", "static 10"))
        driven = means["throughput-driven"]["throughput"]
        findings.append(
            Finding(
                f"the throughput-driven one is as fast as static, within a tenth ({protocol})",
                f"{driven:,.0f} against {static:,.0f} events/s",
                driven > 0.9 * static,
            )
        )
        findings.append(
            Finding(
                f"and drops fewer runs than static 10 ({protocol})",
                f"{dropped['throughput-driven']:.1%} against {dropped['static 10']:.1%}",
                dropped["throughput-driven"] < dropped["static 10"],
            )
        )
    return findings


EXPERIMENT = Experiment(
    name="figure_4_17",
    title="Figure 4.17: dynamic and static horizons",
    claim=(
        "The abort-driven predictor reruns least; the throughput-driven one is as fast as a static "
        "horizon, with fewer reruns."
    ),
    measure=measure,
    draw=draw,
    judge=judge,
    notes="As Figure 4.16, with a period of 12 seconds for each of the four, which take turns.",
)
