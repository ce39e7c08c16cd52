"""A state of 512 MB: made at once, never copied by a batch, right in every word.

The largest tests of the suite: a few seconds; about 600 MB of memory, the snapshot 1.6 GB.
"""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import specstream as ss

pytestmark = pytest.mark.large

WORDS = 1 << 26
EVENTS = 40_000


class Large(ss.State):
    a = ss.array(int, WORDS)
    n = ss.scalar(int)


@ss.operator(state=Large, event={"at": int, "x": int}, emits={"before": int})
def update(state, event, emit):
    """Its result depends on the order of the events that share a word."""
    before = state.a[event.at]
    state.a[event.at] = before * 3 + event.x
    emit(before)


def figure(file: str, name: str) -> int:
    """A figure of the kernel's, in bytes."""
    for line in Path(file).read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) * 1024
    raise LookupError(f"{file} has no {name}")


def resident() -> int:
    return figure("/proc/self/status", "VmRSS")


def needs(gigabytes: int) -> pytest.MarkDecorator:
    """Skips a test where memory is short, so that it is not ended by the kernel."""
    if not Path("/proc/meminfo").exists():
        return pytest.mark.skip(reason="measures memory through /proc")
    available = figure("/proc/meminfo", "MemAvailable")
    return pytest.mark.skipif(
        available < gigabytes << 30,
        reason=f"needs {gigabytes} GB of available memory, and {available >> 20} MB are",
    )


def stream() -> dict[str, np.ndarray]:
    """Words of the whole range, its ends included; every fourth event at one of a few words, so
    that neighbouring events conflict."""
    random = np.random.default_rng(4)
    at = random.integers(0, WORDS, EVENTS)
    at[::4] = random.choice(at, 50)[random.integers(0, 50, EVENTS // 4)]
    at[[0, 1, 2, 3]] = [0, WORDS - 1, 0, WORDS - 1]
    return {"at": at, "x": random.integers(-1000, 1000, EVENTS)}


def sequential(table: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """NumPy's own answer: the words touched, their values, and what each event found."""
    words, place = np.unique(table["at"], return_inverse=True)
    values = np.zeros(len(words), np.int64)
    found = np.empty(EVENTS, np.int64)
    with np.errstate(over="ignore"):
        for event, (at, x) in enumerate(zip(place, table["x"], strict=True)):
            found[event] = values[at]
            values[at] = values[at] * 3 + x
    return words, values, found


@needs(2)
def test_what_is_never_touched_takes_no_memory() -> None:
    before = resident()
    with ss.Engine(update, threads=2, horizon=8) as engine:
        engine.process({"at": [0, WORDS - 1, -1], "x": [5, 7, 1]})
        assert engine.stats.state_bytes == 8 * (WORDS + 1)
        assert resident() - before < 256 << 20
        assert (engine.state.a[0], engine.state.a[WORDS - 1]) == (5, 22)


@needs(2)
@pytest.mark.parametrize("protocol", ["value", "eager"])
def test_updates_all_over_a_large_state_are_those_of_a_sequential_run(protocol: str) -> None:
    table = stream()
    words, values, found = sequential(table)
    assert len(words) < EVENTS < WORDS
    with ss.Engine(update, threads=2, horizon=8, chunk=4, protocol=protocol) as engine:
        output = engine.process(table)
        assert engine.stats.speculative_runs > 0
        before = resident()
        a = engine.state.a
        assert resident() - before < 64 << 20  # a view
        np.testing.assert_array_equal(output["before"].to_numpy(), found)
        np.testing.assert_array_equal(a[words], values)
        # And nothing else was touched.
        assert np.count_nonzero(a) == np.count_nonzero(values)
        assert engine.state.n == 0


@needs(4)
def test_a_large_state_survives_a_snapshot() -> None:
    """Three times 512 MB at the peak: the state, a copy that stands still, the bytes."""
    table = stream()
    words, values, _ = sequential(table)
    with ss.Engine(update, threads=2, horizon=8, chunk=4) as engine:
        engine.process(table)
        snapshot = engine.snapshot()
        assert len(snapshot) > 8 * WORDS
        engine.process(table)
        assert not np.array_equal(engine.state.a[words], values)
        engine.restore(snapshot)
        np.testing.assert_array_equal(engine.state.a[words], values)
        assert np.count_nonzero(engine.state.a) == np.count_nonzero(values)
