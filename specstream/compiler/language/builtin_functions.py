"""The built-in functions, those that operators have and those that they have not: one record each.

What each means is beside its instructions (``library``, ``lowering``) and in the oracle, under the
same name. Which there are is said here: a built-in function that has no record is refused, whatever
means something under its name. The analyses and the tables of the reference ask here as well.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = [
    "BUILTINS",
    "GIVES_A_NUMBER",
    "READY",
    "REFUSED",
    "Builtin",
    "is_forbidden",
    "names_where",
    "of_keywords",
]


@dataclass(frozen=True)
class Builtin:
    """A built-in function.

    Attributes:
        name: as Python calls it.
        takes: its parameters as the reference shows them: those that may be left out in brackets,
            one that takes any number with a star.
        returns: what it gives, in the words of the reference.
        raises: classes of exceptions, and when.
        keywords: the parameters that may be given by keyword.
        hint: where it is refused, what to write instead.
        collects: it makes a list, dict, set or tuple, or is about these alone.
        consumes: it uses what it goes through up in one loop, and gives one value.
        is_iterator: it gives values one after the other, when they are asked for.
        is_as_long: it gives as many values as it is given.
        passes_on: what it gives is made of the values that it is given, and of their type.
        may_give_array: of an array it may give one.
        reads_no_element: of what it is given it reads no element, at most how many there are.
        is_forbidden: no operator has anything of that kind, whatever it is called with.
        is_pure: of one that is forbidden, Python may compute it of the event alone.
    """

    name: str
    takes: str = ""
    returns: str = ""
    raises: tuple[tuple[str, str], ...] = ()
    keywords: tuple[str, ...] = ()
    hint: str = ""
    collects: bool = False
    consumes: bool = False
    is_iterator: bool = False
    is_as_long: bool = False
    passes_on: bool = False
    may_give_array: bool = False
    reads_no_element: bool = False
    is_forbidden: bool = False
    is_pure: bool = False

    @property
    def parameters(self) -> list[str]:
        return self.takes.split(", ") if self.takes else []

    @property
    def others(self) -> tuple[str, ...]:
        """The names of what it takes beside its first parameter."""
        by_place = [one.strip("[]") for one in self.parameters[1:]]
        return tuple(dict.fromkeys([*by_place, *self.keywords]))

    @property
    def call(self) -> str:
        """How it is called."""
        return f"{self.name}({self.takes})"

    @property
    def goes_through(self) -> bool:
        """Whether it goes through an argument, as a loop does."""
        return "iterable" in self.takes

    @property
    def takes_function(self) -> bool:
        return self.takes.startswith("function")


_NOT_THERE = (("ValueError", "the iterable is empty, and there is no `default`"),)
_EXTREMUM = {
    "takes": "iterable or *values",
    "returns": "element",
    "raises": _NOT_THERE,
    "keywords": ("key", "default"),
    "consumes": True,
    "passes_on": True,
}
_DIVIDES = (("ZeroDivisionError", "it divides by 0"),)
_NO_INT = (("ValueError", "of NaN"), ("OverflowError", "it does not fit into 64 bits"))
_RECORDS = (
    Builtin("any", "iterable", "bool", consumes=True),
    Builtin("all", "iterable", "bool", consumes=True),
    Builtin(
        *("sum", "iterable, [start]", "number"),
        keywords=("start",),
        consumes=True,
        passes_on=True,
    ),
    Builtin("min", **_EXTREMUM),  # type: ignore[arg-type]
    Builtin("max", **_EXTREMUM),  # type: ignore[arg-type]
    Builtin(
        *("next", "iterator, [default]", "element or default"),
        raises=(("StopIteration", "there is no element, and no default"),),
        hint="write a for loop with break",
        consumes=True,
        may_give_array=True,
    ),
    Builtin("abs", "number", "number", passes_on=True, may_give_array=True),
    Builtin("bool", "[value]", "bool"),
    Builtin("dict", "[iterable]", "dict", collects=True),
    Builtin("divmod", "a, b", "pair of numbers", _DIVIDES, may_give_array=True),
    Builtin(
        *("enumerate", "iterable, [start]", "pairs of int and element"),
        keywords=("iterable", "start"),
        is_iterator=True,
        is_as_long=True,
    ),
    Builtin(
        *("filter", "function, iterable", "elements"),
        hint="write a generator or a comprehension, like [v for v in x if v > 0]",
        is_iterator=True,
        may_give_array=True,
    ),
    Builtin("float", "[number]", "float"),
    Builtin("int", "[number]", "int", _NO_INT),
    Builtin("len", "value", "int", reads_no_element=True),
    Builtin("list", "[iterable]", "list", collects=True, is_as_long=True, passes_on=True),
    Builtin(
        *("map", "function, *iterables", "what the function gives"),
        hint="write a generator or a comprehension, like [f(v) for v in x]",
        is_iterator=True,
        may_give_array=True,
    ),
    Builtin(
        *("pow", "base, exp, [mod]", "number"),
        raises=(
            ("ValueError", "`mod` is 0, or the exponent of an int is negative"),
            ("ZeroDivisionError", "0.0 to a negative power"),
            ("OverflowError", "of floats, it is too large"),
        ),
        keywords=("base", "exp", "mod"),
        may_give_array=True,
    ),
    Builtin(
        *("range", "[start], stop, [step]", "ints"),
        raises=(("ValueError", "`step` is 0"),),
        reads_no_element=True,
    ),
    Builtin(
        *("reversed", "list", "elements"),
        collects=True,
        is_iterator=True,
        is_as_long=True,
        passes_on=True,
    ),
    Builtin("round", "number, [ndigits]", "number", _NO_INT, keywords=("number", "ndigits")),
    Builtin("set", "[iterable]", "set", collects=True),
    Builtin(
        *("sorted", "iterable", "list"),
        raises=(("ValueError", "NaN is among what is compared"),),
        keywords=("key", "reverse"),
        collects=True,
        is_as_long=True,
        passes_on=True,
    ),
    Builtin(
        *("tuple", "iterable", "tuple"),
        hint="write list(x): how long a tuple is has to be known",
        collects=True,
        is_as_long=True,
        passes_on=True,
    ),
    Builtin("zip", "*iterables", "tuples", keywords=("strict",), is_iterator=True),
)

BUILTINS = {one.name: one for one in _RECORDS}
"""By name those that operators have."""


def _forbidden(name: str, hint: str, is_pure: bool = False) -> Builtin:
    return Builtin(name, hint=hint, is_forbidden=True, is_pure=is_pure)


_OF_STRINGS = (
    'here it is of what is known only when the event runs: emit(f"{x}"), and emit(f"{name}{x}") '
    "for emit(name + str(x)), give text of that to a column of str"
)
REFUSED = {
    one.name: one
    for one in (
        Builtin("bytes", hint="write a string"),
        Builtin("complex", hint="keep both parts as floats"),
        Builtin("dir", hint="name the fields"),
        _forbidden("eval", "write the code out"),
        _forbidden("exec", "write the code out"),
        Builtin("format", hint='write f"{x:.2f}" where it is emitted or raised'),
        _forbidden("getattr", "name the field"),
        _forbidden("hasattr", "name the field: what there is, is fixed by the declarations"),
        _forbidden(
            "hash",
            "it differs between runs: take the bits of a string, x & 65535, or zlib.crc32(text)",
        ),
        _forbidden("id", "operators see values only"),
        _forbidden("input", "operators cannot do input or output"),
        _forbidden("isinstance", "leave the test out: types are fixed by the schema", is_pure=True),
        Builtin("iter", hint="write a for loop"),
        _forbidden("open", "operators cannot do input or output"),
        _forbidden(
            "print", "emit a row instead, or run the operator with run_sequential under pdb"
        ),
        _forbidden("setattr", "name the field"),
        Builtin("slice", hint="write x[a:b]"),
        _forbidden("str", _OF_STRINGS, is_pure=True),
        Builtin("type", hint="leave the test out: types are fixed by the schema"),
        Builtin("vars", hint="name the fields"),
    )
}
"""By name those that are refused with a hint of their own."""


def names_where(has: Callable[[Builtin], object]) -> frozenset[str]:
    """The names of those operators have that have something."""
    return frozenset(one.name for one in BUILTINS.values() if has(one))


def is_forbidden(value: Any) -> bool:
    """Whether a built-in function is one that operators have in no form, by its record."""
    name = getattr(value, "__name__", None)
    known = REFUSED.get(str(name))
    return known is not None and known.is_forbidden and getattr(builtins, known.name) is value


def of_keywords(name: str) -> tuple[str, ...]:
    """The keywords of a built-in function that takes all its parameters so, by its record."""
    one = BUILTINS.get(name)
    is_named = one and [part.strip("[]") for part in one.parameters] == list(one.keywords)
    return one.keywords if one and is_named else ()


GIVES_A_NUMBER = names_where(lambda one: one.returns in ("bool", "float", "int", "number"))
"""The names of those that give one number, whatever they are given."""
READY = names_where(lambda one: one.is_iterator and not one.takes_function)
"""Iterators that raise nothing on the way, once they are made."""
