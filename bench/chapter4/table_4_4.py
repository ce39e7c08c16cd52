"""Table 4.4: the predictors with the two ready operators."""

from __future__ import annotations

import statistics
from typing import Any

from matplotlib.figure import Figure

import specstream as ss
from bench.chapter4.experiment import Data, Effort, Experiment, Finding, Say
from bench.chapter4.lab import TRANSACTIONAL
from bench.chapter4.ready import READY, Ready, engine_of
from specstream.figures.palette import PUBLISHED
from specstream.figures.style import bars_height, draw_bars, in_style, legend, new_figure
from specstream.predictors.predictor import Predictor

# Percent dropped and events per second of the text.
TEXT = {
    "top-k": {"A": (2.23, 61379), "T": (9.05, 75640), "5": (7.08, 78300), "10": (16.37, 73439)},
    "nearest neighbours": {
        "A": (1.58, 58237),
        "T": (0.92, 57148),
        "5": (0.30, 57141),
        "10": (0.67, 55975),
    },
}
NAMES = {"A": "abort-driven", "T": "throughput-driven", "5": "static 5", "10": "static 10"}
THREADS = 6
SLEEP = 10
LOOKS = {"the text": PUBLISHED}
EVENTS = 400
ROUNDS = 15


def _predictors() -> dict[str, Predictor]:
    return {
        "A": ss.AbortDriven(threshold=0.02, every=50, chunk=1, start=5, limit=10),
        "T": ss.ThroughputDriven(every=50, chunk=1, start=5, limit=10),
        "5": ss.Fixed(5, 1),
        "10": ss.Fixed(10, 1),
    }


def measure(effort: Effort, say: Say) -> Data:
    """Share of dropped runs and throughput by operator, protocol and predictor."""
    rows: dict[str, Any] = {}
    for ready in READY:
        rows[ready.name] = {}
        for protocol in TRANSACTIONAL:
            say(f"{ready.name}, {protocol}")
            rows[ready.name][protocol] = _rows(ready, protocol, effort)
    return {"rows": rows}


def _rows(ready: Ready, protocol: str, effort: Effort) -> dict[str, dict[str, float]]:
    engines = {
        name: engine_of(ready, threads=THREADS, predictor=predictor, protocol=protocol)
        for name, predictor in _predictors().items()
    }
    throughput: dict[str, list[float]] = {name: [] for name in engines}
    before = {name: engine.dropped() for name, engine in engines.items()}
    try:
        for number in range(effort.times(ROUNDS, 2)):
            events = ready.events(EVENTS, 1 + number)
            for name, engine in engines.items():
                took = engine.run(events, sleep=SLEEP * ready.seconds)
                throughput[name].append(EVENTS / took)
        after = {name: engine.dropped() for name, engine in engines.items()}
    finally:
        for engine in engines.values():
            engine.close()
    return {
        name: {
            "aborts": (after[name][1] - before[name][1]) / max(after[name][0] - before[name][0], 1),
            "throughput": statistics.median(throughput[name]),
        }
        for name in engines
    }


@in_style
def draw(data: Data) -> Figure:
    figure, panels = new_figure(
        "", 2.4 + bars_height(len(NAMES), 3) + bars_height(len(NAMES), 2), 2, 2,
        height_ratios=(bars_height(1, 3), bars_height(1, 2)), sharex="row",
    )  # fmt: skip
    for (above, below), ready in zip(panels.T, READY, strict=True):
        rows, text = data["rows"][ready.name], TEXT[ready.name]
        dropped = {
            title: {p: 100 * rows[p][name]["aborts"] for p in TRANSACTIONAL}
            | {"the text": text[name][0]}
            for name, title in NAMES.items()
        }
        rates = {
            title: {p: rows[p][name]["throughput"] / 1000 for p in TRANSACTIONAL}
            for name, title in NAMES.items()
        }
        draw_bars(above, dropped, "{:.1f}", LOOKS, room=1.25)
        draw_bars(below, rates, "{:.1f}", room=1.25)
        above.set_title(ready.name)
        above.set_xlabel("dropped runs (%)")
        below.set_xlabel("throughput (1000 events/s)")
    legend(figure, (*TRANSACTIONAL, "the text"), LOOKS, bars=True)
    return figure


def judge(data: Data) -> list[Finding]:
    findings = []
    for protocol in TRANSACTIONAL:
        top, near = (data["rows"][ready.name][protocol] for ready in READY)
        shares = {name: top[key]["aborts"] for key, name in NAMES.items()}
        findings.append(
            Finding(
                f"the abort-driven predictor drops the fewest runs of top-k ({protocol})",
                ", ".join(f"{name} {share:.2%}" for name, share in shares.items()),
                min(shares, key=shares.__getitem__) == "abort-driven",
            )
        )
        findings.append(
            Finding(
                f"static 10 drops more than static 5 ({protocol})",
                f"{shares['static 10']:.2%} against {shares['static 5']:.2%}",
                shares["static 10"] > shares["static 5"],
            )
        )
        best = max(row["throughput"] for row in near.values())
        worst = min(row["throughput"] for row in near.values())
        findings.append(
            Finding(
                f"for nearest neighbours the predictor hardly matters ({protocol})",
                f"slowest at {worst / best:.0%} of the fastest",
                worst > 0.8 * best,
            )
        )
    return findings


EXPERIMENT = Experiment(
    name="table_4_4",
    title="Table 4.4: predictors with the ready operators",
    claim=(
        "A dynamic horizon stays close to the best static one, and is not decisive. Top-k drops "
        "2.23 % (abort-driven), 9.05 % (throughput-driven), 7.08 and 16.37 % (static 5 and 10)."
    ),
    measure=measure,
    draw=draw,
    judge=judge,
    notes="Six threads; the work is sleep, ten times the text's length, so throughput is a tenth.",
)
