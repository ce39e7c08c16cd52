"""Figure 4.11: what it costs to abort a transaction."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from bench.chapter4.experiment import Data, Effort, Experiment, Finding, Say
from bench.chapter4.lab import CONTROLS, TRANSACTIONAL, opened_all, random_words
from bench.chapter4.margin import above, quartiles
from specstream.figures.palette import SPARE
from specstream.figures.style import (
    bars_height,
    draw_bars,
    from_zero,
    in_style,
    legend,
    new_figure,
    plot_line,
)

SIZES = (1, 10, 25, 50, 100, 200, 400, 700, 1000)
BATCHES = 40
ROUNDS = 31
READS, ONE_WORD, DISTINCT = "reads", "writes of one word", "writes of distinct words"
# The control: the same reads beside the transaction, which leave it nothing to give up.
OUTSIDE = "reads outside of it"
PATTERNS = (READS, ONE_WORD, DISTINCT)
LOOKS = dict(zip((*PATTERNS, OUTSIDE), SPARE, strict=False))
LOCK_ARRAY = CONTROLS[2]
# Nanoseconds per access: less is no growth.
NOTHING = 0.1


def measure(effort: Effort, say: Say) -> Data:
    """Nanoseconds of an abort, by protocol, pattern and number of accesses, and its growth."""
    batches = effort.times(BATCHES, 10)
    rounds = effort.times(ROUNDS, 3)
    names = (*PATTERNS, OUTSIDE)
    taken: dict[str, dict[str, dict[int, list[float]]]] = {
        p: {x: {s: [] for s in SIZES} for x in names} for p in TRANSACTIONAL
    }
    swaps = []
    with opened_all((*TRANSACTIONAL, LOCK_ARRAY)) as labs:
        for number in range(rounds):
            say(f"round {number + 1}")
            for size in SIZES:
                words = random_words(size, batches)
                same = np.full(size * batches, 777, np.uint32)
                for pattern, access, which in (
                    (READS, "read", words),
                    (ONE_WORD, "write", same),
                    (DISTINCT, "write", words),
                    (OUTSIDE, "read", words),
                ):
                    for protocol in TRANSACTIONAL:
                        took = labs[protocol].undo(access, which, size, pattern == OUTSIDE)
                        taken[protocol][pattern][size].append(took)
            swaps.append(labs[LOCK_ARRAY].swaps(random_words(SIZES[-1], batches), SIZES[-1]))
    return {
        "nanoseconds": {
            protocol: {
                pattern: {str(size): quartiles(took) for size, took in sizes.items()}
                for pattern, sizes in patterns.items()
            }
            for protocol, patterns in taken.items()
        },
        "slopes": {
            protocol: {pattern: _slopes(sizes, rounds) for pattern, sizes in patterns.items()}
            for protocol, patterns in taken.items()
        },
        "swap": quartiles(swaps),
    }


def _slopes(sizes: dict[int, list[float]], rounds: int) -> list[float]:
    """Nanoseconds of an abort per access made, round by round."""
    return quartiles(
        [float(np.polyfit(SIZES, [sizes[s][n] for s in SIZES], 1)[0]) for n in range(rounds)]
    )


@in_style
def draw(data: Data) -> Figure:
    bars = bars_height(len(TRANSACTIONAL), len(PATTERNS))
    figure, _ = new_figure("", 4.4 + bars)
    figure.clear()
    # One scale for both protocols: only so their slopes can be compared.
    axes: dict[str, Any] = figure.subplot_mosaic(
        [[*TRANSACTIONAL], ["growth", "growth"]], height_ratios=[2.6, bars]
    )
    axes["eager"].sharey(axes["value"])
    for protocol in TRANSACTIONAL:
        for pattern in PATTERNS:
            costs = data["nanoseconds"][protocol][pattern]
            took = [costs[str(size)][1] / 1000 for size in SIZES]
            plot_line(axes[protocol], SIZES, took, pattern, LOOKS[pattern])
        axes[protocol].set_title(protocol)
        axes[protocol].set_xlabel("accesses in the transaction")
        axes[protocol].grid(axis="y")
    from_zero([axes[protocol] for protocol in TRANSACTIONAL])
    axes["value"].set_ylabel("time of the abort (µs)")
    groups = {
        # An abort that does not grow has slopes on both sides of nothing.
        protocol: {
            pattern: tuple(max(slope, 0.0) for slope in data["slopes"][protocol][pattern])
            for pattern in PATTERNS
        }
        for protocol in TRANSACTIONAL
    }
    draw_bars(axes["growth"], groups, "{:.2f}", LOOKS, room=1.1)
    axes["growth"].set_xlabel("growth of the abort per access (ns)")
    legend(figure, PATTERNS, LOOKS)
    return figure


def _flat(data: Data, protocol: str, pattern: str) -> Finding:
    slope, outside = (data["slopes"][protocol][of] for of in (pattern, OUTSIDE))
    because = f"{slope[1]:.3f} ns for each of the {pattern}: "
    if pattern == READS and not above(slope, outside):
        because += (
            f"the same reads outside of the transaction let its abort grow by {outside[1]:.3f} ns "
            "each: it is not what is given up."
        )
    elif pattern == READS:
        because += f"outside of the transaction they cost {outside[1]:.3f} ns each: not explained."
    else:
        because += "not explained."
    return Finding(
        f"it does not grow with {pattern} ({protocol})",
        f"{slope[1]:.3f} ns each",
        slope[2] < NOTHING,
        because,
    )


def judge(data: Data) -> list[Finding]:
    distinct, swap = data["slopes"]["eager"][DISTINCT], data["swap"]
    ratio = distinct[1] / swap[1]
    return [
        Finding(
            "the cost grows with distinct writes (eager)",
            f"{distinct[1]:.2f} ns each (quartiles {distinct[0]:.2f} to {distinct[2]:.2f})",
            distinct[0] > 10 * NOTHING,
            f"a bare exchange of an entry takes {swap[1]:.2f} ns: not explained.",
        ),
        _flat(data, "eager", READS),
        _flat(data, "eager", ONE_WORD),
        *(_flat(data, "value", pattern) for pattern in PATTERNS),
        Finding(
            "because of one atomic write for each word: within twice of that alone (eager)",
            f"{distinct[1]:.2f} ns each; a bare exchange of such an entry {swap[1]:.2f} ns",
            0.5 < ratio < 2,
            f"{ratio:.2f} times the bare exchange, so the atomic write explains "
            f"{min(1 / ratio, 1):.0%} of it; the rest, which reads the log of what is locked, is "
            "not taken apart.",
        ),
    ]


EXPERIMENT = Experiment(
    name="figure_4_11",
    section="4.5.2",
    title="Figure 4.11: cost of an abort",
    claim=(
        "It grows with the number of distinct words written, as each has an entry of the lock "
        "array to give back by an atomic write; not with reads, and not with writes of one word."
    ),
    measure=measure,
    draw=draw,
    judge=judge,
    definitions={
        "accesses in the transaction": "made before it is aborted, to words of 512 MB",
        "writes of one word": "all writes go to the same word",
        "writes of distinct words": "each write goes to a random word of its own",
        "time of the abort": (
            "µs, from the end of the last access until logs and locks are given up; median of the "
            "rounds; both protocols at one scale"
        ),
        "growth of the abort per access": (
            "ns, the slope of a straight line through all sizes; median of the rounds' slopes, "
            "with quartiles"
        ),
    },
    notes=(
        "`value` owns nothing before it commits: to abort is to forget. An abort *does not grow* "
        f"where the third quartile of its slopes is below {NOTHING} ns. Controls, not in the "
        "picture: the same reads outside of the transaction; a bare exchange of entries of a lock "
        "array."
    ),
)
