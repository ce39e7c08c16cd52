"""Figures 4.13 and 4.14: speed-up of Listing 4.2 by the work of an event."""

from __future__ import annotations

import statistics
from dataclasses import replace
from typing import Any

from matplotlib.figure import Figure

import specstream as ss
from bench.chapter4.experiment import Data, Effort, Experiment, Finding, Say
from bench.chapter4.lab import TRANSACTIONAL
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
WORK = (1e-6, 2e-6, 5e-6, 10e-6, 20e-6, 50e-6, 100e-6, 200e-6)
# Sleeping takes at least some tens of microseconds more than it should.
SLEEP = (100e-6, 200e-6, 500e-6, 1e-3)
ASLEEP = (2, 4, 6)
MARKERS = {"2": "o", "4": "s", "6": "^"}
SECONDS = 0.03
SECONDS_ASLEEP = 0.12
ROUNDS = 5


def measure(effort: Effort, say: Say) -> Data:
    """Speed-up against one plain thread, by state, protocol, threads and work."""
    curves: dict[str, Any] = {}
    for state in STATES:
        say(f"state of {state}")
        operator = listing_4_2(state)
        curves[str(state)] = {
            **_curves(operator, effort, "busy", (2,), WORK, SECONDS),
            **_curves(operator, effort, "asleep", ASLEEP, SLEEP, SECONDS_ASLEEP),
        }
    return {"work": {"busy": list(WORK), "asleep": list(SLEEP)}, "speedup": curves}


def _curves(
    operator: ss.Operator,
    effort: Effort,
    kind: str,
    threads: tuple[int, ...],
    work: tuple[float, ...],
    seconds: float,
) -> dict[str, list[float]]:
    engines = {"plain": SlowedEngine(operator, threads=1, horizon=0)}
    for count in threads:
        for protocol in TRANSACTIONAL:
            engines[f"{protocol}, {count} threads {kind}"] = SlowedEngine(
                operator, threads=count, horizon=2 * count, chunk=1, protocol=protocol
            )
    curves: dict[str, list[float]] = {name: [] for name in engines if name != "plain"}
    try:
        for each in work:
            events = values(0)(max(int(effort.scale * seconds / each), 20), 1)
            how = {"sleep": each} if kind == "asleep" else {"rounds": round(each * busy_rounds())}
            ratios: dict[str, list[float]] = {name: [] for name in curves}
            for _ in range(effort.times(ROUNDS, 2)):
                took = {name: engine.run(events, **how) for name, engine in engines.items()}
                for name in curves:
                    ratios[name].append(took["plain"] / took[name])
            for name in curves:
                curves[name].append(statistics.median(ratios[name]))
    finally:
        for engine in engines.values():
            engine.close()
    return curves


@in_style
def draw(data: Data) -> Figure:
    figure, panels = new_figure("", 6.8, 2, 2, sharex="row", sharey="row")
    looks = {}
    for row, kind in zip(panels, ("busy", "asleep"), strict=True):
        for axes, state in zip(row, STATES, strict=True):
            work = [seconds * 1e6 for seconds in data["work"][kind]]
            for name, curve in data["speedup"][str(state)].items():
                if name.endswith(kind):
                    label = name.removesuffix(f" {kind}")
                    threads = label.split(", ")[1][0]
                    own = look(name.split(",")[0])
                    line = {"2": "-", "4": "--", "6": ":"}[threads]
                    looks[label] = replace(own, line=line, marker=MARKERS[threads])
                    plot_line(axes, work, curve, label, looks[label])
            line_at(axes, 1)
            axes.set_xscale("log")
            plain_ticks(axes.xaxis, [1, 10, 100] if kind == "busy" else [100, 200, 500, 1000])
            axes.set_title(f"state of {state}, work {kind}")
            axes.set_xlabel("work of an event (µs)")
            axes.grid(axis="y")
        row[0].set_ylabel("speed, one plain thread = 1")
    from_zero(panels.flat)
    legend(figure, looks, looks)
    return figure


def judge(data: Data) -> list[Finding]:
    large, small = (data["speedup"][str(state)] for state in STATES)
    at = WORK.index(100e-6)
    findings = []
    for protocol in TRANSACTIONAL:
        busy = f"{protocol}, 2 threads busy"
        findings.append(
            Finding(
                f"two threads, 100 µs, state of 100: at least 1.7 ({protocol})",
                f"{large[busy][at]:.2f}",
                large[busy][at] >= 1.7,
            )
        )
        findings.append(
            Finding(
                f"the speed-up grows with work ({protocol})",
                f"{large[busy][0]:.2f} at 1 µs, {large[busy][-1]:.2f} at 200 µs",
                large[busy][-1] > large[busy][0],
            )
        )
        six = f"{protocol}, 6 threads asleep"
        means = [statistics.fmean(curves[six]) for curves in (large, small)]
        findings.append(
            Finding(
                f"a state of 10 is worse than one of 100 (six threads, {protocol})",
                f"{means[1]:.2f} against {means[0]:.2f}",
                means[1] < means[0],
            )
        )
    return findings


EXPERIMENT = Experiment(
    name="figures_4_13_4_14",
    title="Figures 4.13 and 4.14: speed-up of Listing 4.2",
    claim="It grows with the work of an event; with a tenth of the state it is worse.",
    measure=measure,
    draw=draw,
    judge=judge,
    notes=(
        "Above two threads in a busy loop, one for each core. Below the work is sleep, which keeps "
        "the conflicts and frees the core, so that more threads than cores can be looked at."
    ),
)
