"""Figure 4.15: latency of events out of order, by how much the rates of two sources differ."""

from __future__ import annotations

import statistics

from matplotlib.figure import Figure

from bench.chapter4.experiment import COLOURS, Data, Effort, Experiment, Finding, Say
from bench.chapter4.paced_sources import DIFFERENCES, SETTINGS, mean_latency
from bench.chapter4.slowed import busy_rounds
from bench.workloads import listing_4_2

STATES = (100, 10)
RATE = 1000.0
# Just below half of the shortest period.
WORK = 0.47e-3
SECONDS = 0.5
ROUNDS = 3


def measure(effort: Effort, say: Say) -> Data:
    """Milliseconds by state, setting and difference of the rates: medians of interleaved rounds."""
    rounds = round(WORK * busy_rounds())
    latency = {}
    for state in STATES:
        operator = listing_4_2(state)
        taken: dict[str, list[list[float]]] = {s: [[] for _ in DIFFERENCES] for s in SETTINGS}
        for number in range(effort.times(ROUNDS)):
            say(f"state of {state}, round {number + 1}")
            for place, difference in enumerate(DIFFERENCES):
                for setting in SETTINGS:
                    mean = mean_latency(
                        operator,
                        setting,
                        lambda generator: {"value": int(generator.integers(2**62)), "work": 0},
                        RATE,
                        difference,
                        SECONDS,
                        rounds,
                        seed=100 * number + place,
                    )
                    taken[setting][place].append(1000 * mean)
        latency[str(state)] = {
            setting: [statistics.median(means) for means in places]
            for setting, places in taken.items()
        }
    return {"differences": list(DIFFERENCES), "milliseconds": latency}


def draw(data: Data) -> Figure:
    figure = Figure(figsize=(10, 4), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    for axes, state in zip(panels, STATES, strict=True):
        for setting, curve in data["milliseconds"][str(state)].items():
            colour = COLOURS.get(setting, "#555555")
            percent = [100 * difference for difference in data["differences"]]
            axes.plot(percent, curve, "o-", label=setting, color=colour)
        axes.set_title(f"state of {state}")
        axes.set_xlabel("source A sends so many percent more than B")
        axes.set_ylim(bottom=0)
    panels[0].set_ylabel("milliseconds from arrival to commit, mean")
    panels[0].legend()
    return figure


def judge(data: Data) -> list[Finding]:
    findings = []
    for state in STATES:
        curves = data["milliseconds"][str(state)]
        for protocol in ("value", "eager"):
            pairs = [
                (100 * d, waited, ahead)
                for d, waited, ahead in zip(
                    data["differences"], curves["no speculation"], curves[protocol], strict=True
                )
                if d >= 1
            ]
            findings.append(
                Finding(
                    f"from 100 % on speculation is below ({protocol}, state of {state})",
                    ", ".join(f"{d:.0f} %: {a:.2f} against {w:.2f} ms" for d, w, a in pairs),
                    all(ahead < waited for _, waited, ahead in pairs),
                )
            )
    return findings


EXPERIMENT = Experiment(
    name="figure_4_15",
    title="Figure 4.15: latency out of order",
    claim=(
        "With equal rates the operator can hardly keep up, and latency peaks; elsewhere events "
        "that have run ahead of their turn are committed sooner."
    ),
    measure=measure,
    draw=draw,
    judge=judge,
    notes="One thread; source A sends 1000 events a second, each takes 0.47 ms.",
)
