"""Caught exceptions recorded as texts, so that ``emit`` can show them where there is no exception.

A row or a hidden column holds one word for a caught exception. Making the exception again would
run its class's ``__init__`` on arguments that it was not made from; so its texts are recorded when
it is caught, and :func:`error_of` returns an object with the same texts.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from typing import Any

__all__ = [
    "ToldError",
    "error_of",
    "in_python",
    "leaving",
    "left_with",
    "python_error",
    "record_of",
]

_MARK = "\0"  # a text of older snapshots is that of the exception, and nothing else


class ToldError(Exception):
    """Says what an exception said; its class has the name of that one's."""

    def __init__(self, said: dict[str, Any]) -> None:
        super().__init__(*map(_argument, said["args"]))
        self._said = said

    def __str__(self) -> str:
        return str(self._said["str"])

    def __repr__(self) -> str:
        return str(self._said["repr"])

    def __format__(self, spec: str) -> str:
        return object.__format__(self, spec) if spec else str(self._said["format"])


class _Told:
    """Likewise of an argument that is no number, text, bool or None."""

    def __init__(self, text: str, shown: str) -> None:
        self._text, self._shown = text, shown

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return self._shown

    def __format__(self, spec: str) -> str:
        return format(self._text, spec)


def record_of(error: Exception, whole: bool = True) -> str | None:
    """What an exception says, as a text; None: it cannot say it, as its ``__str__`` raises, or has
    something that no text column could hold.

    Args:
        whole: all of it; else as much as there is.

    >>> str(error_of(record_of(KeyError("a"))))
    "'a'"
    """
    says: dict[str, Callable[[], Any]] = {
        "str": lambda: _sound(str(error)),
        "repr": lambda: _sound(repr(error)),
        "format": lambda: _sound(format(error, "")),
        "args": lambda: [_told(one) for one in error.args],
    }
    of = type(error)
    said: dict[str, Any] = {"class": [of.__name__, of.__module__, of.__qualname__]}
    for name, function in says.items():
        try:
            said[name] = function()
        except Exception:
            if whole:
                return None
            said[name] = [] if name == "args" else ""
    return _MARK + json.dumps(said)


def error_of(record: str) -> ToldError | None:
    """What says the same as the exception of a record; None: it is no record."""
    if not record.startswith(_MARK):
        return None
    said = json.loads(record.removeprefix(_MARK))
    made: ToldError = _class(*said["class"])(said)
    return made


@functools.lru_cache
def _class(name: str, module: str, qualified: str) -> type[ToldError]:
    return type(name, (ToldError,), {"__module__": module, "__qualname__": qualified})


def _sound(text: str) -> str:
    text.encode()  # a lone surrogate is in no text that a column could hold
    return str(text)


def _told(value: Any) -> Any:
    if value is None or type(value) in (bool, int, float, str):
        return _sound(value) if isinstance(value, str) else value
    return {"str": _sound(str(value)), "repr": _sound(repr(value))}


def _argument(said: Any) -> Any:
    return _Told(said["str"], said["repr"]) if isinstance(said, dict) else said


# ---- exceptions of the oracle that say more ----

_PYTHON = "__ss_python"
_LEFT_WITH = "__ss_left_with"


def in_python(error: Exception, python: Exception) -> Exception:
    """An exception of the oracle, whose text helps whoever gets it in the end; a handler of the
    operator sees the one that plain Python raises.

    >>> str(python_error(in_python(ValueError("x[9], and x has 2"), ValueError("out of range"))))
    'out of range'
    """
    vars(error)[_PYTHON] = python
    return error


def left_with(error: Exception, text: str) -> Exception:
    """An exception that an interpreted operator can catch as plain Python raises it; where it
    leaves the operator, :func:`leaving` gives it a text that helps whoever gets it.
    """
    vars(error)[_LEFT_WITH] = text
    return error


def leaving(error: BaseException) -> None:
    """Gives an exception the text with which it leaves an operator.

    >>> error = left_with(IndexError("index 4 is out of bounds"), "x[4], and x has 2")
    >>> leaving(error)
    >>> str(error)
    'x[4], and x has 2'
    """
    text = vars(error).pop(_LEFT_WITH, None)
    if text is not None:
        error.args = (text,)


def python_error(error: Exception) -> Exception:
    """What plain Python raises in place of an exception of the oracle."""
    python = vars(error).get(_PYTHON)
    return python if isinstance(python, Exception) else error
