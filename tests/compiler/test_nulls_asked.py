"""Nulls that are asked for by another way than they came: beside plain Python, form by form.

An operator knows of a null where it is tested, kept under a name or given to a function. In each of
these forms the test is reached in another way; what is not listed as refused gives Python's answer.
"""

from __future__ import annotations

import types
from pathlib import Path
from typing import Any

import pytest
from test_invalid import load

import specstream as ss

TABLE: dict[str, list[Any]] = {
    "n": [None, 0, 3, None],
    "a": [1, 0, 5, -4],
    "s": ["a", None, "", None],
    "t": [""] * 4,
}
EVENT = {"n": ss.nullable(int), "a": int, "s": ss.nullable(str), "t": str}
# ---- what Python computes of the event is tested where it stands ----
RIGHT = """
emit((event.a or None) is None)
emit((event.a or None) is not None)
emit((event.a or None) == None)
emit((event.n or None) is None)
emit((event.s or None) is None)
emit((event.t or None) is None)
emit((event.a * 0 or None) is None)
emit((event.a > 0 or None) is None)
emit((event.t.strip() or None) is None)
emit((event.a and None) is None)
emit(((event.a or None) or None) is None)
emit(None is (event.a or None))
z = event.a; emit((z or None) is None)
emit(((z := event.a) or None) is None)
emit((event.a if event.a else None) is None)
emit(max((event.a or None) is None, False))
if (event.a or None) is None: emit(True)
while (event.a or None) is None: emit(True); break
assert (event.a or 1 or None) is not None; emit(True)
emit((lambda q: q is None)(event.n))
emit((lambda q, r: q is None and r == 1)(event.n, 1))
emit((lambda q, r=2: r if q is None else q)(q=event.n) == 2)
p = lambda q: q is None; emit(p(event.n))
p = lambda q=event.n: q is None; emit(p())
z = (event.n,); emit(z[0] is None)
z = (event.n, event.a); emit(z[0] is None or z[1] > 2)
z = (event.s, event.a); emit(z[0] is None)
z = (event.a, event.n); x, y = z; emit(y is None)
x, *r = event.n, event.a, event.n; emit(r[1] is None)
x = y = event.n; emit(y is None)
emit((event.n, event.a) == (None, event.a))
emit(event.n in (None, 3))
emit(next((q is None for q in (event.n,)), False))
""".strip().splitlines()
REFUSED = """
emit(any(q is None for q in (event.n, event.a))) -> cannot be iterated over
emit(sum(1 for q in (event.n, event.a) if q is None) == 1) -> cannot be iterated over
emit([q for q in (event.n, event.a) if q is not None] == [event.a]) -> cannot be iterated over
emit(list(map(lambda q: q is None, (event.n, event.a)))[0]) -> cannot be iterated over
z = [event.n, event.a]; emit(z[0] is None) -> a list gets a value that may be None
z = {1: event.n}; emit(z[1] is None) -> a dict gets a value that may be None
""".strip().splitlines()


def function_of(form: str, folder: Path) -> Any:
    head, _, block = form.partition(": ") if form.startswith(("if", "while")) else (form, "", "")
    lines = (
        [f"{head}:", *(f"    {one}" for one in block.split("; "))] if block else form.split("; ")
    )
    body = "".join(f"    {line}\n" for line in lines)
    return load(f"def asks(event, emit):\n{body}", "form", folder).asks


@pytest.mark.parametrize("form", RIGHT)
def test_a_null_is_none_wherever_it_is_asked(form: str, tmp_path: Path) -> None:
    function = function_of(form, tmp_path)
    expected: list[bool] = []
    for at in range(4):
        event = types.SimpleNamespace(**{name: values[at] for name, values in TABLE.items()})
        function(event, lambda value: expected.append(bool(value)))
    operator = ss.operator(event=EVENT, emits={"r": bool})(function)
    assert operator.run_sequential(TABLE).output["r"].to_pylist() == expected
    with ss.Engine(operator, horizon=0) as engine:
        assert engine.process(TABLE)["r"].to_pylist() == expected


@pytest.mark.parametrize("row", REFUSED)
def test_what_cannot_hold_a_null_refuses_it(row: str, tmp_path: Path) -> None:
    form, message = row.split(" -> ")
    operator = ss.operator(event=EVENT, emits={"r": bool})(function_of(form, tmp_path))
    with pytest.raises(ss.CompileError, match=message):
        ss.Engine(operator, horizon=0)
