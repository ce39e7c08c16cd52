"""The experiments with the ready operators: what their controls do, and what the pictures show."""

from collections.abc import Callable
from typing import Any

import pytest

from bench.chapter4 import figure_4_18, figure_4_19, table_4_3, table_4_4, three_ratios
from bench.chapter4.experiment import Effort, Experiment
from bench.chapter4.lab import TRANSACTIONAL
from bench.chapter4.ready import (
    COARSE,
    DISTINCT,
    FEW_REPEATS,
    READY,
    Variant,
    drops_more,
    in_rounds,
    pace_of,
    per_transaction,
    repeating,
    why_no_faster,
)

pytestmark = pytest.mark.slow

QUICK = Effort(quick=True)
Rows = dict[str, dict[str, Any]]


def row(name: str) -> dict[str, Any]:
    """A measurement as it might come out: of more threads more speed."""
    threads = next((int(part) for part in name.replace(",", "").split() if part.isdigit()), 1)
    speed = 0.97 * min(threads, 6)
    return {
        "speed": [0.99 * speed, speed, 1.01 * speed],
        "microseconds": 100 / speed,
        "transactions": 10_000,
        "dropped": 0 if "distinct" in name else 100 * threads,
        "per run": 0.1,
        "ahead": 0.5,
        "nap": 1.2,
        "horizon": 4.0,
    }


def rows_of(variants: dict[str, Variant]) -> Rows:
    return {name: row(name) for name in variants}


def by_length(experiment: Any, lengths: tuple[str, ...]) -> dict[str, dict[str, Rows]]:
    return {
        ready.name: {
            length: rows_of(experiment.variants(ready, length, QUICK)) for length in lengths
        }
        for ready in READY
    }


def by_protocol() -> dict[str, Any]:
    return {
        ready.name: {
            protocol: rows_of(table_4_4.variants(ready, protocol, QUICK))
            for protocol in TRANSACTIONAL
        }
        for ready in (*READY, FEW_REPEATS)
    }


SAME = {ready.name: {"value": True, "eager": True, "locks": False} for ready in READY}
DATA: dict[str, Callable[[], dict[str, Any]]] = {
    "figure_4_18": lambda: {"rows": by_length(figure_4_18, figure_4_18.LENGTHS)},
    "figure_4_19": lambda: {"rows": by_length(figure_4_19, figure_4_19.LENGTHS), "same": SAME},
    "table_4_3": lambda: {
        "rows": {ready.name: rows_of(table_4_3.variants(ready, QUICK)) for ready in READY}
    },
    "table_4_4": lambda: {"rows": by_protocol()},
    "three_ratios": lambda: {
        "rows": by_length(three_ratios, (*three_ratios.LENGTHS, three_ratios.LONGER))
    },
}
EXPERIMENTS = {
    module.EXPERIMENT.name: module.EXPERIMENT
    for module in (figure_4_18, figure_4_19, table_4_3, table_4_4, three_ratios)
}


@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=EXPERIMENTS)
def test_pictures_show_all_and_each_no_has_its_cause(experiment: Experiment) -> None:
    data = DATA[experiment.name]()
    figure = experiment.draw(data)
    figure.canvas.draw()
    width = figure.bbox.width
    for axes in figure.axes:
        # Titles, names and numbers of bars, which no limits keep in.
        for text in [*axes.texts, axes.title, getattr(axes, "_left_title")]:  # noqa: B009
            assert text.get_window_extent().x1 <= width, text.get_text()
        for of, limits in (("x", axes.get_xlim()), ("y", axes.get_ylim())):
            low, high = (getattr(axes.dataLim, f"{of}{end}") for end in (0, 1))
            assert min(limits) <= low <= high <= max(limits), axes.get_title("left")
    findings = experiment.judge(data)
    assert findings
    for finding in findings:
        assert finding.holds or finding.because, finding.what
    assert len({finding.what for finding in findings}) == len(findings)


def test_controls_have_fewer_or_more_conflicts_and_the_rest_is_the_same() -> None:
    options = {"threads": 6, "horizon": 12, "chunk": 1}
    variants = {
        "sequential": Variant(READY[0], {"threads": 1, "horizon": 0}, count=50),
        **{
            ready.name: Variant(ready, options, pace_of(ready, "asleep")[1], count=300)
            for ready in (*READY, DISTINCT, COARSE)
        },
    }
    rows = in_rounds(variants, QUICK, 60)
    assert rows["sequential"]["speed"] == [1.0, 1.0, 1.0]
    assert rows["sequential"]["ahead"] == 0
    assert rows["sequential"]["nap"] == 1
    for ready in (*READY, DISTINCT, COARSE):
        of = rows[ready.name]
        assert of["transactions"] == 3 * 300
        assert of["nap"] > 1
        assert 0 <= of["per run"] <= 1
    assert drops_more(rows["top-k"], rows[DISTINCT.name])
    assert drops_more(rows[COARSE.name], rows["nearest neighbours"])


@pytest.mark.parametrize("waits", [False, True])
def test_a_round_takes_what_its_events_take(waits: bool) -> None:
    sleep = 2e-3
    variant = Variant(
        READY[0],
        {"threads": 1, "horizon": 0} if not waits else {"threads": 2, "horizon": 2, "chunk": 1},
        {"sleep": sleep, "before": 0.5},
        count=20,
        base="alone",
        waits=waits,
    )
    of = in_rounds({"alone": variant}, QUICK, 2)["alone"]
    assert of["microseconds"] >= 1e6 * sleep


def test_how_many_items_repeat() -> None:
    distinct = repeating(0.0)(4000, 3)["item"].to_pylist()
    assert len(set(distinct)) == 4000
    few = repeating(1 / 16)(16_000, 3)["item"].to_pylist()
    assert sum(item < 2**40 for item in few) == pytest.approx(1000, rel=0.15)


def test_more_dropped_runs_are_more_than_chance_gives() -> None:
    none, three, many = ({"dropped": n, "transactions": 1000} for n in (0, 3, 30))
    assert not drops_more(three, none)
    assert drops_more(many, three)
    assert not drops_more(three, many)
    assert per_transaction(many) == 0.03


def test_a_cause_is_given_only_where_the_control_shows_it() -> None:
    slow = {**row("1"), "dropped": 5000}
    free = {**row("2"), "dropped": 0}
    assert why_no_faster(slow, free, 1.8, "the control").startswith("conflicts: ")
    still_slow = {**free, "speed": slow["speed"]}
    as_many = {**free, "dropped": 5000}
    for control in (None, still_slow, as_many):
        assert why_no_faster(slow, control, 1.8, "the control").startswith("not explained: ")


@pytest.mark.parametrize(
    ("control", "cause"),
    [(0.74, " of static 10: its horizon"), (0.83, "; most of it: "), (0.95, "; in part: ")],
)
def test_what_a_short_horizon_loses_is_given_to_its_control_as_far_as_that_goes(
    control: float, cause: str
) -> None:
    rows = by_protocol()
    near = rows["nearest neighbours"]["value"]
    for name, speed in ((table_4_4.FEWER, control), ("static 5", 0.7), ("static 10", 1.0)):
        near[name] |= {"speed": [speed, speed, speed], "microseconds": 100 / speed}
    for name in table_4_4.DYNAMIC:
        near[name] |= near["static 10"]
    found = [one for one in table_4_4.EXPERIMENT.judge({"rows": rows}) if "slowest" in one.what]
    assert not found[0].holds
    assert cause in found[0].because
    assert found[0].because.startswith("not explained") == (control == 0.95)
