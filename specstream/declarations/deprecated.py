"""Names that have changed: the old one works for one release, and says what the new one is."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from specstream.errors import ConfigurationError

__all__ = ["GONE_WITH", "NEXT_GONE_WITH", "by_old_name", "renamed", "takes_old_name"]

P = ParamSpec("P")
Value = TypeVar("Value")

GONE_WITH = "0.3"
"""The version that has the old names no more: those that version 0.2 has changed."""
NEXT_GONE_WITH = "0.4"
"""Likewise, of those that version 0.3 changes."""


def renamed(old: str, new: str, *, gone_with: str = GONE_WITH, stacklevel: int = 3) -> None:
    """Warns that ``old`` was used, which is called ``new`` now.

    Args:
        old: as the user wrote it, for instance ``Engine.mark()``.
        new: what to write instead.
        gone_with: the version that has the old name no more.
        stacklevel: whose line the warning names; 3 is the caller of the function that calls this.
    """
    warnings.warn(
        f"{old} is now called {new}; the old name goes with version {gone_with}",
        DeprecationWarning,
        stacklevel=stacklevel,
    )


def by_old_name(old: str, new: str, value: Value, is_given_by_new: bool) -> Value:
    """The value of an option that has its old name; the warning names the caller's caller.

    Raises:
        ConfigurationError: the option has its new name as well.
    """
    renamed(old, new, stacklevel=4)
    if is_given_by_new:
        raise ConfigurationError(f"{old} is the old name of {new}, and both are given: take {new}")
    return value


def takes_old_name(
    call: str, old: str, new: str
) -> Callable[[Callable[P, Value]], Callable[P, Value]]:
    """Gives an option, which has both names in the signature, to a function by the new name.

    Whether it was given by the new name as well is seen here only: it may have had its default.

    Args:
        call: of whose errors and warnings it is, as ``Engine``.
        old: the old name; None under it is as if nothing were given.
        new: the new one.
    """

    def decorate(function: Callable[P, Value]) -> Callable[P, Value]:
        @functools.wraps(function)
        def called(*args: P.args, **given: P.kwargs) -> Value:
            value = given.pop(old, None)
            if value is not None:
                former, now = f"{call}({old}=)", f"{call}({new}=)"
                given[new] = by_old_name(former, now, value, new in given)
            return function(*args, **given)

        return called

    return decorate
