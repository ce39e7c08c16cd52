"""What operators cannot use of NumPy and of other libraries: why, and code that does the same."""

from __future__ import annotations

import functools
import math
import random
import sys
import sysconfig
import types
from collections.abc import Iterable
from typing import Any

from specstream.compiler.language.builtin_functions import BUILTINS, REFUSED
from specstream.declarations.options import nearest

__all__ = [
    *("OF_CACHED", "is_of_a_library", "names_it_has", "not_compilable", "of_class", "of_library"),
    "of_numpy",
]

_LOOP = "write it out as a loop"
# By NumPy's names: what is written instead of a function that math has under another name, or none.
_NUMPY = {
    "abs": "abs(x)",
    "arccos": "math.acos(x)",
    "arcsin": "math.asin(x)",
    "arctan": "math.atan(x)",
    "arctan2": "math.atan2(y, x)",
    "around": "round(x, n)",
    "average": "x.mean()",
    "divmod": "divmod(a, b)",
    "floor_divide": "a // b",
    "mod": "a % b",
    "power": "x ** y",
    "prod": "math.prod(x)",
    "remainder": "a % b",
    "round": "round(x, n)",
    "where": "a if condition else b, of each element in a loop",
    "select": "if, elif and else",
    "median": "y = sorted(x), and then (y[(len(y) - 1) // 2] + y[len(y) // 2]) / 2",
    "sort": "sorted(x)",
    "roll": "x[1:] = x[:-1]",
    "diff": "x[1:] - x[:-1]",
    "count_nonzero": "sum(1 for v in x if v)",
    "in1d": "v in x, of each element in a loop",
    "isin": "v in x, of each element in a loop",
    "size": "len(x)",
    "concatenate": "a list, list(a) + list(b)",
}
_NUMPY |= {name: f"x.{name}()" for name in ("copy", "fill", "tolist")}
_NUMPY |= dict.fromkeys(
    ("array", "asarray", "zeros", "ones", "empty", "full", "arange", "linspace"),
    "a list, like [0.0] * n, or declare ss.scratch(float, n) in the state",
)

_COUNT = "d = {} and d[key] = d.get(key, 0) + 1"
_DRAW = "use event.random(i), event.integer(low, high, i), event.choice(n, i) or event.normal(i)"
_CLOCK = "use event.timestamp, which repeats when the event is rerun"
_NO_OUTPUT = "operators cannot do input or output: emit a row instead"
_WAYS = {
    "itertools.accumulate": "keep the running value in a loop",
    "itertools.chain": "write one loop after the other",
    "itertools.combinations": "write for i in range(n): for j in range(i + 1, n):",
    "operator.attrgetter": "write the attribute itself, event.x, or a function that returns it",
    "itertools.count": "write while True: with a counter",
    "itertools.cycle": "write x[i % len(x)]",
    "itertools.islice": "write x[a:b], or break out of the loop",
    "itertools.pairwise": "write zip(x[:-1], x[1:])",
    "itertools.product": "write a loop inside a loop",
    "itertools.repeat": "write range(n)",
    "itertools.zip_longest": "write range(max(len(a), len(b)))",
    "collections.Counter": f"write {_COUNT}",
    "collections.defaultdict": f"write {_COUNT}, or d.setdefault(key, []).append(x)",
    "collections.OrderedDict": "write a dict, which keeps its order",
    "collections.deque": "write a list, and x.pop(0)",
    "functools.reduce": _LOOP,
    "statistics.mean": "write sum(x) / len(x)",
    "statistics.fmean": "write sum(x) / len(x)",
    "statistics.median": (
        "write y = sorted(x), and then (y[(len(y) - 1) // 2] + y[len(y) // 2]) / 2"
    ),
}
_WAYS_OF_ROOTS = {
    "itertools": "write the loops out",
    "collections": "write a list, dict, set or tuple",
    "heapq": "keep a list in order by x.sort(), and take from it by x.pop()",
    "bisect": "count in a loop, like sum(1 for v in x if v < key)",
    "statistics": "write it out: sum, sorted, min and max take arrays and lists",
    "copy": "write list(x), dict(x) or x.copy()",
    "functools": "write a plain function",
    "operator": "write the operator itself, or a lambda",
    "random": _DRAW,
    "_random": _DRAW,
    "secrets": _DRAW,
    "uuid": "event.timestamp, event.source and event.sequence name an event uniquely",
    "time": _CLOCK,
    "datetime": f"{_CLOCK}, and ss.when(event.time), a datetime",
    "logging": _NO_OUTPUT,
    "socket": _NO_OUTPUT,
    "subprocess": _NO_OUTPUT,
    "threading": "an engine runs the events in threads of its own",
}
OF_CACHED = (
    "keeps its results in a cache",
    "leave the decorator out: a plain function is compiled, and fast",
)
_OF_THE_EVENT = (
    "where it depends on the event alone, call it in a function marked @ss.pure; otherwise write "
    "it out"
)


def of_numpy(name: str, known: Iterable[str]) -> tuple[str, str]:
    """Why ``np.name`` is refused, and what to write.

    Args:
        known: the functions of NumPy that operators have.
    """
    if name in _NUMPY:
        return f"np.{name} is not compiled", f"write {_NUMPY[name]}"
    if hasattr(math, name):
        return (
            f"np.{name} is not compiled: its last bit depends on NumPy's version and the processor",
            f"write math.{name}",
        )
    have = ", ".join(f"np.{one}" for one in sorted(known))
    return f"np.{name} is not compiled", f"{_LOOP}; the NumPy functions available are {have}"


def of_class(cls: type, what: str) -> tuple[str, str]:
    """Why an object of a class of the user's is not made in an operator, and what to write."""
    fields: tuple[str, ...] = getattr(cls, "_fields", None) or tuple(
        getattr(cls, "__dataclass_fields__", ())
    )
    if issubclass(cls, tuple) and fields:
        values = ", ".join(fields)
        comma = "," if len(fields) == 1 else ""
        return (
            f"{what} is a named tuple, which Python can make from the event alone but compiled "
            "code cannot",
            f"write a plain tuple, ({values}{comma}), whose first part is x[0], or declare the "
            f"class as a record, class {cls.__name__}(ss.Record)",
        )
    if fields:
        return (
            f"{what} is a dataclass, which Python can make from the event alone but compiled code "
            "cannot",
            f"declare it as a record, class {cls.__name__}(ss.Record)",
        )
    return (
        f"{what} is a class, and its methods are no plain functions",
        "write plain functions at module level, and keep data in state fields",
    )


def of_library(value: Any) -> tuple[str, str] | None:
    """What something of a library is, and what to write; None: it is the user's own."""
    if isinstance(value, functools._lru_cache_wrapper):
        return OF_CACHED
    owner = getattr(value, "__self__", None)
    if isinstance(owner, random.Random):
        return "draws random numbers, which differ in each run", _DRAW
    if type(value).__module__ == "logging":
        return "writes to a log", _NO_OUTPUT
    module = getattr(value, "__module__", None) or getattr(owner, "__name__", None) or ""
    root, name = str(module).split(".")[0], getattr(value, "__name__", type(value).__name__)
    root = {"_heapq": "heapq", "_bisect": "bisect", "_functools": "functools"}.get(root, root)
    root = {"_collections": "collections", "_operator": "operator"}.get(root, root)
    hint = _WAYS.get(f"{root}.{name}") or _WAYS_OF_ROOTS.get(root)
    if root == "builtins" and (known := (REFUSED | BUILTINS).get(name)) is not None:
        hint = None if known.is_forbidden else known.hint or None
    if not callable(value) or (hint is None and not is_of_a_library(value)):
        return None
    whose = "a builtin" if root == "builtins" else f"from the library {root!r}"
    return f"is {whose}, and is not compiled", hint or _OF_THE_EVENT


def not_compilable(value: Any) -> tuple[str, str] | None:
    """Likewise of a function that somebody gives; None: it may well be compiled, as plain functions
    of installed packages are.

    >>> import json
    >>> not_compilable(json.dumps) is None, not_compilable(of_library)
    (False, None)
    """
    root = str(getattr(value, "__module__", None)).split(".")[0]
    is_plain = isinstance(value, types.FunctionType) and root not in sys.stdlib_module_names
    return None if is_plain or isinstance(value, functools.partial) else of_library(value)


def is_of_a_library(value: Any) -> bool:
    """Whether hints are about a function or class: it is of a library, and not the user's.

    It is of the standard library, or installed beside it.

    >>> is_of_a_library(functools.reduce), is_of_a_library(random.shuffle)
    (True, True)
    """
    root = str(getattr(value, "__module__", None)).split(".")[0]
    if root in sys.stdlib_module_names and root != "__main__":
        return True
    installed = {sysconfig.get_path(one) for one in ("purelib", "platlib")}
    module = sys.modules.get(root)
    code = value.__code__ if isinstance(value, types.FunctionType) else None
    file = code.co_filename if code else str(getattr(module, "__file__", None))
    return file.startswith(tuple(installed))


def names_it_has(wanted: str, names: Iterable[str], more: str = "") -> str:
    """A hint for a wrong name: the names that there are, and the one that may be meant.

    >>> names_it_has("totl", ["total", "price"])
    "it has total, price: did you mean 'total'?"
    >>> names_it_has("x", ["total"], " and more")
    'it has total and more'
    """
    names = list(names)
    near = nearest(wanted, names)
    meant = f": did you mean {near!r}?" if near is not None else ""
    return f"it has {', '.join(names)}{more}{meant}"
