"""Figure 4.19: speculation against fine-grained locks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure

from bench.chapter4.experiment import Data, Effort, Experiment, Finding, Say
from bench.chapter4.figure_4_18 import count_of, draw_speeds, speculating
from bench.chapter4.lab import TRANSACTIONAL
from bench.chapter4.margin import above, shown
from bench.chapter4.ready import (
    COUNTS,
    DISTINCT,
    READY,
    SEQUENTIAL,
    Ready,
    Variant,
    by_length,
    engine_of,
    meanings,
    pace_of,
    rates,
)

# The last one is there to explain: an event is nothing but its accesses and their locks.
LENGTHS = ("the text's length", "asleep", "today's length")
THREADS = {"the text's length": (1, 2, 6), "asleep": (1, 2, 4, 6), "today's length": (1, 2, 6)}
NAMES = {
    "value": "speculation (value)",
    "eager": "speculation (eager)",
    "locks": "fine-grained locks",
}
LOCKED = {"execution": "locked", "chunk": 1}
# What counts as "a similar gain".
SIMILAR = 0.10
SECONDS = 0.08
ROUNDS = 15


def measure(effort: Effort, say: Say) -> Data:
    """Speed by operator, length, and contestant with threads; and whether runs agreed."""
    rows: dict[str, Any] = {}
    same: dict[str, Any] = {}
    for ready in READY:
        rows[ready.name] = by_length(ready, LENGTHS, variants, effort, ROUNDS, say)
        same[ready.name] = _same(ready, effort)
    return {"rows": rows, "same": same}


def variants(ready: Ready, length: str, effort: Effort) -> dict[str, Variant]:
    common: dict[str, Any] = {
        "how": pace_of(ready, length)[1],
        "count": count_of(ready, length, effort),
    }
    if length == "today's length":
        # A lock that is fought for is slow.
        common["count"] = max(common["count"] // 10, 100)
    made = {"sequential": Variant(ready, SEQUENTIAL, **common)}
    for threads in THREADS[length]:
        made[f"locks {threads}"] = Variant(
            ready, {**LOCKED, "threads": threads}, **common, fine=True
        )
        if length == "asleep" or threads <= 2:
            for protocol in TRANSACTIONAL:
                made[f"{protocol} {threads}"] = Variant(
                    ready, speculating(threads, protocol), **common
                )
    if ready.name == "top-k" and length != "today's length":
        base = "sequential, distinct items"
        made[base] = Variant(DISTINCT, SEQUENTIAL, **common, base=base)
        most = THREADS[length][-1] if length == "asleep" else 2
        for contestant in NAMES:
            locks = contestant == "locks"
            options = {**LOCKED, "threads": most} if locks else speculating(most, contestant)
            made[f"{contestant} {most}, distinct items"] = Variant(
                DISTINCT, options, **common, base=base, fine=locks
            )
    return made


def _same(ready: Ready, effort: Effort) -> dict[str, bool]:
    """Whether runs of the same events on fresh engines emit the same rows, with two threads."""
    events = ready.events(20_000, 5)
    agreed = {}
    for contestant in NAMES:
        locks = contestant == "locks"
        options = {**LOCKED, "threads": 2} if locks else speculating(2, contestant)
        outputs = []
        for _ in range(effort.times(4, 4)):
            with engine_of(ready, locks, effort.times(ready.warm_up, 2000), **options) as slowed:
                outputs.append(slowed.engine.process(events))
        agreed[contestant] = all(output.equals(outputs[0]) for output in outputs)
    return agreed


def draw(data: Data) -> Figure:
    return draw_speeds(data, THREADS, NAMES, {})


# What is compared where: threads by length.
COMPARED = {"the text's length": 2, "asleep": 6}
WHERE = {"the text's length": "two busy threads", "asleep": "six sleeping threads"}


def judge(data: Data) -> list[Finding]:
    top, near = (data["rows"][ready.name] for ready in READY)
    everywhere = [(protocol, length) for protocol in TRANSACTIONAL for length in COMPARED]
    findings = [_locks_win(top, *where) for where in everywhere]
    findings.append(_locks_drop(top))
    findings += [_equal(near, *where) for where in everywhere]
    for ready in READY:
        same = data["same"][ready.name]
        findings += [
            Finding(
                f"speculation emits the same rows in every run ({ready.name}, {protocol})",
                "the same in four runs" if same[protocol] else "differs",
                same[protocol],
                "not explained: it must never happen",
            )
            for protocol in TRANSACTIONAL
        ]
        findings.append(
            Finding(
                f"the version with locks differs from run to run ({ready.name})",
                "the same in four runs" if same["locks"] else "differs",
                not same["locks"],
                "not explained: four runs may agree by chance",
            )
        )
    return findings


def _locks_win(top: Mapping[str, Any], protocol: str, length: str) -> Finding:
    rows, threads = top[length], COMPARED[length]
    mine, locks = rows[f"{protocol} {threads}"], rows[f"locks {threads}"]
    free, free_locks = (
        rows[f"{contestant} {threads}, distinct items"] for contestant in (protocol, "locks")
    )
    one, one_locks = rows[f"{protocol} 1"], rows["locks 1"]
    seen = (
        f"{rates(mine)} were dropped; with distinct items, of which {rates(free)} are, "
        f"{shown(free['speed'])} against {shown(free_locks['speed'])}; with one thread each "
        f"{shown(one['speed'])} against {shown(one_locks['speed'])}"
    )
    # Locks win by conflicts or by what speculating costs; here is neither.
    neither = mine["dropped"] < 0.05 * mine["transactions"] and one["speed"][1] > 0.95
    return Finding(
        f"locks are clearly faster than speculation (top-k, {protocol}, {WHERE[length]})",
        f"{shown(locks['speed'])} against {shown(mine['speed'])}",
        above(locks["speed"], mine["speed"]),
        f"few conflicts, and speculating costs little: {seen}"
        if neither
        else f"not explained: {seen}",
    )


def _locks_drop(top: Mapping[str, Any]) -> Finding:
    asleep, today, busy = (
        top[length] for length in ("asleep", "today's length", "the text's length")
    )
    four, six = (asleep[f"locks {threads}"]["speed"] for threads in (4, 6))
    one, two, most = (today[f"locks {threads}"] for threads in (1, 2, 6))
    share = one["microseconds"] / asleep["sequential"]["microseconds"]
    seen = (
        f"an event without its work takes {one['microseconds']:.3f} µs with all of its locks, "
        f"{share:.2%} of one that sleeps, so threads seldom meet at a lock; events that are "
        f"nothing but that reach {shown(one['speed'])}, {shown(two['speed'])} and "
        f"{shown(most['speed'])} of the sequential run with one, two and six threads; six busy "
        f"threads on two cores reach {shown(busy['locks 6']['speed'])}, two "
        f"{shown(busy['locks 2']['speed'])}"
    )
    fought = above(one["speed"], two["speed"]) and above(one["speed"], most["speed"])
    return Finding(
        "locks drop with six threads (top-k, asleep)",
        f"four {shown(four)}, six {shown(six)}",
        above(four, six),
        f"nobody fights for the locks: {seen}"
        if fought and share < 0.01
        else f"not explained: {seen}",
    )


def _equal(near: Mapping[str, Any], protocol: str, length: str) -> Finding:
    rows, threads = near[length], COMPARED[length]
    mine, locks = (rows[f"{who} {threads}"] for who in (protocol, "locks"))
    one, one_locks = (rows[f"{who} 1"] for who in (protocol, "locks"))
    ratio = mine["speed"][1] / locks["speed"][1]
    alone = one["speed"][1] / one_locks["speed"][1]
    seen = (
        f"with one thread each, where nothing conflicts, it is at {alone:.2f} of the locks "
        f"already ({shown(one['speed'])} against {shown(one_locks['speed'])}), with {threads} at "
        f"{ratio:.2f}; {rates(mine)} were dropped"
    )
    # Most of what is missing is missing with one thread.
    costs = 1 - alone > 0.5 * abs(1 - ratio)
    return Finding(
        f"speculation and locks gain the same within {SIMILAR:.0%} "
        f"(nearest neighbours, {protocol}, {WHERE[length]})",
        f"{shown(mine['speed'])} against {shown(locks['speed'])}",
        abs(ratio - 1) <= SIMILAR,
        f"the cost of speculating: {seen}" if costs else f"not explained: {seen}",
    )


EXPERIMENT = Experiment(
    name="figure_4_19",
    title="Figure 4.19: speculation against fine-grained locks",
    section="4.5.4",
    claim=(
        "Locks win on top-k, and drop at six threads; on nearest neighbours both are equal. "
        "Speculation needs no knowledge of concurrency, and is deterministic."
    ),
    measure=measure,
    draw=draw,
    judge=judge,
    definitions={
        **meanings("speed", "sequential"),
        "fine-grained locks": (
            "one for each counter of the sketch and one for the list; one for each bucket; they "
            "keep no order of events"
        ),
        **meanings("the text's length", "asleep"),
        "today's length": "as compiled here, no work added; an event per transaction",
    },
    notes=(
        "Half of the work stands before the accesses, half after them; all of it outside of the "
        "locks. The text's locks are pthread mutexes, ours are those of "
        '`Engine(..., execution="locked")`. Six threads at the text\'s length share two cores. '
        f"{COUNTS}"
    ),
)
