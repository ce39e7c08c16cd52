"""What an engine leaves behind when it ends: nothing."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import gc
import os
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import specstream as ss

pytestmark = pytest.mark.slow


class Seen(ss.State):
    count = ss.scalar(int)


@ss.operator(state=Seen, event={"x": int, "name": str}, emits={"total": int, "name": str})
def running_total(state, event, emit):
    if event.x == 7:
        raise ValueError("seven")
    state.count += event.x
    emit(state.count, event.name)


TABLE = {"time": [1, 2, 3, 4], "x": [1, 2, 3, 4], "name": ["a", "b", "c", "a"]}


def in_batches(engine: ss.Engine) -> None:
    engine.process(TABLE)
    with pytest.raises(ValueError, match="seven"):
        engine.process({"x": [1, 7], "name": ["a", "a"]})
    engine.rollback(engine.savepoint())
    engine.restore(engine.snapshot())


def out_of_order(engine: ss.Engine) -> None:
    engine.submit(TABLE, order_by="time", source="s")
    engine.submit_event(9, "s", x=1, name="z")
    engine.advance("s", 4)
    engine.poll(timeout=None)
    engine.restore(engine.snapshot())
    engine.submit_event(10, "s", x=1, name="z")


USES: list[tuple[Callable[[ss.Engine], None], dict[str, Any]]] = [
    (in_batches, {}),
    (in_batches, {"threads": 1, "horizon": 0}),
    (in_batches, {"horizon": 4, "chunk": 1, "profile": True}),
    (in_batches, {"horizon": 4, "chunk": 1, "protocol": "eager"}),
    (in_batches, {"on_commit": lambda notification: None}),
    (in_batches, {"predictor": ss.AbortDriven}),
    (out_of_order, {}),
    (out_of_order, {"on_post_commit": lambda notification: None, "protocol": "eager"}),
]


def used(use: Callable[[ss.Engine], None], options: dict[str, Any]) -> ss.Engine:
    made = {name: make() if isinstance(make, type) else make for name, make in options.items()}
    engine = ss.Engine(running_total, **{"threads": 2, **made})
    use(engine)
    return engine


def threads_of_process() -> int:
    return len(os.listdir("/proc/self/task"))


def await_threads(count: int) -> None:
    """A thread is listed for a moment after it was joined."""
    deadline = time.monotonic() + 60
    while threads_of_process() > count:
        assert time.monotonic() < deadline, f"{threads_of_process()} threads, not {count}"
        time.sleep(0.001)


def resident() -> int:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize("close", [True, False], ids=["closed", "let go"])
@pytest.mark.parametrize(("use", "options"), USES)
def test_an_engine_that_nobody_holds_is_gone_at_once(
    use: Callable[[ss.Engine], None], options: dict[str, Any], close: bool
) -> None:
    """Without the collector, which does not know how large a state is."""
    used(use, options).close()  # whatever is made at the first time
    before = threads_of_process()
    gc.collect()
    gc.disable()
    try:
        engine = used(use, options)
        gone, state_gone = weakref.ref(engine), weakref.ref(engine.durable.words)
        if close:
            engine.close()
        del engine
        assert gone() is None
        assert state_gone() is None
    finally:
        gc.enable()
    await_threads(before)


def test_many_engines_leave_neither_memory_nor_threads() -> None:
    before = threads_of_process()

    def growth() -> int:
        start = resident()
        for _ in range(10):
            for use, options in USES:
                used(use, options).close()
        gc.collect()
        return resident() - start

    growth()  # whatever is made at the first time
    # A leak grows with every engine; of what else a process does, some rounds are free.
    growths = [growth() for _ in range(5)]
    assert min(growths) < 80 * 2048, growths
    await_threads(before)


@pytest.mark.parametrize(
    "options",
    [
        {"memory": 1},
        {"restore": b"damaged"},
        {"predictor": ss.Fixed(1, 1), "memory": 1000},
        {"on_commit": 3},
        {"sources": [0.5]},
    ],
)
def test_an_engine_that_cannot_be_made_leaves_no_thread(options: dict[str, Any]) -> None:
    before = threads_of_process()
    for _ in range(5):
        with pytest.raises(ss.SpecstreamError):
            ss.Engine(running_total, **options)
    await_threads(before)


def test_one_operator_s_code_is_loaded_once() -> None:
    """Numba never gives up what it has loaded."""

    def address(operator: ss.Operator) -> int:
        with ss.Engine(operator, horizon=0) as engine:
            return engine.parts.code.entries["plain"].address

    assert address(running_total) == address(running_total)
    same = [
        ss.operators.top_k(k=3, rows=3, width=16),
        ss.operators.top_k(k=3, rows=3, width=16),
        ss.operators.top_k(k=4, rows=3, width=16),
    ]
    first, second, other = map(address, same)
    assert first == second != other
