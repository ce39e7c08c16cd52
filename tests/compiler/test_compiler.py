"""What may stand in an operator, what is refused, and with which words."""

# Operators carry no types, as those of users do not; some are wrong on purpose.
# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
# mypy: disable-error-code=annotation-unchecked

from __future__ import annotations

import math
import os
import random
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import specstream as ss


class S(ss.State):
    n = ss.scalar(int)
    x = ss.scalar(float)
    q = ss.scalar(bool)
    a = ss.array(int, 8)
    m = ss.array(float, (2, 3))


EXTENDED = np.longdouble(1.5)
DURATION = np.timedelta64(5, "s")
LIST = [1, 2]
TABLE = np.arange(3)


def recursive(n):
    return recursive(n - 1) if n > 0 else 0


def uses_random(state, event, emit):
    state.n = random.randint(0, 5)


def uses_time(state, event, emit):
    state.x = time.time()


def prints(state, event, emit):
    print(event.i)


def undefined(state, event, emit):
    if event.i > 0:
        y = 1
    state.n = y


def undefined_after_loop(state, event, emit):
    for k in range(event.i):
        state.n += k
    state.n = k


def two_types(state, event, emit):
    y = event.i
    if event.i > 0:
        y = 0.5
    state.x = y


def two_types_in_a_loop(state, event, emit):
    total = event.i
    for _ in range(5):
        total += event.f
    state.x = total


def two_types_returned(state, event, emit):
    state.x = either(event.i)


def either(n):
    if n > 0:
        return n
    return 0.5


def global_list(state, event, emit):
    LIST[0] = 1


def global_array(state, event, emit):
    TABLE[0] = 1


def calls_itself(state, event, emit):
    state.n = recursive(event.i)


def numpy_function(state, event, emit):
    state.x = np.exp(event.f)


def missing_math(state, event, emit):
    state.x = math.fma(state.x, event.f, 1.0)


def float_into_int(state, event, emit):
    state.n = event.f


def float_element_into_int(state, event, emit):
    state.a[0] = event.f * 2.0


def int_into_bool(state, event, emit):
    state.q = event.i


def emits_float_as_int(state, event, emit):
    emit(event.f, event.f)


def emits_too_little(state, event, emit):
    emit(event.i)


def emits_unknown(state, event, emit):
    emit(i=1, g=2.0)


def unknown_field(state, event, emit):
    state.n = state.total


def unknown_column(state, event, emit):
    state.n = event.price


def replaces_array(state, event, emit):
    state.a = 5


def bool_index(state, event, emit):
    state.n = state.a[event.i > 3]


def too_many_indices(state, event, emit):
    state.n = state.a[1, 2]


def mixes_unsigned(state, event, emit):
    state.n = np.int64(event.random_bits(0) + event.i)


def inverts_bool(state, event, emit):
    state.n = int(~event.b)


def rounds(state, event, emit):
    state.x = round(state.x, 2.5)


def returns(state, event, emit):
    return event.i


def huge(state, event, emit):
    state.n = 2**3 + 18446744073709551616


def is_number(state, event, emit):
    if state.n is 1:  # noqa: F632
        state.n = 1


def undeclared(state, event, emit):
    state.n = nowhere + 1  # noqa: F821


def truth_of_an_array(state, event, emit):
    if state.a:
        state.n = 1


def truth_of_a_row(state, event, emit):
    state.q = event.b and not state.m[0]


def truth_of_the_state(state, event, emit):
    state.n = 1 if state else 2


def goes_through_a_number(state, event, emit):
    for _ in event.i:
        state.n += 1


def item_of_a_number(state, event, emit):
    state.n = event.i[0]


def attribute_of_an_array(state, event, emit):
    state.n = state.a.size


def int_here_array_there(state, event, emit):
    y = state.a if event.b else 1
    emit(y, event.f)


def length_of_nothing(state, event, emit):
    state.n = len()


def format_outside_raise(state, event, emit):
    state.n = f"{state.n}"


def extended(state, event, emit):
    state.x = EXTENDED


def duration(state, event, emit):
    state.n = state.n + (event.i + DURATION)


def annotates_an_element(state, event, emit):
    state.a[0]: int


REFUSED: list[tuple[Callable[..., None], int, str]] = [
    (uses_random, 1, "module 'random'.*event.random"),
    (uses_time, 1, "module 'time'.*event.timestamp"),
    (prints, 1, r"print\(\).*run_sequential"),
    (undefined, 3, "'y' may be undefined.*assign 'y'"),
    (undefined_after_loop, 3, "'k' may be undefined"),
    (two_types, 1, "y is (int|float) here and (int|float) elsewhere.*write 0.0 for 0"),
    (two_types_in_a_loop, 1, r"total is .* elsewhere.*float\(x\) for an int x"),
    (two_types_returned, 0, "here and .* elsewhere.*so that it is a float everywhere"),
    (global_list, 1, r"list.* of a module is frozen.*list\(x\)"),
    (global_array, 1, "array of a module is frozen.*copy it first"),
    (calls_itself, 0, "'recursive' calls itself.*loop"),
    (numpy_function, 1, r"np\.exp.*last bit.*math\.exp"),
    (missing_math, 1, r"math\.fma is not supported.*sqrt"),
    (float_into_int, 1, r"field 'n' is declared int and gets float64.*int\(x\)"),
    (float_element_into_int, 1, r"declared int and gets float64.*int\(x\)"),
    (int_into_bool, 1, "field 'q' is declared bool and gets int64.*x != 0"),
    (emits_float_as_int, 1, "column 'i' is declared int and gets float64"),
    (emits_too_little, 1, r"emit lacks 'f'.*expected emit\(i, f\)"),
    (emits_unknown, 1, r"emit has no column 'g'.*expected emit\(i, f\)"),
    (unknown_field, 1, "state 'S' has no field 'total'.*n, x, q, a, m"),
    (unknown_column, 1, "no column 'price'.*it has i, f, b"),
    (replaces_array, 1, r"field 'a' is an array.*state\.a\[i\]"),
    (bool_index, 1, "an index has type bool"),
    (too_many_indices, 1, "2 indices for an array of 1 axes"),
    (mixes_unsigned, 1, r"uint64.*np\.uint64\(x\)|np\.int64\(x\)"),
    (inverts_bool, 1, "~.*not x"),
    (rounds, 1, r"round takes a number of digits.*int\(n\)"),
    (returns, 0, "returns a value.*emit"),
    (huge, 1, "does not fit 64 bits"),
    (is_number, 1, "`is` of anything but None, True and False.*=="),
    (undeclared, 1, "name 'nowhere' is not defined"),
    (truth_of_an_array, 1, r"array has no truth.*len\(x\)"),
    (truth_of_a_row, 1, r"an array"),
    (truth_of_the_state, 1, "the state has no truth.*a field"),
    (goes_through_a_number, 1, r"int64 cannot be iterated over.*range"),
    (item_of_a_number, 1, "an item of int64 cannot be read by 0"),
    (attribute_of_an_array, 1, "an array has no attribute 'size'"),
    (int_here_array_there, 1, "a value is .* here and .* elsewhere.*one type"),
    (length_of_nothing, 1, r"len takes one array, got 0.*len\(x\)"),
    (format_outside_raise, 1, "a formatted string"),
    (extended, 1, "'EXTENDED' is longdouble.*use numbers"),
    (duration, 1, "DURATION is computed by Python.*annotate"),
    (annotates_an_element, 1, "an annotation without a value.*leave the line out"),
]


@pytest.mark.parametrize(
    ("function", "line", "message"), REFUSED, ids=lambda x: getattr(x, "__name__", "")
)
def test_what_cannot_be_compiled_is_refused_with_its_line_and_a_way_out(
    function: Callable[..., None], line: int, message: str
) -> None:
    with pytest.raises(ss.CompileError, match=f"(?s){message}") as caught:
        ss.Engine(
            ss.operator(
                state=S, event={"i": int, "f": float, "b": bool}, emits={"i": int, "f": float}
            )(function),
            threads=2,
        )
    error = caught.value
    assert error.operator == function.__name__
    assert error.filename == __file__
    if line:
        assert error.line == function.__code__.co_firstlineno + line


def test_a_function_without_source_is_refused() -> None:
    namespace: dict[str, Callable[..., None]] = {}
    exec("def nowhere_written(state, event, emit):\n    state.n += 1", namespace)
    with pytest.raises(ss.CompileError, match="source of 'nowhere_written' cannot be read"):
        ss.operator(state=S, event={})(namespace["nowhere_written"])
    exec("nowhere_named = [lambda state, event, emit: None][0]", namespace)
    with pytest.raises(ss.CompileError, match="source of '<lambda>' cannot be read"):
        ss.operator(state=S, event={})(namespace["nowhere_named"])


def test_a_lambda_may_be_an_operator() -> None:
    made = ss.operator(state=S, event={}, emits={"n": int}, name="one")(
        lambda state, event, emit: emit(state.n + 1)
    )
    assert made.run_sequential({"time": [1]}, order_by="time").output.to_pylist() == [{"n": 1}]


@pytest.mark.parametrize("function", [print, 5, S])
def test_what_is_no_plain_function_is_refused(function: object) -> None:
    with pytest.raises(ss.DeclarationError, match="plain function"):
        ss.operator(state=S, event={})(function)  # type: ignore[arg-type]


def test_the_number_of_parameters_is_checked() -> None:
    with pytest.raises(ss.DeclarationError, match=r"exactly three parameters"):
        ss.operator(state=S, event={})(either)


I8, I16, I32, I64 = np.int8(-3), np.int16(-300), np.int32(2**31 - 1), np.int64(-(2**63))
U8, U16, U32, U64 = np.uint8(200), np.uint16(2**16 - 1), np.uint32(2**32 - 1), np.uint64(2**64 - 1)
LONGLONG, ULONGLONG = np.longlong(2**62), np.ulonglong(2**63 + 1)
F16, F32, F64, B = np.float16(0.1), np.float32(0.1), np.float64(0.1), np.bool_(True)
SMALL = (np.uint8(1), np.int64(2), 3)


@ss.operator(state=S, event={"i": int, "f": float}, emits={"n": int, "x": float})
def constants_of_numpy(state, event, emit):
    # None of these would compile if a type were another: uint64 does not mix with int64.
    emit(I8 - event.i, F16 * event.f)
    emit(I16 - event.i, F32 * event.f)
    emit(I32 - event.i, F64 * event.f)
    emit(U8 - event.i, float(U64))
    emit(U16 - event.i, float(ULONGLONG))
    emit(U32 - event.i, float(I64))
    emit(LONGLONG - event.i, float(B & (event.f > 0.0)))
    emit(np.int64(U64 - np.uint64(event.i)), 0.0)
    emit(np.int64(ULONGLONG - np.uint64(event.i)), 0.0)
    emit(SMALL[event.i % 3] - event.i, 0.0)


def test_a_constant_of_numpy_widens_as_an_element_of_its_type_does() -> None:
    table = {"i": [250], "f": [3.0]}
    expected = constants_of_numpy.run_sequential(table).output
    integers: list[Any] = [I8, I16, I32, U8, U16, U32, LONGLONG]
    assert expected["n"].to_pylist()[:7] == [int(one) - 250 for one in integers]
    assert expected["n"].to_pylist()[7:] == [-251, 2**63 - 249, 2 - 250]
    floats = [float(F16) * 3.0, float(F32) * 3.0, float(F64) * 3.0, 2.0**64, 2.0**63, -(2.0**63)]
    assert expected["x"].to_pylist()[:7] == [*floats, 1.0]
    with ss.Engine(constants_of_numpy, horizon=0) as engine:
        assert engine.process(table).equals(expected)


def make_adder(k: int) -> ss.Operator:
    def adder(state, event, emit):
        state.n += k
        emit(state.n)

    return ss.operator(state=S, event={"i": int}, emits={"n": int})(adder)


def test_closures_are_frozen_and_told_apart() -> None:
    for k in (1, 10):
        operator = make_adder(k)
        with ss.Engine(operator, horizon=0) as engine:
            assert engine.process({"i": [0, 0]})["n"].to_pylist() == [k, 2 * k]
    assert operator.function.__name__ == "adder"


def test_globals_are_frozen_at_decoration(tmp_path: Path) -> None:
    module = tmp_path / "frozen.py"
    module.write_text(
        textwrap.dedent("""
        import specstream as ss
        K = 1
        class S(ss.State):
            n = ss.scalar(int)
        def helper():
            return K
        @ss.operator(state=S, event={"i": int}, emits={"n": int})
        def add(state, event, emit):
            state.n += helper() + K
            emit(state.n)
        K = 100
    """)
    )
    sys.path.insert(0, str(tmp_path))
    try:
        import frozen
    finally:
        sys.path.remove(str(tmp_path))
    assert frozen.add.run_sequential({"i": [0]}).output["n"].to_pylist() == [2]
    with ss.Engine(frozen.add, horizon=0) as engine:
        assert engine.process({"i": [0]})["n"].to_pylist() == [2]


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ({"a": 5}, "attribute 'a', which is no field"),
        ({}, "declares no state field"),
        ({"t": ss.scratch(int, 3)}, "declares no state field"),
        ({"a": ss.array(bytes, 3)}, "field 'a' has type bytes; expected one of int, float, bool"),
        ({"a": ss.array(int, 0)}, "shape"),
        ({"a": ss.array(int, 3, fill=0.5)}, "fill 0.5; expected a value of type int"),
        ({"a": ss.array(int, 3, fill=2**63)}, "outside of int64"),
    ],
)
def test_a_bad_state_is_refused(declared: dict[str, object], message: str) -> None:
    bad: Any = type("Bad", (ss.State,), declared)
    with pytest.raises(ss.DeclarationError, match=message):
        bad.layout()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"state": int, "event": {}}, "state= is"),
        ({"state": S, "event": {"a b": int}}, "'a b'.*identifier"),
        ({"state": S, "event": {"timestamp": int}}, "'timestamp', which every event has"),
        ({"state": S, "event": {"i": list}}, "event column 'i' has type list"),
        ({"state": S, "event": ["i"]}, "event= is list; expected a dict"),
    ],
)
def test_a_bad_schema_is_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ss.DeclarationError, match=message):
        ss.operator(**options)(prints)  # type: ignore[arg-type]


CACHED = """
    import sys, time
    import specstream as ss
    from specstream.compiler import cache
    class S(ss.State):
        n = ss.scalar(int)
    @ss.operator(state=S, event={{"i": int}}, emits={{"n": int}})
    def op(state, event, emit):
        state.n += {step}
        if state.n == 1000:
            raise ValueError
        emit(state.n)
    with ss.Engine(op, threads=2) as engine:
        print(engine.process({{"i": [0, 0]}})["n"].to_pylist())
        if {step} == 500:
            try:
                engine.process({{"i": [0, 0]}})
            except ValueError:
                print("raised")
"""


@pytest.mark.slow
def test_compiled_code_is_kept_on_disk_and_an_edit_is_noticed(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    script = tmp_path / "script.py"

    def run(step: int) -> str:
        script.write_text(textwrap.dedent(CACHED).format(step=step))
        environment = {**os.environ, "SPECSTREAM_CACHE_DIR": str(folder)}
        return subprocess.run(
            [sys.executable, str(script)],
            env=environment,
            check=True,
            text=True,
            capture_output=True,
        ).stdout

    assert run(1) == "[1, 2]\n"
    entries = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert len(entries) == 2
    assert run(1) == "[1, 2]\n"
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == entries
    assert run(3) == "[3, 6]\n"
    assert len(list(folder.iterdir())) == 4
    for path in folder.iterdir():
        path.write_bytes(path.read_bytes()[:-7] + b"garbage")
    assert run(3) == "[3, 6]\n"
