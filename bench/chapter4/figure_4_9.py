"""Figure 4.9: an access to words that another core has written meanwhile."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from matplotlib.figure import Figure

from bench.chapter4.experiment import Data, Effort, Experiment, Finding, Say
from bench.chapter4.lab import (
    CONTROLS,
    METHODS,
    TRANSACTIONAL,
    handover,
    opened_all,
    random_words,
)
from bench.chapter4.margin import Quartiles, above, quartiles
from specstream.figures.style import bars_height, draw_bars, in_style, legend, new_figure

SET = 100
BATCHES = 40
ROUNDS = 31
HANDOVERS = 10_000
# Nanoseconds that a line takes at least between cores with caches of their own; hardware threads
# of one core share the cache next to them.
APART = 30.0
ALONE, OTHER = "no interference", "other core"
PATTERNS = (ALONE, OTHER)
# The control: a single word, written barely (nothing waits for it) and by an atomic addition (which
# ends when the word has come).
LONE = ("none", "atomic")
# The control: the other core writes the words and leaves locks and records where they are.
WORDS_ONLY = "other core, words only"
KINDS = ("write", "read")
LOCKS = ("mutex", "spin lock")
# The control: a word as large as a spin lock, changed by one atomic operation; nothing is acquired.
LOCK_WORD = CONTROLS[1]

Costs = Mapping[str, Mapping[str, Quartiles]]


def measure(effort: Effort, say: Say) -> Data:
    """Nanoseconds per access when the first thread comes back to its set of words."""
    batches = effort.times(BATCHES, 4)
    methods = (*METHODS, LOCK_WORD)
    taken: dict[str, dict[str, dict[str, list[float]]]] = {
        kind: {pattern: {m: [] for m in methods} for pattern in (*PATTERNS, WORDS_ONLY)}
        for kind in KINDS
    }
    between: list[float] = []
    lone: dict[str, dict[str, list[float]]] = {m: {p: [] for p in PATTERNS} for m in LONE}
    with opened_all(methods) as labs:
        for number in range(effort.times(ROUNDS, 3)):
            say(f"round {number + 1}")
            between.append(handover(HANDOVERS))
            for method, patterns_of_one in lone.items():
                for pattern, took_of_one in patterns_of_one.items():
                    changed = 0 if pattern == ALONE else 1
                    words = random_words(1, SET * batches // 10)
                    took_of_one.append(labs[method].interference("write", words, 1, changed))
            for kind in KINDS:
                for pattern, of_methods in taken[kind].items():
                    for method in methods:
                        took = labs[method].interference(
                            kind,
                            random_words(SET, batches),
                            SET,
                            0 if pattern == ALONE else SET,
                            unprotected=pattern == WORDS_ONLY,
                        )
                        of_methods[method].append(took)
    return {
        "handover": quartiles(between),
        "lone": {
            method: {pattern: quartiles(took) for pattern, took in patterns_of_one.items()}
            for method, patterns_of_one in lone.items()
        },
        "nanoseconds": {
            kind: {
                pattern: {method: quartiles(took) for method, took in methods_of.items()}
                for pattern, methods_of in patterns.items()
            }
            for kind, patterns in taken.items()
        },
    }


@in_style
def draw(data: Data) -> Figure:
    figure, panels = new_figure(
        "", 1.5 + bars_height(len(PATTERNS), len(METHODS)), columns=2, sharex=True
    )
    for axes, kind in zip(panels[0], KINDS, strict=True):
        costs = data["nanoseconds"][kind]
        groups = {p: {m: tuple(costs[p][m]) for m in METHODS} for p in PATTERNS}
        draw_bars(axes, groups, "{:.0f}")
        axes.set_title(f"{kind}s of the first thread")
        axes.set_xlabel("time per access (ns)")
    legend(figure, METHODS, bars=True)
    return figure


def _parts(costs: Costs, method: str) -> dict[str, float]:
    """Of the cost under interference: its own, that of the words and that of what protects them."""
    alone, words, all_moved = (costs[p][method][1] for p in (ALONE, WORDS_ONLY, OTHER))
    return {
        "without interference": alone,
        "for words that have moved": words - alone,
        "for locks or records that have moved": all_moved - words,
    }


def _why_not_cheaper(costs: Costs, protocol: str, lock: str) -> str:
    """The part in which the two differ most."""
    mine, its = _parts(costs, protocol), _parts(costs, lock)
    gaps = {part: mine[part] - its[part] for part in mine}
    gap = sum(gaps.values())
    most = max(gaps, key=gaps.__getitem__)
    told = ", ".join(f"{part} {mine[part]:.1f} against {its[part]:.1f} ns" for part in mine)
    if gap <= 0:
        return f"{told}: the medians are in this order, and the rounds differ by more."
    if gaps[most] < gap / 2:
        return f"{told}: no part alone explains it."
    return f"{told}: most of the difference arises {most}."


def _why_flat(data: Data, kind: str) -> str:
    """How long a word takes to come from the other core, by itself and in a set."""
    costs, between = data["nanoseconds"][kind], data["handover"]
    bare, atomic = (data["lone"][method] for method in LONE)
    moved = atomic[OTHER][1] - atomic[ALONE][1]
    told = (
        f"what one core writes the other sees after {between[1]:.0f} ns; a single bare write takes "
        f"{bare[ALONE][1]:.0f} ns without interference and {bare[OTHER][1]:.0f} with it, and a "
        f"single atomic one, which ends when its word has come, {atomic[ALONE][1]:.0f} and "
        f"{atomic[OTHER][1]:.0f}"
    )
    if between[2] < APART:
        return f"{told}: the cores share the cache next to them, so that nothing has to move."
    of_set = SET * (costs[OTHER]["atomic"][1] - costs[ALONE]["atomic"][1])
    told += f". A set of {SET} takes {of_set:.0f} ns longer with atomic {kind}s"
    if not above(atomic[OTHER], atomic[ALONE]):
        return (
            f"{told}. So a word that the other core has written and left alone is there sooner "
            "than one for which both wait: what it wrote has reached a cache that both share "
            "before the first one comes back."
        )
    if of_set < SET * moved / 2:
        return (
            f"{told}, where one at a time would take {SET * moved:.0f}: of a set the words come "
            "many at a time."
        )
    return f"{told}, as much as one word after the other: it is dearer, by less than rounds differ."


def _moved_is_dearer(data: Data, kind: str) -> Finding:
    costs = data["nanoseconds"][kind]
    flat = [m for m in METHODS if not above(costs[OTHER][m], costs[ALONE][m])]
    told = "; ".join(f"{method} {_sum(_parts(costs, method).values())}" for method in flat)
    return Finding(
        f"what another core has written is dearer to come back to ({kind}s)",
        ", ".join(f"{m} {costs[ALONE][m][1]:.0f} -> {costs[OTHER][m][1]:.0f} ns" for m in METHODS),
        not flat,
        f"{_why_flat(data, kind)} Not clearly dearer, in ns without interference, for words that "
        f"have moved, and for locks or records that have: {told}.",
    )


def _sum(parts: Iterable[float]) -> str:
    """Nanoseconds, the first and what is added to it; nothing is below nothing by rounding.

    >>> _sum([1.25, 0.66, -0.01])
    '1.2 + 0.7 + 0.0'
    """
    return re.sub(r"\+ -", "- ", " + ".join(f"{round(part, 1) + 0.0:.1f}" for part in parts))


def _cheaper_than_a_lock(costs: Costs, protocol: str, lock: str, kind: str) -> Finding:
    mine, its = costs[OTHER][protocol], costs[OTHER][lock]
    return Finding(
        f"under interference {protocol} is cheaper than a {lock} ({kind}s)",
        f"{mine[1]:.0f} ns against {its[1]:.0f} ns",
        above(its, mine),
        _why_not_cheaper(costs, protocol, lock),
    )


def _acquiring_is_dearer(costs: Costs, lock: str, kind: str) -> Finding:
    """The text's reason for what it saw."""
    acquired, touched = (costs[OTHER][name] for name in (lock, LOCK_WORD))
    return Finding(
        f"acquiring a {lock} costs more than an atomic operation: the text's reason ({kind}s)",
        f"{acquired[1]:.0f} ns; {touched[1]:.0f} where a word as large as a spin lock is only "
        "added to",
        above(acquired, touched),
        "the reason does not hold for this lock: one atomic operation that acquires nothing takes "
        f"{touched[0]:.1f} to {touched[2]:.1f} ns (quartiles), the lock {acquired[0]:.1f} to "
        f"{acquired[2]:.1f}.",
    )


def _cheaper_somewhere(data: Data, protocol: str) -> Finding:
    cases = [
        f"than a {lock}, {kind}s"
        for kind in KINDS
        for lock in LOCKS
        if above(*(data["nanoseconds"][kind][OTHER][name] for name in (lock, protocol)))
    ]
    return Finding(
        f"in some cases the accesses of the STM are the cheaper ones ({protocol})",
        "; ".join(cases) or "in none",
        bool(cases),
        "see each case above for the parts of its cost and of the locks'.",
    )


def judge(data: Data) -> list[Finding]:
    findings = []
    protocols = list(reversed(TRANSACTIONAL))
    for kind in KINDS:
        costs = data["nanoseconds"][kind]
        findings.append(_moved_is_dearer(data, kind))
        findings += [
            _cheaper_than_a_lock(costs, protocol, lock, kind)
            for protocol in protocols
            for lock in LOCKS
        ]
        findings += [_acquiring_is_dearer(costs, lock, kind) for lock in LOCKS]
    return findings + [_cheaper_somewhere(data, protocol) for protocol in protocols]


EXPERIMENT = Experiment(
    name="figure_4_9",
    section="4.5.1",
    title="Figure 4.9: access under interference",
    claim=(
        "Another thread has written what the first one comes back to. In some cases accesses of "
        "the STM are then faster than those under a lock: they involve only atomic operations, "
        "and no lock has to be acquired."
    ),
    measure=measure,
    draw=draw,
    judge=judge,
    definitions={
        "no interference": "the second thread writes nothing",
        "other core": (
            "the second thread, on the other core, has incremented the same words, by the same "
            "method; with `value` and `eager` in an earlier transaction that has committed"
        ),
        "time per access": (
            f"ns, of {SET} random words that the first thread has accessed before; without begin "
            "and end of the transaction; median of the rounds, with quartiles"
        ),
    },
    notes=(
        "Two cores: there are the two patterns that such a machine has. Threads wait for each "
        "other without sleeping, as a core that sleeps may empty its caches. Controls, not in the "
        "picture: the second thread increments the words without the method, so that locks and "
        "records do not move; an atomic addition to a word as large as a spin lock in place of "
        "acquiring it."
    ),
)
