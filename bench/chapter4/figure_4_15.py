"""Figure 4.15: latency of events out of order, by how much the rates of two sources differ."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from bench.chapter4.experiment import Data, Effort, Experiment, Finding, Say
from bench.chapter4.paced_sources import (
    DEFINITIONS,
    DIFFERENCES,
    HALF,
    RATE,
    ROUNDS,
    SECONDS,
    SECONDS_EQUAL,
    SETTINGS,
    SPECULATIVE,
    Load,
    draw_panels,
    measure_curves,
    peaks_at_equal_rates,
    speculation_is_below,
)
from bench.workloads import listing_4_2

STATES = (100, 10)


def _values(generator: np.random.Generator, count: int) -> list[dict[str, Any]]:
    return [{"value": int(value), "work": 0} for value in generator.integers(2**62, size=count)]


def measure(effort: Effort, say: Say) -> Data:
    """Curves by state."""
    curves = {
        str(state): measure_curves(
            Load(listing_4_2(state), _values, HALF / RATE), f"state of {state}", effort, say
        )
        for state in STATES
    }
    return {"differences": list(DIFFERENCES), "curves": curves}


def draw(data: Data) -> Figure:
    return draw_panels(data, {str(state): f"state of {state}" for state in STATES})


def judge(data: Data) -> list[Finding]:
    differences = data["differences"]
    large, small = (data["curves"][str(state)] for state in STATES)
    findings = []
    for state, curves in zip(STATES, (large, small), strict=True):
        findings += [
            peaks_at_equal_rates(
                f"latency is highest at equal rates ({setting}, state of {state})",
                differences,
                curves,
                setting,
            )
            for setting in SETTINGS
        ]
        findings += [
            speculation_is_below(
                f"elsewhere speculation is below ({protocol}, state of {state})",
                differences,
                curves,
                protocol,
                large if curves is small else None,
            )
            for protocol in SPECULATIVE
        ]
    return findings


EXPERIMENT = Experiment(
    name="figure_4_15",
    title="Figure 4.15: latency out of order",
    section="4.5.3",
    claim=(
        "With equal rates the operator can hardly keep up, and latency peaks, with speculation as "
        "well; elsewhere events that have run ahead of their turn are committed sooner."
    ),
    measure=measure,
    draw=draw,
    judge=judge,
    definitions=DEFINITIONS,
    notes=(
        f"One thread; source A sends {RATE:.0f} events a second, each has {1000 * HALF / RATE:.2f} "
        "ms of busy work after the accesses: slightly less than half of A's period, as in the "
        f"text. {ROUNDS} rounds of {SECONDS_EQUAL:.0f} seconds at equal rates, where a queue takes "
        f"long to settle, and of {SECONDS} elsewhere; the first eighth does not count."
    ),
)
