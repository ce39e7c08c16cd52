"""Dicts, sets, lists, deques and priority queues of the state: engine, oracle and Python agree."""

# Operators carry no types, as those of users do not; some are wrong on purpose.
# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs

from __future__ import annotations

import bisect
import heapq
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from conftest import assert_identical, run_engine, run_oracle
from support import witness

import specstream as ss


class Keyed(ss.State):
    counts = ss.dict(int, int, limit=4)
    rates = ss.dict(str, float)
    pairs = ss.dict((int, str), tuple[int, float])
    marks = ss.dict(bool, int)
    seen = ss.set(int, limit=3)
    names = ss.set((str, int))
    n = ss.scalar(int)


class Rows(ss.State):
    queue = ss.list(int, limit=6)
    book = ss.list((float, str))
    last = ss.deque(int, maxlen=3)
    none = ss.deque(int, maxlen=0)
    trail = ss.deque((int, str), limit=5)
    waiting = ss.priority_queue((float, int), limit=6)
    n = ss.scalar(int)


EVENT = {"what": int, "i": int, "x": float, "s": str}
EMITS = {"a": int, "y": ss.nullable(float), "s": ss.nullable(str)}

PATHS: list[dict[str, Any]] = [
    {"horizon": 0},
    {"threads": 2, "horizon": 4, "chunk": 2, "execution": "speculate"},
    {"threads": 2, "horizon": 4, "chunk": 1, "protocol": "eager"},
]


def table_of(cases: int, rounds: int = 12) -> pa.Table:
    """Each case several times, in a mixed order."""
    rng = np.random.default_rng(cases)
    n = cases * rounds
    return pa.table(
        {
            "what": rng.permutation(np.arange(n) % cases),
            "i": rng.integers(0, 6, n),
            "x": rng.integers(-2, 3, n) / 2,
            "s": rng.choice(["a", "b", "", "c"], n),
        }
    )


def dicts(state, event, emit):
    i, key = event.i, (event.i % 3, event.s)
    match event.what:
        case 0:
            state.counts[i] = i * 2
            state.counts[i] += 1
        case 1:
            state.rates[event.s] = state.rates.get(event.s, 0) + event.x
            emit(len(state.rates), state.rates[event.s], event.s)
        case 2:
            state.pairs[key] = (i, event.x)
            state.pairs[key] = state.pairs[key][0] + 1, i
        case 3:
            emit(state.counts.pop(i))
        case 4:
            emit(state.counts.pop(i, -1), state.rates.pop(event.s, 0.25))
            state.marks[i > 2] = state.marks.setdefault(i > 2, i) + 1
        case 5:
            for k, v in state.counts.items():
                if v > 7:
                    break
                emit(k + v)
            for s in state.rates:
                emit(1, None, s)
            for n, x in state.pairs.values():
                emit(n, x)
            for on in state.marks:
                emit(on + 10)
        case 6:
            name, rate = state.rates.popitem()
            emit(0, rate, name)
        case 7:
            del state.pairs[key]
        case 8:
            state.counts.update({i: 1, i + 1: 2})
            state.counts |= {i: 5}
        case 9:
            mine = state.counts.copy()
            mine[i] = 7
            both = state.counts | mine
            emit(len(both) * 100 + (both == mine) * 10 + (state.counts == mine))
            emit(sum(mine.values()), sum(state.rates.values()))
        case 10:
            emit(2 * (i in state.counts) + (event.s not in state.rates) + 4 * bool(state.pairs))
            emit(max(state.counts, default=-1) * 100 + len(list(state.pairs)))
        case 11:
            for k in state.counts:
                state.counts[k + 1] = 0
        case 12:
            for k in state.counts:
                if k == i:
                    del state.counts[k]
        case 13:
            for k in list(state.counts):
                if k > i:
                    del state.counts[k]
            state.n += 1
        case 14:
            if i == 5:
                state.counts.clear()
                state.pairs.clear()
        case 15:
            # What is there is in its place again, in the same order, where this raises.
            state.n += 1
            state.counts.pop(i, 0)
            state.rates.popitem()
            state.counts[i] = 3
            for k in list(state.pairs):
                if k[0] == 1:
                    del state.pairs[k]
            state.pairs[1, "z"] = (1, 1)
            if i > 1:
                state.counts.clear()
                raise ValueError(f"taken back {i}")
        case 16:
            try:
                state.counts[i] = 1
                state.counts[i + 1] = 1
                state.counts[i + 2] = 1
            except OverflowError:
                emit(len(state.counts))
                state.counts.clear()
            try:
                emit(state.counts[i])
            except KeyError:
                state.counts[i] = 9


def sets(state, event, emit):
    i, name = event.i, (event.s, event.i % 2)
    match event.what:
        case 0 | 1:
            state.seen.add(i)
            state.names.add(name)
        case 2:
            state.seen.discard(i)
            state.names.remove(name)
        case 3:
            s, n = state.names.pop()
            emit(n, None, s)
        case 4:
            for s, n in state.names:
                if n > 3:
                    continue
                emit(n, None, s)
        case 5:
            mine = state.seen | {i}
            emit(sum(mine) + 100 * (state.seen <= mine) + 200 * (mine == state.seen))
            emit(
                sum(state.seen & {0, 1, 2})
                + 10 * sum(state.seen - {i})
                + 100 * len({i} ^ state.seen)
            )
        case 6:
            state.seen |= {i}
            state.seen &= {0, 1, 2, 3}
        case 7:
            state.seen -= {i, i + 1}
            state.seen ^= {i}
        case 8:
            state.seen.update([i, i + 1])
        case 9:
            emit(8 * (i in state.seen) + state.seen.isdisjoint([i]) + 2 * state.seen.issubset({1}))
            emit(
                len(
                    state.seen.union(
                        [1],
                    )
                )
                + 10 * len(state.seen.difference([1]))
            )
        case 10:
            for one in state.seen:
                state.seen.add(one + 1)
        case 11:
            for one in state.seen:
                state.seen.remove(one)
                break
            state.n += len(state.seen)
        case 12:
            state.names.clear()
            state.seen.symmetric_difference_update([i])
            if i > 3:
                raise ValueError("taken back")
        case 13:
            state.seen = state.seen
            state.seen.intersection_update([0, 1, 2, i])
            state.names.difference_update([name])


def lists(state, event, emit):
    i, pair = event.i, (event.x, event.s)
    queue = state.queue
    match event.what:
        case 0:
            queue.append(i)
            state.book.append(pair)
        case 1:
            queue.insert(i - 2, i)
            state.book.insert(0, pair)
        case 2:
            queue.extend([i, i + 1])
            state.queue += [7]
        case 3:
            emit(queue.pop())
            emit(queue.pop(0), state.book.pop(-1)[0])
        case 4:
            queue[i] = 9
            queue[-1] += i
        case 5:
            del queue[i % 2]
            del queue[1:3]
        case 6:
            queue[1:2] = [i, i]
            queue[::-1] = queue[:]
        case 7:
            mine = queue[1:]
            mine.append(100)
            emit(sum(mine) + len(queue), None)
            for x, s in state.book[:3]:
                emit(0, x, s)
        case 8:
            queue.sort()
            queue.reverse()
            queue.sort(key=lambda one: one % 3)
            emit(queue[0])
        case 9:
            queue.remove(i)
            emit(queue.index(7))
        case 10:
            emit(queue.count(i) + 10 * (i in queue) + 100 * bool(queue) + 1000 * len(state.book))
            emit(max(queue, default=0) + 100 * (queue == [i]) + 200 * (queue < [2]))
        case 11:
            for at, one in enumerate(queue):
                if one == i:
                    queue.append(at)
                emit(one)
        case 12:
            heapq.heapify(queue)
            heapq.heappush(queue, i)
            emit(heapq.heappushpop(queue, 3) * 10 + heapq.heappop(queue))
            bisect.insort(queue, i)
            emit(bisect.bisect_left(queue, i))
        case 13:
            queue.reverse()
            state.book.clear()
            del queue[::2]
            if i > 2:
                raise ValueError("taken back")
        case 14:
            state.n += queue[i]
            emit(state.n, sum(x for x, _ in state.book))
        case 15:
            try:
                queue += [1, 2, 3, 4, 5]
            except OverflowError:
                emit(len(queue))
                del queue[3:]


def deques(state, event, emit):
    i, pair = event.i, (event.i, event.s)
    last, trail = state.last, state.trail
    match event.what:
        case 0:
            last.append(i)
            trail.append(pair)
        case 1:
            last.appendleft(i)
            trail.appendleft(pair)
            state.none.append(i)
        case 2:
            emit(last.pop() * 10 + trail.popleft()[0])
        case 3:
            last.extend([i, i + 1])
            last.extendleft([7, 8])
            state.last += [i]
        case 4:
            last.rotate(i - 2)
            trail.rotate()
        case 5:
            for one in last:
                emit(one)
            for n, s in trail:
                emit(n, None, s)
        case 6:
            emit(last[0] + 10 * last[-1] + 100 * (i in last) + 1000 * last.maxlen)
            last[i - 3] = 5
        case 7:
            last.reverse()
            last.remove(i)
        case 8:
            for one in last:
                last.append(one)
        case 9:
            trail.popleft()
            trail.clear()
            last.rotate(1)
            if i > 1:
                raise ValueError("taken back")
        case 10:
            emit(last.count(i) + 10 * len(trail) + 100 * (not trail) + len(state.none))
            emit(sum(last) if trail.maxlen is None else 0)
        case 11:
            kept = state.last.copy()
            kept.append(i)
            state.last.appendleft(9)
            kept.extendleft([i + 1, *last])
            emit(kept[0] + 10 * kept[-1] + 100 * len(kept) + 1000 * kept.maxlen)
            again = kept.copy()
            again.clear()
            named = state.trail
            pairs = named.copy()
            pairs.extendleft([pair, (7, "b")])
            emit(len(pairs) + 100 * len(kept) + 1000 * len(again), None, pairs.popleft()[1])


def queues(state, event, emit):
    item = (event.x, event.i)
    match event.what:
        case 0 | 1:
            state.waiting.push(item)
        case 2:
            state.waiting.push(item)
            if event.i > 2:
                state.waiting.clear()
        case 3:
            x, i = state.waiting.pop()
            emit(i, x)
            emit(state.waiting.pop()[1])
        case 4:
            emit(state.waiting.peek()[1], state.waiting.pushpop(item)[0])
        case 5:
            for x, i in state.waiting:
                emit(i, x)
            emit(len(state.waiting) * 10 + bool(state.waiting))
        case 6:
            while state.waiting and state.waiting.peek()[0] < 0:
                emit(state.waiting.pop()[1])
            if event.i == 3:
                raise ValueError("taken back")


EVERY: list[tuple[Callable[..., None], type[ss.State], int, set[str]]] = [
    (dicts, Keyed, 17, {"KeyError", "RuntimeError", "OverflowError", "ValueError"}),
    (sets, Keyed, 14, {"KeyError", "RuntimeError", "OverflowError", "ValueError"}),
    (lists, Rows, 16, {"IndexError", "OverflowError", "ValueError"}),
    (deques, Rows, 12, {"IndexError", "OverflowError", "ValueError", "RuntimeError"}),
    (queues, Rows, 7, {"IndexError", "OverflowError", "ValueError"}),
]
each = pytest.mark.parametrize(
    ("function", "state", "cases", "raises"), EVERY, ids=[one[0].__name__ for one in EVERY]
)


@each
def test_what_they_do_is_what_pythons_do(
    function: Callable[..., None], state: type[ss.State], cases: int, raises: set[str]
) -> None:
    operator = ss.operator(state=state, event=EVENT, emits=EMITS)(function)
    table = table_of(cases)
    assert witness.assert_agrees(operator, table) == table.num_rows
    expected = run_oracle(operator, table)
    assert {kind for _, kind, _ in expected.raised} == raises
    assert expected.output.num_rows > 0


@pytest.mark.slow
@each
def test_engines_do_what_the_oracle_does(
    function: Callable[..., None], state: type[ss.State], cases: int, raises: set[str]
) -> None:
    operator = ss.operator(state=state, event=EVENT, emits=EMITS)(function)
    table = table_of(cases)
    expected = run_oracle(operator, table)
    for path in PATHS:
        assert_identical(run_engine(operator, table, **path), expected)


def wrong(state, event, emit):
    match event.what:
        case 0:
            state.counts[event.i] = event.x
        case 1:
            state.counts[event.s] = 1
        case 2:
            state.marks[event.i] = 1
        case 3:
            state.pairs[event.i, event.s] = (1, 2.0, 3)
        case 4:
            state.counts = {}
        case 5:
            state.seen.add(4)
            state.seen.add(5)
            state.seen.add(6)
            state.seen.add(7)


@pytest.mark.parametrize(
    ("what", "message"),
    [
        (0, r"state.counts is declared int and gets 0.5 \(float\)"),
        (2, r"a key of state.marks is declared bool and gets 3 \(int\)"),
        (3, r"state.pairs is declared tuple\[int, float\] and gets \(1, 2.0, 3\)"),
        (4, "'counts' of state 'Keyed' is a dict and cannot be replaced"),
        (
            5,
            "state.seen is full: it holds limit=3 entries: declare a larger limit=, or remove some",
        ),
    ],
)
def test_the_sequential_run_says_what_a_container_does_not_hold(what: int, message: str) -> None:
    operator = ss.operator(state=Keyed, event=EVENT, emits=EMITS)(wrong)
    table = {"what": [what], "i": [3], "x": [0.5], "s": ["a"]}
    with pytest.raises((TypeError, OverflowError, AttributeError), match=message):
        operator.run_sequential(table)
