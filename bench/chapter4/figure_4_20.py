"""Figure 4.20: latency out of order of the two ready operators."""

from __future__ import annotations

import statistics

from matplotlib.figure import Figure

from bench.chapter4.experiment import Data, Effort, Experiment, Finding, Say
from bench.chapter4.lab import TRANSACTIONAL
from bench.chapter4.paced_sources import (
    DIFFERENCES,
    draw_panels,
    measure_curves,
    speculation_is_below,
)
from bench.chapter4.ready import READY

# Nearest neighbours took 0.73 ms on the slower machine of the text, where its panel comes from; an
# event of both sources together has half a millisecond here.
WORK = {"top-k": 0.0, "nearest neighbours": 0.45e-3}


def measure(effort: Effort, say: Say) -> Data:
    """Milliseconds by operator, setting and difference of the rates."""
    latency = {
        ready.name: measure_curves(
            ready.operator(), ready.values, WORK[ready.name], ready.name, effort, say
        )
        for ready in READY
    }
    return {"differences": list(DIFFERENCES), "milliseconds": latency}


def draw(data: Data) -> Figure:
    return draw_panels(data, {ready.name: ready.name for ready in READY})


def judge(data: Data) -> list[Finding]:
    findings = []
    top, near = (data["milliseconds"][ready.name] for ready in READY)
    for protocol in TRANSACTIONAL:
        gain = [
            1 - ahead / waited
            for waited, ahead in zip(top["no speculation"], top[protocol], strict=True)
        ]
        findings.append(
            Finding(
                f"top-k is too cheap for a gain ({protocol})",
                f"{statistics.fmean(gain):+.1%} on the mean",
                statistics.fmean(gain) < 0.1,
            )
        )
        findings.append(
            speculation_is_below(
                f"nearest neighbours gain from 100 % on ({protocol})",
                data["differences"],
                near,
                protocol,
            )
        )
    return findings


EXPERIMENT = Experiment(
    name="figure_4_20",
    title="Figure 4.20: latency out of order of the ready operators",
    claim=(
        "For top-k the overhead masks the gain of running early; for nearest neighbours, where an "
        "event takes longer, there is a gain as in Figure 4.15."
    ),
    measure=measure,
    draw=draw,
    judge=judge,
    notes=(
        "One thread, two sources. Top-k as compiled here, far below a microsecond; nearest "
        "neighbours with the length that it had on the slower machine of the text, within what the "
        "rate leaves."
    ),
)
