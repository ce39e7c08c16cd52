"""The operators of a business: against implementations that know nothing of them."""

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from library import agrees

import specstream as ss
from specstream.operators.business import bank_transfers

Row = tuple[Any, ...]


def rows(output: pa.Table) -> list[Row]:
    return [tuple(row.values()) for row in output.to_pylist()]


def table_of(names: list[str], events: list[Row], types: dict[str, pa.DataType]) -> pa.Table:
    """Events as a table, of the right types also where there is none."""
    columns = list(zip(*events, strict=True)) or [()] * len(names)
    return pa.table(
        {name: pa.array(part, types[name]) for name, part in zip(names, columns, strict=True)}
    )


def alike(operator: ss.Operator, table: pa.Table, **options: Any) -> list[Row]:
    """The rows of a sequential run, which two threads that speculate emit as well."""
    expected = operator.run_sequential(table, **options).output
    with ss.Engine(operator, threads=2, horizon=8, chunk=1, execution="speculate") as engine:
        assert engine.process(table, **options).equals(expected)
    return rows(expected)


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
        st.integers(1, 500).map(lambda cents: Decimal(cents).scaleb(-2)),
    ).filter(lambda event: event[0] is not None or event[1] is not None),
    max_size=40,
)


@settings(max_examples=40, deadline=None)
@given(payments)
def test_bank_transfers_book_what_a_ledger_books(events: list[Row]) -> None:
    expected, balances = bank_by_hand(events)
    operator = bank_transfers()
    assert alike(operator, payments_of(events)) == expected
    state = operator.run_sequential(payments_of(events)).state
    assert dict(state.balances) == {name: int(100 * one) for name, one in balances.items()}
    assert sum(state.balances.values()) == state.deposited - state.withdrawn
    assert min(state.balances.values(), default=0) >= 0


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
    run = ss.testing.check(operator, table)
    assert [(row, str(error)) for row, error in run.raised] == [
        (row, "bank_transfers: the payee's balance leaves 64 bits") for row in (1, 2)
    ]
    assert dict(run.state.balances) == {"a": 2**63 - 1}
    assert run.state.deposited == 2**63 - 1


# ---- options ----


@pytest.mark.parametrize(
    ("make", "arguments", "message"),
    [
        (bank_transfers, {"account": float}, "bank_transfers: account=.*expected int or str"),
        (bank_transfers, {"digits": 19}, "bank_transfers: digits=19; expected an integer"),
        (bank_transfers, {"digits": True}, "bank_transfers: digits=True"),
    ],
)
def test_options_that_cannot_be_are_refused(
    make: Any, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(ss.ConfigurationError, match=message):
        make(**arguments)
