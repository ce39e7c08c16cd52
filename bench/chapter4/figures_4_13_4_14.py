"""Figures 4.13 and 4.14: speed-up of Listing 4.2 by the work of an event."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from matplotlib.figure import Figure

import specstream as ss
from bench.chapter4.experiment import Data, Effort, Experiment, Finding, Say
from bench.chapter4.lab import TRANSACTIONAL
from bench.chapter4.margin import above, quartiles, shown
from bench.chapter4.slowed import SlowedEngine, busy_rounds
from bench.workloads import listing_4_2, values
from specstream.figures.palette import look
from specstream.figures.style import (
    from_zero,
    in_style,
    legend,
    line_at,
    new_figure,
    plain_ticks,
    plot_line,
)

STATES = (100, 10)
# The control: a state so large that hardly two events meet.
LARGE = 100_000
WORK = (1e-6, 2e-6, 5e-6, 10e-6, 20e-6, 50e-6, 100e-6, 200e-6)
# Sleeping takes at least some tens of microseconds more than it should.
SLEEP = (100e-6, 200e-6, 500e-6, 1e-3)
ASLEEP = (2, 4, 6)
MARKERS = {"2": "o", "4": "s", "6": "^"}
SECONDS = 0.05
SECONDS_ASLEEP = 0.2
ROUNDS = 9


def measure(effort: Effort, say: Say) -> Data:
    """Speed-up against one plain thread, by state, protocol, threads and work."""
    found: dict[str, Any] = {}
    for state in (*STATES, LARGE):
        say(f"state of {state}")
        operator = listing_4_2(state)
        control = state == LARGE
        found[str(state)] = {
            "busy": _curves(operator, effort, "busy", (2,), (100e-6,) if control else WORK),
            "asleep": _curves(operator, effort, "asleep", ASLEEP, SLEEP[1:2] if control else SLEEP),
        }
    return {"work": {"busy": list(WORK), "asleep": list(SLEEP)}, "state": found}


def _curves(
    operator: ss.Operator, effort: Effort, kind: str, threads: tuple[int, ...], work: Any
) -> dict[str, Any]:
    """By protocol and threads: "speed" (quartiles of the rounds for each work), "all" (of the mean
    over all work), dropped runs "per transaction" and "per run", "done" (work per transaction).

    And the "real" seconds of the work, where it is sleep.
    """
    seconds = SECONDS_ASLEEP if kind == "asleep" else SECONDS
    with ExitStack() as stack:
        plain = stack.enter_context(SlowedEngine(operator, threads=1, horizon=0))
        engines = {
            _name(protocol, count): stack.enter_context(
                SlowedEngine(operator, threads=count, horizon=2 * count, chunk=1, protocol=protocol)
            )
            for count in threads
            for protocol in TRANSACTIONAL
        }
        for engine in engines.values():
            engine.run(values(0)(20, 1))  # the code is compiled
        before = {name: engine.runs() for name, engine in engines.items()}
        speeds: dict[str, list[list[float]]] = {name: [] for name in engines}
        sleeps: list[list[float]] = [[] for _ in work]
        wanted = 0.0
        for number in range(effort.times(ROUNDS)):
            for name in engines:
                speeds[name].append([])
            for place, each in enumerate(work):
                count = max(int(effort.scale * seconds / each), 20)
                events = values(0)(count, 1 + number)
                how = (
                    {"sleep": each} if kind == "asleep" else {"rounds": round(each * busy_rounds())}
                )
                wanted += each * count
                slept = plain.slept()
                alone = plain.run(events, **how)
                sleeps[place].append(each * (plain.slept() - slept).ratio)
                for name, engine in engines.items():
                    took = engine.run(events, **how)
                    speeds[name][-1].append(alone / took)
        curves: dict[str, Any] = {}
        for name, engine in engines.items():
            runs = engine.runs() - before[name]
            curves[name] = {
                "speed": [quartiles(of) for of in zip(*speeds[name], strict=True)],
                "all": quartiles([statistics.fmean(row) for row in speeds[name]]),
                "per transaction": runs.dropped_per_transaction,
                "per run": runs.dropped_per_run,
            }
            if kind == "asleep":
                curves[name]["done"] = engine.slept().asked / wanted
    if kind == "asleep":
        curves["real"] = [statistics.median(of) for of in sleeps]
    return curves


def _name(protocol: str, threads: int) -> str:
    return f"{protocol}, {threads} threads"


@in_style
def draw(data: Data) -> Figure:
    # No panel has to share an axis that would hide its lines.
    figure, panels = new_figure("", 6.8, 2, 2)
    looks = {}
    for row, kind in zip(panels, ("busy", "asleep"), strict=True):
        for axes, state in zip(row, STATES, strict=True):
            curves = data["state"][str(state)][kind]
            work = [1e6 * each for each in curves.get("real", data["work"][kind])]
            for threads in ASLEEP if kind == "asleep" else (2,):
                for protocol in TRANSACTIONAL:
                    label = _name(protocol, threads)
                    line = {2: "-", 4: "--", 6: ":"}[threads]
                    looks[label] = replace(look(protocol), line=line, marker=MARKERS[str(threads)])
                    speed = [middle for _, middle, _ in curves[label]["speed"]]
                    plot_line(axes, work, speed, label, looks[label])
            line_at(axes, 1)
            axes.set_xscale("log")
            plain_ticks(axes.xaxis, [1, 10, 100] if kind == "busy" else [100, 200, 500, 1000])
            axes.set_title(f"state of {state}, work {kind}")
            axes.set_xlabel("work of an event (µs)")
            if kind == "asleep":
                asked = ", ".join(f"{1e6 * each:.0f}" for each in data["work"][kind])
                axes.set_xlabel(f"sleep of an event, measured (µs)\nasked for: {asked}")
            axes.grid(axis="y")
        row[0].set_ylabel("speed, one plain thread = 1")
    from_zero(panels.flat)
    legend(figure, looks, looks)
    return figure


def judge(data: Data) -> list[Finding]:
    large, small, control = (data["state"][str(state)] for state in (*STATES, LARGE))
    work = data["work"]["busy"]
    findings = []
    for protocol in TRANSACTIONAL:
        findings.append(_two_threads_gain(large, control, protocol, work))
        for state, curves in zip(STATES, (large, small), strict=True):
            findings.append(_work_helps(curves, state, protocol, work))
        for kind, threads in (("busy", 2), ("asleep", 6)):
            findings.append(_little_state_is_worse(small, large, kind, protocol, threads))
        for state, curves in zip(STATES, (large, small), strict=True):
            findings.append(_threads_help(curves, control, state, protocol))
    return findings


def _two_threads_gain(
    large: Mapping[str, Any], control: Mapping[str, Any], protocol: str, work: list[float]
) -> Finding:
    two = _name(protocol, 2)
    speed = large["busy"][two]["speed"][work.index(100e-6)]
    return Finding(
        f"two threads, 100 µs, state of 100: at least 1.7 ({protocol})",
        shown(speed),
        speed[1] >= 1.7,
        _why_so_slow(large["busy"][two], control["busy"][two]["speed"][0]),
    )


def _work_helps(curves: Mapping[str, Any], state: int, protocol: str, work: list[float]) -> Finding:
    speeds = curves["busy"][_name(protocol, 2)]["speed"]
    first, last = speeds[0], speeds[-1]
    return Finding(
        f"the speed-up grows with work (two busy threads, state of {state}, {protocol})",
        f"{shown(first)} at {1e6 * work[0]:.0f} µs, {shown(last)} at {1e6 * work[-1]:.0f} µs",
        above(last, first),
        _why_no_growth(first, max(middle for _, middle, _ in speeds)),
    )


def _little_state_is_worse(
    small: Mapping[str, Any], large: Mapping[str, Any], kind: str, protocol: str, threads: int
) -> Finding:
    few, many = (curves[kind][_name(protocol, threads)] for curves in (small, large))
    return Finding(
        f"a state of 10 is worse than one of 100 ({threads} threads {kind}, {protocol}, mean over "
        "all work)",
        f"{shown(few['all'])} against {shown(many['all'])}; {few['per transaction']:.2f} against "
        f"{many['per transaction']:.2f} dropped runs per transaction",
        above(many["all"], few["all"]),
        _why_no_worse(few, many),
    )


def _threads_help(
    curves: Mapping[str, Any], control: Mapping[str, Any], state: int, protocol: str
) -> Finding:
    rows, free = (
        [of["asleep"][_name(protocol, threads)] for threads in ASLEEP] for of in (curves, control)
    )
    speeds = [row["all"] for row in rows]
    return Finding(
        f"more sleeping threads are faster (state of {state}, {protocol}, mean over all work)",
        _by_threads(speeds),
        _grows(speeds),
        _why_no_gain(rows, [row["all"] for row in free]),
    )


def _grows(speeds: list[list[float]]) -> bool:
    return all(above(more, less) for less, more in itertools.pairwise(speeds))


def _by_threads(speeds: list[list[float]]) -> str:
    return ", ".join(
        f"{threads}: {shown(speed)}" for threads, speed in zip(ASLEEP, speeds, strict=True)
    )


def _why_so_slow(row: Mapping[str, Any], control: list[float]) -> str:
    seen = (
        f"{row['per transaction']:.2f} runs per transaction were dropped; with a state of "
        f"{LARGE:,} words, where events do not meet, the speed was {shown(control)}"
    )
    return (
        f"conflicts: {seen}." if control[1] >= 1.7 else f"not conflicts, but two threads: {seen}."
    )


def _why_no_growth(first: list[float], best: float) -> str:
    seen = f"{first[1]:.2f} with the shortest work, of {best:.2f} at most"
    if first[1] > 0.9 * best:
        return f"the shortest work is long enough for this runtime: {seen}."
    return f"Not explained: {seen}."


def _why_no_worse(small: Mapping[str, Any], large: Mapping[str, Any]) -> str:
    if small["all"][1] < large["all"][1]:
        return "the medians are in this order, and the rounds differ by more."
    if "done" not in small:
        seen = (
            f"{small['per transaction']:.3f} runs per transaction were dropped, with a state of "
            f"100 {large['per transaction']:.3f}"
        )
        few = small["per transaction"] - large["per transaction"] < 0.05
        return f"too few conflicts to be seen: {seen}." if few else f"Not explained: {seen}."
    seen = (
        f"with a state of 10 the threads slept {small['done']:.2f} times what one run of each "
        f"event needs, with 100 {large['done']:.2f} times"
    )
    if small["done"] < 1.1 * large["done"]:
        return f"dropped runs end before their work: {seen}."
    return f"Not explained: {seen}."


def _why_no_gain(rows: list[Mapping[str, Any]], control: list[list[float]]) -> str:
    dropped = ", ".join(f"{row['per transaction']:.2f}" for row in rows)
    seen = (
        f"dropped runs per transaction were {dropped}; with a state of {LARGE:,} words, where "
        f"events do not meet, the speeds were {_by_threads(control)}"
    )
    return f"conflicts: {seen}." if _grows(control) else f"Not explained by conflicts: {seen}."


EXPERIMENT = Experiment(
    name="figures_4_13_4_14",
    title="Figures 4.13 and 4.14: speed-up of Listing 4.2",
    section="4.5.3",
    claim=(
        "It grows with the work of an event; with a tenth of the state it is worse. Up to six "
        "threads."
    ),
    measure=measure,
    draw=draw,
    judge=judge,
    definitions={
        "state": "words, of which each event reads and increments one at random",
        "work": "what follows the increment in an event, as in Listing 4.2",
        "speed": "throughput relative to that of one plain thread in the same round, at that work",
        "dropped runs per transaction": (
            "speculative runs that were dropped, per committed transaction of one event"
        ),
    },
    notes=(
        "Above two threads in a busy loop, one for each core. Below the work is sleep, which keeps "
        "the conflicts and frees the core, so that more threads than cores can be looked at; each "
        "point stands at what the sleep really took. A control, not drawn: a state of "
        f"{LARGE:,} words."
    ),
)
