"""The benchmark of more cores: its page and picture say what its data say."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bench.cores import table
from bench.cores.native import COSTS
from bench.cores.page import page
from bench.cores.plot import draw_cores
from bench.cores.recorded import order_book_times
from bench.cores.table import FULL, GOALS, KINDS, QUICK, SIGMAS
from specstream.tuning.machine import describe

pytestmark = pytest.mark.slow


def sample(speed: float = 0.9, commits: float = 5e6) -> dict[str, Any]:
    """What a run may leave: such a part of the ideal everywhere."""
    shares = {"running": speed, "committing": 0.04, "waiting": 0.06}
    cell = {"horizon": 64, "chunk": 1}
    return {
        "machine": {**describe(), "load": 0.3, "cores": 2},
        "quick": False,
        "costs": COSTS,
        "measured costs": {"transfer": 40.0, "bulk": 5.0, "wake": 6000.0, "call": 3000.0},
        "parts": {
            "busy": [
                {"time": 5000, "reads": 10, "writes": 2, "threads": threads, "real": 2.0}
                | {"machine": 2.0 * speed}
                for threads in (1, 2)
            ],
            "asleep": [
                {**one._asdict(), "sigma": sigma, "ideal": 4.0, "machine": 4.0 * speed}
                | ({"real": 3.8, "waited": 0.05} if sigma else {"real": 2.0, "waited": 0.4})
                for one in FULL.cells
                for sigma in SIGMAS
            ],
            "cores": [
                {"kind": kind, "cores": cores, "ideal": cores, "machine": speed * cores}
                | {**shares, "reruns": 0.01}
                for kind in KINDS
                for cores in FULL.cores
            ],
            "reach": {
                "cells": [
                    {**one._asdict(), "machine": speed * one.threads, **cell} for one in GOALS
                ],
                "commits": {"target": 4e6, "machine": commits, "threads": 8, "horizon": 64},
            },
        },
    }


def test_the_page_says_what_was_seen() -> None:
    text = " ".join(page(sample()).split())
    assert "64 cores run events of 50 µs at so many times the speed of one: all alike: 57.6" in text
    assert "sleep are met within 10 % where they wait for a core no more than 10 % of their" in text
    assert "busy ones within 10 %" in text
    assert "at most 5.0 million a second, 200 ns each" in text
    assert "3 µs for 16 cores, 13 µs for 64" in text
    assert "**no**" not in text
    assert "| 200 µs | 32 | 512 | 1 | 4.00 | 3.80 | 5 % | 3.60 | 0.90 | -10 % |" in text


def test_what_is_not_reached_is_marked() -> None:
    text = page(sample(0.5, 2e6))
    assert text.count("**no**") == len(GOALS) + 1
    assert "| commits a second |  | 8 | 4 million | 2.0 million | **no** | 64 | 1 |" in text


def test_the_picture_has_a_column_for_each_kind() -> None:
    figure = draw_cores(sample())
    assert len(figure.axes) == 2 * len(KINDS)
    for axes in figure.axes[: len(KINDS)]:
        machine = next(line for line in axes.lines if line.get_label() == "the machine")
        assert np.asarray(machine.get_ydata()).tolist() == [0.9 * cores for cores in FULL.cores]


def test_recorded_durations_have_the_mean_that_is_asked_for() -> None:
    times = order_book_times(50_000, 4000)
    assert times.mean() == pytest.approx(50_000, rel=0.01)
    assert times.std() > 1000


def test_shares_of_the_time_add_up_and_running_is_the_events(monkeypatch: Any) -> None:
    kinds = {"all alike": KINDS["all alike"]}
    monkeypatch.setattr(table, "KINDS", kinds)
    amount = replace(QUICK, cores=(1, 4))
    for row in table.more_cores(amount, lambda what: None):
        assert row["running"] + row["committing"] + row["waiting"] == pytest.approx(1)
        assert row["running"] == pytest.approx(row["machine"] / row["cores"], abs=0.03)


def test_the_best_setting_is_found(monkeypatch: Any) -> None:
    monkeypatch.setattr(table, "GOALS", GOALS[3:])
    found = table.reach(replace(QUICK, events=200), lambda what: None)
    (cell,) = found["cells"]
    assert 3 < cell["machine"] < 8
    assert np.isfinite(found["commits"]["machine"])
