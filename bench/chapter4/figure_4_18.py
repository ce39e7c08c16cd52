"""Figure 4.18: speed-up of the two ready operators by threads."""

from __future__ import annotations

import statistics
from typing import Any

from matplotlib.figure import Figure

from bench.chapter4.experiment import Data, Effort, Experiment, Finding, Say
from bench.chapter4.lab import TRANSACTIONAL
from bench.chapter4.ready import READY, Ready, engine_of, rounds_for
from specstream.figures.style import from_zero, in_style, legend, line_at, new_figure, plot_line

# Of the text, with four cores.
TEXT = {"top-k": 1.67, "nearest neighbours": 1.96}
LENGTHS = ("the text's length", "today's length", "asleep")
THREADS = {"the text's length": (1, 2), "today's length": (1, 2), "asleep": (1, 2, 4, 6)}
SLEEP = 10
SECONDS = 0.05
ROUNDS = 7


def measure(effort: Effort, say: Say) -> Data:
    """Speed-up against the sequential run, by operator, length, protocol and threads."""
    speedup: dict[str, Any] = {}
    for ready in READY:
        speedup[ready.name] = {}
        for length in LENGTHS:
            say(f"{ready.name}, {length}")
            speedup[ready.name][length] = _speedup(ready, length, effort)
    return {"speedup": speedup}


def pace_of(ready: Ready, length: str) -> tuple[float, dict[str, Any]]:
    """Seconds of an event, roughly, and how they are spent."""
    if length == "asleep":
        return SLEEP * ready.seconds, {"sleep": SLEEP * ready.seconds}
    if length == "today's length":
        return 0.3e-6, {}
    return ready.seconds, {"rounds": rounds_for(ready)}


def _options(threads: int, protocol: str, length: str) -> dict[str, Any]:
    # At today's length the automatic setting; at the text's own the horizon that six threads need.
    if length == "today's length":
        return {"threads": threads, "protocol": protocol}
    execution = {"execution": "speculate"} if threads == 1 else {}
    return {
        "threads": threads,
        "protocol": protocol,
        "horizon": 4 * threads,
        "chunk": 1,
        **execution,
    }


def _speedup(ready: Ready, length: str, effort: Effort) -> dict[str, dict[str, float]]:
    seconds, how = pace_of(ready, length)
    engines = {"sequential": engine_of(ready, threads=1, horizon=0)}
    for protocol in TRANSACTIONAL:
        for threads in THREADS[length]:
            options = _options(threads, protocol, length)
            engines[f"{protocol} {threads}"] = engine_of(ready, **options)
    ratios: dict[str, list[float]] = {name: [] for name in engines if name != "sequential"}
    count = max(int(effort.scale * SECONDS / seconds), 100)
    try:
        for number in range(effort.times(ROUNDS, 2)):
            events = ready.events(count, 1 + number)
            took = {name: engine.run(events, **how) for name, engine in engines.items()}
            for name in ratios:
                ratios[name].append(took["sequential"] / took[name])
    finally:
        for engine in engines.values():
            engine.close()
    return {
        protocol: {
            str(threads): statistics.median(ratios[f"{protocol} {threads}"])
            for threads in THREADS[length]
        }
        for protocol in TRANSACTIONAL
    }


@in_style
def draw(data: Data) -> Figure:
    figure, panels = new_figure("", 7.4, 3, 2)
    for row, length in zip(panels, LENGTHS, strict=True):
        for axes, ready in zip(row, READY, strict=True):
            for protocol in TRANSACTIONAL:
                curve = data["speedup"][ready.name][length][protocol]
                threads = [int(count) for count in curve]
                plot_line(axes, threads, list(curve.values()), protocol)
                axes.set_xticks(threads)
            line_at(axes, 1)
            axes.set_title(f"{ready.name},\n{length}")
            axes.set_xlabel("threads")
            axes.grid(axis="y")
        row[1].sharey(row[0])
        row[0].set_ylabel("speed,\nsequential = 1")
    from_zero(panels.flat)
    legend(figure, TRANSACTIONAL)
    return figure


def judge(data: Data) -> list[Finding]:
    findings = []
    for ready in READY:
        curves = data["speedup"][ready.name]
        long = curves["the text's length"]["value"]
        findings.append(
            Finding(
                f"two cores reach what the text reached with four ({ready.name}, value)",
                f"{long['2']:.2f}; the text: {TEXT[ready.name]} with four",
                long["2"] >= TEXT[ready.name],
            )
        )
        findings.append(
            Finding(
                f"one speculating thread is slower than the sequential run ({ready.name}, value)",
                f"{long['1']:.2f}",
                long["1"] < 1,
            )
        )
        today = curves["today's length"]["value"]["2"]
        findings.append(
            Finding(
                f"at today's length never below 0.95 of plain ({ready.name}, value, Auto)",
                f"{today:.2f}",
                today >= 0.95,
            )
        )
        six = curves["asleep"]["value"]
        findings.append(
            Finding(
                f"more threads than cores go on gaining where they sleep ({ready.name}, value)",
                ", ".join(f"{threads}: {ratio:.2f}" for threads, ratio in six.items()),
                six["6"] > six["2"],
            )
        )
    return findings


EXPERIMENT = Experiment(
    name="figure_4_18",
    title="Figure 4.18: speed-up of the ready operators",
    claim=(
        "One thread loses to the sequential run, two surpass it already; with four cores 1.67 for "
        "top-k and 1.96 for nearest neighbours."
    ),
    measure=measure,
    draw=draw,
    judge=judge,
    notes=(
        "The text's length: 12.42 and 26.68 µs per event, by a busy loop before it; today's: as "
        "compiled here, with the automatic setting; asleep: ten times the text's length."
    ),
)
