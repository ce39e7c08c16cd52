"""Functions that are marked as updates: the compiler has instructions of its own for them.

A structure's functions are plain Python and compiled along with the operator that calls them. A few
stand for what the runtime knows to do without reading (:mod:`specstream.structures.commutative`,
:mod:`specstream.structures.counters`). They are marked here, by a name that the compiler looks up
in its table; outside of compiled code they are what they are written as.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from specstream.declarations.element_types import Storage
from specstream.declarations.state_layout import Layout

__all__ = ["Misfit", "check_update", "misfit", "misfit_of_field", "update", "update_name"]

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


class Misfit(NamedTuple):
    """Why an update is none of what it is asked of, and what to do."""

    problem: str
    hint: str

    def __str__(self) -> str:
        return f"{self.problem}: {self.hint}"


def misfit(name: str, what: str, storage: Storage, shape: tuple[int, ...] = ()) -> Misfit | None:
    """Why an element has no such update; None: it has.

    Args:
        name: of the update.
        what: is updated.
        storage: of the element.
        shape: of what is more than one, which has none.

    >>> from specstream.declarations.element_types import storage_of
    >>> str(misfit("add", "state.on", storage_of(bool, "a field")))
    'add works on numbers, and state.on is declared bool: assign to it'
    """
    if shape != ():
        return Misfit(
            f"{name} works on one element, and {what} is an array there",
            f"write {name}(state.array, i, ...), with as many indices as it has axes",
        )
    if name == "increment" and storage.name != "int":
        found = f"increment counts in {what}, which is declared {storage.name}"
        return Misfit(found, "declare it int")
    if storage.number in ("bool", "str"):
        return Misfit(
            f"{name} works on numbers, and {what} is declared {storage.name}", "assign to it"
        )
    return None


def misfit_of_field(name: str, layout: Layout, key: Any) -> Misfit | None:
    """Likewise of a field of a state, by its name. What is no array or number says so itself."""
    field = layout.field(key)
    if field is None or field.container is not None or field.record is not None:
        return None
    return misfit(name, f"state.{field.name}", field.storage, field.shape)


def check_update(name: str, container: Any, key: Any) -> None:
    """Under Python, an update is refused where compiled code would not have it.

    A state, and an array of one, refuses by its method ``__ss_check_update__(name, key)``. A list
    of numbers has none.
    """
    check = getattr(type(container), "__ss_check_update__", None)
    if check is not None:
        check(container, name, key)
