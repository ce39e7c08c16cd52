"""Lists, dicts and tuples as people write them, with the standard library: on every path."""

# What people write, and a linter would have them write otherwise.
# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
# mypy: disable-error-code="var-annotated, annotation-unchecked"
# ruff: noqa: C408
# ruff: noqa: PIE804

from __future__ import annotations

import bisect
import collections
import functools
import heapq
import itertools
import pickle
import runpy
import sys
import types
from bisect import insort
from collections import Counter, defaultdict, deque
from collections.abc import Callable
from itertools import chain, combinations, pairwise, product
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from conftest import assert_identical, run_engine, run_oracle
from support import witness

import specstream as ss

PATHS: list[dict[str, Any]] = [
    {"horizon": 0},
    {"threads": 2, "horizon": 4, "chunk": 2, "execution": "speculate"},
    {"threads": 2, "horizon": 4, "chunk": 2, "execution": "speculate", "protocol": "eager"},
    {"threads": 2, "horizon": 4, "chunk": 2, "execution": "speculate", "profile": True},
]
EDGES = [0.0, 0.5, 1.0, 2.0, 4.0]
FEES = {"card": 0.3, "transfer": 0.1}
EVENT = {"i": int, "x": float, "on": bool, "s": str}
EMITS = {"k": int, "v": float}


class State(ss.State):
    n = ss.scalar(int)
    a = ss.array(int, 6, fill=2)
    f = ss.array(float, 5, fill=0.5)
    m = ss.array(int, (3, 4), fill=7)
    b = ss.array(np.int8, 4)
    total = ss.dict(str, int)


TABLE = pa.table(
    {
        "i": [0, 1, 2, 3, 4, 5, 6, -1, 7, 2, 3, 300],
        "x": [0.5, -1.5, 2.0, 0.0, -0.0, 3.5, 1e300, 0.1, 7.0, -2.5, 4.0, 1.0],
        "on": [True, False, False, True, True, False, True, False, True, True, False, False],
        "s": ["a", "b", "", "card", "sell", "a", "b", "buy", "card", "one", "two", "c"],
    }
)


def made(function: Callable[..., None]) -> ss.Operator:
    operator: ss.Operator = ss.operator(state=State, event=EVENT, emits=EMITS)(function)
    return operator


def agree(function: Callable[..., None], raises: int = 0) -> ss.Operator:
    """Engine, oracle and Python see the same, as the head and on one other path, which the name
    chooses; so many of the events raise."""
    operator = made(function)
    assert witness.assert_agrees(operator, TABLE) == TABLE.num_rows
    expected = run_oracle(operator, TABLE)
    assert len(expected.raised) == raises
    caller = sys._getframe(1).f_code.co_name
    for path in (PATHS[0], PATHS[1 + len(caller) % 3]):
        assert_identical(run_engine(operator, TABLE, **path), expected)
    return operator


def half(value):
    return value / 2


def weigh(value, by=2, *, plus=0):
    return value * by + plus


def pair_of(value):
    return value, value * 0.5


def test_numbers_of_nothing_are_zero() -> None:
    def process(state, event, emit):
        total, share, is_found = int(), float(), bool()  # noqa: UP018
        for x in range(event.i % 4):
            total += x
            share += 0.5
            is_found = x > 1
        emit(total + int(is_found) + len([bool(), True]), share)  # noqa: UP018

    agree(process)


def test_displays_with_stars() -> None:
    def process(state, event, emit):
        xs = [event.i, 2]
        ys = [*xs, 7, *range(event.i % 3), *state.a]
        a = (*pair_of(event.i), 3)
        s = {*xs, 9, *(1, 2)}
        d = {"a": 1.0, event.s: 2.0}
        e = {**d, "k": 3.0, **FEES, "a": event.x}
        state.f[:] = sorted([*state.f, event.x], reverse=True)[:5]
        emit(len(ys) + len(s) + len(e), a[1] + a[2] + e["a"] + sum(e.values()))
        emit(sum(ys), float(sum(s)))

    agree(process)


def grown(seen):
    seen.append(1)
    return [len(seen)]


def test_parts_of_a_display_are_evaluated_in_order() -> None:
    def process(state, event, emit):
        seen = [1]
        xs = [*grown(seen), 5, *grown(seen)]
        emit(xs[0] * 10 + xs[-1], 0.0)

    agree(process)


def test_rows_of_lists_and_tuples() -> None:
    def process(state, event, emit):
        state.f[1:4] = [event.x, 1.0, 2.0]
        state.f[:2] = (1, event.x)
        state.f[3:] = [event.i]  # one for all
        state.m[event.i % 3] = [1, 2, 3, event.i]
        state.m[:, 1:3] = (event.i, 8)
        state.m[::2, 0] = [event.i, 4]
        emit(sum(sum(row) for row in state.m), sum(state.f))
        state.n += 1
        state.f[:] = [event.x] * (event.i % 7)  # of another length, it raises

    agree(process, raises=10)


def test_items_before_one_that_does_not_fit_are_stored() -> None:
    def process(state, event, emit):
        try:
            state.b[1:] = [event.i % 100, event.i, 3]
        except OverflowError:
            state.n += 1
        try:
            state.b[:] = sorted([1] * (event.i % 5))
        except ValueError:
            state.n += 10
        emit(state.n, float(sum(state.b)))

    agree(process)


def test_stars_take_lists_and_arrays_apart() -> None:
    def process(state, event, emit):
        low, *mid, high = sorted([*state.f, event.x])
        first, *rest = state.a
        *_, last = [event.i, 5, 6]
        mid.append(low)
        (a, *others), b = [event.i, 2, 3], 4
        total = 0
        for head, *tail in [(1, 2, 3), (event.i, 5, 6)]:
            total += head * len(tail)
        emit(first + sum(rest) + last + a + len(others) + b + total, high - low + sum(mid))
        one, *more, two = [event.i] * (event.i % 4)
        emit(one + two + len(more), 0.0)

    agree(process, raises=5)


def test_stars_in_calls() -> None:
    def process(state, event, emit):
        pair = (event.i, event.x)
        args = (event.i, 3)
        row = {"k": event.i, "v": event.x * 2}
        row["k"] += 1
        opts = dict(by=5, plus=state.n)
        emit(*pair)
        emit(*pair_of(event.i))
        emit(weigh(*args), float(weigh(*[event.i, 4], plus=1)))
        emit(weigh(event.i, **opts), max(*(event.x, 1.0)))
        emit(**row)
        emit(event.i, **{"v": 1.5})

    agree(process)


def test_map_filter_and_tuple() -> None:
    def process(state, event, emit):
        xs = list(map(abs, state.f))
        total = sum(map(lambda a, b: a * b, state.f, state.a)) + max(map(half, state.f))
        for value in map(half, [event.x, -1.0]):
            if value < 0:
                continue
            total += value
        for value in filter(lambda v: v > 1, state.a):
            total += value
        kept = [*filter(None, [event.i, 0, 3])]
        t = tuple(state.m[1])
        key = tuple(sorted((state.n, event.i)))
        pairs = {key: 1.0, tuple(v + 1 for v in key): 2.0}
        a, b = map(int, (event.x % 7.0, 2.5))
        state.f[event.i % 5] = event.x
        emit(len(kept) + len(t) + t[0] + key[0] + a * b, total + len(xs) + pairs[key])

    agree(process)


def test_choosing_and_sorting() -> None:
    def process(state, event, emit):
        d = {event.i % 3: 1.5, 1: event.x, 2: 0.25}
        k = max(d, key=d.get)
        best, _ = max(d.items(), key=itemgetter(1))
        top = sorted(d.items(), key=lambda kv: (-kv[1], kv[0]))[:2]
        order = sorted(range(5), key=state.f.__getitem__)
        by_value = sorted(d, key=d.get, reverse=True)
        worst = min(event.i, -3, state.n, key=abs)
        low = min([v for v in state.f if v > 3.0], default=-1.0)
        t = (event.x, 1.0, 2.0)
        state.f[event.i % 5] = event.x
        emit(k + best * 3 + top[0][0] * 9 + order[0] + by_value[0] + worst, max(t) + sum(t) + low)
        emit(True * event.i + (event.x > 0) * 3 + (not event.on) * 5, (event.x > 0) * event.x)
        emit((event.i > 2) + (event.x > 1) + any(v > 1 for v in state.f), 0.0)

    agree(process)


def test_methods_take_whatever_a_loop_goes_over() -> None:
    def process(state, event, emit):
        xs = [1]
        xs.extend((3, event.i))
        xs.extend(range(2))
        xs.extend(v for v in state.a if v > 1)
        s = {1, event.i}
        s.update(xs)
        s |= s.union([7]) & s.intersection(range(5))
        d = {"a": 1.0}
        d.update([("b", 2.0), (event.s, 3.0)])
        d.update(c=event.x)
        d.update({"q": 1.0}, z=2.0)
        e = dict(d, y=4.0) | dict(zip(["u", event.s], [1.0, 2.0], strict=True))
        v = e.pop("nothing", None)
        w = e.pop("y", None)
        found = -1.0 if v is None else v
        emit(len(xs) + len(s) + len(d), sum(e.values()) + found + (0.0 if w is None else w))
        emit(len(dict.fromkeys(xs, 0)) + list(dict.fromkeys(xs))[1], 0.0)

    agree(process)


def test_what_a_method_is_given_is_gone_through_before_it_changes_anything() -> None:
    def process(state, event, emit):
        xs, d = [1], {1: 1}
        try:
            xs.extend(6 // v for v in (1, event.i % 2))
            d.update([(2, 2), (3, 6 // (event.i % 2))])
        except ZeroDivisionError:
            state.n += 1
        emit(len(xs), float(len(d)))

    operator = ss.operator(state=State, event=EVENT, emits=EMITS)(process)
    expected = run_oracle(operator, TABLE)
    assert set(expected.output["k"].to_pylist()) == {1, 3}  # Python's list has 2 of them at times
    for path in PATHS[:2]:
        assert_identical(run_engine(operator, TABLE, **path), expected)


def test_what_itertools_is_given_is_read_before_the_first_item_is_used() -> None:
    def process(state, event, emit):
        for a, b in pairwise(state.a):
            state.a[:] = a + b
        emit(state.a[0], 0.0)

    operator = ss.operator(state=State, event=EVENT, emits=EMITS)(process)
    expected = run_oracle(operator, TABLE)
    assert expected.output["k"].to_pylist()[0] == 4  # Python goes on with what was stored
    assert_identical(run_engine(operator, TABLE, **PATHS[1]), expected)


def test_zip_of_different_lengths_raises() -> None:
    def process(state, event, emit):
        total = 0.0
        for a, b in zip(state.f, [event.x] * (event.i % 6), strict=True):
            total += a * b
        state.n += 1
        emit(state.n, total + sum(a for a, _ in zip([1, 2], (3, 4), strict=True)))

    agree(process, raises=10)


@pytest.mark.slow
def test_heaps() -> None:
    def process(state, event, emit):
        h = []
        for i in range(6):
            heapq.heappush(h, ((event.i * (i + 1) * 37) % 11, i))
        a, i = heapq.heappop(h)
        g = [event.i, 4, 2, 8, 5]
        heapq.heapify(g)
        b = heapq.heappushpop(g, 3)
        c = heapq.heapreplace(g, 5)
        digest = 0
        for value in g:
            digest = digest * 31 + value
        few = heapq.nsmallest(2, state.f) + heapq.nlargest(event.i % 3, [event.x, 4.0, 9.0])
        most = heapq.nlargest(1, {3: 2, event.i: 5}.items(), key=lambda kv: kv[1])
        emit(a + 13 * i + b + c + digest + most[0][0], sum(few))
        heapq.heappop(g[: event.i % 2])
        emit(0, 0.0)

    agree(process, raises=6)


def test_fewer_than_none_of_the_largest_are_none() -> None:
    def process(state, event, emit):
        xs = [event.i, 4, 9]
        few = heapq.nlargest(event.i % 3 - 1, xs) + heapq.nsmallest(event.i % 4 - 2, xs)
        emit(len(few), float(sum(few)))

    agree(process)


def test_conditions_of_a_comprehension_are_tested_in_order() -> None:
    def process(state, event, emit):
        some = [6 // v for v in (event.i % 3, 2) if v != 0 if 6 // v > 1]
        emit(len(some), float(sum(6 // v for v in (event.i % 2, 3) if v if 6 // v > 1)))

    agree(process)


def test_bisection() -> None:
    def process(state, event, emit):
        xs = sorted([event.i, 3, 5, 9])
        insort(xs, 4)
        bisect.insort_left(xs, event.i)
        new = []
        for value in (event.x, 1.0, 0.5):
            insort(new, value)
        at = bisect.bisect(EDGES, event.x) * 10 + bisect.bisect_left(state.f, event.x)
        emit(at + bisect.bisect_right(xs, 3) + xs[3], new[0] + new[1] * 3)

    agree(process)


@pytest.mark.slow
def test_itertools() -> None:
    def process(state, event, emit):
        total = sum(state.m[i, j] for i, j in product(range(3), range(4)))
        for i, j in itertools.product(range(3), repeat=2):
            total += i * j
        far = max(abs(a - b) for a, b in combinations(state.f, 2))
        for a, b in pairwise([event.x, *state.f]):
            far += abs(b - a)
        for value in chain(state.a, [event.i], range(2)):
            total += value
        total += sum(chain.from_iterable([[1, 2], [event.i]]))
        sums = list(itertools.accumulate(state.a))
        tops = list(itertools.accumulate([event.x, 1.0, 2.0], max))
        for value in itertools.islice(state.a, 1, 3):
            total += value
        total += sum(1 for _ in itertools.permutations(range(3), 2))
        state.f[event.i % 5] = event.x
        emit(total + sums[-1], far + tops[1])

    agree(process)


@pytest.mark.slow
def test_collections() -> None:
    def process(state, event, emit):
        counts = defaultdict(int)
        for value in state.a:
            counts[value] += 1
        groups: defaultdict[int, list[float]] = defaultdict(list)
        groups[event.i % 2].append(event.x)
        groups[1].append(2.0)
        said = collections.defaultdict(lambda: 5)
        said[event.i] += 1
        c = Counter(state.a)
        c[event.i % 2] += 2
        c.update([1, 2, event.i])
        value, n = c.most_common(1)[0]
        first = Counter([event.i, 3, 3]).most_common(1)[0][0]
        del c[77]
        q = deque(state.a, maxlen=3)
        q.append(event.i)
        q.appendleft(1)
        q.extend([5, event.i, 6])
        waiting = deque([event.i % 5])
        seen = {event.i % 5}
        while waiting:
            at = waiting.popleft()
            for to in (at * 2 % 7, at * 3 % 7):
                if to not in seen:
                    seen.add(to)
                    waiting.append(to)
        waiting.rotate()
        state.a[event.i % 6] = event.i
        emit(counts[2] + len(groups) + said[event.i] + c[99] + value + n + first, sum(groups[1]))
        emit(
            q[0] * 100 + q[-1] + len(q) + len(seen) + c.total(), float(counts[12345] + len(counts))
        )

    operator = agree(process)
    shipped = pickle.loads(pickle.dumps(operator))
    expected = run_oracle(operator, TABLE)
    assert_identical(run_engine(shipped, TABLE, **PATHS[1]), expected)


def most_of(values):
    counts = Counter(values)
    counts.update(values)
    return counts.most_common(1)[0][1]


GROUPS = {"a": {"u": 2}, "b": {"v": 5, "u": 1}}


def test_a_counter_of_a_dict_has_its_counts() -> None:
    def process(state, event, emit):
        state.total[event.s] = state.total.get(event.s, 0) + event.i
        alias = state.total
        one = Counter(alias)
        two: Counter[str] = Counter(state.total.copy())
        state.total["later"] = 3
        two["later"] += 1
        two.update(one)
        emit(one["later"] + two.total(), float(len(one)))
        own = {event.i: 3, 5: 4}
        three = Counter([5, 5, event.i])
        three.update(own)
        three.update({n: n * event.i for n in range(2)})
        three.update(range(3))
        four = Counter()
        four.update(dict(a=event.i, b=2))
        four.update(GROUPS["b"])
        five = Counter(Counter([event.i, 3]).items())
        for key, n in three.items():
            emit(key, float(n))
        emit(four.most_common(1)[0][1] + five[event.i, 1], four["a"] + one[event.s] + 0.0)

    agree(process)


def test_what_is_counted_is_known_where_a_function_gets_it() -> None:
    def process(state, event, emit):
        def least(values):
            return Counter(values).most_common()[-1][1]

        state.total[event.s] = event.i
        group = Counter(GROUPS["a" if event.on else "b"])
        emit(most_of(state.total) * 10 + most_of(state.a), most_of({1: event.i}) + 0.0)
        emit(least(state.total) * 10 + least(state.a), group["u"] + least({1: event.i}) + 0.0)
        # Python computes these, of the event alone.
        upper = Counter({event.s.upper(): event.i, "B": 2}).most_common(1)[0]
        halves = Counter({event.s: event.x / 2, "": 0.25}).most_common(1)[0][1]
        emit(upper[1], halves)

    agree(process)


def test_the_bounds_of_what_is_taken() -> None:
    def process(state, event, emit):
        c = Counter([event.i, 3, 3])
        few = c.most_common(event.i - 3)
        one = c.most_common(n=1)
        emit(len(few) * 10 + len(one) + len(c.most_common(None)), 0.0)
        rest = [*itertools.islice([1, 2, 4], 1, None), *itertools.islice(state.a, None)]
        rest += itertools.islice([event.i, 5], None, 1)
        emit(sum(rest), 0.0)
        state.a[event.i % 6] = event.i

    agree(process)


def test_a_function_of_ones_own_is_called_in_a_loop() -> None:
    def scaled(total, one):
        return total * 2 + one

    def process(state, event, emit):
        few = [event.i, 3, event.i + 1, 2]
        k = event.i
        total = functools.reduce(lambda one, other: one + other * k, few)
        total += functools.reduce(scaled, state.a, event.i) + functools.reduce(max, few, k)
        while functools.reduce(lambda one, other: one + other, few) > 20:
            few.pop()
        for one in itertools.takewhile(lambda one: one < 3 and 6 // one < 9, few):
            total += one
        rest = itertools.dropwhile(lambda one: one != 3, [functools.reduce(max, few, 0), 3, k])
        products = [functools.reduce(lambda a, b: a * b, [one, 2], 1) for one in few]
        if event.on and not functools.reduce(lambda a, b: a and b > 0, few, True):
            total += 100
        mean = functools.reduce(lambda a, b: a + b, [0.5, event.x], 0.0)
        emit(total + sum(rest) + sum(products), mean)
        state.a[event.i % 6] = event.i
        emit(functools.reduce(lambda a, b: a + b, few[1:] if event.on else few[: k % 3]), 0.5)

    agree(process, raises=3)


def test_keys_are_sets_beside_sets() -> None:
    def process(state, event, emit):
        own = {event.i: 1, 3: 2, 5: 0}
        others = {event.i + 1: 0.5, 3: 1.0}
        both = own.keys() & others.keys()
        emit(len(both) * 100 + sum(own.keys() - {3}) + len({1, 2} | others.keys()), event.x)
        state.total[event.s] = event.i
        emit(len(state.total.keys() & {"a", "b"}) + int(others.keys() <= own.keys()), 0.0)
        emit(int({event.i, 3, 5} == own.keys()) + sum(own.keys() ^ {3, 4}), 1.0)

    agree(process)


def test_a_loop_that_needs_names_of_a_comprehension_is_refused() -> None:
    def process(state, event, emit):
        emit(sum([functools.reduce(lambda a, b: a + b * one, [1, 2]) for one in (1, 2)]), 0.0)

    with pytest.raises(ss.CompileError, match="reads 'one' of the lambda or comprehension"):
        made(process)


def test_a_deque_has_the_errors_of_a_deque() -> None:
    def process(state, event, emit):
        q = deque([event.i, 1])
        if event.on:
            emit(q[event.i], 0.0)
        else:
            emit(q.popleft(), q.pop())
        if event.i % 2 and event.i > 0:
            emit(q.popleft(), 0.0)
        bounded = deque([1], maxlen=event.i)
        bounded.insert(0, 5)
        bounded.insert(1, 6)
        emit(bounded[0], float(len(bounded)))

    agree(process, raises=11)
    texts = {text for _, _, text in run_oracle(made(process), TABLE).raised}
    assert texts == {
        "deque index out of range",
        "pop from an empty deque",
        "deque already at its maximum size",
        "maxlen must be non-negative",
    }


NO_LIMIT = None


def test_the_length_of_a_deque_may_be_none() -> None:
    def lengths(state, event, emit):
        few = None if event.x < 3 else 2
        one = deque(range(5), few)
        one.append(9)
        one.extend([event.x, 8])
        two = deque(maxlen=few)
        two.extend([event.x, 7, 6])
        three = deque([1, 2], NO_LIMIT)
        three.appendleft(event.x)
        emit(one[0], len(one), two[0], len(two), -1 if two.maxlen is None else two.maxlen)
        emit(three[0], len(three), -1 if three.maxlen is None else 0, len(state.last), 0)
        four = deque(state.last, state.last.maxlen)
        four.append(4)
        five = deque(state.all, state.all.maxlen)
        five.extend(four)
        five.extend([5, 6, 7])
        state.last.append(event.x)
        state.all.append(event.x)
        emit(four[0], len(four), five[0], len(five), -1 if five.maxlen is None else 0)

    class Kept(ss.State):
        last = ss.deque(int, maxlen=3)
        all = ss.deque(int)

    rows: list[tuple[int, ...]] = []
    state = types.SimpleNamespace(last=deque(maxlen=3), all=deque())
    for x in range(6):
        lengths(state, types.SimpleNamespace(x=x), lambda *row: rows.append(row))
    columns = dict.fromkeys("abcde", int)
    operator = ss.operator(state=Kept, event={"x": int}, emits=columns)(lengths)
    table = {"x": range(6)}
    assert [
        tuple(row.values()) for row in operator.run_sequential(table).output.to_pylist()
    ] == rows
    with ss.Engine(operator, threads=2, horizon=4) as engine:
        assert [tuple(row.values()) for row in engine.process(table).to_pylist()] == rows


def test_a_deque_is_copied_and_filled_from_the_left() -> None:
    def process(state, event, emit):
        q = deque(maxlen=3)
        q.extendleft([event.i, 2])
        q.extendleft(x for x in state.a)
        free: deque[float] = deque()
        free.extendleft((event.x, 2.0))
        p = q.copy()
        again = p.copy()
        p.extendleft([7, event.i])
        again.clear()
        more = free.copy()
        more.extendleft(more)
        more.append(1.5 if more.extendleft(free) is None else 0.5)
        held = deque([event.i], event.i % 3)
        held.extendleft([4, 5, 6])
        emit(p[0] * 10 + p[-1] + len(held), more[0] + more[-1] * 2)
        emit(len(p) * 100 + len(again) * 10 + len(q), float(len(more)))
        for at in range(len(q)):
            emit(q[at], more[at])
        state.a[event.i % 6] = event.i

    agree(process)


def test_an_empty_heap() -> None:
    def process(state, event, emit):
        heap = [event.i][: event.i % 2]
        if event.on:
            emit(heapq.heapreplace(heap, 7), 0.0)
        emit(heapq.heappop(heap), 0.0)

    agree(process, raises=6)
    texts = {text for _, _, text in run_oracle(made(process), TABLE).raised}
    assert texts == {"index out of range"}


def test_an_operator_keeps_the_defaults_of_more_parameters() -> None:
    def process(state, event, emit, rate=2, *, base=0.5, mark="a"):
        state.n += rate
        emit(state.n, event.x * base + (event.s == mark))

    agree(process)


REFUSED = """
q = deque([1]); emit(half(q)) -> 'q' is a deque only under this name; write list(q)
d = defaultdict(int); e = d -> 'd' is a defaultdict only under this name; write dict(d)
c = Counter(xs); c.subtract([1]) -> subtract of a Counter cannot be used .*; make a dict of it
c = Counter(xs); c.update(xs, a=1) -> update of a Counter takes one value .*; write c.update
c = Counter(xs); e = c -> 'c' is a Counter only under this name; write dict
c = Counter(xs); e = c + c -> Counters have no arithmetic .*; write for key, n in d.items\\(\\)
c = Counter(xs); e = +c -> Counters have no arithmetic .*; write for key, n in d.items\\(\\)
c = Counter(xs); c += Counter([1]) -> 'c' is a Counter here and is assigned elsewhere .*; give each
q = deque(xs); q = deque() -> 'q' is a deque here and is assigned elsewhere as well; give each deque
c = Counter(xs); x = len(c - Counter([1])) -> Counters have no arithmetic .*; write for key, n
c = Counter(xs); emit(c == Counter([1]), 0.0) -> Counters have no comparisons .*; write dict
c = Counter(xs); emit(1 if c <= c else 0, 0.0) -> Counters have no comparisons .*; write dict
c = Counter({1: event.s}) -> the counts of a Counter are string; give it a dict of numbers
q = deque(xs); emit(len(q.copy()), 0.0) -> the copy of q is a deque, .* function; write copied = q
q = deque(xs); p = q.copy(); p = xs -> the copy of q is a deque, .*; or make a list, list(q)
q = deque(xs); q.extendleft(1, 2) -> extendleft of q gets 2 values; it takes 1
emit(Counter(xs)[1], 0.0) -> a Counter is created here without a name; give it a name
q = deque(xs); emit(q[1:2][0], 0.0) -> a deque has no slices; write list(q)
for a, b in itertools.zip_longest(xs, xs): emit(a, 0.0) -> zip_longest cannot be used .*; write a
for k, g in itertools.groupby(xs): emit(k, 0.0) -> groupby cannot be used .*; go through it in a
xs += (1, 2) -> \\+= puts .* behind a list; write x.extend\\(y\\)
state.m[:] = [[1, 2]] -> a slice gets .* for an element; assign row by row
state.f[1] = [1.0] -> a list or tuple is assigned to one element; assign one item
state.a[:2] = [1.5, 2.5] -> an array is declared int and gets float64; write int\\(x\\)
t = tuple(xs) -> a tuple is made of a list, whose length is known only at run time; make a list
t = (*xs, 1) -> a star puts .* into a tuple, whose length is not known then; make a list
emit(max(*xs), 0.0) -> a star in a call of max; write the values out
d = dict.fromkeys(xs) -> dict.fromkeys without a value, .*; write {key: 0 for key in keys}
q = deque(xs); [q.append(x) for x in q if x] -> 'q' is a deque that .*RuntimeError; .*in list(q)
q = deque(xs); x = sum(q.popleft() for x in enumerate(q)) -> 'q' is a deque that .*; .* in list(q)
q = deque(xs); x = max(q, key=lambda x: q.pop()) -> 'q' is a deque that .* iterates .*; .* list(q)
c = itertools.pairwise(xs); x = [*c, *c] -> 'c' is an iterator, .* several places .*, c = list
x = bisect.bisect(xs, 1, 0, 2) -> so many arguments; write the loops out
"""


@pytest.mark.parametrize("row", REFUSED.strip().splitlines())
def test_what_is_refused_says_what_to_write(row: str, tmp_path: Any) -> None:
    text, message = row.split(" -> ")
    message = message.replace("(q)", r"\(q\)").replace("(d)", r"\(d\)")
    message = message.replace(r"\\(", r"\(").replace(r"\\)", r"\)").replace("\\\\+", "\\+")
    path = tmp_path / "refused.py"
    path.write_text(
        "import bisect, itertools\n"
        "from collections import Counter, defaultdict, deque\n\n\n"
        "def half(value):\n    return value\n\n\n"
        "def process(state, event, emit):\n    xs = [event.i, 2]\n"
        f"    {text}\n    emit(len(xs), 0.0)\n"
    )
    with pytest.raises(ss.CompileError, match=rf"refused.py:11: .*{message}"):
        compiled(runpy.run_path(str(path))["process"])


def test_a_loop_over_an_iterator_and_a_tuple_of_some_are_refused(tmp_path: Any) -> None:
    for row in (
        "c = itertools.pairwise(xs); x = [sum(a for a, _ in c) for _ in xs]"
        " -> 'c' is an iterator, .* in a loop; make a list of it, c = list",
        "t = tuple(x for x in (event.i, 2) if x)"
        " -> a tuple is made of a list, whose length is known only at run time; make a list",
    ):
        test_what_is_refused_says_what_to_write(row, tmp_path)


CHANGED = """
    for x in q:
        q.append(x)  # <-
---
    for x in reversed(q):
        if x > 3:
            break
        if x > 2:
            q.pop()  # <-
            continue
            break
---
    for x in q:
        for y in xs:
            if y > 3:
                del q[0]  # <-
                break
---
    for _, x in enumerate(q):
        try:
            q.rotate(2)  # <-
            raise ValueError
        except ValueError:
            pass
"""


@pytest.mark.parametrize("text", CHANGED.removeprefix("\n").split("---\n"))
def test_a_deque_that_changes_while_a_loop_goes_through_it_is_refused(
    text: str, tmp_path: Any
) -> None:
    path = tmp_path / "refused.py"
    before = "from collections import deque\n\n\ndef process(state, event, emit):\n"
    before += "    xs = [event.i, 2]\n    q = deque(xs)\n"
    path.write_text(f"{before}{text}    emit(len(q), 0.0)\n")
    line = 1 + (before + text.partition("  # <-")[0]).count("\n")
    with pytest.raises(
        ss.CompileError, match=rf"refused.py:{line}: 'q' is a deque that .*list\(q\)"
    ):
        compiled(runpy.run_path(str(path))["process"])


def test_a_deque_that_changes_where_a_loop_ends_or_where_it_is_not_in_one() -> None:
    def process(state, event, emit):
        q = deque([1, event.i, 3, 2])
        for x in list(q):
            q.append(x)
        for x in q:
            if x == event.i:
                q.remove(x)
                break
        else:
            q.append(77)
        for x in reversed(q):
            if x > 2:
                q.appendleft(x)
                emit(len(q), 1.0)
                return
        emit(sum(q), 0.0)

    agree(process)


def compiled(function: Callable[..., None]) -> None:
    operator = ss.operator(state=State, event=EVENT, emits=EMITS)(function)
    ss.Engine(operator, horizon=0)
