"""Two events with different keys do not conflict: counted.

That those with the same key do, and who asks for the length with who inserts, takes events at known
moments: ``stm_native/tests/test_containers.c``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import specstream as ss


class State(ss.State):
    by_key = ss.dict(int, int)
    by_pair = ss.dict((str, int), (int, float))
    seen = ss.set(int)


def _operator(function: Callable[..., None]) -> ss.Operator:
    emits = {"found": int}
    return ss.operator(state=State, event={"key": int, "name": str}, emits=emits)(function)


@_operator
def inserts(state, event, emit):  # type: ignore[no-untyped-def]
    state.by_key[event.key] = event.key
    state.by_pair[event.name, event.key] = (1, 0.5)
    state.seen.add(event.key)


@_operator
def looks_up(state, event, emit):  # type: ignore[no-untyped-def]
    """What others insert, or not."""
    emit(state.by_key.get(event.key, -1))
    if event.key not in state.seen:
        state.seen.add(event.key)
    state.by_pair.setdefault((event.name, event.key), (0, 0.0))


@_operator
def comes_and_goes(state, event, emit):  # type: ignore[no-untyped-def]
    state.by_key[event.key] = 1
    state.by_key[event.key] += 1
    emit(state.by_key.pop(event.key))
    state.by_key[-event.key] = 7
    state.seen.add(event.key)
    state.seen.discard(event.key)


def _events(keys: Any) -> dict[str, Any]:
    return {"key": keys, "name": [f"n{key % 7}" for key in keys]}


@pytest.mark.parametrize("operator", [inserts, looks_up, comes_and_goes])
@pytest.mark.parametrize("chunk", [1, 3])
def test_different_keys_do_not_conflict(operator: ss.Operator, chunk: int) -> None:
    keys = np.random.default_rng(1).permutation(3000) + 1
    events = _events(keys.tolist())
    with ss.Engine(operator, threads=4, horizon=16, chunk=chunk, execution="speculate") as engine:
        output = engine.process(events)
        aborts = engine.stats.aborts
        assert engine.stats.speculative_runs > 0
        # Growth is the head's, and a run that would take the last entry of a batch waits for it.
        assert aborts["conflict"] == 0
        assert sum(aborts.values()) == aborts["log_full"]
        state = engine.state.to_dict()
    expected = operator.run_sequential(events)
    assert output.equals(expected.output)
    assert list(state["by_key"].items()) == list(expected.state.by_key.items())
