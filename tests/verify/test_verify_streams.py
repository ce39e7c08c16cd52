"""Prefixes of real streams, put into the model, give what the oracle gives."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

import importlib
import os
import pkgutil
import time
from typing import Any

import corpus
import numpy as np
import pyarrow as pa
import pytest
import z3
from corpus.case import CASES

import specstream as ss
from specstream.columns.strings import string_code
from specstream.operators.business import bank_transfers, token_bucket
from specstream.verify.counterexample import made_table, replay
from specstream.verify.events import Event
from specstream.verify.paths import NotModelled, OutOfTime
from specstream.verify.rerun import event_values
from specstream.verify.search import Search, Shown
from specstream.verify.solvers import Budget, solve
from specstream.verify.step import Model

EVENTS = 3


def pinned(event: Event, values: dict[str, Any], at: int) -> list[object]:
    """The terms of an event are these values."""
    found = [event.terms["#time"] == at]
    for name, column in event.schema:
        value, term = values[name], event.terms[name]
        if column.nullable:
            found.append(event.terms[f"{name}?"] == z3.BoolVal(value is None))
        if value is None:
            continue
        if column.kind == "float":
            exact = z3.FPVal(float(value), term.sort())
            found.append(z3.fpIsNaN(term) if value != value else term == exact)
        else:
            found.append(term == (string_code(value) if column.kind == "str" else value))
    return found


def compare(operator: ss.Operator, table: pa.Table, seconds: float = 10.0) -> bool:
    """Whether the first events take paths that have a meaning; they have to be the oracle's."""
    try:
        model = Model(operator, 4, time.monotonic() + seconds)
    except (NotModelled, OutOfTime):
        return False
    search = Search(model, [], Budget(2.0, time.monotonic() + 60))
    values = event_values(operator, table.slice(0, EVENTS), None)
    times = list(range(10, 10 * len(values) + 10, 10))
    conditions = []
    for number, one in enumerate(values):
        conditions += pinned(search.unrolled.step(number).event, one, times[number])
    said, found = solve([*search.unrolled.facts(len(values)), *conditions], search.budget)
    if said == "unknown":
        return False
    if said != "sat":
        # An event may take a path of which nothing is known; else there is always one.
        assert any(way.stopped for way in model.ways), f"{operator.name}: no path"
        return False
    stream = made_table(operator, values, times)
    shown = Shown(stream, replay(operator, stream), search.taken(found, len(values)))
    assert len(shown.ways) == len(values)
    if any(way.free for way in shown.ways):
        return False
    assert search._differs(shown, found) == "", operator.name
    return True


def test_payments():
    names = [None, "ann", "bob"]
    rng = np.random.default_rng(3)
    for _ in range(3):
        table = {
            "payer": [names[at] for at in rng.integers(0, 3, EVENTS)],
            "payee": [names[at] for at in rng.integers(0, 3, EVENTS)],
            "amount": rng.integers(-1, 4, EVENTS).tolist(),
        }
        operator = bank_transfers(digits=0)
        assert compare(operator, pa.table(table))


def test_requests():
    operator = token_bucket(2, 1, 4)
    table = {"key": ["a", "a", "b"], "cost": [1, 2, 1]}
    assert compare(operator, pa.table(table))


def cases():
    for one in pkgutil.iter_modules(corpus.__path__):
        importlib.import_module(f"corpus.{one.name}")
    return [one for one in CASES if not one.pending and not one.defect]


@pytest.mark.slow
def test_the_corpus():
    """How many of the operators are compared, is what is asked; each that is has to be equal."""
    is_night = "EXAMPLES" in os.environ
    several = cases()[:: 1 if is_night else 3]
    seconds = 5.0 if is_night else 0.8
    compared = [one.name for one in several if compare(one.operator, one.table, seconds)]
    print(len(compared), "of", len(several), "compared:", ", ".join(compared))
    assert len(compared) >= len(several) / 5  # less than on a machine with nothing else to do
