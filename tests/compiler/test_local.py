"""Local tuples, lists, dicts and sets: what Python makes of them, on every path.

One file, because they hold each other, and are compared in one way.
"""

# Operators carry no types, as those of users do not; some are wrong on purpose.
# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
# mypy: disable-error-code=annotation-unchecked

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from conftest import assert_identical, run_engine, run_oracle
from support import witness

import specstream as ss


class S(ss.State):
    n = ss.scalar(int)
    x = ss.scalar(float)


EVENT = {"seed": int, "x": float, "key": str, "on": bool}
PATHS: tuple[dict[str, Any], ...] = (
    {"horizon": 0},
    {"horizon": 6, "chunk": 2, "threads": 2},
    {"horizon": 6, "chunk": 2, "threads": 2, "protocol": "eager"},
)


def events(count: int = 60, seed: int = 1) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "seed": rng.integers(0, 2**31, count),
            "x": np.round(rng.normal(size=count) * 4) / 2,
            "key": rng.choice(["one", "two", "three", ""], count),
            "on": rng.random(count) < 0.5,
        }
    )


def next_of(h):
    return (h * 1103515245 + 12345) & 0x7FFFFFFF


def fold(values):
    total = 7
    for one in values:
        total = (total * 31 + one) % 1000003
    return total


def by_rest(one):
    return one % 3


def fill(values, count):
    """What is given to a function is changed there."""
    for i in range(count):
        values.append(i * i)


def halves(values):
    middle = len(values) // 2
    return values[:middle], values[middle:]


@ss.operator(state=S, event=EVENT, emits={"step": int, "length": int, "digest": int, "said": int})
def lists(state, event, emit):
    """Random steps on a list of ints; what each of them gives."""
    xs = [3, event.seed % 7]
    other = xs
    h = event.seed
    for step in range(40):
        h = next_of(h)
        what, v = (h >> 9) % 26, (h >> 4) % 9
        n = len(xs)
        i = (h >> 15) % (2 * n) - n if n > 0 else 0
        j = (h >> 18) % 12 - 6
        k = (h >> 21) % 12 - 6
        said = 0
        if what <= 2:
            xs.append(v)
        elif what == 3:
            xs.insert(j, v)
        elif what == 4 and xs:
            said = xs.pop()
        elif what == 5 and n > 0:
            said = xs.pop(i)
        elif what == 6:
            if v in xs:
                xs.remove(v)
        elif what == 7 and v in xs:
            said = xs.index(v)
        elif what == 8:
            said = xs.count(v)
        elif what == 9:
            xs.extend([v, v + 1])
        elif what == 10:
            xs.extend(xs[j:k])
        elif what == 11:
            xs.reverse()
        elif what == 12:
            xs.sort()
        elif what == 13:
            xs.sort(reverse=True)
        elif what == 14:
            xs.sort(key=by_rest)
        elif what == 15:
            said = fold(sorted(xs, key=by_rest, reverse=v > 4))
        elif what == 16 and n > 0:
            xs[i] = v
            xs[i] += 10
        elif what == 17:
            xs[j:k] = [v, v, v]
        elif what == 18:
            del xs[j:k]
        elif what == 19 and n > 0:
            del xs[i]
        elif what == 20:
            said = fold(xs[::-1]) + fold(xs[j::2]) + fold(xs[k:j:-1])
        elif what == 21:
            xs += [v] * (v % 3)
        elif what == 22 and n > 0:
            said = sum(xs) + min(xs) * 100 + max(xs)
        elif what == 23:
            said = fold(xs + other[:2]) + fold(2 * xs[:3])
        elif what == 24:
            ys = xs.copy()
            ys.append(5)
            said = int(ys == xs) + 2 * int(ys > xs) + 4 * int(xs[:2] <= ys) + 8 * int(xs != other)
            left, right = halves(ys)
            said += len(left) * 100 + len(right)
        elif what == 25:
            if n > 25:
                xs.clear()
            else:
                fill(xs, v % 4)
        emit(step, len(xs), fold(xs), said)
    total = 0
    for one in reversed(xs):
        total = (total * 31 + one) % 1000003
    for at, (one, two) in enumerate(zip(xs, list(range(5)))):  # noqa: B905
        total += at * one * two
    state.n += total
    emit(-1, len(other), fold(other), total)


@ss.operator(state=S, event=EVENT, emits={"step": int, "length": int, "digest": int, "said": int})
def dicts(state, event, emit):
    d = {1: 10, 2: event.seed % 5}
    h = event.seed
    for step in range(50):
        h = next_of(h)
        what, k, v = (h >> 9) % 18, (h >> 4) % 9, (h >> 14) % 50
        said = 0
        if what <= 3:
            d[k] = v
        elif what == 4 and k in d:
            d[k] += v
        elif what == 5:
            said = d.get(k, -1)
        elif what == 6:
            said = d.setdefault(k, v)
        elif what == 7:
            said = d.pop(k, -2)
        elif what == 8 and d:
            key, value = d.popitem()
            said = key * 100 + value
        elif what == 9 and k in d:
            del d[k]
        elif what == 10:
            d.update({k: v, k + 1: v})
        elif what == 11 and len(d) > 12:
            d.clear()
        elif what == 12:
            e = d.copy()
            e[k] = v
            said = int(e == d) + 2 * int(e != d) + len(e | {50: 1}) * 10
        elif what == 13:
            said = fold(d.keys()) + fold(list(d.values())) + len(d.items())
        elif what == 14:
            said = fold(sorted(d, reverse=True))
        elif what == 15:
            said = 1 if d else 0
        elif what == 16:
            d |= {k: v}
        elif what == 17:
            f = dict(zip([k, k + 1], [v, v]))  # noqa: B905
            said = fold(list(dict(f).keys())) + sum(d.values()) + sum(d) * 3
            if d:
                said += min(d) * 7 + max(d.values()) + max(d.items())[1]
        emit(step, len(d), fold(d), said)
    for key, value in d.items():
        emit(key, value, 0, 0)


@ss.operator(state=S, event=EVENT, emits={"step": int, "length": int, "digest": int, "said": int})
def sets(state, event, emit):
    """In the order of Python's own only where that is sorted."""
    s = {1, event.seed % 6}
    h = event.seed
    for step in range(50):
        h = next_of(h)
        what, k, m = (h >> 9) % 17, (h >> 4) % 9, (h >> 14) % 9
        t = {k, m, 4}
        said = 0
        if what <= 3:
            s.add(k)
            said = sum(s) + max(s) * 10 + min(s | t)
        elif what == 4:
            s.discard(k)
        elif what == 5 and k in s:
            s.remove(k)
        elif what == 6:
            said = fold(sorted(s | t)) + fold(sorted(s & t))
        elif what == 7:
            said = fold(sorted(s - t)) + fold(sorted(s ^ t))
        elif what == 8:
            s |= t
        elif what == 9:
            s &= t
        elif what == 10:
            s -= t
        elif what == 11:
            s ^= t
        elif what == 12:
            said = (
                int(s <= t) + 2 * int(s < t) + 4 * int(s >= t) + 8 * int(t > s) + 16 * int(s == t)
            )
        elif what == 13:
            said = int(s.isdisjoint(t)) + 2 * int(t.issubset(s | t)) + 4 * int(s.issuperset(t))
        elif what == 14:
            s.update(t)
            s.difference_update({k})
        elif what == 15:
            said = fold(sorted(set(t).union(s).intersection(t).symmetric_difference(s)))
        elif what == 16 and len(s) > 7:
            s.clear()
        emit(step, len(s), fold(sorted(s)), said)


def test_a_set_is_no_proper_subset_of_itself() -> None:
    @ss.operator(state=S, event=EVENT, emits={"n": int})
    def compares(state, event, emit):
        s = {event.seed, 2}
        t = {2, event.seed}
        u = {event.seed, 2, -1}
        emit(int(s < t) + 2 * int(s > t) + 4 * int(s <= t) + 8 * int(s < u) + 16 * int(u > t))

    table = events(12)
    expected = run_oracle(compares, table)
    assert set(expected.output["n"].to_pylist()) == {4 + 8 + 16}
    assert_identical(run_engine(compares, table, horizon=0), expected)


def smallest(pairs):
    best = pairs[0]
    for one in pairs:
        if one < best:
            best = one
    return best


@ss.operator(
    state=S, event=EVENT, emits={"n": int, "x": float, "key": ss.nullable(str), "on": bool}
)
def mixtures(state, event, emit):
    """Tuples in lists, lists in dicts, strings as keys."""
    trades = [(event.x, 1, event.key), (2.5, 2, "two")]
    trades.append((event.x * 2, 3, event.key))
    trades.append((-1.0, event.seed % 5, "one"))
    for x, n, key in trades:
        emit(n, x, key, key == event.key)
    pairs = [(event.x, 5), (2.5, event.seed % 3), (event.x, 4)]
    pairs.sort()
    x, n = smallest(pairs)
    emit(n, x, on=pairs[0] == (x, n))
    emit(pairs.index((2.5, event.seed % 3)), max(pairs)[0], on=(2.5, 1) in pairs)
    groups = {}
    for _, n, key in trades:
        groups.setdefault(key, []).append(n)
    for key, members in groups.items():
        emit(sum(members), float(len(members)), key, len(members) > 1)
    buckets = [[], [], []]
    for i in range(10):
        buckets[(event.seed >> i) % 3].append(i)
    for bucket in buckets:
        emit(len(bucket), float(sum(bucket)), on=bucket == buckets[0])
    seen = {(event.key, event.on)}
    seen.add(("two", True))
    seen.add(("two", event.on))
    emit(len(seen), 0.0, on=("two", False) in seen)
    counts: dict[str, int] = {}
    for word in ("one", "two", event.key):
        counts[word] = counts.get(word, 0) + 1
    for word, count in counts.items():
        emit(count, on=event.on, x=0.5, key=word)
    matrix = [[0.0] * 3, [event.x] * 3]
    matrix[0][1] += event.x
    rows = [matrix[0].copy(), matrix[1]]
    rows[1][2] = 9.0
    emit(len(rows), sum(matrix[0]) + sum(matrix[1]) + rows[0][1], on=matrix == rows)
    window: list[float] = []
    for i in range(5):
        window.append(event.x * i)
        if len(window) > 3:
            window.pop(0)
    emit(len(window), sum(window) / len(window), on=bool(window))


OPERATORS = (lists, dicts, sets, mixtures)


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda one: one.name)
def test_they_are_what_python_makes_of_them(operator: ss.Operator) -> None:
    assert witness.assert_agrees(operator, events()) == 60


@pytest.mark.slow
@pytest.mark.parametrize("operator", OPERATORS, ids=lambda one: one.name)
def test_they_are_the_same_on_every_path(operator: ss.Operator) -> None:
    table = events(200)
    expected = run_oracle(operator, table)
    assert not expected.raised
    for path in PATHS:
        assert_identical(run_engine(operator, table, **path), expected)


# ---- errors ----


@ss.operator(state=S, event={"what": int, "x": float}, emits={"a": float})
def failing(state, event, emit):
    """What raises in Python, one after the other."""
    what, x = event.what, event.x
    nan = math.nan
    xs = [x, 2.0, x]
    d = {x: 1.0}
    s = {1, 2}
    empty: list[float] = []
    emit(-1.0)
    state.x += 1.0
    if what == 0:
        emit(xs[what + 3])
    elif what == 1:
        emit(empty.pop())
    elif what == 2:
        xs[what - 6] = 1.0
    elif what == 3:
        xs.remove(77.0)
    elif what == 4:
        emit(float(xs.index(77.0)))
    elif what == 5:
        emit(d[x + 1.0])
    elif what == 6:
        del d[x + 1.0]
    elif what == 7:
        emit(d.pop(x + 1.0))
    elif what == 8:
        d.clear()
        d.popitem()
    elif what == 9:
        s.remove(what)
    elif what == 10:
        s.clear()
        s.pop()
    elif what == 11:
        xs[::2] = [1.0]
    elif what == 12:
        for key in d:
            d[key + 1.0] = x
    elif what == 13:
        for one in s:
            s.discard(one)
    elif what == 14:
        emit(min(empty))
    elif what == 15:
        for i in range(3):
            del xs[i]
    elif what == 16:
        (xs[0], xs[1], xs[9]) = (1.0, 2.0, x)
    # From here on Python's own says something else: a NaN.
    elif what == 17:
        xs.append(nan)
        xs.sort()
    elif what == 18:
        emit(sorted([(1, x), (1, nan)])[0][1])
    elif what == 19:
        d[nan] = 1.0
    elif what == 20:
        emit(d.get(nan, 1.0))
    elif what == 21:
        emit(float(nan in {x}))
    elif what == 22:
        emit(len({(1, nan)}) * 1.0)
    elif what == 23:
        emit(sorted(xs, key=lambda one: one * nan)[0])
    elif what == 24:
        for key in d:
            d[key + 1.0] = x
            del d[key]
    emit(float(len(xs)))


ERRORS = (
    *("IndexError",) * 3,
    *("ValueError",) * 2,
    *("KeyError",) * 6,
    "ValueError",
    *("RuntimeError",) * 2,
    "ValueError",
    *("IndexError",) * 2,
    *("ValueError",) * 7,
    "RuntimeError",
)


def test_what_raises_in_python_raises() -> None:
    table = pa.table({"what": [*range(26)], "x": [0.5] * 26})
    expected = run_oracle(failing, table)
    assert [kind for _, kind, _ in expected.raised] == [*ERRORS]
    for path in PATHS:
        assert_identical(run_engine(failing, table, **path), expected)
    assert witness.assert_agrees(failing, table.slice(0, 17)) == 17


@ss.operator(state=S, event={"what": int, "x": float}, emits={"a": int})
def caught(state, event, emit):
    xs = [1, 2]
    d = {1: 2}
    try:
        if event.what == 0:
            xs[5] = 1
        elif event.what == 1:
            d[7] += 1
        elif event.what == 2:
            xs.remove(9)
        elif event.what == 3:
            for key in d:
                d[key + 1] = 0
        elif event.what == 4:
            xs.append(5)
            xs.pop(-9)
    except IndexError:
        emit(1)
    except KeyError:
        emit(2)
    except ValueError:
        emit(3)
    except RuntimeError:
        emit(4)
    finally:
        emit(len(xs) * 10 + len(d))


def test_what_they_raise_is_caught_by_its_class() -> None:
    table = pa.table({"what": [*range(6)] * 5, "x": [0.5] * 30})
    expected = run_oracle(caught, table)
    assert expected.output["a"].to_pylist()[:11] == [1, 21, 2, 21, 3, 21, 4, 22, 1, 31, 21]
    for path in PATHS:
        assert_identical(run_engine(caught, table, **path), expected)
    assert witness.assert_agrees(caught, table) == 30


# ---- NaN, and what only a tuple is ----


@ss.operator(state=S, event={"n": int, "x": float}, emits={"a": int})
def by_value(state, event, emit):
    """A NaN is not found by being the same object."""
    nan = event.x
    key = (1, nan)
    xs = [nan, 2.0]
    emit(int(nan in xs) + 2 * int(xs == xs) + 4 * int(key == key) + 8 * int(key in [key]))
    emit(xs.count(nan) + 10 * int(key != (1, nan)) + 100 * int(key < (1, 3.0)))
    emit(int([nan] <= [nan]) + 2 * int([nan] >= [nan]) + 4 * int([[nan]] == [xs[:1]]))
    pairs = [(nan, 1), (1.0, 2)]
    emit(min(pairs)[1] * 10 + max(pairs)[1])


def test_a_nan_is_equal_to_nothing() -> None:
    table = pa.table({"n": [1, 2], "x": [math.nan, 0.5]})
    expected = run_oracle(by_value, table)
    assert expected.output["a"].to_pylist() == [0, 10, 0, 11, 15, 101, 7, 12]
    for path in PATHS:
        assert_identical(run_engine(by_value, table, **path), expected)


PRICES = (3.5, 1.5, 2.5)


def swapped(pair):
    first, second = pair
    return second, first


@ss.operator(state=S, event=EVENT, emits={"n": int, "x": float, "key": str})
def tuples(state, event, emit):
    pair = event.seed, event.x
    n, x = pair
    x, n = swapped(pair)
    three = (n, 5, 7)
    emit(three[event.seed % 3] + three[-1] + len(three[1:]), PRICES[event.seed % 3], event.key)
    joined = pair + (event.key, 2)  # noqa: RUF005
    emit(joined[3] + len(joined), joined[1], joined[2])
    for one in three + (1,) * 2:
        emit(one, 0.0, "")
    nested = (pair, (1, 2.5))
    emit(nested[1][0], nested[0][1], "one" if event.key in ("one", "two") else "")
    order = int(pair < (n, 0.25)) + 2 * int(nested == (pair, (1, 2.5))) + 4 * int(pair >= nested[1])
    order += (
        8 * int((1, 2) < (1, 2, 0))
        + 16 * int(pair != (n, x))
        + 32 * int((x, event.key) == joined[1:3])
    )
    emit(order, 0.5, "two")
    a, b = event.seed % 5, event.seed % 7
    a, b = b, a
    emit(a * 10 + b, PRICES[1], "")
    if three:
        emit(sum(1 for one in three if one > 5), 0.0, "")
    a, *rest = three
    emit(a + rest[0], 1.0, "")


def test_tuples_are_pythons() -> None:
    table = events(40)
    expected = run_oracle(tuples, table)
    assert not expected.raised
    for path in PATHS:
        assert_identical(run_engine(tuples, table, **path), expected)
    assert witness.assert_agrees(tuples, table) == 40


# ---- the arena ----


@ss.operator(state=S, event={"n": int, "x": float}, emits={"a": int})
def many(state, event, emit):
    """As many elements as the event says."""
    xs = []
    for i in range(event.n):
        xs.append(i ^ 5)  # noqa: PERF401
    seen = set(xs)
    state.n += len(seen)
    emit(sum(xs) + len(seen))


@ss.operator(state=S, event={"n": int, "x": float}, emits={"a": int})
def none(state, event, emit):
    emit(event.n)


def sizes(*of: int) -> pa.Table:
    return pa.table({"n": list(of), "x": [0.0] * len(of)})


@pytest.mark.parametrize("protocol", ["value", "eager"])
def test_a_speculative_run_that_takes_too_much_is_run_as_the_head(protocol: str) -> None:
    table = sizes(*[3, 40, 5000] * 20)
    expected = run_oracle(many, table)
    options: dict[str, Any] = {"horizon": 6, "chunk": 1, "threads": 2, "execution": "speculate"}
    limits = ss.Limits(elements=400)
    found = run_engine(many, table, protocol=protocol, limits=limits, **options)
    assert_identical(found, expected)
    with ss.Engine(many, protocol=protocol, limits=limits, **options) as engine:
        engine.process(table)
        assert engine.stats.aborts["log_full"] >= 20
    with ss.Engine(many, protocol=protocol, **options) as engine:
        engine.process(sizes(*[3, 40] * 20))
        assert engine.stats.aborts["log_full"] == 0


def test_what_an_arena_has_grown_to_is_given_back() -> None:
    with ss.Engine(none, horizon=0, threads=1) as engine:
        without = engine.stats.memory
    with ss.Engine(many, horizon=0, threads=1) as engine:
        assert engine.stats.memory < without + 4096
        engine.process(sizes(10))
        small = engine.stats.memory
        engine.process(sizes(200_000, 5))
        assert engine.stats.memory == small


def test_a_limit_of_elements_is_an_integer_in_range() -> None:
    with pytest.raises(ss.ConfigurationError, match="elements=0; expected"):
        ss.Limits(elements=0)


# ---- what is refused ----


def mixes(state, event, emit):
    xs = [event.seed]
    xs.append(event.x)


def not_known(state, event, emit):
    xs = []
    for one in xs:
        emit(one)


def keeps(state, event, emit):
    xs = [1]
    state.n = xs


def hashes(state, event, emit):
    emit(len({[1]}))


def other_key(state, event, emit):
    d = {1: 2}
    emit(d[event.x])


def unlike(state, event, emit):
    xs = [event.seed, event.x]
    emit(len(xs))


def itself(state, event, emit):
    xs = []
    xs.append(xs)


def bad_hint(state, event, emit):
    xs: list[complex] = []
    emit(len(xs))


REFUSED = [
    (mixes, 2, r"a list of int64 gets float64; .*begin it with floats"),
    (not_known, 2, r"what a list holds is not known here.*x: list\[float\] = \[\]"),
    (keeps, 2, r"declared int and gets list"),
    (hashes, 1, r"is a key; keys are numbers, strings and tuples"),
    (other_key, 2, r"the keys of a dict are int64, but one is float64"),
    (unlike, 1, r"a list of int64 gets float64"),
    (itself, 2, r"put into itself; make a new one"),
    (bad_hint, 1, r"annotation list\[complex\] is not understood|complex"),
]


@pytest.mark.parametrize(("function", "line", "message"), REFUSED, ids=lambda one: str(one)[:20])
def test_what_cannot_be_is_refused_with_its_line_and_a_way_out(
    function: Callable[..., None], line: int, message: str
) -> None:
    operator = ss.operator(state=S, event=EVENT, emits={"a": int})(function)
    with pytest.raises(ss.CompileError, match=f"(?s){message}") as caught:
        ss.Engine(operator, horizon=0).close()
    first = function.__code__.co_firstlineno
    assert f":{first + line}:" in str(caught.value)


def test_builtins_take_tuples() -> None:
    @ss.operator(
        state=S,
        event={"a": int, "x": float, "b": bool},
        emits={"sum": int, "max": float, "min": int, "one": int, "mixed": float, "zero": float},
    )
    def reduced(state, event, emit):
        mixed = (event.x, event.a, event.b)
        x = event.x
        emit(
            sum((event.a, 1, event.b)),
            max((x, 2.0, -x)),
            min((event.a, 3, -4)),
            max((event.a,)),
            sum(mixed),
            sum((x, x)),
        )

    columns = {"a": [1, -5, 9], "x": [-0.0, 2.5, float("nan")], "b": [True, False, True]}
    table = pa.table(columns)
    expected = run_oracle(reduced, table)
    assert expected.output["mixed"].to_pylist()[:2] == [2.0, -2.5]
    assert_identical(run_engine(reduced, table, horizon=0), expected)
    assert witness.assert_agrees(reduced, table) == 3


@pytest.mark.long
def test_they_travel_and_are_profiled() -> None:
    table = events(60)
    expected = run_oracle(mixtures, table)
    shipped = pickle.loads(pickle.dumps(mixtures))
    assert_identical(run_engine(shipped, table, horizon=4, chunk=2, profile=True), expected)
    for execution in ("log_free", "locked"):
        found = run_engine(dicts, events(20), execution=execution, threads=1)
        assert_identical(found, run_oracle(dicts, events(20)))
