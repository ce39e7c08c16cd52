"""A string is a string and not the number that stands for it: what would compute with codes where
Python computes with texts is refused, in compiled code and in the sequential run alike."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from conftest import Path, assert_identical, run_oracle
from support import witness

import specstream as ss
from specstream.columns.strings import string_code
from specstream.structures import add, maximum

NAMES = ("one", "two")
WORD = "word"


class S(ss.State):
    n = ss.scalar(int)
    x = ss.scalar(float)
    q = ss.scalar(bool)
    w = ss.scalar(np.int32)
    u = ss.scalar(np.uint64)
    a = ss.array(int, 8)
    f = ss.array(float, 8)


EVENT: dict[str, Any] = {"s": str, "t": ss.nullable(str), "k": int}


def declared(function: Callable[..., None], **emits: Any) -> ss.Operator:
    return ss.operator(state=S, event=EVENT, emits=emits or {"s": ss.nullable(str), "i": int})(
        function
    )


def mixed(state, event):
    """A string that is not of the event alone."""
    return event.s if state.n == 0 else WORD


def above_a_number(state, event, emit):
    state.q = event.k >= mixed(state, event)


def kept_maximum(state, event, emit):
    maximum(state, "n", mixed(state, event))


def joined(state, event, emit):
    emit(mixed(state, event) + event.t, 1)


def repeated(state, event, emit):
    emit(mixed(state, event) * 2, 1)


def formatted(state, event, emit):
    state.n = mixed(state, event) % 8


def subtracted(state, event, emit):
    state.n = mixed(state, event) - 1


def divided(state, event, emit):
    state.x = mixed(state, event) / 2


def halved(state, event, emit):
    state.n = mixed(state, event) // 2


def powered(state, event, emit):
    state.n = event.k ** mixed(state, event)


def negative(state, event, emit):
    state.n = -mixed(state, event)


def inverted(state, event, emit):
    state.n = ~mixed(state, event)


def augmented(state, event, emit):
    name = mixed(state, event)
    name += "x"
    emit(name, 1)


def added_to_a_field(state, event, emit):
    state.n += mixed(state, event)


def added_to_a_row(state, event, emit):
    state.a[1:3] += mixed(state, event)


def added_commutatively(state, event, emit):
    add(state.a, 1, mixed(state, event))


def whole(state, event, emit):
    state.n = int(mixed(state, event))


def real(state, event, emit):
    state.x = float(mixed(state, event))


def numpy_whole(state, event, emit):
    state.n = np.int64(mixed(state, event))


def absolute(state, event, emit):
    state.n = abs(mixed(state, event))


def rounded(state, event, emit):
    state.n = round(mixed(state, event))


def root(state, event, emit):
    state.x = math.sqrt(mixed(state, event))


def element(state, event, emit):
    emit(mixed(state, event)[0], 1)


def part(state, event, emit):
    emit(mixed(state, event)[:2], 1)


def letters(state, event, emit):
    for letter in mixed(state, event):
        emit(letter, 1)


def as_an_index(state, event, emit):
    state.n = state.a[mixed(state, event)]


def as_a_stored_index(state, event, emit):
    state.a[mixed(state, event)] = 1


def as_a_slice(state, event, emit):
    state.a[: mixed(state, event)] = 1


def as_a_bound(state, event, emit):
    for _ in range(mixed(state, event)):
        state.n += 1


def as_a_draw(state, event, emit):
    state.x = event.random(mixed(state, event))


def into_float(state, event, emit):
    state.x = mixed(state, event)


def into_floats(state, event, emit):
    state.f[0] = mixed(state, event)


def into_bool(state, event, emit):
    state.q = mixed(state, event)


def into_narrow(state, event, emit):
    state.w = mixed(state, event)


def into_uint(state, event, emit):
    state.u = mixed(state, event)


def emitted_as_a_number(state, event, emit):
    emit(mixed(state, event), mixed(state, event))


def equal_to_a_float(state, event, emit):
    state.q = mixed(state, event) == state.x


REFUSED: list[tuple[Callable[..., None], str]] = [
    (above_a_number, "order"),
    *((one, "event alone") for one in (joined, repeated, augmented)),
    *((one, "bits") for one in (formatted, subtracted, divided, halved)),
    *((one, "bits") for one in (negative, inverted, added_to_a_field, added_to_a_row)),
    *((one, "string") for one in (added_commutatively, kept_maximum)),
    *((one, "event alone") for one in (whole, real)),
    *((one, "event alone") for one in (numpy_whole, absolute, rounded, root)),
    *((one, "event alone") for one in (element, part, letters)),
    *((one, "string") for one in (as_an_index, as_a_stored_index, as_a_slice, as_a_bound)),
    *((one, "string") for one in (as_a_draw, into_float, into_floats, into_bool)),
    *((one, "string") for one in (into_narrow, into_uint, emitted_as_a_number)),
    *((one, "string") for one in (equal_to_a_float, powered)),
]


@pytest.mark.parametrize(
    ("function", "message"), REFUSED, ids=lambda one: getattr(one, "__name__", "")
)
@pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "sequential"])
def test_what_would_compute_with_the_code_of_a_string_is_refused(
    function: Callable[..., None], message: str, compiled: bool
) -> None:
    def use() -> object:
        operator = declared(function)
        if compiled:
            return ss.Engine(operator, horizon=0)
        return operator.run_sequential({"s": ["b"], "t": ["a"], "k": [2]}, on_error="skip")

    with pytest.raises(ss.CompileError, match=message) as caught:
        use()
    error = caught.value
    assert "string" in str(error)
    assert error.filename == __file__
    first = function.__code__.co_firstlineno
    assert error.line in range(first + 1, first + 4)


def hashes(state, event, emit):
    """What a string can do: be equal or not, be kept and emitted, and give its bits."""
    name = event.s
    chosen = name if event.k > 1 else WORD
    if name == "one" or name != event.t or chosen in NAMES:
        state.n = name
        state.a[(name ^ (name >> 33)) & 7] = chosen
    if state.n == name and name in state.a and "three" not in NAMES:
        emit(state.n, event.k)
    emit(None if event.is_null("t") else event.t, (event.t & 255) | (name << 3) ^ 1)
    emit(state.a[event.k & 7], 7 & name)


def test_strings_are_compared_kept_emitted_and_hashed(path: Path) -> None:
    table = pa.table(
        {
            "s": ["one", "two", "", "word", "ä", "one"] * 20,
            "t": ["one", None, "", "x", "two", "two"] * 20,
            "k": list(range(120)),
        }
    )
    operator = declared(hashes)
    found = path(operator, table)
    assert_identical(found, run_oracle(operator, table))
    assert found.raised == ()
    assert {"one", "two", "word", "ä", "", "x", None} == set(found.output["s"].to_pylist())
    assert string_code("one") & 7 in found.output["i"].to_pylist()


def truths(state, event, emit):
    """A string is true unless it is empty, wherever it comes from; a null is false."""
    name = mixed(state, event)
    found = 1 if name else 0
    if not name:
        found += 2
    if bool(name) and event.k >= 0:
        found += 4
    while name:
        found += 8
        name = ""
    if event.t or "":
        found += 16
    assert event.s or not event.s
    state.n = event.k & 1
    emit(mixed(state, event) or "nobody", found)
    emit(event.t and event.s, 1 if "" else 2)


def test_a_string_is_true_unless_it_is_empty(path: Path) -> None:
    table = pa.table({"s": ["", "one", ""] * 9, "t": ["", None, "x"] * 9, "k": list(range(27))})
    operator = declared(truths)
    found = path(operator, table)
    assert_identical(found, run_oracle(operator, table))
    assert {"nobody", "word", "one"} <= set(found.output["s"].to_pylist())
    assert witness.assert_agrees(operator, table) == 27


def numbers_in_texts(state, event, emit):
    emit(event.x, float("-inf"), float("inf") if event.x > float(" 1e3 ") else float("nan"))


def test_a_number_in_a_text_is_that_number(path: Path) -> None:
    operator = ss.operator(
        state=S, event={"x": float}, emits={"x": float, "low": float, "high": float}
    )(numbers_in_texts)
    output = path(operator, pa.table({"x": [1.0, 1001.0]})).output
    assert output["low"].to_pylist() == [-math.inf, -math.inf]
    assert math.isnan(output["high"][0].as_py())
    assert output["high"][1].as_py() == math.inf


def no_number(state, event, emit):
    state.x = float("ten")


def test_a_text_that_is_no_number_is_refused() -> None:
    with pytest.raises(ss.CompileError, match="'ten' is not a number"):
        ss.Engine(declared(no_number))
