"""The methods of lists, deques, dicts, sets, heaps, timers, arrays, numbers and the event: one
record for each.

What oracle and native code agree on before either says what a method does: which there are, what
they take, give and raise, and what they do to what they are called on. Native code adds the body of
each (``library``), under the same name; the refusals, what is frozen, the analyses in ``facts`` and
the tables of the reference ask here. A method that has no record is refused, whatever bodies there
are.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

__all__ = [
    *("CHANGING", "CONTAINERS", "METHODS", "NUMBERS", "REFUSED", "Method", "calls_of"),
    *("container_of", "has_no_method", "method_of", "methods_of", "names_where"),
]

CONTAINERS = ("list", "deque", "dict", "set", "priority_queue", "timers", "array")
NUMBERS = ("int", "float")


@dataclass(frozen=True)
class Method:
    """A method of one kind of value.

    Attributes:
        of: the kind: one of ``CONTAINERS`` or ``NUMBERS``, or event, timer; of those that are
            refused also a class of `collections` of the operator's own.
        name: as Python calls it.
        takes: its parameters as the reference shows them, each named for what it is: those that may
            be left out in brackets, one that takes any number with a star.
        returns: what it gives, in the words of the reference.
        raises: classes of exceptions, and when.
        hint: of a method that is refused, what to write instead.
        changes: it changes what it is called on.
        resizes: it may change the number of elements, so that a loop over them ends with an error.
        keeps: the argument that becomes an element; None: none does.
        takes_iterables: its arguments are gone through, as a loop goes through them.
        has_key: its first argument is a key, and what it does is about that key alone.
        gives_element: it returns an element, or a value of a dict.
    """

    of: str
    name: str
    takes: str = ""
    returns: str = "None"
    raises: tuple[tuple[str, str], ...] = ()
    hint: str = ""
    changes: bool = False
    resizes: bool = False
    keeps: int | None = None
    takes_iterables: bool = False
    has_key: bool = False
    gives_element: bool = False

    @property
    def parameters(self) -> list[str]:
        return self.takes.split(", ") if self.takes else []

    @property
    def least(self) -> int:
        """How many arguments it takes by position."""
        return sum(not one.startswith(("[", "*")) for one in self.parameters)

    @property
    def most(self) -> int | None:
        """Likewise; None: any number."""
        return None if "*" in self.takes else len(self.parameters)

    @property
    def call(self) -> str:
        """How it is called."""
        return f"{self.name}({self.takes})"

    def accepts(self, count: int) -> bool:
        """Whether it takes so many arguments."""
        return self.least <= count and (self.most is None or count <= self.most)

    @property
    def counts(self) -> str:
        """How many arguments it takes, in words."""
        if self.most is None:
            return f"{self.least} or more"
        return str(self.most) if self.least == self.most else f"{self.least} to {self.most}"


_EMPTY = (("IndexError", "it is empty"),)
_NONE_THERE = (("KeyError", "it is empty"),)
_ABSENT = (("ValueError", "there is no such element"),)
_NO_KEY = (("KeyError", "there is no such element"),)
_NO_ELEMENT = (("ValueError", "the array has no element"),)


def _sequence(of: str) -> tuple[Method, ...]:
    """What lists and deques have in common."""
    return (
        Method(of, "append", "element", changes=True, resizes=True, keeps=0),
        Method(of, "clear", changes=True, resizes=True),
        Method(of, "count", "element", "int"),
        Method(of, "extend", "iterable", changes=True, resizes=True, takes_iterables=True),
        Method(of, "index", "element, [start], [stop]", "int", _ABSENT),
        Method(of, "remove", "element", raises=_ABSENT, changes=True, resizes=True),
        Method(of, "reverse", changes=True),
    )


def _draws(of: str) -> tuple[Method, ...]:
    """The random numbers of an event, or of a timer that fires."""
    return (
        Method(of, "random", "i", "float"),
        Method(of, "random_bits", "i", "uint64"),
        Method(of, "normal", "i", "float"),
        Method(of, "integer", "low, high, i", "int", (("ValueError", "`low >= high`"),)),
        Method(of, "choice", "n, i", "int", (("ValueError", "`n < 1`"),)),
    )


def _set_methods(name: str, takes: str) -> tuple[Method, Method]:
    """The records of two methods of sets: one makes a set, the other changes the first."""
    changing = "update" if name == "union" else f"{name}_update"
    return (
        Method("set", name, takes, "set", takes_iterables=True),
        Method("set", changing, takes, changes=True, resizes=True, takes_iterables=True),
    )


_RECORDS = (
    *_sequence("list"),
    Method("list", "copy", returns="list"),
    Method("list", "insert", "index, element", changes=True, resizes=True, keeps=1),
    Method(
        *("list", "pop", "[index]", "element", (("IndexError", "there is no such index"),)),
        changes=True,
        resizes=True,
        gives_element=True,
    ),
    Method(
        *("list", "sort", "", "None", (("ValueError", "NaN is among what is compared"),)),
        changes=True,
    ),
    *_sequence("deque"),
    Method("deque", "copy", returns="deque"),
    Method("deque", "appendleft", "element", changes=True, resizes=True, keeps=0),
    Method("deque", "extendleft", "iterable", changes=True, resizes=True, takes_iterables=True),
    Method(
        *("deque", "insert", "index, element", "None", (("IndexError", "it has `maxlen`"),)),
        changes=True,
        resizes=True,
        keeps=1,
    ),
    Method("deque", "pop", "", "element", _EMPTY, changes=True, resizes=True, gives_element=True),
    Method(
        *("deque", "popleft", "", "element", _EMPTY),
        changes=True,
        resizes=True,
        gives_element=True,
    ),
    Method("deque", "rotate", "[count]", changes=True, resizes=True),
    Method("dict", "clear", changes=True, resizes=True),
    Method("dict", "copy", returns="dict"),
    Method(
        "dict", "get", "key, [default]", "value, default or None", has_key=True, gives_element=True
    ),
    Method("dict", "items", returns="pairs"),
    Method("dict", "keys", returns="keys"),
    Method(
        *("dict", "pop", "key, [default]", "value or default"),
        raises=(("KeyError", "there is no such key, and no default"),),
        changes=True,
        resizes=True,
        has_key=True,
        gives_element=True,
    ),
    Method("dict", "popitem", "", "key and value", _NONE_THERE, changes=True, resizes=True),
    Method(
        *("dict", "setdefault", "key, [default]", "value"),
        changes=True,
        resizes=True,
        keeps=1,
        has_key=True,
        gives_element=True,
    ),
    Method("dict", "update", "[iterable]", changes=True, resizes=True, takes_iterables=True),
    Method("dict", "values", returns="values"),
    Method("set", "add", "element", changes=True, resizes=True, keeps=0, has_key=True),
    Method("set", "clear", changes=True, resizes=True),
    Method("set", "copy", returns="set"),
    *_set_methods("difference", "*iterables"),
    Method("set", "discard", "element", changes=True, resizes=True, has_key=True),
    *_set_methods("intersection", "*iterables"),
    Method("set", "isdisjoint", "iterable", "bool", takes_iterables=True),
    Method("set", "issubset", "iterable", "bool", takes_iterables=True),
    Method("set", "issuperset", "iterable", "bool", takes_iterables=True),
    Method(
        "set", "pop", "", "element", _NONE_THERE, changes=True, resizes=True, gives_element=True
    ),
    Method("set", "remove", "element", "None", _NO_KEY, changes=True, resizes=True, has_key=True),
    *_set_methods("symmetric_difference", "iterable"),
    *_set_methods("union", "*iterables"),
    Method("priority_queue", "clear", changes=True, resizes=True),
    Method("priority_queue", "peek", "", "element", _EMPTY, gives_element=True),
    Method(
        *("priority_queue", "pop", "", "element", _EMPTY),
        changes=True,
        resizes=True,
        gives_element=True,
    ),
    Method("priority_queue", "push", "element", changes=True, resizes=True, keeps=0),
    Method(
        *("priority_queue", "pushpop", "element", "element"),
        changes=True,
        resizes=True,
        keeps=0,
        gives_element=True,
    ),
    Method(
        *("priority_queue", "replace", "element", "element", _EMPTY),
        changes=True,
        resizes=True,
        keeps=0,
        gives_element=True,
    ),
    Method("timers", "cancel", "key", changes=True, resizes=True, has_key=True),
    Method("timers", "clear", changes=True, resizes=True),
    Method("timers", "get", "key", "int or None", has_key=True),
    Method(
        *("timers", "set", "key, time"),
        raises=(("ValueError", "that time has passed"),),
        changes=True,
        resizes=True,
        has_key=True,
    ),
    Method("array", "sum", returns="number"),
    *(Method("array", name, returns="float") for name in ("mean", "std", "var")),
    *(Method("array", name, "", "element", _NO_ELEMENT) for name in ("min", "max")),
    *(Method("array", name, "", "int", _NO_ELEMENT) for name in ("argmin", "argmax")),
    *(Method("array", name, returns="bool") for name in ("any", "all")),
    Method("array", "fill", "element", changes=True, keeps=0),
    Method("array", "copy", returns="array"),
    Method("array", "tolist", returns="list of elements"),
    Method("str", "endswith", "suffix", "bool"),
    Method("str", "startswith", "prefix", "bool"),
    Method("int", "bit_count", returns="int"),
    Method("int", "bit_length", returns="int"),
    Method("float", "is_integer", returns="bool"),
    *_draws("event"),
    Method("event", "is_null", "name", "bool"),
    *_draws("timer"),
)

METHODS = {(one.of, one.name): one for one in _RECORDS}
"""By kind and name."""


def _refused(of: str, names: str, hint: str) -> list[Method]:
    return [Method(of, name, hint=hint) for name in names.split()]


_AS_A_DICT = "make a dict of it, dict(x), and write what it does"
_AS_A_LIST = "make a list of it, list(x), and write what it does"
REFUSED = {
    (one.of, one.name): one
    for one in (
        *_refused("defaultdict", "copy fromkeys", _AS_A_DICT),
        *_refused("Counter", "copy elements fromkeys setdefault subtract", _AS_A_DICT),
        *_refused("local deque", "sort", _AS_A_LIST),
    )
}
"""By kind and name those that would work but for us: of what an operator makes of `collections`."""


def method_of(of: str, name: str) -> Method | None:
    """The method of a kind; None: it has none of that name."""
    return METHODS.get((of, name))


def methods_of(of: str) -> tuple[str, ...]:
    """The names of the methods of a kind, in the order of the records."""
    return tuple(one.name for one in METHODS.values() if one.of == of)


def calls_of(of: str) -> str:
    """How the methods of a kind are called, in words."""
    *others, last = [one.call for one in METHODS.values() if one.of == of]
    return f"{', '.join(others)} and {last}"


def names_where(
    has: Callable[[Method], object], of: Collection[str] = CONTAINERS
) -> frozenset[str]:
    """The names of methods of some kinds that have something: what is known where a method is
    called on a name of which it is not known what it is."""
    return frozenset(one.name for one in METHODS.values() if one.of in of and has(one))


CHANGING = names_where(lambda one: one.changes, ("list", "deque", "dict", "set"))
"""The names of methods by which Python's own containers are changed."""


def container_of(of: object) -> str | None:
    """What the records of methods call the type of a container; None: it is none."""
    found: str | None = getattr(of, "methods_of", None)
    return found


def has_no_method(of: object, name: str) -> bool:
    """Whether a type has methods, of which none has this name: there is no record of it."""
    container = container_of(of)
    return container is not None and method_of(container, name) is None
