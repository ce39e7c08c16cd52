"""A ledger as one plain function, and with locks as one would write it for threads."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

import specstream as ss


class Bank(ss.State):
    balance = ss.array(int, 10_000, fill=100)  # of 10,000 accounts


def receipt(payer, balance):  # a digest, in place of your own work
    digest = payer << 16 ^ balance ^ 0x2545F491
    for _ in range(500):
        digest ^= digest << 13 & 0xFFFFFFFF
        digest ^= digest >> 17
        digest ^= digest << 5 & 0xFFFFFFFF
    return digest


@ss.operator(
    state=Bank,
    event={"payer": int, "payee": int, "amount": int},
    emits={"payer": int, "paid": bool, "receipt": int},
)
def transfers(state, event, emit):
    if min(event.payer, event.payee, event.amount) < 0:
        raise ValueError("accounts and amounts are not negative")
    paid = event.amount <= state.balance[event.payer]
    if paid:
        state.balance[event.payer] -= event.amount
        state.balance[event.payee] += event.amount
    emit(event.payer, paid, receipt(event.payer, state.balance[event.payer]))


class LockedBank(ss.State):
    balance = ss.array(int, 10_000, fill=100)
    locks = ss.locks(10_000)


@ss.operator(
    state=LockedBank,
    event={"payer": int, "payee": int, "amount": int},
    emits={"payer": int, "paid": bool, "receipt": int},
)
def locked_transfers(state, event, emit):
    if min(event.payer, event.payee, event.amount) < 0:
        raise ValueError("accounts and amounts are not negative")
    # Always the lower account first, or two transfers would wait for each other.
    with (
        state.locks[min(event.payer, event.payee)],
        state.locks[max(event.payer, event.payee)],
    ):
        paid = event.amount <= state.balance[event.payer]
        if paid:
            state.balance[event.payer] -= event.amount
            state.balance[event.payee] += event.amount
        balance = state.balance[event.payer]
    emit(event.payer, paid, receipt(event.payer, balance))


def events(count: int = 200_000, seed: int = 7) -> pa.Table:
    """Transfers, one a second, of which a tenth each pay from and to a hundred busy accounts."""
    rng = np.random.default_rng(seed)
    accounts = rng.integers(0, 10_000, (2, count))
    busy = rng.random((2, count)) < 0.1
    accounts[busy] %= 100
    # Nobody pays himself.
    payee = np.where(accounts[0] == accounts[1], (accounts[1] + 1) % 10_000, accounts[1])
    return pa.table(
        {
            "time": np.arange(count),
            "payer": accounts[0],
            "payee": payee,
            "amount": rng.integers(1, 100, count),
        }
    )
