"""Boosting: a structure that speculation does not look into (Brito 2010, 4.4.1).

To insert a key into a sorted list an event reads all smaller keys, and so conflicts with every
change among them, although insertions of different keys commute. Of a boosted structure the runtime
does not log what an operation reads and writes. It is told instead which operations there are, that
those of different keys commute, and how each change is undone. A speculative run then does its
operations on memory that is shared; an abstract lock, found by the hash of the key, keeps others
from operations that do not commute until its commit; and when the run is dropped, the inverses of
its operations run. In the state the head does the same operations in the order of the events.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from specstream.declarations.operations import operations_of
from specstream.declarations.options import refuses_unknown, shown
from specstream.declarations.state_layout import Declaration
from specstream.errors import DeclarationError
from specstream.structures.sorted_list import (
    sorted_contains,
    sorted_insert,
    sorted_list,
    sorted_remove,
)

__all__ = ["boosted", "boosted_set"]

Function = Callable[..., Any]


@refuses_unknown
def boosted(field: Any, /, **operations: Function | tuple[Function, Function]) -> Any:
    """A field that an operator only uses through these operations: ``state.field.operation(...)``.

    An operation is a plain function of the field, a key, and up to three more numbers, ``int``
    unless they are annotated otherwise. One that only looks stands alone. One that changes the
    field stands with its inverse, a function of the same arguments and, where it has one more
    parameter, of what the operation has returned. An operation that returns ``False`` has changed
    nothing: its inverse is not called, and it goes along with operations that only look.

    What must hold for speculation to gain anything: operations with different keys commute, with
    each other and with the inverses. What holds in any case is that the result is the sequential
    one: the commit does the operations once more, in order, on the state.

    Args:
        field: an array of the state, as :func:`specstream.array` or a structure declares it.
        **operations: by the name that operators use: a function, or a pair (function, inverse).

    Raises:
        DeclarationError: the field or an operation is not as described.

    >>> import specstream as ss
    >>> from specstream.structures import boosted
    >>> def deposit(balances, account, cents):
    ...     balances[account] += cents
    ...     return balances[account]
    >>> def withdraw(balances, account, cents):
    ...     balances[account] -= cents
    >>> class Bank(ss.State):
    ...     balances = boosted(ss.array(int, 1000), deposit=(deposit, withdraw))
    >>> @ss.operator(state=Bank, event={"account": int, "cents": int}, emits={"balance": int})
    ... def deposits(state, event, emit):
    ...     if event.account < 0 or not 0 < event.cents <= 1_000_000_000:
    ...         raise ValueError("no such account, or no such amount")
    ...     emit(state.balances.deposit(event.account, event.cents))
    >>> with ss.Engine(deposits, threads=2, horizon=8, chunk=1) as engine:
    ...     rows = engine.process({"account": [1, 2, 1, 2], "cents": [5, 7, 10, 1]})
    ...     rows["balance"].to_pylist(), engine.state.balances[:3].tolist()
    ([5, 7, 15, 8], [0, 15, 8])
    """
    if not isinstance(field, Declaration) or field.space != "state" or field.shape == ():
        raise DeclarationError(
            f"boosted() is given {shown(field)}; expected an array of the state, like "
            "boosted(ss.array(int, 100), ...) or boosted(sorted_list(100), ...)"
        )
    return replace(field, operations=operations_of(operations))


@refuses_unknown
def boosted_set(capacity: int) -> Any:
    """A field that holds a boosted set of ``capacity`` int64 keys: a sorted list.

    Its operations are ``insert(key)``, ``remove(key)`` and ``contains(key)``, with inverses and
    commutativity as in Table 4.2 of Brito 2010. An event that inserts or removes a key conflicts
    with events that do anything with the same key, and with no others.

    Raises:
        DeclarationError: the capacity is not at least 1.

    >>> import specstream as ss
    >>> from specstream.structures import boosted_set
    >>> class Seen(ss.State):
    ...     users = boosted_set(capacity=1000)
    >>> @ss.operator(state=Seen, event={"user": int}, emits={"user": int})
    ... def first_visit(state, event, emit):
    ...     if state.users.insert(event.user):
    ...         emit(event.user)
    >>> with ss.Engine(first_visit, threads=2) as engine:
    ...     engine.process({"user": [7, 5, 7, 6]})["user"].to_pylist()
    [7, 5, 6]
    """
    return boosted(
        sorted_list(capacity),
        insert=(sorted_insert, sorted_remove),
        remove=(sorted_remove, sorted_insert),
        contains=sorted_contains,
    )
