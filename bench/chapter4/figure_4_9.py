"""Figure 4.9: an access to words that another core has written meanwhile."""

from __future__ import annotations

import statistics

from matplotlib.figure import Figure

from bench.chapter4.experiment import Data, Effort, Experiment, Finding, Say
from bench.chapter4.lab import METHODS, opened, random_words
from specstream.figures.style import bars_height, draw_bars, in_style, legend, new_figure

SET = 100
BATCHES = 60
ROUNDS = 7
PATTERNS = {"no interference": 0, "other core": SET}
KINDS = ("write", "read")


def measure(effort: Effort, say: Say) -> Data:
    """Nanoseconds per access when the first thread comes back to its set of words."""
    batches = effort.times(BATCHES, 5)
    taken: dict[str, dict[str, dict[str, list[float]]]] = {
        kind: {pattern: {method: [] for method in METHODS} for pattern in PATTERNS}
        for kind in KINDS
    }
    for number in range(effort.times(ROUNDS, 2)):
        say(f"round {number + 1}")
        for method in METHODS:
            with opened(method) as lab:
                for kind in KINDS:
                    for pattern, changed in PATTERNS.items():
                        took = lab.interference(kind, random_words(SET, batches), SET, changed)
                        taken[kind][pattern][method].append(took)
    return {
        "nanoseconds": {
            kind: {
                pattern: {method: statistics.median(took) for method, took in methods.items()}
                for pattern, methods in patterns.items()
            }
            for kind, patterns in taken.items()
        }
    }


@in_style
def draw(data: Data) -> Figure:
    figure, panels = new_figure(
        "", 1.5 + bars_height(len(PATTERNS), len(METHODS)), columns=2, sharex=True
    )
    for axes, kind in zip(panels[0], KINDS, strict=True):
        draw_bars(axes, {p: data["nanoseconds"][kind][p] for p in PATTERNS}, "{:.0f}")
        axes.set_title(f"{kind}s of the first thread")
        axes.set_xlabel("time per access (ns)")
    legend(figure, METHODS, bars=True)
    return figure


def judge(data: Data) -> list[Finding]:
    findings = []
    for kind in KINDS:
        alone, disturbed = (data["nanoseconds"][kind][pattern] for pattern in PATTERNS)
        findings.append(
            Finding(
                f"what another core has written is dearer to come back to ({kind}s)",
                ", ".join(f"{m} {alone[m]:.0f} -> {disturbed[m]:.0f} ns" for m in METHODS),
                all(disturbed[method] > alone[method] for method in METHODS),
            )
        )
        lock = max(disturbed["mutex"], disturbed["spin lock"])
        findings.append(
            Finding(
                f"under interference value is cheaper than a lock ({kind}s)",
                f"{disturbed['value']:.0f} ns against {lock:.0f} ns",
                disturbed["value"] < lock,
            )
        )
    return findings


EXPERIMENT = Experiment(
    name="figure_4_9",
    title="Figure 4.9: access under interference",
    claim=(
        "What another core has written costs more to access again; accesses of the STM are then "
        "sometimes cheaper than those under a lock, whose word has moved as well."
    ),
    measure=measure,
    draw=draw,
    judge=judge,
    notes=(
        "Two cores: there are the two patterns that such a machine has. The second thread "
        "increments the same hundred words, in an earlier transaction that commits."
    ),
)
