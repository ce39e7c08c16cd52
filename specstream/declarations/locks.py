"""Locks inside an operator: the same operator as one would write it without speculation.

``ss.locks(n)`` declares a field of locks. Run by ``Engine(..., execution="locked")``, events run on
all threads, in no order, under the locks that they take themselves; in every other execution, and
under the oracle, taking a lock does nothing. It is there to compare with: what such a run emits
depends on who got a lock first, and differs from run to run.

The order in which an event takes several locks is the operator's matter. Events that wait for each
other in a circle are found, and the batch ends with a :class:`specstream.LockError` that names the
locks; so it does where an event takes a lock twice, gives back one that it does not hold, or ends
without giving back one.

>>> import specstream as ss
>>> class Accounts(ss.State):
...     balance = ss.array(int, 100)
...     locks = ss.locks(100)
>>> @ss.operator(state=Accounts, event={"account": int, "amount": int}, emits={"balance": int})
... def book(state, event, emit):
...     if event.account < 0 or not 0 < event.amount <= 1_000_000_000:
...         raise ValueError("no such account, or no such amount")
...     with state.locks[event.account]:
...         state.balance[event.account] += event.amount
...         balance = state.balance[event.account]
...     emit(balance)
>>> with ss.Engine(book, threads=2, execution="locked") as engine:
...     _ = engine.process({"account": [7, 8, 7], "amount": [1, 2, 3]})
...     engine.state.balance[7:9].tolist()
[4, 2]
"""

from __future__ import annotations

from typing import Any

from specstream.declarations.options import refuses_unknown
from specstream.declarations.state_layout import Declaration

__all__ = ["locks"]


@refuses_unknown
def locks(count: int) -> Any:
    """A field of locks: ``with state.name[i]:``, or ``.acquire()`` and ``.release()``.

    Indices are checked, negative ones count from the end, as in an array. A lock is not reentrant.
    It is released when the ``with`` statement is left, also by ``return`` and ``break``, and when
    the event raises; what the event has stored by then stays, as there is no undo log.

    Args:
        count: how many; each is 64 bytes, on a cache line of its own, outside of the state.

    Raises:
        DeclarationError: when the state is laid out, for a count below 1.
    """
    return Declaration(int, (count,), None, "locks")
