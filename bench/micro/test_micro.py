"""What a load, a store, an emitted row, a transaction and a call cost.

Absolute times, hence for comparing two versions on one machine only (``--benchmark-autosave``,
``--benchmark-compare``). ``extra_info`` has nanoseconds per event as the engine counted them,
without the conversion from and to Arrow.
"""

from __future__ import annotations

import statistics
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import specstream as ss

EVENTS = 20_000
TOUCHED = 16  # words per event

EXECUTIONS: dict[str, dict[str, Any]] = {
    "log-free": {"execution": "log_free"},
    "plain": {"horizon": 0},
    "transactional": {"execution": "speculate", "horizon": 4, "chunk": 64},
}


class Words(ss.State):
    """Some more words than fit the first-level cache."""

    values = ss.array(int, 8192)


@ss.operator(state=Words, event={"at": int}, emits={"sum": int})
def nothing(state, event, emit):  # type: ignore[no-untyped-def]
    """An event that does nothing: what the loop around it costs."""
    return


@ss.operator(state=Words, event={"at": int}, emits={"sum": int})
def load(state, event, emit):  # type: ignore[no-untyped-def]
    """Loads words that are spread over the state; emits their sum, so that none is left out."""
    total = 0
    at = event.at
    for _ in range(TOUCHED):
        total += state.values[at]
        at = (at + 509) % 8192
    if total == -1:
        emit(total)


@ss.operator(state=Words, event={"at": int}, emits={"sum": int})
def store(state, event, emit):  # type: ignore[no-untyped-def]
    """Stores into such words."""
    at = event.at
    for i in range(TOUCHED):
        state.values[at] = i
        at = (at + 509) % 8192


@ss.operator(state=Words, event={"at": int}, emits={"sum": int})
def emitting(state, event, emit):  # type: ignore[no-untyped-def]
    """Emits rows."""
    for i in range(TOUCHED):
        emit(i)


@pytest.fixture(scope="module")
def events() -> pa.Table:
    """Random places."""
    return pa.table({"at": np.random.default_rng(1).integers(0, 8192, EVENTS)})


@pytest.mark.parametrize("rows", [0, 1])
@pytest.mark.parametrize("threads", [1, 2])
def test_process_call(benchmark: Any, events: pa.Table, rows: int, threads: int) -> None:
    """What a call costs, Arrow and waking the threads included."""
    batch = events.slice(0, rows)
    with ss.Engine(nothing, threads=threads, horizon=8, chunk=8) as engine:
        benchmark(engine.process, batch)


@pytest.mark.parametrize("execution", EXECUTIONS)
@pytest.mark.parametrize("operator", [nothing, load, store, emitting], ids=lambda o: o.name)
def test_event(benchmark: Any, events: pa.Table, operator: ss.Operator, execution: str) -> None:
    """Sixteen loads, stores or rows per event; subtract ``nothing``."""
    if operator is emitting and execution == "transactional":
        # A chunk of 64 would pass the limit of rows in a transaction.
        options = {**EXECUTIONS[execution], "chunk": 16}
    else:
        options = EXECUTIONS[execution]
    _measure(benchmark, events, operator, options)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("operator", [nothing, load, store], ids=lambda o: o.name)
def test_transaction(benchmark: Any, events: pa.Table, operator: ss.Operator, threads: int) -> None:
    """Claim, begin, run, validate, publish: one event per transaction. Subtract ``test_event``."""
    options = {"execution": "speculate", "horizon": 4, "chunk": 1, "threads": threads}
    _measure(benchmark, events, operator, options)


def _measure(
    benchmark: Any, events: pa.Table, operator: ss.Operator, options: dict[str, Any]
) -> None:
    with ss.Engine(operator, **{"threads": 1, **options}) as engine:
        seconds: list[float] = []

        def run() -> None:
            before = engine.stats.seconds
            engine.process(events)
            seconds.append(engine.stats.seconds - before)

        benchmark.pedantic(run, rounds=20, warmup_rounds=2)
        per_event = statistics.median(seconds[2:]) / events.num_rows
        benchmark.extra_info["nanoseconds_per_event"] = round(per_event * 1e9, 2)
        benchmark.extra_info["abort_rate"] = engine.stats.abort_rate
