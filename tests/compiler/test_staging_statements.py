"""What is staged out of statements: patterns, next(), objects of classes, digests, columns that say
a type. On every path the same, and what plain Python makes of it."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs

from __future__ import annotations

import collections
import hashlib
import ipaddress
import json
import re
from collections.abc import Callable
from enum import Enum, IntEnum
from http import HTTPStatus
from typing import Any, NamedTuple
from urllib.parse import urlparse

import numpy as np
import pyarrow as pa
import pytest
from conftest import assert_identical, run_engine, run_oracle
from support import witness

import specstream as ss

NAMES = {"EU": "Europe", "US": "States"}
BLOCKED = {"spam", "eggs"}
HALF = "0.5"
BOUNDS = [0.0, 0.5, 1.5]
CODE = re.compile(r"(\w+)-(\d+)")


class Color(Enum):
    RED = 1
    BLUE = 2


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Point(NamedTuple):
    x: int
    name: str


class S(ss.State):
    n = ss.scalar(int)
    x = ss.scalar(float)
    a = ss.array(int, 8)


EVENT: dict[str, Any] = {
    "key": str,
    "url": str,
    "ip": str,
    "payload": str,
    "note": ss.nullable(str),
    "a": int,
    "x": float,
}


def table(count: int = 40) -> pa.Table:
    rng = np.random.default_rng(11)
    texts = {
        "key": ["EU-1", "US-22", "spam", "euro", "", "x-y", "EU", "17"],
        "url": ["http://a.b:80/p", "https://Host.com/x", "oops", ""],
        "ip": ["10.0.0.1", "8.8.8.8", "::1"],
        "payload": ['{"x": 5}', '{"x": 1, "y": 2.5}', '{"x": 7, "y": 1}'],
        "note": [None, "n", "abc"],
    }
    columns = {name: rng.choice(np.array(given, object), count) for name, given in texts.items()}
    numbers = {"a": rng.integers(-5, 9, count), "x": rng.normal(size=count).round(1)}
    return pa.table({name: pa.array(one) for name, one in {**columns, **numbers}.items()})


def declared(function: Callable[..., None]) -> ss.Operator:
    return ss.operator(state=S, event=EVENT, emits={"s": ss.nullable(str), "i": int})(function)


def patterns(state, event, emit):
    match event.key, event.a:
        case "EU", n if n > 2:
            emit("a", n)
        case name, n if name.startswith("E"):
            emit(name.lower(), n)
        case name, _ if len(name) > 3 and event.x > 0:
            emit(name[:2], len(name))
        case _:
            emit("z", state.n)
    match event.key.split("-")[0].lower(), state.n % 3:
        case ("eu" | "us") as place, n:
            state.n += 1
            emit(place.upper(), n)
        case place, 0:
            emit(f"{place}!", 0)
            state.n += 2
        case place, n if place.endswith("m") and n:
            emit(None, n)
            state.n += 1
    match event.key:
        case "spam" | "euro" as word:
            emit(word.upper(), 1)
        case word if word.isdigit():
            emit(word, int(word))
        case other:
            emit(other[::-1], len(other))


def firsts(state, event, emit):
    i = next((i for i in range(8) if state.a[i] > 1), -1)
    state.a[event.a % 8] += 1
    v = next((v for v in state.a if v > event.a), 100)
    j = next((i for i, bound in enumerate(BOUNDS) if event.x <= bound), len(BOUNDS))
    place = next((name for start, name in NAMES.items() if event.key.startswith(start)), "none")
    emit(place, i * 10000 + v * 10 + j)
    emit(next((w for w in event.key.split("-") if len(w) > 1), None), 0)
    free = next((i for i in range(8) if state.a[i] == 0), None)
    if free is None:
        state.a[:] = 0
        emit("full", 0)
    else:
        emit("free", free)
    state.x += next((float(v) for v in state.a if v > 2), 0)
    try:
        k = next(i for i in range(3) if i > event.a)
    except StopIteration:
        k = 99
    emit("k", k)


def objects(state, event, emit):
    color = Color(1 + event.a % 2)
    if color is Color.RED:
        state.n += 1
    emit(color.name, color.value)
    level = Level(1 + event.a % 2)
    emit(level.name, level)
    named = Color["RED" if event.a > 0 else "BLUE"]
    emit(named.name.lower(), named.value + state.n)
    status = HTTPStatus(200 + event.a % 2)
    if status == HTTPStatus.OK:
        state.n += 1
    emit(status.phrase, int(status))
    point = Point(event.a, event.key)
    x, name = Point(event.a, event.key.lower())
    emit(point.name + name, point.x + x)
    try:
        emit(Color(event.a).name, 1)
    except ValueError:
        emit("no color", 0)
    host = urlparse(event.url).hostname
    if host is None:
        state.n += 1
        host = "(none)"
    emit(host, state.n)
    ip = ipaddress.ip_address(event.ip)
    emit(str(ip), ip.version + (10 if ip.is_private else 0))
    found = CODE.match(event.key)
    if found:
        emit(found.group(1), int(found.group(2)))
    digest = int(hashlib.md5(event.key.encode()).hexdigest(), 16)
    state.a[digest % 8] += 1
    emit(collections.Counter(event.key + "a").most_common(1)[0][0], state.a[digest % 8])


def documents(state, event, emit):
    order = json.loads(event.payload)
    emit(event.key, order["x"])
    state.x = order.get("y", 1.5)
    state.a[event.a % 8] = order["x"] + 1
    state.n += order["x"]
    if order["x"] > 3 and "y" not in order:
        emit(None, order.get("x", 0))


def sets(state, event, emit):
    if event.key in BLOCKED or event.key.lower() in BLOCKED:
        state.n += 1
    place = NAMES.get(event.key[:2], "other")
    emit(place.upper()[:3], state.n)
    hits = [start for start in NAMES if event.key.startswith(start)]
    emit(hits[0] if hits else "none", len(hits))
    name = event.note or "none"
    emit(name, len(name))
    ok = event.key.startswith("EU") or (event.x > 0 and not event.key)
    emit("ok" if ok else "no", int(ok))
    if event.a > 0 and ((event.key.isdigit() and int(event.key) > 3) or state.n > 5):
        state.n += int(event.key) if event.key.isdigit() else 1
    emit(event.key or None, state.n)
    state.x += float(HALF) + int("12")  # of a module's text, and of one that is written out
    emit(HALF.strip("0"), int(state.x) + len(["te", "t"][0]))


ALL = [patterns, firsts, objects, documents, sets]


@pytest.mark.slow
@pytest.mark.parametrize("function", ALL, ids=lambda function: function.__name__)
def test_it_is_what_python_makes_of_it(function: Callable[..., None]) -> None:
    operator = declared(function)
    expected = run_oracle(operator, table())
    assert expected.raised == ()
    options: dict[str, Any] = {"threads": 2, "horizon": 4, "chunk": 2}
    assert_identical(run_engine(operator, table(), **options), expected)
    if function is firsts:
        assert_identical(run_engine(operator, table(), protocol="eager", **options), expected)
    assert witness.assert_agrees(operator, table(), are_none=True) == table().num_rows


def test_what_does_not_fit_the_column_raises_there() -> None:
    def emits(state, event, emit):
        emit(event.key, json.loads(event.payload))

    expected = run_oracle(declared(emits), table())
    assert {kind for _, kind, _ in expected.raised} == {"TypeError"}
    assert "and is declared int" in expected.raised[0][2]
    assert_identical(run_engine(declared(emits), table(), threads=1, horizon=0), expected)


def of_anything(text):
    found = json.loads(text)
    if not found:
        return None
    return found["x"]


def ints_or_texts(text):
    return text.upper() if text else 0


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (
            of_anything,
            r"of_anything\(\) is called by Python.*the type of found in line",
        ),
        (
            ints_or_texts,
            r"type of text.upper\(\) if text else 0 in line \d+ is not; annotate it where",
        ),
    ],
)
def test_a_helper_whose_type_is_not_known_says_where_and_what_to_write(
    function: Callable[..., Any], message: str
) -> None:
    def uses(state, event, emit):
        found = function(event.payload)
        emit(event.key, found + state.n)

    with pytest.raises(ss.CompileError, match=message) as caught:
        ss.Engine(declared(uses), horizon=0)
    assert caught.value.line in (uses.__code__.co_firstlineno + 1, uses.__code__.co_firstlineno + 2)
