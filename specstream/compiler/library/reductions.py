"""What reads all elements: ``min``, ``max``, ``sum`` and ``in`` of an array, in Numba's terms.

The last two of containers are here as well, in plain Python over what a loop gives. Local lists
have theirs in C (:mod:`specstream.compiler.library.local_list_methods`).
"""

# Numba's internals are only partly typed; what is compiled along carries no types, as operators do.
# mypy: allow-untyped-calls, allow-untyped-defs

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba.core import types
from numba.extending import (
    overload,
)

from specstream.compiler.backend.instructions import raise_error
from specstream.compiler.backend.local_types import LocalType
from specstream.compiler.backend.numba_pipeline import compiled
from specstream.compiler.backend.numba_types import (
    ContainerType,
    ViewType,
)
from specstream.compiler.backend.overloads import Rule, called
from specstream.compiler.backend.polling import poll_in
from specstream.compiler.language.text import TextType
from specstream.compiler.language.typing_refusals import no_letters, refuse
from specstream.compiler.library.arithmetic import add, eq
from specstream.compiler.library.array_views import read_whole

__all__ = ["OF_AN_ARRAY", "among", "contains", "total_of"]


def _over_view(name: str, implementation: Callable[[ViewType], Any]) -> Any:
    def function(view: Any) -> Any:
        raise TypeError(f"{name} exists in compiled operators only")

    function.__name__ = function.__qualname__ = f"view_{name}"

    @overload(function)
    def typed(view: Any) -> Any:
        if isinstance(view, ViewType) and view.ndim != 1:
            raise refuse(
                f"{name}() of an array of {view.ndim} axes compares and adds rows in Python: write "
                f"x.{name}() for all of its elements, or {name}(x[i]) for a row"
            )
        if isinstance(view, LocalType | types.BaseTuple | ContainerType):
            return None  # each says so in a file of its own
        if not isinstance(view, ViewType):
            two = "a + b" if name == "sum" else f"{name}(a, b)"
            raise refuse(
                f"{name}() of one value takes an array, list, tuple or generator, and gets "
                f"{view}; write {two} for two numbers"
            )
        if view.kind == "str":
            raise no_letters(name)
        return implementation(view)

    return function


def _minimum(view: ViewType) -> Any:
    def implementation(view: Any) -> Any:
        if len(view) == 0:
            raise_error(ValueError)
        read = read_whole(view, False)
        least = read[0]
        for i in range(1, len(view)):
            element = read[i]
            if element < least:
                least = element
        return least

    return implementation


def _maximum(view: ViewType) -> Any:
    def implementation(view: Any) -> Any:
        if len(view) == 0:
            raise_error(ValueError)
        read = read_whole(view, False)
        most = read[0]
        for i in range(1, len(view)):
            element = read[i]
            if element > most:
                most = element
        return most

    return implementation


def _sum(view: ViewType) -> Any:
    zero = {"float": 0.0, "uint": np.uint64(0)}.get(view.kind, 0)

    def implementation(view: Any) -> Any:
        read = read_whole(view, False)
        total = zero
        for i in range(len(view)):
            total = total + read[i]
        return total

    return implementation


view_min = _over_view("min", _minimum)
view_max = _over_view("max", _maximum)
view_sum = _over_view("sum", _sum)


OF_AN_ARRAY: dict[str, Any] = {"min": view_min, "max": view_max, "sum": view_sum}
"""By the builtin that is called with an array and nothing else."""


def contains(element: Any, container: Any) -> Any:
    """``element in container``; exists in compiled operators only."""
    raise TypeError("contains exists in compiled operators only")


@overload(contains)
def _contains(element: Any, container: Any) -> Any:
    if isinstance(container, LocalType | types.BaseTuple | ContainerType | TextType):
        return None  # each says so in a file of its own
    if not isinstance(container, ViewType) or container.ndim != 1:
        raise refuse(
            "`in` takes an array of one axis, a row, a tuple, list, dict or set: write the "
            "comparisons out"
        )

    def implementation(element: Any, container: Any) -> Any:
        for i in range(len(container)):  # noqa: SIM110 - Numba has no any() of a generator
            if eq(container[i], element):
                return True
        return False

    return implementation


# ---- of what can be gone through ----


def _totalling(zero: int | float) -> Rule:
    def total_of(values):
        total = zero
        for one in values:
            poll_in(values)
            total = add(total, one)
        return total

    return called(compiled(total_of, apart=True))


def _among(value, values):
    for one in values:
        poll_in(values)
        if eq(one, value):
            return True
    return False


among = called(compiled(_among, apart=True))
"""The rule for ``in``."""
total_of: tuple[Rule, Rule] = _totalling(0), _totalling(0.0)
"""The rule for ``sum`` of integers, and of floats."""
