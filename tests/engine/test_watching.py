"""Figures of an engine can be looked at while it works, and nobody is stopped for it."""

import datetime
import itertools
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from support.engine.spinning import spin

import specstream as ss
from specstream.predictors.predictor import LONGEST_HORIZON

WAIT_SECONDS = 60
GROWING = ("events", "commits", "head_runs", "speculative_runs", "reruns", "parks", "seconds")


@contextmanager
def in_flight(engine: ss.Engine, table: Any, **options: Any) -> Iterator[threading.Thread]:
    """The batch runs in a thread of its own inside; it has ended behind."""
    errors: list[BaseException] = []

    def run() -> None:
        try:
            engine.process(table, **options)
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    yield thread
    thread.join()
    assert not errors


def until(look: Callable[[], Any]) -> Any:
    """What a look gives, once it is true."""
    deadline = time.monotonic() + WAIT_SECONDS
    while not (found := look()):
        assert time.monotonic() < deadline
    return found


@pytest.mark.parametrize(
    "options",
    [
        {"threads": 1, "horizon": 0},
        {"threads": 2},
        {"threads": 2, "horizon": 8, "chunk": 2},
        {"threads": 2, "horizon": 8, "chunk": 2, "protocol": "eager"},
        {"threads": 2, "execution": "log_free"},
        {"threads": 2, "execution": "locked"},
    ],
    ids=["plain", "automatic", "value", "eager", "log-free", "locked"],
)
def test_figures_grow_while_a_batch_is_in_flight(options: Any) -> None:
    events = 400
    with ss.Engine(spin, **options) as engine:
        looks = [engine.stats]
        assert not looks[0].running
        with in_flight(engine, {"x": np.full(events, 500_000)}) as batch:
            while batch.is_alive():
                looks.append(engine.stats)
        looks.append(engine.stats)
    during = {look.events for look in looks if look.running}
    assert len(during) > 3, "a look sees the events of the batch so far"
    for before, after in itertools.pairwise(looks):
        assert all(getattr(before, name) <= getattr(after, name) for name in GROWING)
        assert all(before.aborts[reason] <= count for reason, count in after.aborts.items())
        assert after.waiting <= options.get("horizon", LONGEST_HORIZON)
    assert (looks[-1].events, looks[-1].running, looks[-1].waiting) == (events, False, 0)


def test_the_wait_queue_is_what_has_run_ahead_of_a_long_head() -> None:
    lengths = np.full(50, 100)
    lengths[0] = 300_000_000
    with (
        ss.Engine(spin, threads=2, horizon=4, chunk=1) as engine,
        in_flight(engine, {"x": lengths}),
    ):
        # The long event is at the head, and four transactions are within the horizon.
        stats = until(lambda: (now := engine.stats).waiting == 4 and now)
        assert stats.events == 0
        assert stats.speculative_runs >= 4


def test_order_time_reached_and_lag_are_told_during_a_batch() -> None:
    start = datetime.datetime(2013, 1, 1)
    times = pa.array([start + datetime.timedelta(seconds=10 * i) for i in range(100)])
    table = pa.table({"at": times, "x": np.full(100, 1_000_000)})
    with ss.Engine(spin, threads=1) as engine:
        assert (engine.stats.reached, engine.stats.lag) == (None, None)
        before = engine.snapshot()
        with in_flight(engine, table.slice(50), order_by="at"):
            stats = until(lambda: (now := engine.stats).events and now)
            if stats.running:
                assert stats.reached == start + datetime.timedelta(seconds=10 * (49 + stats.events))
                assert stats.lag == 10 * (50 - stats.events)
        done = engine.stats
        assert (done.reached, done.lag) == (times[-1].as_py(), 0)
        assert json.loads(json.dumps(done.to_dict()))["reached"] == "2013-01-01 00:16:30"
        engine.restore(before)  # which knows of no time
        assert (engine.stats.reached, engine.stats.lag) == (None, None)


@pytest.mark.parametrize(
    ("times", "lag"),
    [
        (pa.array([1, 5, 9]), 4.0),
        (pa.array([-1.5, 0.5, 2.0]), 1.5),
        (pa.array([1, 5, 9], pa.timestamp("ms")), 0.004),
        (pa.array([1, 5, 9], pa.date32()), 4 * 86400.0),
    ],
    ids=["int", "float", "timestamp", "date"],
)
def test_lag_of_submitted_events_is_from_the_frontier_to_the_last_one(
    times: pa.Array, lag: float
) -> None:
    with ss.Engine(spin, threads=1, sources=[0]) as engine:
        engine.submit({"time": times, "x": [1, 1, 1]}, order_by="time")
        assert engine.stats.lag is None, "nothing has said that anything may commit"
        engine.advance(0, times[1].as_py())
        assert engine.stats.lag == pytest.approx(lag)
        engine.advance(0)
        assert engine.stats.lag == 0


def test_looks_go_on_while_an_engine_is_closed() -> None:
    engine = ss.Engine(spin, threads=2, horizon=4, chunk=1)
    over = threading.Event()
    seen: list[ss.Statistics] = []

    def look() -> None:
        while not over.is_set():
            seen.append(engine.stats)

    watcher = threading.Thread(target=look)
    watcher.start()
    until(lambda: seen)
    engine.process({"x": [1000] * 100})
    engine.close()
    over.set()
    watcher.join()
    assert all(before.events <= after.events for before, after in itertools.pairwise(seen))
    assert seen[-1].events <= engine.stats.events == 100
