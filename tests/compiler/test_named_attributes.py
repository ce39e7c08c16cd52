"""Columns and fields that strings name: ``getattr(event, NAME)``, on all paths as under Python."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import operator as operators
import pickle
from typing import Any

import pyarrow as pa
import pytest
from support.operators.library import agrees

import specstream as ss

FEATURES = ("x", "y")
FIRST, LAST, NOWHERE = "x", "second", "z"
TABLE = pa.table(
    {
        "x": [1.0, -2.5, 3.25, 0.0],
        "y": [4.0, 0.5, -1.0, 8.0],
        "who": ["a", "b", "a", "b"],
        "when": [1, 2, 2, 5],
    }
)
EVENT = {"x": float, "y": float, "who": str, "when": int}


class Pair(ss.Record):
    first: float
    second: float


def totals(features: Any, key: str, field: str = "sums") -> ss.Operator:
    class Sums(ss.State):
        sums = ss.dict(str, float)
        pairs = ss.dict(str, Pair)

    def gathered(event):
        return tuple(getattr(event, name) for name in features)

    @ss.operator(state=Sums, event=EVENT, emits={"who": str, "sum": float, "second": float})
    def total(state, event, emit):
        who = getattr(event, key)
        twice = [getattr(event, name) * 2 for name in features]
        of = getattr(state, field)
        of[who] = of.get(who, 0.0) + sum(gathered(event)) + twice[-1] + getattr(event, FIRST)
        state.pairs[who] = Pair(event.x, event.y)
        emit(who, of[who], getattr(state.pairs[who], LAST))

    return total


def expected(features: tuple[str, ...]) -> list[tuple[str, float, float]]:
    sums: dict[str, float] = {}
    rows = []
    for row in TABLE.to_pylist():
        more = sum(row[name] for name in features) + 2 * row[features[-1]] + row["x"]
        sums[row["who"]] = sums.get(row["who"], 0.0) + more
        rows.append((row["who"], sums[row["who"]], row["y"]))
    return rows


@pytest.mark.parametrize("features", [("x", "y"), ["y"], ("x", "x", "y")])
def test_columns_fields_and_parts_of_records_are_named_by_strings(features: Any) -> None:
    found = agrees(totals(features, "who"), TABLE)
    assert [tuple(row.values()) for row in found.output.to_pylist()] == expected(tuple(features))


def test_what_looks_at_the_text_sees_them() -> None:
    of = totals(FEATURES, "who").explain()
    assert set(of.columns_read) == {"x", "y", "who"}
    sums = next(field for field in of.fields if field.name == "sums")
    assert sums.read
    assert sums.written


def test_it_is_pickled_with_the_names() -> None:
    again = pickle.loads(pickle.dumps(totals(("y",), "who")))
    found = again.run_sequential(TABLE).output
    assert [tuple(row.values()) for row in found.to_pylist()] == expected(("y",))


def test_a_list_that_changes_later_has_the_names_of_before() -> None:
    names = ["y"]
    operator = totals(names, "who")
    names.append("x")
    with ss.Engine(operator) as engine:
        rows = engine.process(TABLE).to_pylist()
    assert [tuple(row.values()) for row in rows] == expected(("y",))


def test_columns_of_an_input_of_a_pipeline() -> None:
    name = "y"

    @ss.operator(inputs={"left": {"x": float, "y": float}}, emits={"y": float})
    def chosen(event, emit):
        emit(getattr(event.left, name))

    p = ss.Pipeline("p")
    p.sink("out", p.add(chosen, left=p.source("ticks", {"x": float, "y": float})))
    found = ss.testing.check(p, TABLE.select(["x", "y"]))
    assert found.output["y"].to_pylist() == TABLE["y"].to_pylist()


def test_a_getattr_of_ones_own_is_called() -> None:
    def getattr(event, name):
        return event.x if name == "x" else 5.0

    @ss.operator(event={"x": float}, emits={"x": float})
    def mine(event, emit):
        emit(getattr(event, LAST))

    assert agrees(mine, TABLE.select(["x"])).output["x"][0].as_py() == 5.0


def refused(function: Any) -> str:
    with pytest.raises(ss.CompileError) as raised:
        ss.operator(event=EVENT, emits={"x": float})(function)
    return str(raised.value)


def test_a_name_that_is_not_known_is_refused() -> None:
    def by_column(event, emit):
        emit(getattr(event, event.who))

    def in_a_loop(event, emit):
        for name in FEATURES:
            emit(getattr(event, name))

    def some(event, emit):
        emit(sum([getattr(event, name) for name in FEATURES if name != "x"]))

    for function in (by_column, in_a_loop, some):
        told = refused(function)
        assert "names no attribute" in told
        assert "tuple(getattr(event, name) for name in NAMES)" in told

    def none(event, emit):
        emit(getattr(event, "x y"))

    assert "names no attribute" in refused(none)

    def with_default(event, emit):
        emit(getattr(event, "x", 0.0))

    assert "getattr() cannot be used" in refused(with_default)


def test_a_column_that_is_not_there_is_refused_as_if_it_were_written() -> None:
    def missing(event, emit):
        emit(getattr(event, NOWHERE))

    operator = ss.operator(event=EVENT, emits={"x": float})(missing)
    with pytest.raises(ss.CompileError, match="no column 'z'"):
        ss.Engine(operator)


# ---- several stars ----


class Triple(ss.Record):
    first: int = 0
    second: int = 0
    third: int = 0


def pair_of(x):
    return x, x + 1


def alone(x):
    return (2 * x,)


def test_several_stars_whose_lengths_only_their_values_have() -> None:
    columns = dict.fromkeys("abcdef", int)

    @ss.operator(event={"x": int}, emits=columns)
    def spread(event, emit):
        triple = Triple(*alone(event.x), *pair_of(event.x))
        emit(*pair_of(event.x), triple.third, *alone(event.x), *(triple.first, 9))

    found = agrees(spread, pa.table({"x": [1, 5]}))
    assert [tuple(row.values()) for row in found.output.to_pylist()] == [
        (1, 2, 2, 2, 2, 9),
        (5, 6, 6, 10, 10, 9),
    ]


def test_stars_that_do_not_come_to_the_columns_are_refused() -> None:
    @ss.operator(event={"x": int}, emits={"a": int, "b": int})
    def spread(event, emit):
        emit(*pair_of(event.x), *alone(event.x))

    with pytest.raises(ss.CompileError, match="a star gives emit 3 values for 2 columns, a, b"):
        ss.Engine(spread)


def forwarded(emit, row):
    emit(*row)


def test_columns_that_may_be_null_may_lack_a_value_in_a_helper_too() -> None:
    columns = {"a": int, "b": ss.nullable(int), "c": ss.nullable(str)}

    @ss.operator(event={"x": int}, emits=columns)
    def short(event, emit):
        row = (event.x, 5)
        forwarded(emit, row)
        forwarded(emit, (event.x,))

    found = agrees(short, pa.table({"x": [1]}))
    assert [tuple(row.values()) for row in found.output.to_pylist()] == [
        (1, 5, None),
        (1, None, None),
    ]


def test_columns_that_are_never_null_lack_no_value_in_a_helper() -> None:
    columns = {"a": ss.nullable(int), "b": int, "c": ss.nullable(int)}

    @ss.operator(event={"x": int}, emits=columns)
    def short(event, emit):
        forwarded(emit, (event.x,))

    with pytest.raises(ss.CompileError, match="a star gives emit 1 values for 3 columns, a, b, c"):
        ss.Engine(short)

    @ss.operator(event={"x": int}, emits=columns)
    def single(event, emit):
        forwarded(emit, event.x)

    with pytest.raises(
        ss.CompileError, match="a star gives emit int64, which is not a tuple, for 3"
    ):
        ss.Engine(single)


first, second = lambda x: x + 1, lambda x: x + 2


def test_lambdas_that_share_a_statement_are_told_apart() -> None:
    @ss.operator(event={"x": int}, emits={"a": int, "b": int})
    def both(event, emit):
        emit(first(event.x), second(event.x))

    assert both.run_sequential({"x": [5]}).output.to_pylist() == [{"a": 6, "b": 7}]


get_x = operators.attrgetter("x")


def test_an_attrgetter_is_told_to_be_an_attribute() -> None:
    with pytest.raises(ss.CompileError, match=r"write the attribute itself, event\.x"):

        @ss.operator(event={"x": int}, emits={"a": int})
        def got(event, emit):
            emit(get_x(event))
