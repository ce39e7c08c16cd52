"""The simulated scheduler: workloads whose answer is known, recording, and comparison."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import specstream as ss
from specstream.structures import add, increment, maximum
from specstream.tuning.forecast import Costs, Workload, simulate, simulate_eager
from specstream.tuning.forecast.accesses import Accesses, Records
from specstream.tuning.forecast.recording import record, under_eager
from specstream.tuning.forecast.simulation import Outcome, simulate_plain
from specstream.tuning.forecast.workload import Event

pytestmark = pytest.mark.slow

FREE = Costs()


def apart(count: int, nanoseconds: float = 1000.0) -> list[Event]:
    """Events that touch a word each."""
    return [
        Event(nanoseconds, nanoseconds, [(64 * n, 0)], [(64 * n, 1)], entries=2)
        for n in range(count)
    ]


def in_one_word(count: int, nanoseconds: float = 1000.0) -> list[Event]:
    """Events that all change one word, which they read at first."""
    reads = [[(0, n), *((64 * (k + 1), 0) for k in range(20))] for n in range(count)]
    return [
        Event(nanoseconds, nanoseconds, reads[n], [(0, n + 1)], entries=22) for n in range(count)
    ]


def speed(
    events: list[Event], threads: int, horizon: int = 64, chunk: int = 1, costs: Costs = FREE
) -> float:
    work = Workload(events).in_chunks(chunk, len(events))
    return simulate_plain(work) / simulate(work, threads, horizon, costs).nanoseconds


@pytest.mark.parametrize("threads", [1, 2, 5, 16])
def test_independent_events_scale_with_the_cores(threads: int) -> None:
    assert speed(apart(2000), threads) == pytest.approx(threads, rel=0.02)
    assert speed(apart(2000), threads, chunk=4) == pytest.approx(threads, rel=0.05)


def test_the_horizon_bounds_how_many_run_at_once() -> None:
    assert speed(apart(2000), 16, horizon=3) == pytest.approx(4, rel=0.02)


def test_commits_one_at_a_time_bound_the_speed() -> None:
    # 1000 ns of work and 250 ns of commit: four cores' worth and no more.
    costs = Costs(commit=250.0)
    assert speed(apart(1500), 16, costs=costs) == pytest.approx(4, rel=0.05)
    assert speed(apart(1500), 32, costs=costs) == pytest.approx(4, rel=0.05)


def test_events_that_all_conflict_gain_nothing_and_lose_little() -> None:
    for threads in (2, 8):
        work = Workload(in_one_word(1000)).in_chunks(1, 1000)
        outcome = simulate(work, threads, 8, FREE)
        assert 0.9 < simulate_plain(work) / outcome.nanoseconds < 1.1
        assert outcome.aborts > 0.9 * outcome.speculative_runs


def test_stores_that_change_nothing_are_no_conflict() -> None:
    events = [Event(1000.0, 1000.0, [(0, 7)], [(0, 7)], entries=2)] * 500
    work = Workload(events).in_chunks(1, 500)
    assert simulate(work, 4, 8, FREE).aborts == 0
    assert speed(events, 4) == pytest.approx(4, rel=0.02)


def test_a_conflict_is_a_read_before_the_commit_that_changed_the_word() -> None:
    # Every other event reads what the one before it wrote, at its very end.
    late = []
    for n in range(1000):
        others = [(64 * (k + 5000), 0) for k in range(200)]
        reads = [*others, (64 * (n // 2), n % 2)]
        late.append(Event(1000.0, 1000.0, reads, [(64 * (n // 2), n % 2 + 1)], entries=202))
    early = [
        Event(one.plain, one.speculative, list(reversed(one.reads)), one.writes, 202)
        for one in late
    ]
    aborts = []
    for events in (late, early):
        # On two threads neighbours run side by side, the second a little later.
        uneven = [
            Event(one.plain * (1.3 if n % 2 else 1.0), one.speculative * (1.3 if n % 2 else 1.0),
                  one.reads, one.writes, one.entries)
            for n, one in enumerate(events)
        ]  # fmt: skip
        work = Workload(uneven).in_chunks(1, 1000)
        aborts.append(simulate(work, 2, 4, FREE).aborts)
    assert aborts[0] < 0.2 * aborts[1]


def test_lines_written_elsewhere_cost_their_transfer() -> None:
    # All events read 100 lines that nobody changes but every tenth event: others fetch them again.
    lines = [(64 * k, 0) for k in range(100)]
    events = [Event(1000.0, 1000.0, lines, [], entries=100)] * 1000
    quiet = speed(events, 2, costs=Costs(bulk=10.0))
    assert quiet == pytest.approx(2, rel=0.02)
    writing = [
        Event(1000.0, 1000.0, [], lines, entries=100) if n % 2 else events[0] for n in range(1000)
    ]
    assert speed(writing, 2, costs=Costs(bulk=10.0)) < 0.8 * speed(writing, 2)


def test_longer_events_of_listing_4_2_gain_and_short_ones_lose() -> None:
    """The dissertation's shapes: a state of 100 words and of 10, short and long events."""
    costs = Costs(start=100, commit=100, entry=1, head=20, latency=60, bulk=5, wake=8000)
    generator = np.random.default_rng(1)

    def listing(size: int, nanoseconds: float) -> list[Event]:
        state = [0] * size
        events = []
        for entry in generator.integers(0, size, 2000).tolist():
            read, written = [(8 * entry, state[entry])], [(8 * entry, state[entry] + 1)]
            state[entry] += 1
            events.append(Event(nanoseconds, 1.05 * nanoseconds, read, written, entries=2))
        return events

    assert speed(listing(100, 100.0), 2, horizon=2, costs=costs) < 0.8
    long_100 = speed(listing(100, 20_000.0), 2, horizon=2, costs=costs)
    long_10 = speed(listing(10, 20_000.0), 2, horizon=2, costs=costs)
    assert 1.7 < long_100 < 2.0
    assert 1.2 < long_10 < long_100
    assert speed(listing(100, 20_000.0), 8, horizon=8, costs=costs) > 2 * long_100


def test_runs_that_never_commit_are_run_in_place() -> None:
    events = [Event(1000.0, 1000.0, retried=True)] * 200
    work = Workload(events).in_chunks(1, 200)
    outcome = simulate(work, 4, 8, FREE)
    assert outcome.aborts == outcome.speculative_runs
    assert outcome.nanoseconds >= simulate_plain(work)


# ---- protocol eager ----


def eager(
    events: list[Event], threads: int, horizon: int = 16, chunk: int = 1, shift: int = 0,
    costs: Costs = FREE,
) -> tuple[float, Outcome]:  # fmt: skip
    """Speed relative to plain, and the outcome; 2 to the shift words share a record."""
    workload = Workload(events)
    work = workload.in_chunks(chunk, len(events))
    found = Accesses(workload, Records([(0, shift)]))
    outcome = simulate_eager(workload, found, chunk, len(events), threads, horizon, costs)
    return simulate_plain(work) / outcome.nanoseconds, outcome


@pytest.mark.parametrize("threads", [1, 2, 5, 16])
def test_under_eager_independent_events_scale_with_the_cores(threads: int) -> None:
    for chunk in (1, 4):
        found, outcome = eager(apart(2000), threads, horizon=64, chunk=chunk)
        assert found == pytest.approx(threads, rel=0.05)
        assert outcome.aborts == 0
        assert outcome.in_place == 0  # the head is a transaction as well


def test_under_eager_words_that_share_a_record_conflict() -> None:
    # Events a cache line apart: with 64 words to a record, eight neighbours share one.
    alone, together = eager(apart(2000), 4), eager(apart(2000), 4, shift=6)
    assert alone[1].aborts == 0
    assert together[1].aborts > 1000
    assert together[0] < 0.7 * alone[0]


def test_under_eager_a_lock_makes_later_ones_wait_and_a_read_alone_does_not() -> None:
    # All read one word, early; every hundredth event stores to it, some time before its end.
    def reading(n: int) -> Event:
        stores = n % 100 == 0
        others = [(64 * (k + 1), 0) for k in range(4)]
        reads = [(0, (n + 99) // 100), *others]
        busy = 900.0 + 37 * n % 200  # or threads would fall into step
        return Event(busy, busy, reads, [(0, n // 100 + 1)] if stores else [], entries=6)

    events = [reading(n) for n in range(1000)]
    found, outcome = eager(events, 4)
    # Those beside a store lose, and nobody else.
    assert 10 <= outcome.aborts <= 10 * 4 * 4
    assert 3.0 < found < 4.0
    assert eager([one for n, one in enumerate(events) if n % 100], 4)[1].aborts == 0


def test_under_eager_an_earlier_store_takes_a_lock_over() -> None:
    # On two threads: a long event stores at its end to what the short one after it locked long
    # before, which has finished by then: it is run again.
    events = []
    for n in range(200):
        word, busy = 64 * (n // 2), 1000.0 if n % 2 == 0 else 100.0
        reads = [(8000 + 64 * k, 0) for k in range(9)]
        place = [*reads, (word, n % 2)] if n % 2 == 0 else [(word, n % 2), *reads]
        events.append(Event(busy, busy, place, [(word, n % 2 + 1)], entries=11))
    _, outcome = eager(events, 2, horizon=1)
    assert outcome.aborts == pytest.approx(100, abs=10)
    assert outcome.speculative_runs == 200 + outcome.aborts


def test_under_eager_events_that_all_conflict_lose_little() -> None:
    for threads in (2, 8):
        found, outcome = eager(in_one_word(1000), threads, 8)
        assert 0.7 < found < 1.3
        assert outcome.aborts > 500


def test_under_eager_updates_that_commute_lock_nothing() -> None:
    def updating(updates: frozenset[int]) -> list[Event]:
        return [
            Event(1000.0, 1000.0, [], [(0, n + 1)], entries=1, updates=updates) for n in range(500)
        ]

    found, outcome = eager(updating(frozenset([0])), 4)
    assert outcome.aborts == 0
    assert found == pytest.approx(4, rel=0.05)
    assert eager(updating(frozenset()), 4)[1].aborts > 100


def test_under_eager_records_go_from_core_to_core_as_well() -> None:
    # Every other event changes words beside those that all read: no conflict, but shared lines.
    reads = [(64 * k, 0) for k in range(50)]
    events = [
        Event(1000.0, 1000.0, reads, [(64 * k + 8, n) for k in range(50)] if n % 2 else [], 100)
        for n in range(1000)
    ]
    free, dear = (eager(events, 2, costs=Costs(bulk=bulk))[0] for bulk in (0.0, 4.0))
    cheaper = speed(events, 2, horizon=16, costs=Costs(bulk=4.0)) / speed(events, 2, horizon=16)
    assert dear / free < 0.95 * cheaper


def test_under_eager_runs_that_never_commit_are_run_in_place() -> None:
    events = [Event(1000.0, 1000.0, [], [(64 * n, 1)], retried=True) for n in range(200)]
    found, outcome = eager(events, 4)
    assert outcome.aborts == outcome.speculative_runs == 200
    assert found <= 1.0


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
        assert [key for key, _ in event.reads] == [key for key, _ in expected]
        written = dict(event.writes)
        assert written[cells + 8 * 100 + x % 2] == x % 200
        assert (0 in written) == (x % 5 == 0)
        if x % 5 == 0:
            assert written[0] == x // 5 + 1
        assert event.row_words == 2
        assert not event.retried
        assert event.plain > 0
        assert event.speculative > 0
    # Neighbouring bytes of one word do not conflict, and a cell is read again 99 events later.
    needs = Workload(found.events).needs
    assert needs[0] == []
    assert all(writer % 5 == 0 for of_event in needs[:90] for _, writer in of_event)
    assert math.isfinite(found.start + found.entry + found.head)


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
        assert dict(event.writes)[row + 8 * 2] == number + 11
    assert eager(found.events, 2)[1].aborts == 0
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
        assert event.reads == [
            *((row + 8 * i, int(state[i])) for i in range(5)),
            (row + 8 * (x % 5), int(state[x % 5])),
        ]
        state[x % 5] += 1
        counts[x % 3] += 1
        written = dict(event.writes)
        assert written[row + 8 * (x % 5)] == state[x % 5]
        assert np.uint64(written[total]).view(np.float64) == 0.75 * (x + 1)
        assert written[byte + x % 3] == counts[x % 3]
        assert written[byte + 3] == x % 200
        assert written[byte + 7] == min(x, 49)
        assert not event.retried


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


def test_costs_are_measured() -> None:
    from specstream.tuning.forecast.costs import measured_transfer

    latency, bulk = measured_transfer()
    assert 0.0 <= bulk <= latency < 1e6


def test_the_text_says_when_not_to_believe_the_forecast() -> None:
    from specstream.tuning.forecast.forecast import Check, Expected, Forecast
    from specstream.tuning.forecast.report import forecast_text

    def text(measured: float, capacity: float | None) -> str:
        check = Check(2, 8, 1, "value", False, measured, 1.8)
        best = [Expected(2, 8, 1, "value", 1.8, 0.0)]
        return forecast_text(Forecast(best, best, [check], {"value": FREE}, 1000), capacity)

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
