"""Names and helpers with ints here and floats there: Python's number and text, or a refusal."""

# Operators carry no types, as those of users do not; some are wrong on purpose.
# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs

# Each of Python's ways to write a text.
# ruff: noqa: UP031, UP032

from __future__ import annotations

import math
import random
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from conftest import assert_identical, run_engine, run_oracle
from support import generated, witness
from support.generated import numbers as number_programs

import specstream as ss

RATES = {"a": 1, "b": 2.5}
LARGE = (1 << 53) + 1


class S(ss.State):
    n = ss.scalar(int)
    x = ss.scalar(float)
    on = ss.scalar(bool)
    d = ss.dict(int, float)
    names = ss.dict(int, str)
    counts = ss.dict(int, int)
    pairs = ss.dict((int, str), int)
    seen = ss.set(int)


EVENT = {"id": int, "x": float, "what": int}
TABLE = pa.table(
    {
        "id": [7, LARGE, -LARGE - 2, 0] * 6,
        "x": [0.5, -1.5, 4.0, 0.0] * 6,
        "what": [what for what in range(6) for _ in range(4)],
    }
)


def operator(function: Any) -> Any:
    emits = {"text": str, "odd": bool, "y": float}
    return ss.operator(state=S, event=EVENT, emits=emits)(function)


def agree(function: Any) -> None:
    """Engine, oracle and plain Python see the same at every event."""
    made = operator(function)
    assert witness.assert_agrees(made, TABLE) == TABLE.num_rows
    assert_identical(run_engine(made, TABLE), run_oracle(made, TABLE))


# ---- one name ----


def used_again(state, event, emit):
    total = 0
    total += event.id
    emit(f"{total} of {state.n}", total % 2 == 1, total == event.id)
    total = total / 4
    emit(f"{total} of {state.n}", total > 1, total)
    value = event.id
    if event.what == 0:
        value += 1
        emit(f"{value} {state.n}", value % 2 == 0, 0.0)
        value = event.x
    elif event.what == 1:
        emit(str(value) + f"/{state.n}", value & 1 == 1, 0.0)
        value = value * 0.5
        emit("%s|%s" % (value, state.n), value > 1, value)
    value = state.x
    emit(f"{value}", value > 0, value)
    first, second = event.id, event.x
    emit(f"{first} {second} {state.n}", first % 2 == 1, second)
    first, second = second, first
    emit(f"{first} {second} {state.n}", second % 2 == 1, first)
    try:
        last = event.id
        emit(f"{last} {state.n}", last % 2 == 1, 10 // event.what)
    except ZeroDivisionError:
        last = 0.5
        emit(f"{last} {state.n}", True, last)
    while True:
        turn = event.id
        emit(f"{turn} {state.n}", turn % 2 == 1, 0.0)
        turn = 1.5
        break
    emit(f"{turn} {state.n}", (step := event.id) % 2 == 1, turn)
    emit(f"{step} {state.n}", step % 2 == 1, 0.0)
    state.x += event.x


def test_a_name_that_is_used_again_for_another_number() -> None:
    agree(used_again)


def beside_floats(state, event, emit):
    found = {0: 1.5, 2: 2.5}.get(event.what, 0)
    emit("one", found > 1, found)
    emit("two", found < 2, {0: event.x, 1: 2.5}.setdefault(event.what, 7) + 0.0)


def test_a_default_beside_the_floats_of_a_dict_that_is_written_out() -> None:
    agree(beside_floats)


# ---- helpers for both ----


def summed(xs):
    t = 0
    for x in xs:
        t += x
    return t


def relu(v, least=0):
    return v if v > least else 0


def of_relu(v):
    return relu(v) + relu(v + 1)


clamped = lambda v: max(0, v)  # noqa: E731


def for_both(state, event, emit):
    def plus(a, b=0):
        r = 0
        if a != 0:
            r += a
        return r

    def twice(a):
        def again(b):
            return plus(b) + plus(b)

        return again(a)

    def checked(a):
        if a > 1e300:
            raise ValueError(f"{a} is too large")
        return a

    least = lambda v: min(0, v)  # noqa: E731

    n, x = event.id, event.x
    emit(f"{plus(n)} {state.n}", plus(n) % 2 == 1, plus(x))
    emit(f"{twice(n // 2)} {state.n}", twice(n // 2) % 2 == 1, twice(x) + plus(state.x))
    emit(f"{least(n)} {state.n}", least(n) % 2 == 1, least(x) + least(state.x))
    emit(f"{checked(n)} {checked(x)} {state.n}", checked(n) % 2 == 1, checked(x))
    emit(f"{summed([n, 1])} {state.n}", summed([n, 1]) % 2 == 1, summed([x, 1.0]))
    emit(f"{relu(n)} {state.n}", relu(n) % 2 == 1, relu(x))
    emit(f"{of_relu(n // 2)} {state.n}", of_relu(n // 2) % 2 == 1, of_relu(x))
    emit(f"{clamped(n)} {state.n}", clamped(n) % 2 == 1, clamped(x) + clamped(state.x))
    state.n += event.what
    state.x += x


def test_a_helper_that_is_called_with_ints_and_with_floats() -> None:
    agree(for_both)


# ---- refused where it would be seen, and as the message says to write it ----


def asked_of_a_helper(v):
    return v if v > 1.5 else 0


def branch(state, event, emit):
    total = 0
    if event.what > 2:
        total = event.x
    emit(f"{total}|{state.n}", True, 0.0)


def branch_mended(state, event, emit):
    total = 0.0
    if event.what > 2:
        total = event.x
    emit(f"{total}|{state.n}", True, 0.0)


def loop(state, event, emit):
    total = 0
    for step in range(event.what):
        total += state.x * step
    emit("sum " + str(total), True, total)
    state.x += event.x


def loop_mended(state, event, emit):
    total = 0.0
    for step in range(event.what):
        total += state.x * step
    emit("sum " + str(total), True, total)
    state.x += event.x


def greatest(state, event, emit):
    emit("%s" % max(0, state.x), True, 0.0)
    state.x = event.x


def greatest_mended(state, event, emit):
    emit("%s" % max(0.0, state.x), True, 0.0)
    state.x = event.x


def got(state, event, emit):
    emit("{} {}".format(state.d.get(event.what, 0), state.n), True, 0.0)
    state.d[event.what] = event.x


def got_mended(state, event, emit):
    emit("{} {}".format(state.d.get(event.what, 0.0), state.n), True, 0.0)
    state.d[event.what] = event.x


def listed(state, event, emit):
    values = [0]
    values.append(state.x)
    emit(f"{values[0]!r}", True, 0.0)
    state.x = event.x


def listed_mended(state, event, emit):
    values = [0.0]
    values.append(state.x)
    emit(f"{values[0]!r}", True, 0.0)
    state.x = event.x


def of_a_module(state, event, emit):
    emit(f"{RATES['a' if state.n > 2 else 'b']:>6}", True, 0.0)
    state.n += 1


def of_a_module_mended(state, event, emit):
    emit(f"{RATES['a' if state.n > 2 else 'b']:6.2f}", True, 0.0)
    state.n += 1


def returned(state, event, emit):
    emit(f"{asked_of_a_helper(state.x)}", True, 0.0)
    state.x = event.x


def returned_mended(state, event, emit):
    emit(f"{float(asked_of_a_helper(state.x))}", False, 0.0)
    state.x = event.x


def fallen_back(state, event, emit):
    emit(f"{max([x for x in (state.x, event.x) if x > 1], default=0)} {state.n}", True, 0.0)
    state.x = event.x


def fallen_back_mended(state, event, emit):
    emit(f"{max([x for x in (state.x, event.x) if x > 1], default=0.0)} {state.n}", True, 0.0)
    state.x = event.x


def raised(state, event, emit):
    worst = 0
    if state.x > 1:
        worst = state.x
    state.x += 1.5
    raise ValueError(worst)


def raised_mended(state, event, emit):
    worst = 0.0
    if state.x > 1:
        worst = state.x
    state.x += 1.5
    raise ValueError(worst)


def odd(state, event, emit):
    total = 0
    if event.what > 2:
        total += event.x
    total += event.id
    emit("", total % 2 == 1, total)


def odd_mended(state, event, emit):
    total = 0.0
    if event.what > 2:
        total += event.x
    total += event.id
    emit("", total % 2 == 1, total)


def same(state, event, emit):
    total = max(0, event.x)
    emit("", total + event.id == event.id, 0.0)


def same_mended(state, event, emit):
    total = max(0.0, event.x)
    emit("", total + event.id == event.id, 0.0)


REFUSED = [
    *((branch, branch_mended), (loop, loop_mended), (greatest, greatest_mended)),
    *((got, got_mended), (listed, listed_mended), (of_a_module, of_a_module_mended)),
    *((returned, returned_mended), (fallen_back, fallen_back_mended), (raised, raised_mended)),
    *((odd, odd_mended), (same, same_mended)),
]


@pytest.mark.parametrize(("function", "mended"), REFUSED, ids=lambda one: one.__name__)
def test_an_int_that_became_a_float_is_not_shown(function: Any, mended: Any) -> None:
    asked = "all digits of" if function in (odd, same) else "the text of"
    with pytest.raises(ss.CompileError, match=f"{asked} .* such as 0.0 for 0") as refused:
        operator(function)
    code = function.__code__
    lines = code.co_firstlineno, max(line for _, _, line in code.co_lines() if line)
    assert lines[0] < refused.value.line <= lines[1]
    if mended not in (raised_mended, returned_mended):
        assert witness.assert_agrees(operator(mended), TABLE) == TABLE.num_rows


def numbers(state, event, emit):
    """What is a number stays one; of some formats an int has the text of the float."""
    total = 0
    for step in range(event.what):
        total += state.x * step
    best = max(0, state.x, event.x)
    emit(f"{total:.2f} {best:8.3e} {best:+.1%} {state.n}", total > best, total / (1 + event.what))
    emit("%.3f" % total, total == 0, best + total)
    mean = total / event.what if event.what else 0
    emit(f"{mean:g}", mean == 0 or best > 1, math.sqrt(best) + state.d.get(event.what, 0))
    emit(f"{state.d.get(event.what, 0) + event.x} {sum([0, state.x])} {state.n}", True, mean * 2)
    emit(f"{int(best)} {total * 0.5} {state.n}", total < 10, [0, state.x][event.what % 2])
    state.d[event.what] = event.x
    state.x = event.x
    state.n += 1


def test_what_is_asked_for_as_a_number_goes_on() -> None:
    agree(numbers)


# ---- names that were None ----


def filled(state, event, emit):
    """Behind ``if x is None: x = 0`` it is a key, a part of a key, an element."""
    found = state.counts.get(event.what)
    if found is None:
        found = 5
    state.counts[found] = event.what
    state.pairs[found, "a"] = 1
    state.seen.add(found)
    emit(f"{found} {len(state.pairs)} {found in state.counts}", state.counts[found] > 1, 0.0)
    name = state.names.get(event.what)
    if name is None:
        state.n += 1
        name = "none"
    state.names[event.what % 2] = name
    local = {name: found}
    emit(f"{name} {len(local)}", local[name] == found, len(state.names))
    found = state.counts.get(9)
    if found is None:
        found = state.n + 1
    emit(f"{found}", state.counts.setdefault(found, 3) == 3, 0.0)


def test_a_name_that_was_none_and_is_filled() -> None:
    agree(filled)


def still_none(state, event, emit):
    found = state.counts.get(event.what)
    if found is None:
        found = state.counts.get(0)
    state.counts[found] = 1


def part_still_none(state, event, emit):
    found = state.counts.get(event.what)
    state.pairs[found, "a"] = 1


def none_mended(state, event, emit):
    found = state.counts.get(event.what)
    if found is None:
        found = state.counts.get(0)
    if found is not None:
        state.counts[found] = 1
        state.pairs[found, "a"] = 1
    state.counts[event.what // 2] = event.what
    state.pairs[int(state.counts[event.what // 2]), "b"] = 2


@pytest.mark.parametrize("function", [still_none, part_still_none])
def test_a_key_that_may_be_none_is_told_so(function: Any) -> None:
    with pytest.raises(ss.CompileError, match=r"a key of state\.\w+ gets a value that may be None"):
        run_engine(operator(function), TABLE)


def test_what_the_message_about_none_says_to_write_compiles() -> None:
    agree(none_mended)


# ---- what is given for want of another ----


class Kept(ss.State):
    d = ss.dict(int, float)
    c = ss.dict(int, int)
    pairs = ss.dict(int, (float, int))


def with_defaults(state, event, emit):
    emit("", False, -state.d.get(event.id, 0))
    emit("", False, -state.d.pop(event.what, 0))
    emit("", False, math.copysign(1.0, -state.d.get(-9, event.what)))
    emit("", False, state.d.get(-9, 10) ** 30)
    emit("", False, state.d.get(-9, 1 << 62) * (event.id % 8))
    emit("", False, state.d.get(-9, event.id))
    first, second = state.pairs.get(-9, (0, 0))
    emit("", second == 0, -first)
    first, second = state.pairs.pop(event.what, (event.what, 2))
    emit("", second == 2, -first * 0)
    emit(f"{state.c.get(-9, 1)}", state.c.get(-9, event.x > 0) == 1, -state.d.setdefault(8, 0))
    try:
        emit("", True, event.id / state.d.get(-9, 0))
    except ZeroDivisionError as error:
        emit(str(error), False, 0.0)
    try:
        emit("", True, state.d.get(-9, 0) ** -1)
    except ZeroDivisionError:
        emit("none", False, 0.0)
    state.d[event.what] = event.x
    state.pairs[event.what] = event.x, event.id


def test_a_default_has_the_type_of_the_values() -> None:
    emits = {"text": str, "odd": bool, "y": float}
    made = ss.operator(state=Kept, event=EVENT, emits=emits)(with_defaults)
    assert witness.assert_agrees(made, TABLE) == TABLE.num_rows
    found = run_engine(made, TABLE)
    assert_identical(found, run_oracle(made, TABLE))
    assert math.copysign(1.0, found.output["y"][0].as_py()) == -1.0


def test_a_raise_that_depends_on_a_default_is_the_oracles() -> None:
    def limited(state, event, emit):
        if state.d.get(event.id, 5_000_000_000) * event.what > 1e19:
            raise ValueError(f"{event.id} is over")
        emit("", False, 0.0)

    emits = {"text": str, "odd": bool, "y": float}
    made = ss.operator(state=Kept, event=EVENT, emits=emits)(limited)
    table = {"id": [1, 2], "x": [0.0, 0.0], "what": [3_000_000_000, 1]}
    with ss.Engine(made, errors="side") as engine:
        assert engine.process(table).num_rows == 1
        failed = engine.failed_events()
        assert failed is not None
        assert failed["message"].to_pylist() == ["1 is over"]


# ---- sums of no floats ----


class Recent(ss.State):
    xs = ss.list(float)
    a = ss.array(float, 3)


def total_of(xs):
    return sum(xs)


def of_nothing(state, event, emit):
    emit(f"{sum(state.xs[: event.what])} {sum(state.a[:0])} {sum(state.xs)}", False, 0.0)
    emit(f"{sum((x for x in state.xs if x > 2.5), 0)}", False, -sum(state.xs[1:]))
    emit(f"{sum((x for x in state.xs if x > 9), start=1)}", False, -total_of(state.xs[9:]))
    emit(f"{math.prod(x for x in state.xs if x > 9)}", False, math.prod(state.xs[:0]))
    emit("", False, -sum(filter(None, state.xs[:0])) - sum(islice(state.xs, 0)))
    emit(f"{sum(list(state.xs)[9:])} {sum(sorted(state.xs)[9:])}", False, -sum(state.xs[:0] * 2))
    kept = state.xs[: event.what]
    kept.clear()
    emit(f"{sum(kept)} {math.prod(kept)}", False, -sum(kept, 0))
    kept = [event.x]
    kept.pop()
    emit(f"{sum(kept)} {sum(reversed(kept))} {sum(kept[1:])}", False, -sum(abs(x) for x in kept))
    if event.what:
        state.xs.append(event.x)


def test_a_sum_of_no_floats_is_a_float() -> None:
    emits = {"text": str, "odd": bool, "y": float}
    made = ss.operator(state=Recent, event=EVENT, emits=emits)(of_nothing)
    found = run_engine(made, TABLE.slice(0, 12))
    assert_identical(found, run_oracle(made, TABLE.slice(0, 12)))
    assert found.output["text"][:2].to_pylist() == ["0.0 0.0 0.0", "0.0"]


def test_a_negation_is_an_integer_to_an_addition() -> None:
    def process(state, event, emit):
        emit("", (not event.x > 1.0) + event.id < 0, 0.0)

    table = pa.table({"id": [2**63 - 1] * 2, "x": [0.5, 2.0], "what": [0, 0]})
    found = run_engine(operator(process), table, horizon=0)
    assert found.output["odd"].to_pylist() == [True, False]
    assert_identical(found, run_oracle(operator(process), table))


# ---- None among what is searched ----


def searching(state, event, emit):
    k = event.k
    found = state.counts.get(event.id)
    emit("", event.k in (1, None), 0.0)
    emit("", k in [1, None], 0.0)
    emit("", event.k not in {1, None} and event.id > 0, 0.0)
    emit("", event.u in ("a", None), 0.0)
    emit("in" if event.u not in ("b", None) else "out", k not in (None,), 0.0)
    emit("", found in (1, None) or k not in (None, 2, 1), 0.0)
    emit("", event.id in (7, None) and state.n in (0, None), 0.0)
    state.counts[event.id] = event.id


def asking(state, event, emit):
    emit("", bool(event.u), 1.0 if (u := event.u) else 0.0)
    emit("", (k := event.k) == 1, 1.0 if k is None else 0.0)
    emit("" if u is None else "text", not u, 0.0)


def test_a_null_is_false_and_stays_none_under_a_name() -> None:
    event = {"k": ss.nullable(int), "u": ss.nullable(str)}
    emits = {"text": str, "odd": bool, "y": float}
    made = ss.operator(state=S, event=event, emits=emits)(asking)
    table = pa.table({"k": [None, 1, 0, 2], "u": [None, "a", "b", ""]})
    assert witness.assert_agrees(made, table, are_none=True) == table.num_rows
    assert_identical(run_engine(made, table), run_oracle(made, table))


def test_a_null_is_found_where_none_is_searched_for() -> None:
    event = {"id": int, "k": ss.nullable(int), "u": ss.nullable(str)}
    emits = {"text": str, "odd": bool, "y": float}
    made = ss.operator(state=S, event=event, emits=emits)(searching)
    table = pa.table({"id": [7, 1, 1, 7], "k": [None, 1, 0, 2], "u": [None, "a", "b", ""]})
    assert witness.assert_agrees(made, table, are_none=True) == table.num_rows
    found = run_engine(made, table)
    assert_identical(found, run_oracle(made, table))
    assert found.output["odd"][:4].to_pylist() == [True, True, False, True]


# ---- random programs ----

EVENTS = pa.table(
    {
        "n": [7, 0, LARGE, -LARGE - 2, 3, -1],
        "x": [0.5, -1.5, 2.0, 0.0, -0.25, 1e16],
        "on": [True, False] * 3,
        "k": [0, 1, 2, 1, 3, 2],
    }
)


def taken(numbers: range, folder: Path, every: int) -> tuple[int, int]:
    """How many programs were taken, and how many of their events are Python's; each ``every``-th is
    run by an engine as well."""
    count = kept = 0
    for number in numbers:
        text = number_programs.Writer(random.Random(number)).program(3 + number % 6)
        try:
            made = generated.load(text, folder, 20_000_000 + number)
            if number % every == 0:
                found = run_engine(made, EVENTS, seed=1)
        except ss.CompileError:
            continue
        if number % every == 0:
            assert_identical(found, run_oracle(made, EVENTS, seed=1))
        try:
            kept += witness.assert_agrees(made, EVENTS, 1)
        except AssertionError:
            # What the types of compiled code refuse is found when it is compiled.
            with pytest.raises(ss.CompileError):
                run_engine(made, EVENTS)
            continue
        count += 1
    return count, kept


def test_random_programs_about_numbers_are_pythons(tmp_path: Path) -> None:
    count, kept = taken(range(60), tmp_path, 20)
    assert count > 30
    assert kept > 4 * count


@pytest.mark.long
@pytest.mark.slow
def test_many_random_programs_about_numbers_are_pythons(tmp_path: Path) -> None:
    taken(range(1000, 1600), tmp_path, 8)
