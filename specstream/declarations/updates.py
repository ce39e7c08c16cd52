"""Functions that are marked as updates: the compiler has instructions of its own for them.

A structure's functions are plain Python and compiled along with the operator that calls them. A few
stand for what the runtime knows to do without reading (:mod:`specstream.structures.commutative`,
:mod:`specstream.structures.counters`). They are marked here, by a name that the compiler looks up
in its table; outside of compiled code they are what they are written as.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["update", "update_name"]

Function = TypeVar("Function", bound=Callable[..., Any])

# By the function itself, and not on it: functools.wraps would take a mark along to the wrapper.
_marked: dict[Callable[..., Any], str] = {}


def update(function: Function) -> Function:
    """Marks a function of (container, key, ...) as an update, under its own name.

    >>> from specstream.structures import add
    >>> update_name(add)
    'add'
    """
    _marked[function] = function.__name__
    return function


def update_name(function: Callable[..., Any]) -> str | None:
    """The name under which a function is marked; None: it is not, and compiled as it is written."""
    return _marked.get(function)
