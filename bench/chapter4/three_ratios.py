"""Sequential, fine-grained locks, speculation: three ratios side by side, at two costs."""

from __future__ import annotations

import statistics
from typing import Any

from matplotlib.figure import Figure

from bench.chapter4.experiment import Data, Effort, Experiment, Finding, Say
from bench.chapter4.figure_4_18 import pace_of
from bench.chapter4.ready import READY, Ready, engine_of
from specstream.figures.style import bars_height, draw_bars, in_style, legend, line_at, new_figure

LENGTHS = ("today's length", "the text's length")
CONTESTANTS = ("sequential", "fine-grained locks", "speculation")
NAMES = dict(zip(CONTESTANTS, (*CONTESTANTS[:2], "speculation (Auto)"), strict=True))
THREADS = 2
SECONDS = 0.05
ROUNDS = 11


def measure(effort: Effort, say: Say) -> Data:
    """Speed relative to the sequential run by operator, length and contestant; two threads."""
    ratios: dict[str, Any] = {}
    for ready in READY:
        ratios[ready.name] = {}
        for length in LENGTHS:
            say(f"{ready.name}, {length}")
            ratios[ready.name][length] = _ratios(ready, length, effort)
    return {"ratios": ratios}


def _ratios(ready: Ready, length: str, effort: Effort) -> dict[str, float]:
    seconds, how = pace_of(ready, length)
    chunk = 64 if length == "today's length" else 1
    engines = {
        "sequential": engine_of(ready, threads=1, horizon=0),
        "fine-grained locks": engine_of(
            ready, fine=True, execution="locked", threads=THREADS, chunk=chunk
        ),
        "speculation": engine_of(ready, threads=THREADS),
    }
    ratios: dict[str, list[float]] = {name: [] for name in engines}
    count = max(int(effort.scale * SECONDS / seconds), 100)
    try:
        # The automatic setting is given time to find itself.
        for number in range(effort.times(10, 1)):
            engines["speculation"].run(ready.events(count, 100 + number), **how)
        for number in range(effort.times(ROUNDS, 2)):
            events = ready.events(count, 1 + number)
            took = {name: engine.run(events, **how) for name, engine in engines.items()}
            for name in ratios:
                ratios[name].append(took["sequential"] / took[name])
    finally:
        for engine in engines.values():
            engine.close()
    return {name: statistics.median(values) for name, values in ratios.items()}


@in_style
def draw(data: Data) -> Figure:
    figure, panels = new_figure(
        "", 1.3 + bars_height(len(READY), len(CONTESTANTS)), columns=2, sharex=True
    )
    for axes, length in zip(panels[0], LENGTHS, strict=True):
        groups = {
            ready.name: {NAMES[one]: data["ratios"][ready.name][length][one] for one in CONTESTANTS}
            for ready in READY
        }
        draw_bars(axes, groups)
        axes.set_title(length)
        line_at(axes, 1, "y")
        axes.set_xlabel("speed, sequential = 1")
    legend(figure, NAMES.values(), bars=True)
    return figure


def judge(data: Data) -> list[Finding]:
    findings = []
    for ready in READY:
        today, text = (data["ratios"][ready.name][length] for length in LENGTHS)
        findings.append(
            Finding(
                f"today speculation is at least as fast as fine-grained locks ({ready.name})",
                f"{today['speculation']:.2f} against {today['fine-grained locks']:.2f}",
                today["speculation"] >= today["fine-grained locks"],
            )
        )
        findings.append(
            Finding(
                f"and never below 0.95 of sequential ({ready.name})",
                f"{today['speculation']:.2f}",
                today["speculation"] >= 0.95,
            )
        )
        findings.append(
            Finding(
                f"at the text's length speculation reaches 1.8 ({ready.name})",
                f"{text['speculation']:.2f}; fine-grained locks {text['fine-grained locks']:.2f}",
                text["speculation"] >= 1.8,
            )
        )
    return findings


EXPERIMENT = Experiment(
    name="three_ratios",
    title="Sequential, fine-grained locks, speculation",
    claim=(
        "The text's summary: speculation gains as much as fine-grained locks where events are long "
        "and conflicts few, without any knowledge of concurrency."
    ),
    measure=measure,
    draw=draw,
    judge=judge,
    notes=(
        "Two threads. Speculation with the automatic setting, which falls back to the plain run "
        "where events are too short."
    ),
)
