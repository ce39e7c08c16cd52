"""The methods of lists, deques, dicts, sets, heaps, timers and arrays: one record for each.

What oracle and native code agree on before either says what a method does: which there are, what
they take, and what they do to what they are called on. Native code adds the body of each
(``library``), under the same name; the refusals, what is frozen, and the analyses in ``facts`` ask
here. A method that has no record is refused, whatever bodies there are.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

__all__ = ["CHANGING", "CONTAINERS", "METHODS", "Method", "method_of", "methods_of", "names_where"]

CONTAINERS = ("list", "deque", "dict", "set", "priority_queue", "timers", "array")


@dataclass(frozen=True)
class Method:
    """A method of one kind of container.

    Attributes:
        of: the container: list, deque, dict, set, priority_queue, timers, array.
        name: as Python calls it.
        least: how many arguments it takes by position.
        most: likewise; None: any number.
        changes: it changes what it is called on.
        resizes: it may change the number of elements, so that a loop over them ends with an error.
        keeps: the argument that becomes an element; None: none does.
        takes_iterables: its arguments are gone through, as a loop goes through them.
        has_key: its first argument is a key, and what it does is about that key alone.
        gives_element: it returns an element, or a value of a dict.
    """

    of: str
    name: str
    least: int = 0
    most: int | None = 0
    changes: bool = False
    resizes: bool = False
    keeps: int | None = None
    takes_iterables: bool = False
    has_key: bool = False
    gives_element: bool = False

    def takes(self, count: int) -> bool:
        """Whether it takes so many arguments."""
        return self.least <= count and (self.most is None or count <= self.most)

    @property
    def counts(self) -> str:
        """How many arguments it takes, in words."""
        if self.most is None:
            return f"{self.least} or more"
        return str(self.most) if self.least == self.most else f"{self.least} to {self.most}"


_RECORDS = (
    Method("list", "append", 1, 1, changes=True, resizes=True, keeps=0),
    Method("list", "clear", changes=True, resizes=True),
    Method("list", "copy"),
    Method("list", "count", 1, 1),
    Method("list", "extend", 1, 1, changes=True, resizes=True, takes_iterables=True),
    Method("list", "index", 1, 3),
    Method("list", "insert", 2, 2, changes=True, resizes=True, keeps=1),
    Method("list", "pop", 0, 1, changes=True, resizes=True, gives_element=True),
    Method("list", "remove", 1, 1, changes=True, resizes=True),
    Method("list", "reverse", changes=True),
    Method("list", "sort", changes=True),
    Method("deque", "append", 1, 1, changes=True, resizes=True, keeps=0),
    Method("deque", "appendleft", 1, 1, changes=True, resizes=True, keeps=0),
    Method("deque", "clear", changes=True, resizes=True),
    Method("deque", "count", 1, 1),
    Method("deque", "extend", 1, 1, changes=True, resizes=True, takes_iterables=True),
    Method("deque", "extendleft", 1, 1, changes=True, resizes=True, takes_iterables=True),
    Method("deque", "index", 1, 3),
    Method("deque", "insert", 2, 2, changes=True, resizes=True, keeps=1),
    Method("deque", "pop", changes=True, resizes=True, gives_element=True),
    Method("deque", "popleft", changes=True, resizes=True, gives_element=True),
    Method("deque", "remove", 1, 1, changes=True, resizes=True),
    Method("deque", "reverse", changes=True),
    Method("deque", "rotate", 0, 1, changes=True, resizes=True),
    Method("dict", "clear", changes=True, resizes=True),
    Method("dict", "copy"),
    Method("dict", "get", 1, 2, has_key=True, gives_element=True),
    Method("dict", "items"),
    Method("dict", "keys"),
    Method("dict", "pop", 1, 2, changes=True, resizes=True, has_key=True, gives_element=True),
    Method("dict", "popitem", changes=True, resizes=True),
    Method(
        "dict",
        "setdefault",
        1,
        2,
        changes=True,
        resizes=True,
        keeps=1,
        has_key=True,
        gives_element=True,
    ),
    Method("dict", "update", 0, 1, changes=True, resizes=True, takes_iterables=True),
    Method("dict", "values"),
    Method("set", "add", 1, 1, changes=True, resizes=True, keeps=0, has_key=True),
    Method("set", "clear", changes=True, resizes=True),
    Method("set", "copy"),
    Method("set", "difference", 0, None, takes_iterables=True),
    Method("set", "difference_update", 0, None, changes=True, resizes=True, takes_iterables=True),
    Method("set", "discard", 1, 1, changes=True, resizes=True, has_key=True),
    Method("set", "intersection", 0, None, takes_iterables=True),
    Method("set", "intersection_update", 0, None, changes=True, resizes=True, takes_iterables=True),
    Method("set", "isdisjoint", 1, 1, takes_iterables=True),
    Method("set", "issubset", 1, 1, takes_iterables=True),
    Method("set", "issuperset", 1, 1, takes_iterables=True),
    Method("set", "pop", changes=True, resizes=True, gives_element=True),
    Method("set", "remove", 1, 1, changes=True, resizes=True, has_key=True),
    Method("set", "symmetric_difference", 1, 1, takes_iterables=True),
    Method(
        "set", "symmetric_difference_update", 1, 1, changes=True, resizes=True, takes_iterables=True
    ),
    Method("set", "union", 0, None, takes_iterables=True),
    Method("set", "update", 0, None, changes=True, resizes=True, takes_iterables=True),
    Method("priority_queue", "clear", changes=True, resizes=True),
    Method("priority_queue", "peek", gives_element=True),
    Method("priority_queue", "pop", changes=True, resizes=True, gives_element=True),
    Method("priority_queue", "push", 1, 1, changes=True, resizes=True, keeps=0),
    Method(
        "priority_queue", "pushpop", 1, 1, changes=True, resizes=True, keeps=0, gives_element=True
    ),
    Method(
        "priority_queue", "replace", 1, 1, changes=True, resizes=True, keeps=0, gives_element=True
    ),
    Method("timers", "cancel", 1, 1, changes=True, resizes=True, has_key=True),
    Method("timers", "clear", changes=True, resizes=True),
    Method("timers", "get", 1, 1, has_key=True),
    Method("timers", "set", 2, 2, changes=True, resizes=True, has_key=True),
    Method("array", "sum"),
    Method("array", "mean"),
    Method("array", "std"),
    Method("array", "var"),
    Method("array", "min"),
    Method("array", "max"),
    Method("array", "argmin"),
    Method("array", "argmax"),
    Method("array", "any"),
    Method("array", "all"),
    Method("array", "fill", 1, 1, changes=True, keeps=0),
    Method("array", "copy"),
    Method("array", "tolist"),
)

METHODS = {(one.of, one.name): one for one in _RECORDS}
"""By container and name."""


def method_of(of: str, name: str) -> Method | None:
    """The method of a container; None: it has none of that name."""
    return METHODS.get((of, name))


def methods_of(of: str) -> tuple[str, ...]:
    """The names of the methods of a container, in the order of the records."""
    return tuple(one.name for one in METHODS.values() if one.of == of)


def names_where(
    has: Callable[[Method], object], of: Collection[str] = CONTAINERS
) -> frozenset[str]:
    """The names of methods of some containers that have something: what is known where a method is
    called on a name of which it is not known what it is."""
    return frozenset(one.name for one in METHODS.values() if one.of in of and has(one))


CHANGING = names_where(lambda one: one.changes, ("list", "deque", "dict", "set"))
"""The names of methods by which Python's own containers are changed."""
