"""The texts of what Python's own operations raise: of lists, dicts, sets, deques, arrays, numbers,
``math``, unpacking and conversions, in every way in which a handler may ask for them.

PYTEST_DONT_REWRITE: the assertions of operators are their own.
"""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from support import witness

import specstream as ss


class S(ss.State):
    n = ss.scalar(int)
    x = ss.scalar(float)
    a = ss.array(int, 4)
    grid = ss.array(float, (2, 3))
    numbers = ss.list(int)
    q = ss.deque(int)
    d = ss.dict(int, int)
    pairs = ss.dict((int, str), int)
    names = ss.dict(str, float)
    s = ss.set(int)
    words = ss.set(str)


def of_state_lists(state, event, emit):
    k, y = event.k, event.y
    try:
        if k == 0:
            state.n += state.numbers[7]
        elif k == 1:
            state.numbers[7] = 1
        elif k == 2:
            del state.numbers[7]
        elif k == 3:
            state.numbers.remove(9)
        elif k == 4:
            state.n += state.numbers.index(9)
        elif k == 5:
            state.n += state.numbers.pop()
        elif k == 6:
            state.numbers.append(1)
            state.n += state.numbers.pop(5)
        elif k == 7:
            state.n += min(state.q)
        elif k == 8:
            state.n += state.q[3]
        elif k == 9:
            state.q[3] = 1
        elif k == 10:
            state.n += state.q.pop()
        elif k == 11:
            state.n += state.q.popleft()
        elif k == 12:
            state.q.remove(4)
        elif k == 13:
            state.n += state.q.index(4)
        elif k == 14:
            del state.q[3]
        elif k == 15:
            state.numbers.extend([1, 2, 3])
            first, second = state.numbers
            state.n += first + second
        elif k == 16:
            first, second, third, fourth, fifth, sixth = state.numbers
            state.n += first + second + third + fourth + fifth + sixth
    except Exception as error:
        emit(str(error), repr(error), type(error).__name__, f"<{error}> {y}")


def of_state_tables(state, event, emit):
    k, w = event.k, event.w
    try:
        if k == 0:
            state.n += state.d[k]
        elif k == 1:
            del state.d[k]
        elif k == 2:
            state.n += state.d.pop(k)
        elif k == 3:
            state.n += state.pairs[k, w]
        elif k == 4:
            del state.pairs[k, w]
        elif k == 5:
            state.n += state.pairs.pop((k, w))
        elif k == 6:
            state.x += state.names[w]
        elif k == 7:
            del state.names[w]
        elif k == 8:
            state.s.remove(k)
        elif k == 9:
            state.words.remove(w)
        elif k == 10:
            state.n += state.s.pop()
        elif k == 11:
            key, value = state.d.popitem()
            state.n += key + value
        elif k == 12:
            state.n += max(state.d)
        elif k == 13:
            state.d[1] = 1
            for key in state.d:
                state.d[key + 5] = 1
    except Exception as error:
        emit(str(error), repr(error), type(error).__name__, f"<{error}> {k}")


def of_local_containers(state, event, emit):
    k, w = event.k, event.w
    numbers = [3, k]
    table = {k: 2}
    pairs = {(k, w): 1}
    words = {w}
    try:
        if k == 0:
            state.n += numbers[7]
        elif k == 1:
            numbers[7] = 1
        elif k == 2:
            del numbers[7]
        elif k == 3:
            numbers.remove(9)
        elif k == 4:
            state.n += numbers.index(9)
        elif k == 5:
            state.n += numbers.pop(6)
        elif k == 6:
            numbers.clear()
            state.n += numbers.pop()
        elif k == 7:
            state.n += table[99]
        elif k == 8:
            del table[99]
        elif k == 9:
            state.n += table.pop(99)
        elif k == 10:
            state.n += pairs[1, w]
        elif k == 11:
            words.remove("other")
        elif k == 12:
            first, second, third = numbers
            state.n += first + second + third
        elif k == 13:
            first, second = [*numbers, 5]
            state.n += first + second
        elif k == 14:
            numbers.clear()
            state.n += max(numbers)
        elif k == 15:
            numbers[::2] = [1, 2, 3]
        elif k == 16:
            for key in table:
                table[key + 1] = 2
        elif k == 17:
            first, *others, last = numbers[:1]
            state.n += first + last + len(others)
        elif k == 18:
            for at in range(0, 5, k - 18):
                state.n += at
        elif k == 19:
            state.n += numbers[:: k - 19][0]
        elif k == 20:
            names = ["a", w]
            state.n += names.index("other")
        elif k == 21:
            state.n += heapq.heappop([one for one in numbers if one > 99])
    except Exception as error:
        emit(str(error), repr(error), type(error).__name__, f"<{error}> {k}")


def of_numbers(state, event, emit):
    k, y = event.k, event.y
    state.n += k
    zero, one = state.n - k, state.n - k + 1
    state.n -= k
    try:
        if k == 0:
            state.n += one // zero
        elif k == 1:
            state.n += one % zero
        elif k == 2:
            state.x += one / zero
        elif k == 3:
            state.n += divmod(one, zero)[0]
        elif k == 4:
            state.x += y // (zero * 1.0)
        elif k == 5:
            state.x += y % (zero * 1.0)
        elif k == 6:
            state.x += divmod(y, zero * 1.0)[1]
        elif k == 7:
            state.n += one << -one
        elif k == 8:
            state.n += one >> -one
        elif k == 9:
            state.n += int(y * math.inf)
        elif k == 10:
            state.n += int(y * math.nan)
        elif k == 11:
            state.x += (zero * 1.0) ** -1
        elif k == 12:
            state.x += (y * 1e300) ** (one + 1.0)
        elif k == 13:
            state.n += pow(one, one, zero)
        elif k == 14:
            state.n += round(y * math.nan)
        elif k == 15:
            state.n += round(y * math.inf)
        elif k == 16:
            state.x += 0.0 ** (zero - 1.5)
    except Exception as error:
        emit(str(error), repr(error), type(error).__name__, f"<{error}> {k}")


def of_math(state, event, emit):
    k = event.k
    state.x += event.y
    y = state.x
    state.x -= event.y
    try:
        if k == 0:
            state.x += math.sqrt(-y)
        elif k == 1:
            state.x += math.log(y - y)
        elif k == 2:
            state.x += math.exp(y * 1e6)
        elif k == 3:
            state.x += math.acos(y + 5)
        elif k == 4:
            state.x += math.fmod(y, y - y)
        elif k == 5:
            state.x += math.pow(y - y, -1.0)
        elif k == 6:
            state.n += math.floor(y * math.inf)
        elif k == 7:
            state.n += math.ceil(y * math.nan)
        elif k == 8:
            state.n += math.isqrt(k - 9)
        elif k == 9:
            state.n += math.factorial(k - 10)
        elif k == 10:
            state.n += math.comb(k - 11, 2)
        elif k == 11:
            state.x += math.ldexp(y, 100000)
        elif k == 12:
            state.x += math.cosh(y * 1e6)
        elif k == 13:
            state.x += math.log2(-y)
        elif k == 14:
            state.x += math.sin(y * math.inf)
        elif k == 15:
            state.x += math.gamma(y - y)
        elif k == 16:
            state.x += math.log10(-y)
        elif k == 17:
            state.x += math.log1p(-y - 5)
        elif k == 18:
            state.n += math.trunc(y * math.inf)
        elif k == 19:
            state.n += math.perm(k, k - 20)
        elif k == 20:
            state.x += math.remainder(y, y - y)
        elif k == 21:
            state.x += math.atanh(y + 5)
    except Exception as error:
        emit(str(error), repr(error), type(error).__name__, f"<{error}> {k}")


FEES = {"card": 1}
CODES = [1, 2, 3]


def of_arrays_and_constants(state, event, emit):
    k, w = event.k, event.w
    try:
        if k == 0:
            state.n += state.a[k + 4]
        elif k == 1:
            state.a[-5] = 1
        elif k == 2:
            state.x += state.grid[1, 3]
        elif k == 3:
            state.x += state.grid[2][0]
        elif k == 4:
            state.a[: k - 2] = [1, 2, 3]
        elif k == 5:
            state.n += FEES[w]
        elif k == 6:
            state.n += CODES[k]
        elif k == 7:
            state.n += CODES.index(k)
        elif k == 8:
            state.a[:2] = state.a[:3]
        elif k == 9:
            state.n += int(state.a[:0].max())
        elif k == 10:
            state.n += int(state.a[:0].argmin())
    except Exception as error:
        emit(str(error), repr(error), type(error).__name__, f"<{error}> {k}")


EMITS = {"said": str, "shown": str, "of": str, "put": str}
TABLE = pa.table(
    {
        "k": [k for k in range(22) for _ in range(2)],
        "y": [1.5] * 44,
        "w": ["it's", "b"] * 22,
    }
)
OPERATIONS = [
    of_state_lists,
    of_state_tables,
    of_local_containers,
    of_numbers,
    of_math,
    of_arrays_and_constants,
]


def declared(function: Callable[..., None]) -> ss.Operator:
    event = {"k": int, "y": float, "w": str}
    return ss.operator(state=S, event=event, emits=EMITS)(function)


@pytest.mark.parametrize("function", OPERATIONS)
def test_it_is_pythons(function: Callable[..., None]) -> None:
    operator = declared(function)
    assert witness.assert_agrees(operator, TABLE) == TABLE.num_rows
    assert len(set(operator.run_sequential(TABLE).output["said"].to_pylist())) > 3
    settings = ss.testing.settings()
    ss.testing.check(operator, TABLE, settings=[settings[at] for at in (0, 4)])


class Wrapped(Exception):
    pass


class Timed(S):
    due = ss.timers(int)


def part(k):
    try:
        return 10 // (k % 2)
    except ZeroDivisionError as error:
        raise Wrapped(f"wrapped: {error}") from error


def again(k, w):
    try:
        return part(k)
    except Wrapped as error:
        raise Wrapped(f"{w} {error}", k, [k], (k, w)) from None


def asks(state, event, emit):
    state.n += 1
    state.d[event.k] = state.n
    state.q.append(event.k)
    if event.k % 3 == 0:
        state.due.set(event.k, event.timestamp + 3)
    try:
        state.n += again(event.k, event.w)
    except Wrapped as error:
        emit(str(error), repr(error), type(error).__name__, f"<{error}> {state.n} {error.args}")
    try:
        state.s.remove(event.k - 1)
    except KeyError as error:
        state.s.add(event.k)
        try:
            state.n += state.numbers.index(event.k)
        except ValueError as other:
            emit(f"{error} {other}", f"{state.d[event.k]}", f"{len(state.q)}", f"{other!r}")


def asks_later(state, timer, emit):
    state.n += 1
    try:
        state.numbers.remove(state.n)
    except ValueError as error:
        emit(str(error), f"{timer.key} {error}", type(error).__name__, f"{state.n}")


def test_an_event_that_asks_runs_once_in_every_setting() -> None:
    event: dict[str, Any] = {"k": int, "y": float, "w": str}
    operator = ss.operator(state=Timed, event=event, emits=EMITS, on_timer=asks_later)(asks)
    table = TABLE.append_column("time", pa.array(range(TABLE.num_rows)))
    table = table.append_column("from", pa.array([0] * TABLE.num_rows))
    ss.testing.check(operator, table, order_by="time", source="from")
    witness.assert_agrees_in_time(operator, table, 0, False, "time", "from")
