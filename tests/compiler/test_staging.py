"""What depends on the event alone is computed by Python, before the operator runs: on every path
the same, and what plain Python makes of it."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
# mypy: disable-error-code=annotation-unchecked

from __future__ import annotations

import datetime
import functools
import json
import pickle
import re
import subprocess
import sys
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from conftest import Path, assert_identical, run_engine, run_oracle
from support import witness

import specstream as ss

CODE = re.compile(r"(\w+)-(\d+)(-x)?")
LIMITS = {"EU": 3, "US": 5}
BLOCKED = ["spam", "eggs"]


class S(ss.State):
    n = ss.scalar(int)
    x = ss.scalar(float)
    a = ss.array(int, 8)


FEW: list[dict[str, Any]] = [
    {"threads": 1, "horizon": 0},
    {"threads": 2, "horizon": 4, "chunk": 2},
    {"threads": 2, "horizon": 4, "chunk": 2, "protocol": "eager"},
]


@pytest.fixture(params=FEW, ids=["plain", "two threads", "eager"])
def few(request: pytest.FixtureRequest) -> Path:
    """Where not every path says something new."""
    return functools.partial(run_engine, **request.param)


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
    few: Path, function: Callable[..., None]
) -> None:
    operator = declared(function)
    assert_identical(few(operator, table()), run_oracle(operator, table()))


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
    return x * pa.compute.utf8_length(key).to_numpy() + a  # type: ignore[no-any-return]


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


def test_a_pure_function_of_columns_is_called_once_per_batch(few: Path) -> None:
    operator = declared(scoring)
    expected = run_oracle(operator, table())
    assert_identical(few(operator, table()), expected)
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
        ss.pure(3)  # type: ignore[call-overload]


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


def test_what_python_calls_travels_with_a_pickled_operator() -> None:
    program = (
        "import pickle, sys\n"
        "operator, events = pickle.load(sys.stdin.buffer)\n"
        "run = operator.run_sequential(events)\n"
        "pickle.dump(run.output, sys.stdout.buffer)\n"
    )
    operator = declared(strings)
    done = subprocess.run(
        [sys.executable, "-I", "-c", program],
        input=pickle.dumps((MANY, table())) + b"",
        capture_output=True,
        check=True,
    )
    assert pickle.loads(done.stdout).equals(MANY.run_sequential(table()).output)
    copy = pickle.loads(pickle.dumps(operator))
    assert copy.program.fingerprint == operator.program.fingerprint
    assert copy.run_sequential(table()).output.equals(operator.run_sequential(table()).output)


# ---- exceptions ----


def parsing(state, event, emit):
    state.n += 1
    if event.a > 0:
        number = int(event.text)
        state.n += number % 100
        emit(event.key, number)
    elif event.a < -3:
        emit(event.key[3], event.a)


def test_an_exception_is_raised_where_the_operator_gets_there(few: Path) -> None:
    operator = declared(parsing)
    expected = run_oracle(operator, table())
    kinds = {kind for _, kind, _ in expected.raised}
    assert kinds == {"ValueError", "IndexError"}
    assert len(expected.raised) < 30
    assert_identical(few(operator, table()), expected)


def test_an_exception_has_the_user_s_own_line() -> None:
    event = {**table(1).to_pydict(), "a": [1], "text": ["x"]}
    with (
        ss.Engine(declared(parsing), threads=1) as engine,
        pytest.raises(ValueError, match="invalid literal for int") as caught,
    ):
        engine.process(event)
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert frames[-1].filename == __file__
    assert frames[-1].line == "number = int(event.text)"
    assert "raised by operator 'parsing'" in caught.value.__notes__[0]


def unused(state, event, emit):
    parts = event.key.split("-")
    number = int(parts[1])  # noqa: F841
    state.n += 1
    emit(None, state.n)


def test_an_exception_is_raised_where_nothing_is_made_of_the_value(few: Path) -> None:
    operator = declared(unused)
    expected = run_oracle(operator, table())
    assert {kind for _, kind, _ in expected.raised} == {"IndexError", "OverflowError"}
    assert_identical(few(operator, table()), expected)


@ss.pure
def difference(left: int, right: int) -> int:
    return left - right


def by_keywords(state, event, emit):
    state.n += difference(left=event.a, right=len(event.key))
    emit(event.key, difference(right=event.a, left=len(event.key)))


def starred(state, event, emit):
    for part in event.key.split("-"):
        first, *rest = part.split("x")  # as a rule with nothing for the star
        state.n += len(rest)
        emit(first, state.n)


@pytest.mark.parametrize("function", [by_keywords, starred])
def test_keywords_and_stars_are_pythons(function: Callable[..., None]) -> None:
    operator = declared(function)
    assert witness.assert_agrees(operator, table(), are_none=True) == table().num_rows
    expected = run_oracle(operator, table())
    assert expected.raised == ()
    assert_identical(run_engine(operator, table(), horizon=0), expected)


def too_large(state, event, emit):
    emit(event.key, int(event.key[3:]))


def wrapping(state, event, emit):
    label = f"{event.a * 4611686018427387904}"
    emit(label, event.a)


@ss.pure
def lying(a: int) -> int:
    return str(a)  # type: ignore[return-value]


def lied(state, event, emit):
    emit(event.key, lying(event.a))


def surrogate(state, event, emit):
    emit(chr(0xD800 + event.a % 2), 1)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (too_large, "does not fit 64 bits"),
        (wrapping, "does not fit 64 bits"),
        (lied, r"gives '-?\d' \(str\), and is declared int"),
        (surrogate, "surrogates not allowed"),
    ],
)
def test_what_no_column_can_hold_is_an_exception_of_the_event(
    function: Callable[..., None], message: str
) -> None:
    operator = declared(function)
    expected = run_oracle(operator, table())
    assert expected.raised
    assert any(re.search(message, text) for _, _, text in expected.raised)
    assert_identical(run_engine(operator, table(), threads=2, horizon=4, chunk=2), expected)


parsed: list[str] = []


@ss.pure
def noting(text: str) -> bool:
    parsed.append(text)
    return True


def guarded(state, event, emit):
    if not event.text.strip():
        return
    if event.text[0] == "1" and len(event.text) > 1:
        emit(event.text, ord(event.text[1]))
    elif event.text != "x":
        emit(None, int(event.text) if "e" not in event.text else 0)


def test_nothing_is_computed_in_vain_where_the_event_alone_decides() -> None:
    operator = declared(guarded)
    expected = run_oracle(operator, table())
    assert expected.raised == ()
    texts = ss.columns.strings.StringTable(operator.program.strings)
    events = ss.columns.events.read_events(table(), operator.event, texts, "here", 0)
    places = [operator.event.derived_place(f"__ss_derived_{at}") for at in range(20)]
    for place in [one for one in places[: len(operator.event.derived)] if one is not None]:
        if operator.event.derived[place.number].is_seen:
            assert not events.columns[2 + place.raised].any()
    assert_identical(run_engine(operator, table(), threads=2), expected)


# ---- formatted strings of more than the event ----


def labelled(state, event, emit):
    state.n += event.a
    state.x += event.x
    draw = event.random_bits(0)
    emit(f"{event.key.lower()}: {state.x:.2f}, {state.n!r:>5}|{state.n > 3}", state.n)
    if state.n % 2:
        emit(i=state.n, s=f"<{state.n:+05d}>{state.x / 3!s}{{}}")
    elif event.a > 0:
        emit(event.key, 1)
    else:
        emit(None, np.int64(draw >> np.uint64(60)))
    emit(f"{draw}:{event.key if event.a else 'none'}", 2)


def test_a_formatted_string_of_the_state_is_emitted(path: Path) -> None:
    operator = declared(labelled)
    expected = run_oracle(operator, table())
    assert_identical(path(operator, table()), expected)
    texts = expected.output["s"].to_pylist()
    assert texts[0] == f"eu-12: {table()['x'][0].as_py():.2f}, {table()['a'][0].as_py()!r:>5}|False"
    assert None in texts
    assert any(text and text.endswith("{}") for text in texts)
    rows: list[Any] = []
    told = lambda told: rows.extend(told.rows)  # noqa: E731
    with ss.Engine(operator, threads=2, horizon=4, on_commit=told) as engine:
        engine.process(table())
    assert rows == [tuple(row.values()) for row in expected.output.to_pylist()]


def test_a_formatted_string_is_what_python_makes_of_it() -> None:
    def formats(state, event, emit):
        state.n += event.a
        state.x += event.x
        emit(f"{event.key}|{state.x:>9.3f}|{state.n:x}|{state.n == 3!s:^7}", state.n)

    assert witness.assert_agrees(declared(formats), table()) == table().num_rows


# ---- what is refused ----


def element_by_the_state(state, event, emit):
    emit(event.key[state.n], 1)


def dict_in_compiled_code(state, event, emit):
    parts = dict.fromkeys(event.key.split("-"), 1)
    emit(event.key, parts[state.first])


def unknown_type(state, event, emit):
    found = json.loads(event.text)
    emit(event.key, found + state.n)


def loop_over_unknown(state, event, emit):
    for part in json.loads(event.key):  # noqa: B007
        state.n += 1


def formatted_state(state, event, emit):
    label = f"{state.n}"
    emit(label or "none", 1)


def wrong_format(state, event, emit):
    emit(f"{state.x:d}", 1)


def format_in_a_format(state, event, emit):
    emit(f"{state.x:{event.a}.2f}", 1)


def wrong_annotation(state, event, emit):
    found: list = json.loads(event.text)  # noqa: F841
    emit(event.key, 1)


def late_name(state, event, emit):
    if state.n > 3:
        parts = event.key.split("-")
    emit(parts[0], 1)


@pytest.mark.parametrize(
    ("function", "line", "message"),
    [
        (element_by_the_state, 1, r"state\.n is known only when the event runs"),
        (dict_in_compiled_code, 2, "parts is (computed by Python|a dict)"),
        (unknown_type, 2, r"found is computed by Python.*annotate"),
        (loop_over_unknown, 1, "a loop over json.loads"),
        (formatted_state, 1, r"formatted string cannot be used here: state\.n is known only"),
        (wrong_format, 1, "Unknown format code 'd'.*write a format that fits"),
        (format_in_a_format, 1, "a format in a format"),
        (wrong_annotation, 1, "the annotation list"),
        (late_name, 3, "'parts' may be undefined"),
    ],
)
def test_what_is_refused_says_what_depends_on_the_state(
    function: Callable[..., None], line: int, message: str
) -> None:
    with pytest.raises(ss.CompileError, match=message) as caught:
        ss.Engine(declared(function), horizon=0)
    assert caught.value.line == function.__code__.co_firstlineno + line


class Unwelcome(ValueError):
    pass


@ss.pure
def welcomed(key: str) -> str:
    if key == "spam":
        raise Unwelcome(key)
    return json.loads(key)[0] if key.startswith("E") else key


def catching(state, event, emit):
    try:
        number = int(event.text)
        emit(welcomed(event.key), number % 10)
    except Unwelcome as error:
        emit(event.key, -1)
        raise KeyError(f"{event.key.upper()} at {state.n}") from error
    except ValueError:
        state.n += 1
        emit(event.key[1:2], state.n)
        assert event.a < 3, f"{event.key.strip()!r} has {event.a}"
    finally:
        state.n += len(event.key)


def test_what_python_raised_before_is_caught_by_its_class(path: Path) -> None:
    operator = declared(catching)
    expected = run_oracle(operator, table())
    kinds = {kind for _, kind, _ in expected.raised}
    assert kinds == {"KeyError", "AssertionError"}
    assert any("SPAM at" in text for _, _, text in expected.raised)
    assert any(text == "'euro' has 3" for _, _, text in expected.raised)
    assert_identical(path(operator, table()), expected)
    events = table().filter(pa.compute.is_valid(table()["m"]))
    assert witness.assert_agrees(operator, events) > 20
