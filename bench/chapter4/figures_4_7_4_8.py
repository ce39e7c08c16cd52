"""Figures 4.7 and 4.8: how much a task slows down, by its length and its accesses."""

from __future__ import annotations

import statistics
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from bench.chapter4.experiment import Data, Effort, Experiment, Finding, Say
from bench.chapter4.lab import METHODS, TRANSACTIONAL, opened, random_words
from bench.speed.loads import Load, events_of
from bench.speed.native import NativeContestant, native_rounds_for
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
SECONDS = 0.02
ROUNDS = 5
# Of the two-thread runs: horizon and chunk, by the length of the work.
SHORT, LONG = (8, 16), (16, 1)


def measure(effort: Effort, say: Say) -> Data:
    """Slowdown against no synchronisation, and speed-up of two threads, by work."""
    per_round = _nanoseconds_per_round(effort)
    slowdown: dict[str, Any] = {}
    speedup: dict[str, Any] = {}
    for writes in WRITES:
        say(f"{writes} writes: slowdown")
        slowdown[str(writes)] = _slowdown(effort, writes, per_round)
        say(f"{writes} writes: two threads")
        speedup[str(writes)] = _speedup(effort, writes)
    return {"work": list(WORK), "slowdown": slowdown, "speedup": speedup}


def _nanoseconds_per_round(effort: Effort) -> float:
    with opened("none") as lab:
        word = np.zeros(effort.times(2000, 50), np.uint32)
        return min(lab.tasks("write", word, 1, 1000) for _ in range(5)) / 1000


def _slowdown(effort: Effort, writes: int, per_round: float) -> dict[str, list[float]]:
    ratios: dict[str, list[list[float]]] = {method: [] for method in METHODS}
    for _ in range(effort.times(ROUNDS, 2)):
        took: dict[str, list[float]] = {}
        for method in METHODS:
            with opened(method) as lab:
                took[method] = [
                    lab.tasks(
                        "write",
                        random_words(writes, _tasks(effort, work, writes)),
                        writes,
                        round(work * 1e9 / per_round),
                    )
                    for work in WORK
                ]
        for method in METHODS:
            pairs = zip(took[method], took["none"], strict=True)
            ratios[method].append([mine / none for mine, none in pairs])
    return {
        method: [statistics.median(column) for column in zip(*rounds, strict=True)]
        for method, rounds in ratios.items()
    }


def _tasks(effort: Effort, work: float, writes: int) -> int:
    return max(int(effort.scale * SECONDS / (work + writes * 100e-9)), 5)


def _speedup(effort: Effort, writes: int) -> dict[str, list[float]]:
    """Of two threads against the log-free clone, by protocol, for updates of random words."""
    speedup: dict[str, list[float]] = {protocol: [] for protocol in TRANSACTIONAL}
    for work in WORK:
        setting = SHORT if work < 3e-6 else LONG
        contestants = {
            "none": NativeContestant("none", writes, 1, 0, 1, "log_free"),
            **{
                protocol: NativeContestant(protocol, writes, 2, *setting, "ordered", protocol)
                for protocol in TRANSACTIONAL
            },
        }
        rounds = native_rounds_for(writes, work)
        count = max(int(effort.scale * SECONDS / (work + writes * 30e-9)), 50)
        load = Load("", "", writes, work, {})
        for number in range(effort.times(ROUNDS, 2) + 1):
            events = events_of(load, rounds, 0)(count, number)
            for contestant in contestants.values():
                contestant.run(events, number)
        for protocol in TRANSACTIONAL:
            base, own = contestants["none"].times, contestants[protocol].times
            # The first round touches the memory.
            ratios = [base[number] / own[number] for number in own if number > 0]
            speedup[protocol].append(statistics.median(ratios))
        for contestant in contestants.values():
            contestant.close()
    return speedup


def break_even(work: list[float], speedup: list[float]) -> float | None:
    """The work from which on two threads are faster than one, between the points measured."""
    for at in range(len(work) - 1, -1, -1):
        if speedup[at] < 1:
            if at == len(work) - 1:
                return None
            below, above = speedup[at], speedup[at + 1]
            return work[at] + (1 - below) / (above - below) * (work[at + 1] - work[at])
    return work[0]


@in_style
def draw(data: Data) -> Figure:
    figure, panels = new_figure("", 6.6, 2, 2, sharex=True, sharey="row")
    work = [max(seconds * 1e6, 0.2) for seconds in data["work"]]
    for (above, below), writes in zip(panels.T, WRITES, strict=True):
        for method in METHODS[1:]:
            plot_line(above, work, data["slowdown"][str(writes)][method], method)
        above.set_title(f"{writes} random writes,\none thread")
        for protocol in TRANSACTIONAL:
            plot_line(below, work, data["speedup"][str(writes)][protocol], protocol)
        below.set_title(f"{writes} random updates,\ntwo threads")
        below.set_xscale("log")
        plain_ticks(below.xaxis)
        # Work of no length has no place on such an axis.
        below.set_xticks([0.2, 1, 10, 100, 1000], ["0", "1", "10", "100", "1,000"])
        below.set_xlabel("busy work in the task (µs)")
        for axes in (above, below):
            line_at(axes, 1)
            axes.grid(axis="y")
    from_zero(panels.flat)
    panels[0, 0].set_ylabel("time, no\nsynchronisation = 1")
    panels[1, 0].set_ylabel("speed,\none plain thread = 1")
    legend(figure, METHODS[1:])
    return figure


def judge(data: Data) -> list[Finding]:
    findings = []
    for writes in WRITES:
        curves = data["slowdown"][str(writes)]
        for protocol in TRANSACTIONAL:
            first, last = curves[protocol][0], curves[protocol][-1]
            findings.append(
                Finding(
                    f"large for short tasks, gone for long ones ({protocol}, {writes} writes)",
                    f"{first:.2f} without work, {last:.2f} at 1 ms",
                    first > 1.2 and last < 1.05,
                )
            )
            even = break_even(data["work"], data["speedup"][str(writes)][protocol])
            findings.append(
                Finding(
                    f"two threads break even somewhere ({protocol}, {writes} updates)",
                    "nowhere" if even is None else f"from {even * 1e6:.2f} µs of work on",
                    even is not None,
                )
            )
    return findings


EXPERIMENT = Experiment(
    name="figures_4_7_4_8",
    title="Figures 4.7 and 4.8: slowdown by length of the task",
    claim="With transactions very large for short tasks, and gone for long ones.",
    measure=measure,
    draw=draw,
    judge=judge,
    notes=(
        "Above as in the text: one thread, writes at random positions. Below, for the question "
        "behind it: from which length on two threads are faster than one plain loop."
    ),
)
