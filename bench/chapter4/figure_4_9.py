"""Figure 4.9: an access to words that another core has written meanwhile."""

from __future__ import annotations

import statistics

from matplotlib.figure import Figure

from bench.chapter4.experiment import COLOURS, Data, Effort, Experiment, Finding, Say
from bench.chapter4.lab import METHODS, opened, random_words

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


def draw(data: Data) -> Figure:
    figure = Figure(figsize=(10, 4), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    width = 0.8 / len(METHODS)
    for axes, kind in zip(panels, KINDS, strict=True):
        for place, method in enumerate(METHODS):
            costs = [data["nanoseconds"][kind][pattern][method] for pattern in PATTERNS]
            at = [x + (place - (len(METHODS) - 1) / 2) * width for x in range(len(PATTERNS))]
            bars = axes.bar(at, costs, width, label=method, color=COLOURS[method])
            axes.bar_label(bars, [f"{cost:.0f}" for cost in costs], fontsize=7)
        axes.set_xticks(range(len(PATTERNS)), PATTERNS)
        axes.set_title(f"{kind}s of the first thread")
    panels[0].set_ylabel("nanoseconds per access")
    panels[0].legend(fontsize=8)
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
