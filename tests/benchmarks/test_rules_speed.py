"""The benchmark of rules: it compares before it measures, and its page says what it saw."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import specstream as ss
from bench.monitors import dejavu, timescales, written_by_hand
from bench.monitors.peers import Run, installed
from bench.monitors.sentences import SENTENCES
from bench.pictures import PICTURES
from bench.rules import __main__ as command
from bench.rules import alone, beside, robustness, rounds, verbs
from bench.rules.__main__ import FULL, QUICK
from bench.rules.page import PARTS, judged, page
from bench.rules.plot import draw_rules
from bench.rules.rounds import DiffersError, SlowError, affordable, rule_of, stopped, table
from bench.stored import to_text
from specstream.tuning.machine import describe

# Of an old ANTLR, which rtamt needs.
pytestmark = pytest.mark.filterwarnings("ignore:typing.io is deprecated:DeprecationWarning")
FOLDER = Path(__file__).parents[2] / "docs" / "research"
LEAST = replace(
    QUICK,
    events=300,
    rounds=2,
    beside=2,
    seconds=30.0,
    peer=30.0,
    bounds=(10,),
    reaches=(10,),
    sizes=((300, 10),),
    mixed=60,
    heavy=400,
    orders=200,
    files=2,
)
SIMPLE = "response_globally"


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """One property of each kind, and no other monitor."""
    monkeypatch.setattr(timescales, "PROPERTIES", {SIMPLE: timescales.PROPERTIES[SIMPLE]})
    monkeypatch.setattr(written_by_hand, "PAST", {SIMPLE: written_by_hand.PAST[SIMPLE]})
    access = {"access": written_by_hand.DEJAVU["access"]}
    monkeypatch.setattr(written_by_hand, "DEJAVU", access)
    monkeypatch.setattr(beside, "DATA", ("access",))
    for module in (beside, robustness):
        monkeypatch.setattr(module, "installed", dict)
    monkeypatch.setattr(verbs, "PAIRS", verbs.PAIRS[:1])
    monkeypatch.setattr(alone, "SENTENCES", {"never": SENTENCES["never"]})
    monkeypatch.setattr(robustness, "FORMULAS", {"until": robustness.FORMULAS["until"]})
    monkeypatch.setattr(alone, "_twenty", lambda: [of_p(), of_p(name="again")])


def of_p(report: str = "violations", name: str = "of_p") -> ss.Operator:
    """A rule of four columns, of which it reads one."""
    return rule_of("def rule(e):\n    return e.p\n", name, dict.fromkeys("pqrs", bool), report)


def sample(ratio: float = 50.0, load: float = 0.3) -> dict[str, Any]:
    """What a run may leave, with this ratio to everybody."""
    times = [ratio * share for share in (0.9, 1.0, 1.1)]
    there = {"events": 900, "takes": 20.0 * ratio, "ratio": times}
    own = {
        "events": 1000,
        "rounds": 5,
        "violations": 7,
        "ours": 20.0,
        "other": 20.0 * ratio,
        "ratio": times,
    }
    both = {"events": 1000, "rounds": 5, "ours": 20.0, "all": 30.0}
    parts: dict[str, Any] = {
        "verbs": [{"name": "map", **own, "millions": ratio, "least": 12.0}],
        "past": [{"name": "absence", "form": "each", "bound": 10, **both, "reelay": there}],
        "future": [{"name": "absence", "bound": 10, **both, "mstlo": there, "rtamt": there}],
        "robustness": [{"name": "until", "bound": 10, **both, "mstlo": there, "rtamt": there}],
        "data": [
            {"name": "access", "size": 1000, "values": 10, **both, "reelay": there, "grown": 1.0}
        ],
        "by_hand": [{"name": "paid_in_time", **own}],
        "twenty": [{"name": "20 rules", **own}],
        "others": [{"name": "paid_in_time", **own}],
        "spark": [{"name": "`paid_in_time` through Spark", "orders": 600, **own}],
    }
    found: dict[str, Any] = {name: {"rows": rows} for name, rows in parts.items()}
    found["data"]["seconds"] = 3.0
    for name in ("past", "future", "robustness"):
        growth = {"name": "absence", "form": "each", "ratio": [1.0, 1.1, 1.2], **both}
        found[name]["growth"] = [growth]
    found["threads"] = {"name": "two threads", "microseconds": 5.0, **own}
    return {
        "machine": {**describe(), "load": load, "cores": 2},
        "quick": False,
        "peers": {"reelay": "25.0.0"},
        "parts": found,
    }


# ---- what is compared ----


def test_verdicts_of_a_rule_are_those_it_tells_one_by_one() -> None:
    rule = beside.Compiled("of_p", "def rule(e):\n    return e.p\n", {"p": bool})
    columns = {"time": np.arange(4), "p": np.array([True, False, True, False])}
    assert rule.verdicts(columns).tolist() == [True, False, True, False]
    beside.equal("somebody", rule.verdicts(columns), np.array([True, False, True]), 3)
    with pytest.raises(DiffersError, match="event 1 and 1 more: ours False, somebody True"):
        beside.equal("somebody", rule.verdicts(columns), np.array([True] * 4), 4)
    with pytest.raises(DiffersError, match="somebody tells 3 verdicts, of 4"):
        beside.equal("somebody", rule.verdicts(columns), np.array([True, False, True]), 4)
    rule.violations = rule.all
    with pytest.raises(DiffersError, match="4 violations, and 2 verdicts that are false"):
        rule.verdicts(columns)


def test_an_event_that_is_told_twice_is_noticed() -> None:
    told = rounds.process(of_p("all"), table({"time": np.array([0, 1, 1]), **bools(3)}))[0]
    with pytest.raises(DiffersError, match="3 verdicts of 3 events"):
        rounds.told(told, 3)


def bools(events: int) -> dict[str, np.ndarray]:
    return {name: np.ones(events, dtype=bool) for name in "pqrs"}


class Liar:
    """A monitor to which everything holds."""

    name = "reelay"

    def write(self, formula: Any) -> str:
        return "true"

    def prepare(self, columns: dict[str, np.ndarray]) -> int:
        return len(columns["time"])

    def run(self, formula: str, prepared: int, robust: bool = False) -> Run:
        return Run(np.ones(prepared, dtype=bool), 1e-3)


@pytest.mark.slow
@pytest.mark.usefixtures("few")
def test_a_difference_stops_a_row_and_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(beside, "installed", lambda: {"reelay": Liar()})
    monkeypatch.setattr(dejavu, "events_for_reelay", lambda which, columns: len(columns["time"]))
    for found in (beside.past(LEAST, print), beside.data(LEAST, print)):
        for row in found["rows"]:
            assert "ours" not in row
            assert "reelay" in row["stopped"]
    assert "ours False, reelay True" in capsys.readouterr().err
    growth = beside.past(LEAST, print)["growth"]
    assert {row["stopped"] for row in growth} == {"a bound has no time"}


def test_rows_by_hand_are_compared() -> None:
    rows = rounds.process(of_p(), table({"time": np.arange(3), **bools(3), "p": np.zeros(3, bool)}))
    alone.same_rows_of(rows[0], rows[0], ["time", "verdict"])
    with pytest.raises(DiffersError, match="3 rows, by hand 2"):
        alone.same_rows_of(rows[0], rows[0].slice(1), ["time", "verdict"])
    other = rows[0].set_column(0, "time", [[0, 1, 7]])
    with pytest.raises(DiffersError, match=r"'time': 2.*by hand.*'time': 7"):
        alone.same_rows_of(rows[0], other, ["time", "verdict"])


def test_what_takes_long_gets_fewer_events() -> None:
    def taking(each: float) -> int:
        return affordable(6400, 100, 2.0, lambda events: each * events)

    assert [taking(each) for each in (1e-9, 0.001, 0.01, 1.0)] == [6400, 1600, 100, 100]


def test_what_takes_long_gets_fewer_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr("bench.rules.rounds.time.perf_counter", lambda: clock[0])

    def run(takes: float) -> float:
        clock[0] += takes
        return takes

    def rounds_of(takes: float) -> int:
        return len(rounds.interleaved({"one": lambda: run(takes)}, 15, 8.0)["one"])

    assert [rounds_of(takes) for takes in (0.001, 1.0, 4.0)] == [15, 9, 5]


def test_what_is_much_too_slow_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "process", lambda operator, data: (None, 1e-3 * data.num_rows))
    with pytest.raises(SlowError, match="an event takes 1,000 µs of 2,000: not compared"):
        rounds.within_time(None, lambda many: table({"time": np.arange(many)}), 10**6, 10**5, 1.0)


def test_a_rule_that_is_refused_stops_its_row() -> None:
    def refused() -> dict[str, Any]:
        rule_of("def rule(e):\n    return e.nothing\n", "wrong", {"p": bool})
        return {}

    assert "nothing" in stopped({"name": "wrong"}, refused)["stopped"]


# ---- the command ----


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.usefixtures("few")
def test_a_run_without_other_monitors_writes_data_picture_and_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "QUICK", LEAST)
    file = tmp_path / "kept.json"
    arguments = ["--quick", "--plot", str(tmp_path), "--json", str(file)]
    monkeypatch.setattr("sys.argv", ["rules", *arguments])
    assert command.main() == 0
    data = json.loads(file.read_text())
    assert list(data["parts"]) == list(PARTS)
    assert '"stopped"' not in file.read_text()
    assert json.loads((tmp_path / "rules.json").read_text()) == data
    assert (tmp_path / "rules.png").read_bytes().startswith(b"\x89PNG")
    text = (tmp_path / "rules.md").read_text()
    assert text == command._page(data)
    assert "| not installed |" in text
    assert "not built" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("part", ["past", "future", "robustness", "data"])
@pytest.mark.usefixtures("few")
def test_other_monitors_are_beside_us(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = installed()
    if not found:
        pytest.skip("no other monitor is installed: bench/monitors/requirements.txt")
    for module in (beside, robustness):
        monkeypatch.setattr(module, "installed", lambda: found)
    measure = command.MEASURES[part]
    names = {"mstlo", "rtamt"} if part in ("future", "robustness") else {"reelay"}
    for row in measure(LEAST, lambda text: None)["rows"]:
        assert "stopped" not in row
        assert names & set(row) == names & set(found)


def test_what_is_measured_is_what_was_asked_for() -> None:
    assert FULL.events == 1_000_000
    assert FULL.bounds == timescales.BOUNDS == (10, 100, 1000)
    assert {size for size, _ in FULL.sizes} == {10**4, 10**5, 10**6}
    assert max(values for _, values in FULL.sizes) == 10**5
    assert FULL.orders == 10**6
    assert tuple(command.MEASURES) == PARTS


# ---- the page ----


def test_what_is_asked_for() -> None:
    asked = {(one.part, one.bound, one.least) for one in judged(sample())}
    assert asked == {
        ("verbs", 0.8, True),
        ("verbs", 12.0, True),
        ("past", 20.0, True),
        ("past", 1.25, False),
        ("future", 15.0, True),
        ("future", 200.0, True),
        ("robustness", 5.0, True),
        ("robustness", 200.0, True),
        ("robustness", 1.25, False),
        ("data", 30.0, True),
        ("data", 1.25, False),
        ("by_hand", 0.8, True),
        ("twenty", 1.0, True),
        ("others", 1.2, False),
        ("threads", 1.85, True),
        ("spark", 5.0, True),
    }


def test_the_page_says_what_is_missed() -> None:
    data = sample(500.0)
    assert [one.part for one in judged(data) if not one.holds] == ["others"]
    assert "| paid_in_time, events that do not concern it, to a filter | at most 1.2 | 500 |" in (
        page(data)
    )
    data["parts"]["others"]["rows"][0]["ratio"] = [1.0, 1.1, 1.2]
    assert "## What was missed\n\nNothing." in page(data)
    data["parts"]["past"]["rows"][0] = {
        "name": "absence",
        "form": "each",
        "bound": 10,
        "stopped": "event 3 and 0 more: ours True, reelay False",
    }
    (missed,) = [one for one in judged(data) if not one.holds]
    assert missed.what == "absence, each, bound 10, to reelay"
    assert "| at least 20 | event 3 and 0 more: ours True, reelay False |" in page(data)
    assert len([one for one in judged(sample(0.5)) if not one.holds]) == 12


def test_fewer_events_than_asked_for_are_not_flat() -> None:
    data = sample(500.0)
    data["parts"]["data"]["rows"][0]["size"] = 10_000
    told = [one for one in judged(data) if not one.holds and one.part == "data"]
    assert [one.because for one in told] == ["it took too long for more than 1,000 events"]
    assert "| 1,000 of 10,000 |" in page(data)


@pytest.mark.parametrize(("load", "is_said"), [(0.3, False), (4.0, True)])
def test_the_page_says_when_others_had_the_cores(load: float, is_said: bool) -> None:
    assert ("**Provisional:**" in page(sample(load=load))) == is_said


def test_the_picture_has_everybody() -> None:
    (axes,) = draw_rules(json.loads(to_text(sample()))).axes
    shown = [line for line in axes.get_lines() if not str(line.get_label()).startswith("_")]
    assert [line.get_label() for line in shown] == [
        *("reelay", "mstlo", "rtamt", "reelay, data", "operator by hand")
    ]
    assert all(np.asarray(line.get_ydata()).tolist() == [50.0] for line in shown)


def test_the_page_is_what_the_stored_data_say() -> None:
    """Where nothing is stored yet it says what will be measured."""
    file = FOLDER / "rules.json"
    data = json.loads(file.read_text()) if file.exists() else {}
    assert command._page(data) == (FOLDER / "rules.md").read_text()
    assert file.exists() == ("research/rules" in PICTURES)
    if file.exists():
        assert file.read_text() == to_text(data)
        assert not data["quick"]
