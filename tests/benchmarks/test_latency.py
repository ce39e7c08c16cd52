"""The benchmark of latency: nothing delays an arrival, and its page says what it saw."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.latency import __main__ as command
from bench.latency import measure
from bench.latency.measure import CALLS, LOADS, QUICK, SETTINGS, Setting
from bench.latency.page import expectations, page
from bench.latency.plot import draw_latency
from bench.stored import to_text
from specstream.tuning.machine import describe

FOLDER = Path(__file__).parents[2] / "docs" / "research"


def sample(times: float = 1.25, load: float = 0.3) -> dict[str, Any]:
    """What a run may leave: medians so many times that of an ideal machine."""
    one = {"least": 20.0, "median": 30.0}
    settings = {
        name: {
            "threads": setting.threads,
            "asleep": setting.is_asleep,
            "milliseconds": 1e3 * setting.seconds,
            "capacity": [4_000.0] * 3,
            "loads": [
                {
                    "load": part,
                    "events": 8_000,
                    "median": [times] * 3,
                    "99.9 %": 10 * times,
                    "ideal": {"median": 1.0, "99.9 %": 5.0},
                    "to ideal": [times] * 3,
                }
                for part in LOADS
            ],
        }
        for name, setting in SETTINGS.items()
    }
    calls = {name: dict.fromkeys(CALLS, one) for name in ("1 thread", "2 threads")}
    return {
        "machine": {**describe(), "load": load, "cores": 2},
        "quick": False,
        "parts": {
            "calls": {"calls": 5_000, "microseconds": calls},
            "load": {"seconds": 4.0, "rounds": 5, "settings": settings},
        },
    }


# ---- arrivals and waits ----


def test_events_arrive_as_often_as_they_should_and_the_same_each_time() -> None:
    come = measure.arrivals(1_000.0, 4.0, 7)
    assert (np.diff(come) > 0).all()
    assert come[0] > 0
    assert come[-1] < 4.0
    assert abs(len(come) / 4_000 - 1) < 0.1
    assert (come == measure.arrivals(1_000.0, 4.0, 7)).all()


def test_on_an_ideal_machine_events_wait_for_a_thread_and_for_those_before_them() -> None:
    come = np.array([0.0, 0.5, 0.75, 4.0])
    assert measure.ideal(come, 1, 1.0).tolist() == [1.0, 1.5, 2.25, 1.0]
    assert measure.ideal(come, 2, 1.0).tolist() == [1.0, 1.0, 1.25, 1.0]
    assert measure.ideal(come, 3, 1.0).tolist() == [1.0, 1.0, 1.0, 1.0]


def test_the_wait_of_an_event_that_came_while_others_ran_counts() -> None:
    setting = Setting({"threads": 1, "horizon": 0}, 0.01, is_asleep=True)
    latencies = measure.paced(setting, np.zeros(8), measure.Expected())
    # All have come at once, so each waits for those before it, however late it is submitted.
    assert (latencies >= 0.01 * np.arange(1, 9)).all()
    assert (np.diff(latencies) >= 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", SETTINGS)
def test_every_setting_gives_the_rows_of_the_sequential_run(name: str) -> None:
    setting = SETTINGS[name]
    latencies = measure.paced(setting, measure.arrivals(500.0, 0.1, 3), measure.Expected())
    assert (latencies >= setting.seconds if setting.is_asleep else latencies > 0).all()


def test_other_rows_than_those_of_the_sequential_run_are_noticed() -> None:
    expected = measure.Expected()
    expected.check([(0, 1), (1, 1)], "two events")
    with pytest.raises(AssertionError, match="one event: other rows than the sequential run"):
        expected.check([(0, 2)], "one event")


# ---- the command ----


@pytest.mark.slow
def test_a_quick_run_writes_data_picture_and_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    least = replace(QUICK, calls=1, rounds=2, capacity=20, seconds=0.1)
    monkeypatch.setattr(command, "QUICK", least)
    folder, file = tmp_path / "speed", tmp_path / "kept.json"
    arguments = ["--quick", "--plot", str(folder), "--json", str(file)]
    monkeypatch.setattr("sys.argv", ["latency", *arguments])
    assert command.main() == 0
    data = json.loads(file.read_text())
    assert data["quick"]
    assert json.loads((folder / "latency.json").read_text()) == data
    assert (folder / "latency.png").read_bytes().startswith(b"\x89PNG")
    assert (folder / "latency.md").read_text() == page(data)
    assert "What was expected" in capsys.readouterr().out
    like = sample()["parts"]
    assert data["parts"]["calls"].keys() == like["calls"].keys()
    for name, found in data["parts"]["load"]["settings"].items():
        wanted = like["load"]["settings"][name]
        assert found.keys() == wanted.keys()
        assert [one.keys() for one in found["loads"]] == [one.keys() for one in wanted["loads"]]


def test_a_part_alone_is_no_page(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["latency", "--only", "load", "--plot"])
    with pytest.raises(SystemExit):
        command.main()
    assert "--plot wants both parts: leave out --only" in capsys.readouterr().err


# ---- the page ----


@pytest.mark.parametrize(("times", "holds"), [(1.25, True), (3.0, False)])
def test_the_page_says_other_things_of_other_data(times: float, holds: bool) -> None:
    data = sample(times)
    assert [one.holds for one in expectations(data)] == [holds] * 6
    text = " ".join(page(data).split())
    assert ("Where it was missed:" in text) != holds
    assert f"{times:.2f} ms and {10 * times:.2f} ms (1 thread, events of 0.2 ms)" in text
    assert "| 16 threads, asleep, 4 ms | 90% | 3,600 |" in text
    assert "**Provisional:**" not in text
    assert "**Provisional:**" in page(sample(load=2.0))


def test_the_page_is_that_of_the_data_beside_it() -> None:
    data = json.loads((FOLDER / "latency.json").read_text())
    assert page(data) == (FOLDER / "latency.md").read_text()
    assert to_text(data) == (FOLDER / "latency.json").read_text()


def test_the_picture_has_a_panel_for_each_setting() -> None:
    figure = draw_latency(sample())
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert [title.splitlines()[0] for title in titles] == list(SETTINGS)
    assert all(len(axes.lines) == 4 for axes in figure.axes)
