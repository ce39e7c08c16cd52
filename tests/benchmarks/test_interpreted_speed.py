"""The benchmark of interpreted operators: its answers are right, and its page says what it saw."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

import specstream as ss
from bench.interpreted import __main__ as command
from bench.interpreted.measure import LENGTHS, QUICK, THREADS, costs
from bench.interpreted.operators import events
from bench.interpreted.page import expectations, page
from bench.interpreted.plot import draw_interpreted
from bench.stored import to_text

FOLDER = Path(__file__).parents[2] / "docs" / "research"
KEPT: dict[str, Any] = json.loads((FOLDER / "interpreted.json").read_text())


@pytest.mark.parametrize("operator", [one for one, _ in THREADS.values()], ids=str)
def test_what_is_measured_has_the_sequential_answer(operator: ss.Operator) -> None:
    given = events(40)
    with ss.Engine(operator, threads=4, horizon=8, chunk=1) as engine:
        assert engine.process(given).equals(operator.run_sequential(given).output)


def test_an_access_takes_longer_than_nothing() -> None:
    for one in costs(QUICK, lambda _: None).values():
        assert one["event"] > 0
        assert one["read"] > 0
        assert one["write"] > 0


def test_a_part_alone_is_no_page(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["interpreted", "--only", "costs", "--plot"])
    with pytest.raises(SystemExit):
        command.main()
    assert "--plot wants all parts: leave out --only" in capsys.readouterr().err


def test_the_page_is_that_of_the_data_beside_it() -> None:
    assert page(KEPT) == (FOLDER / "interpreted.md").read_text()
    assert to_text(KEPT) == (FOLDER / "interpreted.json").read_text()


@pytest.mark.parametrize(("speed", "holds"), [(14.5, True), (13.0, False)])
def test_the_page_says_other_things_of_other_data(speed: float, holds: bool) -> None:
    data = copy.deepcopy(KEPT)
    data["parts"]["threads"]["look-up of 1 ms"]["speed"]["16"] = [speed] * 3
    (found,) = (one for one in expectations(data) if "16 threads" in one.what)
    assert found.holds == holds
    assert f"16 threads a look-up of 1 ms {speed:.1f} times" in " ".join(page(data).split())


def test_the_picture_shows_all_that_was_measured() -> None:
    figure = draw_interpreted(KEPT)
    by_threads, *by_length = figure.axes
    assert {line.get_label() for line in by_threads.lines} >= set(THREADS)
    assert {axes.get_title(loc="left") for axes in by_length} == set(LENGTHS)
