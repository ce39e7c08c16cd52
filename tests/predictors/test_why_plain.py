"""Why events run on one core is said, with what was measured or set."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from typing import Any

import pytest

import specstream as ss
from specstream.predictors import Measurement


def measured(
    predictor: ss.Auto, plain: float, speculative: float, aborts: float = 0.0, rounds: int = 40
) -> ss.Auto:
    """The predictor after stretches that took so many seconds for each event."""
    for _ in range(rounds):
        setting = predictor.next()
        seconds = speculative if setting.horizon else plain
        dropped = round(5_000 * aborts) if setting.horizon else 0
        predictor.record(setting, Measurement(10_000, 10_000 * seconds, 5_000, aborts=dropped))
    return predictor


def test_events_that_are_too_short_are_said_with_both_times_and_what_is_needed() -> None:
    said = measured(ss.Auto(threads=2), 50e-9, 130e-9).why_plain()
    assert "takes 50 ns on one core and 130 ns on 2 threads" in said
    assert "too short to be shared, which pays from about 500 ns on" in said


def test_conflicts_are_said_with_their_share() -> None:
    said = measured(ss.Auto(threads=4), 5e-6, 6e-6, aborts=0.4).why_plain()
    assert "5,000 ns on one core and 6,000 ns on 4 threads" in said
    assert "of 100 transactions 40 had to run again" in said


def test_a_machine_that_gains_nothing_is_said() -> None:
    assert "more cores gain nothing" in measured(ss.Auto(threads=2), 5e-6, 6e-6).why_plain()


def test_nothing_is_said_while_it_speculates_nor_before_it_has_measured() -> None:
    assert measured(ss.Auto(threads=2), 5e-6, 3e-6).why_plain() == ""
    assert ss.Auto(threads=2).why_plain() == ""


def test_what_it_says_is_of_the_latest_measurement() -> None:
    predictor = measured(ss.Auto(threads=2), 5e-6, 3e-6)
    said = measured(predictor, 5e-6, 9e-6, rounds=400).why_plain()
    assert "5,000 ns on one core and 9,000 ns" in said


class Seen(ss.State):
    count = ss.scalar(int)


@ss.operator(state=Seen, event={"x": int}, emits={})
def count(state, event, emit):
    state.count += event.x


@ss.operator(state=Seen, event={"x": int}, emits={}, speculate=False)
def careful(state, event, emit):
    state.count += event.x


@pytest.mark.parametrize(
    ("operator", "options", "why"),
    [
        (count, {"threads": 1}, "the engine has one thread"),
        (count, {"horizon": 0}, "horizon=0 was given"),
        (count, {"execution": "log_free"}, 'execution="log_free"'),
        (careful, {}, "speculate=False of the operator"),
        (count, {}, "no event has run ahead yet: too few came at once"),
    ],
)
def test_the_statistics_say_what_was_set(
    operator: ss.Operator, options: dict[str, Any], why: str
) -> None:
    with ss.Engine(operator, **options) as engine:
        assert engine.stats.why_one_core == ""  # nothing has run
        engine.process({"x": [1, 2, 3]})
        stats = engine.stats
        assert why in stats.why_one_core
        assert stats.to_dict()["why_one_core"] == stats.why_one_core
        assert why.split('"')[0] in str(stats)
        assert "one core" in engine._repr_html_()


def test_where_events_run_ahead_nothing_is_said() -> None:
    with ss.Engine(count, horizon=4, chunk=1, execution="speculate") as engine:
        engine.process({"x": [1] * 100})
        assert engine.stats.why_one_core == ""
