"""Figures 4.7 and 4.8: how much a task slows down, by its length and its accesses."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from bench.chapter4.experiment import Data, Effort, Experiment, Finding, Say
from bench.chapter4.lab import CONTROLS, METHODS, TRANSACTIONAL, Lab, opened_all, random_words
from bench.chapter4.margin import Quartiles, above, quartiles
from bench.speed.loads import Load, events_of
from bench.speed.native import NativeContestant, native_rounds_for
from specstream.figures.palette import QUIET, Look
from specstream.figures.style import (
    from_zero,
    in_style,
    legend,
    line_at,
    new_figure,
    plain_ticks,
    plot_line,
)

WRITES = (5, 100)
# Seconds of busy work.
WORK = (0.0, 0.5e-6, 1e-6, 2e-6, 5e-6, 10e-6, 20e-6, 50e-6, 100e-6, 200e-6, 500e-6, 1e-3)
SECONDS = 0.012
ROUNDS = 31
LEAST_EVENTS = 32
# Of the two-thread runs: horizon and chunk, by the length of the work.
SHORT, LONG = (8, 16), (16, 1)
# A slowdown below this is none.
GONE = 1.05
OTHERS = ("atomic", "mutex", "spin lock")
# The control of two threads: two plain loops at once, each with a state of its own.
APART = "two plain loops"
APART_LOOK = Look(QUIET, "", ":", "", 2.0)
LOCK_ARRAY = CONTROLS[2]
# Controls of tasks without work: the text's own conditions, by protocol, from the least change on.
ANEW = {"value": (("value", True), (LOCK_ARRAY, True)), "eager": (("eager", True),)}


def measure(effort: Effort, say: Say) -> Data:
    """Slowdown against no synchronisation, and speed-up of two threads, by work."""
    slowdown: dict[str, Any] = {}
    speedup: dict[str, Any] = {}
    with opened_all((*METHODS, LOCK_ARRAY)) as labs:
        per_round = _nanoseconds_per_round(effort, labs["none"])
        for writes in WRITES:
            say(f"{writes} writes: slowdown")
            slowdown[str(writes)] = _slowdown(effort, writes, per_round, labs)
    for writes in WRITES:
        say(f"{writes} writes: two threads")
        speedup[str(writes)] = _speedup(effort, writes)
    return {"work": list(WORK), "slowdown": slowdown, "speedup": speedup}


def _nanoseconds_per_round(effort: Effort, lab: Lab) -> float:
    word = np.zeros(effort.times(2000, 50), np.uint32)
    return min(lab.tasks("write", word, 1, 1000) for _ in range(5)) / 1000


def _slowdown(
    effort: Effort, writes: int, per_round: float, labs: Mapping[str, Lab]
) -> dict[str, Any]:
    """The methods take turns at each length of work, round by round."""
    rounds = range(effort.times(ROUNDS, 3))
    ratios: dict[str, list[list[float]]] = {m: [[] for _ in WORK] for m in METHODS[1:]}
    restored: dict[str, list[float]] = {}
    parts: dict[str, dict[str, list[float]]] = {
        p: {part: [] for part in ("all", "create", "commit", "access")} for p in TRANSACTIONAL
    }
    for _ in rounds:
        for at, work in enumerate(WORK):
            tasks = max(int(effort.scale * SECONDS / (work + writes * 100e-9)), 5)
            busy = round(work * 1e9 / per_round)
            took = {
                method: labs[method].tasks("write", random_words(writes, tasks), writes, busy)
                for method in METHODS
            }
            for method, of_method in ratios.items():
                of_method[at].append(took[method] / took["none"])
            if work == 0:
                _restore(labs, writes, tasks, took, restored, parts)
    return {
        "ratio": {m: [quartiles(column) for column in columns] for m, columns in ratios.items()},
        "restored": {name: quartiles(values) for name, values in restored.items()},
        "parts": {p: {x: quartiles(took) for x, took in of.items()} for p, of in parts.items()},
    }


def _restore(
    labs: Mapping[str, Lab],
    writes: int,
    tasks: int,
    took: Mapping[str, float],
    restored: dict[str, list[float]],
    parts: dict[str, dict[str, list[float]]],
) -> None:
    """Beside tasks without work: the text's conditions, and what the added time consists of."""
    bare = labs["none"].phases("write", random_words(writes, tasks), writes)["access"]
    for protocol, controls in ANEW.items():
        for name, anew in controls:
            words = random_words(writes, min(tasks, 2000))
            time = labs[name].tasks("write", words, writes, 0, anew=anew)
            restored.setdefault(_restored(name), []).append(time / took["none"])
        phases = labs[protocol].phases("write", random_words(writes, tasks), writes)
        parts[protocol]["all"].append(sum(phases.values()) - bare)
        parts[protocol]["create"].append(phases["create"])
        parts[protocol]["commit"].append(phases["commit"])
        parts[protocol]["access"].append(phases["access"] - bare)


def _restored(name: str) -> str:
    return f"{name}, allocated anew"


class _Pair:
    """Two plain loops at once, each in a thread and with a state of its own."""

    def __init__(self, writes: int) -> None:
        self.loops = [_contestant(writes, "none") for _ in range(2)]

    def run(self, events: Any, number: int) -> float:
        """Seconds for each event of one of them: half of what both together take for one each."""
        threads = [threading.Thread(target=one.run, args=(events, number)) for one in self.loops]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return max(one.times[number] for one in self.loops) / 2

    def close(self) -> None:
        for one in self.loops:
            one.close()


def _contestant(writes: int, protocol: str, setting: tuple[int, int] = (0, 1)) -> NativeContestant:
    if protocol == "none":
        return NativeContestant("none", writes, 1, *setting, "log_free")
    return NativeContestant(protocol, writes, 2, *setting, "ordered", protocol)


def _speedup(effort: Effort, writes: int) -> dict[str, list[list[float]]]:
    """Of two threads against the log-free clone, by protocol, for updates of random words.

    All lengths of work take turns in each round, so that what disturbs the machine for a while is
    seen in one round of many points, and not in all rounds of one.
    """
    speedup: dict[str, list[list[float]]] = {
        name: [[] for _ in WORK] for name in (*TRANSACTIONAL, APART)
    }
    loops = [native_rounds_for(writes, work) for work in WORK]
    with ExitStack() as stack:
        none = stack.enter_context(closing(_contestant(writes, "none")))
        pair = stack.enter_context(closing(_Pair(writes)))
        ordered = {
            (protocol, setting): stack.enter_context(
                closing(_contestant(writes, protocol, setting))
            )
            for protocol in TRANSACTIONAL
            for setting in (SHORT, LONG)
        }
        for number in range(effort.times(ROUNDS, 3) + 1):
            for at, work in enumerate(WORK):
                least = LEAST_EVENTS if effort.scale == 1 else 8
                count = max(int(effort.scale * SECONDS / (work + writes * 30e-9)), least)
                load = Load("", "", writes, work, {})
                events = events_of(load, loops[at], 0)(count, number)
                none.run(events, number)
                took = {APART: pair.run(events, number)}
                for protocol in TRANSACTIONAL:
                    contestant = ordered[protocol, SHORT if work < 3e-6 else LONG]
                    contestant.run(events, number)
                    took[protocol] = contestant.times[number]
                # The first round touches the memory.
                for name in took if number > 0 else ():
                    speedup[name][at].append(none.times[number] / took[name])
    return {name: [quartiles(values) for values in columns] for name, columns in speedup.items()}


def break_even(work: Sequence[float], speedup: Sequence[float]) -> float | None:
    """The work from which on two threads are faster than one, between the points measured."""
    for at in range(len(work) - 1, -1, -1):
        if speedup[at] < 1:
            if at == len(work) - 1:
                return None
            below, above_it = speedup[at], speedup[at + 1]
            return work[at] + (1 - below) / (above_it - below) * (work[at + 1] - work[at])
    return work[0]


def dips(curve: Sequence[Quartiles]) -> list[int]:
    """Where a curve that should rise lies clearly below an earlier point of it.

    >>> dips([(0.9, 1.0, 1.1), (1.8, 1.9, 2.0), (1.2, 1.3, 1.4), (1.8, 1.9, 2.0)])
    [2]
    """
    return [
        at
        for at in range(1, len(curve))
        if any(above(before, curve[at]) and before[1] > 1.03 * curve[at][1]
               for before in curve[:at])
    ]  # fmt: skip


@in_style
def draw(data: Data) -> Figure:
    figure, panels = new_figure("", 6.6, 2, 2, sharex=True, sharey="row")
    work = [max(seconds * 1e6, 0.2) for seconds in data["work"]]
    for (upper, lower), writes in zip(panels.T, WRITES, strict=True):
        for method in METHODS[1:]:
            ratios = data["slowdown"][str(writes)]["ratio"][method]
            plot_line(upper, work, [ratio[1] for ratio in ratios], method)
        upper.set_title(f"{writes} random writes,\none thread")
        curves = data["speedup"][str(writes)]
        plot_line(lower, work, [speed[1] for speed in curves[APART]], APART, APART_LOOK)
        for protocol in TRANSACTIONAL:
            plot_line(lower, work, [speed[1] for speed in curves[protocol]], protocol)
        lower.set_title(f"{writes} random updates,\ntwo threads")
        lower.set_xscale("log")
        plain_ticks(lower.xaxis)
        # Work of no length has no place on such an axis.
        lower.set_xticks([0.2, 1, 10, 100, 1000], ["0", "1", "10", "100", "1,000"])
        lower.set_xlabel("busy work in the task (µs)")
        for axes in (upper, lower):
            line_at(axes, 1)
            axes.grid(axis="y")
    from_zero(panels.flat)
    panels[0, 0].set_ylabel("time, no\nsynchronisation = 1")
    panels[1, 0].set_ylabel("speed,\none plain thread = 1")
    legend(figure, (*METHODS[1:], APART), {APART: APART_LOOK})
    return figure


def _microseconds(seconds: float) -> str:
    return f"{seconds * 1e6:g} µs"


def _large_then_gone(data: Data, writes: int, protocol: str) -> Finding:
    of_writes = data["slowdown"][str(writes)]
    ratios = of_writes["ratio"][protocol]
    first, last = ratios[0], ratios[-1]
    why = []
    if first[0] <= 1.2:
        restored = {name: of_writes["restored"][name] for name in _controls(protocol)}
        told = ", ".join(f"{name} {ratio[1]:.2f}" for name, ratio in restored.items())
        why.append(
            f"without work quartiles {first[0]:.2f} to {first[2]:.2f}; the text's conditions "
            f"restored: {told}, "
            + ("large" if any(r[0] > 1.2 for r in restored.values()) else "not explained")
        )
    if last[2] >= GONE:
        why.append(f"at 1 ms {_still(last)}")
    return Finding(
        f"large for short tasks (above 1.2), gone for long ones (below 1.05): {protocol}, "
        f"{writes} writes",
        f"{first[1]:.2f} without work, {last[1]:.2f} at 1 ms",
        first[0] > 1.2 and last[2] < GONE,
        "; ".join(why) + ".",
    )


def _still(ratio: Quartiles) -> str:
    """Of a slowdown that should be gone."""
    why = "the rounds differ by more" if ratio[0] < GONE else "not explained"
    return f"{ratio[1]:.2f}, quartiles {ratio[0]:.2f} to {ratio[2]:.2f}: {why}"


def _controls(protocol: str) -> list[str]:
    return [_restored(name) for name, _ in ANEW[protocol]]


def _others_are_small(data: Data, writes: int, protocol: str) -> Finding:
    """Beside the STM: at most half of what it adds to a task without work."""
    of_writes = data["slowdown"][str(writes)]
    first = {method: of_writes["ratio"][method][0] for method in (*OTHERS, protocol)}
    large = _not_small(first, first[protocol])
    told = []
    for name in _controls(protocol):
        ratio = of_writes["restored"][name]
        left = _not_small(first, ratio)
        told.append(
            f"{name} {ratio[1]:.1f} "
            + (f"(still not small beside it: {', '.join(left)})" if left else "(all are small)")
        )
        if not left:
            break
    else:
        added = {m: _added(of_writes, protocol, m) / writes for m in (protocol, *large)}
        told.append(
            "it is what each costs (Figure 4.5): "
            + ", ".join(f"{method} adds {took:.1f} ns a write" for method, took in added.items())
        )
    return Finding(
        f"the others add at most half as much as {protocol} ({writes} writes, no work)",
        ", ".join(f"{method} {ratio[1]:.2f}" for method, ratio in first.items()),
        not large,
        f"not small: {', '.join(large)}. The text's conditions restored: {'; '.join(told)}.",
    )


def _added(of_writes: Mapping[str, Any], protocol: str, method: str) -> float:
    """Nanoseconds that a method adds to a task without work; of a protocol they were measured."""
    first = {name: float(ratios[0][1]) for name, ratios in of_writes["ratio"].items()}
    bare: float = of_writes["parts"][protocol]["all"][1] / (first[protocol] - 1)
    return (first[method] - 1) * bare


def _not_small(first: Mapping[str, Quartiles], stm: Quartiles) -> list[str]:
    return [method for method in OTHERS if first[method][2] - 1 > (stm[0] - 1) / 2]


def _others_vanish(data: Data, writes: int) -> Finding:
    ratios = data["slowdown"][str(writes)]["ratio"]
    told, left = [], []
    for method in OTHERS:
        small = [work for work, r in zip(data["work"], ratios[method], strict=True) if r[2] < 1.1]
        told.append(f"{method} {'never' if not small else _microseconds(small[0])}")
        if ratios[method][-1][2] >= GONE:
            left.append(f"{method} {_still(ratios[method][-1])}")
    return Finding(
        f"the cost of the others is gone for long tasks as well ({writes} writes)",
        f"below 1.1 first at: {', '.join(told)}",
        not left,
        f"at 1 ms {'; '.join(left)}.",
    )


def _creation_is_the_reason(data: Data, writes: int, protocol: str) -> Finding:
    of_writes = data["slowdown"][str(writes)]
    parts = of_writes["parts"][protocol]
    share = parts["create"][1] / parts["all"][1] if parts["all"][1] > 0 else 0.0
    plain = of_writes["ratio"][protocol][0]
    anew = of_writes["restored"][_restored(protocol)]
    most = anew[1] - 1 > 2 * (plain[1] - 1) and above(anew, plain)
    return Finding(
        f"mostly due to creating the transaction ({protocol}, {writes} writes, no work)",
        f"{share:.0%} of the added {parts['all'][1]:.0f} ns",
        share > 0.5,
        f"creation {parts['create'][1]:.0f} ns, commit {parts['commit'][1]:.0f}, the accesses "
        f"{parts['access'][1]:.0f} more than bare ones. With descriptor and logs allocated anew, "
        f"as in the text, the slowdown is {anew[1]:.1f} instead of {plain[1]:.1f}: creation is "
        + (
            "most of it."
            if most
            else "still not most of it, "
            + {"access": "the accesses are.", "commit": "the commit is."}[
                max(("access", "commit"), key=lambda part: float(parts[part][1]))
            ]
        ),
    )


def _no_dips(data: Data, writes: int, protocol: str) -> Finding:
    curves = data["speedup"][str(writes)]
    curve, apart = curves[protocol], curves[APART]
    found = dips(curve)
    told = []
    for at in found:
        most = max(curve[:at], key=lambda point: point[1])[1]
        lost = 1 - curve[at][1] / most
        machine = 1 - apart[at][1] / max(point[1] for point in apart[: at + 1])
        told.append(
            f"at {_microseconds(data['work'][at])} {lost:.0%} are lost; "
            + (
                f"two plain loops that share nothing lose {machine:.0%} there: the machine"
                if machine > lost / 2
                else f"two plain loops that share nothing lose {machine:.0%} there: not explained"
            )
        )
    return Finding(
        f"two threads are never slower with more work ({protocol}, {writes} updates; ours)",
        "; ".join(
            f"{_microseconds(data['work'][at])}: {curve[at][1]:.2f} (quartiles "
            f"{curve[at][0]:.2f} to {curve[at][2]:.2f})"
            for at in found
        )
        or f"rises to {curve[-1][1]:.2f}",
        not found,
        "; ".join(told) + ".",
    )


def _breaks_even(data: Data, writes: int, protocol: str) -> Finding:
    curves = data["speedup"][str(writes)]
    middle, low, high = (
        break_even(data["work"], [point[quartile] for point in curves[protocol]])
        for quartile in (1, 2, 0)
    )
    between = [
        _microseconds(round(even, 8)) if even is not None else "never" for even in (low, high)
    ]
    return Finding(
        f"two threads break even somewhere ({protocol}, {writes} updates; ours)",
        "nowhere"
        if middle is None
        else f"from {middle * 1e6:.2f} µs of work on (by the quartiles {between[0]} to "
        f"{between[1]})",
        middle is not None,
        f"two plain loops that share nothing reach {curves[APART][-1][1]:.2f} at 1 ms, {protocol} "
        f"{curves[protocol][-1][1]:.2f}: "
        + (
            "the machine has no second core to give."
            if curves[APART][-1][1] < 1.1
            else "not explained."
        ),
    )


def judge(data: Data) -> list[Finding]:
    findings = []
    for writes in WRITES:
        for protocol in reversed(TRANSACTIONAL):
            findings += [
                _large_then_gone(data, writes, protocol),
                _others_are_small(data, writes, protocol),
                _creation_is_the_reason(data, writes, protocol),
            ]
        findings.append(_others_vanish(data, writes))
        for protocol in reversed(TRANSACTIONAL):
            findings += [_breaks_even(data, writes, protocol), _no_dips(data, writes, protocol)]
    return findings


EXPERIMENT = Experiment(
    name="figures_4_7_4_8",
    section="4.5.1",
    title="Figures 4.7 and 4.8: slowdown by length of the task",
    claim=(
        "Very short tasks are slowed down very much by transactions, mostly by creating them, and "
        "little by the other methods; for long ones the cost is gone."
    ),
    measure=measure,
    draw=draw,
    judge=judge,
    definitions={
        "busy work in the task": "µs of a busy loop before the accesses",
        "time": (
            "of a task with its writes, in one thread, with begin and end of the transaction, "
            "relative to the bare writes of the same round; words random, of 512 MB"
        ),
        "speed": (
            "events per second of two threads relative to the log-free loop in one thread, in the "
            "same round; an event updates random words of 8 MB"
        ),
        "two plain loops": (
            "the control: two log-free loops at once, each with a state of its own: what the two "
            "cores give where nothing is shared"
        ),
    },
    notes=(
        "Above as in the text. Below, for the question behind it: from which length on two "
        "threads are faster than one plain loop. In each round all methods and all lengths take "
        "turns; lines go through the medians of the rounds. Controls, not in the picture: "
        "descriptor and logs allocated anew for each transaction, `value` with a lock array as "
        "well. What counts as a dip is also at least 3 % deep."
    ),
)
