"""The forecast: events on the virtual machine whose answer is known, recording, comparison."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

import re
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.daily import share_of

import specstream as ss
from specstream.structures import add, increment, maximum
from specstream.tuning.forecast import Access, Costs, Event, Outcome, Trace, replay
from specstream.tuning.forecast.recording import record, under_eager

pytestmark = pytest.mark.slow

LONG = 20_000.0
PROTOCOLS = ("value", "eager")


def apart(count: int, nanoseconds: float = LONG) -> list[Event]:
    """Events that touch a word each."""
    return [
        Event(nanoseconds, nanoseconds, [Access(64 * n, 0)], [Access(64 * n, 1)])
        for n in range(count)
    ]


def in_one_word(count: int, nanoseconds: float = LONG) -> list[Event]:
    """Events that all change one word, which they read at first."""
    others = [Access(64 * (k + 1), 0) for k in range(20)]
    return [
        Event(nanoseconds, nanoseconds, [Access(0, n), *others], [Access(0, n + 1)])
        for n in range(count)
    ]


def ran(events: list[Event], threads: int, horizon: int, **setting: Any) -> tuple[float, Outcome]:
    """Speed relative to plain, and the outcome."""
    trace = Trace(events)
    plain = replay(trace, 1, 0, setting.get("chunk", 1), costs=setting.get("costs"))
    outcome = replay(trace, threads, horizon, **setting)
    return plain.nanoseconds / outcome.nanoseconds, outcome


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(("threads", "chunk"), [(1, 1), (2, 4), (5, 1), (16, 1)])
def test_independent_events_scale_with_the_cores(protocol: str, threads: int, chunk: int) -> None:
    events = apart(600 * chunk, LONG / chunk)
    speed, outcome = ran(events, threads, 4 * threads, chunk=chunk, protocol=protocol)
    assert 0.85 * threads < speed < 1.01 * threads
    assert outcome.aborts == 0


def test_the_horizon_bounds_how_many_run_at_once() -> None:
    # The head, and three behind it.
    assert 1.5 < ran(apart(300), 16, 3)[0] < 4.05
    assert ran(apart(300), 16, 64)[0] > 10


def test_commits_one_at_a_time_bound_the_speed() -> None:
    # What 16 cores gain of events of a microsecond 64 do not gain four times.
    few, many = (ran(apart(2000, 1000.0), threads, 4 * threads)[0] for threads in (16, 64))
    assert few < 12
    assert many < 1.5 * few


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_events_that_all_conflict_gain_nothing_and_lose_little(protocol: str) -> None:
    for threads in (2, 8):
        speed, outcome = ran(in_one_word(300), threads, 8, protocol=protocol)
        assert 0.7 < speed < 1.1
        # Runs that have read too early are run again beside the head, and most of these commit.
        assert outcome.aborts > 0.7 * outcome.events


def test_stores_that_change_nothing_are_no_conflict() -> None:
    events = [Event(LONG, LONG, [Access(0, 7)], [Access(0, 7)])] * 400
    speed, outcome = ran(events, 4, 16)
    assert outcome.aborts == 0
    assert speed > 3.4


def test_a_conflict_is_a_read_before_the_commit_that_changed_the_word() -> None:
    # Every other event reads what the one before it wrote, at its very end or at its begin.
    late = []
    for n in range(400):
        others = [Access(64 * (k + 5000), 0) for k in range(200)]
        word = 64 * (n // 2)
        busy = LONG * (1.3 if n % 2 else 1.0)
        reads = [*others, Access(word, n % 2)]
        late.append(Event(busy, busy, reads, [Access(word, n % 2 + 1)]))
    early = [replace(one, reads=list(reversed(one.reads))) for one in late]
    aborts = [ran(events, 2, 4)[1].aborts for events in (late, early)]
    assert aborts[0] < 0.2 * aborts[1]


def test_lines_written_elsewhere_cost_their_transfer() -> None:
    # All read 100 lines, which every other event changes beside the words that are read.
    reads = [Access(64 * k, 0) for k in range(100)]
    events = [
        Event(LONG, LONG, reads, [Access(64 * k + 8, n) for k in range(100)] if n % 2 else [])
        for n in range(400)
    ]
    cheap, dear = (
        ran(events, 2, 8, costs=Costs(transfer=6 * bulk, bulk=bulk))[0] for bulk in (2.0, 100.0)
    )
    assert dear < 0.9 * cheap


def test_runs_that_never_commit_are_run_in_place() -> None:
    for protocol in PROTOCOLS:
        speed, outcome = ran([Event(LONG, LONG, retried=True)] * 200, 4, 8, protocol=protocol)
        assert outcome.aborts >= 0.9 * outcome.speculative_runs
        assert speed <= 1.01


def test_under_eager_words_that_share_a_record_conflict() -> None:
    # Events a cache line apart: with 64 words to a record, eight neighbours share one.
    events = apart(400)
    alone, together = (
        replay(Trace(events, regions=[(0, shift)]), 4, 16, protocol="eager") for shift in (0, 6)
    )
    assert alone.aborts == 0
    assert together.aborts > 200
    assert together.nanoseconds > 1.4 * alone.nanoseconds


def test_under_eager_updates_that_commute_lock_nothing() -> None:
    def updating(updates: frozenset[int]) -> list[Event]:
        return [Event(LONG, LONG, [], [Access(0, n + 1)], updates=updates) for n in range(400)]

    speed, outcome = ran(updating(frozenset([0])), 4, 16, protocol="eager")
    assert outcome.aborts == 0
    assert speed > 3.4
    assert ran(updating(frozenset()), 4, 16, protocol="eager")[1].aborts > 100


def test_a_replay_can_be_repeated() -> None:
    trace = Trace(in_one_word(200, 3000.0))
    assert replay(trace, 7, 28) == replay(trace, 7, 28)


accesses = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from([1, 2, 4, 8]), st.integers(0, 7)), max_size=6
)


@settings(max_examples=share_of(30), deadline=None)
@given(
    st.lists(st.tuples(accesses, accesses, st.booleans()), min_size=20, max_size=60),
    st.sampled_from([(2, 4, 1), (5, 20, 1), (4, 8, 3)]),
    st.sampled_from(PROTOCOLS),
)
def test_the_state_is_that_of_the_recorded_events(
    drawn: list[tuple[list[Any], list[Any], bool]], setting: tuple[int, int, int], protocol: str
) -> None:
    """Whatever elements they read and write: the replay compares all words at its end."""
    state = bytearray(range(1, 33))
    events = []
    for number, (read, written, commutes) in enumerate(drawn):

        def element(word: int, size: int, at: int) -> tuple[int, int]:
            return 8 * word + at // size * size, size

        reads = []
        for byte, size in (element(*one) for one in read):
            reads.append(Access(byte, int.from_bytes(state[byte : byte + size], "little"), size))
        writes = []
        for byte, size in (element(*one) for one in written):
            value = (number * 0x0123456789ABCDEF + byte) % 256**size
            state[byte : byte + size] = value.to_bytes(size, "little")
            writes.append(Access(byte, value, size))
        updated = {one.byte for one in writes} - {one.byte for one in reads}
        updates = frozenset(updated) if commutes else frozenset()
        events.append(Event(500.0, 500.0, reads, writes, number % 3, updates=updates))
    trace = Trace(events)
    assert trace.replays_all
    outcome = replay(trace, *setting, protocol=protocol)
    assert outcome.events >= len(events) - len(events) // 10


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ({"threads": 0}, "threads=0; expected an integer from 1 to 256"),
        ({"threads": 257}, "threads=257; expected an integer from 1 to 256"),
        ({"horizon": -1}, "horizon=-1; expected an integer of at least 0"),
        ({"chunk": 0}, "chunk=0; expected an integer of at least 1"),
        ({"most": 0}, "most=0; expected an integer of at least 1 or None"),
        ({"protocol": "lazy"}, "protocol='lazy'; expected one of value, eager"),
    ],
)
def test_what_is_no_setting_is_refused(setting: dict[str, Any], told: str) -> None:
    given: dict[str, Any] = {"threads": 2, "horizon": 8} | setting
    with pytest.raises(ss.ConfigurationError, match=re.escape(told)):
        replay(Trace(apart(10)), **given)


@pytest.mark.parametrize("cost", [-1.0, float("nan"), float("inf")])
def test_what_is_no_cost_is_refused(cost: float) -> None:
    with pytest.raises(ss.ConfigurationError, match=r"wake=.*; expected nanoseconds"):
        Costs(wake=cost)


@pytest.mark.parametrize("event", [Event(-5.0, 7.0), Event(7.0, -5.0)])
def test_an_event_that_takes_less_than_no_time_is_refused(event: Event) -> None:
    with pytest.raises(ss.InputError, match=r"event 3 takes .*-5 ns .*expected durations of at"):
        replay(Trace([*apart(3), event, *apart(3)]), 2, 8)


def test_a_machine_has_as_many_cores_as_an_engine_may_have_threads() -> None:
    speed, outcome = ran(apart(1024, 5_000_000.0), 256, 512)
    assert 200 < speed <= 256
    assert outcome.aborts == 0


def test_what_is_not_as_recorded_is_told() -> None:
    trace = Trace(apart(100))
    trace.behind[0] += 1
    with pytest.raises(ss.SpecstreamError, match="1 of 100 words are not what was recorded"):
        replay(trace, 2, 8)


# ---- recording ----


class Cells(ss.State):
    """A word that all events change, an array, and narrow elements beside each other."""

    total = ss.scalar(int)
    cells = ss.array(int, 100)
    bytes = ss.array(np.uint8, 8)


@ss.operator(state=Cells, event={"x": int}, emits={"x": int})
def touch(state, event, emit):
    """Reads two cells, changes one and a byte; every fifth event changes the total as well."""
    state.cells[event.x % 100] = state.cells[(event.x + 1) % 100] + event.x
    state.bytes[event.x % 2] = event.x % 200
    if event.x % 5 == 0:
        state.total += 1
    emit(event.x)


def test_a_recording_holds_what_events_read_wrote_and_took() -> None:
    table = pa.table({"x": np.arange(600)})
    found = record(touch, table.slice(0, 200), table.slice(200), {"order_by": "x", "source": None})
    assert len(found.events) == 400
    cells = 8  # bytes before the field
    for number, event in enumerate(found.events):
        x = 200 + number
        expected = [(cells + 8 * ((x + 1) % 100), None)] + ([(0, None)] if x % 5 == 0 else [])
        assert [one.byte for one in event.reads] == [byte for byte, _ in expected]
        written = {one.byte: one.value for one in event.writes}
        assert written[cells + 8 * 100 + x % 2] == x % 200
        assert (0 in written) == (x % 5 == 0)
        if x % 5 == 0:
            assert written[0] == x // 5 + 1
        assert event.row_words == 2
        assert not event.retried
        assert event.plain > 0
        assert event.speculative > 0
    # Neighbouring bytes of one word do not conflict, and a cell is read again 99 events later.
    alike = [replace(event, plain=LONG, speculative=LONG) for event in found.events]
    without = [
        replace(event, reads=event.reads[:1], writes=[one for one in event.writes if one.byte])
        for event in alike
    ]
    assert replay(Trace(without), 8, 16).aborts == 0
    # What all meet in is read first, so that it has changed before they end.
    early = [replace(event, reads=list(reversed(event.reads))) for event in alike]
    assert replay(Trace(early), 8, 16).aborts > 10


class Sums(ss.State):
    row = ss.array(int, 5)
    total = ss.scalar(float)
    bytes = ss.array(np.uint8, 8)


@ss.operator(state=Sums, event={"x": int}, emits={"nth": int})
def count_and_add(state, event, emit):
    add(state, "total", 0.5)
    emit(increment(state.row, 2))


def test_a_recording_knows_what_was_not_read() -> None:
    table = pa.table({"x": np.arange(100)})
    order = {"order_by": "x", "source": None}
    found = record(count_and_add, table.slice(0, 10), table.slice(10), order)
    row, total = 0, 8 * 5
    for number, event in enumerate(found.events):
        assert event.reads == []
        assert event.updates == {total, row + 8 * 2}
        assert Access(row + 8 * 2, number + 11) in event.writes
    assert ran(found.events, 2, 16, protocol="eager")[1].aborts == 0
    again = under_eager(found, count_and_add, table.slice(0, 10), table.slice(10), order)
    assert [one.writes for one in again.events] == [one.writes for one in found.events]
    assert all(one.speculative > 0 for one in again.events)


@ss.operator(state=Sums, event={"x": int}, emits={"sum": int})
def add_up(state, event, emit):
    add(state, "total", 0.5)
    add(state, "total", 0.25)
    add(state.bytes, event.x % 3, 1)
    maximum(state.bytes, 7, event.x % 50)
    state.bytes[3] = event.x % 200
    emit(sum(state.row))
    state.row[event.x % 5] += 1


def test_a_recording_takes_rows_word_by_word_and_updates_as_what_they_make() -> None:
    table = pa.table({"x": np.arange(160)})
    found = record(add_up, table.slice(0, 10), table.slice(10), {"order_by": "x", "source": None})
    row, total, byte = 0, 8 * 5, 8 * 6
    assert len(found.events) == 150
    state = np.full(5, 2)
    counts = np.array([4, 3, 3])
    for number, event in enumerate(found.events):
        x = 10 + number
        assert list(event.reads) == [
            *((row + 8 * i, int(state[i]), 8) for i in range(5)),
            (row + 8 * (x % 5), int(state[x % 5]), 8),
        ]
        state[x % 5] += 1
        counts[x % 3] += 1
        written = {
            one.byte + at: one.value >> 8 * at & 255 if one.byte >= byte else one.value
            for one in event.writes
            for at in (range(one.size) if one.byte >= byte else [0])
        }
        assert written[row + 8 * (x % 5)] == state[x % 5]
        assert np.uint64(written[total]).view(np.float64) == 0.75 * (x + 1)
        assert written[byte + x % 3] == counts[x % 3]
        assert written[byte + 3] == x % 200
        assert written[byte + 7] == min(x, 49)
        assert not event.retried


class Visits(ss.State):
    open = ss.dict(int, int)
    seen = ss.set(int)
    latest = ss.deque(int, maxlen=4)
    waiting = ss.priority_queue((int, int))
    timers = ss.timers(int)
    ended = ss.scalar(int)


def visit_over(state, timer, emit):
    state.ended += state.open.pop(timer.key, 0)


def visits(state, event, emit):
    """Keys that come, go and are missed again, and timers that change what events read."""
    who = event.x * 7 % 40
    if who in state.open and event.x % 3 == 0:
        del state.open[who]
    else:
        state.open[who] = state.open.get(who, 0) + 1
    state.seen ^= {who}
    state.latest.append(who)
    state.waiting.push((event.x % 11, who))
    if event.x % 2:
        state.waiting.pop()
    state.timers.set(who, event.timestamp + 5)
    emit(state.ended + len(state.seen))


@pytest.mark.parametrize("interpreted", [False, True])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_keys_that_come_and_go_and_timers_are_replayed(interpreted: bool, protocol: str) -> None:
    """Of a key that is absent only the place counts, and what a timer does is not recorded."""
    operator = ss.operator(
        state=Visits,
        event={"x": int},
        emits={"x": int},
        on_timer=visit_over,
        interpreted=interpreted,
    )(visits)
    table = pa.table({"x": np.arange(400)})
    found = record(operator, table.slice(0, 50), table.slice(50), {"order_by": "x", "source": None})
    assert sum(len(one.reads) + len(one.writes) for one in found.events) > 350 * 5
    assert ran(found.events, 4, 8, protocol=protocol)[0] > 0


def test_a_recording_times_long_events_apart_from_short_ones() -> None:
    @ss.operator(state=Cells, event={"x": int}, emits={})
    def uneven(state, event, emit):
        busy = event.x
        if event.x % 10 == 0:
            for _ in range(20_000):
                busy = (busy ^ (busy >> 32)) * 6364136223846793005
        state.cells[0] = busy

    table = pa.table({"x": np.arange(400)})
    found = record(uneven, table.slice(0, 100), table.slice(100), {"order_by": "x", "source": None})
    long = np.median([event.plain for event in found.events[::10]])
    short = np.median([event.plain for n, event in enumerate(found.events) if n % 10])
    assert long > 20 * short


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("chunk", [1, 4])
def test_the_lock_of_the_interpreter_bounds_the_speed(protocol: str, chunk: int) -> None:
    """By one over the share of the events' time that holds it, and nearly so much is reached."""
    events = apart(600 * chunk, 10 * LONG / chunk)
    for held, bound in ((0.0, 8.0), (0.1, 8.0), (0.25, 4.0), (0.5, 2.0), (1.0, 1.0)):
        speed, outcome = ran(events, 8, 32, chunk=chunk, protocol=protocol, held=held)
        assert 0.7 * bound < speed < 1.02 * bound, held
        assert outcome.aborts == 0
    assert ran(events, 2, 8, chunk=chunk, protocol=protocol, held=0.25)[0] > 1.7


def test_runs_that_end_early_give_the_lock_back() -> None:
    for protocol in PROTOCOLS:
        for held in (0.3, 1.0):
            speed, outcome = ran(in_one_word(300), 4, 8, protocol=protocol, held=held)
            assert outcome.aborts > 0
            # A run that is dropped has kept the others from the lock.
            assert 0.15 < speed < 1.1


class Held(ss.State):
    turns = ss.array(int, 64)


@ss.operator(state=Held, event={"x": int}, emits={}, interpreted=True)
def waits(state, event, emit):
    state.turns[event.x % 64] += 1
    time.sleep(0.0005)  # without the lock


@ss.operator(state=Held, event={"x": int}, emits={}, interpreted=True)
def computes(state, event, emit):
    busy = event.x
    for _ in range(4000):
        busy = busy * 5 % 1000003
    state.turns[event.x % 64] += busy


def test_how_long_the_lock_is_held_is_measured() -> None:
    from specstream.tuning.forecast.lock_samples import share_held

    table = pa.table({"x": np.arange(100)})
    order = {"order_by": "x", "source": None}
    low, high = (
        share_held(one, table.slice(0, 20), table.slice(20), order) for one in (waits, computes)
    )
    assert low < 0.5 < high


def test_an_operator_that_waits_without_the_lock_is_foretold_to_gain_and_one_of_python_is_not() -> (
    None
):
    from specstream.tuning.forecast.forecast import forecast_cores
    from specstream.tuning.forecast.report import forecast_text, forecast_to_dict
    from specstream.tuning.stream import Stream

    stream = Stream(pa.table({"x": np.arange(200)}), "x", None)
    gains, stays = (
        forecast_cores(one, stream, 8, 1, 0.05, protocols=["value"]) for one in (waits, computes)
    )
    assert gains.held is not None
    assert stays.held is not None
    gained, stayed = (max(one.speed for one in found.best) for found in (gains, stays))
    assert gained > 2.0
    # On a machine that others use, some of the time between two looks at the lock is theirs.
    assert stayed < gained / 1.5
    assert f"{stays.held:.0%} of their time held the lock" in forecast_text(stays)
    assert forecast_to_dict(stays)["held"] == stays.held


def test_costs_are_measured() -> None:
    from specstream.tuning.forecast.costs import measured_costs

    costs = measured_costs()
    assert 0.0 < costs.bulk <= costs.transfer < 1e6
    assert replace(costs, bulk=10.0, transfer=60.0) == Costs()


def test_the_text_says_when_not_to_believe_the_forecast() -> None:
    from specstream.tuning.forecast.forecast import Check, Expected, Forecast
    from specstream.tuning.forecast.report import forecast_text

    def text(measured: float, capacity: float | None) -> str:
        check = Check(2, 8, 1, "value", False, measured, 1.8)
        best = [Expected(2, 8, 1, "value", 1.8, 0.0)]
        return forecast_text(Forecast(best, best, [check], Costs(), 1000), capacity)

    assert "do not rely on it" not in text(1.6, 1.0)
    far_off = text(0.9, 1.95)
    assert "up to 100% off" in far_off
    assert "busy" not in far_off
    assert "busy: threads that share nothing ran at 1.02 of one" in text(0.9, 1.02)
    assert "busy" not in text(0.9, None)


def test_the_forecast_is_compared_with_real_runs() -> None:
    from specstream.tuning.forecast.forecast import forecast_cores
    from specstream.tuning.forecast.report import forecast_text, forecast_to_dict
    from specstream.tuning.stream import Stream

    @ss.operator(state=Cells, event={"x": int}, emits={"x": int})
    def heavy(state, event, emit):
        busy = event.x
        for _ in range(3000):
            busy = (busy ^ (busy >> 32)) * 6364136223846793005
        state.cells[event.x % 100] += busy
        emit(event.x)

    stream = Stream(pa.table({"x": np.arange(3000)}), "x", None)
    forecast = forecast_cores(heavy, stream, 8, 1, 0.1)
    kinds = [(threads, protocol) for threads in (2, 4, 8) for protocol in ("value", "eager")]
    assert [(one.threads, one.protocol) for one in forecast.best] == kinds
    # Events a hundred apart: one for each core, but for what this machine says a commit takes.
    assert min(one.speed for one in forecast.best[-2:]) > 2.5
    assert {(check.threads, check.protocol) for check in forecast.checks} == {
        (1, "value"),
        (1, "eager"),
    }
    plain: dict[str, Any] = forecast_to_dict(forecast)
    check = plain["checks"][0]
    assert check["error"] == pytest.approx(check["predicted"] / check["measured"] - 1)
    text = forecast_text(forecast)
    assert "cores are worth" in text
    assert plain["left_out"]
    assert all(one in text for one in plain["left_out"])
