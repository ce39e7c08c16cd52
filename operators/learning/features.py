"""Feature vectors: columns whose names only the user of an operator knows.

An operator reads a column as an attribute, ``event.height``, and its compiler has to find the name
in the source. So the one function that reads the features is written here, line by line, and its
text is left in :mod:`linecache`, where the compiler, tracebacks and debuggers look for it. (The
standard library writes the ``__init__`` of a dataclass in the same way.) Nothing else of an
operator is made from text.
"""

from __future__ import annotations

import keyword
import linecache
from collections.abc import Callable, Iterable
from typing import Any

from specstream.declarations.options import items, refused

__all__ = ["MOST", "check_features", "column_names", "gather_of"]

MOST = 256

_OF_EVENTS = (
    *("timestamp", "source", "sequence", "random", "random_bits", "normal", "integer", "choice"),
    "is_null",
)


def column_names(option: str, features: object, taken: Iterable[str] = ()) -> tuple[str, ...]:
    """The names of the features, as a tuple; ``taken`` are those of the operator's other columns.

    >>> column_names("network: features", ["x", "y"])
    ('x', 'y')

    Raises:
        ConfigurationError: they are not 1 to 256 names, of which each can be that of a column.
    """
    expected = f"1 to {MOST} different names of columns"
    names = items(option, features, expected)
    for name in names:
        if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
            raise refused(option, features, f"{expected}, which are Python identifiers")
        if name in _OF_EVENTS or name in taken:
            raise refused(option, features, f"other names than {name!r}, which is no feature")
    if not 1 <= len(names) <= MOST or len(set(names)) < len(names):
        raise refused(option, features, expected)
    return names


def gather_of(names: tuple[str, ...]) -> Callable[[Any, Any], None]:
    """A function ``gather(event, x)`` that stores the features of an event into an array.

    >>> import inspect
    >>> print(inspect.getsource(gather_of(("width", "height"))), end="")
    def gather(event, x):
        x[0] = event.width
        x[1] = event.height
    """
    lines = ["def gather(event, x):\n"]
    lines += [f"    x[{at}] = event.{name}\n" for at, name in enumerate(names)]
    text = "".join(lines)
    filename = f"<specstream.operators.learning: {', '.join(names)}>"
    linecache.cache[filename] = (len(text), None, lines, filename)
    found: dict[str, Any] = {"__name__": __name__}
    exec(compile(text, filename, "exec"), found)
    gather: Callable[[Any, Any], None] = found["gather"]
    return gather


def check_features(x: Any, operator: str, names: tuple[str, ...]) -> None:
    """Refuses features that would spoil sums for good, as a NaN does, or whose squares overflow."""
    for i in range(len(x)):
        if not -1e100 <= x[i] <= 1e100:
            raise ValueError(f"{operator}: {names[i]}={x[i]}; expected a number up to 1e100")
