"""The one rule for values of subclasses, wherever Python's values become columns, fields or keys.

``class Side(str, Enum)``, an ``IntFlag``, NumPy's ``str_`` and ``float64`` are texts and numbers:
what counts is the value that they hold, as for ``==``, ``hash`` and Arrow. ``str(x)``, ``int(x)``
and ``float(x)`` ask the class instead, whose methods may say anything.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["plain", "plain_elements"]

# What each base class makes of an object by itself. A bool is an int as well, and comes first.
_BASES: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (bool, lambda value: value),
    (str, str.__str__),
    (int, int.__int__),
    (float, float.__float__),
    (bytes, bytes.__bytes__),
    (decimal.Decimal, decimal.Decimal),
)
_OWN = frozenset([*(base for base, _ in _BASES), type(None)])


def plain(value: Any) -> Any:
    """The value that an object holds, of Python's own class; any other object as it is.

    >>> class Loud(str):
    ...     def __str__(self):
    ...         return self.upper()
    >>> plain(Loud("a")), plain(np.int8(3)), plain(np.str_("b")), plain([Loud("a")])
    ('a', 3, 'b', ['a'])
    """
    if type(value) in _OWN:
        return value
    for base, own in _BASES:
        if isinstance(value, base):
            return own(value)
    if isinstance(value, np.generic) and value.dtype.kind in "biuf":
        return value.item()
    return value


def plain_elements(values: Any) -> Any:
    """A value, or lists and tuples of values at any depth, each of them plain.

    >>> class Odd(int):
    ...     def __int__(self):
    ...         return 7
    >>> plain_elements([Odd(1), (Odd(2), 3)])
    [1, [2, 3]]
    """
    if not isinstance(values, list | tuple):
        return plain(values)
    if _OWN.issuperset(map(type, values)):
        return values
    return list(map(plain_elements, values))
