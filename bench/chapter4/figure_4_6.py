"""Figure 4.6: what a transaction consists of, by its size."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure

from bench.chapter4.experiment import Data, Effort, Experiment, Finding, Say
from bench.chapter4.lab import TRANSACTIONAL, opened_all, random_words
from bench.chapter4.margin import Quartiles, above, quartiles
from specstream.figures.palette import SPARE
from specstream.figures.style import in_style, legend, new_figure, plain_ticks, plot_line

SIZES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
ONE, MOST = str(SIZES[0]), str(SIZES[-1])
ACCESSES_IN_ALL = 8_000
# The control of the allocations needs no more to be seen.
MOST_ANEW = 2_000
ROUNDS = 21
PHASES = ("create", "access", "commit")
PHASE_LOOKS = dict(zip(PHASES, SPARE, strict=False))
MEMORY = {"reused": "memory used again", "anew": "memory allocated anew"}

Phases = Mapping[str, Quartiles]


def measure(effort: Effort, say: Say) -> Data:
    """Nanoseconds of each phase, by memory, protocol and number of increments of random words."""
    taken: dict[str, dict[str, dict[int, dict[str, list[float]]]]] = {
        m: {p: {s: {x: [] for x in PHASES} for s in SIZES} for p in TRANSACTIONAL} for m in MEMORY
    }
    cached: dict[str, dict[str, list[float]]] = {p: {x: [] for x in PHASES} for p in TRANSACTIONAL}
    with opened_all(TRANSACTIONAL) as labs:
        for number in range(effort.times(ROUNDS, 3)):
            say(f"round {number + 1}")
            for size in SIZES:
                for protocol in TRANSACTIONAL:
                    for memory in MEMORY:
                        batches = max(effort.times(ACCESSES_IN_ALL) // size, 10)
                        if memory == "anew":
                            batches = min(batches, MOST_ANEW)
                        words = random_words(size, batches)
                        phases = labs[protocol].phases(
                            "increment", words, size, anew=memory == "anew"
                        )
                        for phase in PHASES:
                            taken[memory][protocol][size][phase].append(phases[phase])
            for protocol in TRANSACTIONAL:
                phases = labs[protocol].phases(
                    "increment", random_words(1, MOST_ANEW), 1, fetched=True, anew=True
                )
                for phase in PHASES:
                    cached[protocol][phase].append(phases[phase])
    return {
        "cached": {
            protocol: {phase: quartiles(took) for phase, took in phases.items()}
            for protocol, phases in cached.items()
        },
        "nanoseconds": {
            memory: {
                protocol: {
                    str(size): {phase: quartiles(took) for phase, took in phases.items()}
                    for size, phases in sizes.items()
                }
                for protocol, sizes in protocols.items()
            }
            for memory, protocols in taken.items()
        },
    }


def _share(phases: Phases, phase: str) -> float:
    """Of the medians; what is shorter than the clock can tell takes nothing."""
    return max(phases[phase][1], 0.0) / sum(max(took[1], 0.0) for took in phases.values())


@in_style
def draw(data: Data) -> Figure:
    figure, panels = new_figure("", 8.2, 3, 2, sharex=True, sharey="row")
    for column, protocol in zip(panels.T, TRANSACTIONAL, strict=True):
        absolute, *shares = column
        sizes = data["nanoseconds"]["reused"][protocol]
        for phase in PHASES:
            durations = [max(sizes[str(size)][phase][1], 1) / 1000 for size in SIZES]
            plot_line(absolute, SIZES, durations, phase, PHASE_LOOKS[phase])
        for line in absolute.lines:
            line.set_clip_on(False)  # the shares below begin and end with the axis
        absolute.set_xscale("log")
        absolute.set_yscale("log")
        absolute.set_title(protocol)
        absolute.grid(axis="y")
        for share, (memory, words) in zip(shares, MEMORY.items(), strict=True):
            sizes = data["nanoseconds"][memory][protocol]
            stacked = [
                [100 * _share(sizes[str(size)], phase) for size in SIZES] for phase in PHASES
            ]
            colours = [PHASE_LOOKS[phase].colour for phase in PHASES]
            share.stackplot(SIZES, stacked, labels=PHASES, colors=colours)
            share.set_title(f"{protocol}, {words}")
            share.set_ylim(0, 100)
            share.set_xlim(SIZES[0], SIZES[-1])
            plain_ticks(share.xaxis, [1, 10, 100, 1000])
        shares[-1].set_xlabel("accesses in the transaction")
    plain_ticks(panels[0, 0].yaxis)
    panels[0, 0].set_ylabel("time of the phase (µs)")
    for share in panels[1:, 0]:
        share.set_ylabel("share of the time (%)")
    legend(figure, PHASES, PHASE_LOOKS)
    return figure


def _told(phases: Phases) -> str:
    return ", ".join(f"{phase} {phases[phase][1]:.0f} ns" for phase in PHASES)


def _dominates(phases: Phases) -> bool:
    return all(above(phases["create"], phases[phase]) for phase in PHASES if phase != "create")


def _why_creation_does_not_dominate(
    restored: Phases, cached: Mapping[str, Phases], protocol: str
) -> str:
    """With the memory of the text, then with the word in the cache, then with its record there."""
    told = (
        "descriptor and logs are used again here; allocated anew for each transaction, as in the "
        f"text: {_told(restored)}, "
    )
    if _dominates(restored):
        return f"{told}and creation dominates."
    told += (
        "and creation still does not dominate; where the word is in the cache as well, as one of "
        f"512 MB seldom is: {_told(cached[protocol])}, "
    )
    if _dominates(cached[protocol]):
        return f"{told}and it does."
    access, bare = cached[protocol]["access"], cached["value"]["access"]
    if protocol == "eager" and access[0] > 2 * bare[2]:
        return (
            f"{told}and it does not, as the word's entry of the lock array is not there: `value`, "
            f"which has no lock array, takes {bare[1]:.0f} ns for that access (Figure 4.5 has "
            "`eager` with one that fits into the cache)."
        )
    return f"{told}not explained."


def _creation_dominates(data: Data, protocol: str) -> Finding:
    one, restored = (data["nanoseconds"][memory][protocol][ONE] for memory in MEMORY)
    return Finding(
        f"creation dominates small transactions (one access, {protocol})",
        _told(one),
        _dominates(one),
        _why_creation_does_not_dominate(restored, data["cached"], protocol),
    )


def _allocations_are_the_reason(data: Data, protocol: str) -> Finding:
    one, restored = (data["nanoseconds"][memory][protocol][ONE]["create"] for memory in MEMORY)
    return Finding(
        f"creation is dear because of allocations and of collecting them ({protocol})",
        f"{restored[1]:.0f} ns with them, {one[1]:.0f} without",
        above(restored, one),
        "allocating and collecting blocks of the same sizes takes no longer than what the rounds "
        f"differ: {restored[0]:.0f} to {restored[2]:.0f} ns.",
    )


def _accesses_take_over(data: Data, protocol: str, memory: str) -> Finding:
    first, last = (data["nanoseconds"][memory][protocol][size] for size in (ONE, MOST))
    small, large = (_share(phases, "create") for phases in (first, last))
    return Finding(
        f"with size the accesses take over ({protocol}, {MEMORY[memory]})",
        f"creation {small:.1%} of one access, {large:.1%} of {MOST}; there the accesses "
        f"{_share(last, 'access'):.0%}",
        large < small / 2 and above(last["access"], last["create"]),
        f"of {MOST} accesses: {_told(last)}; of one: {_told(first)}: not explained.",
    )


def _fixed_cost_is_small(data: Data, protocol: str) -> Finding:
    create, commit = (
        data["nanoseconds"]["reused"][protocol][ONE][phase] for phase in ("create", "commit")
    )
    return Finding(
        f"creation and commit of one access below half a microsecond ({protocol}; ours)",
        f"{create[1] + commit[1]:.0f} ns",
        create[2] + commit[2] < 500,
        f"third quartiles: create {create[2]:.0f}, commit {commit[2]:.0f} ns: not explained.",
    )


def judge(data: Data) -> list[Finding]:
    findings = []
    for protocol in TRANSACTIONAL:
        findings += [
            _creation_dominates(data, protocol),
            _allocations_are_the_reason(data, protocol),
            *(_accesses_take_over(data, protocol, memory) for memory in MEMORY),
            _fixed_cost_is_small(data, protocol),
        ]
    return findings


EXPERIMENT = Experiment(
    name="figure_4_6",
    section="4.5.1",
    title="Figure 4.6: phases of a transaction",
    claim=(
        "Creation dominates small transactions, because descriptor and logs are allocated anew "
        "and garbage is collected; with size the accesses take over."
    ),
    measure=measure,
    draw=draw,
    judge=judge,
    definitions={
        "create": "from asking for a transaction to its first access",
        "access": "all its accesses: increments of random words of 512 MB",
        "commit": "taking the turn, validating, publishing, giving the turn back",
        "time of the phase": "µs, mean of the transactions of a round, median of the rounds",
        "share of the time": "%, of the three phases together",
        "memory used again": "as the runtime does it: descriptors and logs live as long as a job",
        "memory allocated anew": (
            "the control: blocks as large for each transaction, freed 64 transactions at a time; "
            "both are counted as creation"
        ),
    },
    notes="One thread.",
)
