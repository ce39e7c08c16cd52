"""Arrays of the state under Python: indices, slices, rows, and what is done to them as a whole."""

from __future__ import annotations

import ast
import functools
import itertools
import operator
from collections.abc import Callable, Iterable, Iterator, MutableSequence, Sequence
from typing import Any

import numpy as np

from specstream.columns.exception_texts import in_python
from specstream.compiler.frontend.error_texts import no_element
from specstream.compiler.language import numbers
from specstream.compiler.language.bool_operators import OF_BOOLS
from specstream.compiler.language.numbers import Int64, Uint64
from specstream.compiler.language.text import Text, python_string, refusal, refuse
from specstream.compiler.oracle_objects.elements import (
    LOAD,
    store_of,
)
from specstream.compiler.oracle_objects.reductions import Reductions
from specstream.declarations.codes import EMPTY
from specstream.declarations.element_types import Storage, storage_of
from specstream.declarations.updates import Misfit, misfit

__all__ = ["ByValue", "View", "by_value", "is_truth", "strides_of", "to_power"]


def strides_of(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Of an array that lies densely, in elements."""
    strides = [1]
    for length in reversed(shape[1:]):
        strides.insert(0, strides[0] * length)
    return tuple(strides)


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return list(map(_plain, value))
    return python_string(value)


@numbers.shown_as("numpy.ndarray")
class View(Reductions):
    """An array field, or a row or slice of one, as operators see it under Python."""

    list_of: type[list[Any]] = list
    """What ``tolist`` makes; oracle_local.py says which."""

    __slots__ = (
        *("_converted", "_journal", "_load", "_name", "_offset", "_shape", "_storage"),
        *("_strides", "_words"),
    )

    def __init__(
        self,
        name: str,
        storage: Storage,
        words: Any,
        journal: list[tuple[Any, ...]],
        offset: int,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
    ) -> None:
        self._name = name
        self._storage = storage
        self._words = words
        self._journal = journal
        self._offset = offset
        self._shape = shape
        self._strides = strides
        self._load = LOAD[storage.number]
        self._converted = store_of(storage)

    @property
    def shape(self) -> tuple[Int64, ...]:
        return tuple(map(Int64, self._shape))

    @property
    def ndim(self) -> Int64:
        return Int64(len(self._shape))

    @property
    def zero(self) -> Int64 | Uint64 | float:
        """What a sum over the view starts from."""
        number = self._storage.number
        if number == "str":
            refuse(*refusal("sum"))
        return 0.0 if number == "float" else Uint64(0) if number == "uint" else Int64(0)

    def __len__(self) -> int:
        return self._shape[0]

    def plain(self) -> Any:
        """A copy, as an array of NumPy's."""
        return np.array(_plain(self.tolist()))

    def __repr__(self) -> str:
        return repr(self.plain())

    def __str__(self) -> str:
        return str(self.plain())

    def _at(self, axis: int, index: Any) -> int:
        length = self._shape[axis]
        if isinstance(index, Text):
            refuse("an index is a string", "hash it, like (x & 65535) % n")
        if isinstance(index, bool) or not isinstance(index, int):
            raise TypeError(f"state.{self._name} is indexed with {index!r}: write int(x)")
        at = index + length if index < 0 and not isinstance(index, Uint64) else int(index)
        if not 0 <= at < length:
            error = IndexError(
                f"index {int(index)} is out of bounds for axis {axis} of state.{self._name}, "
                f"which has length {length}"
            )
            raise in_python(error, no_element(int(index), axis, length))
        return int(at)

    def _select(self, index: Any) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
        parts = index if type(index) is tuple else (index,)
        if len(parts) > len(self._shape):
            raise IndexError(
                f"{len(parts)} indices for state.{self._name} with {len(self._shape)} axes"
            )
        offset = self._offset
        shape, strides = [], []
        for axis, part in enumerate(parts):
            stride = self._strides[axis]
            if isinstance(part, slice):
                start, stop, step = part.indices(self._shape[axis])
                offset += int(start) * stride
                shape.append(len(range(start, stop, step)))
                strides.append(int(step) * stride)
            else:
                offset += self._at(axis, part) * stride
        rest = len(parts)
        return offset, (*shape, *self._shape[rest:]), (*strides, *self._strides[rest:])

    def _view(self, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> View:
        return View(self._name, self._storage, self._words, self._journal, offset, shape, strides)

    def _element(self, index: Any) -> int:
        """Where an element is; -1 for an index of any other form than nearly all have: as many
        non-negative machine integers as there are axes. The oracle spends its time here."""
        lengths = self._shape
        if index.__class__ is Int64:
            if len(lengths) == 1 and 0 <= index < lengths[0]:
                return self._offset + self._strides[0] * int(index)
        elif index.__class__ is tuple and len(index) == len(lengths):
            at = self._offset
            for part, length, stride in zip(index, lengths, self._strides, strict=True):
                if part.__class__ is not Int64 or not 0 <= part < length:
                    return -1
                at += stride * int(part)
            return at
        return -1

    def _misfit(self, name: str, index: Any) -> Misfit | None:
        """Why what is there has no such update."""
        shape = () if self._element(index) >= 0 else self._select(index)[1]
        return misfit(name, f"state.{self._name}", self._storage, shape)

    def __ss_check_update__(self, name: str, index: Any) -> None:
        found = self._misfit(name, index)
        if found is not None:
            refuse(*found)

    def __getitem__(self, index: Any) -> Any:
        at = self._element(index)
        if at >= 0:
            return self._load(self._words[at])
        offset, shape, strides = self._select(index)
        if shape == ():
            return self._load(self._words[offset])
        return self._view(offset, shape, strides)

    def __setitem__(self, index: Any, value: Any) -> None:
        at = self._element(index)
        if at >= 0:
            self._store(at, value)
            return
        offset, shape, strides = self._select(index)
        if shape == ():
            self._store(offset, value)
            return
        target = self._view(offset, shape, strides)
        if isinstance(value, list | tuple | MutableSequence):
            self._store_row(target, list(value))
        elif isinstance(value, View):
            # All elements are read before the first is written: windows may overlap.
            elements = [value._load(value._words[at]) for at in value._broadcast(target)]
            for at, element in zip(target._elements(), elements, strict=True):
                self._store(at, element)
        else:
            for at in target._elements():
                self._store(at, value)

    def _store_row(self, target: View, items: list[Any]) -> None:
        """The items of a list or tuple go to the last axis, one by one or one to all."""
        length = target._shape[-1]
        if len(items) not in (1, length):
            error = ValueError(
                f"could not broadcast {len(items)} items into elements of state.{self._name} of "
                f"shape {target._shape}: a list has to have {length} items"
            )
            raise in_python(error, _misfit((len(items),), target._shape))
        for number, at in enumerate(target._elements()):
            self._store(at, items[number % length if len(items) == length else 0])

    @staticmethod
    def each(operation: Callable[..., Any], *operands: Any) -> View:
        """A new array of what is made of each element."""
        views = [one for one in operands if isinstance(one, View)]
        ndim = max(len(view._shape) for view in views)
        shape = [1] * ndim
        for view in views:
            for axis, length in enumerate(view._shape, start=ndim - len(view._shape)):
                shape[axis] = length if shape[axis] == 1 else shape[axis]
        made = View._new(views[0], tuple(shape))
        parts = [
            [one._load(one._words[at]) for at in one._broadcast(made)]
            if isinstance(one, View)
            else itertools.repeat(one)
            for one in operands
        ]
        elements = [operation(*each) for each in zip(*parts, strict=False)]
        # Of no element, the kind is that of ones.
        sample = elements[0] if elements else operation(*map(_one_of_kind, operands))
        return made._filled(elements, sample)

    @staticmethod
    def _new(like: View, shape: tuple[int, ...]) -> View:
        strides = strides_of(shape)
        return View("an array", like._storage, [], like._journal, 0, shape, strides)

    def _filled(self, elements: list[Any], sample: Any) -> View:
        self._storage = storage_of(_STORED[type(sample)], "an element")
        self._load = LOAD[self._storage.number]
        self._converted = store_of(self._storage)
        self._words.extend(self._converted(one, self._name) for one in elements)
        return self

    def _values(self) -> list[Any]:
        return [self._load(self._words[at]) for at in self._elements()]

    def _numbers(self, what: str) -> list[Any]:
        if self._storage.number == "str":
            refuse(*refusal(what))
        return self._values()

    def __eq__(self, other: object) -> Any:
        return View.each(operator.eq, self, other)

    def __ne__(self, other: object) -> Any:
        return View.each(operator.ne, self, other)

    __hash__ = None  # type: ignore[assignment]

    # ---- methods ----

    def copy(self) -> View:
        elements = self._values()
        return View._new(self, self._shape)._filled(elements, _one_of_kind(self))

    def tolist(self) -> Any:
        return View.list_of(self._values())

    def fill(self, value: Any) -> None:
        for at in self._elements():
            self._store(at, value)

    def _update(self, operation: Callable[[Any, Any], Any], value: Any) -> View:
        """``self op= value``, element by element."""
        others: Iterable[Any] = itertools.repeat(value)
        if isinstance(value, View):
            others = [value._load(value._words[at]) for at in value._broadcast(self)]
        for at, other in zip(self._elements(), others, strict=False):
            self._store(at, operation(self._load(self._words[at]), other))
        return self

    __iadd__ = functools.partialmethod(_update, operator.add)
    __isub__ = functools.partialmethod(_update, operator.sub)
    __imul__ = functools.partialmethod(_update, operator.mul)
    __itruediv__ = functools.partialmethod(_update, operator.truediv)
    __ifloordiv__ = functools.partialmethod(_update, operator.floordiv)
    __imod__ = functools.partialmethod(_update, operator.mod)
    __iand__ = functools.partialmethod(_update, operator.and_)
    __ior__ = functools.partialmethod(_update, operator.or_)
    __ixor__ = functools.partialmethod(_update, operator.xor)
    __ilshift__ = functools.partialmethod(_update, operator.lshift)
    __irshift__ = functools.partialmethod(_update, operator.rshift)

    def _elements(self) -> Iterator[int]:
        """Where the elements are, the last axis first."""
        ranges = (
            range(0, length * stride, stride) if stride else (0,) * length
            for length, stride in zip(self._shape, self._strides, strict=True)
        )
        return (self._offset + sum(steps) for steps in itertools.product(*ranges))

    def _broadcast(self, target: View) -> Iterator[int]:
        """Where the elements are that go to the target's, by NumPy's rules."""
        missing = len(target._shape) - len(self._shape)
        lengths = (1,) * missing + self._shape[max(-missing, 0) :]
        strides = (0,) * missing + self._strides[max(-missing, 0) :]
        fits = all(length == 1 for length in self._shape[: max(-missing, 0)]) and all(
            length in (1, wanted) for length, wanted in zip(lengths, target._shape, strict=True)
        )
        if not fits:
            error = ValueError(
                f"could not broadcast elements of state.{self._name} of shape {self._shape} into "
                f"those of state.{target._name} of shape {target._shape}: the lengths of each axis "
                "must be equal, or 1"
            )
            raise in_python(error, _misfit(self._shape, target._shape))
        repeated = tuple(
            stride if length == wanted else 0
            for length, stride, wanted in zip(lengths, strides, target._shape, strict=True)
        )
        return self._view(self._offset, target._shape, repeated)._elements()

    def _store(self, offset: int, value: Any) -> None:
        stored = self._converted(value, f"state.{self._name}")
        self._journal.append((self._words.__setitem__, offset, self._words[offset]))
        self._words[offset] = stored

    def __iter__(self) -> Iterator[Any]:
        for position in range(self._shape[0]):
            yield self[Int64(position)]

    def __contains__(self, element: Any) -> bool:
        return any(own == element for own in self)

    def __bool__(self) -> bool:
        raise TypeError(f"state.{self._name} is an array: test len(x) or an element")


def _misfit(given: tuple[int, ...], wanted: tuple[int, ...]) -> Exception:
    """What NumPy raises where an array does not fit another."""
    try:
        np.empty(wanted, bool)[...] = np.empty(given, bool)
    except ValueError as error:
        return error
    raise AssertionError("it raises")


class ByValue:
    """A tuple or list that is compared by what is equal, and not by what is the same object, as
    Python's do at first: a NaN is in none. Compiled code has no objects."""

    def __init__(self, values: Sequence[Any]) -> None:
        self._values = values

    @property
    def plain(self) -> Sequence[Any]:
        return self._values

    def __contains__(self, element: Any) -> bool:
        return any(by_value(own) == element for own in self._values)

    def __eq__(self, other: object) -> Any:
        others = _values_of(other)
        if others is None:
            return NotImplemented
        if len(others) != len(self._values):
            return False
        return all(by_value(own) == one for own, one in zip(self._values, others, strict=True))

    def __ne__(self, other: object) -> Any:
        found = self == other
        return NotImplemented if found is NotImplemented else not found

    def _ordered_by_value(self, other: object, compare: Callable[[Any, Any], Any]) -> Any:
        """Under Python, orders tuples and lists by value, like rows: the first unequal decide.

        Where there are none, the lengths do.
        """
        others = _values_of(other)
        if others is None:
            return NotImplemented
        for own, one in zip(self._values, others, strict=False):
            if by_value(own) != one:
                return compare(by_value(own), by_value(one))
        return compare(len(self._values), len(others))

    def __lt__(self, other: object) -> Any:
        return self._ordered_by_value(other, operator.lt)

    def __le__(self, other: object) -> Any:
        return self._ordered_by_value(other, operator.le)

    def __gt__(self, other: object) -> Any:
        return self._ordered_by_value(other, operator.gt)

    def __ge__(self, other: object) -> Any:
        return self._ordered_by_value(other, operator.ge)


_STORED: dict[type, type] = {Int64: int, Uint64: np.uint64, float: float, bool: bool, Text: str}


def _one_of_kind(operand: Any) -> Any:
    """A one of an array's kind under Python, for the kind of a result of no elements."""
    if not isinstance(operand, View):
        return operand
    ones = {"int": Int64(1), "uint": Uint64(1), "float": 1.0, "str": Text(EMPTY, "")}
    return ones.get(operand._storage.number, True)


def _stage(name: str, operation: Callable[[Any, Any], Any]) -> None:
    def method(self: View, other: Any) -> Any:
        return View.each(operation, self, other)

    def reflected(self: View, other: Any) -> Any:
        return View.each(operation, other, self)

    setattr(View, f"__{name}__", method)
    setattr(View, f"__r{name}__", reflected)


for _name, _node in (
    *(("add", ast.Add), ("sub", ast.Sub), ("mul", ast.Mult), ("floordiv", ast.FloorDiv)),
    *(("mod", ast.Mod), ("lshift", ast.LShift), ("rshift", ast.RShift)),
    *(("xor", ast.BitXor), ("and", ast.BitAnd), ("or", ast.BitOr)),
):
    _stage(_name, OF_BOOLS[_node])
for _name in ("truediv", "lt", "le", "gt", "ge"):
    _stage(_name, getattr(operator, _name))
_stage("pow", numbers.power)
for _name, _of_one in (
    ("neg", numbers.negate),
    ("pos", operator.pos),
    ("invert", operator.invert),
    ("abs", abs),
):
    setattr(View, f"__{_name}__", lambda self, operation=_of_one: View.each(operation, self))


def _values_of(other: object) -> Sequence[Any] | None:
    if isinstance(other, ByValue):
        return other._values
    return other if isinstance(other, tuple | list | MutableSequence) else None


def by_value(value: Any) -> Any:
    """An operand of a comparison, or what stands on the right of ``in``."""
    return ByValue(value) if type(value) is tuple else value


def is_truth(value: Any, truth: bool) -> bool:
    """``value is True`` or ``value is False``; over another library a truth may not be known."""
    return value is truth


def to_power(left: Any, right: Any) -> Any:
    """What ``left **= right`` makes under Python of a view of an array, or of a number."""
    if isinstance(left, View):
        return left._update(numbers.power, right)
    return numbers.power(left, right)
