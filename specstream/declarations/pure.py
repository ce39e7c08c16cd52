"""Functions that are marked as pure: Python calls them before the operator runs."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, overload

import numpy as np
import pyarrow as pa

from specstream.declarations.options import flag, refuses_unknown
from specstream.errors import DeclarationError

__all__ = ["Pure", "marked", "pure", "pure_mark"]

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Pure:
    """How a function is marked.

    Attributes:
        returns: its return annotation; an ellipsis where it has none.
        is_batch: it takes whole columns.
        function: what takes them, or one value of each.
    """

    returns: Any
    is_batch: bool
    function: Callable[..., Any]


@overload
def pure(function: Function) -> Function: ...
@overload
def pure(*, batch: bool = False) -> Callable[[Function], Function]: ...
@refuses_unknown
def pure(function: Any = None, *, batch: bool = False) -> Any:
    """Marks a function whose result depends on its arguments alone, for use in operators.

    An operator may call it with what depends on the event alone. Python computes the call before
    the operator runs, once for each distinct combination of arguments, so any Python may stand in
    it. The return annotation says what it gives: int, float, bool, str, None, a tuple of fixed
    length or a list of these, or a list of named tuples, over which the operator may loop.

    Args:
        function: the function.
        batch: it takes whole columns, and gives one: numbers that are never null as NumPy arrays,
            all else as Arrow arrays. It is called once per batch, with the distinct combinations of
            its arguments. Called with single values, outside of an operator, it is given columns of
            one element.

    Raises:
        DeclarationError: it is no function.

    >>> @pure
    ... def initials(name: str) -> str:
    ...     return "".join(word[0] for word in name.split())
    >>> initials("Ada Lovelace")
    'AL'
    """
    batch = flag("pure: batch", batch)
    if function is None:
        return lambda function: _marked(function, batch)
    return _marked(function, batch)


def _marked(function: Any, batch: bool) -> Any:
    if not callable(function):
        raise DeclarationError(
            f"ss.pure is given {function!r}; expected a function: write @ss.pure above its def"
        )
    return marked(function, getattr(function, "__annotations__", {}).get("return", Ellipsis), batch)


def marked(function: Any, returns: Any, batch: bool) -> Any:
    """The function with its mark; see :class:`Pure`."""
    mark = Pure(returns, batch, function)
    called = _of_columns(function) if batch else _itself(function)
    called.__specstream_pure__ = mark
    return called


def _itself(function: Callable[..., Any]) -> Any:
    # A wrapper, so that the mark does not change what was given: it may be anybody's function.
    @functools.wraps(function)
    def call(*values: Any, **named: Any) -> Any:
        return function(*values, **named)

    return call


def _of_columns(function: Callable[..., Any]) -> Any:
    @functools.wraps(function)
    def call(*values: Any) -> Any:
        if any(isinstance(value, np.ndarray | pa.Array) for value in values):
            return function(*values)
        columns = [
            np.array([value]) if isinstance(value, int | float) else pa.array([value])
            for value in values
        ]
        (result,) = function(*columns)
        result = result.as_py() if isinstance(result, pa.Scalar) else result
        return result.item() if isinstance(result, np.generic) else result

    return call


def pure_mark(function: Any) -> Pure | None:
    """How a function is marked; None: it is not."""
    mark = getattr(function, "__specstream_pure__", None)
    return mark if isinstance(mark, Pure) else None
