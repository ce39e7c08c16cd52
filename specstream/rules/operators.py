"""The words that rules are written with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from specstream.declarations.options import refuses_unknown
from specstream.errors import ConfigurationError
from specstream.rules import truth
from specstream.rules.parse import temporal

__all__ = [
    *("always", "eventually", "historically", "implies", "next_event", "once", "previous_event"),
    *("since", "unless", "until"),
]

Condition = Callable[[Any], Any]
Length = Any


def _outside(name: str) -> NoReturn:
    raise ConfigurationError(
        f"{name} is called outside of a rule; expected it in a function below @ss.rule(...), where "
        "it is compiled and never called"
    )


@temporal
@refuses_unknown
def previous_event(f: Condition, n: int = 1) -> bool:
    """In a rule: whether the n-th event before this one says so; before the first one false.

    Args:
        f: a function of one event.
        n: how many events before.
    """
    _outside("previous_event")


@temporal
@refuses_unknown
def once(f: Condition, *, within: Length = None, after: Length = None) -> bool:
    """In a rule: whether some event so far says so, this one included.

    Args:
        f: a function of one event.
        within: how long ago at most: a duration like ``"30 minutes"``, or a number in the unit of
            the order column. An event exactly so long ago counts.
        after: how long ago at least, likewise.
    """
    _outside("once")


@temporal
@refuses_unknown
def historically(f: Condition, *, within: Length = None, after: Length = None) -> bool:
    """In a rule: whether all events so far say so, this one included.

    Args:
        f: as of :func:`once`, as are ``within`` and ``after``.
        within: see there.
        after: see there.
    """
    _outside("historically")


@temporal
@refuses_unknown
def since(f: Condition, g: Condition, *, within: Length = None, after: Length = None) -> bool:
    """In a rule: whether ``g`` held at some event so far, and ``f`` at all after it, this one
    included.

    Args:
        f: a function of one event.
        g: likewise.
        within: how long ago ``g`` held, at most; as of :func:`once`.
        after: at least.
    """
    _outside("since")


@temporal
@refuses_unknown
def next_event(f: Condition, n: int = 1) -> bool:
    """In a rule: whether the n-th event after this one says so.

    Args:
        f: a function of one event.
        n: how many events after.
    """
    _outside("next_event")


@temporal
@refuses_unknown
def eventually(f: Any, *, within: Length = None, after: Length = None, name: Any = None) -> Any:
    """In a rule: whether some event from this one on says so. Of a stream of truth values: see
    :func:`specstream.rules.truth.eventually`.

    Args:
        f: a function of one event; or a stream with one column of truth values.
        within: how much later at most: a duration like ``"30 minutes"``, or a number in the unit of
            the order column. An event exactly so much later counts.
        after: how much later at least, likewise.
        name: of the vertex, with a stream.

    >>> import specstream as ss
    >>> p = ss.Pipeline("paid")
    >>> p.sink("out", ss.rules.eventually(p.source("x", {"paid": bool})))
    >>> p.run_sequential({"paid": [False, True, False]}).output["value"].to_pylist()
    [True, True]
    """
    if callable(f) and not hasattr(f, "zip"):
        _outside("eventually")
    return truth.eventually(f, name=name)


@temporal
@refuses_unknown
def always(f: Any, *, within: Length = None, after: Length = None, name: Any = None) -> Any:
    """In a rule: whether all events from this one on say so. Of a stream of truth values: see
    :func:`specstream.rules.truth.always`.

    Args:
        f: as of :func:`eventually`, as are ``within``, ``after`` and ``name``.
        within: see there.
        after: see there.
        name: see there.
    """
    if callable(f) and not hasattr(f, "zip"):
        _outside("always")
    return truth.always(f, name=name)


@temporal
@refuses_unknown
def until(f: Any, g: Any, *, within: Length = None, after: Length = None, name: Any = None) -> Any:
    """In a rule: whether ``g`` holds at some event from this one on, and ``f`` at all before that,
    this one included. Of streams of truth values: see :func:`specstream.rules.truth.until`.

    Args:
        f: as of :func:`eventually`, as are ``g``, ``within``, ``after`` and ``name``.
        g: see there.
        within: see there.
        after: see there.
        name: see there.
    """
    if callable(f) and not hasattr(f, "zip"):
        _outside("until")
    return truth.until(f, g, name=name)


@temporal
@refuses_unknown
def unless(f: Condition, g: Condition, *, within: Length = None, after: Length = None) -> bool:
    """In a rule: as :func:`until`, or ``f`` holds at all events, up to ``within`` if that is given.

    Args:
        f: a function of one event.
        g: likewise.
        within: as of :func:`eventually`, as is ``after``.
        after: see there.
    """
    _outside("unless")


@temporal
@refuses_unknown
def implies(one: Any, other: Any, *, name: Any = None) -> Any:
    """In a rule: the second, where the first is true. Of streams of truth values: see
    :func:`specstream.rules.truth.implies`.

    Args:
        one: a truth value; or a stream with one column of them.
        other: likewise.
        name: of the vertex, with streams.
    """
    if not hasattr(one, "zip") and not hasattr(other, "zip"):
        return not one or bool(other)
    return truth.implies(one, other, name=name)
