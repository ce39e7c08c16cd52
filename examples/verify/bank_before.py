"""The transfers of the README as they once were: nobody asks for the sign of an amount.

``specstream verify examples/verify/bank_before.py:transfers`` finds that one event, with an amount
of -9223372036854775708, makes a balance of -2**63.
"""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs

from __future__ import annotations

import specstream as ss


class Bank(ss.State):
    balance = ss.array(int, 10_000, fill=100)  # of 10,000 accounts


@ss.operator(
    state=Bank,
    event={"payer": int, "payee": int, "amount": int},
    emits={"payer": int, "paid": bool},
)
def transfers(state, event, emit):
    paid = event.amount <= state.balance[event.payer]
    if paid:
        state.balance[event.payer] -= event.amount
        state.balance[event.payee] += event.amount
    emit(event.payer, paid)


def solvent(state):
    return all(balance >= 0 for balance in state.balance)


def conserved(state):
    return sum(state.balance) == 1_000_000


def positive(event):
    return event.amount > 0
