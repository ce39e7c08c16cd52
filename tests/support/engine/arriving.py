"""Operators for events that are submitted, and ways to wait for what comes of them."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pyarrow as pa
from conftest import partial_of

import specstream as ss

PATIENCE = 20.0


class Six(ss.State):
    values = ss.array(int, 6)
    last = ss.scalar(int)


@ss.operator(
    state=Six,
    event={"at": int, "amount": int},
    emits={"at": int, "value": int, "before": int},
)
def entities(state, event, emit):
    """Reads and writes one entity, and depends on the event before."""
    state.values[event.at % 6] += event.amount
    if event.amount % 7 == 0:
        state.last = state.last * 3 + event.timestamp
    if event.amount == -1:
        raise ValueError(f"amount -1 at {event.at}")
    emit(event.at, state.values[event.at % 6], state.last)


@ss.operator(
    state=Six,
    event={"at": int},
    emits={"at": int, "sequence": int, "source": int, "bits": int},
)
def keyed(state, event, emit):
    emit(event.at, event.sequence, event.source, np.int64(event.random_bits(0)))


class Count(ss.State):
    count = ss.scalar(int)


@ss.operator(state=Count, event={"name": str}, emits={"name": str, "place": int})
def places(state, event, emit):
    state.count += 1
    emit(event.name, state.count)


SETTINGS = [
    {"threads": 1, "horizon": 0},
    {"threads": 1, "horizon": 8, "chunk": 1},
    {"threads": 2, "horizon": 8, "chunk": 8},
    {"threads": 3, "horizon": 1, "chunk": 1},
    {"threads": 2, "horizon": 64, "chunk": 3},
    {"threads": 2, "horizon": 8, "chunk": 8, "protocol": "eager"},
    {"threads": 3, "horizon": 16, "chunk": 1, "protocol": "eager"},
    {"threads": 2, "horizon": "auto"},
]


def until(condition: Callable[[], bool]) -> None:
    """Waits for something that other threads bring about."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.001)


def drain(engine: ss.Engine, events: int) -> tuple[pa.Table, list[tuple[str, str]]]:
    """Everything that is still to come, and what was raised on the way."""
    parts, raised = [], []
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            parts.append(engine.poll(timeout=0.5))
        except ValueError as error:
            parts.append(partial_of(error).output)
            raised.append((type(error).__name__, str(error)))
        if engine.stats.events + len(raised) == events:
            break
        assert time.monotonic() < deadline, "not all events were applied"
    parts.append(engine.poll())
    return pa.concat_tables(parts), raised
