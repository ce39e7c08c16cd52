"""The records of built-in functions and operators: what has one can be used, and nothing else."""

from __future__ import annotations

import ast
import builtins
import importlib.util
import itertools
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import specstream as ss
from specstream.compiler.language import builtin_functions, operations
from specstream.compiler.language.builtin_functions import BUILTINS, of_keywords
from specstream.compiler.language.numbers import ORACLE_BUILTINS, Int64
from specstream.compiler.language.operations import OPERATIONS
from specstream.compiler.library import arithmetic, iteration, number_builtins, reductions
from specstream.compiler.lowering.comprehensions import CONSUMERS
from specstream.compiler.lowering.native_rewriter import CONTAINERS
from specstream.compiler.oracle_objects import local as oracle_local

assert oracle_local  # which adds those that make containers


class Kept(ss.State):
    number = ss.scalar(int)
    values = ss.list(int)


@pytest.fixture
def declared(tmp_path: Path) -> Callable[[str, str], None]:
    """What declares an operator that evaluates an expression."""

    def declare(name: str, expression: str) -> None:
        text = f"def uses(state, event, emit):\n    state.number = {expression}\n"
        path = tmp_path / f"{name}.py"
        path.write_text(text)
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        try:
            ss.operator(state=Kept, event={"x": int}, emits={})(module.uses)
        finally:
            sys.modules.pop(name, None)

    return declare


def test_each_builtin_that_means_something_has_a_record_and_the_other_way_round() -> None:
    compiled = {*number_builtins.BUILTINS, *iteration.BUILTINS, *reductions.OF_AN_ARRAY}
    compiled |= {*CONSUMERS, *CONTAINERS, "map", "filter"}
    assert compiled == set(BUILTINS) == set(ORACLE_BUILTINS)


def test_each_record_of_a_builtin_names_one_of_pythons() -> None:
    names = {*BUILTINS, *builtin_functions.REFUSED}
    assert all(callable(getattr(builtins, name)) for name in names)
    assert not set(BUILTINS) & set(builtin_functions.REFUSED)
    assert all(one.hint for one in builtin_functions.REFUSED.values())


def test_all_parameters_of_some_may_be_named() -> None:
    named = {name for name in BUILTINS if of_keywords(name)}
    assert named == {"round", "pow", "enumerate"}


def test_each_operator_that_means_something_has_a_record_and_the_other_way_round() -> None:
    others = {ast.In, ast.NotIn, ast.And, ast.Or}
    assert {*arithmetic.OPERATORS, *others} == set(OPERATIONS)
    assert {*OPERATIONS, *operations.REFUSED} == {
        cls
        for of in (ast.operator, ast.unaryop, ast.cmpop, ast.boolop)
        for cls in of.__subclasses__()
    }


def test_each_record_of_an_operator_says_how_it_is_written() -> None:
    for one in (*OPERATIONS.values(), *operations.REFUSED.values()):
        tree: Any = ast.parse(one.form, mode="eval").body
        assert isinstance(tree.ops[0] if isinstance(tree, ast.Compare) else tree.op, one.node)


@pytest.mark.parametrize("name", BUILTINS)
def test_a_builtin_without_its_record_is_refused(
    name: str, declared: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(BUILTINS, name)
    with pytest.raises(ss.CompileError, match=f"'{name}' is a builtin, and is not compiled"):
        declared(f"uses_{name}", f"{name}(state.values)")


@pytest.mark.parametrize("one", OPERATIONS.values(), ids=lambda one: one.node.__name__)
def test_an_operator_without_its_record_is_refused(
    one: operations.Operation,
    declared: Callable[[str, str], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    form = one.form.replace("x", "state.number")
    form = form.replace("y", "state.values" if one.group == "membership" else "state.number")
    declared(f"has_{one.node.__name__}", form)
    monkeypatch.delitem(OPERATIONS, one.node)
    with pytest.raises(ss.CompileError, match=f"the operator {one.node.__name__} cannot be"):
        declared(f"has_no_{one.node.__name__}", form)


@pytest.mark.parametrize("name", ["print", "str", "iter", "type", "hash"])
def test_one_that_is_refused_gives_the_hint_of_its_record(
    name: str, declared: Callable[[str, str], None]
) -> None:
    with pytest.raises(ss.CompileError) as caught:
        declared(f"refused_{name}", f"{name}(state.values)")
    assert builtin_functions.REFUSED[name].hint in str(caught.value)


NUMBERS = [0, 1, -1, 2, 63, 64, 0.0, -0.0, 1.5, -2.0, 1e300, math.inf, -math.inf, math.nan, True]
# Of what no number does: shapes of arrays, and NaN among what is sorted.
OF_NO_NUMBER = {"+", "-", "*"}
OF_NUMBERS = {"divmod": 2, "pow": 2, "round": 2, "int": 1, "float": 1, "abs": 1, "bool": 1}


def raised_by(function: Callable[..., Any], counts: range) -> set[str]:
    """The classes that it raises for numbers, as the oracle has them."""
    found: set[str] = set()
    for count in counts:
        for numbers in itertools.product(NUMBERS, repeat=count):
            given = [Int64(one) if type(one) is int else one for one in numbers]
            try:
                function(*given)
            except TypeError:  # there are no such arguments
                continue
            except Exception as error:
                found.add(type(error).__name__)
    return found


@pytest.mark.parametrize("one", OPERATIONS.values(), ids=lambda one: one.node.__name__)
def test_the_record_of_an_operator_says_what_numbers_raise(one: operations.Operation) -> None:
    if one.name and one.sign not in OF_NO_NUMBER:
        count = 1 if one.is_unary else 2
        assert raised_by(one.function, range(count, count + 1)) == {name for name, _ in one.raises}


@pytest.mark.parametrize("name", OF_NUMBERS)
def test_the_record_of_a_builtin_says_what_numbers_raise(name: str) -> None:
    counts = range(1, OF_NUMBERS[name] + 1)
    assert raised_by(ORACLE_BUILTINS[name], counts) == {one for one, _ in BUILTINS[name].raises}


def test_keywords_are_those_that_python_takes() -> None:
    """Given all by name, where the record says so: Python complains of others."""
    values: dict[str, Any] = {"key": abs, "default": 1, "reverse": True, "strict": True}
    values |= {"start": 1, "iterable": [1], "number": 1.5, "ndigits": 1, "base": 5, "exp": 3}
    values["mod"] = 4
    for one in BUILTINS.values():
        named = {name: values[name] for name in one.keywords}
        positional = [] if "iterable" in named or "number" in named or "base" in named else [[1, 2]]
        if named:
            getattr(builtins, one.name)(*positional, **named)
