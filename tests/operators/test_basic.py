"""The basic operators do what they say: against brute force over plain Python, and pandas."""

# Operators and the functions they are given carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import datetime
import functools
import math
import pickle
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.daily import share_of
from support.operators import library
from support.pipelines import phases

import specstream as ss
from specstream.operators.basic import distinct, distinct_bloom, enrich, join, running_aggregate

# ---- distinct ----

VISIT: dict[str, Any] = {"user": str, "page": int, "price": float}
NUMBER: dict[str, Any] = {"n": int}
NINE: dict[str, Any] = {f"n{i}": int for i in range(9)}


def visits(count: int, seed: int = 1) -> pa.Table:
    dice = np.random.default_rng(seed)
    return pa.table(
        {
            "user": dice.choice(["", "ann", "bob", "eve"], count).tolist(),
            "page": dice.choice([0, -1, 7, 2**63 - 1, -(2**63)], count),
            "price": dice.choice([0.0, -0.0, math.nan, math.inf, 2.5], count),
            "time": np.cumsum(dice.integers(0, 4, count)),
        }
    )


def test_distinct_keeps_what_pandas_keeps() -> None:
    table = visits(200)
    run = library.agrees(distinct(VISIT, ["user", "page"]), table.drop(["time"]))
    kept = table.to_pandas().drop_duplicates(["user", "page"])
    assert run.output["user"].to_pylist() == kept["user"].tolist()
    assert run.output["page"].to_pylist() == kept["page"].tolist()
    np.testing.assert_array_equal(run.output["price"].to_numpy(), kept["price"])
    assert set(run.state.seen) == set(zip(kept["user"], kept["page"], strict=True))


def test_distinct_forgets_by_the_time_of_the_forwarded_event() -> None:
    table = visits(300)
    operator = distinct(VISIT, ["user", "page"], forget_after=25)
    run = library.agrees(operator, table, order_by="time")
    forwarded: dict[Any, int] = {}
    expected = []
    for user, page, _, time in zip(*table.to_pydict().values(), strict=True):
        if time - forwarded.get((user, page), -1000) >= 25:
            forwarded[user, page] = time
            expected.append((user, page))
    assert 20 < len(expected) < 250
    found = run.output.select(["user", "page"]).to_pydict()
    assert list(zip(*found.values(), strict=True)) == expected


def test_distinct_forwards_columns_of_all_types_and_nulls() -> None:
    columns = {
        "day": datetime.date,
        "at": ss.nullable(ss.timestamp("ms", "UTC")),
        "paid": ss.decimal(2),
        "note": ss.nullable(str),
        "is_open": bool,
    }
    day = datetime.date(2026, 3, 2)
    at = datetime.datetime(2026, 3, 2, 9, 30, tzinfo=datetime.UTC)
    table = {
        "day": [day, day, datetime.date(1969, 12, 31), day],
        "at": [None, at, at, None],
        "paid": [Decimal("1.50"), Decimal("1.5"), Decimal("-2"), Decimal("0.05")],
        "note": [None, "again", "", None],
        "is_open": [False, False, True, False],
    }
    run = library.checked(distinct(columns, ["day", "paid", "is_open"]), table)
    assert run.output.to_pylist() == [
        {"day": day, "at": None, "paid": Decimal("1.50"), "note": None, "is_open": False},
        {
            "day": datetime.date(1969, 12, 31),
            "at": at,
            "paid": Decimal("-2.00"),
            "note": "",
            "is_open": True,
        },
        {"day": day, "at": None, "paid": Decimal("0.05"), "note": None, "is_open": False},
    ]
    run = library.checked(distinct_bloom(columns, ["day", "paid", "is_open"]), table)
    assert run.output.num_rows == 3
    assert run.output["at"].to_pylist() == [None, at, None]


def test_distinct_takes_durations_and_has_a_limit() -> None:
    operator = distinct(NUMBER, "n", "1 minute", limit=2)
    time = pd.to_datetime(["2026-01-01 00:00:00", "2026-01-01 00:00:59", "2026-01-01 00:01:00"])
    with ss.Engine(operator) as engine:
        output = engine.process(pa.table({"n": [1, 1, 1], "time": time}), order_by="time")
        assert output["n"].to_pylist() == [1, 1]
    with ss.Engine(operator) as engine, pytest.raises(OverflowError, match="seen"):
        engine.process({"n": [1, 2, 3], "time": [time[0]] * 3}, order_by="time")


# ---- distinct, by Bloom filters ----


def bloom(capacity: int, error: float) -> ss.Operator:
    made: ss.Operator = distinct_bloom(NUMBER, "n", capacity, error)
    return made


def forwarded(operator: ss.Operator, numbers: Any) -> list[int]:
    with ss.Engine(operator, threads=1, horizon=0) as engine:
        found: list[int] = engine.process({"n": numbers})["n"].to_pylist()
    return found


def test_distinct_bloom_keeps_what_pandas_keeps_where_there_is_room() -> None:
    table = visits(200)
    operator = distinct_bloom(VISIT, ["user", "page"], capacity=1000, error=1e-6)
    run = library.agrees(operator, table.drop(["time"]))
    kept = table.to_pandas().drop_duplicates(["user", "page"])
    assert run.output["user"].to_pylist() == kept["user"].tolist()
    assert run.output["page"].to_pylist() == kept["page"].tolist()
    np.testing.assert_array_equal(run.output["price"].to_numpy(), kept["price"])


def test_distinct_bloom_agrees_where_filters_are_emptied() -> None:
    numbers = np.random.default_rng(4).integers(-60, 60, 300)
    run = library.agrees(bloom(20, 0.02), pa.table({"n": numbers}))
    assert 120 < run.output.num_rows < 300
    users = pa.table({"user": [f"user {one}" for one in numbers]})
    operator = distinct_bloom({"user": str}, "user", capacity=20)
    assert 120 < library.agrees(operator, users).output.num_rows < 300


def test_distinct_bloom_remembers_as_many_as_its_capacity() -> None:
    capacity, dice = 50, np.random.default_rng(5)
    numbers = np.concatenate([dice.integers(0, 150, 2000), np.full(20, 2**63 - 1)])
    found = forwarded(bloom(capacity, 1e-6), numbers)
    # Exact, but for keys that are forgotten: a model of two sets.
    old: set[int] = set()
    new: set[int] = set()
    expected = []
    for one in numbers.tolist():
        if one not in old and one not in new:
            expected.append(one)
            if len(new) == capacity:
                old, new = new, set()
            new.add(one)
    assert found == expected
    assert len(expected) > 500
    for at, one in enumerate(found):
        assert one not in found[max(0, at - capacity) : at]


@pytest.mark.parametrize("error", [0.2, 0.01])
def test_distinct_bloom_drops_few_new_keys(error: float) -> None:
    for seed, spread in ((6, 2**63 - 1), (7, 40_000)):
        numbers = np.random.default_rng(seed).permutation(40_000) * (spread // 40_000)
        dropped = 1.0 - len(forwarded(bloom(2000, error), numbers)) / 40_000
        assert 0.2 * error < dropped < error


@pytest.mark.parametrize("capacity", [1, 3, 10, 25])
def test_distinct_bloom_of_few_keys_drops_no_more(capacity: int) -> None:
    numbers = np.random.default_rng(9).permutation(10_000)
    assert 1.0 - len(forwarded(bloom(capacity, 0.5), numbers)) / 10_000 < 0.5


# ---- streams ----


def merged(day: dict[str, dict[str, list[Any]]]) -> list[tuple[int, str, tuple[Any, ...]]]:
    """All events: by time, of one time by the name of the source, and then as they came."""
    events = [
        (row[0], source, row[1:])
        for source, columns in sorted(day.items())
        for row in zip(*columns.values(), strict=True)
    ]
    return sorted(events, key=lambda one: one[0])


def joined_rows(p: ss.Pipeline, day: dict[str, dict[str, list[Any]]]) -> list[tuple[Any, ...]]:
    """What all settings emit, and the third witness: the unrewritten function under Python."""
    run = library.checked(p, day, order_by=next(iter(next(iter(day.values())))))
    seen = phases.Phases(p, phases.salts(p))
    for sequence, (time, source, row) in enumerate(merged(day)):
        values = dict(zip(list(day[source])[1:], row, strict=True))
        seen.phase(source, values, (time, phases.source_number(source), sequence))
    rows = list(zip(*run.output.to_pydict().values(), strict=True))
    (witnessed,) = seen.rows.values()
    assert rows == witnessed
    return rows


# ---- join ----


class Order(ss.Record):
    symbol: str
    limit: float


class Quote(ss.Record):
    symbol: str
    price: float
    size: int


class Suffixed(ss.Record):
    symbol: str
    symbol_2: str


ORDER: dict[str, Any] = {"symbol": str, "limit": float}
QUOTE: dict[str, Any] = {"symbol": str, "price": float, "size": int}


def fits(order, quote):
    return order.symbol == quote.symbol and quote.price <= order.limit


def market(**options: Any) -> ss.Pipeline:
    p = ss.Pipeline("market")
    joined = join(Order, Quote, fits, **options)
    orders, quotes = p.source("orders", ORDER), p.source("quotes", QUOTE)
    p.sink("fills", p.add(joined, left=orders, right=quotes))
    return p


def a_day(seed: int, orders: int = 60, quotes: int = 90) -> dict[str, dict[str, list[Any]]]:
    """Orders and quotes, with ties in time within a stream and across them, and equal prices."""
    dice = np.random.default_rng(seed)

    def column(values: Any, count: int) -> list[Any]:
        return dice.choice(values, count).tolist()  # type: ignore[no-any-return]

    return {
        "orders": {
            "time": np.sort(dice.integers(0, 150, orders)).tolist(),
            "symbol": column(["A", "B"], orders),
            "limit": column([1.0, 2.0, 3.0], orders),
        },
        "quotes": {
            "time": np.sort(dice.integers(0, 150, quotes)).tolist(),
            "symbol": column(["A", "B", "C"], quotes),
            "price": column([1.0, 2.0, 2.5, math.inf], quotes),
            "size": list(range(quotes)),
        },
    }


def pairs_by_brute_force(day: Any, is_near: Any) -> list[tuple[Any, ...]]:
    """Of every event those before it of the other stream, if ``is_near(events, old, new)``."""
    events = merged(day)
    found = []
    for new, (_, source, row) in enumerate(events):
        for old in range(new):
            if events[old][1] == source or not is_near(events, old, new):
                continue
            other = events[old][2]
            (symbol, limit), (of, price, size) = (
                (row, other) if source == "orders" else (other, row)
            )
            if symbol == of and price <= limit:
                found.append((symbol, limit, of, price, size))
    return found


def test_join_by_time_finds_the_pairs_of_brute_force() -> None:
    day = a_day(1)
    found = joined_rows(market(left_window=10, right_window=25), day)
    expected = pairs_by_brute_force(
        day,
        lambda events, old, new: (
            events[new][0] - events[old][0] <= {"orders": 10, "quotes": 25}[events[old][1]]
        ),
    )
    assert len(expected) > 50
    assert found == expected


def test_join_by_count_finds_the_pairs_of_brute_force() -> None:
    day = a_day(2)

    def is_near(events, old, new):
        later = [one for one in events[old + 1 : new] if one[1] == events[old][1]]
        return len(later) < {"orders": 3, "quotes": 8}[events[old][1]]

    operator = market(window="count", left_window=3, right_window=8)
    found = joined_rows(operator, day)
    expected = pairs_by_brute_force(day, is_near)
    assert len(expected) > 50
    assert found == expected
    run = operator.run_sequential(day, order_by="time")
    assert len(run.state.join.lefts) == 3
    assert len(run.state.join.rights) == 8


@functools.cache
def market_by_time(left: int, right: int) -> ss.Pipeline:
    return market(left_window=left, right_window=right)


@settings(max_examples=share_of(50))
@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=15),
    st.lists(st.integers(0, 9), min_size=1, max_size=15),
    st.sampled_from([(0, 0), (0, 3), (2, 1)]),
)
def test_join_finds_each_pair_once_at_the_edges_of_windows(
    orders: list[int], quotes: list[int], windows: tuple[int, int]
) -> None:
    orders.sort()
    quotes.sort()
    day = {
        "orders": {"time": orders, "symbol": ["A"] * len(orders), "limit": [5.0] * len(orders)},
        "quotes": {
            "time": quotes,
            "symbol": ["A"] * len(quotes),
            "price": [1.0] * len(quotes),
            "size": list(range(len(quotes))),
        },
    }
    left, right = windows
    found = market_by_time(left, right).run_sequential(day, order_by="time").output
    # Each order with each quote; of one time the order comes first.
    expected = [
        size
        for time in orders
        for size, at in enumerate(quotes)
        if 0 <= at - time <= left or 0 < time - at <= right
    ]
    assert sorted(found["size"].to_pylist()) == sorted(expected)


def test_join_by_time_goes_to_the_ends_of_the_integers() -> None:
    least, most = -(2**63), 2**63 - 1
    day = {
        "orders": {"time": [least, 0, most], "symbol": ["A"] * 3, "limit": [1.0, 2.0, 3.0]},
        "quotes": {
            "time": [least, -1, 2**62, most],
            "symbol": ["A"] * 4,
            "price": [0.0] * 4,
            "size": [1] * 4,
        },
    }
    output = market(left_window=2**62, right_window=0).run_sequential(day, order_by="time").output
    assert output["limit"].to_pylist() == [1.0, 2.0, 3.0]


def test_join_compares_two_events_of_one_phase() -> None:
    p = ss.Pipeline("itself")
    source = p.source("rows", {"symbol": str, "limit": float, "price": float, "size": int})
    p.sink(
        "fills",
        p.add(join(Order, Quote, fits), left=source, right=source),
    )
    table = {"symbol": ["A", "A"], "limit": [2.0, 3.0], "price": [2.0, 2.5], "size": [1, 2]}
    output = library.checked(p, table).output
    assert list(zip(output["limit"].to_pylist(), output["size"].to_pylist(), strict=True)) == [
        (2.0, 1),
        (3.0, 1),
        (3.0, 2),
    ]
    assert p.run_sequential([]).output.num_rows == 0


def test_join_says_that_a_window_by_time_is_full() -> None:
    with ss.Engine(market(limit=20)) as engine, pytest.raises(OverflowError, match=r"lefts|rights"):
        engine.process(a_day(1), order_by="time")


# ---- enrich ----

SALE: dict[str, Any] = {"item": str, "count": int}
ITEM: dict[str, Any] = {"item": str, "price": float, "name": str}


def shop(missing: str) -> ss.Pipeline:
    p = ss.Pipeline("shop")
    sales, items = p.source("sales", SALE), p.source("items", ITEM)
    p.sink("priced", p.add(enrich(SALE, ITEM, "item", missing), event=sales, table=items))
    return p


def trade(seed: int) -> dict[str, dict[str, list[Any]]]:
    dice = np.random.default_rng(seed)
    return {
        "sales": {
            "time": np.sort(dice.integers(0, 300, 200)).tolist(),
            "item": dice.choice(["tea", "jam", "egg", ""], 200).tolist(),
            "count": dice.integers(-3, 9, 200).tolist(),
        },
        "items": {
            "time": np.sort(dice.integers(50, 300, 30)).tolist(),
            "item": dice.choice(["tea", "jam", ""], 30).tolist(),
            "price": dice.choice([0.5, 1.0, 4.0], 30).tolist(),
            "name": [f"name {n}" for n in range(30)],
        },
    }


def enriched_by_pandas(day: Any) -> pd.DataFrame:
    """Of one time the items come first, as their source's name does."""
    sales, items = (pd.DataFrame(day[name]) for name in ("sales", "items"))
    return pd.merge_asof(sales, items, on="time", by="item")


def test_enrich_drops_what_pandas_does_not_find() -> None:
    day = trade(1)
    found = joined_rows(shop("drop"), day)
    expected = enriched_by_pandas(day).dropna().drop(columns="time")
    assert 50 < len(expected) < 180
    assert found == list(expected.itertuples(index=False, name=None))


def test_enrich_gives_nulls_where_pandas_finds_nothing() -> None:
    day = trade(2)
    found = joined_rows(shop("null"), day)
    expected = enriched_by_pandas(day).drop(columns="time").astype(object)
    expected = expected.where(expected.notna(), None)
    assert found == list(expected.itertuples(index=False, name=None))


def test_enrich_raises_where_it_is_told_so() -> None:
    day = {
        "sales": {"time": [1, 3, 4], "item": ["tea", "tea", "jam"], "count": [1, 2, 3]},
        "items": {"time": [2], "item": ["tea"], "price": [1.5], "name": ["Tea"]},
    }
    run = library.checked(shop("raise"), day, order_by="time")
    assert [type(error) for _, error in run.raised] == [KeyError, KeyError]
    assert run.output.to_pylist() == [{"item": "tea", "count": 2, "price": 1.5, "name": "Tea"}]


@pytest.mark.parametrize("missing", ["drop", "null"])
def test_enrich_by_several_columns_keeps_the_nulls_of_the_event(missing: str) -> None:
    event = {"country": str, "day": datetime.date, "note": ss.nullable(int)}
    table = {"rate": float, "day": datetime.date, "country": str, "until": datetime.date}
    p = ss.Pipeline("rates")
    operator = enrich(event, table, ["country", "day"], missing)
    p.sink("out", p.add(operator, event=p.source("a", event), table=p.source("b", table)))
    days = [datetime.date(2026, 3, day) for day in (1, 2, 3)]
    given = {
        "a": {
            "t": [1, 4, 5, 6],
            "country": ["A", "A", "B", "A"],
            "day": [days[0], days[0], days[1], days[0]],
            "note": [1, None, 3, 4],
        },
        "b": {
            "t": [2, 3, 5],
            "rate": [0.5, 0.25, 0.75],
            "day": [days[0], days[1], days[0]],
            "country": ["A", "B", "A"],
            "until": days,
        },
    }
    run = library.checked(p, given, order_by="t")
    rows = [
        ("A", days[0], 1, None, None),
        ("A", days[0], None, 0.5, days[0]),
        ("B", days[1], 3, 0.25, days[1]),
        ("A", days[0], 4, 0.75, days[2]),
    ]
    assert run.output.column_names == ["country", "day", "note", "rate", "until"]
    assert list(zip(*run.output.to_pydict().values(), strict=True)) == rows[missing == "drop" :]


def test_enrich_of_one_phase_has_the_row_of_that_phase() -> None:
    p = ss.Pipeline("itself")
    source = p.source("rows", {**SALE, "price": float, "name": str})
    p.sink("out", p.add(enrich(SALE, ITEM, "item", "raise"), event=source, table=source))
    table = {"item": ["a", "b"], "count": [1, 2], "price": [0.5, 1.5], "name": ["A", "B"]}
    output = library.checked(p, table).output
    assert output["price"].to_pylist() == [0.5, 1.5]
    assert p.run_sequential([]).output.num_rows == 0


# ---- running aggregates ----


BY_KEY = running_aggregate({"key": str})


def values(count: int, seed: int) -> pa.Table:
    dice = np.random.default_rng(seed)
    drawn = dice.normal(1e6, 1.0, count)
    drawn[::7] = 3.0
    drawn[::11] = -0.0
    return pa.table({"key": dice.choice(["", "a", "b"], count).tolist(), "value": drawn})


def test_running_aggregate_gives_what_pandas_gives() -> None:
    table = values(200, 3)
    run = library.agrees(BY_KEY, table)
    frame = table.to_pandas()
    of_key = frame.groupby("key")["value"]
    found = run.output.to_pandas()
    assert found["key"].tolist() == frame["key"].tolist()
    assert found["count"].tolist() == (of_key.cumcount() + 1).tolist()
    assert found["min"].tolist() == of_key.cummin().tolist()
    assert found["max"].tolist() == of_key.cummax().tolist()
    for at, (key, total, mean, variance) in enumerate(
        zip(found["key"], found["sum"], found["mean"], found["variance"], strict=True)
    ):
        until = frame["value"][: at + 1][frame["key"][: at + 1] == key]
        assert total == sum(until)
        assert mean == pytest.approx(math.fsum(until) / len(until), rel=1e-12)
        assert variance == pytest.approx(until.var(), rel=1e-9, nan_ok=True)


def test_running_aggregate_of_equal_values_has_no_variance() -> None:
    rows = running_aggregate({"n": int}, "x").run_sequential({"n": [1] * 5, "x": [0.1] * 5}).output
    assert rows["variance"].to_pylist() == [None, 0.0, 0.0, 0.0, 0.0]
    assert rows["mean"].to_pylist() == [0.1] * 5
    assert running_aggregate({"is_in": bool}).run_sequential([]).output.num_rows == 0


def test_running_aggregate_has_the_variance_of_large_values_that_are_close() -> None:
    drawn = [1e9 + step for step in (4.0, 7.0, 13.0, 16.0)]
    rows = BY_KEY.run_sequential({"key": ["a"] * 4, "value": drawn}).output
    assert rows["variance"].to_pylist()[-1] == 30.0


def test_running_aggregate_by_several_columns() -> None:
    day = datetime.date(2026, 3, 2)
    table = {"shop": ["a", "b", "a"], "day": [day] * 3, "paid": [1.0, 2.0, 4.0]}
    operator = running_aggregate({"shop": str, "day": datetime.date}, "paid")
    output = library.checked(operator, table).output
    assert output.column_names[:3] == ["shop", "day", "count"]
    assert output["day"].to_pylist() == [day] * 3
    assert output["sum"].to_pylist() == [1.0, 2.0, 5.0]


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf, 1.1e150])
def test_running_aggregate_refuses_values_that_would_stay_in_every_row(wrong: float) -> None:
    table = {"key": ["a"] * 3, "value": [1.0, wrong, 2.0]}
    run = library.checked(BY_KEY, table)
    assert [(row, type(error)) for row, error in run.raised] == [(1, ValueError)]
    assert run.output["mean"].to_pylist() == [1.0, 1.5]
    with pytest.raises(ValueError, match=r"^paid .* is not a number from -1e150 to 1e150"):
        running_aggregate({"key": str}, "paid").run_sequential({"key": ["a"], "paid": [wrong]})


def test_running_aggregate_of_the_largest_values_is_finite() -> None:
    drawn = [1e150, -1e150] * 20
    rows = BY_KEY.run_sequential({"key": ["a"] * 40, "value": drawn}).output
    assert all(math.isfinite(one) for one in rows["variance"].to_pylist()[1:])


# ---- shipping ----


def test_operators_with_functions_and_names_of_columns_can_be_shipped() -> None:
    day = a_day(3)
    shipped: ss.Pipeline = pickle.loads(pickle.dumps(market()))
    with ss.Engine(shipped) as engine:
        output = engine.process(day, order_by="time")
    assert output == market().run_sequential(day, order_by="time").output
    assert output.num_rows > 100
    for operator in (distinct(VISIT, "user"), distinct_bloom(VISIT, "user")):
        again: ss.Operator = pickle.loads(pickle.dumps(operator))
        with ss.Engine(again) as engine:
            assert engine.process(visits(20))["user"].to_pylist() == list(
                dict.fromkeys(visits(20)["user"].to_pylist())
            )


# ---- options ----


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: distinct({}, "user"), r"distinct: columns={}; expected the columns by their"),
        (lambda: distinct(VISIT, "name"), "distinct: key='name'; .*may be a key.*, of user, page"),
        (lambda: distinct(VISIT, []), r"distinct: key=\[\]; expected the name of a column"),
        (lambda: distinct(VISIT, ["user", "user"]), "distinct: key="),
        (
            lambda: distinct(VISIT, "price"),
            "distinct: key='price'; .*ints, bools or strings: 'price' is one of floats",
        ),
        (lambda: distinct({"n": ss.nullable(int)}, "n"), "distinct: key='n'; .*without nulls"),
        (lambda: distinct(VISIT, 5), "distinct: key=5; expected the name of a column"),
        (lambda: distinct(VISIT, {"user"}), "distinct: key={'user'}; expected a list of them"),
        (lambda: distinct({1: int}, 1), "distinct: columns={1: .*}; expected the columns by their"),
        (lambda: distinct(NINE, list(NINE)), "distinct: key=.*; expected at most 8 columns"),
        (lambda: running_aggregate(NINE), "running_aggregate: key=.*; expected at most 8 columns"),
        (lambda: enrich(NINE, {**NINE, "x": int}, list(NINE)), "enrich: key=.*at most 8 columns"),
        (
            lambda: enrich(NUMBER, {**NUMBER, **{f"x{i}": int for i in range(31)}}, "n"),
            "enrich: table=.*; expected at most 31 columns",
        ),
        (lambda: distinct(NUMBER, "n", 0), "distinct: forget_after=0; expected an integer from 1"),
        (lambda: distinct(NUMBER, "n", "soon"), "distinct: forget_after='soon' is no duration"),
        (lambda: distinct(NUMBER, "n", "-1 s"), "distinct: forget_after='-1 s'; .*above zero"),
        (lambda: distinct(VISIT, "user", limit=0), "distinct: limit=0"),
        (lambda: bloom(0, 0.1), "distinct_bloom: capacity=0; expected an integer from 1"),
        (lambda: bloom(5, 0.6), "distinct_bloom: error=0.6; expected a number from 1e-6 to 0.5"),
        (lambda: distinct_bloom(VISIT, "price"), "distinct_bloom: key='price'"),
        (lambda: distinct_bloom([], "user"), "distinct_bloom: columns="),
        (lambda: market(window="day"), "join: window='day'; expected one of time, count"),
        (lambda: market(left_window=-1), "join: left_window=-1; expected an integer from 0"),
        (lambda: market(window="count", right_window=0), "join: right_window=0"),
        (lambda: market(limit=0), "join: limit=0"),
        (
            lambda: join(ORDER, Quote, fits),
            "join: left=.*expected a class of records",
        ),
        (lambda: join(Order, Quote, True), "join: matches=True"),
        (lambda: market(suffix=""), "join: suffix=''; expected text that a name may end with"),
        (lambda: market(suffix="-2"), "join: suffix='-2'"),
        (lambda: join(Suffixed, Order, fits, suffix="_2"), "join: suffix='_2'; .* no other column"),
        (lambda: shop("none"), "enrich: missing='none'; expected one of drop, null, raise"),
        (lambda: enrich(SALE, ITEM, "count"), "enrich: key='count'; .*of item, price, name"),
        (lambda: enrich(SALE, ITEM, "price"), "enrich: key='price'; .*is one of floats"),
        (lambda: enrich(SALE, {"item": str}, "item"), "enrich: table=.*a column besides the key"),
        (
            lambda: enrich(SALE, {"item": int, "x": int}, "item"),
            "enrich: table=.*the type of the ev",
        ),
        (lambda: enrich(SALE, SALE, "item"), "enrich: table=.*'count' to be no column"),
        (
            lambda: enrich(SALE, {"item": str, "x": ss.nullable(int)}, "item"),
            "enrich: table=.*columns without nulls: 'x' is nullable",
        ),
        (lambda: enrich(SALE, ITEM, "item", limit=0), "enrich: limit=0"),
        (lambda: running_aggregate({}), "running_aggregate: key={}; expected the columns"),
        (lambda: running_aggregate({"x": float}), "running_aggregate: key=.*is one of floats"),
        (lambda: running_aggregate({"sum": int}), "running_aggregate: key=.*no column named as"),
        (lambda: running_aggregate({"a": int}, "a"), "running_aggregate: value='a'; expected the"),
        (lambda: running_aggregate({"a": int}, limit=-1), "running_aggregate: limit=-1"),
    ],
)
def test_wrong_options_are_refused(make: Any, message: str) -> None:
    with pytest.raises(ss.ConfigurationError, match=message):
        make()
