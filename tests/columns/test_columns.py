"""Real columns: exact in, exact out, nulls where they are declared, bad rows where they are put."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import datetime
import itertools
import pickle
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from conftest import PATHS, Path, assert_identical, partial_of, run_engine, run_oracle
from hypothesis import example, given
from hypothesis import strategies as st
from support.engine.journeys import run_journey
from support.operators.families import events, typed

import specstream as ss
from specstream.columns.events import read_events
from specstream.columns.strings import StringTable
from specstream.declarations.schema import Schema

PATIENCE = 20.0
PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


class Seen(ss.State):
    n = ss.scalar(int)


@ss.operator(
    state=Seen,
    event={"when": ss.timestamp("us", "Europe/Berlin"), "day": datetime.date, "p": ss.decimal(2)},
    emits={
        "when": ss.timestamp("us", "Europe/Berlin"),
        "day": datetime.date,
        "p": ss.decimal(2),
        "number": int,
    },
)
def pass_on(state, event, emit):
    state.n += 1
    emit(event.when, event.day, event.p, event.p)


@ss.operator(
    state=Seen,
    event={
        "i": ss.nullable(int),
        "f": ss.nullable(float),
        "b": ss.nullable(bool),
        "s": str,
        "t": ss.nullable(str),
        "d": ss.nullable(datetime.date),
    },
    emits={"i": int, "f": float, "b": bool, "t": str, "d": int, "which": int},
)
def nulls(state, event, emit):
    which = 0
    if event.is_null("i"):
        which += 1
    which += 2 if event.is_null("f") else 0
    which += 4 * event.is_null("b")
    if event.is_null("t") and event.t == 0:
        which += 8
    if not event.is_null("d"):
        which += 16
    state.n += which
    emit(event.i, event.f, event.b, event.t, event.d, which)


@ss.operator(state=Seen, event={"i": int, "s": str, "p": ss.decimal(1)}, emits={"i": int, "s": str})
def echo(state, event, emit):
    state.n += 1
    emit(event.i, event.s)


WHEN = datetime.datetime(2013, 6, 1, 12, 30, tzinfo=datetime.UTC)
DAY = datetime.date(1969, 12, 31)


# ---- types ----


def test_every_type_comes_out_as_it_was_declared(path: Path) -> None:
    table = pa.table(
        {
            "when": pa.array([WHEN, WHEN], pa.timestamp("s", "America/New_York")),
            "day": [DAY, datetime.date(2024, 2, 29)],
            "p": [Decimal("-0.10"), Decimal(7)],
        }
    )
    output = path(pass_on, table).output
    assert output.schema == pass_on.output_schema
    assert output.schema.field("when").type == pa.timestamp("us", "Europe/Berlin")
    assert output.schema.field("day").type == pa.date32()
    assert output["when"].to_pylist() == [WHEN, WHEN]
    assert output["day"].to_pylist() == table["day"].to_pylist()
    assert output["p"].to_pylist() == [Decimal("-0.10"), Decimal("7.00")]
    assert output["number"].to_pylist() == [-10, 700]


@pytest.mark.parametrize(
    "change",
    [
        {"when": pa.array([WHEN], pa.timestamp("ns"))},
        {"when": pa.array([WHEN], pa.timestamp("ms", "UTC")).dictionary_encode()},
        {"day": pa.array([DAY], pa.date64())},
        {"p": pa.array([Decimal("1.5")], pa.decimal32(5, 1))},
        {"p": pa.array([Decimal("1.5")], pa.decimal64(10, 4))},
        {"p": pa.array([Decimal("1.5")], pa.decimal128(38, 20))},
        {"p": pa.array([Decimal("9.9"), Decimal("1.5")], pa.decimal128(38, 9)).slice(1)},
    ],
    ids=lambda change: " ".join(f"{name} {column.type}" for name, column in change.items()),
)
def test_whatever_type_the_table_has(change: dict[str, pa.Array]) -> None:
    columns = {"when": [WHEN], "day": [DAY], "p": [Decimal("1.5")]}
    with ss.Engine(pass_on, horizon=0) as engine:
        row = engine.process(pa.table({**columns, **change})).to_pylist()[0]
    assert row == {"when": WHEN, "day": DAY, "p": Decimal("1.50"), "number": 150}


def test_pandas_columns() -> None:
    frame = pd.DataFrame({"when": [pd.Timestamp(WHEN)], "day": [DAY], "p": [Decimal("1.5")]})
    with ss.Engine(pass_on, horizon=0) as engine:
        assert engine.process(frame)["when"].to_pylist() == [WHEN]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"when": [7]}, "column 'when' has type int64; the operator declares timestamp"),
        ({"when": pa.array([0, 1500], pa.timestamp("ns"))}, r"'when'.*does not fit.*\(row 1: "),
        ({"when": pa.array([0, 2**62], pa.timestamp("s"))}, r"'when'.*does not fit.*\(row 1: "),
        ({"day": pa.array([WHEN])}, "'day' has type timestamp.*; .* declares date32"),
        (
            {"day": pa.array([0, 86_400_001]).view(pa.date64())},
            r"'day' of type date64.*does not fit.*\(row 1: ",
        ),
        ({"p": [0.5]}, "'p' has type double; the operator declares decimal128"),
        ({"p": [Decimal(1), Decimal("0.001")]}, r"'p'.*does not fit.*\(row 1: 0.001\): cast it"),
        (
            {"p": [Decimal(1), Decimal(2**63) / 100]},
            r"type decimal128\(19, 2\) does not fit decimal128\(19, 2\) of 64 bits \(row 1: .*\): "
            "give it values that do",
        ),
        ({"p": [Decimal(1), Decimal(10**17)]}, r"'p'.*does not fit.*\(row 1: 1000"),
        ({"p": pa.array([None, Decimal(1)])}, "'p' has 1 null.*row 0.*nullable"),
    ],
)
def test_what_does_not_fit_is_named(change: dict[str, Any], message: str) -> None:
    size = len(next(iter(change.values())))
    columns = {"when": [WHEN] * size, "day": [DAY] * size, "p": [Decimal(1)] * size}
    with (
        ss.Engine(pass_on, horizon=0) as engine,
        pytest.raises(ss.InputError, match=f"(?s)pass_on.*{message}"),
    ):
        engine.process(pa.table({**columns, **change}))


@given(
    values=st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-(10**6), 10**6), min_size=1),
    given_unit=st.sampled_from(list(PER_SECOND)),
    wanted=st.sampled_from(list(PER_SECOND)),
)
def test_timestamps_are_converted_exactly_or_reported(
    values: list[int], given_unit: str, wanted: str
) -> None:
    from specstream.columns.conversion import from_arrow

    found, wrong = from_arrow(pa.array(values, pa.timestamp(given_unit)), ss.timestamp(wanted))
    assert wrong is not None
    for value, number, bad in zip(values, found.tolist(), wrong.tolist(), strict=True):
        exact, rest = divmod(value * PER_SECOND[wanted], PER_SECOND[given_unit])
        assert bad == (rest != 0 or not -(2**63) <= exact < 2**63)
        assert bad or number == exact


@given(
    values=st.lists(st.integers(-(10**37), 10**37) | st.integers(-(10**6), 10**6), min_size=1),
    given_scale=st.integers(0, 20),
    scale=st.integers(0, 18),
    nothing=st.booleans(),
)
def test_decimals_are_converted_exactly_or_reported(
    values: list[int], given_scale: int, scale: int, nothing: bool
) -> None:
    from specstream.columns.conversion import from_arrow

    of = pa.decimal128(38, given_scale)
    array = pa.array([Decimal(f"{value}e{-given_scale}") for value in values], of)
    array = pa.concat_arrays([array, pa.nulls(int(nothing), of)])
    found, wrong = from_arrow(array, ss.decimal(scale))
    assert wrong is not None
    for value, number, bad in zip([*values, 0], found.tolist(), wrong.tolist(), strict=False):
        exact, rest = divmod(value * 10**scale, 10**given_scale)
        assert bad == (rest != 0 or not -(2**63) <= exact < 2**63)
        assert bad or number == exact


@given(st.lists(st.integers(-(2**63), 2**63 - 1)), st.integers(0, 18))
def test_every_int_comes_out_as_a_decimal(numbers: list[int], scale: int) -> None:
    from specstream.columns.conversion import from_arrow, to_arrow

    words = np.array(numbers, np.int64)
    column = to_arrow(words, ss.decimal(scale))
    column.validate(full=True)
    assert column.to_pylist() == [Decimal(f"{number}e-{scale}") for number in numbers]
    assert from_arrow(column, ss.decimal(scale))[0].tolist() == numbers


def test_a_date_out_of_range_raises_at_its_event(path: Path) -> None:
    @ss.operator(state=Seen, event={"i": int}, emits={"day": datetime.date})
    def days(state, event, emit):
        state.n += 1
        emit(event.i)

    result = path(days, pa.table({"i": [1, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1]}))
    # Beyond the years that Python has.
    assert result.output["day"].cast(pa.int32()).to_pylist() == [1, 2**31 - 1, -(2**31)]
    assert [(row, kind) for row, kind, _ in result.raised] == [
        (2, "OverflowError"),
        (4, "OverflowError"),
    ]
    assert "emitted column 'day' is declared date32[day], which holds" in result.raised[0][2]
    assert result.state["n"] == 3


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (lambda: ss.timestamp("d"), "unit='d'; expected one of s, ms, us, ns"),
        (lambda: ss.decimal(19), "scale=19; expected an integer from 0 to 18"),
        (lambda: ss.nullable(list), "type list; expected one of int"),
        (lambda: ss.nullable("String"), "Arrow's types: write str, without quotation marks"),
        (lambda: ss.nullable("timestamp"), "write datetime.datetime, without quotation marks"),
        (lambda: operator_of({"x": Decimal}), r"column 'x' has type Decimal.*write ss\.decimal"),
    ],
)
def test_a_declaration_that_cannot_be_is_refused(declare: Callable[[], Any], message: str) -> None:
    with pytest.raises(ss.DeclarationError, match=message):
        declare()


def operator_of(event: Any, emits: Any = None) -> ss.Operator:
    @ss.operator(state=Seen, event=event, emits=emits or {})
    def counting(state, event, emit):
        state.n += 1

    return counting


# ---- nulls ----


def test_nulls_are_zeros_and_seen(path: Path) -> None:
    table = pa.table(
        {
            "i": [1, None, 3],
            "f": [None, 0.5, float("nan")],
            "b": [True, None, True],
            "s": ["a", "b", "c"],
            "t": pa.array(["x", "y", None]).dictionary_encode(),
            "d": [DAY, None, None],
        }
    )
    result = path(nulls, table)
    assert result.output["which"].to_pylist() == [2 + 16, 1 + 4, 8]
    assert result.output["i"].to_pylist() == [1, 0, 3]
    assert str(result.output["f"].to_pylist()) == "[0.0, 0.5, nan]"
    assert result.output["b"].to_pylist() == [True, False, True]
    assert result.output["t"].to_pylist() == ["x", "y", None]
    assert result.output["d"].to_pylist() == [-1, 0, 0]


@pytest.mark.parametrize("execution", ["log_free", "locked"])
def test_nulls_in_the_executions_of_benchmarks(execution: Any) -> None:
    table = {"i": [None, 2], "f": [1.0, None], "b": [True] * 2, "s": ["a"] * 2, "t": ["x"] * 2}
    with ss.Engine(nulls, threads=1, execution=execution) as engine:
        output = engine.process({**table, "d": [None, None]})
    assert output["which"].to_pylist() == [1, 2]


def test_a_column_of_nothing_but_nulls_and_one_without_nulls() -> None:
    full = {"i": [1], "f": [1.0], "b": [True], "s": ["a"], "t": ["x"], "d": [DAY]}
    with ss.Engine(nulls, horizon=0) as engine:
        assert engine.process(full)["which"].to_pylist() == [16]
        empty = {name: [None] for name in full if name != "s"}
        assert engine.process({**empty, "s": ["a"]})["which"].to_pylist() == [15]
        with pytest.raises(ss.InputError, match="row 0 has no value of column 's'"):
            engine.process({**full, "s": [None]})


def test_nulls_inside_a_dictionary() -> None:
    codes = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 2, 2]), ["x", None, "x"])
    rows = {name: [None] * 5 for name in "ifbd"}
    with ss.Engine(nulls, horizon=0) as engine:
        output = engine.process(pa.table({**rows, "s": pa.array(["a"] * 5), "t": codes}))
    assert output["t"].to_pylist() == ["x", None, None, "x", "x"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("event.is_null('key')", "column 'key' is not nullable: it is declared int.*ss.nullable"),
        ("event.is_null('other')", "has no column 'other'.*it has key, maybe"),
        ("event.is_null(event.key)", "takes the name of one column, as a literal"),
        ("event.is_null()", "takes the name of one column, as a literal"),
        ("event.is_null(name='maybe')", "takes the name of one column, as a literal"),
    ],
)
def test_what_is_null_cannot_be_asked(body: str, message: str, tmp_path: Any) -> None:
    import importlib.util

    text = (
        "import specstream as ss\nclass S(ss.State):\n    n = ss.scalar(int)\n"
        "@ss.operator(state=S, event={'key': int, 'maybe': ss.nullable(int)})\n"
        f"def asks(state, event, emit):\n    if {body}:\n        state.n += 1\n"
    )
    file = tmp_path / "asks.py"
    file.write_text(text)
    spec = importlib.util.spec_from_file_location("asks", file)
    assert spec is not None
    assert spec.loader is not None
    with pytest.raises(ss.CompileError, match=f"(?s)asks.py.*6.*{message}"):
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


def test_errors_and_hooks_show_values_as_the_table_has_them() -> None:
    @ss.operator(
        state=Seen,
        event={"when": ss.timestamp(), "p": ss.nullable(ss.decimal(1))},
        emits={"when": ss.timestamp()},
    )
    def fails(state, event, emit):
        emit(event.when)
        if event.is_null("p"):
            raise ValueError("no price")

    told: list[Any] = []
    naive = WHEN.replace(tzinfo=None)
    with ss.Engine(fails, horizon=0, on_commit=told.append) as engine:
        with pytest.raises(ValueError, match="no price") as caught:
            engine.process({"when": [naive, naive], "p": [Decimal("0.5"), None]})
        assert f"when={naive!r}, p=None" in caught.value.__notes__[0]
    assert told[0].values == {"when": naive, "p": Decimal("0.5")}
    assert told[0].rows == [(naive,)]


# ---- bad rows ----

BAD = pa.table(
    {
        "i": pa.array([1, 2, None, 4, 5, 6, 7, 2**63], pa.uint64()),
        "s": ["a", None, "hidden", "b", "also hidden", "c", "d", "never"],
        "p": [Decimal(x) for x in ("0.1", "0.1", "0.1", "0.1", "0.01", "0.1", "0.1", "0.1")],
        "t": [5.0, 4.0, 3.0, 2.0, 1.0, float("nan"), None, 0.0],
    }
)
REASONS = [
    "column 's' is null",
    "column 'i' is null",
    "column 'p' does not fit decimal128(19, 1) of 64 bits",
    "order column 't' is NaN",
    "column 't' is null",
    "column 'i' does not fit int64",
]


def test_bad_rows_are_left_out_and_kept() -> None:
    with ss.Engine(echo, threads=2, horizon=8, chunk=1, rejected_rows="side") as engine:
        output = engine.process(BAD, order_by="t")
        assert output.to_pydict() == {"i": [4, 1], "s": ["b", "a"]}
        assert engine.stats.rejected_rows == 6
        bad = engine.rejected_rows()
        assert bad is not None
        assert engine.rejected_rows() is None
        expected = BAD.take([1, 2, 4, 5, 6, 7])
        assert bad.column_names == ["i", "s", "p", "t", "reason"]
        assert str(bad.drop("reason").to_pylist()) == str(expected.to_pylist())
        assert bad["reason"].to_pylist() == REASONS
        # Their strings are not remembered, and the sequence goes on without them.
        assert engine.durable.strings.strings() == ["a", "b"]
        assert engine.durable.next_sequence == 2
        with pytest.raises(ss.InputError, match="no column 'p'"):
            engine.process({"i": [None], "s": ["x"]})
        assert engine.rejected_rows() is None
    sequential = echo.run_sequential(BAD, order_by="t", rejected_rows="side")
    assert sequential.output.equals(output)
    assert sequential.rejected_rows is not None
    assert sequential.rejected_rows.num_rows == 6


def test_bad_rows_of_submitted_events() -> None:
    with ss.Engine(
        echo, threads=2, horizon=8, chunk=1, rejected_rows="side", late="side"
    ) as engine:
        engine.submit(BAD, order_by="t")
        good: dict[str, Any] = {"i": 9, "s": "z", "p": Decimal("0.5")}
        engine.submit_event(6.0, **good)
        assert engine.stats.rejected_rows == 6
        for change in ({"i": None}, {"s": None}, {"i": 2**64}, {"p": Decimal("0.25")}):
            engine.submit_event(7.0, **{**good, **change})
        engine.submit_event(float("nan"), **good)
        with pytest.raises(ss.InputError, match="column 'i' gets 'text'"):
            engine.submit_event(7.0, **{**good, "i": "text"})
        with pytest.raises(ss.InputError, match=f"column 's' gets {2**63}"):  # a wrong type
            engine.submit_event(7.0, **{**good, "s": 2**63})
        engine.advance(0)
        rows: list[Any] = []
        while len(rows) < 3:
            rows += engine.poll_rows(timeout=PATIENCE)
        assert rows == [(4, "b"), (1, "a"), (9, "z")]
        assert engine.stats.rejected_rows == 6 + 5
        reasons = []
        while (bad := engine.rejected_rows()) is not None:
            reasons += bad["reason"].to_pylist()
        assert reasons[:6] == REASONS
        assert reasons[6:] == [
            "column 'i' is null",
            "column 's' is null",
            "column 'i' does not fit int64",
            "column 'p' does not fit decimal128(19, 1) of 64 bits",
            "order column 'timestamp' is NaN",
        ]


@pytest.mark.parametrize(
    ("value", "target"),
    [
        ({"i": 2**63}, "int64"),
        ({"i": -(2**64)}, "int64"),
        ({"p": 2**63}, "decimal128(19, 1) of 64 bits"),
    ],
)
def test_an_event_that_does_not_fit_is_told_as_its_reason_says(
    value: dict[str, Any], target: str
) -> None:
    event = {"i": 1, "s": "x", "p": Decimal("0.5"), **value}
    (name,) = value
    with ss.Engine(echo, horizon=0) as engine:
        told = re.escape(f"column {name!r} gets {value[name]}, which does not fit {target}: ")
        with pytest.raises(ss.InputError, match=told + '.*rejected_rows="side"'):
            engine.submit_event(1, **event)
    with ss.Engine(echo, horizon=0, rejected_rows="side") as engine:
        engine.submit_event(1, **event)
        rejected = engine.rejected_rows()
        assert rejected is not None
        assert rejected["reason"].to_pylist() == [f"column {name!r} does not fit {target}"]


def test_a_batch_that_is_refused_or_taken_back_leaves_no_bad_rows() -> None:
    bad: dict[str, list[Any]] = {"i": [None], "s": ["x"], "p": [Decimal(1)]}
    with ss.Engine(echo, horizon=0, rejected_rows="side") as engine:
        engine.process(bad)
        mark = engine.savepoint()
        engine.process(bad)
        engine.process({name: column * 3 for name, column in bad.items()})
        engine.rollback(mark)
        assert engine.stats.rejected_rows == 1
        kept = engine.rejected_rows()
        assert kept is not None
        assert kept.num_rows == 1
    with ss.Engine(echo, horizon=0, rejected_rows="side") as engine:
        engine.submit({**bad, "i": [1], "t": [5]}, order_by="t")
        engine.advance(0, 10)
        late = {"i": [None, 1], "s": ["x", "y"], "p": [Decimal(1)] * 2, "t": [9, 9]}
        with pytest.raises(ss.InputError, match="late"):
            engine.submit(late, order_by="t")
        assert engine.stats.rejected_rows == 0


def test_bad_rows_are_errors_by_default_and_the_policy_is_checked() -> None:
    with (
        ss.Engine(echo, horizon=0) as engine,
        pytest.raises(ss.InputError, match="column 'i' has 1 null"),
    ):
        engine.process(BAD)
    with pytest.raises(
        ss.ConfigurationError, match="rejected_rows='skip'; expected one of error, side"
    ):
        ss.Engine(echo, horizon=0, rejected_rows="skip")  # type: ignore[arg-type]


@pytest.mark.slow
@given(
    rows=st.lists(st.tuples(st.none() | st.integers(0, 2**64 - 1), st.none() | st.text("ab"))),
    options=st.sampled_from([options for options in PATHS.values() if options is not None]),
)
def test_what_is_left_is_run_as_if_it_were_all(rows: list[Any], options: dict[str, Any]) -> None:
    table = pa.table(
        {
            "i": pa.array([i for i, _ in rows], pa.uint64()),
            "s": pa.array([s for _, s in rows], pa.string()),
            "p": pa.array([1] * len(rows), pa.int8()),
        }
    )
    good = [i is not None and i < 2**63 and s is not None for i, s in rows]
    expected = run_oracle(echo, table.filter(pa.array(good, pa.bool_())))
    with ss.Engine(echo, rejected_rows="side", **options) as engine:
        assert engine.process(table).equals(expected.output)
        bad = engine.rejected_rows()
        assert (
            (0 if bad is None else bad.num_rows) == good.count(False) == engine.stats.rejected_rows
        )

    def last(engine: ss.Engine) -> None:
        bad = engine.rejected_rows()
        assert (0 if bad is None else bad.num_rows) == good.count(False)

    found = run_journey(
        echo, table, [options, {"horizon": 0}], len(rows), last, rejected_rows="side"
    )
    assert_identical(found, expected)


# ---- out of order, snapshots ----


def test_submitted_events_of_all_types() -> None:
    table = events(400).append_column("at", pa.array(range(400)))
    expected = run_oracle(typed, table)
    shuffled = table.take(np.random.default_rng(1).permutation(200))
    with ss.Engine(typed, threads=2, horizon=8, chunk=2) as engine:
        engine.submit(shuffled, order_by="at")
        for row in table.slice(200).to_pylist()[::-1]:
            at = row.pop("at")
            names = ("key", "when", "day", "price", "maybe", "note")
            engine.submit_event(at, **{name: row[name] for name in names})
        snapshot = engine.snapshot()
    # All are pending; columns and nulls come through the snapshot.
    with ss.Engine(typed, threads=2, horizon=8, chunk=2, restore=snapshot) as engine:
        engine.advance(0)
        parts, raised = [], []
        while engine.stats.pending:
            try:
                parts.append(engine.poll(timeout=PATIENCE))
            except OverflowError as error:
                parts.append(partial_of(error).output)
                raised.append(str(error))
        parts.append(engine.poll())
        state = engine.state.to_dict()
    found = pa.concat_tables(parts)
    assert raised == [message for _, _, message in expected.raised] != []
    assert found.equals(expected.output.combine_chunks()) or (
        str(found.to_pylist()) == str(expected.output.to_pylist())
    )
    for name, words in expected.state.items():
        np.testing.assert_array_equal(state[name], words)


def test_single_events_with_nulls_and_pandas_times() -> None:
    @ss.operator(
        state=Seen,
        event={"when": ss.nullable(ss.timestamp("ns")), "f": ss.nullable(float)},
        emits={"ticks": int, "nulls": int},
    )
    def ticks(state, event, emit):
        emit(event.when, int(event.is_null("when")) + 2 * int(event.is_null("f")))

    with ss.Engine(ticks, threads=1) as engine:
        for at, (when, f) in enumerate(
            [(pd.Timestamp(1), 1), (pd.NaT, None), (None, 2.5), (WHEN, np.float32(1))]
        ):
            engine.submit_event(at, when=when, f=f)
        with pytest.raises(ss.InputError, match="column 'f' gets True; the operator declares"):
            engine.submit_event(9, when=None, f=True)
        engine.advance(0)
        rows: list[Any] = []
        while len(rows) < 4:
            rows += engine.poll_rows(timeout=PATIENCE)
    assert rows == [(1, 0), (0, 3), (0, 1), (int(WHEN.timestamp()) * 10**9, 0)]


def test_pending_events_of_another_type_are_refused() -> None:
    def of(column: Any) -> ss.Operator:
        @ss.operator(state=Seen, event={"x": column})
        def counting(state, event, emit):
            state.n += event.x

        return counting

    with ss.Engine(of(ss.timestamp("ms")), horizon=0) as engine:
        engine.submit({"t": [1], "x": [WHEN]}, order_by="t")
        snapshot = engine.snapshot()
    with pytest.raises(ss.SnapshotError, match=r"timestamp\[ms\].*timestamp\[us\]"):
        ss.Engine(of(ss.timestamp("us")), horizon=0, restore=snapshot)


def test_typed_operators_under_random_settings() -> None:
    table = events(300, seed=5)
    expected = run_oracle(typed, table)
    for threads, chunk in itertools.product((1, 3), (1, 5)):
        found = run_engine(typed, table, threads=threads, horizon=8, chunk=chunk)
        assert_identical(found, expected)


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 2)), max_size=40), st.booleans())
@example([(3, 0), (5, 2), (5, 1)], False)  # only the sources are out of order
def test_rows_and_their_keys_get_the_order_of_a_stable_sort(
    rows: list[tuple[int, int]], in_order: bool
) -> None:
    if in_order:
        rows = sorted(rows)
    time, source = ([row[at] for row in rows] for at in (0, 1))
    table = pa.table(
        {"time": pa.array(time, pa.int64()), "source": pa.array(source, pa.int64())}
    ).append_column("x", pa.array(range(len(rows)), pa.int64()))
    schema = Schema.of({"x": int}, "event")
    read = read_events(table, schema, StringTable(), "test", 0, order_by="time", source="source")
    order = sorted(range(len(rows)), key=lambda row: rows[row])
    assert read.positions.tolist() == read.columns[2].tolist() == order
    for key, column, given_column in zip(read.keys, read.columns, (time, source), strict=False):
        assert key.to_pylist() == column.tolist() == [given_column[row] for row in order]


def test_a_schema_is_pickled_without_what_is_computed_of_it() -> None:
    schema = Schema.of({"x": ss.nullable(int), "y": str}, "emits")
    before = pickle.dumps(schema)
    assert schema.row_words == 4
    assert schema.arrow().names == ["x", "y"]
    assert pickle.dumps(schema) == before
    assert pickle.loads(before) == schema
    assert pickle.loads(before).null_bits == schema.null_bits


def test_keys_that_are_made_late_are_those_of_the_events_in_order() -> None:
    table = pa.table({"x": [1, 2, 3], "time": [30, 10, 20], "source": [7, 8, 9]})
    schema = Schema.of({"x": int}, "event")
    events = read_events(
        table, schema, StringTable(), "operator", 5, order_by="time", source="source"
    )
    assert [events.keys[at].to_pylist() for at in (0, 1, 0)] == [
        [10, 20, 30],
        [8, 9, 7],
        [10, 20, 30],
    ]
    unordered = read_events(table, schema, StringTable(), "operator", 5, source="source")
    assert [key.to_pylist() for key in unordered.keys] == [[5, 6, 7], [7, 8, 9]]
    assert [key.type for key in unordered.keys] == [pa.int64(), pa.int64()]
