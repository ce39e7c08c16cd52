"""Memory that runs out costs an event, by its name, and the engine goes on."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import gc
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path as FilePath
from typing import Any

import pyarrow as pa
import pytest
from conftest import partial_of

import specstream as ss

pytestmark = pytest.mark.slow

# So many stores fill an undo log of 128 MB, and so many rows as much output.
LARGE = 1 << 23
# More than a speculative run may store to: the event runs in place.
WORDS = 2 * ss.Limits().writes
HEADROOM = 24 << 20


class Words(ss.State):
    words = ss.array(int, WORDS)
    total = ss.scalar(int)


@ss.operator(state=Words, event={"x": int, "what": int}, emits={"total": int})
def work(state, event, emit):
    state.total += event.x
    if event.what == 1:
        for i in range(LARGE):
            state.words[i % WORDS] = event.x
    if event.what == 2:
        for i in range(LARGE):
            emit(i)
    emit(state.total)


@contextmanager
def little_memory() -> Iterator[None]:
    """The process may take a little more than it has, for as long as this lasts."""
    gc.collect()  # what was given back meanwhile would count as well
    pages = int(FilePath("/proc/self/statm").read_text().split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    limit = pages * resource.getpagesize() + HEADROOM
    resource.setrlimit(resource.RLIMIT_AS, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def events(what: int) -> pa.Table:
    return pa.table({"x": range(10), "what": [what if x == 5 else 0 for x in range(10)]})


OPTIONS: list[dict[str, Any]] = [
    {"threads": 1, "horizon": 0},
    {"threads": 2, "horizon": 4, "chunk": 2},
    {"threads": 2, "horizon": 4, "chunk": 2, "execution": "speculate"},
    {"threads": 2, "horizon": 4, "chunk": 2, "protocol": "eager"},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("what", [1, 2], ids=["undo log", "output"])
def test_an_event_for_which_there_is_no_memory(what: int, options: dict[str, Any]) -> None:
    with ss.Engine(work, **options) as engine:
        engine.process(events(0))  # threads and logs are there
        with little_memory(), pytest.raises(MemoryError) as caught:
            engine.process(events(what))
        error = caught.value
        assert "operator 'work'" in str(error)
        assert "(timestamp, source, sequence) = (15, 0, 15). The event is not applied" in str(error)
        assert "x=5" in error.__notes__[0]
        partial = partial_of(error)
        assert partial.consumed == 5
        assert partial.output["total"].to_pylist() == [45 + sum(range(x + 1)) for x in range(5)]
        assert engine.state.total == 45 + 10
        assert not engine.state.words.any()
        # It goes on, and with memory so does the event.
        output = engine.process(events(what).slice(5))
        assert output["total"].to_pylist()[-1] == 45 + 45
        if what == 1:
            assert (engine.state.words == 5).all()


@pytest.mark.parametrize("horizon", [0, 4])
def test_a_submitted_event_for_which_there_is_no_memory(horizon: int) -> None:
    with ss.Engine(work, threads=2, horizon=horizon, chunk=1) as engine:
        for x in range(3):
            engine.submit_event(x, x=x, what=0, ordered=True)
        engine.poll(None)
        with little_memory():
            engine.submit_event(3, x=3, what=1)
            engine.submit_event(4, x=4, what=0, ordered=True)
            with pytest.raises(MemoryError, match=r"= \(3, 0, 3\).*not applied"):
                engine.poll(None)
        assert engine.poll(None)["total"].to_pylist() == [7]


def test_without_an_undo_log_the_error_says_so() -> None:
    with ss.Engine(work, execution="log_free") as engine:
        engine.process(events(0))
        with little_memory(), pytest.raises(MemoryError, match="may hold half of the event"):
            engine.process(events(2))
