"""Lists, deques and priority queues of the state: what Python makes of them, on every path.

What Python makes of them is asked of Python: the operators' own functions run on its lists, its
deques and its heapq.
"""

# Operators carry no types, as those of users do not; some are wrong on purpose.
# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs

from __future__ import annotations

import bisect
import collections
import heapq
import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from conftest import assert_identical, run_engine, run_oracle

import specstream as ss

PATHS: dict[str, dict[str, Any]] = {
    "plain": {"horizon": 0},
    "value": {"horizon": 6, "chunk": 2, "threads": 2},
    "value, forced": {"horizon": 4, "chunk": 1, "threads": 2, "execution": "speculate"},
    "eager": {"horizon": 6, "chunk": 2, "threads": 2, "protocol": "eager"},
    "eager, shared records": {
        "horizon": 4,
        "chunk": 1,
        "threads": 2,
        "protocol": "eager",
        "record_shift": 3,
        "execution": "speculate",
    },
}
LOG_FREE = {"log-free": {"execution": "log_free"}}
FORCED = {name: PATHS[name] for name in ("plain", "value, forced")}
EAGER = {name: PATHS[name] for name in ("plain", "eager, shared records")}


class Heap(list[Any]):
    """A priority queue, as heapq has it."""

    def push(self, value):
        heapq.heappush(self, value)

    def pop(self):
        return heapq.heappop(self)

    def peek(self):
        return self[0]

    def pushpop(self, value):
        return heapq.heappushpop(self, value)

    def replace(self, value):
        return heapq.heapreplace(self, value)


def plain_state(operator: ss.Operator) -> Any:
    """Python's own containers for the fields of a state."""
    made = SimpleNamespace()
    for field in operator.layout.fields:
        container = field.container
        if container is None:
            setattr(made, field.name, 0)
        elif container.kind == "deque":
            setattr(made, field.name, collections.deque(maxlen=container.maxlen))
        else:
            setattr(made, field.name, [] if container.kind == "list" else Heap())
    return made


def by_python(operator: ss.Operator, function: Callable[..., None], table: pa.Table) -> list[Any]:
    """The rows that a function emits under plain Python."""
    rows: list[Any] = []
    state = plain_state(operator)
    kinds = [float if of == "float" else lambda one: one for _, of in operator.emits.describe()]

    def emit(*values):
        rows.append(tuple(kind(one) for kind, one in zip(kinds, values, strict=True)))

    for event in table.to_pylist():
        function(state, SimpleNamespace(**event), emit)
    return rows


def by_oracle(operator: ss.Operator, table: pa.Table) -> list[Any]:
    columns = operator.run_sequential(table).output.columns
    return list(zip(*(column.to_pylist() for column in columns), strict=True))


def by_engine(operator: ss.Operator, table: pa.Table, **options: Any) -> list[Any]:
    with ss.Engine(operator, **options) as engine:
        output = engine.process(table)
    return list(zip(*(column.to_pylist() for column in output.columns), strict=True))


def shown(rows: list[Any]) -> list[str]:
    """Rows that are compared in every bit: 0.0 is not -0.0, and a NaN equals itself."""
    return [repr(tuple(row)) for row in rows]


def assert_as_python(
    state: type[ss.State],
    function: Callable[..., None],
    event: dict[str, Any],
    emits: dict[str, Any],
    table: pa.Table,
    paths: dict[str, dict[str, Any]] = PATHS,
) -> list[Any]:
    operator = ss.operator(state=state, event=event, emits=emits)(function)
    expected = by_python(operator, function, table)
    assert shown(by_oracle(operator, table)) == shown(expected), "oracle"
    for name, options in paths.items():
        found = by_engine(operator, table, **options)
        assert shown(found) == shown(expected), name
    return expected


def steps(count: int, kinds: int, seed: int = 1) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "step": rng.integers(0, kinds, count),
            "a": rng.integers(-6, 7, count),
            "b": rng.integers(-6, 7, count),
            "x": np.round(rng.normal(size=count) * 4) / 2,
            "name": rng.choice(["one", "two", ""], count),
        }
    )


EVENT = {"step": int, "a": int, "b": int, "x": float, "name": str}


def below(one):
    return one % 3


class Lists(ss.State):
    before = ss.scalar(int)
    xs = ss.list(int, limit=64)
    behind = ss.scalar(int)


def one_list(state, event, emit):
    """One step on a list of ints, and all that it holds then."""
    a, b, step = event.a, event.b, event.step
    xs = state.xs
    state.before += 1
    found = 0
    try:
        if step < 5:
            xs.append(a)
        elif step == 5:
            found = xs.pop()
        elif step == 6:
            found = xs.pop(a)
        elif step == 7:
            xs.insert(a, b)
        elif step == 8:
            xs.remove(a)
        elif step == 9:
            found = xs.index(a)
        elif step == 10:
            found = xs.index(a, b)
        elif step == 11:
            found = xs.index(a, 1, b)
        elif step == 12:
            found = xs.count(a)
        elif step == 13:
            xs.reverse()
        elif step == 14:
            xs.sort()
        elif step == 15:
            xs.sort(key=lambda one: (below(one), -one), reverse=True)
        elif step == 16:
            xs[a] = b
        elif step == 17:
            xs[a] += b
        elif step == 18:
            found = xs[a]
        elif step == 19:
            del xs[a]
        elif step == 20:
            del xs[a:b]
        elif step == 21:
            del xs[a:b:-2]
        elif step == 22:
            xs[a:b] = [7, 8]
        elif step == 23:
            xs[::2] = [b] * len(xs[::2])
        elif step == 24:
            xs[a:b:2] = [1, 2]
        elif step == 25:
            state.xs += [a, b]
        elif step == 26:
            xs.extend(range(3))
        elif step == 27:
            xs.extend(xs)
        elif step == 28:
            xs.extend((b, a))
        elif step == 29:
            for one in xs:
                found = found * 31 + one
                if one > 3:
                    xs.pop()
        elif step == 30:
            for one in reversed(xs):
                found = found * 31 + one
                if one > 3:
                    xs.pop(0)
        elif step == 31:
            for i, one in enumerate(state.xs):
                found += i * one
        elif step == 32:
            for one, two in zip(xs, xs[2:], strict=False):
                found = found * 7 + one - two
        elif step == 33:
            found = sum(xs) + sum(one for one in xs if one > 0)
        elif step == 34:
            found = max(xs) - min(xs)
        elif step == 35:
            found = len(xs) + (100 if a in xs else 0) + (1000 if b not in xs else 0)
        elif step == 36:
            found = sum(xs[a:b]) + len(xs[b::-1])
        elif step == 37:
            made = [one * 2 for one in xs] + list(xs) + sorted(xs, reverse=True)
            found = sum(i * one for i, one in enumerate(made))
        elif step == 38:
            ys = xs.copy()
            ys.append(b)
            ys = xs + ys
            ys = ys + xs
            ys = xs * 2
            found = len(ys) + ys.count(b)
        elif step == 39:
            found = (xs == [1, 2]) + 2 * (xs == list(xs)) + 4 * (xs < [b]) + 8 * ([a] != xs)
            found += 16 * (xs >= xs) + 32 * (xs == state.xs)
        elif step == 40:
            found = any(one > 3 for one in xs) + 2 * all(xs) + 4 * (not xs) + 8 * len(set(xs))
        elif step == 41:
            if xs:
                first, *rest = xs
                found = first + len(rest)
        elif step == 42:
            heapq.heapify(xs)
            heapq.heappush(xs, a)
            found = heapq.heappop(xs) + heapq.heappushpop(xs, b)
        elif step == 43:
            xs.sort()
            found = bisect.bisect_left(xs, a) * 10 + bisect.bisect_right(xs, b)
            bisect.insort(xs, a)
        elif step == 44:
            xs[a], xs[b] = xs[b], xs[a]
        elif step == 45:
            xs[a:b] = xs
        elif step == 46:
            xs[1:1] = (a,)
        elif step == 47:
            xs.clear()
    except IndexError:
        found = -1
    except ValueError:
        found = -2
    except OverflowError:
        found = -3
    if len(xs) > 9:
        del xs[5:]
    state.behind += 1
    emit(step, found)
    for one in state.xs:
        emit(-1, one)
    emit(state.before, state.behind)


# It takes half a minute to compile, and what is quick has the most of it.
@pytest.mark.slow
@pytest.mark.long
def test_a_list_is_pythons() -> None:
    table = steps(1500, 48)
    assert_as_python(Lists, one_list, EVENT, {"what": int, "found": int}, table)


class Deques(ss.State):
    q = ss.deque(int)
    last = ss.deque((str, float), maxlen=3)
    none = ss.deque(int, maxlen=0)


def deques(state, event, emit):
    """One step on a deque of ints, and one on one that drops what is at the other end."""
    a, b, step = event.a, event.b, event.step
    q, last = state.q, state.last
    found = 0
    try:
        if step < 3:
            q.append(a)
        elif step < 6:
            q.appendleft(a)
        elif step == 6:
            found = q.pop()
        elif step == 7:
            found = q.popleft()
        elif step == 8:
            q.rotate(a)
        elif step == 9:
            q.rotate()
        elif step == 10:
            q.extend([a, b])
        elif step == 11:
            q.extendleft(range(3))
        elif step == 12:
            q.remove(a)
        elif step == 13:
            q.reverse()
        elif step == 14:
            q[a] = b
        elif step == 15:
            q[a] -= b
        elif step == 16:
            found = q[a] + q.count(b)
        elif step == 17:
            del q[a]
        elif step == 18:
            q.insert(a, b)
        elif step == 19:
            found = q.index(a) * 100 + q.index(b, 1)
        elif step == 20:
            state.q += q
        elif step == 21:
            found = (a in q) + 2 * (b not in q) + 4 * (q == q) + 8 * (not q) + sum(q)
        elif step == 22:
            found = max(q) - min(q) + sum(i * one for i, one in enumerate(reversed(q)))
        elif step == 23:
            q.clear()
        elif step == 24:
            found = sum(sorted(q)[:2]) + len(set(q))
        elif step == 25:
            for one in q:
                found = found * 31 + one
                if one > 2:
                    q[0] = b
        elif step == 26:
            for one in q:
                found = found * 31 + one
                if one > 2:
                    q.append(q.pop())
        elif step == 27:
            for one in reversed(q):
                found = found * 31 + one
                if one > 2:
                    q.popleft()
        elif step == 28:
            for one in q:
                if one == a:
                    q.clear()
        elif step == 29:
            for one in q:
                found += one
                q.rotate(len(q))
        elif step == 30:
            for _ in last:
                last.append(("iterated", 0.5))
        elif step == 31:
            for _ in state.none:
                found += 1
            state.none.append(a)
            state.none.appendleft(a)
            state.none.extend([a, b])
            found = len(state.none) + state.none.maxlen
        elif step == 32:
            q.extendleft(q)
    except IndexError:
        found = -1
    except ValueError:
        found = -2
    except RuntimeError:
        found = -3
    if len(q) > 9:
        for _ in range(5):
            q.popleft()
    if event.b > 2:
        last.append((event.name, event.x))
    elif event.b < -2:
        last.appendleft((event.name, -event.x))
    elif last and event.b == 0:
        last[-1] = last[0]
    elif event.b == 1:
        last.rotate(1)
        try:
            last.insert(1, ("between", 1))
        except IndexError:
            found -= 1000
    emit(step, found, len(q), 0.0)
    for one in q:
        emit(-1, one, 0, 0.0)
    for name, x in last:
        emit(-2, 10 if name == "one" else 20 if name == "between" else 30, last.maxlen, x)


@pytest.mark.slow  # likewise
def test_a_deque_is_pythons() -> None:
    emits = {"what": int, "found": int, "length": int, "x": float}
    assert_as_python(Deques, deques, EVENT, emits, steps(1200, 33, 2))


class Queues(ss.State):
    waiting = ss.priority_queue((float, int))
    numbers = ss.priority_queue(int)


def queues(state, event, emit):
    """One step on each queue; and the order in which their items lie."""
    waiting, numbers, step = state.waiting, state.numbers, event.step
    first = (math.nan, 0)
    second = 0
    try:
        if step < 4:
            waiting.push((event.x, event.a))
            numbers.push(event.a)
        elif step == 4:
            first = waiting.pop()
            second = numbers.pop()
        elif step == 5:
            first = waiting.peek()
            second = numbers.peek()
        elif step == 6:
            first = waiting.pushpop((event.x, event.b))
            second = numbers.pushpop(event.b)
        elif step == 7:
            first = waiting.replace((event.x, event.b))
            second = numbers.replace(event.b)
        elif step == 8:
            second = len(waiting) + (100 if numbers else 0) + sum(numbers)
        elif step == 9 and event.a == 0:
            waiting.clear()
            numbers.clear()
        elif step == 10:
            waiting.push((math.inf - math.inf, event.a))  # a NaN that is no other one
    except IndexError:
        second = -1000
    emit(first[0], first[1], second)
    for x, n in waiting:
        emit(x, n, 0)
    for n in state.numbers:
        emit(0.0, n, 1)


def test_a_priority_queue_is_heapq() -> None:
    emits = {"x": float, "n": int, "found": int}
    assert_as_python(Queues, queues, EVENT, emits, steps(900, 11, 3), FORCED)


class Kinds(ss.State):
    names = ss.list(str)
    on = ss.list(bool)
    x = ss.list(float)
    rows = ss.list((str, int, float, bool))
    heap = ss.list((float, int))


def newest(rows, count):
    """What is given to a function is the same list there."""
    rows.append(("new", count, 0.5, True))
    return rows[-1][1] + len(rows)


def kinds(state, event, emit):
    names, rows = state.names, state.rows
    names.append(event.name)
    if len(names) > 3 and "two" in names and names[-1] == "one":
        names.remove("two")
    state.on.append(event.a > 0)
    state.x.append(event.a)  # an int, that is kept as a float
    state.x.append(-0.0 if event.b > 3 else event.x)
    total = 0
    for one in state.x:
        total += one
    best = state.x[0] if state.x else 0
    rows.append((event.name, event.a, event.b, event.on > 2))
    if event.a > 4:
        rows[0] = ("", 1, 2.5, False)
        rows.insert(1, rows[-1])
    name, count, x, on = rows[-1]
    found = newest(rows, count) + sum(1 for _, _, _, up in rows if up)
    if ("one", event.a, x, on) in rows:
        found += rows.index((name, count, x, on))
    rows.sort(key=lambda row: (row[1], row[2], row[3]))
    heapq.heappush(state.heap, (event.x, event.a))
    if len(state.heap) > 5:
        least, which = heapq.heappop(state.heap)
        found += which
        best = max(best, least)
    if len(rows) > 12:
        del rows[::2]
        del state.x[:-3], names[1:-1], state.on[1:]
    emit(found + count, total + best + sum(state.x), any(state.on), names[len(names) // 2])
    for name, count, x, on in rows:
        emit(count, x, on, name)


def test_elements_are_of_every_kind() -> None:
    table = steps(300, 5, 4).append_column("on", pa.array(np.arange(300) % 5))
    emits = {"n": int, "x": float, "on": bool, "name": str}
    assert_as_python(Kinds, kinds, EVENT | {"on": int}, emits, table, FORCED)


def pushed(values, *, value=7):
    values.append(value)
    return values


def ends(values):
    first, *_, last = values
    return first, last


def names(state, event, emit):
    """What a name of a sequence stands for, and what is done where it is taken apart."""
    xs = state.xs if event.a > 0 else pushed(state.xs)
    again = xs
    pushed(again, value=event.b).append(event.a)

    def add(n):
        again.append(n)
        return len(xs)

    found = add(event.step)
    try:
        a, b, c = state.xs
        found += 100 * a + 10 * b + c
    except ValueError:
        found = -found
    try:
        first, last = ends(xs)
        found += first - last
    except ValueError:
        found = 0
    state.xs += [i for i in range(2) if i not in again]
    low, high = min(xs), max(x for x in xs)
    copied = [3]
    copied += xs
    found += len(copied) + int(math.fsum(xs))
    if len(xs) < 4:
        xs *= 2
    if (len(xs) > 6 and xs[0] < xs[-1]) or not state.xs:
        del again[3:], xs[0]
    xs[0], xs[-1] = xs[-1], xs[0] = 3, 4
    xs[len(xs) :] = [low]
    xs[:] = [x for x in xs if x != high][:5] if found % 3 else list(xs)
    while len(xs) > 8:
        xs.pop()
    emit(found, low, high)
    for i in range(len(xs)):
        emit(i, xs[i], *ends([*xs, 1])[:1])


class Named(ss.State):
    xs = ss.list(int)


def test_names_of_sequences_are_the_sequences() -> None:
    emits = {"found": int, "low": int, "high": int}
    assert_as_python(Named, names, EVENT, emits, steps(200, 5, 6), EAGER)


class Small(ss.State):
    xs = ss.list(int, limit=3)
    q = ss.deque(int, limit=3)
    h = ss.priority_queue(int, limit=3)


def filling(state, event, emit):
    done = 0
    try:
        if event.step == 0:
            state.xs.append(event.a)
        elif event.step == 1:
            state.xs.insert(0, event.a)
        elif event.step == 2:
            state.xs[1:1] = [1, 2]
        elif event.step == 3:
            state.xs.extend([1, 2])
        elif event.step == 4:
            state.q.append(event.a)
        elif event.step == 5:
            state.q.appendleft(event.a)
        elif event.step == 6:
            state.h.push(event.a)
        elif event.step == 7:
            state.xs.clear()
            state.q.clear()
            state.h.clear()
        done = 1
    except OverflowError:
        done = -1
    emit(done, len(state.xs), len(state.q), len(state.h))


def test_what_is_full_raises_and_stays_full() -> None:
    operator = ss.operator(
        state=Small, event=EVENT, emits={"done": int, "xs": int, "q": int, "h": int}
    )(filling)
    table = steps(300, 8, 5)
    expected = by_oracle(operator, table)
    assert {done for done, *_ in expected} == {1, -1}
    assert {max(lengths) for lengths in zip(*(row[1:] for row in expected), strict=True)} == {3}
    for name, options in (PATHS | LOG_FREE).items():
        assert by_engine(operator, table, **options) == expected, name


def raising(state, event, emit):
    """What gets out changes nothing, and says what was wrong."""
    if event.step > 7:
        state.xs.append(event.a)
        state.q.append(event.a)
        state.h.push(event.a)
    match event.step:
        case 0:
            state.xs.pop(5)
        case 1:
            state.xs[7] = 1
        case 2:
            state.q.clear()
            state.q.popleft()
        case 3:
            for one in state.h:
                state.h.push(one)
        case 4:
            for one in state.q:
                state.q.rotate(one)
                state.q.appendleft(one)
        case 5:
            state.xs.remove(77)
        case 6:
            state.xs.clear()
            state.h.clear()
            state.h.peek()
        case 7:
            state.xs.clear()
            state.q.clear()
            state.h.clear()
    emit(len(state.xs), len(state.q))


def test_what_is_raised_says_what_python_says_and_changes_nothing() -> None:
    operator = ss.operator(state=Small, event=EVENT, emits={"xs": int, "q": int})(raising)
    table = steps(120, 11, 7)
    expected = run_oracle(operator, table)
    said = {text for _, _, text in expected.raised}
    for text in (
        *("pop index out of range", "assignment index out of range", "pop from an empty deque"),
        *("state.h is full: it holds limit=3 entries", "state.xs is full: it holds limit=3"),
        *("deque mutated during iteration", "the priority queue is empty"),
    ):
        assert any(text in one for one in said), text
    for options in (PATHS["plain"], PATHS["value, forced"]):
        assert_identical(run_engine(operator, table, **options), expected)
