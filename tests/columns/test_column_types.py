"""Columns of whatever type Arrow has: right values, or an error that names the column."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import datetime
import decimal
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import specstream as ss

KINDS: dict[str, Any] = {
    "i": int,
    "f": float,
    "b": bool,
    "s": str,
    "t": ss.timestamp("us"),
    "d": datetime.date,
    "m": ss.decimal(2),
}


class Count(ss.State):
    n = ss.scalar(int)


def echo(event: dict[str, Any], emits: dict[str, Any], name: str = "echo") -> Any:
    """Emits each column as it is. Not compiled: what is looked at is how tables are read."""

    @ss.operator(state=Count, event=event, emits=emits, interpreted=True, name=name)
    def op(state, event, emit):
        state.n += 1
        emit(*(getattr(event, one) for one in emits))

    return op


def nullable(kinds: dict[str, Any]) -> dict[str, Any]:
    return {name: ss.nullable(of) for name, of in kinds.items()}


MAYBE = echo(nullable(KINDS), {"i": ss.nullable(int), "s": ss.nullable(str)})
TYPES = [
    *(pa.null(), pa.bool_(), pa.int8(), pa.uint64(), pa.float16(), pa.float64(), pa.string()),
    *(pa.large_string(), pa.string_view(), pa.binary(), pa.date64(), pa.time32("s")),
    *(pa.timestamp("ns", "UTC"), pa.duration("ms"), pa.decimal256(70, 5), pa.list_(pa.int8())),
    *(pa.struct({"a": pa.int8()}), pa.dictionary(pa.int8(), pa.string())),
    pa.dictionary(pa.int32(), pa.int64()),
]


@pytest.mark.parametrize("policy", ["error", "side"])
def test_a_nullable_column_of_nulls_alone_is_nulls_whatever_its_type(policy: Any) -> None:
    with ss.Engine(MAYBE, threads=1, rejected_rows=policy) as engine:
        for of in TYPES:
            table = pa.table({name: pa.nulls(2, of) for name in KINDS})
            assert engine.process(table).to_pylist() == 2 * [{"i": None, "s": None}], of
            chunks = pa.chunked_array([pa.nulls(1, of), pa.nulls(1, of)])
            assert engine.process(pa.table(dict.fromkeys(KINDS, chunks))).num_rows == 2, of
        none = {name: [None, None] for name in KINDS}
        frames: list[Any] = [
            pd.DataFrame({**none, "i": pd.array([None, None], dtype="Float64")}),
            pd.DataFrame({**none, "s": pd.Categorical([None, None])}),
            pl.DataFrame({**none, "i": pl.Series([None, None], dtype=pl.Float64)}),
            pl.DataFrame({**none, "t": pl.Series([None, None], dtype=pl.Categorical)}),
        ]
        for frame in frames:
            assert engine.process(frame).to_pylist() == 2 * [{"i": None, "s": None}]
        assert engine.rejected_rows() is None
    assert MAYBE.run_sequential(frames[0]).output.num_rows == 2
    with ss.Engine(MAYBE, sources=["a"], rejected_rows=policy) as engine:
        for frame in frames:
            table = (
                pa.table(frame) if isinstance(frame, pl.DataFrame) else pa.Table.from_pandas(frame)
            )
            engine.submit(table.append_column("k", pa.array([1, 2])), order_by="k", source="a")
        engine.advance("a")
        assert engine.poll(timeout=None).num_rows == 8
        assert engine.rejected_rows() is None


def test_a_wrong_type_is_no_matter_of_rows() -> None:
    op = echo({"i": int}, {"i": int})
    floats = pa.table({"i": pa.nulls(2, pa.float64())})
    for table in (floats, pa.table({"i": pa.array([1.5, None])})):
        with ss.Engine(op, rejected_rows="side") as engine:
            with pytest.raises(ss.InputError, match=r"column 'i' has type double; .* declares int"):
                engine.process(table)
            assert engine.rejected_rows() is None
    with ss.Engine(op, rejected_rows="side") as engine:  # of this type nothing is said
        assert engine.process(pa.table({"i": pa.nulls(2)})).num_rows == 0
        aside = engine.rejected_rows()
        assert aside is not None
        assert aside["reason"].to_pylist() == 2 * ["column 'i' is null"]
    for options, found in (
        ({"source": "i"}, "source column 'i' has type double; expected integers or strings"),
        ({"order_by": "s"}, "order column 's' has type string; expected integers, floats"),
    ):
        table = pa.table({"i": pa.nulls(2, pa.float64()), "s": pa.nulls(2, pa.string())})
        with (
            ss.Engine(echo({}, {}), rejected_rows="side") as engine,
            pytest.raises(ss.InputError, match=found),
        ):
            engine.process(table, **options)  # type: ignore[arg-type]


def dictionary(values: Any, index: str = "int8") -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(range(len(values)), index), values)


def letters(letter: str, count: int) -> pa.Array:
    return pa.array([f"{letter}{at}" for at in range(count)])


def enums() -> pa.Table:
    connection, parts = duckdb.connect(), []
    for letter in "ab":
        connection.sql(
            f"create type {letter} as enum (select '{letter}' || i from range(200) t(i))"
        )
        found = connection.sql(f"select ('{letter}' || i)::{letter} as s from range(200) t(i)")
        parts.append(found.to_arrow_table())
    return pa.concat_tables(parts)


def in_chunks() -> dict[str, pa.Table]:
    """Tables whose column "s" has more distinct values than its index type counts."""
    categories = [
        pa.Table.from_pandas(pd.DataFrame({"s": pd.Categorical(letters(letter, 100))}))
        for letter in "ab"
    ]
    made = {"pandas": pa.concat_tables(categories), "duckdb": enums()}
    for index, count in (("int8", 64), ("uint8", 128)):
        chunks = [dictionary(letters(letter, count), index) for letter in "abc"]
        made[index] = pa.table({"s": pa.chunked_array(chunks)})
    nulls = [dictionary(pa.array(["a", None])), dictionary(pa.array(["b", "c"]))]
    return made | {"nulls": pa.table({"s": pa.chunked_array(nulls)})}


def test_dictionaries_of_chunks_that_do_not_unite() -> None:
    op = echo({"s": ss.nullable(str)}, {"s": ss.nullable(str)})
    for name, table in in_chunks().items():
        expected = table["s"].to_pylist()
        reader = pa.RecordBatchReader.from_batches(table.schema, table.to_batches())
        for given in (table, reader):
            with ss.Engine(op, threads=2) as engine:
                assert engine.process(given)["s"].to_pylist() == expected, name
        assert op.run_sequential(table).output["s"].to_pylist() == expected, name
        with ss.Engine(op, sources=["a"]) as engine:
            times = pa.array(range(table.num_rows))
            engine.submit(table.append_column("k", times), order_by="k", source="a")
            engine.advance("a")
            assert engine.poll(timeout=None)["s"].to_pylist() == expected, name
        rows: list[Any] = []
        pieces = [pa.Table.from_batches([batch]) for batch in table.to_batches()]
        with ss.Engine(op) as engine:
            ss.sources.run(
                engine,
                ss.sources.iterate(iter(pieces)),
                to=lambda found, batch, rows=rows: rows.extend(found["s"].to_pylist()),
            )
        assert rows == expected, name


def test_dictionaries_of_numbers_and_of_sources() -> None:
    numbers = pa.chunked_array([dictionary(pa.array(range(at, at + 100))) for at in (0, 100)])
    money = pa.chunked_array(
        [
            dictionary(pa.array([decimal.Decimal(one) for one in of], pa.decimal128(9, 2)))
            for of in (range(100), range(100, 200))
        ]
    )
    names = pa.chunked_array([dictionary(letters(letter, 100)) for letter in "ab"])
    table = pa.table({"i": numbers, "m": money, "s": names})
    op = echo({"i": int, "m": ss.decimal(2)}, {"i": int})
    with ss.Engine(op, keys=True) as engine:
        found = engine.process(table, source="s")
    assert found["i"].to_pylist() == list(range(200))
    assert found["source"].to_pylist() == names.to_pylist()

    class Kept(ss.State):
        seen = ss.list(str)
        counts = ss.dict(str, int)

    @ss.operator(state=Kept, event={}, emits={}, interpreted=True)
    def nothing(state, event, emit):
        pass

    with ss.Engine(
        nothing, initial={"seen": names, "counts": pa.table({"key": names, "value": numbers})}
    ) as engine:
        assert list(engine.state.seen) == names.to_pylist()
        assert engine.state.counts["b99"] == 199


def odd_columns() -> dict[str, Any]:
    """Columns that Arrow itself cannot do all with."""
    octets = pa.Array.from_buffers(
        pa.string(), 2, [None, pa.array([0, 1, 2], "int32").buffers()[1], pa.py_buffer(b"\xff\xfe")]
    )
    lists = pa.array([[1], [2]])
    beyond = pa.DictionaryArray.from_arrays(pa.array([0, 9], "int8"), pa.array(["a"]), safe=False)
    return {
        "no UTF-8": octets,
        "views in a dictionary": dictionary(pa.array(["a", "b"], pa.string_view())),
        "lists in dictionaries": pa.chunked_array([dictionary(lists), dictionary(lists)]),
        "an index beyond its dictionary": beyond,
        "before its dictionary": pa.DictionaryArray.from_arrays(
            pa.array([0, -3], "int8"), pa.array(["a"]), safe=False
        ),
        "runs": pa.RunEndEncodedArray.from_arrays(pa.array([1, 2], "int32"), pa.array(["a", "b"])),
        "a union": pa.UnionArray.from_dense(
            pa.array([0, 1], "int8"), pa.array([0, 0], "int32"), [pa.array([1]), pa.array(["a"])]
        ),
        "times in dictionaries": pa.chunked_array(
            [dictionary(pa.array(range(at, at + 100), pa.timestamp("us"))) for at in (0, 100)]
        ),
        "a zone that is none": pa.array([1, 2], pa.timestamp("us", "Nowhere/None")),
        "a year that is none": pa.array([10**18, -(10**18)], pa.timestamp("s")),
        "too wide": pa.array([decimal.Decimal(10) ** 60, None], pa.decimal256(70, 0)),
        "no chunk of lists": pa.chunked_array([], pa.list_(pa.int8())),
    }


@pytest.mark.parametrize("policy", ["error", "side"])
def test_what_arrow_cannot_read_names_the_column(policy: Any) -> None:
    ops: list[tuple[Any, dict[str, Any]]] = [
        (echo({"x": of}, {}), {}) for of in (*KINDS.values(), *nullable(KINDS).values())
    ]
    ops += [(echo({}, {}), {"source": "x"}), (echo({}, {}), {"order_by": "x"})]
    for op, options in ops:
        with ss.Engine(op, threads=1, rejected_rows=policy, keys=True) as engine:
            for what, column in odd_columns().items():
                try:
                    engine.process(pa.table({"x": column}), **options)
                except ss.InputError as error:
                    if "'x'" not in str(error) and what != "no UTF-8":
                        pytest.fail(str(error))
                engine.rejected_rows()


def test_what_arrow_cannot_read_names_the_field() -> None:
    class Kept(ss.State):
        s = ss.list(str)
        i = ss.list(int)
        a = ss.array(int, 2)
        t = ss.array(str, 2)
        b = ss.list(bool)

    @ss.operator(state=Kept, event={}, emits={}, interpreted=True)
    def nothing(state, event, emit):
        pass

    for name in ("s", "i", "a", "t", "b"):
        for column in odd_columns().values():
            try:
                ss.Engine(nothing, initial={name: column}).close()
            except ss.ConfigurationError as error:
                if f"'{name}'" not in str(error):
                    pytest.fail(str(error))
