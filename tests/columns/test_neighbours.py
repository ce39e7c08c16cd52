"""What a value of Python's is does not depend on the values beside it, whichever way they come."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import datetime
import itertools
import uuid
from collections import deque
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import specstream as ss
from specstream.columns.tables import as_table

UTC = datetime.UTC
DAY = datetime.date(2024, 2, 29)
AT = datetime.datetime(2024, 2, 29, 3, tzinfo=UTC)
ONE = uuid.UUID(int=1)
EVENT = {
    "n": int,
    "f": float,
    "s": str,
    "b": bool,
    "day": datetime.date,
    "at": datetime.datetime,
    "paid": ss.decimal(2),
}


@ss.operator(
    event={name: ss.nullable(of) for name, of in EVENT.items()} | {"k": int}, emits={"k": int}
)
def keys(event, emit):
    emit(event.k)


# What a column takes, and what it does not; of the former how each comes out.
GOOD: dict[str, list[tuple[Any, Any]]] = {
    "n": [(7, 7), (np.int8(3), 3), (pa.scalar(5), 5)],
    "f": [(7.5, 7.5), (2, 2.0), (np.float32(0.5), 0.5), (np.float16(0.5), 0.5)],
    "s": [("a", "a"), (np.str_("b"), "b"), (pa.scalar("c"), "c")],
    "b": [(True, True), (np.False_, False)],
    "day": [(DAY, DAY), (pa.scalar(DAY), DAY)],
    "at": [
        (AT, AT),
        (AT.replace(tzinfo=None), AT),
        (np.datetime64("2024-02-29T03", "s"), AT),
        (np.datetime64("2024-02-29T03", "ns"), AT),
        (pd.Timestamp(AT), AT),
        (pd.NaT, None),
    ],
    "paid": [
        (Decimal("1.50"), Decimal("1.50")),
        (10, Decimal("10.00")),
        (9007199254740993, Decimal("9007199254740993.00")),
        (Decimal("12345678901.5"), Decimal("12345678901.50")),
    ],
}
NUMBERS = [
    5,
    1.5,
    Decimal("1.5"),
    ONE,
    Fraction(3, 2),
    np.True_,
    np.float16(1.5),
    np.longdouble(1.5),
]
BAD: dict[str, list[Any]] = {
    "n": [
        1.0,
        np.float16(0.1),
        True,
        np.True_,
        ONE,
        Fraction(2),
        np.longdouble(2.7),
        Decimal(2),
        "a",
    ],
    "f": [True, np.True_, ONE, Fraction(3, 2), np.longdouble(0.1), Decimal("1.5"), 2**53 + 1, "a"],
    "s": [b"a", 5, ONE, None.__class__],
    "b": [1, 0.0, np.int8(1), "True"],
    "day": [*NUMBERS, AT, np.datetime64(5, "s"), "2024-02-29"],
    "at": [*NUMBERS, DAY, pd.Timestamp(1), "2024-02-29"],
    "paid": [True, 1.5, ONE, Fraction(3, 2), Decimal("1.505"), Decimal("NaN"), 10**17, 2**70],
}
# Each alone, and beside one that fits, in both orders.
CASES = [
    (name, part)
    for name, wrong in BAD.items()
    for bad, (good, _) in zip(wrong, itertools.cycle(GOOD[name]), strict=False)
    for part in ([bad], [good, bad], [bad, good])
]
FORMS = ["rows", "columns", "objects", "collections", "frame"]


def given(form: str, name: str, values: list[Any]) -> Any:
    """Values of a column, the others being null."""
    count = len(values)
    columns: dict[str, Any] = {one: [None] * count for one in EVENT}
    columns |= {name: values, "k": list(range(count)), "time": list(range(count))}
    if form == "rows":
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    objects = np.empty(count, object)
    objects[:] = values
    forms: dict[str, Callable[[], Any]] = {
        "columns": lambda: columns,
        "objects": lambda: {**columns, name: objects},
        "collections": lambda: {**columns, name: deque(values)},
        "frame": lambda: pd.DataFrame({**columns, name: pd.Series(objects, dtype=object)}),
    }
    return forms[form]()


def fits(name: str, value: Any) -> bool:
    return any(value is good for good, _ in GOOD[name])


@pytest.mark.parametrize("form", FORMS)
def test_whatever_stands_beside_a_wrong_value_it_is_set_aside(form: str) -> None:
    with ss.Engine(keys, threads=1, rejected_rows="side") as engine:
        for name, values in CASES:
            if form == "frame" and "NaN" in map(str, values):
                continue  # which pandas has for what is missing
            left = [at for at, value in enumerate(values) if fits(name, value)]
            wrong = [at for at, value in enumerate(values) if not fits(name, value)]
            assert engine.process(given(form, name, values))["k"].to_pylist() == left, (
                name,
                values,
            )
            aside = engine.rejected_rows()
            assert aside is not None, (name, values)
            assert aside["k"].to_pylist() == wrong
            assert f"column {name!r}" in aside["reason"][0].as_py()


def test_submitted_and_sequential_and_of_a_pipeline() -> None:
    pipeline = ss.Pipeline("two")
    for one in ("left", "right"):
        source = pipeline.source(one, {n: ss.nullable(of) for n, of in EVENT.items()} | {"k": int})
        pipeline.sink(f"{one}s", pipeline.add(keys, source, name=f"of_{one}"))
    side: dict[str, Any] = {"threads": 1, "rejected_rows": "side"}
    with ss.Engine(keys, **side) as engine, ss.Engine(pipeline, **side) as both:
        at = 0
        for name, values in CASES:
            rows = [{**row, "time": at + row["k"]} for row in given("rows", name, values)]
            at += len(rows)
            left = [row["k"] for row, value in zip(rows, values, strict=True) if fits(name, value)]
            engine.submit(rows, order_by="time")
            if left:
                engine.advance(0, at)
                assert engine.poll(timeout=None)["k"].to_pylist() == left, (name, values)
            aside = engine.rejected_rows()
            assert aside is not None
            assert aside["k"].to_pylist() == [k for k in range(len(rows)) if k not in left]
            found = keys.run_sequential(rows, rejected_rows="side")
            assert found.output["k"].to_pylist() == left
            two = both.process(
                {"left": [{**given("rows", name, [None])[0], "time": 0}], "right": rows},
                order_by="time",
            )
            assert two["rights"]["k"].to_pylist() == left, (name, values)
            aside = both.rejected_rows()
            assert aside is not None
            assert aside["right.k"].to_pylist() == [k for k in range(len(rows)) if k not in left]


def test_the_error_names_row_column_and_value() -> None:
    with ss.Engine(keys, threads=1) as engine:
        for name, values in CASES:
            (row,) = (at for at, value in enumerate(values) if not fits(name, value))
            for run in (engine.process, keys.run_sequential):
                with pytest.raises(ss.InputError, match=f"column {name!r}") as caught:
                    run(given("rows", name, values))
                assert f"row {row}: " in str(caught.value), (name, values)
            with pytest.raises(ss.InputError, match=f"column {name!r}"):
                engine.submit_event(row, 0, **{**dict.fromkeys(EVENT), "k": 1, name: values[row]})


@ss.operator(
    event={
        "paid": ss.nullable(ss.decimal(2)),
        "at": ss.nullable(datetime.datetime),
        "f": ss.nullable(float),
        "n": ss.nullable(int),
        "s": ss.nullable(str),
    },
    emits={
        "paid": ss.nullable(ss.decimal(2)),
        "at": ss.nullable(datetime.datetime),
        "f": ss.nullable(float),
        "n": ss.nullable(int),
        "s": ss.nullable(str),
    },
)
def same(event, emit):
    emit(
        None if event.paid is None else event.paid,
        None if event.at is None else event.at,
        None if event.f is None else event.f,
        None if event.n is None else event.n,
        None if event.s is None else event.s,
    )


def test_what_fits_alone_fits_beside_each_other_that_does() -> None:
    with ss.Engine(same, threads=1) as engine:
        for name in ("paid", "at", "f", "n", "s"):
            for pair in itertools.permutations(GOOD[name], 2):
                rows = [
                    {**dict.fromkeys(("paid", "at", "f", "n", "s")), name: value}
                    for value, _ in pair
                ]
                assert engine.process(rows)[name].to_pylist() == [made for _, made in pair], pair


def test_a_source_of_rows_goes_by_the_same_rule() -> None:
    # It takes what JSON has for times and decimals as well.
    others = {"at": (str, int), "day": (str,), "paid": (str,), "f": (Decimal,)}
    for name, values in CASES:
        (bad,) = (value for value in values if not fits(name, value))
        if isinstance(bad, others.get(name, ())) and not isinstance(bad, bool):
            continue
        got: list[int] = []
        rows = [
            {k: v for k, v in row.items() if k != "time"} for row in given("rows", name, values)
        ]
        with ss.Engine(keys, threads=1, rejected_rows="side") as engine:
            ss.sources.run(
                engine,
                ss.sources.iterate(rows),
                to=lambda t, _, got=got: got.extend(t["k"].to_pylist()),
            )
            aside = engine.rejected_rows()
        assert aside is not None, (name, values)
        assert got == [at for at, value in enumerate(values) if value is not bad], (name, values)


@ss.operator(event={"k": int}, emits={"k": int, "time": int})
def timed(event, emit):
    emit(event.k, event.timestamp)


@ss.operator(event={"k": int}, emits={"k": int})
def untimed(event, emit):
    emit(event.k)


STAMP = datetime.datetime(2024, 2, 29, 3)
NO_TIMES = [
    np.True_,
    True,
    ONE,
    Fraction(3, 2),
    Decimal(2),
    "x",
    2**70,
    2**63,
    [1],
    None,
]


def test_times_are_looked_at_one_by_one() -> None:
    goods: list[list[Any]] = [[3, 1], [STAMP, STAMP.replace(day=1)], [DAY, DAY.replace(day=1)]]
    others: dict[int, list[Any]] = {0: [STAMP, DAY], 1: [5, 1.5, DAY], 2: [7, 1.5, STAMP]}
    with ss.Engine(timed, threads=1, rejected_rows="side") as engine:
        for number, good in enumerate(goods):
            for bad in (*NO_TIMES, np.float16(2.7), *others[number]):
                for place in range(3):
                    times = [*good[:place], bad, *good[place:]]
                    rows = [{"k": at, "time": time} for at, time in enumerate(times)]
                    order = [at for at in (2, 1, 0) if at != place]
                    forms: list[Any] = [rows, {"k": [0, 1, 2], "time": times}]
                    for form in forms:
                        found = engine.process(form, order_by="time")
                        assert found["k"].to_pylist() == order, times
                        aside = engine.rejected_rows()
                        assert aside is not None
                        assert aside["k"].to_pylist() == [place], times
                        reason = aside["reason"][0].as_py()
                        assert "column 'time'" in reason
                        assert bad is None or reason.startswith(f"row {place}: order column")
        for bad in NO_TIMES:
            assert engine.process([{"k": 1, "time": bad}], order_by="time").num_rows == 0
            assert engine.stats.rejected_rows
    with ss.Engine(timed, threads=1) as engine:
        for bad in NO_TIMES[:-1]:
            with pytest.raises(ss.InputError, match="row 1: order column 'time' is "):
                engine.process([{"k": 0, "time": 1}, {"k": 1, "time": bad}], order_by="time")


def test_submitted_times_and_sources() -> None:
    for op, more in ((timed, [1.5, np.float16(2.7)]), (untimed, [])):
        with ss.Engine(op, threads=1, rejected_rows="side") as engine:
            for bad in (*NO_TIMES, *more):
                engine.submit([{"k": 0, "time": bad}], order_by="time", source="a")
            assert engine.stats.rejected_rows == len(NO_TIMES) + len(more)
            rows = [{"k": at, "time": bad} for at, bad in enumerate((*NO_TIMES, 9, 8))]
            engine.submit(rows, order_by="time", source="a")
            engine.advance("a")
            assert engine.poll(timeout=None)["k"].to_pylist() == [len(NO_TIMES) + 1, len(NO_TIMES)]
    with ss.Engine(untimed, threads=1, rejected_rows="side", keys=True) as engine:
        sources = ["a", 5, None, 1.5, "b", b"a", "a", True]
        rows = [{"k": at, "time": at, "from": one} for at, one in enumerate(sources)]
        assert engine.process(rows, order_by="time", source="from")["source"].to_pylist() == [
            *("a", "b", "a"),
        ]
        aside = engine.rejected_rows()
        assert aside is not None
        assert aside["k"].to_pylist() == [1, 2, 3, 5, 7]


def test_times_of_several_units_and_floats_go_together() -> None:
    fine = np.datetime64("2024-02-29T03:00:00.000000001", "ns")
    times = [
        STAMP,
        fine,
        pd.Timestamp(STAMP) - pd.Timedelta(1, "ns"),
        np.datetime64("2024-02-29", "s"),
    ]
    with ss.Engine(untimed, threads=1, keys=True) as engine:
        found = engine.process(
            [{"k": at, "time": one} for at, one in enumerate(times)], order_by="time"
        )
        assert found["k"].to_pylist() == [3, 2, 0, 1]
        assert found["timestamp"].type == pa.timestamp("ns")
        found = engine.process({"k": [0, 1, 2], "time": [2, 1.5, np.float32(0.5)]}, order_by="time")
        assert found["k"].to_pylist() == [2, 1, 0]


def test_a_dictionary_of_times_is_decoded() -> None:
    for values in ([5, 3, 5], [STAMP, STAMP.replace(day=1), STAMP]):
        table = pa.table({"k": [0, 1, 2], "time": pa.array(values).dictionary_encode()})
        with ss.Engine(untimed, threads=1) as engine:
            assert engine.process(table, order_by="time")["k"].to_pylist() == [1, 0, 2]
            for _ in range(2):
                engine.submit(table, order_by="time", source="a")
            engine.advance("a")
            assert engine.poll(timeout=None)["k"].to_pylist() == [1, 1, 0, 2, 0, 2]
        assert untimed.run_sequential(table, order_by="time").output["k"].to_pylist() == [1, 0, 2]


def test_what_nobody_reads_is_not_cut_off() -> None:
    kept = {"k": [1, 2], "more": [1, 2.5], "and": [[1], (2,)], "all": ["a", b"b"]}
    assert as_table(kept, "op").num_rows == 2
    for wrong in ([1, np.True_], [DAY, 1.5], [0.5, True], [1, ONE]):
        with pytest.raises(ss.InputError, match=r"column 'more' is no column of a table .*row 1"):
            as_table({"more": wrong}, "op")


class Stream:
    """A stream of the C interface, whose empty chunks Arrow joins with no others."""

    def __init__(self, *batches: pa.RecordBatch) -> None:
        self._reader = pa.RecordBatchReader.from_batches(batches[0].schema, batches)

    def __arrow_c_stream__(self, requested: object = None) -> Any:
        return self._reader.__arrow_c_stream__(requested)


def test_batches_of_no_rows_are_left_out() -> None:
    batch = pa.record_batch(
        {"k": [1, 2, 3], "time": [1, 2, 3], "d": pa.array(["a", "b", "a"]).dictionary_encode()}
    )
    nothing = batch.slice(2, 0)
    for batches in ((batch, nothing), (batch.slice(1, 0), batch), (nothing, batch, nothing)):
        for order in (None, "time"):
            with ss.Engine(untimed, threads=1) as engine:
                assert engine.process(Stream(*batches), order_by=order)["k"].to_pylist() == [
                    1,
                    2,
                    3,
                ]
                table = pa.table(Stream(*batches))
                assert engine.process(table, order_by=order)["k"].to_pylist() == [1, 2, 3]
        with ss.Engine(untimed, threads=1, rejected_rows="side") as engine:
            engine.submit(Stream(*batches), order_by="time", source="a")
            engine.advance("a")
            assert engine.poll(timeout=None)["k"].to_pylist() == [1, 2, 3]
    with ss.Engine(untimed) as engine:
        assert engine.process(Stream(nothing)).num_rows == 0


class Kept(ss.State):
    s = ss.scalar(str)
    n = ss.array(int, 2)
    f = ss.array(float, 2)
    c = ss.list(int, limit=9)


@ss.operator(state=Kept, event={"k": int}, emits={"k": int})
def keeping(state, event, emit):
    emit(event.k)


@pytest.mark.parametrize(
    ("initial", "said"),
    [
        ({"s": 0}, "0 for field 's', which holds strings: give a str$"),
        ({"s": True}, "True for field 's', which holds strings: give a str$"),
        ({"n": [7, True]}, "bools among the values for field 'n'"),
        ({"n": [np.True_, 7]}, "bools among the values for field 'n'"),
        ({"f": [1.0, True]}, "bools among the values for field 'f'"),
        ({"n": [7, ONE]}, "for field 'n'"),
        ({"c": [7, np.True_]}, "True_? as element 1 of field 'c'"),
        ({"c": pd.DataFrame({"value": pd.Series([7, np.float16(2.5)], dtype=object)})}, "'c'"),
    ],
)
def test_values_of_an_initial_state_too(initial: dict[str, Any], said: str) -> None:
    with pytest.raises(ss.SpecstreamError, match=said):
        ss.Engine(keeping, initial=initial)
