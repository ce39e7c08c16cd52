"""Predictors: what they decide on made-up figures, and that no decision changes an answer."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
from conftest import assert_identical, run_engine, run_oracle
from families import FAMILY, events, raises_often, scattered

import specstream as ss
from specstream.predictor import Measurement, Predictor, Setting

NEVER = 1e9


def feed(predictor: Predictor, aborts: list[int]) -> list[int]:
    """Horizons after each of a series of 100 commits with that many aborts."""
    horizons = []
    for aborted in aborts:
        predictor.record(predictor.next(), Measurement(100, 0.001, 100, aborted))
        horizons.append(predictor.current()[0])
    return horizons


def test_abort_driven_shrinks_above_the_threshold_and_grows_below_it() -> None:
    predictor = ss.AbortDriven(threshold=0.1, every=100, chunk=1, start=3, limit=5)
    assert feed(predictor, [11, 50, 10, 0, 0, 0, 0]) == [2, 1, 2, 3, 4, 5, 5]
    assert "11.0% aborted, above 10.0%" in predictor.decisions[0].reason
    assert predictor.next().events == 100


def test_abort_driven_tries_again_from_no_speculation_now_and_then() -> None:
    predictor = ss.AbortDriven(threshold=0.1, every=100, chunk=1, start=1, retry=3)
    assert feed(predictor, [100, 0, 0, 0, 100, 0, 0, 0, 0]) == [0, 0, 0, 1, 0, 0, 0, 1, 2]


def test_throughput_driven_repeats_what_helped_and_reverses_what_did_not() -> None:
    predictor = ss.ThroughputDriven(every=10, chunk=1, start=2, limit=4)
    horizons = []
    for seconds in (10, 9, 8, 7, 8, 7, 6, 5, 4, 3):
        predictor.record(predictor.next(), Measurement(10, seconds, 10, 0))
        horizons.append(predictor.current()[0])
    # Up to the limit, back from it, reversed once by a slower stretch, then down to 0 and back.
    assert horizons == [3, 4, 3, 2, 3, 4, 3, 2, 1, 0]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ss.AbortDriven(threshold=2), "threshold=2; expected a number from 0 to 1"),
        (lambda: ss.AbortDriven(every=0), "every=0; expected an integer of at least 1"),
        (lambda: ss.ThroughputDriven(start=9, limit=8), "start=9; expected 0 to 8"),
    ],
)
def test_a_bad_option_is_named(make: Callable[[], Predictor], message: str) -> None:
    with pytest.raises(ss.ConfigurationError, match=message):
        make()


class Machine:
    """A made-up machine: seconds per event, plain and speculative, and the events run on it."""

    def __init__(self, plain: float, speculative: float) -> None:
        self.plain, self.speculative = plain, speculative
        self.seconds = 0.0
        self.ideal = 0.0
        self.settings: list[Setting] = []

    def run(self, predictor: Predictor, seconds: float) -> None:
        until = self.seconds + seconds
        while self.seconds < until:
            setting = predictor.next()
            each = self.speculative if setting.horizon else self.plain
            events = min(setting.events, max(1, int((setting.seconds or NEVER) / each)))
            took = events * each
            commits = max(events // setting.chunk, 1)
            predictor.record(setting, Measurement(events, took, commits, 0))
            self.settings.append(setting)
            self.seconds += took
            self.ideal += events * min(self.plain, self.speculative)

    @property
    def efficiency(self) -> float:
        return self.ideal / self.seconds


@pytest.mark.parametrize(
    ("plain", "speculative"),
    [(30e-9, 60e-9), (30e-9, 600e-9), (1e-6, 0.6e-6), (6e-6, 3.1e-6), (1e-6, 1.0e-6)],
)
def test_auto_finds_the_better_side_and_pays_little_for_looking(
    plain: float, speculative: float
) -> None:
    machine, predictor = Machine(plain, speculative), ss.Auto(2)
    machine.run(predictor, 3.0)
    assert machine.efficiency > 0.95
    assert (predictor.current()[0] > 0) == (speculative < plain)


def test_auto_follows_phases_that_change_every_second() -> None:
    machine, predictor = Machine(1e-6, 0.55e-6), ss.Auto(2)
    for speculative in itertools.islice(itertools.cycle((0.55e-6, 3e-6)), 6):
        machine.speculative = speculative
        machine.run(predictor, 1.0)
    assert machine.efficiency > 0.9
    assert len(predictor.decisions) >= 6


def test_auto_chooses_transactions_of_a_few_microseconds() -> None:
    for each, least, most in ((0.2e-6, 8, 64), (2e-6, 1, 4), (50e-6, 1, 2)):
        machine, predictor = Machine(each, each / 1.8), ss.Auto(2)
        machine.run(predictor, 1.0)
        assert least <= predictor.current()[1] <= most


def test_auto_with_one_thread_never_speculates() -> None:
    machine, predictor = Machine(1e-6, 0.1e-6), ss.Auto(1)
    machine.run(predictor, 1.0)
    assert {setting.horizon for setting in machine.settings} == {0}


PREDICTORS: list[Callable[[], Predictor]] = [
    lambda: ss.AbortDriven(every=7, chunk=2, start=2),
    lambda: ss.ThroughputDriven(every=3, chunk=3, start=2),
    lambda: ss.Auto(2, chunk=2, horizon=3),
    lambda: ss.Fixed(4, 4),
]


@pytest.mark.parametrize("operator", FAMILY, ids=lambda operator: operator.name)
@pytest.mark.parametrize("make", PREDICTORS, ids=["abort", "throughput", "auto", "fixed"])
def test_no_predictor_changes_an_answer(
    operator: ss.Operator, make: Callable[[], Predictor]
) -> None:
    table = events(400)
    found = run_engine(operator, table, seed=3, keys=True, threads=2, predictor=make())
    assert_identical(found, run_oracle(operator, table, seed=3, keys=True))


def test_an_event_that_raises_in_a_later_stretch() -> None:
    table = events(100).set_column(0, "key", [[1 + i % 2 for i in range(99)] + [11]])
    predictor = ss.AbortDriven(every=10, chunk=1, start=2)
    with ss.Engine(raises_often, threads=2, predictor=predictor) as engine:
        with pytest.raises(ValueError, match="key 11 at 100") as caught:
            engine.process(table)
        assert caught.value.specstream_partial.consumed == 99
        assert caught.value.specstream_partial.output.num_rows == 2 * 99
        assert "(99, 0, 99)" in "".join(caught.value.__notes__)
        assert engine._next_sequence == 100


class Hasty(ss.Fixed):
    """Stretches without a length, cut short by the clock."""

    def next(self) -> Setting:
        return Setting(self.horizon, self.chunk, 2**62, seconds=0.001)


@pytest.mark.parametrize("horizon", [0, 8])
def test_stretches_that_the_clock_cuts_short(horizon: int) -> None:
    table = events(300_000)
    found = run_engine(scattered, table, threads=2, keys=True, predictor=Hasty(horizon, 4))
    assert_identical(found, run_engine(scattered, table, threads=1, keys=True, horizon=0))


def test_the_statistics_say_what_was_decided_and_why() -> None:
    with ss.Engine(scattered, threads=2, horizon="auto") as engine:
        for seed in range(3):
            engine.process(events(20_000, seed))
        stats = engine.stats
    assert stats.events == 60_000
    assert stats.horizon >= 0
    for decision in stats.decisions:
        assert decision.reason
    assert stats.to_dict()["decisions"] == [
        {"event": d.event, "horizon": d.horizon, "chunk": d.chunk, "reason": d.reason}
        for d in stats.decisions
    ]
