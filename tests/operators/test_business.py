"""The operators of a business: against implementations that know nothing of them."""

import datetime
import functools
import math
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.daily import share_of
from support.engine.ahead import run_ahead
from support.operators.library import agrees, checked

import specstream as ss
from specstream.operators.business import (
    bank_transfers,
    inventory,
    leaderboard,
    option_price,
    order_book,
    token_bucket,
    top_routes,
    velocity,
)

Row = tuple[Any, ...]


def rows(output: pa.Table) -> list[Row]:
    return [tuple(row.values()) for row in output.to_pylist()]


def table_of(names: list[str], events: list[Row], types: dict[str, pa.DataType]) -> pa.Table:
    """Events as a table, of the right types also where there is none."""
    columns = list(zip(*events, strict=True)) or [()] * len(names)
    return pa.table(
        {name: pa.array(part, types[name]) for name, part in zip(names, columns, strict=True)}
    )


# ---- bank transfers ----

PAYMENT = {"payer": pa.string(), "payee": pa.string(), "amount": pa.decimal128(12, 2)}


def payments_of(events: list[Row]) -> pa.Table:
    return table_of(list(PAYMENT), events, PAYMENT)


def bank_by_hand(events: list[Row]) -> tuple[list[Row], dict[str, Decimal]]:
    """A ledger: a balance is the sum of all that was booked."""
    ledger: list[tuple[str | None, str | None, Decimal]] = []

    def balance(account: str | None) -> Decimal | None:
        if account is None:
            return None
        return sum(
            (amount * ((to == account) - (by == account)) for by, to, amount in ledger),
            Decimal("0.00"),
        )

    found: list[Row] = []
    for payer, payee, amount in events:
        before = balance(payer)
        accepted = before is None or before >= amount
        if accepted:
            ledger.append((payer, payee, amount))
        found.append((accepted, balance(payer), balance(payee)))
    names = {name for entry in ledger for name in entry[:2] if name is not None}
    return found, {name: balance(name) or Decimal(0) for name in names}


payments = st.lists(
    st.tuples(
        st.sampled_from([None, "ann", "bob", "eve", ""]),
        st.sampled_from([None, "ann", "bob", "eve", "zoë"]),
        (st.integers(1, 4) | st.integers(1, 500)).map(lambda cents: Decimal(cents).scaleb(-2)),
    ).filter(lambda event: event[0] is not None or event[1] is not None),
    max_size=40,
)


def test_bank_transfers_book_what_a_ledger_books() -> None:
    operator = bank_transfers()

    @settings(max_examples=share_of(100), deadline=None)
    @given(payments)
    def run(events: list[Row]) -> None:
        expected, balances = bank_by_hand(events)
        found = operator.run_sequential(payments_of(events))
        assert rows(found.output) == expected
        state = found.state
        assert dict(state.balances) == {name: int(100 * one) for name, one in balances.items()}
        assert sum(state.balances.values()) == state.deposited - state.withdrawn
        assert min(state.balances.values(), default=0) >= 0

    run()


def test_bank_transfers_agree_in_all_settings() -> None:
    rng = np.random.default_rng(1)
    names = [None, *"abcdefgh"]
    events = [
        (names[a], names[b], Decimal(int(cents)).scaleb(-2))
        for a, b, cents in zip(
            rng.integers(0, 9, 300) * (rng.random(300) < 0.8),
            rng.integers(0, 9, 300),
            rng.integers(-5, 400, 300),
            strict=True,
        )
    ]
    run = agrees(bank_transfers(), payments_of(events), are_none=True)
    good = [event for event in events if event[2] > 0 and event[:2] != (None, None)]
    assert rows(run.output) == bank_by_hand(good)[0]
    assert len(run.raised) == len(events) - len(good) > 0
    assert {row[0] for row in rows(run.output)} == {True, False}
    assert sum(run.state.balances.values()) == run.state.deposited - run.state.withdrawn


def test_bank_transfers_of_numbered_accounts_in_whole_units() -> None:
    table = {"payer": [None, -1, 2**62], "payee": [-1, 2**62, None], "amount": [2**62, 3, 3]}
    run = bank_transfers(account=int, digits=0).run_sequential(table)
    assert dict(run.state.balances) == {-1: 2**62 - 3, 2**62: 0}
    assert run.state.withdrawn == 3


def test_bank_transfers_raise_before_a_balance_leaves_64_bits() -> None:
    operator = bank_transfers(digits=0)
    table = {"payer": [None] * 3, "payee": ["a"] * 3, "amount": [2**63 - 1, 1, 5]}
    run = checked(operator, table)
    assert [(row, str(error)) for row, error in run.raised] == [
        (row, "bank_transfers: the payee's balance leaves 64 bits") for row in (1, 2)
    ]
    assert dict(run.state.balances) == {"a": 2**63 - 1}
    assert run.state.deposited == 2**63 - 1


def test_what_was_deposited_and_withdrawn_wraps() -> None:
    table = {"payer": [None, "a"] * 2, "payee": ["a", None] * 2, "amount": [2**63 - 1] * 4}
    run = bank_transfers(digits=0).run_sequential(table)
    assert run.output["accepted"].to_pylist() == [True] * 4
    assert (run.state.deposited, run.state.withdrawn) == (-2, -2)


# ---- token bucket ----

REQUEST = {"key": pa.string(), "cost": pa.int64(), "time": pa.int64()}


def buckets_by_fractions(events: list[Row], capacity: int, refill: int, per: int) -> list[Row]:
    """Tokens as fractions, of all keys for ever; how long to wait is tried out."""
    rate = Fraction(refill, per)
    tokens: dict[str, tuple[Fraction, int]] = {}
    found: list[Row] = []
    for key, cost, time in events:
        level, since = tokens.get(key, (Fraction(capacity), time))
        level = min(Fraction(capacity), level + rate * (time - since))
        allowed = level >= cost
        wait = 0 if cost <= capacity else None
        while wait is not None and level + rate * wait < cost:
            wait += 1
        level -= cost * allowed
        tokens[key] = level, time
        found.append((key, allowed, math.floor(level), wait))
    return found


requests = st.lists(
    st.tuples(st.sampled_from("ab"), st.integers(0, 6), st.integers(0, 9)), min_size=3, max_size=30
)


@pytest.mark.parametrize(
    ("capacity", "refill", "per"),
    [(1, 1, 1), (1, 1, 5), (3, 2, 7), (5, 3, 1), (6, 5, 4), (2, 9, 2)],
)
def test_token_buckets_keep_fractions_exactly(capacity: int, refill: int, per: int) -> None:
    operator = token_bucket(capacity, refill, per)

    @settings(max_examples=share_of(60), deadline=None)
    @given(st.sampled_from([0, -50, 10**18]), requests)
    def run(time: int, drawn: list[tuple[str, int, int]]) -> None:
        events: list[Row] = []
        for key, cost, step in drawn:
            time += step
            events.append((key, cost, time))
        output = operator.run_sequential(
            table_of(list(REQUEST), events, REQUEST), order_by="time"
        ).output
        assert rows(output) == buckets_by_fractions(events, capacity, refill, per)

    run()


def test_token_buckets_agree_in_all_settings() -> None:
    rng = np.random.default_rng(2)
    time = np.cumsum(rng.integers(0, 4, 400)).tolist()
    events = list(zip(rng.choice(list("abcdef"), 400), rng.integers(-1, 6, 400), time, strict=True))
    operator = token_bucket(capacity=4, refill=2, per=7)
    run = agrees(operator, table_of(list(REQUEST), events, REQUEST), order_by="time")
    good = [event for event in events if event[1] >= 0]
    assert rows(run.output) == buckets_by_fractions(good, 4, 2, 7)
    assert len(run.raised) == len(events) - len(good) > 0
    assert {row[1] for row in rows(run.output)} == {True, False}


def test_no_tokens_are_lost_by_asking_often() -> None:
    # A third of a token flows in each time, and the request that takes one comes every third time.
    table = {"key": ["a"] * 3001, "cost": [1, *[0, 0, 1] * 1000], "time": list(range(3001))}
    output = token_bucket(capacity=1, per=3).run_sequential(table, order_by="time").output
    assert output["allowed"].to_pylist() == [True] * 3001


def test_a_full_bucket_is_forgotten_and_times_far_apart_do_no_harm() -> None:
    operator = token_bucket(capacity=2, refill=1, per=10)
    table = {"key": ["a", "b", "c"], "cost": [2] * 3, "time": [-(2**63), 2**63 - 21, 2**63 - 2]}
    run = operator.run_sequential(table, order_by="time")
    assert list(run.state.buckets) == ["b", "c"]
    assert run.output["allowed"].to_pylist() == [True] * 3
    again = operator.run_sequential({**table, "key": ["a"] * 3}, order_by="time").output
    assert again["allowed"].to_pylist() == [True, True, False]


def test_buckets_take_no_request_before_their_last() -> None:
    with ss.Engine(token_bucket(capacity=4, refill=2, per=7)) as engine:
        engine.process({"key": ["a"], "cost": [1], "time": [5]}, order_by="time")
        with pytest.raises(ValueError, match="token_bucket: request at 4; the last was at 5"):
            engine.process({"key": ["a"], "cost": [1], "time": [4]}, order_by="time")


def test_a_late_request_of_a_forgotten_bucket_finds_a_full_one() -> None:
    with ss.Engine(token_bucket(capacity=1, refill=1, per=4)) as engine:
        engine.process({"key": ["a", "b"], "cost": [1, 1], "time": [0, 9]}, order_by="time")
        late = {"key": ["a", "a"], "cost": [1, 1], "time": [-5, -5]}
        assert engine.process(late, order_by="time")["allowed"].to_pylist() == [True, False]


# ---- velocity ----

CARD = {"card": pa.string(), "amount": pa.decimal128(12, 2), "time": pa.int64()}


def velocity_by_hand(
    events: list[Row], window: int, most_events: float, most_amount: Decimal
) -> list[Row]:
    """Looks at all payments before each payment."""
    found = []
    for at, (card, _, time) in enumerate(events):
        within = [
            amount
            for other, amount, before in events[: at + 1]
            if other == card
            if time - before < window
        ]
        if len(within) > most_events or sum(within) > most_amount:
            found.append((card, len(within), sum(within)))
    return found


def card_payments(seed: int, count: int) -> list[Row]:
    rng = np.random.default_rng(seed)
    time = np.cumsum(rng.choice([0, 1, 2, 40], count, p=[0.3, 0.4, 0.25, 0.05])).tolist()
    cents = [Decimal(int(one)).scaleb(-2) for one in rng.integers(0, 10_000, count)]
    return list(zip(rng.choice(list("abcde"), count), cents, time, strict=True))


@pytest.mark.parametrize(
    ("window", "most_events", "most_amount"),
    [(10, 2, None), (25, None, Decimal("150.55")), (60, 6, 300), (1, 1, None), (10**9, None, 0)],
)
def test_velocity_sees_what_a_look_at_all_payments_sees(
    window: int, most_events: int | None, most_amount: Decimal | int | None
) -> None:
    events = card_payments(window, 300)
    expected = velocity_by_hand(
        events,
        window,
        math.inf if most_events is None else most_events,
        Decimal(10**9 if most_amount is None else most_amount),
    )
    assert 0 < len(expected) < 300 or most_amount == 0
    operator = velocity(window, most_events, most_amount)
    run = operator.run_sequential(table_of(list(CARD), events, CARD), order_by="time")
    assert rows(run.output) == expected
    last = events[-1][2]  # what is older than two windows has gone
    assert all(time > last - 2 * window for time, _ in run.state.payments.values())


def test_velocity_agrees_in_all_settings() -> None:
    events = card_payments(5, 300)
    events[20] = ("a", Decimal("-0.01"), events[20][2])
    operator = velocity(25, most_events=4, most_amount=200)
    run = agrees(operator, table_of(list(CARD), events, CARD), order_by="time")
    assert [row for row, _ in run.raised] == [20]
    good = [*events[:20], *events[21:]]
    assert rows(run.output) == velocity_by_hand(good, 25, 4, Decimal(200))


def test_velocity_raises_for_what_it_cannot_count() -> None:
    operator = velocity(10, most_events=1, card=int, digits=0)
    table = {"card": [1, 1, 2], "amount": [2**63 - 1, 1, 1], "time": [0, 1, 1]}
    run = operator.run_sequential(table, order_by="time", on_error="skip")
    assert [str(error) for _, error in run.raised] == [
        "velocity: the amounts within the window leave 64 bits"
    ]
    with ss.Engine(velocity(25, most_events=4, most_amount=200)) as engine:
        engine.process({"card": ["a"], "amount": [1], "time": [5]}, order_by="time")
        with pytest.raises(ValueError, match="velocity: payment at 4; the card's last was at 5"):
            engine.process({"card": ["a"], "amount": [1], "time": [4]}, order_by="time")


# ---- leaderboard ----


def boards_by_sorting(events: list[Row], places: int, scores: str) -> list[Row]:
    """Sorts all players after each event, and tells the first apart from those before."""
    history: dict[str, list[int]] = {}
    reached: dict[str, tuple[int, int]] = {}
    found, shown = [], [("", 0)] * places
    for number, (player, score) in enumerate(events):
        history.setdefault(player, []).append(score)
        now = {"last": score, "sum": sum(history[player]), "best": max(history[player])}[scores]
        if player not in reached or reached[player][0] != now:
            reached[player] = now, number
        ranking = sorted(reached, key=lambda who: (-reached[who][0], reached[who][1]))
        first = [(who, reached[who][0]) for who in ranking[:places]]
        pairs = zip(range(1, places + 1), first, shown[: len(first)], strict=False)
        found += [(place, *new) for place, new, old in pairs if new != old]
        shown[: len(first)] = first
    return found


def games_of(events: list[Row]) -> pa.Table:
    return table_of(["player", "score"], events, {"player": pa.string(), "score": pa.int64()})


@pytest.mark.parametrize("scores", ["last", "sum", "best"])
@pytest.mark.parametrize(("places", "spare"), [(1, 0), (3, 0), (3, 2), (5, 100)])
def test_leaderboards_show_what_sorting_shows(scores: str, places: int, spare: int) -> None:
    operator = leaderboard(places, scores, spare)

    @settings(max_examples=share_of(30), deadline=None)
    @given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.integers(-3, 3)), max_size=50))
    def run(events: list[Row]) -> None:
        expected = boards_by_sorting(events, places, scores)
        assert rows(operator.run_sequential(games_of(events)).output) == expected

    run()


def test_leaderboards_agree_in_all_settings() -> None:
    rng = np.random.default_rng(3)
    players = [f"player {n}" for n in rng.zipf(1.4, 300) % 25]
    events: list[Row] = list(zip(players, rng.integers(-40, 100, 300).tolist(), strict=True))
    run = agrees(leaderboard(4, "sum", spare=3), games_of(events))
    assert rows(run.output) == boards_by_sorting(events, 4, "sum")
    assert run.state.outside


def test_leaderboards_of_numbered_players_take_all_of_64_bits() -> None:
    low, high = -(2**63), 2**63 - 1
    table = {"player": [low, high, -1, low], "score": [low, high, 0, low]}
    run = leaderboard(places=2, scores="sum", player=int).run_sequential(table, on_error="skip")
    assert rows(run.output) == [(1, low, low), (1, high, high), (2, low, low), (2, -1, 0)]
    assert [str(error) for _, error in run.raised] == [
        "leaderboard: a sum of scores leaves 64 bits"
    ]


# ---- order book ----

ORDER = {
    "action": pa.string(),
    "order": pa.int64(),
    "buys": pa.bool_(),
    "price": pa.decimal128(6, 2),
    "quantity": pa.int64(),
}


def book_by_hand(events: list[Row]) -> tuple[list[Row], list[list[Any]]]:
    """A list of resting orders [buys, price, number, quantity], searched for each match."""
    book: list[list[Any]] = []
    found: list[Row] = []
    for action, number, buys, price, quantity in events:
        if action == "cancel":
            mine = [one for one in book if one[2] == number]
            found += [("cancelled", number, None, None, one[3]) for one in mine]
            if not mine:
                found.append(("rejected", number, None, None, 0))
            book = [one for one in book if one[2] != number]
            continue
        left = quantity
        others = [one for one in book if one[0] != buys]
        for one in sorted(others, key=lambda one: one[1], reverse=not buys):  # stable: by time
            crosses = action == "market" or (one[1] <= price if buys else one[1] >= price)
            if left and crosses:
                part = min(left, one[3])
                left, one[3] = left - part, one[3] - part
                found.append(("trade", number, one[2], one[1], part))
        book = [one for one in book if one[3]]
        if left and action == "limit":
            book.append([buys, price, number, left])
        elif left:
            found.append(("cancelled", number, None, None, left))
    return found, book


def orders_of(steps: list[tuple[str, int, bool, int, int]]) -> list[Row]:
    """Events of steps, in which numbers come again as soon as their orders have gone."""
    events: list[Row] = []
    for at, (action, which, buys, price, quantity) in enumerate(steps):
        if action == "cancel":
            number = which % 8 if which % 2 else -(which % (at + 1)) - 1
            events.append(("cancel", number, None, None, None))
            continue
        number = at % 8
        if any(one[2] == number for one in book_by_hand(events)[1]):
            number = -at - 1
        asked = None if action == "market" else Decimal(price).scaleb(-1)
        events.append((action, number, buys, asked, quantity))
    return events


def sides(state: Any) -> list[list[Any]]:
    """The resting orders of a state, in the order in which they came to rest."""
    entries = sorted((one.entry, number, one) for number, one in state.orders.items())
    return [
        [one.buys, Decimal(one.price).scaleb(-2), number, one.left] for _, number, one in entries
    ]


steps = st.tuples(
    st.sampled_from(["limit", "limit", "limit", "market", "cancel", "cancel"]),
    st.integers(0, 99),
    st.booleans(),
    st.integers(-2, 3),
    st.integers(1, 5),
)


def test_order_book_trades_as_a_search_of_all_orders_does() -> None:
    operator = order_book()

    @settings(max_examples=share_of(150), deadline=None)
    @given(st.lists(steps, max_size=60))
    def run(drawn: list[Any]) -> None:
        events = orders_of(drawn)
        expected, book = book_by_hand(events)
        found = operator.run_sequential(table_of(list(ORDER), events, ORDER))
        assert rows(found.output) == expected
        assert sides(found.state) == book

    run()


def random_orders(seed: int, count: int) -> list[Row]:
    rng = np.random.default_rng(seed)
    actions = rng.choice(["limit", "market", "cancel"], count, p=[0.55, 0.05, 0.4]).tolist()
    parts = [rng.integers(low, high, count).tolist() for low, high in ((0, 999), (0, 2), (1, 9))]
    prices = [int(one) for one in rng.normal(1000, 8, count)]
    return orders_of(
        [
            (action, which, bool(buys), price, quantity)
            for action, which, buys, price, quantity in zip(
                actions, parts[0], parts[1], prices, parts[2], strict=True
            )
        ]
    )


def test_order_books_agree_in_all_settings() -> None:
    events = random_orders(4, 400)
    wrong = [
        ("stop", 1, True, Decimal(1), 1),
        ("limit", 1001, True, Decimal(1), 0),
        ("limit", 1001, True, Decimal(1), None),
        ("limit", 1001, True, None, 1),
        ("market", 1001, None, None, 1),
        ("limit", book_by_hand(events[:200])[1][0][2], True, Decimal(1), 1),
    ]
    mixed = [*events[:200], *wrong, *events[200:]]
    run = agrees(order_book(), table_of(list(ORDER), mixed, ORDER), are_none=True)
    assert [row for row, _ in run.raised] == list(range(200, 206))
    expected, book = book_by_hand(events)
    assert rows(run.output) == expected
    assert sides(run.state) == book
    assert {row[0] for row in expected} == {"trade", "cancelled", "rejected"}


def test_a_number_that_is_used_again_has_the_place_of_its_new_order() -> None:
    sold: list[Row] = [("limit", number, False, Decimal(9 + number), 1) for number in (1, 2)]
    again: list[Row] = [
        ("limit", number, False, Decimal(price), 1) for number, price in ((3, 12), (2, 13))
    ]
    bought: list[Row] = [("market", number, True, None, 1) for number in (4, 5, 6)]
    events = [*sold, ("cancel", 2, None, None, None), *again, *bought]
    output = order_book().run_sequential(table_of(list(ORDER), events, ORDER)).output
    assert output["against"].to_pylist() == [None, 1, 3, 2]


def test_order_books_do_not_keep_what_was_cancelled() -> None:
    # A best bid that stays, and under it orders that all are cancelled.
    events: list[Row] = [("limit", 0, True, Decimal(100), 1)]
    for number in range(1, 500):
        events.append(("limit", number, True, Decimal(99), 1))
        events.append(("cancel", number, None, None, None))
    run = order_book().run_sequential(table_of(list(ORDER), events, ORDER))
    assert list(run.state.orders) == [0]
    assert len(run.state.bids) < 20


# ---- inventory ----

STOCK = {
    "action": pa.string(),
    "item": pa.string(),
    "reservation": pa.int64(),
    "quantity": pa.int64(),
    "time": pa.int64(),
}


def stock_by_hand(events: list[Row], hold: int) -> list[Row]:
    """A list of entries [item, what, quantity]; what is available is their sum."""
    entries: list[tuple[str, int]] = []
    made: dict[int, tuple[int, str, int]] = {}  # in the order of making
    found: list[Row] = []

    def available(item: str) -> int:
        return sum(quantity for one, quantity in entries if one == item)

    def close(what: str, number: int) -> None:
        _, item, quantity = made.pop(number)
        if what != "confirmed":
            entries.append((item, quantity))
        found.append((what, number, item, quantity, available(item)))

    for action, item, number, quantity, time in [*events, ("end", "", 0, 0, math.inf)]:
        for due in sorted(made, key=lambda one: made[one][0]):  # stable
            if made[due][0] + hold <= time:
                close("expired", due)
        if action == "receive":
            entries.append((item, quantity))
            found.append(("received", None, item, quantity, available(item)))
        elif action == "reserve":
            assert number not in made
            what = "reserved" if available(item) >= quantity else "refused"
            if what == "reserved":
                made[number] = time, item, quantity
                entries.append((item, -quantity))
            found.append((what, number, item, quantity, available(item)))
        elif action != "end" and number not in made:
            found.append(("unknown", number, None, None, None))
        elif action != "end":
            close({"confirm": "confirmed", "cancel": "cancelled"}[action], number)
    return found


def stock_events(drawn: list[tuple[str, str, int, int, int]]) -> list[Row]:
    """Times out of steps; a reservation that may still be held is not made again."""
    time = 0
    events: list[Row] = []
    used: set[int] = set()
    for action, item, number, quantity, step in drawn:
        time += step
        if action == "receive":
            events.append((action, item, None, quantity, time))
        elif action == "reserve":
            while number in used:
                number += 10
            used.add(number)
            events.append((action, item, number, quantity, time))
        else:
            events.append((action, None, number, None, time))
            used.discard(number)
    return events


stock_steps = st.tuples(
    st.sampled_from(["receive", "reserve", "reserve", "reserve", "confirm", "cancel"]),
    st.sampled_from(["tea", "nut"]),
    st.integers(0, 5),
    st.integers(1, 4),
    st.sampled_from([0, 1, 1, 2, 9, 10]),
)


def test_inventories_hold_what_a_list_of_entries_holds() -> None:
    operator = inventory(hold=10)

    @settings(max_examples=share_of(150), deadline=None)
    @given(st.lists(stock_steps, max_size=50))
    def run(drawn: list[Any]) -> None:
        events = stock_events(drawn)
        table = table_of(list(STOCK), events, STOCK)
        output = operator.run_sequential(table, order_by="time", end=True).output
        assert rows(output) == stock_by_hand(events, 10)

    run()


def test_inventories_agree_in_all_settings() -> None:
    rng = np.random.default_rng(6)
    actions = ["receive", "reserve", "reserve", "confirm", "cancel"]
    events = stock_events(
        [
            (actions[a], item, number, quantity, step)
            for a, item, number, quantity, step in zip(
                rng.integers(0, 5, 300),
                rng.choice(list("abcd"), 300).tolist(),
                rng.integers(0, 30, 300).tolist(),
                rng.integers(1, 5, 300).tolist(),
                rng.integers(0, 3, 300).tolist(),
                strict=True,
            )
        ]
    )
    time = events[99][4]
    wrong = [
        ("sell", "a", 1, 1, time),
        ("receive", None, None, 1, time),
        ("receive", "a", None, 0, time),
        ("reserve", "a", None, 1, time),
        ("cancel", None, None, None, time),
    ]
    table = table_of(list(STOCK), [*events[:100], *wrong, *events[100:]], STOCK)
    run = agrees(inventory(hold=25), table, order_by="time", are_none=True)
    assert [row for row, _ in run.raised] == list(range(100, 105))
    found = rows(run.output)
    assert found == stock_by_hand(events, 25)
    assert {row[0] for row in found} == {
        *("received", "reserved", "refused", "confirmed", "cancelled", "expired", "unknown")
    }
    # The input has ended, so that nothing is held: what was received is available or confirmed.
    for item, available in run.state.available.items():
        received, confirmed = (
            sum(row[3] for row in found if row[0] == what and row[2] == item)
            for what in ("received", "confirmed")
        )
        assert received == available + confirmed


def test_a_reservation_in_use_is_not_made_again_and_one_that_ended_is() -> None:
    table = {
        "action": ["receive", "reserve", "reserve", "reserve"],
        "item": [7] * 4,
        "reservation": [None, 1, 1, 1],
        "quantity": [5, 2, 1, 4],
        "time": [0, 0, 9, 10],
    }
    run = inventory(hold=10, item=int).run_sequential(table, order_by="time", on_error="skip")
    assert [str(error) for _, error in run.raised] == ["inventory: reservation 1 is in use"]
    assert run.output["what"].to_pylist() == ["received", "reserved", "expired", "reserved"]
    assert dict(run.state.held) == {1: (7, 4)}
    assert dict(run.state.timers) == {1: 20}


def test_what_a_reservation_gives_back_may_find_no_room() -> None:
    most = 2**63 - 1
    table = {
        "action": ["receive", "reserve", "receive", "cancel", "receive"],
        "item": ["a"] * 5,
        "reservation": [None, 1, None, 1, None],
        "quantity": [most, most, 1, None, 1],
        "time": [0, 0, 1, 2, 10],
    }
    run = inventory(hold=10).run_sequential(table, order_by="time", on_error="skip")
    assert [(row, str(error)) for row, error in run.raised] == [
        (row, "inventory: what there is of an item leaves 64 bits") for row in (3, None)
    ]
    assert (dict(run.state.available), dict(run.state.held)) == ({"a": 2}, {1: ("a", most)})


# ---- option price ----

QUOTE = ["spot", "strike", "rate", "volatility", "years"]


def quotes(count: int) -> dict[str, np.ndarray[Any, Any]]:
    rng = np.random.default_rng(7)
    ranges = ((90, 110), (90, 110), (-0.01, 0.08), (0.2, 0.5), (0.4, 1.5))
    return {name: rng.uniform(*of, count) for name, of in zip(QUOTE, ranges, strict=True)}


def black_scholes(quote: Sequence[float], payoff: str) -> float:
    spot, strike, rate, volatility, years = quote
    sign = {"call": 1, "put": -1}[payoff]
    spread = volatility * math.sqrt(years)
    d = (math.log(spot / strike) + (rate + volatility**2 / 2) * years) / spread
    normal = [0.5 * math.erfc(-sign * one / math.sqrt(2)) for one in (d, d - spread)]
    return sign * (spot * normal[0] - strike * math.exp(-rate * years) * normal[1])


@pytest.mark.parametrize("payoff", ["call", "put"])
def test_european_options_cost_what_black_and_scholes_say(payoff: str) -> None:
    table = quotes(400)
    with ss.Engine(option_price(paths=2000, payoff=payoff), threads=2, seed=3) as engine:
        output = engine.process(table)
    expected = [black_scholes(quote, payoff) for quote in zip(*table.values(), strict=True)]
    error = output["error"].to_numpy()
    away = (output["price"].to_numpy() - expected) / error
    # 400 estimates that are normal with these standard errors: their mean and their variance within
    # four standard deviations, and the farthest of them.
    assert abs(away.mean()) < 4 / math.sqrt(400)
    assert abs((away**2).mean() - 1) < 4 * math.sqrt(2 / 400)
    assert abs(away).max() < 4.5
    assert error.max() < 0.03 * table["spot"].max()


def asian_call_by_numpy(quote: dict[str, float], dates: int, paths: int) -> tuple[float, float]:
    """With the geometric mean, whose price is known, as control variate (Kemna and Vorst 1990)."""
    spot, strike, rate, volatility, years = (quote[name] for name in QUOTE)
    step = years / dates
    rng = np.random.default_rng(8)
    walk = rng.normal((rate - volatility**2 / 2) * step, volatility * step**0.5, (paths, dates))
    logs = math.log(spot) + walk.cumsum(axis=1)
    discount = math.exp(-rate * years)
    arithmetic = discount * np.maximum(np.exp(logs).mean(axis=1) - strike, 0)
    geometric = discount * np.maximum(np.exp(logs.mean(axis=1)) - strike, 0)
    mean = math.log(spot) + (rate - volatility**2 / 2) * step * (dates + 1) / 2
    variance = volatility**2 * step * (dates + 1) * (2 * dates + 1) / (6 * dates)
    # A lognormal mean is a European option on a spot with this rate, and with another discount.
    forward = math.exp(mean + variance / 2)
    known = discount * black_scholes((forward, strike, 0.0, math.sqrt(variance), 1.0), "call")
    slope = np.cov(arithmetic, geometric)[0, 1] / geometric.var(ddof=1)
    corrected = arithmetic - slope * (geometric - known)
    return float(corrected.mean()), float(corrected.std(ddof=1) / paths**0.5)


def test_asian_options_cost_what_another_simulation_says() -> None:
    table = quotes(6)
    with ss.Engine(option_price(paths=20_000, dates=12), threads=2, seed=4) as engine:
        output = engine.process(table).to_pylist()
    for at, row in enumerate(output):
        quote = {name: float(values[at]) for name, values in table.items()}
        price, error = asian_call_by_numpy(quote, 12, 40_000)
        assert abs(row["price"] - price) < 4 * math.hypot(error, row["error"])
        assert row["error"] < 0.01 * quote["spot"]


def test_option_prices_agree_in_all_settings() -> None:
    table = pa.table({name: values[:30] for name, values in quotes(30).items()})
    wrong = [
        (math.nan, 1.0, 0.0, 0.1, 1.0),
        (1.0, 0.0, 0.0, 0.1, 1.0),
        (1.0, 1.0, math.inf, 0.1, 1.0),
        (1.0, 1.0, 0.0, -0.1, 1.0),
        (1.0, 1.0, 0.0, 0.1, math.inf),
    ]
    more = pa.table(dict(zip(QUOTE, map(list, zip(*wrong, strict=True)), strict=True)))
    operator = option_price(paths=6, dates=3, payoff="put")
    mixed = pa.concat_tables([table.slice(0, 10), more, table.slice(10)])
    run = agrees(operator, mixed, draws=True)
    assert [(row, type(error)) for row, error in run.raised] == [
        (row, ValueError) for row in range(10, 15)
    ]


def test_an_option_without_chance_costs_its_payoff() -> None:
    certain = {"spot": 100.0, "strike": 90.0, "rate": 0.05, "volatility": 0.0, "years": 2.0}
    mature = {**certain, "volatility": 0.3, "years": 0.0}
    output = option_price(paths=8).run_sequential([certain, mature]).output.to_pylist()
    assert [row["error"] for row in output] == [0.0, 0.0]
    assert output[0]["price"] == pytest.approx(100 - 90 * math.exp(-0.1), rel=1e-12)
    assert output[1]["price"] == pytest.approx(10, rel=1e-12)


def test_an_option_whose_error_is_no_float_has_no_price() -> None:
    huge = {"spot": 1e300, "strike": 1.0, "rate": 0.0, "volatility": 1.0, "years": 1.0}
    run = option_price(paths=8).run_sequential([huge], on_error="skip")
    assert [(type(error), str(error)) for _, error in run.raised] == [
        (OverflowError, "option_price: the squares of the payoffs leave the floats")
    ]


# ---- top routes ----

TRIP = ["pickup_longitude", "pickup_latitude", "dropoff_longitude", "dropoff_latitude"]


def routes_by_counting(events: list[Row], window: int, routes: int, cells: int) -> list[Row]:
    """Counts all trips of the window anew for each trip; cells are one degree wide, 1.1 at 0, 0."""
    trips: list[tuple[int, tuple[str, str]]] = []
    found: list[Row] = []
    shown: list[tuple[str, str]] = []
    for west, north, east, south, time in events:
        places = [(round(west), round(-north)), (round(east), round(-south))]
        if not all(0 <= part < cells for place in places for part in place):
            continue
        start, end = (f"{column + 1}.{row + 1}" for column, row in places)
        trips.append((time, (start, end)))
        within = [(at, route) for at, (then, route) in enumerate(trips) if time - then < window]
        count = Counter(route for _, route in within)
        last = {route: at for at, route in within}
        first = sorted(count, key=lambda one: (-count[one], -last[one]))[:routes]
        if first != shown:
            found += [(rank, *one, count[one]) for rank, one in enumerate(first, start=1)]
        shown = first
    return found


def trips_of(events: list[Row]) -> pa.Table:
    names = [*TRIP, "time"]
    return table_of(names, events, dict.fromkeys(TRIP, pa.float64()) | {"time": pa.int64()})


def taxi_trips(seed: int, count: int, cells: int) -> list[Row]:
    """Trips among a few places, of which each hour of the day has others, and some go outside."""
    rng = np.random.default_rng(seed)
    time = np.cumsum(rng.choice([0, 1, 3, 25], count, p=[0.2, 0.5, 0.27, 0.03]))
    places = np.minimum(rng.zipf(1.6, (count, 4)) - 1, cells) + (time // 40 % 2)[:, None]
    degrees = places + rng.uniform(-0.4, 0.4, (count, 4))
    degrees[:, 1::2] *= -1
    return [(*map(float, row), int(at)) for row, at in zip(degrees, time, strict=True)]


def test_top_routes_are_those_that_a_count_of_the_window_finds() -> None:
    for routes, spare, window in ((1, 0, 5), (3, 0, 30), (3, 2, 30), (5, 50, 1000)):
        events = taxi_trips(routes + spare, 400, 4)
        operator = top_routes(window, routes, 4, 0, 0, 1, 1, spare)
        output = operator.run_sequential(trips_of(events), order_by="time").output
        assert rows(output) == routes_by_counting(events, window, routes, 4)


def test_top_routes_agree_in_all_settings() -> None:
    events = taxi_trips(9, 300, 3)
    events[50] = (math.nan, *events[50][1:])
    good = [*events[:50], *events[51:]]
    operator = top_routes(30, 3, 3, 0, 0, 1, 1, spare=2)
    run = agrees(operator, trips_of(events), order_by="time")
    assert rows(run.output) == routes_by_counting(good, 30, 3, 3)
    assert len(run.raised) == 0


def test_top_routes_of_new_york_within_half_an_hour() -> None:
    square, park = (40.7580, -73.9855), (40.7829, -73.9654)
    minutes = [0, 10, 29, 30, 61]
    trips = [(square, park), (park, square), (square, park), (park, square), (park, park)]
    table = {
        "pickup_longitude": [start[1] for start, _ in trips],
        "pickup_latitude": [start[0] for start, _ in trips],
        "dropoff_longitude": [end[1] for _, end in trips],
        "dropoff_latitude": [end[0] for _, end in trips],
        "time": [datetime.datetime(2013, 1, 1, 8) + datetime.timedelta(minutes=m) for m in minutes],
    }
    output = top_routes().run_sequential(table, order_by="time").output
    at_square, at_park = "156.161", "159.155"
    assert rows(output) == [
        (1, at_square, at_park, 1),
        (1, at_park, at_square, 1),
        (2, at_square, at_park, 1),
        (1, at_square, at_park, 2),
        (2, at_park, at_square, 1),
        (1, at_park, at_square, 2),
        (2, at_square, at_park, 1),
        (1, at_park, at_park, 1),
    ]


def test_a_trip_outside_of_the_grid_is_as_if_it_had_not_come() -> None:
    inside, outside = (0.0, 0.0, 1.0, 0.0), (math.nan, 0.0, 0.0, 0.0)
    events = [(*inside, 0), (*outside, 40), (*inside, 41)]  # with a window of 30
    operator = top_routes(30, 3, 3, 0, 0, 1, 1)
    output = operator.run_sequential(trips_of(events), order_by="time").output
    assert rows(output) == [(1, "1.1", "2.1", 1)]


def test_top_routes_take_no_trip_before_the_last() -> None:
    operator = top_routes(30, 3, 3, 0, 0, 1, 1, spare=2)
    with ss.Engine(operator) as engine:
        engine.process(trips_of([(0.0, 0.0, 0.0, 0.0, 5)]), order_by="time")
        with pytest.raises(ValueError, match="top_routes: trip at 4; the last was at 5"):
            engine.process(trips_of([(0.0, 0.0, 0.0, 0.0, 4)]), order_by="time")


# ---- all of them ----

ALL = [
    (bank_transfers(), PAYMENT, {"amount"}),
    (inventory(hold=5), STOCK, {"action"}),
    (leaderboard(), {"player": pa.string(), "score": pa.int64()}, {"player", "score"}),
    (option_price(), dict.fromkeys(QUOTE, pa.float64()), set(QUOTE)),
    (order_book(), ORDER, {"action", "order"}),
    (token_bucket(), REQUEST, {"key", "cost"}),
    (top_routes(), dict.fromkeys(TRIP, pa.float64()) | {"time": pa.int64()}, set(TRIP)),
    (velocity(5, 1), CARD, {"card", "amount"}),
]


@pytest.mark.parametrize(("operator", "types", "needed"), ALL, ids=[one[0].name for one in ALL])
def test_nothing_comes_of_an_empty_stream_and_needed_values_are_not_null(
    operator: ss.Operator, types: dict[str, pa.DataType], needed: set[str]
) -> None:
    order = "time" if "time" in types else None
    run = operator.run_sequential(table_of(list(types), [], types), order_by=order)
    assert run.output.schema == operator.output_schema
    assert run.output.num_rows == 0
    for name in needed:
        columns = {one: pa.array(["1"]).cast(kind) for one, kind in types.items()}
        columns[name] = pa.nulls(1, types[name])
        with pytest.raises(ss.InputError, match=name):
            operator.run_sequential(pa.table(columns), order_by=order)


def test_windows_and_rates_count_in_the_unit_of_the_order_column() -> None:
    start = datetime.datetime(2026, 3, 2, 9, 30)
    time = [start + datetime.timedelta(milliseconds=one) for one in (0, 5, 9, 10, 999, 1000)]
    limited = token_bucket(capacity=1, refill=100, per=1_000_000)  # 100 a second
    table = {"key": ["a"] * 6, "cost": [1] * 6, "time": time}
    output = limited.run_sequential(table, order_by="time").output
    assert output["allowed"].to_pylist() == [True, False, False, True, True, False]
    assert output["wait"].to_pylist() == [0, 5000, 1000, 0, 0, 9000]
    alarmed = velocity(1_000_000, most_events=5)  # in a second
    table = {"card": ["a"] * 6, "amount": [1] * 6, "time": time}
    assert alarmed.run_sequential(table, order_by="time").output.num_rows == 0
    time[0] += datetime.timedelta(microseconds=1)
    output = alarmed.run_sequential(table, order_by="time").output
    assert output["events"].to_pylist() == [6]


# ---- conflicts ----

KEYS = [f"key {n % 48}" for n in range(160)]  # none comes twice among those that run at a time
NULL = pa.nulls(160)


@pytest.mark.parametrize(
    ("operator", "columns"),
    [
        (bank_transfers(), {"payer": NULL.cast("str"), "payee": KEYS, "amount": [5] * 160}),
        (
            inventory(hold=1000),
            {
                "action": ["receive"] * 48 + ["reserve"] * 112,
                "item": KEYS,
                "reservation": list(range(160)),
                "quantity": [9] * 48 + [1] * 112,
            },
        ),
        (token_bucket(capacity=4, refill=2, per=7), {"key": KEYS, "cost": [1] * 160}),
        (velocity(25, most_events=4, most_amount=200), {"card": KEYS, "amount": [1] * 160}),
    ],
    ids=lambda one: one.name if isinstance(one, ss.Operator) else "",
)
def test_events_of_different_keys_do_not_conflict(
    operator: ss.Operator, columns: dict[str, Any]
) -> None:
    # Nothing expires among events that run at a time with those of its key.
    statistics, _ = run_ahead(operator, pa.table(columns))
    assert sum(statistics.aborts.values()) == 0


def test_players_outside_of_the_board_do_not_conflict() -> None:
    table = {"player": [f"top {n}" for n in range(32)] + KEYS, "score": [200] * 32 + [1] * 160}
    statistics, _ = run_ahead(leaderboard(4, "sum", spare=3), pa.table(table))
    assert sum(statistics.aborts.values()) <= 32  # those that made the board
    assert statistics.speculative_runs >= 192


# ---- options ----


@pytest.mark.parametrize(
    ("make", "arguments", "message"),
    [
        (bank_transfers, {"account": float}, "bank_transfers: account=.*expected int or str"),
        (bank_transfers, {"digits": 19}, "bank_transfers: digits=19; expected an integer"),
        (bank_transfers, {"digits": True}, "bank_transfers: digits=True"),
        (inventory, {"hold": 0}, "inventory: hold=0; expected an integer from 1"),
        (inventory, {"hold": 5, "item": bool}, "inventory: item=.*expected int or str"),
        (leaderboard, {"places": 0}, "leaderboard: places=0; expected an integer from 1 to 1000"),
        (leaderboard, {"spare": -1}, "leaderboard: spare=-1; expected an integer from 0"),
        (leaderboard, {"scores": "mean"}, "leaderboard: scores='mean'; expected one of last, sum"),
        (leaderboard, {"player": float}, "leaderboard: player=.*expected int or str"),
        (option_price, {"paths": 7}, "option_price: paths=7; expected an even number.*try 8"),
        (option_price, {"paths": 2}, "option_price: paths=2; expected an integer from 4"),
        (
            option_price,
            {"paths": 2**24, "dates": 1000},
            "paths=16777216 of dates=1000 are 16,777,216,000 steps for each event; expected at "
            "most 4,294,967,296",
        ),
        (option_price, {"dates": 0}, "option_price: dates=0; expected an integer from 1"),
        (
            option_price,
            {"payoff": "both"},
            "option_price: payoff='both'; expected one of call, put",
        ),
        (order_book, {"digits": -1}, "order_book: digits=-1; expected an integer from 0 to 18"),
        (token_bucket, {"capacity": 0}, "token_bucket: capacity=0; expected an integer from 1"),
        (token_bucket, {"refill": 0.5}, "token_bucket: refill=0.5; expected an integer"),
        (token_bucket, {"per": 0}, "token_bucket: per=0; expected an integer"),
        (token_bucket, {"key": bool}, "token_bucket: key=.*expected int or str"),
        (token_bucket, {"capacity": 2**40, "per": 2**40}, "token_bucket: .*in lower terms"),
        (top_routes, {"window": 0}, "top_routes: window=0; expected an integer from 1"),
        (top_routes, {"routes": 0}, "top_routes: routes=0; expected an integer from 1"),
        (top_routes, {"cells": 10_001}, "top_routes: cells=10001; expected an integer"),
        (top_routes, {"north": math.nan}, "top_routes: north=nan; expected a number from -180"),
        (top_routes, {"width": 0}, "top_routes: width=0; expected a number above 0"),
        (top_routes, {"spare": -1}, "top_routes: spare=-1; expected an integer from 0"),
        (velocity, {"window": 0, "most_events": 1}, "velocity: window=0; expected an integer"),
        (velocity, {"window": 5}, "velocity: neither most_events nor most_amount"),
        (velocity, {"window": 5, "most_events": -1}, "velocity: most_events=-1; .*or None"),
        (velocity, {"window": 5, "most_amount": 0.5}, "velocity: most_amount=0.5; expected an int"),
        (velocity, {"window": 5, "most_amount": Decimal("0.001")}, "at most 2 digits"),
        (velocity, {"window": 5, "most_amount": Decimal("nan")}, "velocity: most_amount="),
        (velocity, {"window": 5, "most_amount": -1}, "velocity: most_amount=-1"),
        (
            velocity,
            {"window": 5, "most_amount": 10, "digits": 18},
            "most_amount=10; expected an int or Decimal from 0 to 9.223372036854775807 with",
        ),
        (velocity, {"window": 5, "most_events": 1, "card": None}, "velocity: card=None"),
    ],
)
def test_options_that_cannot_be_are_refused(
    make: Any, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(ss.ConfigurationError, match=message):
        make(**arguments)


@pytest.mark.parametrize(
    ("make", "option", "more"),
    [
        (token_bucket, "key", {"cost": [1, 20, 1]}),
        (functools.partial(velocity, 60, 1), "card", {"amount": [1, 2, 3]}),
        (leaderboard, "player", {"score": [3, 5, 4]}),
    ],
)
def test_the_key_may_have_another_name(make: Any, option: str, more: dict[str, Any]) -> None:
    keys, times = ["a", "b", "a"], [0, 1, 2]
    expected = make().run_sequential({option: keys, **more, "t": times}, order_by="t").output
    named = make(**{option: {"account": str}})
    with ss.Engine(named) as engine:
        output = engine.process({"account": keys, **more, "t": times}, order_by="t")
    names = ["account" if name == option else name for name in expected.column_names]
    assert expected.num_rows > 0
    assert output.equals(expected.rename_columns(names))
    for wrong in ("two words", *more):
        with pytest.raises(ss.ConfigurationError, match=f"^{named.name}: {option}='{wrong}'; exp"):
            make(**{option: {wrong: str}})
