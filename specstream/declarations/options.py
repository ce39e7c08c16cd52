"""The values of options, looked at where they are given: taken as they are meant, or refused.

A caller's values may be anything: an array, which has no truth; a dict, which has no hash; an
object whose ``repr`` raises. What looks at them is here, once, so that each is refused in the same
words, which name the option, say what was expected and what was found. NumPy's numbers are taken
for what they are, and come back as Python's, like texts of a class of their own; a bool is no
number.
"""

from __future__ import annotations

import contextlib
import difflib
import functools
import inspect
import os
import reprlib
from collections.abc import Callable, Iterable
from numbers import Real
from operator import index
from types import UnionType
from typing import Any, TypeVar, cast

import numpy as np

from specstream.declarations.plain_values import plain
from specstream.errors import ConfigurationError, OptionNameError, SpecstreamError
from specstream.files.places import check_place

__all__ = [
    "flag",
    "function",
    "instance",
    "integer",
    "items",
    "meant",
    "nearest",
    "not_called",
    "number",
    "one_of",
    "options_check",
    "path",
    "place",
    "refused",
    "refuses_bare",
    "refuses_unknown",
    "shown",
    "text",
    "unknown_option",
    "whole",
]

Refusal = type[SpecstreamError]
Called = TypeVar("Called", bound=Callable[..., Any])

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


def meant(wanted: str, names: Iterable[str]) -> str:
    """The name that may have been meant, as the end of a message; empty: there is none.

    >>> meant("totl", ["total", "price"])
    " (did you mean 'total'?)"
    """
    near = nearest(wanted, names)
    return f" (did you mean {near!r}?)" if near is not None else ""


def meant_path(path: str) -> str:
    """The file or directory beside a path that may have been meant, as :func:`meant` does."""
    directory, name = os.path.split(path.rstrip("/"))
    try:
        near = nearest(name, os.listdir(directory or "."))
    except OSError:
        return ""
    return f" (did you mean {os.path.join(directory, near)!r}?)" if near is not None else ""


def nearest(wanted: str, names: Iterable[str]) -> str | None:
    """The name that is most like another, whatever its case; None: none is like it.

    >>> nearest("Totl", ["total", "price"])
    'total'
    """
    lower = {name.lower(): name for name in names}
    near = difflib.get_close_matches(wanted.lower(), lower, 1)
    return lower[near[0]] if near else None


def not_called(value: object) -> str | None:
    """What a function of the package is called, which somebody has written without parentheses;
    None: it is none.
    """
    rooms = {"specstream.declarations": "ss", "specstream.structures": "ss.structures"}
    room = rooms.get(str(getattr(value, "__module__", "")).rpartition(".")[0])
    return f"{room}.{value.__name__}" if room and inspect.isfunction(value) else None


def unknown_option(called: str, option: str, known: Iterable[str]) -> OptionNameError:
    """The error of an option that there is not.

    >>> raise unknown_option("Engine", "thread", ["threads", "horizon"])
    Traceback (most recent call last):
    specstream.errors.OptionNameError: Engine has no option thread=: did you mean threads=? It has
    threads, horizon
    """
    names = list(known)
    near = nearest(option, names)
    hint = "; it" if near is None else f": did you mean {near}=? It"
    return OptionNameError(
        f"{called} has no option {option}={hint} has {', '.join(names) or 'none'}"
    )


def refuses_unknown(called: Called) -> Called:
    """A function or class that says which option a misspelt one may be, and how options are given.

    What it is called with is looked at before the call, so that no TypeError out of it is mistaken
    for one of its own options. Its signature is as ever.

    >>> @refuses_unknown
    ... def sink(path, *, partition_by=()):
    ...     return path
    >>> sink("rows", partitionby="day")
    Traceback (most recent call last):
    specstream.errors.OptionNameError: sink has no option partitionby=: did you mean partition_by=?
    It has path, partition_by
    >>> sink("rows", "day")
    Traceback (most recent call last):
    specstream.errors.OptionNameError: sink got 2 arguments without a name; expected path, and by
    name partition_by=
    """
    return _refusing(called, "")


def refuses_bare(written: str) -> Callable[[Called], Called]:
    """Likewise of what is written above a function, with options that it does not go without.

    Args:
        written: how it is.
    """
    return lambda called: _refusing(called, written)


def options_check(
    name: str, signature: inspect.Signature, written: str = ""
) -> Callable[[tuple[Any, ...], Iterable[str]], None]:
    """What looks whether a call has only options that there are; see :func:`refuses_unknown`.

    Args:
        name: of what is called.
        signature: of it.
        written: as of :func:`refuses_bare`.
    """
    parameters = list(signature.parameters.values())
    # Nobody gives the object that a method is of.
    method = int(bool(parameters) and parameters[0].name in ("self", "cls"))
    kinds = {one.kind for one in parameters}
    only = [one.name for one in parameters if one.kind is one.POSITIONAL_ONLY]
    either = [one.name for one in parameters if one.kind is one.POSITIONAL_OR_KEYWORD]
    by_place = [*only, *either][method:]
    by_name = [one.name for one in parameters if one.kind is one.KEYWORD_ONLY]
    takes_any = inspect.Parameter.VAR_KEYWORD in kinds
    takes_more = inspect.Parameter.VAR_POSITIONAL in kinds
    options = [one for one in (*by_place, *by_name) if one not in only]
    known, most = frozenset(options), len(by_place) + method

    def check(args: tuple[Any, ...], given: Iterable[str]) -> None:
        if not takes_any and not known.issuperset(given):
            unknown = next(one for one in given if one not in known)
            raise unknown_option(name, unknown, options)
        if len(args) > most and not takes_more:
            raise _by_place(name, args[method:], by_place, by_name, written)

    return check


def _refusing(called: Called, written: str) -> Called:
    if isinstance(called, type):
        called.__init__ = _refusing(called.__init__, written)  # type: ignore[misc]
        return called
    name = called.__qualname__.removesuffix(".__init__")
    signature = inspect.signature(called)
    check = options_check(name, signature, written)
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    if all(one.kind in kinds for one in signature.parameters.values()):
        return functools.wraps(called)(_forwarding(called, signature, check))  # type: ignore

    @functools.wraps(called)
    def call(*args: Any, **given: Any) -> Any:
        check(args, given)
        return called(*args, **given)

    return call  # type: ignore[return-value]


_MISSING: Any = object()


def _forwarding(called: Called, signature: inspect.Signature, check: Any) -> Called:
    """A function of that signature, which passes on what it is called with, once it is checked.

    It passes each option by its name. Behind a call with ``*args`` or ``**named``, Python 3.11
    looks for signals once more: what a handler raises there would be in the place of the rows that
    the call returns.
    """

    def refused(by_place: tuple[Any, ...], by_name: dict[str, Any]) -> Any:
        check(by_place, by_name)
        given = {**dict(zip(defaults, by_place, strict=False)), **by_name}
        return called(**{name: one for name, one in given.items() if one is not _MISSING})

    by_place: list[str] = []
    by_name: list[str] = []
    head, passed = [], []
    defaults: dict[str, Any] = {}
    for one in signature.parameters.values():
        defaults[one.name] = _MISSING if one.default is one.empty else one.default
        is_by_name = one.kind is one.KEYWORD_ONLY
        if is_by_name and not by_name:
            head.append("*__more")
        (by_name if is_by_name else by_place).append(one.name)
        head.append(f"{one.name}=__defaults[{one.name!r}]")
        passed.append(f"{one.name}={one.name}" if is_by_name else one.name)
    if not by_name:
        head.append("*__more")
    required = [f"{one} is __missing" for one in defaults if defaults[one] is _MISSING]
    values = "".join(f"{one}, " for one in by_place)
    named = "".join(f"{one!r}: {one}, " for one in by_name)
    source = f"""def call({", ".join(head)}, **__unknown):
    if {" or ".join(["__more", "__unknown", *required])}:
        return __refused(({values}*__more,), {{{named}**__unknown}})
    return __called({", ".join(passed)})
"""
    scope: dict[str, Any] = {
        "__name__": __name__, "__called": called, "__refused": refused,
        "__defaults": defaults, "__missing": _MISSING,
    }  # fmt: skip
    exec(compile(source, f"{__file__}:{called.__qualname__}", "exec"), scope)
    return cast("Called", scope["call"])


def _by_place(
    name: str, given: tuple[Any, ...], by_place: list[str], by_name: list[str], written: str
) -> OptionNameError:
    """The error of more arguments without a name than there may be."""
    if written and len(given) == 1 and callable(given[0]):
        function = getattr(given[0], "__name__", shown(given[0]))
        return OptionNameError(
            f"{name} is written without its options above {function!r}; expected them in "
            f"parentheses: {written}"
        )
    expected = ", ".join(by_place) or "none"
    if by_name:
        expected += f", and by name {', '.join(f'{one}=' for one in by_name)}"
    return OptionNameError(
        f"{name} got {len(given)} argument{'s' * (len(given) > 1)} without a name; "
        f"expected {expected}"
    )
