"""Figure 4.20: latency out of order of the two ready operators."""

from __future__ import annotations

import statistics

from matplotlib.figure import Figure

from bench.chapter4.experiment import COLOURS, Data, Effort, Experiment, Finding, Say
from bench.chapter4.paced_sources import DIFFERENCES, SETTINGS, mean_latency
from bench.chapter4.ready import READY
from bench.chapter4.slowed import busy_rounds

RATE = 1000.0
# Nearest neighbours took 0.73 ms on the slower machine of the text, where its panel comes from; an
# event of both sources together has half a millisecond here.
WORK = {"top-k": 0.0, "nearest neighbours": 0.45e-3}
SECONDS = 0.5
ROUNDS = 3


def measure(effort: Effort, say: Say) -> Data:
    """Milliseconds by operator, setting and difference of the rates."""
    latency = {}
    for ready in READY:
        rounds = round(WORK[ready.name] * busy_rounds())
        taken: dict[str, list[list[float]]] = {s: [[] for _ in DIFFERENCES] for s in SETTINGS}
        for number in range(effort.times(ROUNDS)):
            say(f"{ready.name}, round {number + 1}")
            for place, difference in enumerate(DIFFERENCES):
                for setting in SETTINGS:
                    mean = mean_latency(
                        ready.operator(),
                        setting,
                        ready.values,
                        RATE,
                        difference,
                        SECONDS,
                        rounds,
                        seed=100 * number + place,
                    )
                    taken[setting][place].append(1000 * mean)
        latency[ready.name] = {
            setting: [statistics.median(means) for means in places]
            for setting, places in taken.items()
        }
    return {"differences": list(DIFFERENCES), "milliseconds": latency}


def draw(data: Data) -> Figure:
    figure = Figure(figsize=(10, 4), layout="constrained")
    panels = figure.subplots(1, 2)
    for axes, ready in zip(panels, READY, strict=True):
        percent = [100 * difference for difference in data["differences"]]
        for setting, curve in data["milliseconds"][ready.name].items():
            colour = COLOURS.get(setting, "#555555")
            axes.plot(percent, curve, "o-", label=setting, color=colour)
        axes.set_title(ready.name)
        axes.set_xlabel("source A sends so many percent more than B")
        axes.set_ylim(bottom=0)
    panels[0].set_ylabel("milliseconds from arrival to commit, mean")
    panels[0].legend()
    return figure


def judge(data: Data) -> list[Finding]:
    findings = []
    top, near = (data["milliseconds"][ready.name] for ready in READY)
    for protocol in ("value", "eager"):
        gain = [
            1 - ahead / waited
            for waited, ahead in zip(top["no speculation"], top[protocol], strict=True)
        ]
        findings.append(
            Finding(
                f"top-k is too cheap for a gain ({protocol})",
                f"{statistics.fmean(gain):+.1%} on the mean",
                statistics.fmean(gain) < 0.1,
            )
        )
        pairs = [
            (100 * d, waited, ahead)
            for d, waited, ahead in zip(
                data["differences"], near["no speculation"], near[protocol], strict=True
            )
            if d >= 1
        ]
        findings.append(
            Finding(
                f"nearest neighbours gain from 100 % on ({protocol})",
                ", ".join(f"{d:.0f} %: {a:.2f} against {w:.2f} ms" for d, w, a in pairs),
                all(ahead < waited for _, waited, ahead in pairs),
            )
        )
    return findings


EXPERIMENT = Experiment(
    name="figure_4_20",
    title="Figure 4.20: latency out of order of the ready operators",
    claim=(
        "For top-k the overhead masks the gain of running early; for nearest neighbours, where an "
        "event takes longer, there is a gain as in Figure 4.15."
    ),
    measure=measure,
    draw=draw,
    judge=judge,
    notes=(
        "One thread, two sources. Top-k as compiled here, far below a microsecond; nearest "
        "neighbours with the length that it had on the slower machine of the text, within what the "
        "rate leaves."
    ),
)
