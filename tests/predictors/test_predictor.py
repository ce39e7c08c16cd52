"""Predictors: what they decide on made-up figures, and that no decision changes an answer."""

from __future__ import annotations

import copy
import gc
import itertools
import math
import pickle
import random
import statistics
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest
from conftest import assert_identical, partial_of, run_engine, run_oracle
from support.operators.families import FAMILY, events, raises_often, scattered

import specstream as ss
from specstream.predictors.predictor import Measurement, Predictor, Setting

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
    retries = [d for d in predictor.decisions if d.reason.startswith("retry after 3")]
    assert [(d.event, d.horizon) for d in retries] == [(400, 1), (800, 1)]


def test_abort_driven_settles_where_aborts_cross_the_threshold() -> None:
    predictor = ss.AbortDriven(threshold=0.1, every=100, chunk=1, start=16)
    horizons = []
    for _ in range(40):  # a longer reach conflicts more: 2 % for each transaction ahead
        horizons += feed(predictor, [2 * predictor.current()[0]])
    assert set(horizons[20:]) == {5, 6}


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
        (lambda: ss.AbortDriven(threshold=float("nan")), "threshold=nan; expected a number"),
        (lambda: ss.AbortDriven(threshold=cast(Any, "a")), "threshold='a'; expected a number"),
        (lambda: ss.AbortDriven(retry=0), "retry=0; expected an integer from 1"),
        (lambda: ss.AbortDriven(every=0), "every=0; expected an integer from 1"),
        (lambda: ss.ThroughputDriven(chunk=1 << 40), "chunk=1099511627776; expected an integer"),
        (lambda: ss.ThroughputDriven(limit=1 << 40), "limit=1099511627776; expected an integer"),
        (lambda: ss.ThroughputDriven(start=9, limit=8), "start=9; expected an integer from 0 to 8"),
        (
            lambda: ss.ThroughputDriven(start=cast(Any, 1.5)),
            "start=1.5; expected an integer from 0 to 32",
        ),
        (lambda: ss.Fixed(4, 0), "Fixed: chunk=0; expected an integer from 1 to 1048576"),
        (lambda: ss.Fixed(4, -3), "Fixed: chunk=-3; expected an integer"),
        (lambda: ss.Fixed(2**62, 1), "Fixed: horizon=4611686018427387904; expected an integer"),
        (lambda: ss.Fixed(-1, 1), "Fixed: horizon=-1; expected an integer from 0 to 65536"),
        (lambda: ss.Fixed(True, 1), "Fixed: horizon=True; expected an integer"),
        (lambda: ss.Auto(0), "Auto: threads=0; expected an integer from 1 to 256"),
        (lambda: ss.Auto(chunk=0), "Auto: chunk=0; expected an integer from 1 .* or None"),
        (lambda: ss.Auto(horizon=2**62), "Auto: horizon=4611686018427387904; expected an integer"),
    ],
)
def test_a_bad_option_is_named(make: Callable[[], Predictor], message: str) -> None:
    with pytest.raises(ss.ConfigurationError, match=message):
        make()


# Seconds per event and aborts per transaction of a horizon (0: plain) and chunk.
Cost = Callable[[int, int], tuple[float, float]]

HORIZONS = (0, 1, 2, 4, 8, 16, 32)
CHUNKS = (1, 2, 4, 8, 16, 32, 64)


def sides(plain: float, speculative: float) -> Cost:
    """As little as it takes: two figures."""
    return lambda horizon, chunk: (speculative if horizon else plain, 0.0)


def updates(work: float, words: int, hot: float = 0.0, varied: bool = False) -> Cost:
    """Two threads whose events work so many seconds, update so many words, and some a common one.

    The figures are near those that ``make bench-speed`` measures. A transaction costs 250 ns beside
    its events, a logged word 8 ns and more of the head. Where durations vary, a short reach leaves
    a thread idle. Hot transactions conflict the more, the more of them there are, and are then run
    once more while the other thread can do little else; but two that alternate, one transaction
    ahead and of one event each, fall into step and hardly meet.
    """

    def cost(horizon: int, chunk: int) -> tuple[float, float]:
        plain = work + 2e-9 * words
        if horizon == 0:
            return plain, 0.0
        logged = work + 8e-9 * words + 250e-9 / chunk
        overlap = 0.55 + (0.4 if varied else 0.05) / min(horizon, 8)
        met = 1 - (1 - hot) ** chunk
        aborts = 0.08 * met if (horizon, chunk) == (1, 1) else 0.56 * met**3
        return overlap * logged + 3e-9 * words + 0.8 * aborts * plain, aborts

    return cost


class Machine:
    """A made-up machine, and the events that a predictor runs on it.

    Starting a stretch costs 50 microseconds that its figures do not show and 50 that they do, a
    speculative one another 50. The clock cuts a stretch short to the millisecond. ``noise`` is the
    share by which figures are off; one in 50 is off by half as it was interrupted. The events
    would be the same without noise, so the ideal is known: what the best fixed setting takes.
    """

    def __init__(self, cost: Cost, noise: float = 0.0, seed: int = 0, batch: int = 1 << 62) -> None:
        self.cost = cost
        self.noise = noise
        self.batch = batch
        self.random = random.Random(seed)
        self.seconds = 0.0
        self.ideal = 0.0
        self.settings: list[Setting] = []

    def run(self, predictor: Predictor, seconds: float) -> None:
        """Lets time pass."""
        until = self.seconds + seconds
        best = min(self.cost(horizon, chunk)[0] for horizon in HORIZONS for chunk in CHUNKS)
        while self.seconds < until:
            setting = predictor.next()
            each, aborts = self.cost(setting.horizon, setting.chunk)
            limit = NEVER if setting.seconds is None else math.ceil(setting.seconds * 1e3) * 1e-3
            # A batch ends with its phase.
            events = math.ceil(min(limit, until - self.seconds) / each)
            events = min(setting.events, self.batch, events)
            shown = events * each + (100e-6 if setting.horizon else 50e-6)
            commits = max(events // setting.chunk, 1)
            self.settings.append(setting)
            self.seconds += shown + 50e-6
            self.ideal += events * best
            measured = Measurement(events, shown * self._noise(), commits, int(aborts * commits))
            predictor.record(setting, measured)

    def _noise(self) -> float:
        if self.noise and self.random.random() < 0.02:
            return 1.5
        return 1 + self.noise * abs(self.random.gauss(0, 1))

    @property
    def efficiency(self) -> float:
        """The time of the best fixed settings over the time taken."""
        return self.ideal / self.seconds


@pytest.mark.parametrize(
    ("plain", "speculative"),
    [(30e-9, 60e-9), (30e-9, 600e-9), (1e-6, 0.6e-6), (6e-6, 3.1e-6), (1e-6, 1.0e-6)],
)
def test_auto_finds_the_better_side_and_pays_little_for_looking(
    plain: float, speculative: float
) -> None:
    machine, predictor = Machine(sides(plain, speculative)), ss.Auto(2)
    machine.run(predictor, 3.0)
    assert machine.efficiency > 0.95
    assert (predictor.current()[0] > 0) == (speculative < plain)


CHEAP = updates(100e-9, 5)
SHORT = updates(0.6e-6, 5)
LONG = updates(6e-6, 5)
MANY = updates(5.5e-6, 100)
SLOW = updates(100e-6, 5)
TENTH_HOT = updates(2e-6, 5, hot=0.1)
HALF_HOT = updates(6e-6, 5, hot=0.5, varied=True)
ALL_HOT = updates(6e-6, 5, hot=1.0)

LOADS = {
    "cheap": CHEAP,
    "short": SHORT,
    "long": LONG,
    "many": MANY,
    "slow": SLOW,
    "tenth hot": TENTH_HOT,
    "half hot": HALF_HOT,
    "all hot": ALL_HOT,
}


@pytest.mark.parametrize("load", LOADS)
def test_auto_stays_close_to_the_best_fixed_setting(load: str) -> None:
    efficiency = []
    for seed in range(5):
        machine, predictor = Machine(LOADS[load], noise=0.03, seed=seed), ss.Auto(2)
        machine.run(predictor, 3.0)
        efficiency.append(machine.efficiency)
    assert statistics.fmean(efficiency) > 0.94


def test_auto_loses_less_than_a_twentieth_over_phases_of_a_second() -> None:
    efficiency = []
    for seed in range(12):
        machine, predictor = Machine(CHEAP, noise=0.03, seed=seed), ss.Auto(2)
        for cost in (CHEAP, LONG, ALL_HOT, SLOW, CHEAP, HALF_HOT, LONG, ALL_HOT, SHORT, MANY) * 2:
            machine.cost = cost
            machine.run(predictor, 1.0)
        efficiency.append(machine.efficiency)
    assert statistics.fmean(efficiency) > 0.95


@pytest.mark.parametrize(
    ("parallel", "serial"),
    [(LONG, ALL_HOT), (LONG, CHEAP), (SLOW, CHEAP), (sides(1e-6, 0.55e-6), sides(1e-6, 3e-6))],
    ids=["hot word", "cheap events", "slow events", "same plain time"],
)
def test_auto_follows_from_parallel_to_serial_phases_and_back(parallel: Cost, serial: Cost) -> None:
    machine, predictor = Machine(parallel), ss.Auto(2)
    for cost in itertools.islice(itertools.cycle((parallel, serial)), 8):
        machine.cost = cost
        ideal, seconds = machine.ideal, machine.seconds
        machine.run(predictor, 1.0)
        assert (machine.ideal - ideal) / (machine.seconds - seconds) > 0.9


def test_auto_shortens_chunk_and_horizon_where_they_cause_the_aborts() -> None:
    machine, predictor = Machine(SHORT), ss.Auto(2)
    machine.run(predictor, 1.0)
    horizon, chunk = predictor.current()
    machine.cost = TENTH_HOT
    machine.run(predictor, 1.0)
    assert 0 < predictor.current()[0] <= horizon
    assert predictor.current()[1] < chunk


def test_auto_judges_no_stretch_that_a_small_batch_cut_short() -> None:
    # Batches of a fifth of a millisecond, whose cost of starting is half as much.
    machine, predictor = Machine(sides(2e-6, 1.1e-6), batch=100), ss.Auto(2)
    machine.run(predictor, 1.0)
    trials = [
        sum(1 for _ in group)
        for speculative, group in itertools.groupby(machine.settings, lambda s: s.horizon > 0)
        if speculative
    ]
    assert min(trials) >= 3


def test_auto_keeps_what_the_user_chose() -> None:
    machine, predictor = Machine(TENTH_HOT), ss.Auto(2, chunk=4, horizon=6)
    for cost in (TENTH_HOT, SHORT, ALL_HOT):
        machine.cost = cost
        machine.run(predictor, 0.5)
    assert {(s.horizon, s.chunk) for s in machine.settings} == {(0, 4), (6, 4)}


def test_auto_chooses_transactions_of_a_few_microseconds() -> None:
    for each, least, most in ((0.2e-6, 8, 64), (2e-6, 1, 16), (50e-6, 1, 2)):
        machine, predictor = Machine(sides(each, each / 1.8)), ss.Auto(2)
        machine.run(predictor, 1.0)
        assert least <= predictor.current()[1] <= most


def test_auto_with_one_thread_never_speculates() -> None:
    machine, predictor = Machine(sides(1e-6, 0.1e-6)), ss.Auto(1)
    machine.run(predictor, 1.0)
    assert {setting.horizon for setting in machine.settings} == {0}


class Restless(Predictor):
    """Another setting every few events, plain ones among them."""

    def __init__(self) -> None:
        super().__init__()
        settings = [(0, 1, 7), (3, 2, 9), (8, 4, 40), (0, 1, 1), (1, 1, 5)]
        self.settings = itertools.cycle(Setting(*setting) for setting in settings)

    def current(self) -> tuple[int, int]:
        return 8, 4

    def next(self) -> Setting:
        return next(self.settings)

    def least(self) -> int:
        return 8

    def cap(self, horizon: int) -> None:
        pass

    def _learn(self, setting: Setting, measured: Measurement) -> None:
        pass


PREDICTORS: list[Callable[[], Predictor]] = [
    Restless,
    lambda: ss.AbortDriven(every=7, chunk=2, start=2),
    lambda: ss.ThroughputDriven(every=3, chunk=3, start=2),
    lambda: ss.Auto(2, chunk=2, horizon=3),
    lambda: ss.Fixed(4, 4),
]


@pytest.mark.parametrize("operator", FAMILY, ids=lambda operator: operator.name)
@pytest.mark.parametrize(
    "make", PREDICTORS, ids=["restless", "abort", "throughput", "auto", "fixed"]
)
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
        assert partial_of(caught.value).consumed == 99
        assert partial_of(caught.value).output.num_rows == 2 * 99
        assert "(99, 0, 99)" in "".join(caught.value.__notes__)
        assert engine.durable.next_sequence == 100


class Wrong(Restless):
    """Restless until the third stretch; then what it is told to return."""

    def __init__(self, method: str, returned: Any) -> None:
        super().__init__()
        self.method, self.returned, self.calls = method, returned, 0

    def wrong_in(self, method: str, right: Any) -> Any:
        self.calls += method == self.method == "next"
        late_enough = method != "next" or self.calls > 2
        return self.returned if method == self.method and late_enough else right

    def current(self) -> tuple[int, int]:
        return self.wrong_in("current", (8, 4))  # type: ignore[no-any-return]

    def open(self) -> tuple[int, int]:
        return self.wrong_in("open", (8, 4))  # type: ignore[no-any-return]

    def next(self) -> Setting:
        return self.wrong_in("next", super().next())  # type: ignore[no-any-return]

    def least(self) -> int:
        return self.wrong_in("least", 8)  # type: ignore[no-any-return]


# What is neither an integer of the range nor NumPy's kind of one.
NO_COUNTS: list[Any] = [None, "4", 1.5, float("nan"), True, -1, -(2**63), 2**62, 2**64, (1,), b"1"]
NO_REACHES: list[Any] = [
    None,
    3,
    "48",
    (4,),
    (4, 1, 1),
    [4, 1],
    (4, 0),
    *((count, 1) for count in NO_COUNTS),
    *((1, count) for count in NO_COUNTS),
]
NO_TIMES: list[Any] = [0, -1.0, float("nan"), float("inf"), "1", True]
NO_SETTINGS: list[Any] = [
    None,
    (4, 1, 100),
    *(Setting(*reach, 100) for reach in NO_REACHES if isinstance(reach, tuple) and len(reach) == 2),
    *(Setting(4, 1, count) for count in [*NO_COUNTS[:7], 0]),
    *(Setting(4, 1, 100, time) for time in NO_TIMES),
]


@pytest.mark.parametrize("returned", NO_SETTINGS, ids=repr)
def test_a_setting_that_cannot_be_ends_the_batch_between_two_stretches(returned: Any) -> None:
    table = events(100)
    predictor = Wrong("next", returned)
    with ss.Engine(scattered, threads=2, predictor=predictor) as engine:
        with pytest.raises(ss.ConfigurationError) as raised:
            engine.process(table)
        partial = partial_of(raised.value)
        predictor.method = "nothing"
        rest = engine.process(table.slice(partial.consumed))
    message = str(raised.value)
    assert message.startswith(f"predictor Wrong: next() returned {returned!r}; expected "), message
    assert partial.consumed == 7 + 9  # the first two stretches
    output = pa.concat_tables([partial.output, rest])
    assert output.equals(run_oracle(scattered, table).output)


@pytest.mark.parametrize("returned", NO_REACHES, ids=repr)
@pytest.mark.parametrize("method", ["open", "current"])
def test_a_reach_that_cannot_be_is_refused(method: str, returned: Any) -> None:
    predictor = Wrong("nothing", returned)
    with ss.Engine(scattered, threads=2, predictor=predictor) as engine:
        predictor.method = method
        ask = (lambda: engine.advance("a", 3)) if method == "open" else (lambda: engine.stats)
        with pytest.raises(
            ss.ConfigurationError, match=rf"predictor Wrong: {method}\(\) returned .*; expected"
        ):
            ask()
        predictor.method = "nothing"
        assert engine.process(events(20)).num_rows > 0


@pytest.mark.parametrize("returned", [*NO_COUNTS, (8,)], ids=repr)
def test_a_least_horizon_that_cannot_be_is_refused(returned: Any) -> None:
    with pytest.raises(
        ss.ConfigurationError, match=r"predictor Wrong: least\(\) returned .*; expected the horizon"
    ):
        ss.Engine(scattered, memory=1 << 40, predictor=Wrong("least", returned))


def test_an_attribute_that_hides_the_method_longest_is_named() -> None:
    predictor = Restless()
    predictor.longest = 8  # type: ignore[assignment, method-assign]
    table = events(100)
    with ss.Engine(scattered, threads=2, predictor=predictor) as engine:
        with pytest.raises(
            ss.ConfigurationError, match="predictor Restless: longest is 8; expected a method"
        ) as raised:
            engine.process(table)
        del predictor.longest
        rest = engine.process(table.slice(partial_of(raised.value).consumed))
    assert rest.equals(run_oracle(scattered, table).output)


def test_a_predictor_that_is_none_is_refused() -> None:
    with pytest.raises(ss.ConfigurationError, match="predictor='auto'; expected a predictor"):
        ss.Engine(scattered, predictor="auto")  # type: ignore[arg-type]

    class Incomplete(ss.Fixed):
        def __init__(self) -> None:
            self.horizon, self.chunk = 1, 1

    with pytest.raises(ss.ConfigurationError, match=r"Incomplete .* super\(\).__init__\(\)"):
        ss.Engine(scattered, predictor=Incomplete())


def test_a_predictor_may_return_integers_of_numpy() -> None:
    setting = Setting(np.int64(4), np.uint8(2), np.int32(50), np.float64(0.5))  # type: ignore[arg-type]
    table = events(100)
    found = run_engine(scattered, table, threads=2, predictor=Always(setting))
    assert_identical(found, run_oracle(scattered, table))


class Always(ss.Fixed):
    """One setting for every stretch, whatever it says of itself."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(0, 1)
        self.setting = setting

    def next(self) -> Setting:
        return self.setting


def test_a_predictor_that_speculates_against_its_word_has_code_for_it() -> None:
    table = events(400)
    predictor = Always(Setting(8, 1, 100))
    assert not predictor.speculates
    found = run_engine(scattered, table, threads=2, predictor=predictor)
    assert_identical(found, run_oracle(scattered, table))


def test_a_horizon_beyond_what_the_memory_allows_is_refused() -> None:
    with (
        ss.Engine(
            scattered, threads=2, memory=1 << 24, predictor=Always(Setting(1000, 1, 100))
        ) as engine,
        pytest.raises(ss.ConfigurationError, match=r"from 0 to \d+, as memory= has capped it"),
    ):
        engine.process(events(10))


def test_what_a_predictor_raises_loses_nothing() -> None:
    class Forgetful(ss.Fixed):
        def _learn(self, setting: Setting, measured: Measurement) -> None:
            raise RuntimeError("forgotten")

        def next(self) -> Setting:
            return Setting(2, 1, 30)

    table = events(100)
    parts, done = [], 0
    with ss.Engine(scattered, threads=2, keys=True, predictor=Forgetful(2, 1)) as engine:
        while done < 100:
            with pytest.raises(RuntimeError, match="forgotten") as raised:
                engine.process(table.slice(done))
            partial = partial_of(raised.value)
            assert partial.consumed == min(30, 100 - done)
            parts.append(partial.output)
            done += partial.consumed
    assert pa.concat_tables(parts).equals(run_oracle(scattered, table, keys=True).output)


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


def test_a_predictor_serves_one_open_engine_at_a_time() -> None:
    predictor = ss.AbortDriven(limit=16)
    with ss.Engine(scattered, threads=2, predictor=predictor):
        before = vars(predictor).copy()
        with pytest.raises(ss.ConfigurationError, match="serves the open engine of 'scattered'"):
            # It would be capped to less, were it looked at later.
            ss.Engine(scattered, threads=2, predictor=predictor, memory=1 << 22)
        assert vars(predictor) == before
        ss.Engine(scattered, predictor=copy.deepcopy(predictor)).close()
    with pytest.raises(ss.ConfigurationError, match="memory=1"):
        ss.Engine(scattered, predictor=predictor, memory=1)  # which leaves it free
    engine = ss.Engine(scattered, predictor=predictor)
    del engine
    gc.collect()
    ss.Engine(scattered, predictor=predictor).close()
    ss.Engine(scattered, predictor=pickle.loads(pickle.dumps(predictor))).close()
