"""Defects planted in ``bank_transfers``: each is refuted, in at most two events."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

import inspect
import textwrap

import pytest

import specstream as ss
from specstream.compiler.language.definitions import keep_text
from specstream.operators.business import bank_transfers
from specstream.verify.report import Report


def solvent(state):
    return all(balance >= 0 for balance in state.balances.values())


def conserved(state):
    return sum(state.balances.values()) == state.deposited - state.withdrawn


def deposits(event):
    return event.amount <= 10**17


def refusals_change_nothing(before, event, rows, after):
    refused = len(rows) == 1 and not rows[0].accepted
    return not refused or sum(after.balances.values()) == sum(before.balances.values())


def told(event, rows, after):
    """What is told of the payer is what the payer has."""
    return (
        len(rows) == 0
        or event.is_null("payer")
        or rows[0].payer_balance == after.balances.get(event.payer, 0)
    )


def defective(*pairs: tuple[str, str]) -> ss.Operator:
    """The operator with parts of its text replaced by others."""
    text = inspect.getsource(bank_transfers)
    for old, new in pairs:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    text = "from __future__ import annotations\n_MOST = 2**63 - 1\n" + textwrap.dedent(text)
    name = f"<bank with {pairs[0][1]}>"
    keep_text(name, text)
    names = {**vars(inspect.getmodule(bank_transfers)), "__name__": "defective_bank"}
    exec(compile(text, name, "exec"), names)
    made: ss.Operator = names["bank_transfers"]()
    return made


DEFECTS = {
    "no overflow guard": ("if balance > _MOST - amount:", "if balance > _MOST:"),
    "covered but for one": ("(payer, 0) >= amount\n", "(payer, 0) >= amount - 1\n"),
    "refused and paid": (
        "accepted = payer is None or",
        "accepted = payer is None or amount == 7777777777 or",
    ),
    "one special amount": (
        "state.balances[payee] = balance + amount",
        "state.balances[payee] = balance + amount + (amount == 4711)",
    ),
    "withdrawn off for huge amounts": (
        'add(state, "withdrawn", amount)',
        'add(state, "withdrawn", amount - (amount > 10**16))',
    ),
}


def refuted(operator: ss.Operator) -> list[int]:
    report: Report = ss.verify.check(
        operator, always=[solvent, conserved], each=told, assume=deposits, events=2
    )
    return [one.events for one in report.verdicts if one.said == "refuted"]


@pytest.mark.slow
@pytest.mark.parametrize("name", [one for one in DEFECTS if one != "no overflow guard"])
def test_each_is_refuted_in_two_events(name):
    found = refuted(defective(DEFECTS[name]))
    assert found
    assert max(found) <= 2


@pytest.mark.slow
def test_a_balance_that_overflows():
    report = ss.verify.check(defective(DEFECTS["no overflow guard"]), always=solvent, events=2)
    (one,) = report.verdicts
    assert (one.said, one.events) == ("refuted", 2)


@pytest.mark.slow
def test_a_balance_that_was_read_too_early():
    """Who pays himself is given what he had before he paid."""
    early = (
        "accepted = payer is None or state.balances.get(payer, 0) >= amount",
        "early = 0 if payee is None else state.balances.get(payee, 0)\n"
        "        accepted = payer is None or state.balances.get(payer, 0) >= amount",
    )
    late = ("balance = state.balances.get(payee, 0)\n", "balance = early\n")
    found = refuted(defective(early, late))
    assert found
    assert max(found) <= 2
