"""The benchmark of early results: what it compares is the same, and its page says what it saw."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import specstream as ss
from bench.chapter4.paced_sources import DIFFERENCES
from bench.early import __main__ as command
from bench.early import measure
from bench.early.measure import CURVES, EARLY, FULL, PLAIN, QUICK, SETTINGS, WAYS, WITH_EARLY
from bench.early.page import expectations, page
from bench.early.plot import draw_early
from bench.early.told import look, standing
from bench.stored import to_text
from specstream.operators import top_k
from specstream.tuning.machine import describe

FOLDER = Path(__file__).parents[2] / "docs" / "research"


def sample(times: float = 20.0, revised: float = 0.02, load: float = 0.3) -> dict[str, Any]:
    """What a run may leave: early rows so many times as soon as final ones, so many revised."""
    latency = {curve: 0.25 if curve == EARLY else 0.25 * times for curve in CURVES}
    rates = [
        {
            "difference": difference,
            "rows": 5_000,
            "waiting": 3.5,
            "milliseconds": {
                curve: {"median": [value] * 3, "99 %": [4 * value] * 3}
                for curve, value in latency.items()
            },
            "final to early": [times] * 3,
            "speculation to none": [1.02] * 3,
            "revised": [revised] * 3,
            "call": 0.125,
        }
        for difference in DIFFERENCES
    ]
    late = [
        {
            "delay": delay,
            "late": share,
            "threads": threads,
            "lead": {"median": [delay] * 3, "99 %": [2 * delay] * 3},
            "revised": [share / 4] * 3,
            "revoking": [share / 8] * 3,
            "throughput": {"told": [0.25] * 3, "untold": [0.75] * 3},
            "events per second": [4_000.0] * 3,
            "bytes": 640_000 * delay,
            "bytes per event": 640.0,
            "passes": 100,
            "revoked": 1_000,
            "republished": 990,
            "rerun": 10,
        }
        for delay in FULL.delays
        for share in FULL.shares
        for threads in FULL.threads
    ]
    setting = {"seconds": 1.5, "rounds": 5}
    return {
        "machine": {**describe(), "load": load, "cores": 2},
        "quick": False,
        "parts": {
            "rates": {"rate": 1000.0, "transit": 0.2, **setting, "points": rates},
            "delays": {"density": 1000, "tick": 0.05, "accounts": 1000, **setting, "points": late},
        },
    }


# ---- what was told ----


def told(*rows: tuple[int, int, str]) -> pa.Table:
    """Changes: time, content, what has become of it."""
    times, contents, changes = zip(*rows, strict=True)
    zeros = [0] * len(rows)
    return pa.table(
        {"x": contents, "timestamp": times, "source": zeros, "sequence": times, "n": zeros}
        | {"version": zeros, "change": changes}
    )


def test_rows_are_revised_that_change_or_are_withdrawn_after_they_were_told() -> None:
    answers = [
        (1.0, told((1, 5, "early"), (2, 6, "early"), (3, 7, "early"), (4, 8, "early"))),
        (2.0, told((1, 5, "final"), (2, 9, "early"), (3, 7, "withdrawn"))),
        (3.0, told((2, 9, "final"), (4, 0, "final"), (5, 1, "final"))),
    ]
    log = look(answers, ["x"])
    assert [row[0] for row in sorted(log.revised)] == [2, 3, 4]
    assert [row[0] for row in sorted(log.early)] == [1, 2, 3, 4]
    assert log.share_revised == 0.75
    assert {row[0]: at for row, at in log.first.items()} == {1: 1, 2: 1, 3: 1, 4: 1, 5: 3}
    assert {row[0]: at for row, at in log.final.items()} == {1: 2, 2: 3, 4: 3, 5: 3}


def test_what_comes_back_as_it_was_has_been_revised_once() -> None:
    answers = [
        (1.0, told((1, 5, "early"))),
        (2.0, told((1, 5, "withdrawn"))),
        (3.0, told((1, 5, "final"))),
    ]
    assert look(answers, ["x"]).share_revised == 1.0


def test_what_stands_is_what_an_engine_has_told() -> None:
    answers = []
    with ss.Engine(measure.book, sources=["a", "b"], early=True) as engine:
        for at, source, account in ((20, "a", 3), (10, "b", 3), (30, "a", 4)):
            engine.submit_event(at, source, account=account, amount=at)
            answers.append((float(at), engine.poll_early(timeout=None).changes))
    assert standing(answers, ["balance"]).to_pydict() == {"balance": [10, 30, 30]}
    assert look(answers, ["balance"]).revised == {(20, "a", 0)}


# ---- streams ----


@pytest.mark.parametrize("difference", DIFFERENCES)
def test_sources_send_as_often_as_they_should_and_overtake_none_of_their_own(
    difference: float,
) -> None:
    events = measure.arrivals(difference, 4.0, 7)
    assert [one.at for one in events] == sorted(one.at for one in events)
    for source, rate in (("A", 1000.0), ("B", 1000.0 / (1 + difference))):
        times = [one.time for one in events if one.source == source]
        assert times == sorted(set(times))
        assert abs(len(times) / (4 * rate) - 1) < 0.15
    assert all(one.at >= one.time / measure.MICRO for one in events)
    times = [one.time for one in events]
    assert times != sorted(times)  # across sources some are overtaken


@pytest.mark.parametrize("share", [0.01, 0.5])
def test_a_share_of_a_stream_is_late_and_none_is_refused(share: float) -> None:
    of = measure.stream(0.5, share, 4.0, 3)
    assert sum(table.num_rows for table, _ in of.ticks) == of.events == of.expected.num_rows
    frontier, behind = -(10**9), 0
    for number, (table, to) in enumerate(of.ticks):
        times = table["time"].to_numpy()
        assert (times >= frontier).all()
        behind += int((times < round(number * measure.TICK * measure.MICRO)).sum())
        frontier = to
    assert frontier > of.events * measure.MICRO // measure.DENSITY
    assert 0 < behind / of.events <= 1.3 * share


# ---- what is compared ----


@pytest.mark.slow
@pytest.mark.parametrize("name", SETTINGS)
def test_two_sources_are_merged_by_every_setting(name: str) -> None:
    found = measure.merge(name, measure.arrivals(1.0, 0.1, 5), top_k(5))
    early = name == WITH_EARLY
    assert set(found.latency) == ({name, EARLY} if early else {name})
    assert all(min(times) > 0 for times in found.latency.values())
    if early:
        assert found.revised is not None
        pairs = zip(found.latency[EARLY], found.latency[name], strict=True)
        assert all(first <= last + 0.1 for first, last in pairs)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("threads", [1, 2])
def test_late_events_are_fed_in_every_way(way: str, threads: int) -> None:
    of = measure.stream(0.5, 0.5, 2.0, 3)
    found = measure.feed(of, threads=threads, **WAYS[way])
    assert (found.log is not None) == (way == "told")
    assert (found.bytes > 0) == (way != "none")
    if found.log is not None:
        assert len(found.log.final) == of.events
        leads = [found.log.final[row] - at for row, at in found.log.first.items()]
        assert 0 <= min(leads) <= max(leads) <= 0.5 + 2 * measure.TICK
        assert float(np.median(leads)) > 0.3
        assert found.log.revised
        assert found.counts["revoked"] >= found.counts["rerun"] > 0


def test_other_rows_than_those_of_the_sequential_run_are_noticed() -> None:
    of = measure.stream(0.1, 0.5, 0.5, 3)
    wrong = replace(of, expected=of.expected.slice(1))
    with pytest.raises(AssertionError, match="other rows than the sequential run"):
        measure.feed(wrong, early=False, threads=1)


# ---- the command ----


@pytest.mark.slow
def test_a_quick_run_writes_data_picture_and_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    least = replace(QUICK, seconds=0.1, delays=(0.1,), shares=(0.5,), event_seconds=0.5)
    monkeypatch.setattr(command, "QUICK", least)
    folder, file = tmp_path / "speed", tmp_path / "kept.json"
    arguments = ["--quick", "--plot", str(folder), "--json", str(file)]
    monkeypatch.setattr("sys.argv", ["early", *arguments])
    assert command.main() == 0
    data = json.loads(file.read_text())
    assert data["quick"]
    assert json.loads((folder / "early.json").read_text()) == data
    assert (folder / "early.png").read_bytes().startswith(b"\x89PNG")
    assert (folder / "early.md").read_text() == page(data)
    assert "What was expected" in capsys.readouterr().out
    like = sample()["parts"]
    for part, found in data["parts"].items():
        assert found.keys() == like[part].keys()
        assert all(one.keys() == like[part]["points"][0].keys() for one in found["points"])
    assert [one["difference"] for one in data["parts"]["rates"]["points"]] == [0.0, 4.0]
    again = ["--from", str(file), "--plot", str(tmp_path / "again")]
    monkeypatch.setattr("sys.argv", ["early", *again])
    assert command.main() == 0
    assert (tmp_path / "again" / "early.md").read_text() == page(data)


@pytest.mark.slow
def test_one_part_can_be_measured_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    least = replace(QUICK, delays=(0.1,), shares=(0.5,), threads=(1,), event_seconds=0.5)
    monkeypatch.setattr(command, "QUICK", least)
    file = tmp_path / "late.json"
    monkeypatch.setattr("sys.argv", ["early", "--quick", "--only", "delays", "--json", str(file)])
    assert command.main() == 0
    assert set(json.loads(file.read_text())["parts"]) == {"delays"}
    output = capsys.readouterr().out
    assert "Late events; throughput relative" in output
    assert "What was expected" not in output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--only", "rate"], "invalid choice: 'rate'"),
        (["--only", "rates", "--plot"], "--plot wants both parts: leave out --only"),
        (["--from", "earlier.json"], "--from draws: name a folder with --plot"),
        (["--rounds", "3"], "unrecognized arguments"),
    ],
)
def test_wrong_options_are_refused(
    arguments: list[str],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("sys.argv", ["early", *arguments])
    with pytest.raises(SystemExit) as left:
        command.main()
    assert left.value.code == 2
    assert said in capsys.readouterr().err


# ---- the page ----


def test_what_is_expected_is_what_was_asked_for() -> None:
    asked = [(one.bound, one.least) for one in expectations(sample())]
    assert asked == [(10.0, True)] * len(DIFFERENCES) + [(0.9, True), (0.1, False)]
    assert FULL.delays == (0.1, 1.0, 10.0)
    assert FULL.shares == (0.01, 0.1, 0.5)
    assert FULL.threads == (1, 2)
    assert FULL.differences == (0.0, 0.5, 1.0, 2.0, 4.0)


@pytest.mark.parametrize(
    ("times", "revised", "holds"), [(20.0, 0.02, True), (1.5, 0.5, False), (10.0, 0.1, True)]
)
def test_the_page_says_other_things_of_other_data(
    times: float, revised: float, holds: bool
) -> None:
    data = sample(times, revised)
    assert all(one.holds == holds for one in expectations(data) if one.bound != 0.9)
    text = " ".join(page(data).split())
    assert ("Where it was missed:" in text) != holds
    assert ("a call of `poll_early` takes 0.12 ms" in text) != holds
    assert f"after {0.25 * times:.2f} ms without early results" in text
    assert f"At most {revised:.1%} of the early rows were revised." in text
    assert f"| 400 % | {0.25 * times:.2f} / {times:.2f} |" in text
    assert "| 10 s | 50 % | 2 | 10.00 s | 20.00 s | 12.5% | 6.2% | 0.25 (0.25-0.25)" in text
    assert "| 6.4 MB | 640 B | 1.0% |" in text


def test_speculation_that_is_sooner_is_not_what_was_expected() -> None:
    data = sample()
    data["parts"]["rates"]["points"][2]["speculation to none"] = [0.5] * 3
    (missed,) = [one for one in expectations(data) if not one.holds]
    assert "B slower by 100 %" in missed.what


@pytest.mark.parametrize(("load", "is_said"), [(0.3, False), (4.0, True)])
def test_the_page_says_when_others_had_the_cores(load: float, is_said: bool) -> None:
    assert ("**Provisional:**" in page(sample(load=load))) == is_said


def drawn(line: Any) -> list[float]:
    """Heights of the points of a line."""
    return [float(value) for value in line.get_ydata()]


def test_the_picture_has_the_curves_of_both_parts() -> None:
    data = json.loads(to_text(sample()))
    figure = draw_early(data)
    latency, revised, again, throughput = figure.axes
    assert [line.get_label() for line in latency.get_lines()] == [*CURVES]
    plain = latency.get_lines()[CURVES.index(PLAIN)]
    assert drawn(plain) == [5.0] * len(DIFFERENCES)
    assert drawn(revised.get_lines()[0]) == [2.0] * len(DIFFERENCES)
    assert [line.get_label() for line in again.get_lines()] == [
        f"late by up to {delay:g} s" for delay in FULL.delays
    ]
    assert drawn(throughput.get_lines()[0]) == [0.25] * len(FULL.shares)


def test_the_page_is_what_the_stored_data_say() -> None:
    text = (FOLDER / "early.json").read_text()
    data = json.loads(text)
    assert page(data) == (FOLDER / "early.md").read_text()
    assert text == to_text(data)
    assert not data["quick"]
