"""The values of options, looked at where they are given: taken as they are meant, or refused.

A caller's values may be anything: an array, which has no truth; a dict, which has no hash; an
object whose ``repr`` raises. What looks at them is here, once, so that each is refused in the same
words, which name the option, say what was expected and what was found. NumPy's numbers are taken
for what they are, and come back as Python's, like texts of a class of their own; a bool is no
number.
"""

from __future__ import annotations

import contextlib
import os
import reprlib
from collections.abc import Callable, Iterable
from numbers import Real
from operator import index
from types import UnionType
from typing import Any

import numpy as np

from specstream.declarations.plain_values import plain
from specstream.errors import ConfigurationError, SpecstreamError
from specstream.files.places import check_place

__all__ = [
    "flag",
    "function",
    "instance",
    "integer",
    "items",
    "number",
    "one_of",
    "path",
    "place",
    "refused",
    "shown",
    "text",
    "whole",
]

Refusal = type[SpecstreamError]

_short = reprlib.Repr()
_short.maxstring = _short.maxother = 200
_short.maxlong = 60


def shown(value: object) -> str:
    """A value as a message has it: short, on one line, whatever its ``repr`` does.

    >>> shown("auto"), shown(list(range(100)))
    ("'auto'", '[0, 1, 2, 3, 4, 5, ...]')
    """
    try:
        return " ".join(_short.repr(value).split())
    except Exception:
        return object.__repr__(value)


def refused(
    option: str, value: object, expected: str, error: Refusal = ConfigurationError
) -> SpecstreamError:
    """The error of an option that has a value that it cannot have.

    >>> raise refused("threads", 0, "an integer from 1 to 256")
    Traceback (most recent call last):
    specstream.errors.ConfigurationError: threads=0; expected an integer from 1 to 256
    """
    return error(f"{option}={shown(value)}; expected {expected}")


def whole(value: object) -> int | None:
    """An integer, Python's, NumPy's or another; None: it is none, as a bool and an array are.

    >>> whole(np.int64(2)), whole(True), whole(2.0), whole(np.array(2))
    (2, None, None, None)
    """
    if type(value) is int:
        return value
    if isinstance(value, bool | np.bool_ | np.ndarray):
        return None
    try:
        return int.__int__(index(value))  # type: ignore[arg-type]
    except Exception:
        return None


def integer(
    option: str,
    value: object,
    low: int,
    high: int | None = None,
    other: str = "",
    error: Refusal = ConfigurationError,
) -> int:
    """The integer; ``other`` is what else might have been given (" or None").

    Raises:
        error: it is none from ``low`` to ``high``.
    """
    found = whole(value)
    if found is None or found < low or (high is not None and found > high):
        span = f"of at least {low}" if high is None else f"from {low} to {high}"
        raise refused(option, value, f"an integer {span}{other}", error)
    return found


def number(option: str, value: object, low: float, high: float, expected: str) -> float:
    """The number, as a Python float or int; NaN is none.

    Raises:
        ConfigurationError: it is none from ``low`` to ``high``.
    """
    found: float | int | None = whole(value)
    if found is None and isinstance(value, Real) and not isinstance(value, bool):
        found = float(plain(value))
    if found is None or not low <= found <= high:
        raise refused(option, value, expected)
    return found


def flag(option: str, value: object) -> bool:
    """The bool; nothing is taken by its truth, as "no" has one.

    Raises:
        ConfigurationError: it is none.
    """
    if not isinstance(value, bool | np.bool_):
        raise refused(option, value, "True or False")
    return bool(value)


def one_of(
    option: str, value: object, choices: Iterable[str], error: Refusal = ConfigurationError
) -> str:
    """The choice.

    Raises:
        error: there is no such.
    """
    among, found = tuple(choices), plain(value)
    if not isinstance(found, str) or found not in among:
        raise refused(option, value, f"one of {', '.join(among)}", error)
    return found


def text(
    option: str, value: object, expected: str, error: Refusal = ConfigurationError
) -> str | None:
    """The text, or None.

    Raises:
        error: it is neither.
    """
    found = plain(value)
    if found is not None and not isinstance(found, str):
        raise refused(option, value, expected, error)
    return found


def path(option: str, value: object, expected: str = "a path") -> str:
    """The path, as text.

    Raises:
        ConfigurationError: it is none.
    """
    found: object = None
    if isinstance(value, str | os.PathLike):
        with contextlib.suppress(Exception):
            found = plain(os.fspath(value))
    if not isinstance(found, str):
        raise refused(option, value, expected)
    return found


def place(option: str, value: object, expected: str = "a path or a URI") -> str:
    """The path or URI of a place, as text.

    Raises:
        ConfigurationError: it is neither, or looks like a URI and would be a local directory.
    """
    found = path(option, value, expected)
    check_place(option, found, is_path=isinstance(value, os.PathLike))
    return found


def items(
    option: str, value: object, expected: str, error: Refusal = ConfigurationError
) -> tuple[Any, ...]:
    """What a list, or anything like one, has in it; a string would be as many as its characters.

    Raises:
        error: it has nothing in it, as a number.
    """
    if not isinstance(value, str | bytes):
        try:
            return tuple(value)  # type: ignore[arg-type]
        except Exception:
            pass
    raise refused(option, value, expected, error)


def instance(
    option: str,
    value: object,
    of: type | UnionType,
    expected: str,
    error: Refusal = ConfigurationError,
) -> Any:
    """The object, which is of that class.

    Raises:
        error: it is of another class.
    """
    if not isinstance(value, of):
        raise refused(option, value, expected, error)
    return value


def function(option: str, value: object, expected: str) -> Callable[..., Any]:
    """The function, or whatever can be called.

    Raises:
        ConfigurationError: it cannot.
    """
    if not callable(value):
        raise refused(option, value, expected)
    return value
