"""Locks of a user's own operator: they exclude, are given back, and their misuse is named."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from typing import Any

import numpy as np
import pytest

import specstream as ss
from bench import locked as locked_versions
from bench.workloads import listing_4_2, skewed_items, uniform_points, updates, values
from specstream.operators import nearest_neighbours, top_k


class Two(ss.State):
    """Two words, a lock for each, and a field of locks before them."""

    others = ss.locks(3)
    left = ss.scalar(int)
    right = ss.scalar(int)
    locks = ss.locks(2)


def operator(function: Any) -> ss.Operator:
    return ss.operator(state=Two, event={"x": int}, emits={"before": int})(function)


def locked(of: ss.Operator, events: Any, threads: int = 4, **options: Any) -> Any:
    """Output and final words of a run under locks."""
    with ss.Engine(of, threads=threads, chunk=1, execution="locked", **options) as engine:
        output = engine.process(events)
        return output["before"].to_numpy(), engine.state.left, engine.state.right


def ones(count: int) -> dict[str, Any]:
    return {"x": np.ones(count, np.int64)}


def test_locks_keep_concurrent_events_apart() -> None:
    @operator
    def add(state, event, emit):
        with state.locks[1]:
            before = state.left
            state.left = before + event.x
        emit(before)

    count = 100_000
    before, left, _ = locked(add, ones(count))
    assert left == count
    assert np.array_equal(np.sort(before), np.arange(count))


def guarded(state, lock, x):
    """A helper that is given a lock, and returns from under it."""
    with lock:
        if x % 2 == 0:
            return state.left
        state.left += 1
        return state.left - 1


@pytest.mark.slow
def test_a_lock_is_given_back_on_every_way_out() -> None:
    @operator
    def ways(state, event, emit):
        for turn in range(3):
            with state.others[0], state.others[-1]:
                if turn == 0:
                    continue
                with state.locks[turn % 2]:  # 1 guards `right`, as below
                    if turn == 2:
                        break
                    state.right += 1
        before = guarded(state, state.locks[0], event.x)
        state.locks[1].acquire()
        state.right += len(state.locks)
        state.locks[1].release()
        if before == -1:
            with state.others[1]:
                return
        emit(before)

    events = {"x": np.arange(20_000)}
    _, left, right = locked(ways, events)
    assert (left, right) == (10_000, 60_000)
    # Elsewhere locks do nothing, and the answer is the sequential one.
    expected = ways.run_sequential(events)
    for options in ({"horizon": 0}, {"horizon": 4, "chunk": 4}, {"execution": "log_free"}):
        with ss.Engine(ways, threads=2, **options) as engine:
            assert engine.process(events).equals(expected.output)
            assert engine.state.left == expected.state.left
            assert dir(engine.state) == ["left", "right"]
            assert engine.stats.state_bytes == 16


def test_a_lock_is_given_back_by_an_event_that_raises() -> None:
    @operator
    def touchy(state, event, emit):
        with state.locks[0]:
            state.left += 1
            if event.x == 0:
                raise ValueError("zero")
        emit(0)

    with ss.Engine(touchy, threads=2, chunk=1, execution="locked") as engine:
        with pytest.raises(ValueError, match="zero"):
            engine.process({"x": [0]})
        assert engine.process(ones(100)).num_rows == 100


def test_a_deadlock_is_found_and_its_locks_are_named() -> None:
    @operator
    def crossing(state, event, emit):
        first = event.x % 2
        with state.locks[first]:
            busy = event.x
            for _ in range(2000):
                busy = (busy ^ (busy >> 32)) * 31 + 7  # which no compiler folds
            with state.locks[1 - first]:
                state.left += busy
        emit(0)

    with ss.Engine(crossing, threads=2, chunk=1, execution="locked") as engine:
        # One batch may go well by chance; so many do not.
        events = {"x": np.tile(np.arange(2000), 500)}
        with pytest.raises(ss.LockError, match=r"wait for each other's locks locks\[") as caught:
            engine.process(events)
        assert sorted(caught.value.locks) == ["locks[0]", "locks[1]"]
        assert "take several locks in one order" in str(caught.value)
        assert caught.value.specstream_partial.consumed < 1_000_000
        # Nobody holds a lock any more.
        assert engine.process({"x": np.zeros(1000, np.int64)}).num_rows == 1000


def test_locks_taken_in_one_order_are_no_deadlock() -> None:
    @operator
    def ordered(state, event, emit):
        with state.locks[0], state.locks[1]:
            state.left += 1
        emit(0)

    assert locked(ordered, ones(50_000), threads=6)[1] == 50_000


def twice(state, event, emit):
    with state.locks[1]:
        state.locks[event.x].acquire()
    emit(0)


def not_held(state, event, emit):
    state.others[event.x].release()
    emit(0)


def kept(state, event, emit):
    state.others[event.x + 1].acquire()
    emit(0)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (twice, r"takes lock locks\[1\], which it holds already.*not reentrant"),
        (not_held, r"gives back lock others\[1\], which it does not hold"),
        (kept, r"ended that still held lock others\[2\].*with statement"),
    ],
)
def test_what_is_wrong_with_a_lock_is_said(function: Any, message: str) -> None:
    with (
        ss.Engine(operator(function), threads=1, chunk=1, execution="locked") as engine,
        pytest.raises(ss.LockError, match=message),
    ):
        engine.process(ones(3))


def test_an_index_outside_of_the_locks_raises_as_in_python() -> None:
    @operator
    def wild(state, event, emit):
        with state.locks[event.x]:
            emit(0)

    for options in ({"execution": "locked"}, {"horizon": 0}):
        with (
            ss.Engine(wild, threads=1, **options) as engine,
            pytest.raises(IndexError, match=r"out of bounds for the 2 locks of state\.locks"),
        ):
            engine.process({"x": [1, -2, 2]})


def test_what_is_no_lock_is_refused() -> None:
    def words(state, event, emit):
        with state.left:
            emit(0)

    def named(state, event, emit):
        with state.locks[0] as lock:
            emit(lock)

    def by_float(state, event, emit):
        with state.locks[event.x / 2]:
            emit(0)

    def replaced(state, event, emit):
        state.locks = event.x

    for function, message in (
        (words, "int64 is not a lock; declare locks = ss.locks"),
        (named, r"a with statement is for the locks.*write with state\.locks\[i\]"),
        (by_float, r"a lock is indexed with float64.*int\(x\)"),
        (replaced, "'locks' holds locks"),
    ):
        with pytest.raises(ss.CompileError, match=message):
            ss.Engine(operator(function), horizon=0)

    class Empty(ss.State):
        word = ss.scalar(int)
        locks = ss.locks(0)

    with pytest.raises(ss.DeclarationError, match=r"locks.*has shape"):
        Empty.layout()


TOP_K: dict[str, Any] = {"k": 3, "rows": 3, "width": 32}
NEIGHBOURS: dict[str, Any] = {"grid": 4, "per_bucket": 5, "k": 3}
RIVALS = {
    "top_k": (top_k(**TOP_K), locked_versions.top_k(**TOP_K), skewed_items),
    "top_k_fine": (top_k(**TOP_K), locked_versions.top_k(**TOP_K, fine=True), skewed_items),
    "nearest_neighbours": (
        nearest_neighbours(**NEIGHBOURS),
        locked_versions.nearest_neighbours(**NEIGHBOURS),
        uniform_points,
    ),
    "nearest_neighbours_fine": (
        nearest_neighbours(**NEIGHBOURS),
        locked_versions.nearest_neighbours(**NEIGHBOURS, fine=True),
        uniform_points,
    ),
    "listing_4_2": (listing_4_2(10), locked_versions.listing_4_2(10), values(5)),
    "listing_4_2_fine": (listing_4_2(10), locked_versions.listing_4_2(10, 10), values(5)),
    "updates": (updates(64, 3), locked_versions.updates(64, 3), values(5)),
    "updates_fine": (updates(64, 3), locked_versions.updates(64, 3, 8), values(5)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", RIVALS)
def test_a_rival_under_locks_does_the_same_work(name: str) -> None:
    of, rival, make_events = RIVALS[name]
    events = make_events(2_000, 1)
    expected = of.run_sequential(events)
    with ss.Engine(rival, threads=1, execution="locked") as engine:
        # One thread has an order, and it is that of the events.
        assert engine.process(events).equals(expected.output)
        for field in dir(engine.state):
            np.testing.assert_array_equal(
                getattr(engine.state, field), getattr(expected.state, field)
            )
    with ss.Engine(rival, threads=4, chunk=1, execution="locked") as engine:
        engine.process(events)
        # In whatever order: nothing that was added is lost.
        summed = {"top_k": "sketch", "near": "counts", "list": "local_state", "upda": "values"}
        field = next(field for prefix, field in summed.items() if name.startswith(prefix))
        assert getattr(engine.state, field).sum() == getattr(expected.state, field).sum()
