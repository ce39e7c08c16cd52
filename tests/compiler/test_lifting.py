"""What depends on the event alone is computed by Python, before the operator runs: on every path
the same, and what plain Python makes of it."""

from __future__ import annotations

import datetime
import json
import pickle
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import witness
from conftest import Path, assert_identical, run_oracle

import specstream as ss

CODE = re.compile(r"(\w+)-(\d+)(-x)?")
LIMITS = {"EU": 3, "US": 5}
BLOCKED = ["spam", "eggs"]


class S(ss.State):
    n = ss.scalar(int)
    x = ss.scalar(float)
    a = ss.array(int, 8)


EVENT: dict[str, Any] = {
    "key": str,
    "text": str,
    "note": ss.nullable(str),
    "a": int,
    "x": float,
    "m": ss.nullable(int),
    "time": ss.timestamp("ms", "Europe/Berlin"),
    "day": datetime.date,
}


def table(count: int = 48) -> pa.Table:
    keys = ["EU-12", "US-5-x", "", "euro", "Å-7", "spam", "a b  c", "EU-99999999999999999999"]
    texts = ["17", "x", "-3", "9223372036854775807", " 8 ", "0", "", "1e3"]
    rng = np.random.default_rng(7)
    at = np.arange(count)
    times = rng.integers(-(10**12), 2 * 10**12, count)
    return pa.table(
        {
            "key": [keys[i % 8] for i in at],
            "text": [texts[(i * 5 + i // 8) % 8] for i in at],
            "note": [None if i % 3 == 0 else texts[i % 8] for i in at],
            "a": rng.integers(-5, 5, count),
            "x": rng.normal(size=count).round(1),
            "m": pa.array([None if i % 4 == 0 else i for i in at.tolist()]),
            "time": pa.array(times).cast(pa.timestamp("ms", "UTC")),
            "day": pa.array((times // 86_400_000).astype(np.int32)).cast(pa.date32()),
        }
    )


def declared(function: Callable[..., None], **emits: Any) -> ss.Operator:
    return ss.operator(state=S, event=EVENT, emits=emits or {"s": ss.nullable(str), "i": int})(
        function
    )


@ss.pure
def grade(x: float, name: str) -> tuple[str, int] | None:
    return None if x > 1.0 else (name.upper()[:2], len(name))


@ss.pure
def weight(x: float, name: str = "") -> float:
    return x * len(name)


def is_short(text):
    for letter in text:
        if not letter.isalnum():
            return False
    return len(text) < 5


def prefix(event, size):
    return event.key[:2] if size > 0 else "none"


def strings(state, event, emit):
    if event.key.startswith("EU"):
        state.n += 1
    name = event.key.strip().lower()
    head, tail, rest = event.key.partition("-")
    words = event.key.split()
    if name and name[0] == "e" and event.key not in BLOCKED:
        emit(f"{event.key}:{event.a:>3}|{event.x:.2f}|{event.text!r}", len(words))
    elif "-" in event.key or not words:
        emit(rest + "/" + tail, LIMITS.get(head, 0) + state.n)
    else:
        emit(words[0], int(head < event.text) + 2 * int(event.text <= "5" < event.key))
    if is_short(event.key) and event.key[-1:] != event.text[:1]:
        emit(max(event.key, event.text), event.key.count("a") + state.n)
    emit(event.key.upper() if state.n > 2 else prefix(event, event.a), sum(len(w) for w in words))
    state.a[len(event.key) % 8] += sum(ord(c) for c in event.key if c not in "aeiou")


def patterns(state, event, emit):
    m = CODE.match(event.key)
    if m:
        state.n += int(m[2]) if len(m[2]) < 10 else -1
        emit(m.group(3), len(m[1]))
    elif re.search("[A-Z]", event.key) is None:
        emit(re.sub("[aeiou]", "*", event.key), -1)


def numbers(state, event, emit):
    if event.text.strip().lstrip("-").isdigit():
        number = int(event.text)
        state.n += number & 255
        emit(f"{number}", number)
    emit(None if event.is_null("note") else event.note.strip(), int(event.note is None))
    state.x += float(event.text) if event.text in ("17", "-3", "0", "1e3") else 0.5
    emit(f"{event.a / 2 + event.x}", -len(f"{event.m}"))


def times(state, event, emit):
    when = ss.when(event.time)
    year, week, weekday = when.isocalendar()
    emit(when.strftime("%Y-%m-%d %H:%M:%S"), when.hour * 100 + when.minute)
    emit(f"{year}-W{week:02}", ss.when(event.day).weekday() + 10 * weekday + state.n)
    if when.date().month in (6, 7, 8):
        state.n += when.day


def pures(state, event, emit):
    if grade(event.x, event.key) is not None:
        code, size = grade(event.x, event.key)
        emit(code, size + state.n)
        state.n += size
    scaled: float = weight(event.x, name=event.key) * 2
    state.x += scaled
    parsed: int = json.loads("[" + str(event.a) + "]")[0]
    emit(event.text, parsed)


ALL = [strings, patterns, numbers, times, pures]


@pytest.mark.parametrize("function", ALL, ids=lambda function: function.__name__)
def test_it_is_what_python_makes_of_it_on_every_path(
    path: Path, function: Callable[..., None]
) -> None:
    operator = declared(function)
    assert_identical(path(operator, table()), run_oracle(operator, table()))


@pytest.mark.parametrize("function", ALL, ids=lambda function: function.__name__)
def test_it_is_what_the_unrewritten_function_makes_of_it(function: Callable[..., None]) -> None:
    operator = declared(function)
    # A null is None for Python, and a string that equals no other for the witness.
    events = table().filter(pa.compute.is_valid(table()["m"]))
    events = events.filter(pa.compute.is_valid(events["note"]))
    kept = witness.assert_agrees(operator, events)
    assert kept > 20
    assert run_oracle(operator, events).output.num_rows > 10


# ---- functions that are marked as pure ----


calls: list[Any] = []


@ss.pure
def counted(key: str, a: int) -> int:
    calls.append((key, a))
    return len(key) * a


@ss.pure(batch=True)
def scored(x: Any, key: Any, a: Any) -> float:
    calls.append((type(x).__name__, type(key).__name__, len(x)))
    assert isinstance(x, np.ndarray)
    assert isinstance(a, np.ndarray)
    return x * pa.compute.utf8_length(key).to_numpy() + a


def counting(state, event, emit):
    if counted(event.key, event.a % 2) > 3:
        state.n += counted(event.key, event.a % 2)
    emit(event.key, counted(event.key, event.a % 2) + state.n)


def scoring(state, event, emit):
    score = scored(event.x, event.key.strip(), 2)
    state.x += score
    if event.key and scored(event.x, event.key, event.a) > 0.5:
        emit(event.key, int(scored(event.x, event.key, event.a) * 10.0))


def test_a_pure_function_is_called_once_for_each_combination() -> None:
    operator = declared(counting)
    calls.clear()
    run_oracle(operator, table())
    keys, signs = table()["key"].to_pylist(), [a % 2 for a in table()["a"].to_pylist()]
    assert sorted(calls) == sorted(set(zip(keys, signs, strict=True)))


def test_a_pure_function_of_columns_is_called_once_per_batch(path: Path) -> None:
    operator = declared(scoring)
    expected = run_oracle(operator, table())
    assert_identical(path(operator, table()), expected)
    assert expected.raised == ()
    assert expected.output.num_rows > 5
    calls.clear()
    with ss.Engine(operator, threads=2) as engine:
        engine.process(table())
        assert [kind[:2] for kind in calls] == [("ndarray", "StringArray")] * 2
        engine.process(table(3))
        assert len(calls) == 4


def test_a_pure_function_is_called_as_it_is_outside_of_operators() -> None:
    assert counted("ab", 3) == 6
    assert scored(0.5, "abc", 1) == 2.5
    assert ss.pure(len)([1]) == 1
    with pytest.raises(ss.DeclarationError, match="expected a function"):
        ss.pure(3)  # type: ignore[type-var]


# ---- on every way into an engine ----


def many(state, event, emit):
    """Strings, numbers, nulls and tuples, derived of the event."""
    head, _, rest = event.key.partition("-")
    state.n += len(event.key)
    if event.key.startswith("EU") and not event.is_null("note"):
        state.a[len(rest) % 8] += len(event.note.strip())
    emit(head.lower(), state.n + counted(event.key, event.a))


MANY = declared(many)


def in_order(events: pa.Table) -> pa.Table:
    """The same with a time for each, and sources."""
    times = pa.array(range(0, 10 * events.num_rows, 10))
    sources = pa.array([f"s{at % 3}" for at in range(events.num_rows)])
    return events.append_column("t", times).append_column("source", sources)


@pytest.mark.parametrize("by", ["table", "event", "restored", "rolled back"])
def test_events_out_of_order_have_derived_values(by: str) -> None:
    events = in_order(table())
    expected = MANY.run_sequential(events, order_by="t", source="source")
    shuffled = events.take(pa.array(np.random.default_rng(3).permutation(events.num_rows)))
    options: dict[str, Any] = {"threads": 2, "horizon": 8, "chunk": 2}
    with ss.Engine(MANY, sources=["s0", "s1", "s2"], **options) as engine:
        if by == "event":
            for row in shuffled.to_pylist():
                engine.submit_event(row.pop("t"), row.pop("source"), **row)
        else:
            engine.submit(shuffled, order_by="t", source_column="source")
        if by == "rolled back":
            mark = engine.savepoint()
            engine.rollback(mark)
        image = engine.snapshot()
        if by != "restored":
            finish(engine, expected)
    if by == "restored":
        copy = pickle.loads(pickle.dumps(MANY))
        with ss.Engine(copy, restore=image, sources=["s0", "s1", "s2"], **options) as engine:
            finish(engine, expected)


def finish(engine: ss.Engine, expected: Any) -> None:
    """Lets everything commit, and compares."""
    for source in ("s0", "s1", "s2"):
        engine.advance(source)
    parts = []
    while engine.stats.pending:
        parts.append(engine.poll(timeout=5))
    assert pa.concat_tables([*parts, engine.poll()]).equals(expected.output)
    assert engine.state.n == expected.state.n
