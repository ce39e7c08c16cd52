"""Figure 4.12: what an abort and the second run cost, relative to the first."""

from __future__ import annotations

import statistics
from dataclasses import replace

from matplotlib.figure import Figure

from bench.chapter4.experiment import Data, Effort, Experiment, Finding, Say
from bench.chapter4.lab import TRANSACTIONAL, opened, random_words
from specstream.figures.palette import look
from specstream.figures.style import from_zero, in_style, legend, line_at, new_figure, plot_line

SIZES = (100, 200, 300, 500, 700, 1000)
CHANGED = (1, 100)
BATCHES = 40
ROUNDS = 7


def measure(effort: Effort, say: Say) -> Data:
    """(T_total - T_first) / T_first by protocol, words changed and words read."""
    batches = effort.times(BATCHES, 5)
    taken: dict[str, dict[int, dict[int, list[float]]]] = {
        p: {c: {s: [] for s in SIZES} for c in CHANGED} for p in TRANSACTIONAL
    }
    for number in range(effort.times(ROUNDS, 2)):
        say(f"round {number + 1}")
        for protocol in TRANSACTIONAL:
            with opened(protocol) as lab:
                for size in SIZES:
                    for changed in CHANGED:
                        words = random_words(size, batches)
                        run = lab.rerun("read", words, size, changed)
                        overhead = (run["abort"] + run["again"]) / run["first"]
                        taken[protocol][changed][size].append(overhead)
    return {
        "overhead": {
            protocol: {
                str(changed): {str(size): statistics.median(o) for size, o in sizes.items()}
                for changed, sizes in patterns.items()
            }
            for protocol, patterns in taken.items()
        }
    }


@in_style
def draw(data: Data) -> Figure:
    figure, panels = new_figure("Abort and second run", 4.0)
    axes = panels[0, 0]
    looks = {}
    for protocol in TRANSACTIONAL:
        own = look(protocol)
        for changed, other in zip(CHANGED, (own, replace(own, line=":", marker="X")), strict=True):
            name = f"{protocol}, {changed} changed"
            looks[name] = other
            overheads = data["overhead"][protocol][str(changed)]
            plot_line(axes, SIZES, [100 * overheads[str(size)] for size in SIZES], name, other)
    line_at(axes, 100)
    axes.grid(axis="y")
    axes.set_xlabel("words read")
    axes.set_ylabel("time, first run = 100 %")
    from_zero([axes])
    legend(figure, looks, looks)
    return figure


def judge(data: Data) -> list[Finding]:
    findings = []
    for protocol in TRANSACTIONAL:
        one, many = (
            statistics.fmean(data["overhead"][protocol][str(changed)].values())
            for changed in CHANGED
        )
        findings.append(
            Finding(
                f"one changed word costs far below a whole run ({protocol})",
                f"{one:.0%} of the first run; {many:.0%} where a hundred have changed",
                one < 0.8,
            )
        )
    return findings


EXPERIMENT = Experiment(
    name="figure_4_12",
    title="Figure 4.12: overhead of an abort and a second run",
    claim=(
        "With one changed word far below 100 %: the second run finds its data in the cache. More "
        "changed words cost more."
    ),
    measure=measure,
    draw=draw,
    judge=judge,
    notes="Reads of random words of 512 MB; the earlier transaction runs on the other core.",
)
