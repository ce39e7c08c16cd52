"""A lambda is compiled where it stands, also among others."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import functools
import linecache
import pickle
import random
import subprocess
import sys
import traceback
from typing import Any

import pyarrow as pa
import pytest
from support.operators.library import agrees

import specstream as ss
from specstream.compiler.language.definitions import definition_of

EVENT = {"a": float, "b": int}
TABLE: dict[str, list[Any]] = {"a": [1.5, -2.0, 0.25], "b": [3, 4, -5]}


def computing(function: Any) -> Any:
    @ss.operator(event=EVENT, emits={"y": float}, name="computing")
    def made(event, emit):
        emit(float(function(event)))

    return made


def expression(rng: random.Random, depth: int = 0) -> str:
    """Some expression of an event."""
    if depth > 2 or rng.random() < 0.2:
        return rng.choice(["e.a", "e.b", "1.5", "7", "n"])
    one, other = (expression(rng, depth + 1) for _ in range(2))
    ways = [
        f"{one} + {other}",
        f"({one}) * ({other})",
        f"max({one}, {other})",
        f"({one} if e.b > 0 else {other})",
        f"(lambda x: x - ({other}))({one})",
        f"sum([{one}, {other}])",
        f"sum(x * 2 for x in ({one}, {other}))",
        f"abs(\n            {one}  # ü\n        )",
    ]
    return rng.choice(ways)


def test_two_hundred_lambdas_give_the_same_code_wherever_they_stand(tmp_path: Any) -> None:
    rng = random.Random(7)
    bodies = [expression(rng) for _ in range(200)]
    named = "".join(
        f"    one = lambda e, n=3: ({body})\n    named.append(one)\n" for body in bodies
    )
    ways = ["taken(lambda e, n=3: {0}, 1)", "{{'f': lambda e, n=3: ({0})}}['f']"]
    inline = ", ".join(rng.choice(ways).format(body) for body in bodies)  # most on one line
    text = (
        "def taken(function, other):\n    return function\n\n\n"
        f"def both():\n    named = []\n{named}    return named, [{inline}]\n"
    )
    path = tmp_path / "both_ways.py"
    path.write_text(text)
    namespace: dict[str, Any] = {"__name__": "both_ways"}
    exec(compile(text, str(path), "exec"), namespace)
    for at, (one, other) in enumerate(zip(*namespace["both"](), strict=True)):
        first, second = (computing(function).program for function in (one, other))
        assert first.fingerprint == second.fingerprint, bodies[at]


def test_lambdas_of_all_kinds_agree_in_all_settings() -> None:
    def kinds(n: float) -> list[Any]:
        return [
            lambda e: e.a * n,
            lambda e, m=n: e.a + m,
            lambda e: (
                e.a
                # of several lines
                - n
            ),
            functools.partial(lambda m, e: e.a * m, 4.0),
            (lambda: lambda e: e.a + e.b)(),
            lambda e: (lambda x: x + n)(e.b),
            lambda e: sorted([e.a, n], key=lambda x: -x)[0],
        ]

    for function in kinds(5.0):
        made = computing(function)
        expected = made.run_sequential(TABLE).output
        rows = [{"y": float(function(Row(*of)))} for of in VALUES]
        assert expected.to_pylist() == rows
        agrees(made, pa.table(TABLE))
        again = pickle.loads(pickle.dumps(made))
        assert again.program.fingerprint == made.program.fingerprint
        assert again.run_sequential(TABLE).output.equals(expected)


class Row:
    def __init__(self, a: float, b: int) -> None:
        self.a, self.b = a, b


VALUES = list(zip(TABLE["a"], TABLE["b"], strict=True))


def test_an_error_in_a_lambda_has_its_line() -> None:
    made = computing(
        lambda e: (
            e.b / (e.a - e.a)  # this line
        )
    )
    with pytest.raises(ZeroDivisionError) as caught, ss.Engine(made) as engine:
        engine.process(TABLE)
    lines = [one.line for one in traceback.extract_tb(caught.value.__traceback__)]
    assert lines[-1] == "e.b / (e.a - e.a)  # this line"


def test_a_lambda_of_a_notebook_cell_is_read() -> None:
    text = "chosen = [lambda e: e.a, lambda e: e.a * 2][1]\n"
    name = "<ipython-input-of-a-test>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    namespace: dict[str, Any] = {}
    exec(compile(text, name, "exec"), namespace)
    found = definition_of(namespace["chosen"])
    assert found is not None
    assert found.text == "function = (lambda e: e.a * 2)\n"


PROGRAM = """
import specstream as ss

def computing(function):
    @ss.operator(event={"a": float}, emits={"y": float})
    def made(event, emit):
        emit(function(event))
    return made

print(computing(lambda e: e.a + 1).run_sequential({"a": [1.0]}).output["y"].to_pylist())
two = [lambda e: e.a + 1, lambda e: e.a + 2]
try:
    print(computing(two[1]).run_sequential({"a": [1.0]}).output["y"].to_pylist())
except ss.CompileError as error:
    print(error)
"""


@pytest.mark.parametrize("ranges", [True, False])
def test_without_columns_two_lambdas_of_a_line_are_refused(tmp_path: Any, ranges: bool) -> None:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    options = [] if ranges else ["-X", "no_debug_ranges"]
    run = subprocess.run(
        [sys.executable, *options, str(path)], capture_output=True, text=True, check=True
    )
    one, two = run.stdout.splitlines()
    assert one == "[2.0]"
    if ranges:
        assert two == "[3.0]"
    else:
        assert f"{path}:11" in two
        assert "the lambda of (e) cannot be told from others" in two
        assert "no_debug_ranges" in two
        assert "or in a line of its own: name = lambda e: ..." in two


def test_a_lambda_whose_file_has_changed_is_refused(tmp_path: Any) -> None:
    path = tmp_path / "changed.py"
    path.write_text("chosen = (1, lambda e: e.a)[1]\n")
    namespace: dict[str, Any] = {}
    exec(compile(path.read_text(), str(path), "exec"), namespace)
    path.write_text("chosen = (1, lambda other: other.a)[1]\n")
    linecache.checkcache(str(path))
    with pytest.raises(ss.CompileError, match="its file has changed since it ran"):
        computing(namespace["chosen"]).program.native  # noqa: B018


def test_equal_lambdas_of_different_lines_are_told_apart_when_unpickled() -> None:
    p = ss.Pipeline("twice")
    x = p.source("x", EVENT)
    big = x.filter(lambda e: e.b > 3)
    out = big.filter(
        lambda e: e.b > 3,
    )
    p.sink("out", out)
    again = pickle.loads(pickle.dumps(p))
    assert again.run_sequential(TABLE).output.equals(p.run_sequential(TABLE).output)
