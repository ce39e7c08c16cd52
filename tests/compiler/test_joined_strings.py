"""Strings put together from values of the state are emitted as Python has them."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs

# Each of Python's ways to write them.
# ruff: noqa: UP031, UP032

from __future__ import annotations

import ast
import types

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import specstream as ss
from specstream.compiler.frontend.joined_strings import as_joined


class S(ss.State):
    n = ss.scalar(int)
    y = ss.scalar(float)
    up = ss.scalar(bool)
    last = ss.scalar(str)


@ss.operator(state=S, event={"x": int, "k": str}, emits={"s": str})
def written(state, event, emit):
    state.n += event.x
    state.y += event.x * 0.37
    state.up = state.n > 3
    emit(str(state.n))
    emit(str(state.n) + ":" + event.k)
    emit(event.k + "-" + str(state.up) + "/" + str(state.y))
    emit(state.last + "|" + event.k.upper() + f"{state.n:>4}")
    emit("%d of %s" % (state.n, event.k))
    emit("%5.2f%%|%-6d|%+d|%s" % (state.y, state.n, state.n, state.up))
    emit("%05d" % state.n + " " + "%8s<" % state.last)
    emit("%x %o %X %u %E %G %F" % (state.n, state.n, state.n, state.n, state.y, state.y, state.y))
    emit("{0} {1:.2f} {0:>5}".format(state.n, state.y))
    emit("{b}/{a}/{b!r}".format(a=state.last, b=state.n))
    emit("%d" % int(state.y))
    emit("{}: {:.3f}".format(event.k, state.y))
    emit("{0}/{1!s:>6}/{name}".format(state.n, state.up, name=state.last))
    emit(s="{{{}}}".format(state.last))
    line = f"{event.k}: {state.n}"  # as it is now, and not when it is emitted
    state.n += 1
    emit(line)
    for place in range(2):
        total = "at " + str(place) + f" of {state.n:>3}"
        emit(s=total)
        emit(total)
    state.last = event.k


def python(table: pa.Table) -> list[str]:
    """The same operator, in plain Python."""

    class Plain:
        n, y, up, last = 0, 0.0, False, ""

    rows: list[str] = []

    def emit(s: str) -> None:
        rows.append(s)

    for row in table.to_pylist():
        event = type("Event", (), row)
        written.function(Plain, event, emit)
    return rows


def test_each_way_to_write_a_string_gives_what_python_gives() -> None:
    rng = np.random.default_rng(4)
    table = pa.table({"x": rng.integers(-5, 9, 60), "k": rng.choice(["", "a", "Öl", "x y"], 60)})
    expected = python(table)
    assert written.run_sequential(table).output["s"].to_pylist() == expected
    for threads, horizon in ((1, 0), (2, 8)):
        with ss.Engine(written, threads=threads, horizon=horizon) as engine:
            assert engine.process(table)["s"].to_pylist() == expected


def tell(emit, number):
    emit(str(number))
    emit("a" + str(number) + "|%d" % number)
    emit(s="{}-{}".format(number, number + 1))
    text = "kept " + str(number)
    emit(text)


def tell_all(out, number, *, times=2):
    def inner(place):
        out(str(place + number))

    for place in range(times):
        inner(place)


def checked(number):
    if number > 3:
        raise ValueError("beyond " + str(number))
    return number


def tell_checked(emit, number):
    try:
        checked(number)
    except ValueError as error:
        emit(str(error))


class Timed(ss.State):
    n = ss.scalar(int)
    due = ss.timers(int)


def tells_when_due(state, timer, emit):
    try:
        checked(timer.key + 3)
    except ValueError as error:
        emit(str(error))


@ss.operator(state=Timed, event={"at": int, "x": int}, emits={"s": str}, on_timer=tells_when_due)
def told_elsewhere(state, event, emit):
    state.n += event.x
    tell(emit, state.n)
    tell(emit, event.x)
    tell_all(emit, state.n)
    tell_checked(emit, state.n)
    state.due.set(event.x, event.at + 1)


def test_functions_that_have_no_event_emit_them_as_well() -> None:
    """Helpers that are given numbers and ``emit``, and what a timer runs."""
    table = pa.table({"at": [1, 2, 9], "x": [1, 2, 4]})
    expected: list[str] = []
    number = before = 0
    for x in (1, 2, 4):
        expected += [f"beyond {before + 3}"] * (before > 0)  # of the timer that the last one set
        number, before = number + x, x
        for one in (number, x):
            expected += [f"{one}", f"a{one}|{one}", f"{one}-{one + 1}", f"kept {one}"]
        expected += [f"{number}", f"{number + 1}"]
        expected += [f"beyond {number}"] * (number > 3)
    sequential = told_elsewhere.run_sequential(table, order_by="at")
    assert sequential.output["s"].to_pylist() == expected
    for threads, horizon in ((1, 0), (2, 8)):
        with ss.Engine(told_elsewhere, threads=threads, horizon=horizon) as engine:
            assert engine.process(table, order_by="at")["s"].to_pylist() == expected


FLAGS = st.text("-+ 0", max_size=2)
WIDTHS = st.sampled_from(["", "1", "7"])


@given(
    flags=FLAGS,
    width=WIDTHS,
    digits=st.sampled_from(["", ".0", ".3"]),
    kind=st.sampled_from("sdiufgexXroEFG"),
    value=st.one_of(st.integers(-(2**40), 2**40), st.floats(allow_nan=False), st.text("ab")),
)
def test_a_percent_format_is_the_same_as_a_formatted_string(
    flags: str, width: str, digits: str, kind: str, value: object
) -> None:
    text = f"<%{flags}{width}{digits}{kind}>"
    if kind in "diuoxX" and (digits or not isinstance(value, int)):
        return  # of these Python's two ways differ, and one of them is refused
    if kind in "fegEFG" and isinstance(value, str):
        return
    node = ast.parse(f"{text!r} % value", mode="eval").body
    made = as_joined(node, lambda callee: False, lambda part: False)
    assert made is not None
    expression = ast.fix_missing_locations(ast.Expression(made))
    assert eval(compile(expression, "made", "eval"), {"value": value}) == text % value


@pytest.mark.parametrize(
    "text",
    [
        "'%(a)s' % d",
        "'%d %d' % n",
        "'%c' % n",
        "'%*d' % (n, n)",
        "'{1} {0}'.format(f(a), b)",
        "'{0} {0}'.format(a.pop())",
        "'{1}'.format(a)",
    ],
)
def test_what_is_written_in_other_ways_is_left_alone(text: str) -> None:
    node = ast.parse(text, mode="eval").body
    assert as_joined(node, lambda callee: False, lambda part: False) is None


def _with_stars(state, event, emit):
    state.n += event.x
    pair = (event.x, state.n)
    emit(*pair, f"{state.n} after a star", event.k)
    emit(*pair, k=event.k, text=str(state.n))
    emit(*(event.x, *(state.n, "in %d" % state.n)), event.k)
    emit(*divmod(state.n, 3), "of " + str(state.n), event.k)
    emit(*[x + state.n for x in range(event.x % 2 + 2)], f"{state.n} of a list", event.k)
    line = f"{state.n}: {event.k}"
    emit(*(event.x, state.n, line), event.k)
    emit(*pair, line, *(event.k,))
    try:
        emit(*pair, str(state.seen[event.k]), event.k)
    except KeyError as error:
        emit(*pair, str(error), event.k)
    state.seen[event.k] = state.n


def test_texts_behind_a_star_are_emitted_into_their_columns() -> None:
    class Stars(ss.State):
        n = ss.scalar(int)
        seen = ss.dict(str, int)

    emits = {"x": int, "n": int, "text": str, "k": str}
    stars = ss.operator(state=Stars, event={"x": int, "k": str}, emits=emits)(_with_stars)
    table = pa.table({"x": [4, 2, 6, -2], "k": ["a", "b", "a", "Öl"]})
    state, rows = types.SimpleNamespace(n=0, seen={}), []

    def emit(*values: object, **named: object) -> None:
        rows.append({**dict(zip(emits, values, strict=False)), **named})

    for row in table.to_pylist():
        _with_stars(state, types.SimpleNamespace(**row), emit)
    with ss.Engine(stars, threads=2) as engine:
        assert engine.process(table).to_pylist() == rows
    assert stars.run_sequential(table).output.to_pylist() == rows


def test_a_text_between_stars_of_unknown_lengths_is_refused() -> None:
    def unknown(state, event, emit):
        xs = [event.x, state.n][: event.x]
        emit(*xs, f"{state.n}", *xs)

    with pytest.raises(ss.CompileError, match=r"text of the state between two stars.*x\[0\]"):
        ss.operator(state=S, event={"x": int}, emits={"s": str, "t": str, "u": str})(unknown)


@pytest.mark.parametrize("way", ["percent", "f-string"])
def test_an_int_s_format_of_a_float_is_refused_as_it_is_written(way):
    def percent(state, event, emit):
        state.y += event.x
        emit("%d" % state.y)

    def joined(state, event, emit):
        state.y += event.x
        emit(f"{state.y:d}")

    function = percent if way == "percent" else joined
    operator = ss.operator(state=S, event={"x": int}, emits={"s": str})(function)
    with pytest.raises(ss.CompileError, match=r"int\(x\), which cuts off") as refused:
        ss.Engine(operator).close()
    told = "%d' % state.y that is emitted: %d of a float, which is for ints here"
    assert (told in str(refused.value)) == (way == "percent")
    assert ("Unknown format code" in str(refused.value)) == (way != "percent")
