"""Figure 4.11: what it costs to abort a transaction."""

from __future__ import annotations

import statistics

import numpy as np
from matplotlib.figure import Figure

from bench.chapter4.experiment import Data, Effort, Experiment, Finding, Say
from bench.chapter4.lab import TRANSACTIONAL, opened, random_words
from specstream.figures.palette import SPARE
from specstream.figures.style import from_zero, in_style, legend, new_figure, plot_line

SIZES = (1, 10, 25, 50, 100, 200, 400, 700, 1000)
BATCHES = 60
ROUNDS = 7
PATTERNS = ("reads", "writes of one word", "writes of distinct words")
LOOKS = dict(zip(PATTERNS, SPARE, strict=False))


def measure(effort: Effort, say: Say) -> Data:
    """Nanoseconds of an abort, by protocol, pattern and number of accesses."""
    batches = effort.times(BATCHES, 10)
    taken: dict[str, dict[str, dict[int, list[float]]]] = {
        p: {x: {s: [] for s in SIZES} for x in PATTERNS} for p in TRANSACTIONAL
    }
    for number in range(effort.times(ROUNDS, 2)):
        say(f"round {number + 1}")
        for protocol in TRANSACTIONAL:
            with opened(protocol) as lab:
                for size in SIZES:
                    words = random_words(size, batches)
                    same = np.full(size * batches, 777, np.uint32)
                    for pattern, access, which in (
                        ("reads", "read", words),
                        ("writes of one word", "write", same),
                        ("writes of distinct words", "write", words),
                    ):
                        taken[protocol][pattern][size].append(lab.undo(access, which, size))
    return {
        "nanoseconds": {
            protocol: {
                pattern: {str(size): statistics.median(took) for size, took in sizes.items()}
                for pattern, sizes in patterns.items()
            }
            for protocol, patterns in taken.items()
        }
    }


def slope(data: Data, protocol: str, pattern: str) -> float:
    """Nanoseconds of an abort per access made."""
    costs = data["nanoseconds"][protocol][pattern]
    return float(np.polyfit(SIZES, [costs[str(size)] for size in SIZES], 1)[0])


@in_style
def draw(data: Data) -> Figure:
    figure, panels = new_figure("", 4.0, columns=2)
    for axes, protocol in zip(panels[0], TRANSACTIONAL, strict=True):
        for pattern in PATTERNS:
            costs = data["nanoseconds"][protocol][pattern]
            plot_line(
                axes, SIZES, [costs[str(size)] / 1000 for size in SIZES], pattern, LOOKS[pattern]
            )
        axes.set_title(protocol)
        axes.set_xlabel("accesses in the transaction")
        axes.grid(axis="y")
    from_zero(panels[0])
    panels[0, 0].set_ylabel("time of the abort (µs)")
    legend(figure, PATTERNS, LOOKS)
    return figure


def judge(data: Data) -> list[Finding]:
    slopes = {pattern: slope(data, "eager", pattern) for pattern in PATTERNS}
    distinct = slopes["writes of distinct words"]
    others = max(slopes["reads"], slopes["writes of one word"])
    value = max(slope(data, "value", pattern) for pattern in PATTERNS)
    return [
        Finding(
            "the cost grows with distinct writes only (eager)",
            ", ".join(f"{pattern} {slopes[pattern]:.2f} ns each" for pattern in PATTERNS),
            distinct > 2 and others < distinct / 5,
        ),
        Finding(
            "an abort of protocol value costs the same whatever the transaction did",
            f"{value:.3f} ns each at most",
            value < 0.2,
        ),
    ]


EXPERIMENT = Experiment(
    name="figure_4_11",
    title="Figure 4.11: cost of an abort",
    claim=(
        "It grows with the number of distinct words written, as each has an entry of the lock "
        "array to give back; not with reads, and not with writes of one word."
    ),
    measure=measure,
    draw=draw,
    judge=judge,
    notes="`value` owns nothing before it commits: to abort is to forget.",
)
