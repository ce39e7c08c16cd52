"""A hypothesis strategy of tables that an operator takes."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from specstream.declarations.options import instance, integer, refuses_unknown
from specstream.declarations.schema import Column
from specstream.definition.operator import Operator

__all__ = ["streams"]

_INTS = st.one_of(
    st.integers(-4, 4),
    st.integers(-1000, 1000),
    st.integers(-(2**63), 2**63 - 1),
    st.sampled_from([0, 2**63 - 1, -(2**63)]),
)
_FLOATS = st.one_of(
    st.floats(-10, 10),
    st.floats(),
    st.sampled_from([0.0, -0.0, 1.0, float("nan"), float("inf"), float("-inf"), 5e-324]),
)
# Few of them, so that they meet again.
_TEXTS = st.one_of(st.sampled_from(["", "a", "b", "ab", "ä", "A"]), st.text(max_size=8))
_LAST = 2**31 - 1


@refuses_unknown
def streams(
    operator: Operator,
    *,
    columns: Mapping[str, st.SearchStrategy[Any]] | None = None,
    min_size: int = 0,
    max_size: int = 60,
) -> st.SearchStrategy[pa.Table]:
    """Tables of events, from what the operator declares.

    Every type has its hard values: the ends of the integers, NaN, infinities and both zeros, empty
    and repeated strings, nulls where they may be. What your operator is not made for, leave out
    with ``columns``.

    Args:
        operator: whose events they are.
        columns: strategies of some columns' values, in place of those from the declaration; also of
            columns that the operator does not declare, like the time to order by.
        min_size: least number of rows.
        max_size: greatest number of rows.

    >>> import specstream as ss
    >>> from hypothesis import given, settings, strategies as st
    >>> class Seen(ss.State):
    ...     total = ss.array(float, 10)
    >>> @ss.operator(state=Seen, event={"item": int, "price": float}, emits={"total": float})
    ... def totals(state, event, emit):
    ...     state.total[event.item] += event.price
    ...     emit(state.total[event.item])
    >>> @settings(max_examples=5, deadline=None)
    ... @given(ss.testing.streams(totals, columns={"item": st.integers(0, 9)}))
    ... def test_totals(table):
    ...     ss.testing.check(totals, table)
    >>> test_totals()
    """
    instance("operator", operator, Operator, "an operator, made with @ss.operator")
    min_size = integer("min_size", min_size, 0)
    max_size = integer("max_size", max_size, min_size)
    given = dict(columns or {})
    types: dict[str, pa.DataType | None] = dict.fromkeys(given)
    values: dict[str, st.SearchStrategy[Any]] = dict(given)
    for name, column in operator.event:
        types[name] = column.arrow
        values.setdefault(name, _values(column))
    rows = st.lists(st.tuples(*values.values()), min_size=min_size, max_size=max_size)
    names = list(values)
    return rows.map(
        lambda drawn: pa.table(
            {
                name: pa.array([row[at] for row in drawn], types[name], from_pandas=False)
                for at, name in enumerate(names)
            }
        )
    )


def _values(column: Column) -> st.SearchStrategy[Any]:
    of = column.arrow
    found: st.SearchStrategy[Any]
    if pa.types.is_timestamp(of):
        found = st.integers(-_LAST, _LAST).map(lambda ticks: pa.scalar(ticks, pa.int64()).cast(of))
    elif pa.types.is_date(of):
        found = st.dates(datetime.date(1900, 1, 1), datetime.date(2100, 1, 1))
    elif pa.types.is_decimal(of):
        found = st.decimals(-(10**9), 10**9, allow_nan=False, places=of.scale)
    elif column.kind == "bool":
        found = st.booleans()
    else:
        found = {"int": _INTS, "float": _FLOATS, "str": _TEXTS}[column.kind]
    return st.none() | found if column.nullable else found
