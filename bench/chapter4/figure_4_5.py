"""Figure 4.5: what one access costs, by how it is protected; one thread, 512 MB of state."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from bench.chapter4.experiment import Data, Effort, Experiment, Finding, Say
from bench.chapter4.lab import (
    CONTROLS,
    METHODS,
    SMALL_RECORDS,
    TRANSACTIONAL,
    opened,
    opened_all,
    random_words,
)
from bench.chapter4.margin import above, quartiles
from specstream.figures.style import bars_height, draw_bars, in_style, legend, new_figure

BATCH = 100
BATCHES = 200
ROUNDS = 31
ACCESSES = ("read", "increment")
# Where the accesses go; those to "fetched" words are a control.
SAME, RANDOM, FETCHED = "same", "random", "random, fetched"
PATTERNS = tuple(f"{access}, {where}" for where in (SAME, RANDOM) for access in ACCESSES)
CALLS, LOCK_ARRAY = CONTROLS[0], CONTROLS[2]
SMALL = "eager, small lock array"
CONTESTANTS = (*METHODS, CALLS, LOCK_ARRAY, SMALL)
# From the cheapest; locks are as good as one another.
ORDER = (("none",), ("atomic",), ("spin lock", "mutex"))


def measure(effort: Effort, say: Say) -> Data:
    """Nanoseconds per access: quartiles of rounds in which all take turns, pattern by pattern."""
    batches = effort.times(BATCHES, 10)
    same = np.full(BATCH * batches, 12_345, np.uint32)
    patterns = [f"{access}, {where}" for where in (SAME, RANDOM, FETCHED) for access in ACCESSES]
    taken: dict[str, dict[str, list[float]]] = {c: {p: [] for p in patterns} for c in CONTESTANTS}
    with opened_all((*METHODS, CALLS, LOCK_ARRAY)) as labs, opened("eager", SMALL_RECORDS) as small:
        labs[SMALL] = small
        for number in range(effort.times(ROUNDS, 3)):
            say(f"round {number + 1}")
            for pattern in patterns:
                access, _, where = pattern.partition(", ")
                for name in CONTESTANTS:
                    words = same if where == SAME else random_words(BATCH, batches)
                    phases = labs[name].phases(access, words, BATCH, fetched=where == FETCHED)
                    taken[name][pattern].append(phases["access"] / BATCH)
    return {
        "nanoseconds": {
            name: {pattern: quartiles(took) for pattern, took in patterns_of.items()}
            for name, patterns_of in taken.items()
        }
    }


@in_style
def draw(data: Data) -> Figure:
    figure, panels = new_figure(
        "Mean cost of one access, one thread, 512 MB of state",
        1.4 + bars_height(len(PATTERNS), len(METHODS)),
    )
    axes = panels[0, 0]
    groups = {
        pattern: {method: tuple(data["nanoseconds"][method][pattern]) for method in METHODS}
        for pattern in PATTERNS
    }
    draw_bars(axes, groups, "{:.1f}", room=1.1)
    axes.set_xlabel("time per access (ns)")
    legend(figure, METHODS, bars=True)
    return figure


def _in_order(data: Data, pattern: str, names: Sequence[str]) -> str:
    """The cheapest first."""
    costs = {name: data["nanoseconds"][name][pattern][1] for name in names}
    return " < ".join(f"{name} {costs[name]:.1f}" for name in sorted(costs, key=costs.__getitem__))


def _dearest(data: Data, name: str, pattern: str) -> bool:
    """Of all that is no transaction."""
    costs = data["nanoseconds"]
    others = [method for method in METHODS if method not in TRANSACTIONAL]
    return all(above(costs[name][pattern], costs[other][pattern]) for other in others)


def _stm_is_dearest(data: Data, protocol: str, pattern: str) -> Finding:
    return Finding(
        f"the STM is the dearest ({protocol}; {pattern})",
        _in_order(data, pattern, [m for m in METHODS if m == protocol or m not in TRANSACTIONAL])
        + " ns",
        _dearest(data, protocol, pattern),
        _why_not_dearest(data, protocol, pattern),
    )


def _why_not_dearest(data: Data, protocol: str, pattern: str) -> str:
    """With the lock array that the text has, and with locks that need no atomic instruction."""
    costs = data["nanoseconds"]
    name = protocol
    told = []
    if protocol == "value":
        name = LOCK_ARRAY
        told.append(
            f"`value` has no lock array; with one beside it ({LOCK_ARRAY}) an access costs "
            f"{costs[name][pattern][1]:.1f} instead of {costs['value'][pattern][1]:.1f} ns"
        )
        if _dearest(data, name, pattern):
            return f"{told[0]}, and is the dearest."
    calls, mine = costs[CALLS][pattern], costs[name][pattern]
    dearer = [m for m in ("mutex", "spin lock", "atomic") if not above(mine, costs[m][pattern])]
    locks = [m for m in dearer if m != "atomic"]
    if locks:
        told.append(
            "taking and giving back a lock by the same calls, but without an atomic instruction, "
            f"costs {calls[1]:.1f} ns, "
            + " and ".join(f"a {m} {costs[m][pattern][1]:.1f}" for m in locks)
        )
        if above(mine, calls):
            told.append("so it is the atomic instructions that put the locks above")
        else:
            told.append(
                "so the two calls alone take as long as an access of the STM: it is the calls"
            )
    if "atomic" in dearer:
        told.append(_why_atomic(data, pattern))
    return "; ".join(told) + "."


def _why_atomic(data: Data, pattern: str) -> str:
    """Whether it is the wait for the word that makes an atomic operation dear."""
    access, _, where = pattern.partition(", ")
    costs = data["nanoseconds"]["atomic"]
    if where == SAME:
        return f"an atomic operation takes {costs[pattern][1]:.1f} ns even on a word in the cache"
    fetched = costs[f"{access}, {FETCHED}"][1]
    shares = "mostly" if fetched < costs[pattern][1] / 2 else "not mostly"
    return (
        f"an atomic operation costs {costs[pattern][1]:.1f} ns, and {fetched:.1f} where its word "
        f"has been fetched before: it is {shares} the wait for the word, which no other access "
        "overlaps"
    )


def _order_of_the_others(data: Data, pattern: str) -> Finding:
    costs = data["nanoseconds"]
    wrong = [
        (cheap, dear)
        for at, cheaper in enumerate(ORDER)
        for cheap in cheaper
        for later in ORDER[at + 1 :]
        for dear in later
        if above(costs[cheap][pattern], costs[dear][pattern])
    ]
    because = []
    access, _, where = pattern.partition(", ")
    if wrong:
        names = sorted({name for pair in wrong for name in pair}, key=METHODS.index)
        because.append("clearly above what it should be below: " + _pairs(wrong))
        control = f"{access}, {FETCHED}"
        if where == RANDOM:
            left = [(a, b) for a, b in wrong if above(costs[a][control], costs[b][control])]
            because.append(
                "where the words have been fetched into the cache before, "
                + _in_order(data, control, names)
                + " ns: "
                + ("still so, not explained" if left else "it is the wait for the words")
            )
        else:
            ranges = ", ".join(
                f"{name} {costs[name][pattern][0]:.2f} to {costs[name][pattern][2]:.2f}"
                for name in names
            )
            because.append(f"quartiles {ranges} ns: not explained")
    return Finding(
        f"no protection, an atomic operation, a lock: none is dearer than the next ({pattern})",
        _in_order(data, pattern, [name for names in ORDER for name in names]) + " ns",
        not wrong,
        "; ".join(because) + "." if because else "",
    )


def _pairs(wrong: Sequence[tuple[str, str]]) -> str:
    return ", ".join(f"{cheap} above {dear}" for cheap, dear in wrong)


def _random_is_dearer(data: Data, access: str) -> Finding:
    costs = data["nanoseconds"]
    near, far = f"{access}, {SAME}", f"{access}, {RANDOM}"
    flat = [m for m in METHODS if not above(costs[m][far], costs[m][near])]
    return Finding(
        f"random positions are dearer for every method ({access})",
        ", ".join(f"{m} {costs[m][near][1]:.1f} -> {costs[m][far][1]:.1f} ns" for m in METHODS),
        not flat,
        f"not clearly for {', '.join(flat)}; where the words have been fetched before, "
        + ", ".join(f"{m} {costs[m][f'{access}, {FETCHED}'][1]:.1f} ns" for m in flat)
        + ": not explained."
        if flat
        else "",
    )


def _over_none(data: Data, name: str, pattern: str) -> list[float]:
    """What the protection costs: above the median of the bare access, quartile by quartile."""
    bare = data["nanoseconds"]["none"][pattern][1]
    return [cost - bare for cost in data["nanoseconds"][name][pattern]]


def _overhead_is_highest_at_random(data: Data, protocol: str, access: str) -> Finding:
    near = _over_none(data, protocol, f"{access}, {SAME}")
    far = _over_none(data, protocol, f"{access}, {RANDOM}")
    control = LOCK_ARRAY if protocol == "value" else SMALL
    other_near, other_far = (
        _over_none(data, control, f"{access}, {where}") for where in (SAME, RANDOM)
    )
    told = f"{other_near[1]:.1f} -> {other_far[1]:.1f} ns"
    if protocol == "value":
        because = f"`value` has no lock array; with one beside it {told}, " + (
            "higher at random positions." if above(other_far, other_near) else "not explained."
        )
    else:
        because = f"with a lock array that fits into the cache {told}: not explained."
    return Finding(
        f"the overhead of the STM is higher at random positions ({protocol}, {access})",
        f"{near[1]:.1f} -> {far[1]:.1f} ns above the bare access",
        above(far, near),
        because,
    )


def _lock_array_is_the_reason(data: Data, access: str) -> Finding:
    pattern = f"{access}, {RANDOM}"
    large, small = (_over_none(data, name, pattern) for name in ("eager", SMALL))
    fetched = _over_none(data, SMALL, f"{access}, {FETCHED}")[1]
    wait = fetched < small[1] / 2
    return Finding(
        f"because the entry of the lock array is not cached: without that less (eager, {access})",
        f"overhead {large[1]:.1f} ns, and {small[1]:.1f} with a lock array of "
        f"{SMALL_RECORDS * 8 // 1024} KB",
        above(large, small),
        "the overhead stays where all entries fit into the cache; where the words have been "
        f"fetched as well, it is {fetched:.1f} ns: "
        + ("most of it is the wait for the words." if wait else "not explained."),
    )


def judge(data: Data) -> list[Finding]:
    findings = [
        _stm_is_dearest(data, protocol, pattern)
        for protocol in reversed(TRANSACTIONAL)
        for pattern in PATTERNS
    ]
    findings += [_order_of_the_others(data, pattern) for pattern in PATTERNS]
    findings += [_random_is_dearer(data, access) for access in ACCESSES]
    findings += [
        _overhead_is_highest_at_random(data, protocol, access)
        for protocol in reversed(TRANSACTIONAL)
        for access in ACCESSES
    ]
    findings += [_lock_array_is_the_reason(data, access) for access in ACCESSES]
    findings += [_value_is_near(data, pattern) for pattern in PATTERNS[2:]]
    return findings


def _value_is_near(data: Data, pattern: str) -> Finding:
    """That it has no lock array is what it is for."""
    costs = data["nanoseconds"]
    bare, near, far = (costs[method][pattern] for method in ("none", "value", "eager"))
    fetched = costs["value"][f"{pattern.partition(',')[0]}, {FETCHED}"]
    return Finding(
        f"value adds less than half of what eager adds to a bare access ({pattern}; ours)",
        f"{near[1] - bare[1]:.1f} against {far[1] - bare[1]:.1f} ns",
        near[2] - bare[0] < (far[0] - bare[2]) / 2,
        f"where the words have been fetched, value costs {fetched[1]:.1f} ns: not explained.",
    )


EXPERIMENT = Experiment(
    name="figure_4_5",
    section="4.5.1",
    title="Figure 4.5: mean cost of one access",
    claim=(
        "Accesses through the STM are by far the dearest; random positions are the worst, as the "
        "entry of the lock array is not cached either."
    ),
    measure=measure,
    draw=draw,
    judge=judge,
    definitions={
        "none": "the bare access",
        "atomic": "one atomic operation on the word itself: a load, an addition",
        "mutex, spin lock": (
            "a lock of the system around the bare access, one of 65,536, chosen by the word"
        ),
        "value, eager": "an access within a transaction of the protocol, without its begin and end",
        "increment": "a read and a write of one word",
        "same": "always one word, which stays in the cache",
        "random": "words all over the 512 MB, others in each batch of 100",
        "time per access": (
            "ns, the time of a batch divided by 100; a bar is the median of rounds in which all "
            "take turns, its line the quartiles"
        ),
    },
    notes=(
        "Controls, not in the picture: `value` with a lock array of 8 MB "
        "beside it; `eager` with one of 16 KB; locks without an atomic instruction; random words "
        "that have been fetched into the cache before."
    ),
)
