"""Code that is nested deeper than the compiler can go is refused, by its line and a way out."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from conftest import assert_identical, run_engine, run_oracle
from numba.core.errors import LoweringError
from numba.core.typed_passes import NopythonTypeInference
from test_invalid import load

import specstream as ss

TABLE = pa.table({"a": [5, 7]})


class Numbers(ss.State):
    n = ss.scalar(int)


def operator_of(body: str, name: str, folder: Path) -> ss.Operator:
    text = f"def process(state, event, emit):\n{body}\n"
    function = load(text, name, folder).process
    return ss.operator(state=Numbers, event={"a": int}, emits={"r": int})(function)


def branches(count: int) -> str:
    asked = "".join(f"    elif state.n == {one}: r = {one}\n" for one in range(count))
    return f"    if state.n < 0: r = 0\n{asked}    else: r = -1\n    emit(r + event.a)"


def terms(count: int) -> str:
    return f"    emit({' + '.join(['event.a'] * count)})"


def choices(count: int) -> str:
    return f"    emit({''.join(f'{one} if event.a == {one} else ' for one in range(count))}-1)"


def helped(count: int) -> str:
    total = "\n        + ".join(["x"] * count)
    return f"    emit(total(event.a))\n\n\ndef total(x):\n    return (\n        {total}\n    )"


DEEP: dict[str, tuple[str, int, str]] = {
    "branches": (branches(400), 403, "a chain of 401 if and elif is"),
    "terms": (terms(400), 2, "a chain of 399 operators in one expression is"),
    "choices": (choices(400), 2, "a chain of 400 conditional expressions is"),
    "helper": (helped(400), 8, "a chain of 399 operators in one expression is"),
    "minuses": (f"    emit({'-' * 400}state.n)", 2, "code of 404 levels, one inside the other, is"),
    "methods": (
        f"    emit(len(f'{{event.a}}'{'.strip()' * 150}))",
        2,
        "calls and names, one inside the other, is",
    ),
}


@pytest.mark.parametrize("name", DEEP)
def test_deep_code_is_refused_by_its_deepest_line(name: str, tmp_path: Path) -> None:
    body, line, told = DEEP[name]
    with pytest.raises(ss.CompileError) as refused:
        operator_of(body, f"deep_{name}", tmp_path)
    assert refused.value.line == line
    assert refused.value.filename == str(tmp_path / f"deep_{name}.py")
    assert refused.value.operator == "process"
    assert f"{told} nested too deep to be compiled" in str(refused.value)
    assert "look the value up in a dict or list of the module" in str(refused.value)


def test_a_table_in_the_module_is_the_way_out_that_it_says(tmp_path: Path) -> None:
    table = f"TABLE = {dict.fromkeys(range(400), 3)}"
    body = f"    emit(TABLE.get(event.a, -1) + state.n)\n\n\n{table}"
    operator = operator_of(body, "deep_table", tmp_path)
    assert_identical(run_engine(operator, TABLE, horizon=0), run_oracle(operator, TABLE))


def with_calls_left(left: int, what: Callable[[], Any]) -> Any:
    """What a function gives that can go only so many calls deeper."""
    here = len(inspect.stack(0))
    return calls_deep(sys.getrecursionlimit() - here - left, what)


def calls_deep(depth: int, what: Callable[[], Any]) -> Any:
    return calls_deep(depth - 1, what) if depth > 0 else what()


def test_that_code_which_is_not_deep_is_not_to_blame(tmp_path: Path) -> None:
    text = f"def process(state, event, emit):\n{terms(9)}\n"
    function = load(text, "flat", tmp_path).process
    declare = ss.operator(state=Numbers, event={"a": int}, emits={"r": int})
    with pytest.raises(RecursionError) as raised:
        with_calls_left(40, lambda: declare(function))
    assert "Nothing in operator 'process' is nested deep" in "".join(raised.value.__notes__)


def runs_out(*args: Any) -> Any:
    """As Numba tells it, which may wrap it in an error of its own."""
    raise LoweringError("Failed in nopython mode pipeline\nmaximum recursion depth exceeded")


def test_deep_code_is_refused_as_such_when_the_engine_compiles_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = operator_of(branches(110), "deep_engine", tmp_path)
    flat = operator_of(terms(9), "flat_engine", tmp_path)
    monkeypatch.setattr(NopythonTypeInference, "run_pass", runs_out)
    with pytest.raises(ss.CompileError, match="a chain of 111 if and elif is nested") as refused:
        ss.Engine(deep).close()
    assert refused.value.line == 113
    with pytest.raises(RecursionError) as raised:
        ss.Engine(flat).close()
    assert "many calls deep" in "".join(raised.value.__notes__)
