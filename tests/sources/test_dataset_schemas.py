"""Files whose columns differ, as sources take them and as sinks leave them: like process() with the
same tables, or an error that names file and column."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import datetime
import decimal
import functools
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as pds
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import specstream as ss
from specstream.errors import SinkError


class Count(ss.State):
    n = ss.scalar(int)


@functools.cache
def echo(of: Any) -> Any:
    @ss.operator(
        state=Count,
        event={"x": ss.nullable(of)},
        emits={"x": ss.nullable(of)},
        interpreted=True,
        name="echo",
    )
    def op(state, event, emit):
        emit(event.x)

    return op


def by_process(op: Any, tables: list[pa.Table]) -> list[Any]:
    """The rows until one of the tables is refused, and which."""
    rows: list[Any] = []
    with ss.Engine(op) as engine:
        for number, table in enumerate(tables):
            try:
                rows += engine.process(table)["x"].to_pylist()
            except ss.InputError:
                return [*rows, f"{number}."]
    return rows


def by_files(op: Any, source: Any, **options: Any) -> list[Any]:
    """Likewise of a source, by the name of the file in the error."""
    rows: list[Any] = []
    with ss.Engine(op, **options) as engine:
        try:
            ss.sources.run(engine, source, to=lambda table, _: rows.extend(table["x"].to_pylist()))
        except ss.InputError as error:
            message = str(error)
            if "'x'" not in message:
                pytest.fail(message)
            (file,) = {one for one in ("0.", "1.", "2.") if f"/{one}" in message}
            return [*rows, file]
    return rows


TIME = datetime.datetime(1970, 1, 2, 12)
PAIRS: list[tuple[Any, list[Any]]] = [
    # Of the types of the column, and with values that do not fit it.
    (int, [pa.array([1], pa.int8()), pa.array([2**64 - 1], pa.uint64())]),
    (ss.timestamp("s"), [pa.array([1], pa.timestamp("s")), pa.array([1], pa.timestamp("ms"))]),
    (ss.decimal(2), [pa.array([1]), pa.array(["1.125"]).cast(pa.decimal128(9, 3))]),
    # Of others, or with values that fit.
    (float, [pa.array([0.5], pa.float32()), pa.array([0.1, 16777217.0])]),
    (float, [pa.array([0.1]), pa.array([0.5], pa.float32()), pa.array([3])]),
    (float, [pa.array([1]), pa.array([0.5])]),
    (datetime.date, [pa.array([0], pa.date32()), pa.array([TIME])]),
    (datetime.date, [pa.array([0], pa.date32()), pa.array([86400000], pa.date64())]),
    (ss.timestamp("us"), [pa.array([TIME]), pa.array([0], pa.date32())]),
    (ss.timestamp("ns"), [pa.array([1], pa.timestamp("s")), pa.array([1], pa.timestamp("ns"))]),
    (
        ss.timestamp("us", "UTC"),
        [
            pa.array([0], pa.timestamp("us", "UTC")),
            pa.array([1], pa.timestamp("us", "Europe/Berlin")),
            pa.array([2], pa.timestamp("us")),
        ],
    ),
    (bool, [pa.array([True]), pa.array([2, 0])]),
    (int, [pa.array([1]), pa.array(["007"])]),
    (int, [pa.array([1]), pa.array([2.5])]),
    (int, [pa.array([1]), pa.array([None, True])]),
    (int, [pa.array([1], pa.int32()), pa.array([2**40])]),
    (int, [pa.nulls(1), pa.array([1]), pa.nulls(1, pa.string())]),
    (str, [pa.nulls(1), pa.array(["a"])]),
    (str, [pa.array(["a"]), pa.array([1])]),
    (str, [pa.array(["a"]).dictionary_encode(), pa.array(["b"]), pa.array(["c"], "large_string")]),
    (str, [pa.array(["a"]), pa.array(["b"]).dictionary_encode()]),
    (ss.decimal(2), [pa.array([1]), pa.array(["1.25"]).cast(pa.decimal128(5, 2))]),
    (int, [pa.array([1]), None]),  # has no column x
    (int, [None, pa.array([1])]),
]


MISFITS = range(3)


@pytest.mark.parametrize("format", ["parquet", "ipc"])
def test_each_file_is_read_as_a_table(format: str, tmp_path: Path) -> None:
    for number, (of, columns) in enumerate(PAIRS):
        path = tmp_path / str(number)
        path.mkdir()
        tables = []
        for file, column in enumerate(columns):
            other = {"more": [1] if column is None else [1] * len(column)}
            table = pa.table(other if column is None else {"x": column, **other})
            if file % 2:
                table = table.select(table.column_names[::-1]).append_column(
                    f"new{file}", pa.nulls(table.num_rows, pa.string())
                )
            tables.append(table)
            if format == "parquet":
                pq.write_table(table, path / f"{file}.parquet")
            else:
                pyarrow.feather.write_feather(table, str(path / f"{file}.arrow"))
        expected = by_process(echo(of), tables)
        for policy in ("error", "side"):
            source = ss.sources.dataset(path, format=format)
            found = by_files(echo(of), source, rejected_rows=policy)
            # What does not fit is a matter of rows, and a type is none.
            is_misfit = policy == "side" and number in MISFITS
            assert found == (expected[:-1] if is_misfit else expected), columns
        rows = by_files(echo(of), ss.sources.dataset(pds.dataset(path, format=format)))
        assert rows == expected, columns


def test_files_of_text(tmp_path: Path) -> None:
    for directory, name, files in (
        ("csv", "csv", ["x,y\n1,a\n", "y,x\nb,1.5\n", "x\n\n2.5\n"]),
        ("json", "json", ['{"x": 1}\n', '{"y": 1, "x": 1.5}\n', '{"y": 2}\n']),
    ):
        path = tmp_path / directory
        path.mkdir()
        for number, text in enumerate(files):
            (path / f"{number}.{name}").write_text(text)
        found = by_files(echo(float), ss.sources.dataset(path, format=name))
        assert found == [1.0, 1.5, *([2.5] if name == "csv" else [None])]
    (tmp_path / "csv" / "1.csv").write_text("x\nabc\n")
    assert by_files(echo(float), ss.sources.dataset(tmp_path / "csv", format="csv")) == [1.0, "1."]


def test_what_a_dataset_was_told_holds(tmp_path: Path) -> None:
    for number, value in enumerate((1, 2)):
        path = tmp_path / f"day={number}"
        path.mkdir()
        pq.write_table(pa.table({"x": pa.array([value], pa.int32())}), path / "0.parquet")

    @ss.operator(state=Count, event={"x": int, "day": int}, emits={"x": int}, interpreted=True)
    def both(state, event, emit):
        emit(10 * event.day + event.x)

    dataset = pds.dataset(tmp_path, partitioning="hive")
    assert by_files(both, ss.sources.dataset(dataset)) == [1, 12]
    # A schema that is not that of the first file.
    schema = pa.schema({"x": pa.string()})
    assert by_files(echo(str), ss.sources.dataset(pds.dataset(tmp_path, schema=schema))) == [
        "1",
        "2",
    ]
    schema = pa.schema({"x": pa.int32(), "z": pa.int64()})

    @ss.operator(state=Count, event={"z": int | None}, emits={"x": bool}, interpreted=True)
    def added(state, event, emit):
        emit(event.z is None)

    assert by_files(added, ss.sources.dataset(pds.dataset(tmp_path, schema=schema))) == [True, True]


def test_a_run_goes_on_in_files_of_other_columns(tmp_path: Path) -> None:
    """An operator that reads a column more goes on where the files have it."""

    batches: dict[int, list[Any]] = {}

    def run(op: Any) -> list[Any]:
        with ss.Engine(op) as engine:
            ss.sources.run(
                engine,
                ss.sources.dataset(tmp_path / "in"),
                to=lambda table, batch: batches.update({batch: table["x"].to_pylist()}),
                checkpoint=tmp_path / "recorded",
                finish=False,
                max_rows=2,
            )
        return [row for rows in batches.values() for row in rows]

    (tmp_path / "in").mkdir()
    pq.write_table(pa.table({"x": pa.array([1, 2, 3], pa.int8())}), tmp_path / "in" / "0.parquet")
    assert run(echo(int)) == [1, 2, 3]
    pq.write_table(pa.table({"y": [0.5], "x": [2**40]}), tmp_path / "in" / "1.parquet")

    @ss.operator(
        state=Count, event={"x": int, "y": float}, emits={"x": int}, interpreted=True, name="echo"
    )
    def more(state, event, emit):
        emit(event.x + int(2 * event.y))

    assert run(more) == [1, 2, 3, 2**40 + 1]


def test_tables_of_a_pipelines_source_are_not_cast_to_each_other(tmp_path: Path) -> None:
    @ss.operator(
        state=Count,
        inputs={"one": {"x": ss.decimal(2)}, "other": {"y": int}},
        emits={"x": ss.decimal(2)},
    )
    def decide(state, event, emit):
        if event.changed("one"):
            emit(event.one.x)

    pipeline = ss.Pipeline("both")
    one = pipeline.source("one", {"x": ss.decimal(2)})
    other = pipeline.source("other", {"y": int})
    pipeline.sink("rows", pipeline.add(decide, one=one, other=other))
    large, decimals = 10**15 + 1, pa.array(["1.25"]).cast(pa.decimal128(5, 2))
    money = [
        pa.table({"time": [1], "x": [large]}),
        pa.table({"time": [2], "x": decimals}),
        pa.table({"time": [3], "x": decimals.dictionary_encode()}),
        pa.table({"time": [4], "x": [0.1]}),
    ]
    pq.write_table(pa.table({"time": [1], "y": [1]}), tmp_path / "0.parquet")
    rows: list[Any] = []
    given = ss.sources.iterate(iter(money), columns={"time": int})
    source = ss.sources.union({"one": given, "other": ss.sources.dataset(tmp_path)})
    with (
        ss.Engine(pipeline) as engine,
        pytest.raises(ss.InputError, match=r"source 'one'.*column 'x' has type double"),
    ):
        ss.sources.run(
            engine,
            source,
            to={"rows": lambda table, _: rows.extend(table["x"].to_pylist())},
            order_by="time",
            max_wait=0.2,
        )
    assert rows == [large, decimal.Decimal("1.25"), decimal.Decimal("1.25")]


def test_what_sinks_have_left_is_read_with_all_its_columns(tmp_path: Path) -> None:
    sink = ss.sinks.parquet_sink(tmp_path / "rows", partition_by=["day"])
    memory = ss.sinks.memory_sink("rows")
    tables = [
        pa.table({"a": pa.array([1], pa.int8()), "day": ["mon"]}),
        pa.table({"a": [2**40], "day": ["mon"], "b": [2.5]}),
        pa.table({"b": [0.1], "a": [3], "day": ["tue"]}),
        pa.table({"a": pa.nulls(1), "c": ["x"], "day": ["tue"]}),
    ]
    expected = [
        {"a": 1, "b": None, "c": None, "day": "mon"},
        {"a": 2**40, "b": 2.5, "c": None, "day": "mon"},
        {"a": 3, "b": 0.1, "c": None, "day": "tue"},
        {"a": None, "b": None, "c": "x", "day": "tue"},
    ]
    for number, table in enumerate(tables):
        sink(table, number)
        memory(table, number)

    def rows(table: pa.Table) -> list[Any]:
        return sorted(table.to_pylist(), key=expected.index)

    path = tmp_path / "rows"
    for _ in range(2):
        assert rows(ss.sinks.parquet_dataset(path).to_table()) == expected
        assert rows(sink.dataset().to_table()) == expected
        ss.sinks.compact(path, grace=0, leave=0)
    assert rows(memory.to_arrow()) == expected
    for wrong in (pa.array(["text"]), pa.array([True])):
        sink(pa.table({"a": wrong, "day": ["mon"]}), 4)
        with pytest.raises(SinkError, match=r"column 'a' is .* in .*part-.*, and no type holds"):
            ss.sinks.parquet_dataset(path)
        memory(pa.table({"a": wrong}), 4)
        with pytest.raises(SinkError, match=r"column 'a' is .* and no type holds both"):
            memory.to_arrow()


@pytest.mark.parametrize(
    ("whole", "other", "is_held"),
    [
        (pa.array([2**53 + 1]), pa.array([1.5]), False),
        (pa.array([2**53]), pa.array([1.5]), True),
        (pa.array([2**63], pa.uint64()), pa.array([-1]), False),
        (pa.array([2**63 - 1], pa.uint64()), pa.array([-1]), True),
    ],
)
def test_a_value_that_no_type_of_all_files_holds_is_told_with_its_file(
    whole: pa.Array, other: pa.Array, is_held: bool, tmp_path: Path
) -> None:
    for at, tables in enumerate(((whole, other), (other, whole))):
        sink = ss.sinks.parquet_sink(tmp_path / str(at))
        for number, values in enumerate(tables):
            sink(pa.table({"x": values}), number)
        if is_held:
            found = sink.dataset().to_table()["x"].to_pylist()
            assert found == [one for values in tables for one in values.to_pylist()]
            continue
        with pytest.raises(SinkError, match=rf"column 'x' is u?int64 in part-0+{at}.parquet"):
            ss.sinks.parquet_dataset(tmp_path / str(at))


def test_changes_of_batches_with_other_columns() -> None:
    key = {"timestamp": [7], "source": ["b"], "n": [0]}
    first = pa.table(key | {"sequence": [0], "price": [3.5], "change": ["early"], "version": [1]})
    then = pa.table(
        key | {"sequence": [1], "price": [4.5], "size": [2], "change": ["early"], "version": [2]}
    )
    found = ss.early.latest([first, then])
    assert found["size"].to_pylist() == [None, 2]
    sink = ss.sinks.memory_sink("early")
    sink(first, 0)
    sink(then, 1)
    assert ss.sinks.latest(sink)["price"].to_pylist() == [3.5, 4.5]
    with pytest.raises(ss.InputError, match=r"column 'price' is double in .* and string"):
        ss.early.latest([first, then.set_column(4, "price", pa.array(["much"]))])


@ss.operator(event={"kind": str, "x": ss.nullable(float)}, emits={"x": float})
def bids(event, emit):
    if event.x is not None:
        emit(event.x)


@ss.operator(
    event={"kind": str, "x": ss.nullable(float), "day": int}, emits={"x": float, "day": int}
)
def bids_of_days(event, emit):
    if event.x is not None:
        emit(event.x, event.day)


def test_json_lines_whose_first_megabyte_lacks_a_column(tmp_path: Path) -> None:
    """Arrow's datasets have it as nulls then, for all rows."""
    lines = [json.dumps({"kind": "create", "note": "x" * 60}) for _ in range(20_000)]
    lines += [json.dumps({"kind": "bid", "x": number + 0.5}) for number in range(1_000)]
    directory = tmp_path / "day=3"
    directory.mkdir()
    (directory / "0.json").write_text("\n".join(lines) + "\n")
    expected = [number + 0.5 for number in range(1_000)]
    sources = [
        (bids, ss.sources.dataset(directory / "0.json", format="json")),
        (
            bids_of_days,
            ss.sources.dataset(pds.dataset(tmp_path, format="json", partitioning="hive")),
        ),
    ]
    for operator, source in sources:
        sink = ss.sinks.memory_sink("bids")
        with ss.Engine(operator) as engine:
            ss.sources.run(engine, source, to=sink)
        found = sink.to_arrow()
        assert found["x"].to_pylist() == expected
        if operator is bids_of_days:
            assert set(found["day"].to_pylist()) == {3}
