"""Rows with nulls: what may be written, what is refused, and that they come out everywhere."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from conftest import Path as ExecutionPath
from conftest import assert_identical, run_oracle
from support import generated

import specstream as ss

HEADER = """import specstream as ss

class S(ss.State):
    n = ss.scalar(int)

def maybe(x):
    if x > 2:
        return x
    return None

"""


def declare(body: str, emits: str, folder: Path, event: str = "{'x': int}") -> ss.Operator:
    text = HEADER + f"@ss.operator(state=S, event={event}, emits={emits})\n"
    text += "def generated(state, event, emit):\n" + "".join(
        f"    {line}\n" for line in body.split("\n")
    )
    return generated.load(text, folder, random.randrange(10**9))  # type: ignore[no-any-return]


NULLABLE = "{'a': int, 'b': ss.nullable(int), 'c': ss.nullable(float)}"


@pytest.mark.parametrize(
    ("arguments", "row"),
    [
        ("1, None, None", (1, None, None)),
        ("1, None", (1, None, None)),
        ("1", (1, None, None)),
        ("a=1", (1, None, None)),
        ("1, c=2.5", (1, None, 2.5)),
        ("c=None, b=event.x, a=0", (0, 5, None)),
        ("1, 2 if event.x > 4 else None, None if event.x > 4 else 1", (1, 2, None)),
        ("1, None if event.x == 4 else 3 if event.x == 5 else None", (1, 3, None)),
        ("1, None, 3 if event.x == 5 else None", (1, None, 3.0)),
        ("1, None, event.x / (event.x - 5) if event.x != 5 else None", (1, None, None)),
    ],
)
def test_what_may_be_written(arguments: str, row: tuple[Any, ...], tmp_path: Path) -> None:
    operator = declare(f"emit({arguments})", NULLABLE, tmp_path)
    table = {"x": [5]}
    expected = pa.table([[value] for value in row], schema=operator.output_schema)
    assert operator.run_sequential(table).output.equals(expected)
    with ss.Engine(operator, horizon=0) as engine:
        assert engine.process(table).equals(expected)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("emit(None)", "line 13: emitted column 'a' is declared int and may get None.*nullable"),
        ("emit(a=1 if event.x else None)", "line 13: emitted column 'a' is declared int and may"),
        ("emit(b=1)", "line 13: emit lacks 'a'"),
    ],
)
def test_what_is_refused_when_it_is_declared(body: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ss.CompileError) as caught:
        declare(body, NULLABLE, tmp_path)
    assert re.search(message.replace("line 13", ":13"), str(caught.value), re.DOTALL)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("emit(1, 2.5 if event.x else None)", "'b' is declared nullable int and gets float64"),
    ],
)
def test_what_is_refused_when_it_is_compiled(body: str, message: str, tmp_path: Path) -> None:
    operator = declare(body, NULLABLE, tmp_path)
    with pytest.raises(ss.CompileError, match=message):
        ss.Engine(operator, horizon=0)


@pytest.mark.slow
@pytest.mark.parametrize(
    "body",
    [
        "y = None\nemit(1, y)",
        "if event.x == None:\n    emit(1)\nemit(2)",
        "emit(1, None + 1)",
        "state.n = 3 if event.x else None",
        "emit(1, max(event.x, None))",
        "emit(1, maybe(event.x))",
        "y = maybe(event.x)\nemit(1, y)",
    ],
)
def test_none_is_a_value_before_it_is_emitted(
    body: str, path: ExecutionPath, tmp_path: Path
) -> None:
    operator = declare(body, NULLABLE, tmp_path)
    table = pa.table({"x": [5, 0, -1]})
    assert_identical(path(operator, table), run_oracle(operator, table))


@pytest.mark.slow
def test_more_nullable_columns_than_a_word_has_bits(path: ExecutionPath, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    given = rng.random((2, 130)) < 0.5
    emits = "{" + ", ".join(f"'c{n}': ss.nullable(int)" for n in range(130)) + "}"
    rows = [", ".join(f"c{n}={n}" for n in np.flatnonzero(these)) for these in given]
    body = f"state.n += 1\nif event.x:\n    emit({rows[1]})\nelse:\n    emit({rows[0]})"
    operator = declare(body, emits, tmp_path)
    table = pa.table({"x": rng.integers(0, 2, 30)})
    found, expected = path(operator, table), run_oracle(operator, table)
    assert_identical(found, expected)
    for x, row in zip(table["x"].to_pylist(), found.output.to_pylist(), strict=True):
        assert row == {f"c{n}": n if given[x, n] else None for n in range(130)}


def test_hooks_polls_and_snapshots_have_them(tmp_path: Path) -> None:
    body = "state.n += 1\nemit(state.n, None if state.n % 2 else event.x)"
    operator = declare(body, NULLABLE, tmp_path)
    rows = [(1, None, None), (2, 20, None), (3, None, None)]
    told: list[Any] = []
    with ss.Engine(operator, threads=2, on_commit=told.append) as engine:
        for x in (10, 20, 30):
            engine.submit_event(x, x=x, ordered=True)
        engine.advance(0, 100)
        snapshot = engine.snapshot()  # holds what is committed and was not polled, and the rest
        with ss.Engine(operator, threads=2, restore=snapshot) as other:
            other.advance(0, None)
            found: list[Any] = []
            while len(found) < 3:
                found += other.poll_rows(timeout=5)
    assert found == rows
    assert [notification.rows for notification in told] == [[row] for row in rows][: len(told)]
