"""Refusals while an operator is typed, in the user's terms: what, and the way out.

Numba wraps them in its own words; :mod:`specstream.compiler.backend.diagnosis` takes them out
again.
"""

from __future__ import annotations

from numba.core import types
from numba.core.errors import TypingError

from specstream.compiler.language.hints import names_it_has
from specstream.compiler.language.methods import METHODS, calls_of, container_of, methods_of
from specstream.compiler.language.text import refusal
from specstream.declarations.state_layout import Field

__all__ = [
    *("FROZEN", "TIMER_NAMES", "absent", "is_boosted"),
    *("is_no_container", "no_letters", "no_method", "refuse", "unnamed_copy", "without_literals"),
]

TIMER_NAMES = ("key", "at", "timestamp", "sequence")
"""What the timer that fires has."""

FROZEN = (
    "a default, or a list, dict, set or array of a module is frozen, and is changed here",
    "copy it first, list(x), dict(x) or set(x), or keep what changes in the state",
)


def refuse(message: str) -> TypingError:
    """A typing error that :mod:`specstream.compiler.backend.diagnosis` translates for the user."""
    return TypingError(f"specstream: {message}")


def without_literals() -> TypingError:
    """What Numba is told at its second try, without the literals that are needed. On None it would
    try a third time, without what may be None, and end in an error that is nobody's."""
    return TypingError("a name is a literal here")


def absent(what: str) -> TypingError:
    """Why something is not done with what may be None: ``what`` says of what it is done."""
    return refuse(f"what {what} may be None here; put it in a block: if x is not None:")


def no_letters(what: str) -> TypingError:
    """Why a string does not have what an array has."""
    return refuse("; ".join(refusal(what)))


def is_boosted(field: Field) -> TypingError:
    """The refusal, while typing, of a boosted field as an array: what, and the way out."""
    ways = ", ".join(f"state.{field.name}.{one.name}(...)" for one in field.operations)
    return refuse(f"field {field.name!r} is boosted: use its operations, {ways}")


def unnamed_copy(of: str) -> tuple[str, str]:
    """Why a copy of a deque is not made where no name tells that it is one."""
    return (
        f"the copy of {of} is a deque, which needs a name of its own in the operator's function",
        f"write copied = {of}.copy() there, and assign it nowhere else; or make a list, list({of})",
    )


def is_no_container(of: types.Type) -> bool:
    """Whether something of the operator's has methods of its own, or none."""
    return _kind(of) in ("state", "event", "emit", "timer", "record", "slot")


def no_method(of: types.Type, name: str) -> tuple[str, str]:
    """The refusal, while typing, of a method that there is not: what, and the way out."""
    kind = _kind(of)
    if kind == "event":
        return (
            f"the event has no method {name!r}",
            f"read a column as event.x; its methods are {calls_of('event')}",
        )
    if kind == "timer":
        return (
            f"the timer has no method {name!r}",
            f"it has {', '.join(TIMER_NAMES)}, and the methods {calls_of('timer')}",
        )
    if kind in ("record", "slot"):
        return (
            f"methods of records are not compiled: {name!r} of a record {of.class_name}",
            f"write a plain function that takes the record, {name}(x)",
        )
    if kind == "state":
        return f"the state has no method {name!r}", "read and assign its fields, as state.x"
    container = container_of(of)
    if container is not None and kind != "view":
        what = container.replace("_", " ")
        what += " of the state" if kind.startswith("state_") else ""
        what += " of a module" if kind.startswith("frozen_") else ""
        what = "field of timers" if kind == "state_timers" else what
        return f"a {what} has no method {name!r}", names_it_has(name, sorted(methods_of(container)))
    resizing = [one.of for one in METHODS.values() if one.name == name and one.resizes][:2]
    if kind == "view" and resizing:
        instead = " or ".join(f"ss.{one}(...)" for one in resizing)
        return (
            f"an array of the state has no method {name!r}: its length is declared and stays",
            f"declare it as {instead}, which {'have' if resizing[1:] else 'has'} {name}; or keep a "
            "count in the state, and write state.x[state.count % len(state.x)] = value",
        )
    if kind == "view":
        *others, last = methods_of("array")
        return (
            f"an array has no method {name!r} in an operator",
            f"it has {', '.join(others)} and {last}; sorted(x) makes a sorted list, and a loop "
            "does the rest",
        )
    return (
        f"{of} has no method {name!r} in an operator",
        "write a plain function, and call it with the value",
    )


def _kind(of: types.Type) -> str:
    """``view`` of one of our types of arrays."""
    return str(of.name).removeprefix("specstream.").partition("(")[0]
