"""An int that is emitted into a column of strings is refused, unless it may be a kept code."""

# Operators carry no types, as those of users do not; some are wrong on purpose.
# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs

from __future__ import annotations

import warnings
from pathlib import Path

import pyarrow as pa
import pytest
from conftest import assert_identical, run_engine, run_oracle
from test_invalid import load

import specstream as ss

HEADER = """
import specstream as ss


class State(ss.State):
    n = ss.scalar(int)
    label = ss.scalar(str)
    code = ss.scalar(int)
    pairs = ss.dict((int, str), int)


def count(state):
    return state.n


"""
EVENT = {"w": str, "k": int}
TABLE = {"w": ["ab", "c"], "k": [1, 2]}
REFUSED = """
emit(5)
emit(event.k)
emit(state.n)
emit(state.n + 1)
emit(len(event.w))
emit(count(state))
emit(t=state.n)
x = state.n; emit(x)
emit(event.k > 1)
state.code = event.w; emit(state.n + 1)
state.code = event.w; emit(len(event.w))
state.code = event.w; emit(event.k)
"""


def declared(text: str, folder: Path) -> ss.Operator:
    body = "".join(f"    {line}\n" for line in text.split("; "))
    module = load(f"{HEADER}def process(state, event, emit):\n{body}", "kept", folder)
    return ss.operator(state=module.State, event=EVENT, emits={"t": str})(module.process)


@pytest.mark.parametrize("text", REFUSED.strip().split("\n"))
def test_a_number_is_no_string(text: str, tmp_path: Path) -> None:
    with pytest.raises(ss.CompileError, match=r"'t' is declared str and gets \w+; write str\(x\)"):
        ss.Engine(declared(text, tmp_path), horizon=0).close()


def test_what_the_message_says_to_write_is_the_text(tmp_path: Path) -> None:
    text = "state.n += event.k; emit(str(state.n)); emit(str(event.k)); emit(str(len(event.w)))"
    operator = declared(text, tmp_path)
    found = run_engine(operator, table(), horizon=0)
    assert_identical(found, run_oracle(operator, table()))
    assert found.output["t"].to_pylist() == ["1", "1", "2", "3", "2", "1"]


def test_an_int_is_no_part_of_a_key_that_is_a_string(tmp_path: Path) -> None:
    operator = declared("state.pairs[(event.k, event.k)] = 1", tmp_path)
    with pytest.raises(ss.CompileError, match=r"part 1 of a key of state\.pairs is declared str"):
        ss.Engine(operator, horizon=0)


def test_a_sequential_run_says_so_too(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"declared str and gets 1 \(int\): write str\(x\)"):
        declared("emit(event.k)", tmp_path).run_sequential(table())


@pytest.mark.parametrize(
    "text",
    [
        "emit(state.code); state.code = event.w",
        "last = state.code; state.code = event.w; emit(last)",
    ],
)
def test_a_kept_code_is_its_string_and_named_as_what_goes(text: str, tmp_path: Path) -> None:
    with pytest.warns(DeprecationWarning, match="declare the field str, like ss.scalar"):
        operator = declared(text, tmp_path)
    found = run_engine(operator, table(), horizon=0)
    assert_identical(found, run_oracle(operator, table()))
    assert found.output["t"].to_pylist() == [None, "ab"]


def test_a_field_of_strings_is_not_warned_of(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        operator = declared("emit(state.label); state.label = event.w", tmp_path)
    assert run_engine(operator, table(), horizon=0).output["t"].to_pylist() == ["", "ab"]


def table() -> pa.Table:

    return pa.table(TABLE)
