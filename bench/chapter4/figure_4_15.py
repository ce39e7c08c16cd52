"""Figure 4.15: latency of events out of order, by how much the rates of two sources differ."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from bench.chapter4.experiment import Data, Effort, Experiment, Finding, Say
from bench.chapter4.lab import TRANSACTIONAL
from bench.chapter4.paced_sources import (
    DIFFERENCES,
    draw_panels,
    measure_curves,
    speculation_is_below,
)
from bench.workloads import listing_4_2

STATES = (100, 10)
# Just below half of the shortest period.
WORK = 0.47e-3


def _values(generator: np.random.Generator) -> dict[str, Any]:
    return {"value": int(generator.integers(2**62)), "work": 0}


def measure(effort: Effort, say: Say) -> Data:
    """Milliseconds by state, setting and difference of the rates."""
    latency = {
        str(state): measure_curves(
            listing_4_2(state), _values, WORK, f"state of {state}", effort, say
        )
        for state in STATES
    }
    return {"differences": list(DIFFERENCES), "milliseconds": latency}


def draw(data: Data) -> Figure:
    return draw_panels(data, {str(state): f"state of {state}" for state in STATES}, sharey=True)


def judge(data: Data) -> list[Finding]:
    return [
        speculation_is_below(
            f"from 100 % on speculation is below ({protocol}, state of {state})",
            data["differences"],
            data["milliseconds"][str(state)],
            protocol,
        )
        for state in STATES
        for protocol in TRANSACTIONAL
    ]


EXPERIMENT = Experiment(
    name="figure_4_15",
    title="Figure 4.15: latency out of order",
    claim=(
        "With equal rates the operator can hardly keep up, and latency peaks; elsewhere events "
        "that have run ahead of their turn are committed sooner."
    ),
    measure=measure,
    draw=draw,
    judge=judge,
    notes="One thread; source A sends 1000 events a second, each takes 0.47 ms.",
)
