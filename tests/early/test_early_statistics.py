"""The figures of early results: what was applied, revoked, run again; and how far they lead."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import json
import threading
import time
from dataclasses import astuple

import numpy as np

import specstream as ss
from specstream.engine.early_statistics import EarlyStatistics, Leads

GROWING = ("most_bytes", "revocations", "revoked", "republished", "rerun", "seconds")


class Cells(ss.State):
    sums = ss.array(int, 8)


@ss.operator(state=Cells, event={"at": int, "x": int}, emits={"sum": int})
def cell(state, event, emit):
    state.sums[event.at] += event.x
    emit(state.sums[event.at])


def early_of(engine: ss.Engine) -> EarlyStatistics:
    early = engine.stats.early
    assert early is not None
    return early


def a_late_one(engine: ss.Engine, first: int) -> None:
    """Four events, and one that belongs before them, on which two of them depend."""
    engine.submit(
        {"time": np.arange(first + 1, first + 5), "at": [0, 1, 0, 2], "x": [1, 1, 1, 1]},
        order_by="time", source="a",
    )  # fmt: skip
    engine.poll_early(timeout=None)
    engine.submit({"time": [first], "at": [0], "x": [5]}, order_by="time", source="b")
    engine.poll_early(timeout=None)


def test_they_count_what_became_of_revoked_transactions() -> None:
    with ss.Engine(cell, sources=["a", "b"], early=True, horizon=0) as engine:
        assert early_of(engine) == EarlyStatistics()
        a_late_one(engine, 10)
        early = early_of(engine)
        assert early.transactions == 5
        assert 0 < early.bytes <= early.most_bytes
        assert (early.revocations, early.revoked, early.republished, early.rerun) == (1, 4, 2, 2)
        assert early.seconds > 0
        assert early.lead_median is None, "nothing is final"
        engine.advance("a")
        engine.advance("b")
        assert engine.poll(timeout=None).num_rows == 5
        after = early_of(engine)
        assert (after.transactions, after.rerun) == (0, 2)
        assert after.lead_median is not None
    assert early_of(engine) == after, "also when it is closed"


@ss.operator(state=Cells, event={"upto": int}, emits={})
def rows_of_cells(state, event, emit):
    for at in range(event.upto):
        state.sums[at] += 1


def test_a_run_is_counted_once_and_a_dropped_one_is_told() -> None:
    dropped = []
    with ss.Engine(
        rows_of_cells, sources=["a"], early=True, horizon=4, limits=ss.Limits(writes=4),
        on_abort=lambda told: dropped.append((told.sequence, told.reason)),
    ) as engine:  # fmt: skip
        events = {"time": np.arange(40), "upto": np.where(np.arange(40) % 10 == 3, 8, 1)}
        engine.submit(events, order_by="time", source="a")
        engine.poll_early(timeout=None)
        engine.advance("a")
        engine.poll(timeout=None)
        stats = engine.stats
    assert stats.commits == 40
    assert stats.head_runs == 0, "where results are early the head keeps logs as well"
    assert 0 <= stats.speculative_runs - stats.commits <= stats.reruns
    assert stats.reruns == sum(stats.aborts.values()) == len(dropped)
    for late in (3, 13, 23, 33):
        assert (late, "log_full") in dropped


def test_without_early_results_there_are_none() -> None:
    with ss.Engine(cell) as engine:
        assert engine.stats.early is None
        assert engine.stats.to_dict()["early"] is None
        assert "revocations" not in repr(engine.stats)


def test_what_only_grows_grows_over_jobs() -> None:
    with ss.Engine(cell, sources=["a", "b"], early=True, horizon=0) as engine:
        seen = [early_of(engine)]
        for count in range(1, 4):
            start = engine.savepoint()
            a_late_one(engine, 10)
            seen.append(early_of(engine))
            engine.rollback(start)  # ends the job
            seen.append(early_of(engine))
            assert seen[-1].transactions == seen[-1].bytes == 0
            assert (seen[-1].revocations, seen[-1].rerun) == (count, 2 * count)
        a_late_one(engine, 10)
        seen.append(early_of(engine))
        engine.advance("a")
        engine.advance("b")
        engine.poll(timeout=None)
        engine.process({"at": [1], "x": [1]})
        seen.append(early_of(engine))
    assert (seen[-1].revocations, seen[-1].revoked, seen[-1].transactions) == (4, 16, 0)
    for name in GROWING:
        numbers = [getattr(early, name) for early in seen]
        assert numbers == sorted(numbers)


def test_who_looks_all_the_time_sees_nothing_fall() -> None:
    seen: list[EarlyStatistics] = []
    over = threading.Event()
    with ss.Engine(cell, sources=["a", "b"], early=True, threads=2, horizon=4) as engine:

        def look() -> None:
            while not over.is_set():
                seen.append(early_of(engine))

        looker = threading.Thread(target=look)
        looker.start()
        try:
            for _ in range(30):
                start = engine.savepoint()
                a_late_one(engine, 10)
                engine.rollback(start)
        finally:
            over.set()
            looker.join()
        assert early_of(engine).revocations == 30
    for name in GROWING:
        numbers = [getattr(early, name) for early in seen]
        assert numbers == sorted(numbers)


def test_the_lead_is_from_the_first_telling_to_the_end() -> None:
    with ss.Engine(cell, sources=["a", "b"], early=True) as engine:
        engine.submit({"time": [10, 20], "at": [0, 0], "x": [1, 1]}, order_by="time", source="a")
        before = time.monotonic()
        engine.poll_early(timeout=None)
        first = time.monotonic()
        time.sleep(0.05)  # a lead that is counted from the second telling would be shorter
        # They are told anew, as they have changed.
        engine.submit({"time": [5], "at": [0], "x": [1]}, order_by="time", source="b")
        engine.poll_early(timeout=None)
        engine.advance("a", 15)
        engine.advance("b", 15)
        final = time.monotonic()
        engine.poll(timeout=None)
        after = time.monotonic()
        early = early_of(engine)
        assert early.lead_median is not None
        assert early.lead_p99 is not None
        # Two are final, of which one was told with the first answer.
        assert final - first <= early.lead_p99 <= after - before
        assert early.lead_median <= early.lead_p99


def test_a_revised_event_leads_from_when_it_was_first_told() -> None:
    with ss.Engine(cell, sources=["a"], early=True) as engine:
        engine.submit({"time": [10], "at": [0], "x": [1]}, order_by="time", source="a", final=False)
        engine.poll_early(timeout=None)
        time.sleep(0.05)  # likewise: from the revision it would be shorter
        engine.revise("a", 0, version=2, x=7)
        assert engine.poll_early(timeout=None).changes["sum"].to_pylist() == [7]
        engine.confirm("a", None)
        engine.advance("a")
        engine.poll(timeout=None)
        lead = early_of(engine).lead_median
    assert lead is not None
    assert lead >= 0.05


def test_events_that_were_never_told_early_lead_nobody() -> None:
    with ss.Engine(cell, sources=["a"], early=True) as engine:
        engine.poll_early()
        engine.submit({"time": [10, 20], "at": [0, 0], "x": [1, 1]}, order_by="time", source="a")
        engine.advance("a")
        engine.poll(timeout=None)
        assert early_of(engine).lead_median is None


def test_the_sample_is_bounded_and_fair() -> None:
    leads = Leads()
    count = 300_000
    for first in range(0, count, 60_000):
        leads.told(np.arange(first, first + 60_000), at=0.0)
        assert len(leads.watched) <= 4096
    assert len(leads.watched) > 1000, "one in 128 or so"
    # A hundredth of them leads by far more.
    events = np.arange(count)
    leads.final(events[events % 100 != 0], at=2.0)
    leads.final(events[events % 100 == 0], at=50.0)
    assert not leads.watched
    median, high = leads.quantiles()
    assert median == 2.0
    assert high is not None
    assert 2.0 <= high <= 50.0
    # With few of them each one is watched again.
    for round_ in range(20):
        leads.told(np.arange(3), at=float(round_))
        leads.final(np.arange(3), at=round_ + 1.0)
    assert leads.bits == 0


def test_withdrawn_events_are_not_waited_for() -> None:
    leads = Leads()
    leads.told(np.array([1, 1, 2]), at=1.0)
    leads.withdrawn(np.array([1, 1]))
    leads.final(np.array([1, 1]), at=5.0)
    assert leads.quantiles() == (None, None)
    leads.final(np.array([2, 2]), at=4.0)
    assert leads.quantiles() == (3.0, 3.0)


def test_they_show() -> None:
    with ss.Engine(cell, sources=["a", "b"], early=True, horizon=0) as engine:
        a_late_one(engine, 10)
        stats = engine.stats
        assert stats.early is not None
        shown = repr(stats)
        assert "applied, not final  5 transactions, " in shown
        assert "transactions: 4 revoked, 2 republished, 2 rerun" in shown
        assert "early before final" not in shown
        engine.advance("a")
        engine.advance("b")
        engine.poll(timeout=None)
        assert "median " in repr(engine.stats)
        assert "early before final</th>" in engine.stats._repr_html_()
        plain = json.loads(json.dumps(stats.to_dict()))
        assert tuple(plain["early"].values()) == astuple(stats.early)
