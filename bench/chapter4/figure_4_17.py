"""Figure 4.17: dynamic and static horizons over the sinusoidal load."""

from __future__ import annotations

import statistics

from matplotlib.figure import Figure

from bench.chapter4.experiment import COLOURS, Data, Effort, Experiment, Finding, Say
from bench.chapter4.lab import TRANSACTIONAL
from bench.chapter4.sinusoid import PREDICTORS, follow

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


def draw(data: Data) -> Figure:
    figure = Figure(figsize=(10, 4), layout="constrained")
    panels = figure.subplots(1, 2)
    width = 0.38
    for axes, what, scale, label in zip(
        panels,
        ("rerun", "throughput"),
        (100, 0.001),
        ("percent dropped", "1000 events/s"),
        strict=True,
    ):
        for place, protocol in enumerate(TRANSACTIONAL):
            heights = [scale * data["means"][protocol][name][what] for name in PREDICTORS]
            at = [x + (place - 0.5) * width for x in range(len(PREDICTORS))]
            bars = axes.bar(at, heights, width, label=protocol, color=COLOURS[protocol])
            axes.bar_label(bars, [f"{height:.1f}" for height in heights], fontsize=8)
        axes.set_xticks(range(len(PREDICTORS)), PREDICTORS)
        axes.set_ylabel(label)
    panels[0].legend()
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
