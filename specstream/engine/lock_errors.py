"""What an operator did wrong with its locks, in words; found by ``locks.c``."""

from __future__ import annotations

from typing import Any

from specstream._native import lib
from specstream.declarations.state_layout import Layout
from specstream.definition.operator import Operator
from specstream.errors import LockError, Partial

__all__ = ["lock_error"]


def lock_error(operator: Operator, fault: Any, partial: Partial) -> LockError:
    """The error of a ``struct ss_lock_fault``."""
    shown = [int(fault.locks[at]) for at in range(min(fault.count, len(fault.locks)))]
    names = [_name(operator.layout, number) for number in shown]
    what, hint = _TEXTS[fault.kind]
    more = f" and {fault.count - len(names)} more" if fault.count > len(names) else ""
    error = LockError(operator.name, names, what.format(", ".join(names) + more), hint)
    error.specstream_partial = partial
    return error


_TEXTS = {
    lib.SS_LOCK_DEADLOCK: (
        "deadlock: events wait for each other's locks {}",
        "take several locks in one order everywhere, for instance by rising index",
    ),
    lib.SS_LOCK_TAKEN_TWICE: (
        "an event takes lock {}, which it holds already",
        "a lock is not reentrant: take it once, around everything that needs it",
    ),
    lib.SS_LOCK_NOT_HELD: (
        "an event gives back lock {}, which it does not hold",
        "call acquire() before, or use a with statement",
    ),
    lib.SS_LOCK_KEPT: (
        "an event has ended that still held lock {}",
        "call release() on every way out, or use a with statement",
    ),
    lib.SS_LOCK_UNKNOWN: ("there is no lock {}", "please report the operator"),
}


def _name(layout: Layout, number: int) -> str:
    for field in layout.fields:
        if field.space == "locks" and field.offset <= number < field.offset + field.size:
            return f"{field.name}[{number - field.offset}]"
    return str(number)
