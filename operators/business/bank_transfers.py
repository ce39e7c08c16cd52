"""Deposits, withdrawals and transfers between accounts, none of which is overdrawn.

The example by which the dissertation shows what is hard with locks (Brito 2010, 4.1): one lock lets
no two transfers run at once, and two locks show money that is nowhere, or deadlock. Here two
payments conflict where they share an account, and only there. Amounts are decimals, which are
integers inside of an operator, so that no money is made or lost by rounding. The sum of all
balances is at any time what was deposited less what was withdrawn; the state has both sums, as
updates that commute.
"""

from __future__ import annotations

import specstream as ss
from specstream.declarations.options import integer, refused, refuses_unknown
from specstream.structures import add

__all__ = ["bank_transfers"]

_MOST = 2**63 - 1


@refuses_unknown
def bank_transfers(account: type = str, digits: int = 2) -> ss.Operator:
    """Payments between accounts; one that its payer cannot cover is refused.

    Events have the columns ``payer``, ``payee`` and ``amount``, a decimal (or integer) of at most
    ``digits`` digits after the point. Without a payer (null) it is a deposit, without a payee a
    withdrawal. An account comes into being with the first payment to it. Each event emits one row:
    ``accepted``, and the balances of both after it, null where there is no such party; a payer that
    never had an account has 0.

    Args:
        account: type of ``payer`` and ``payee``, ``int`` or ``str``.
        digits: of an amount after the point, 0 to 18.

    State: ``balances``, a dict by account, and the sums ``deposited`` and ``withdrawn``, all in
    units of the last digit: cents, with two digits. The sum of the balances is the difference of
    the two, which wrap where they leave 64 bits. No event reads them, so that events conflict over
    their own accounts only.

    The operator raises ValueError for an amount that is not positive and for a payment with neither
    payer nor payee, and OverflowError where a balance would not fit into 64 bits.

    Raises:
        ConfigurationError: an argument has a value that it cannot have.

    >>> import specstream as ss
    >>> from specstream.operators.business import bank_transfers
    >>> payments = {
    ...     "payer": [None, "ann", "ann", "bob"],
    ...     "payee": ["ann", "bob", "bob", None],
    ...     "amount": [10, 7, 7, 2],
    ... }
    >>> with ss.Engine(bank_transfers(), threads=2) as engine:
    ...     output = engine.process(payments)
    ...     print(engine.state.balances, engine.state.deposited, engine.state.withdrawn)
    {'ann': 300, 'bob': 500} 1000 200
    >>> output["accepted"].to_pylist()
    [True, True, False, True]
    """
    # One piece: state and operator are read together, and close over the same numbers.
    if account is not int and account is not str:
        raise refused("bank_transfers: account", account, "int or str")
    digits = integer("bank_transfers: digits", digits, 0, 18)
    money = ss.decimal(digits)

    class BankState(ss.State):
        balances = ss.dict(account, int)
        deposited = ss.scalar(int)
        withdrawn = ss.scalar(int)

    @ss.operator(
        state=BankState,
        event={"payer": ss.nullable(account), "payee": ss.nullable(account), "amount": money},
        emits={
            "accepted": bool,
            "payer_balance": ss.nullable(money),
            "payee_balance": ss.nullable(money),
        },
        name="bank_transfers",
    )
    def process(state, event, emit):  # type: ignore[no-untyped-def]
        payer, payee, amount = event.payer, event.payee, event.amount
        if amount <= 0:
            raise ValueError(f"bank_transfers: amount={amount} units; expected more than 0")
        if payer is None and payee is None:
            raise ValueError("bank_transfers: a payment needs a payer or a payee")

        accepted = payer is None or state.balances.get(payer, 0) >= amount
        if accepted:
            if payer is None:
                add(state, "deposited", amount)
            else:
                state.balances[payer] -= amount
            if payee is None:
                add(state, "withdrawn", amount)
            else:
                # After the payer: who pays himself has the same balance as before.
                balance = state.balances.get(payee, 0)
                if balance > _MOST - amount:
                    raise OverflowError("bank_transfers: the payee's balance leaves 64 bits")
                state.balances[payee] = balance + amount

        emit(
            accepted,
            None if payer is None else state.balances.get(payer, 0),
            None if payee is None else state.balances.get(payee, 0),
        )

    return process
