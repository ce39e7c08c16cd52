"""The trial of the engine: a small operator on two threads, compared with the sequential run."""

from __future__ import annotations

import json
import warnings

import numpy as np

from specstream import _native
from specstream.declarations.state_layout import State, array
from specstream.definition.operator import operator
from specstream.engine.engine import Engine

__all__ = ["main", "totals"]

EVENTS = 2_000


class Totals(State):
    """What each account has, and all together."""

    account = array(int, 50)
    last = array(int, 1)


@operator(state=Totals, event={"account": int, "amount": int}, emits={"account": int, "total": int})
def totals(state, event, emit):  # type: ignore[no-untyped-def]
    """Adds up, and emits where an account passes the one before."""
    state.account[event.account] += event.amount
    if state.account[event.account] > state.account[state.last[0]]:
        emit(event.account, state.account[event.account])
    state.last[0] = event.account


def main() -> None:
    """Prints what the engine is and whether its answer was right."""
    warnings.simplefilter("ignore")  # of the compile cache, which has a check of its own
    n = np.arange(EVENTS)
    table = {"account": n * 7919 % 50, "amount": n * 31 % 100}
    with Engine(totals, threads=2, horizon=8, chunk=4) as engine:
        output = engine.process(table)
        account = engine.state.account.copy()
    expected = totals.run_sequential(table)
    same = output.equals(expected.output) and (account == expected.state.account).all()
    print(
        json.dumps(
            {
                "same": bool(same),
                "rows": output.num_rows,
                "native": _native.__file__,
                "abi": f"{_native.lib.SS_ABI & (1 << 64) - 1:016x}",
            }
        )
    )
