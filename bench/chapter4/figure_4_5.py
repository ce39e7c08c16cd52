"""Figure 4.5: what one access costs, by how it is protected; one thread, 512 MB of state."""

from __future__ import annotations

import statistics

import numpy as np
from matplotlib.figure import Figure

from bench.chapter4.experiment import Data, Effort, Experiment, Finding, Say
from bench.chapter4.lab import METHODS, TRANSACTIONAL, opened, random_words
from specstream.figures.style import bars_height, draw_bars, in_style, legend, new_figure

BATCH = 100
BATCHES = 400
ROUNDS = 9
PATTERNS = ("read, same", "increment, same", "read, random", "increment, random")


def measure(effort: Effort, say: Say) -> Data:
    """Nanoseconds per access: medians of rounds in which all methods take turns."""
    batches = effort.times(BATCHES, 20)
    same = np.full(BATCH * batches, 12_345, np.uint32)
    taken: dict[str, dict[str, list[float]]] = {m: {p: [] for p in PATTERNS} for m in METHODS}
    for number in range(effort.times(ROUNDS, 2)):
        say(f"round {number + 1}")
        for method in METHODS:
            with opened(method) as lab:
                for pattern in PATTERNS:
                    access, _, where = pattern.partition(", ")
                    words = same if where == "same" else random_words(BATCH, batches)
                    phases = lab.phases(access, words, BATCH)
                    taken[method][pattern].append(phases["access"] / BATCH)
    return {
        "nanoseconds": {
            method: {pattern: statistics.median(took) for pattern, took in patterns.items()}
            for method, patterns in taken.items()
        }
    }


@in_style
def draw(data: Data) -> Figure:
    figure, panels = new_figure(
        "Mean cost of one access, one thread, 512 MB of state",
        1.4 + bars_height(len(PATTERNS), len(METHODS)),
    )
    axes = panels[0, 0]
    groups = {p: {m: data["nanoseconds"][m][p] for m in METHODS} for p in PATTERNS}
    draw_bars(axes, groups, "{:.0f}", room=1.1)
    axes.set_xlabel("time per access (ns)")
    legend(figure, METHODS, bars=True)
    return figure


def judge(data: Data) -> list[Finding]:
    costs = data["nanoseconds"]
    findings = []
    for pattern in PATTERNS:
        dearest = max(costs[method][pattern] for method in TRANSACTIONAL)
        bare = max(costs[method][pattern] for method in ("none", "atomic"))
        findings.append(
            Finding(
                f"the dearest protocol costs more than a bare or an atomic access ({pattern})",
                f"{dearest:.0f} ns against {bare:.0f} ns",
                dearest > bare,
            )
        )
    for access in ("read", "increment"):
        near, far = f"{access}, same", f"{access}, random"
        findings.append(
            Finding(
                f"random positions are dearer for every method ({access})",
                ", ".join(f"{m} {costs[m][near]:.0f} -> {costs[m][far]:.0f} ns" for m in METHODS),
                all(costs[method][far] > costs[method][near] for method in METHODS),
            )
        )
    worst = max(costs["value"][pattern] / costs["none"][pattern] for pattern in PATTERNS[2:])
    findings.append(
        Finding(
            "protocol value stays within three times of no protection at random positions",
            f"{worst:.2f} times",
            worst < 3,
        )
    )
    return findings


EXPERIMENT = Experiment(
    name="figure_4_5",
    title="Figure 4.5: mean cost of one access",
    claim=(
        "Accesses through the STM are by far the dearest; random positions are the worst, as the "
        "entry of the lock array is not cached either."
    ),
    measure=measure,
    draw=draw,
    judge=judge,
    notes=(
        "The accesses alone, in batches of 100, without creation and commit of the transaction. "
        "`value` has no lock array: a random access misses the cache once, for the word itself."
    ),
)
