"""Figure 4.19: speculation against fine-grained locks."""

from __future__ import annotations

import statistics
from typing import Any

from matplotlib.figure import Figure

from bench.chapter4.experiment import Data, Effort, Experiment, Finding, Say
from bench.chapter4.figure_4_18 import pace_of
from bench.chapter4.ready import READY, Ready, engine_of
from specstream.figures.style import from_zero, in_style, legend, line_at, new_figure, plot_line

LENGTHS = ("the text's length", "asleep")
THREADS = {"the text's length": (1, 2), "asleep": (1, 2, 4, 6)}
NAMES = {"value": "speculation (value)", "locks": "fine-grained locks"}
SECONDS = 0.05
ROUNDS = 7


def measure(effort: Effort, say: Say) -> Data:
    """Speed-up by operator, length, contestant and threads; and whether two runs agreed."""
    speedup: dict[str, Any] = {}
    same: dict[str, Any] = {}
    for ready in READY:
        say(ready.name)
        speedup[ready.name] = {length: _speedup(ready, length, effort) for length in LENGTHS}
        same[ready.name] = _same(ready, effort)
    return {"speedup": speedup, "same": same}


def _options(contestant: str, threads: int) -> dict[str, Any]:
    if contestant == "locks":
        return {"fine": True, "execution": "locked", "threads": threads, "chunk": 1}
    return {
        "threads": threads,
        "horizon": 4 * threads,
        "chunk": 1,
        **({"execution": "speculate"} if threads == 1 else {}),
    }


def _speedup(ready: Ready, length: str, effort: Effort) -> dict[str, dict[str, float]]:
    seconds, how = pace_of(ready, length)
    engines = {("sequential", 1): engine_of(ready, threads=1, horizon=0)}
    for contestant in ("value", "locks"):
        for threads in THREADS[length]:
            engines[contestant, threads] = engine_of(ready, **_options(contestant, threads))
    ratios: dict[tuple[str, int], list[float]] = {key: [] for key in engines}
    count = max(int(effort.scale * SECONDS / seconds), 100)
    try:
        for number in range(effort.times(ROUNDS, 2)):
            events = ready.events(count, 1 + number)
            took = {key: engine.run(events, **how) for key, engine in engines.items()}
            for key in ratios:
                ratios[key].append(took["sequential", 1] / took[key])
    finally:
        for engine in engines.values():
            engine.close()
    return {
        contestant: {
            str(threads): statistics.median(ratios[contestant, threads])
            for threads in THREADS[length]
        }
        for contestant in ("value", "locks")
    }


def _same(ready: Ready, effort: Effort) -> dict[str, bool]:
    """Whether two runs of the same events on fresh engines emit the same rows, with two threads."""
    events = ready.events(20_000, 5)
    agreed = {}
    for contestant in ("value", "locks"):
        outputs = []
        for _ in range(effort.times(4, 4)):
            with engine_of(ready, **_options(contestant, 2)) as slowed:
                outputs.append(slowed.engine.process(events))
        agreed[contestant] = all(output.equals(outputs[0]) for output in outputs)
    return agreed


@in_style
def draw(data: Data) -> Figure:
    figure, panels = new_figure("", 5.6, 2, 2, sharey="row")
    for row, length in zip(panels, LENGTHS, strict=True):
        for axes, ready in zip(row, READY, strict=True):
            for contestant, name in NAMES.items():
                curve = data["speedup"][ready.name][length][contestant]
                threads = [int(count) for count in curve]
                plot_line(axes, threads, list(curve.values()), name)
                axes.set_xticks(threads)
            line_at(axes, 1)
            axes.set_title(f"{ready.name},\n{length}")
            axes.set_xlabel("threads")
            axes.grid(axis="y")
        row[0].set_ylabel("speed, sequential = 1")
    from_zero(panels.flat)
    legend(figure, NAMES.values())
    return figure


def judge(data: Data) -> list[Finding]:
    findings = []
    for ready in READY:
        two = {
            contestant: data["speedup"][ready.name]["the text's length"][contestant]["2"]
            for contestant in ("value", "locks")
        }
        near = two["value"] > 0.85 * two["locks"]
        findings.append(
            Finding(
                f"speculation comes within 15 % of the locks ({ready.name}, two threads)",
                f"{two['value']:.2f} against {two['locks']:.2f}",
                near,
            )
        )
        same = data["same"][ready.name]
        findings.append(
            Finding(
                f"speculation emits the same rows in every run ({ready.name})",
                "the same" if same["value"] else "differs",
                same["value"],
            )
        )
    top = data["same"]["top-k"]["locks"]
    findings.append(
        Finding(
            "the version with locks differs from run to run (top-k)",
            "the same in four runs" if top else "differs",
            not top,
        )
    )
    return findings


EXPERIMENT = Experiment(
    name="figure_4_19",
    title="Figure 4.19: speculation against fine-grained locks",
    claim=(
        "Locks win on top-k, and drop at six threads; on nearest neighbours both are equal. "
        "Speculation needs no knowledge of concurrency, and is deterministic."
    ),
    measure=measure,
    draw=draw,
    judge=judge,
    notes=(
        "A lock for each counter of the sketch and one for the list; a lock for each bucket. The "
        "work stands before the event, outside of all locks."
    ),
)
