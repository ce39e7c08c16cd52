"""Columns declared by classes and schemas: the operator is that of the dict that says the same."""

# Operators carry no types, as those of users do not; some are wrong on purpose.
# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs

from __future__ import annotations

import dataclasses
import datetime
import subprocess
import sys
from decimal import Decimal
from typing import Annotated, Any, ClassVar, NamedTuple, NotRequired, Optional, Required, TypedDict

import pyarrow as pa
import pytest
from pyspark.sql import types as spark

import specstream as ss
from specstream.declarations.schema import Schema


@dataclasses.dataclass
class Base:
    at: datetime.datetime
    day: datetime.date


@dataclasses.dataclass(slots=True)
class Trade(Base):
    kind: ClassVar[str] = "trade"
    symbol: str = ""
    price: Annotated[Decimal, ss.decimal(2)] = Decimal(0)
    size: int = 0
    weight: float | None = None
    is_buy: Optional[bool] = None  # noqa: UP045
    sent: Annotated[int | None, ss.timestamp("ms", "UTC")] = None


class TradeDict(TypedDict):
    at: datetime.datetime
    day: Required[datetime.date]
    symbol: str
    price: Annotated[Decimal, ss.decimal(2)]
    size: int
    weight: float | None
    is_buy: NotRequired[bool]
    sent: Annotated[int | None, ss.timestamp("ms", "UTC")]


class TradeTuple(NamedTuple):
    at: datetime.datetime
    day: datetime.date
    symbol: str
    price: Annotated[Decimal, ss.decimal(2)]
    size: int
    weight: float | None
    is_buy: bool | None
    sent: Annotated[int | None, ss.timestamp("ms", "UTC")]


AS_DICT = {
    "at": datetime.datetime,
    "day": datetime.date,
    "symbol": str,
    "price": ss.decimal(2),
    "size": int,
    "weight": ss.nullable(float),
    "is_buy": ss.nullable(bool),
    "sent": ss.nullable(ss.timestamp("ms", "UTC")),
}

ARROW = pa.schema(
    [
        pa.field("at", pa.timestamp("us", "UTC"), nullable=False),
        pa.field("day", pa.date32(), nullable=False),
        pa.field("symbol", pa.string(), nullable=False),
        pa.field("price", pa.decimal128(19, 2), nullable=False),
        pa.field("size", pa.int64(), nullable=False),
        pa.field("weight", pa.float64()),
        pa.field("is_buy", pa.bool_()),
        pa.field("sent", pa.timestamp("ms", "UTC")),
    ]
)

SPARK = spark.StructType(
    [
        spark.StructField("at", spark.TimestampNTZType(), False),
        spark.StructField("day", spark.DateType(), False),
        spark.StructField("symbol", spark.StringType(), False),
        spark.StructField("price", spark.DecimalType(19, 2), False),
        spark.StructField("size", spark.LongType(), False),
        spark.StructField("weight", spark.DoubleType(), True),
        spark.StructField("is_buy", spark.BooleanType(), True),
        spark.StructField("sent", spark.TimestampType(), True),
    ]
)


@pytest.mark.parametrize("what", ["event", "emits"])
@pytest.mark.parametrize("declared", [Trade, TradeDict, TradeTuple, ARROW, SPARK])
def test_whatever_declares_the_columns_they_are_those_of_the_dict(declared: Any, what: str) -> None:
    expected = Schema.of(AS_DICT, what)
    if declared is SPARK:  # of which one timestamp has no zone, and both have microseconds
        times = {"at": ss.timestamp("us", None), "sent": ss.nullable(ss.timestamp("us", "UTC"))}
        expected = Schema.of(AS_DICT | times, what)
    assert Schema.of(declared, what) == expected


class Total(ss.State):
    value = ss.scalar(float)


@dataclasses.dataclass
class Running:
    symbol: str
    total: float
    note: str | None


def test_an_operator_of_dataclasses_runs_on_objects_of_them() -> None:
    @ss.operator(state=Total, event=Trade, emits=Running)
    def running(state, event, emit):
        if not event.is_null("weight"):
            state.value += event.weight
        emit(event.symbol, state.value)

    day = datetime.date(2026, 1, 1)
    at = datetime.datetime(2026, 1, 1)
    trades = [Trade(at, day, "a", weight=1.5), Trade(at, day, "b"), Trade(at, day, "c", weight=2.0)]
    with ss.Engine(running, threads=2) as engine:
        found = engine.process(trades)
    assert found.to_pylist() == [
        {"symbol": "a", "total": 1.5, "note": None},
        {"symbol": "b", "total": 1.5, "note": None},
        {"symbol": "c", "total": 3.5, "note": None},
    ]
    assert found.schema == running.output_schema


@pytest.mark.parametrize(
    ("of", "column"),
    [
        (pa.int16(), int),
        (pa.uint64(), int),
        (pa.float32(), float),
        (pa.large_string(), str),
        (pa.string_view(), str),
        (pa.dictionary(pa.int8(), pa.string()), str),
        (pa.date64(), datetime.date),
        (pa.decimal128(30, 4), ss.decimal(4)),
        (pa.timestamp("ns", "UTC"), ss.timestamp("ns", "UTC")),
    ],
)
def test_an_event_has_the_schema_of_any_table_and_what_comes_out_is_what_was_declared(
    of: pa.DataType, column: Any
) -> None:
    assert Schema.of({"x": of}, "event") == Schema.of({"x": column}, "event")
    nullable = Schema.of(pa.schema([("x", of)]), "event")
    assert nullable == Schema.of({"x": ss.nullable(column)}, "event")
    emitted = Schema.of({"x": column}, "emits").arrow().field("x").type
    if emitted == of:
        assert Schema.of({"x": of}, "emits").arrow().field("x").type == of
        return
    with pytest.raises(ss.DeclarationError, match="an operator's rows come out as"):
        Schema.of({"x": of}, "emits")


@dataclasses.dataclass
class Unknown:
    good: int
    bad: Nowhere  # type: ignore[name-defined] # noqa: F821


class Partly(TypedDict, total=False):
    size: Required[int]
    price: ss.decimal(2)  # type: ignore[valid-type]


@dataclasses.dataclass
class Money:
    price: Decimal


@dataclasses.dataclass
class Union:
    bad: int | str | None


@dataclasses.dataclass
class Nested:
    inner: Trade


class Taken(TypedDict):
    timestamp: int


class Bare:
    x: int


def test_a_key_that_may_be_missing_is_nullable_and_a_column_may_be_an_annotation() -> None:
    expected = {"size": int, "price": ss.nullable(ss.decimal(2))}
    assert Schema.of(Partly, "event") == Schema.of(expected, "event")


MAP = spark.StructType(
    [spark.StructField("m", spark.MapType(spark.StringType(), spark.LongType()))]
)


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        (Unknown, "event=Unknown: the annotation of field 'bad', 'Nowhere', cannot be read"),
        (Money, r"column 'price' has type Decimal.*Annotated\[Decimal, ss\.decimal\(2\)\]"),
        (Union, r"column 'bad' has type int \| str \| None; expected one of"),
        (Nested, "column 'inner' has type Trade; expected one of"),
        (Taken, "column 'timestamp', which every event has already"),
        (Bare, "event= is the class Bare, which is none that declares columns"),
        (Money(Decimal(1)), "event= is an object of the dataclass Money, not the class"),
        (MAP, "column 'm' has Spark's type map<string,bigint>"),
        (pa.schema([("x", pa.list_(pa.int64()))]), r"column 'x' has Arrow's type list<"),
        (pa.schema([("x", pa.int64()), ("x", pa.int64())]), "two fields 'x'"),
        ([("x", int)], "event= is list; expected a dict"),
        ({"x": None}, "column 'x' has type None"),
    ],
)
def test_a_declaration_that_cannot_be_names_its_field(declared: Any, message: str) -> None:
    with pytest.raises(ss.DeclarationError, match=f"(?s){message}"):
        Schema.of(declared, "event")


def test_nothing_of_spark_is_imported_for_it() -> None:
    program = "import sys, specstream; assert 'pyspark' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
