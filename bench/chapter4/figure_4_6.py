"""Figure 4.6: what a transaction consists of, by its size."""

from __future__ import annotations

import statistics

from matplotlib.figure import Figure

from bench.chapter4.experiment import Data, Effort, Experiment, Finding, Say
from bench.chapter4.lab import TRANSACTIONAL, opened, random_words
from specstream.figures.palette import SPARE
from specstream.figures.style import in_style, legend, new_figure, plain_ticks, plot_line

SIZES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
ACCESSES_IN_ALL = 20_000
ROUNDS = 7
PHASES = ("create", "access", "commit")
PHASE_LOOKS = dict(zip(PHASES, SPARE, strict=False))


def measure(effort: Effort, say: Say) -> Data:
    """Nanoseconds of each phase, by protocol and number of increments of random words."""
    taken: dict[str, dict[int, dict[str, list[float]]]] = {
        p: {s: {x: [] for x in PHASES} for s in SIZES} for p in TRANSACTIONAL
    }
    for number in range(effort.times(ROUNDS, 2)):
        say(f"round {number + 1}")
        for protocol in TRANSACTIONAL:
            with opened(protocol) as lab:
                for size in SIZES:
                    batches = max(effort.times(ACCESSES_IN_ALL) // size, 10)
                    phases = lab.phases("increment", random_words(size, batches), size)
                    for phase in PHASES:
                        taken[protocol][size][phase].append(phases[phase])
    return {
        "nanoseconds": {
            protocol: {
                str(size): {phase: statistics.median(took) for phase, took in phases.items()}
                for size, phases in sizes.items()
            }
            for protocol, sizes in taken.items()
        }
    }


def _share(phases: dict[str, float], phase: str) -> float:
    return max(phases[phase], 0.0) / sum(max(took, 0.0) for took in phases.values())


@in_style
def draw(data: Data) -> Figure:
    figure, panels = new_figure("", 5.6, 2, 2, sharex=True, sharey="row")
    for column, protocol in zip(panels.T, TRANSACTIONAL, strict=True):
        sizes = data["nanoseconds"][protocol]
        absolute, share = column
        for phase in PHASES:
            durations = [max(sizes[str(size)][phase], 1) / 1000 for size in SIZES]
            plot_line(absolute, SIZES, durations, phase, PHASE_LOOKS[phase])
        absolute.set_xscale("log")
        absolute.set_yscale("log")
        shares = [[100 * _share(sizes[str(size)], phase) for size in SIZES] for phase in PHASES]
        share.stackplot(
            SIZES, shares, labels=PHASES, colors=[PHASE_LOOKS[phase].colour for phase in PHASES]
        )
        share.set_ylim(0, 100)
        share.set_xlim(SIZES[0], SIZES[-1])
        plain_ticks(share.xaxis, [1, 10, 100, 1000])
        absolute.set_title(protocol)
        share.set_xlabel("accesses in the transaction")
        absolute.grid(axis="y")
    plain_ticks(panels[0, 0].yaxis)
    panels[0, 0].set_ylabel("time of the phase (µs)")
    panels[1, 0].set_ylabel("share of the time (%)")
    legend(figure, PHASES, PHASE_LOOKS)
    return figure


def judge(data: Data) -> list[Finding]:
    findings = []
    for protocol in TRANSACTIONAL:
        sizes = data["nanoseconds"][protocol]
        small, large = (_share(sizes[str(size)], "create") for size in (SIZES[0], SIZES[-1]))
        findings.append(
            Finding(
                f"the share of the creation falls with size ({protocol})",
                f"{small:.0%} of one access, {large:.1%} of {SIZES[-1]}",
                large < small / 5,
            )
        )
    smallest = data["nanoseconds"]["value"]["1"]
    fixed = smallest["create"] + smallest["commit"]
    findings.append(
        Finding(
            "creation and commit of a small transaction take less than half a microsecond (value)",
            f"{fixed:.0f} ns",
            fixed < 500,
        )
    )
    return findings


EXPERIMENT = Experiment(
    name="figure_4_6",
    title="Figure 4.6: phases of a transaction",
    claim=(
        "Creation dominates small transactions, because descriptor and logs are allocated anew "
        "and garbage is collected; with size the accesses take over."
    ),
    measure=measure,
    draw=draw,
    judge=judge,
    notes=(
        "Descriptors and logs are reused here, so creation is tens of nanoseconds. Creation, "
        "accesses (increments of random words) and commit with the turn taken; one thread."
    ),
)
