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


def less(left, right):
    return left < right


def below(state, event, emit):
    state.q = event.s < "m"


def between(state, event, emit):
    state.q = "a" <= event.s <= "m"


def below_in_a_function(state, event, emit):
    state.q = less(event.s, event.t)


def above_a_number(state, event, emit):
    state.q = event.k >= event.s


def greatest(state, event, emit):
    emit(max(event.s, "m"), 1)


def least_of_three(state, event, emit):
    emit(min(event.s, event.t, WORD), 1)


def kept_maximum(state, event, emit):
    maximum(state, "n", event.s)


def truth(state, event, emit):
    if event.s:
        state.n = 1


def truth_of_a_name(state, event, emit):
    name = event.s
    while name:
        name = ""


def truth_of_a_literal(state, event, emit):
    state.n = 1 if "" else 2


def truth_by_bool(state, event, emit):
    state.q = bool("")


def negated(state, event, emit):
    state.q = not event.s


def both(state, event, emit):
    state.q = event.s and event.k > 1


def either(state, event, emit):
    emit(event.s or "nobody", 1)


def asserted(state, event, emit):
    assert event.s, "empty"


def joined(state, event, emit):
    emit(event.s + event.t, 1)


def repeated(state, event, emit):
    emit(event.s * 2, 1)


def formatted(state, event, emit):
    state.n = event.s % 8


def subtracted(state, event, emit):
    state.n = event.s - 1


def divided(state, event, emit):
    state.x = event.s / 2


def halved(state, event, emit):
    state.n = event.s // 2


def powered(state, event, emit):
    state.n = event.k**event.s


def negative(state, event, emit):
    state.n = -event.s


def inverted(state, event, emit):
    state.n = ~event.s


def augmented(state, event, emit):
    name = event.s
    name += "x"
    emit(name, 1)


def added_to_a_field(state, event, emit):
    state.n += event.s


def added_to_a_row(state, event, emit):
    state.a[1:3] += event.s


def added_commutatively(state, event, emit):
    add(state.a, 1, event.s)


def whole(state, event, emit):
    state.n = int(event.s)


def whole_literal(state, event, emit):
    state.n = int("12")


def real(state, event, emit):
    state.x = float(event.s)


def real_global(state, event, emit):
    state.x = float(WORD)


def numpy_whole(state, event, emit):
    state.n = np.int64(event.s)


def absolute(state, event, emit):
    state.n = abs(event.s)


def rounded(state, event, emit):
    state.n = round(event.s)


def root(state, event, emit):
    state.x = math.sqrt(event.s)


def length(state, event, emit):
    state.n = len(event.s)


def element(state, event, emit):
    emit(event.s[0], 1)


def part(state, event, emit):
    emit(event.s[:2], 1)


def letters(state, event, emit):
    for letter in event.s:
        emit(letter, 1)


def substring(state, event, emit):
    state.q = "a" in event.s


def as_an_index(state, event, emit):
    state.n = state.a[event.s]


def as_a_stored_index(state, event, emit):
    state.a[event.s] = 1


def as_a_slice(state, event, emit):
    state.a[: event.s] = 1


def as_a_bound(state, event, emit):
    for _ in range(event.s):
        state.n += 1


def as_a_draw(state, event, emit):
    state.x = event.random(event.s)


def into_float(state, event, emit):
    state.x = event.s


def into_floats(state, event, emit):
    state.f[0] = event.s


def into_bool(state, event, emit):
    state.q = event.s


def into_narrow(state, event, emit):
    state.w = event.s


def into_uint(state, event, emit):
    state.u = event.s


def emitted_as_a_number(state, event, emit):
    emit(event.s, event.s)


def equal_to_a_float(state, event, emit):
    state.q = event.s == state.x


REFUSED: list[tuple[Callable[..., None], str]] = [
    *((one, "order") for one in (below, between, below_in_a_function, above_a_number)),
    *((one, "order") for one in (greatest, least_of_three)),
    *((one, r'write x != ""') for one in (truth, truth_of_a_name, truth_of_a_literal)),
    *((one, r'write x != ""') for one in (truth_by_bool, negated, both, either, asserted)),
    *((one, "column of the table") for one in (joined, repeated, augmented)),
    *((one, "bits") for one in (formatted, subtracted, divided, halved)),
    *((one, "bits") for one in (negative, inverted, added_to_a_field, added_to_a_row)),
    *((one, "string") for one in (added_commutatively, kept_maximum)),
    *((one, "column of the table") for one in (whole, whole_literal, real, real_global)),
    *((one, "column of the table") for one in (numpy_whole, absolute, rounded, root)),
    *((one, "column of the table") for one in (length, element, part, letters, substring)),
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
    operator = declared(function)

    def use() -> object:
        if compiled:
            return ss.Engine(operator, horizon=0)
        return operator.run_sequential({"s": ["b"], "t": ["a"], "k": [2]}, on_error="skip")

    with pytest.raises(ss.CompileError, match=message) as caught:
        use()
    error = caught.value
    assert "string" in str(error)
    assert error.filename == __file__
    first = function.__code__.co_firstlineno
    assert error.line in range(first + 1, first + 4) or function is below_in_a_function


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
