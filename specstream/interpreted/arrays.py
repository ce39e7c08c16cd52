"""Arrays of the state, rows and slices of them, as interpreted operators see them.

An element is a Python number. As a whole an array is NumPy's: arithmetic, comparisons, methods and
functions work on a copy of it, which is read as one range and cannot be written to; what they give
are NumPy's arrays and numbers. Narrow elements are widened in the copy, as they are when one is
read. What is stored to an index, a row or a slice is stored in the state.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib.mixins import NDArrayOperatorsMixin

from specstream.columns.exception_texts import left_with
from specstream.compiler.frontend.error_texts import no_element
from specstream.compiler.oracle_objects.view import View
from specstream.declarations.element_types import Storage
from specstream.declarations.options import shown
from specstream.declarations.plain_values import plain, plain_elements
from specstream.interpreted.values import stored

__all__ = ["Array"]

_WIDE = {"int": np.int64, "uint": np.uint64, "float": np.float64, "bool": np.bool_}


# Arrays of these kinds have no value that would have to be looked at by itself, but for its bounds.
_FITTING = {"int": "biu", "uint": "biu", "float": "biuf", "bool": "b"}


def _is_within(values: npt.NDArray[Any], storage: Storage) -> bool:
    bounds = storage.bounds
    if bounds is None or values.size == 0:
        return True
    return bounds[0] <= int(values.min()) and int(values.max()) <= bounds[1]


def _plain(value: Any) -> Any:
    """What NumPy is given in place of arrays of the state."""
    if isinstance(value, Array):
        return value.__array__()
    if isinstance(value, list | tuple) and any(
        isinstance(one, Array | list | tuple) for one in value
    ):
        return type(value)(map(_plain, value))
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    return value


# They change their first argument, and give nothing.
_CHANGING = (np.copyto, np.fill_diagonal, np.place, np.put, np.put_along_axis, np.putmask)


def _changing(function: Any, target: Any, *given: Any, **named: Any) -> None:
    """Changes an array, of the state or not, by a function that does that to one of NumPy's."""
    made = target.copy() if isinstance(target, Array) else target
    function(made, *map(_plain, given), **_plain(named))
    if made is not target:
        target[...] = made


class Array(NDArrayOperatorsMixin, View):
    """An array field, or a part of one."""

    __slots__ = ()
    __hash__ = None

    def __init__(
        self,
        name: str,
        storage: Storage,
        words: Any,
        offset: int,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
    ) -> None:
        super().__init__(name, storage, words, [], offset, shape, strides)
        self._converted = stored(storage)

    def _view(self, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> Array:
        return Array(self._name, self._storage, self._words, offset, shape, strides)

    # ---- elements ----

    def _at(self, axis: int, index: Any) -> int:
        length = self._shape[axis]
        if isinstance(index, bool | np.bool_):
            raise TypeError(f"state.{self._name} is indexed with {index!r}: write int(x)")
        try:
            index = operator.index(plain(index))
        except TypeError:
            raise TypeError(
                f"state.{self._name} is indexed with {shown(index)} ({type(index).__name__}); "
                f"expected an int or a slice: {self._other_ways(index)}"
            ) from None
        at: int = index + length if index < 0 else index
        if not 0 <= at < length:
            raise left_with(
                no_element(index, axis, length),
                f"index {index} is out of bounds for axis {axis} of state.{self._name}, "
                f"which has length {length}",
            )
        return at

    def __ss_check_update__(self, name: str, index: Any) -> None:
        found = self._misfit(name, index)
        if found is not None:
            raise TypeError(str(found))

    def _other_ways(self, index: Any) -> str:
        """What to write where one of NumPy's other indices stands."""
        if isinstance(index, float | np.floating):
            return "write int(x)"
        whole = f"state.{self._name}"
        return f"read {whole}.copy()[...]; store x = {whole}.copy(), x[...] = value, {whole}[:] = x"

    def _element(self, index: Any) -> int:
        lengths = self._shape
        if index.__class__ is int:
            if len(lengths) == 1 and 0 <= index < lengths[0]:
                return self._offset + self._strides[0] * index
        elif index.__class__ is tuple and len(index) == len(lengths):
            at = self._offset
            for part, length, stride in zip(index, lengths, self._strides, strict=True):
                if part.__class__ is not int or not 0 <= part < length:
                    return -1
                at += stride * part
            return at
        return -1

    def _selected(self, index: Any) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
        parts = index if type(index) is tuple else (index,)
        at = next((at for at, part in enumerate(parts) if part is Ellipsis), -1)
        if at >= 0:  # as many axes as are left
            rest = len(self._shape) - len(parts) + 1
            parts = (*parts[:at], *[slice(None)] * rest, *parts[at + 1 :])
        return self._select(parts)

    def __getitem__(self, index: Any) -> Any:
        lengths = self._shape
        # What nearly all accesses are, without a call.
        if index.__class__ is int and len(lengths) == 1 and 0 <= index < lengths[0]:
            return self._words[self._offset + self._strides[0] * index]
        at = self._element(index)
        if at >= 0:
            return self._words[at]
        offset, shape, strides = self._selected(index)
        return self._words[offset] if shape == () else self._view(offset, shape, strides)

    def __setitem__(self, index: Any, value: Any) -> None:
        at = self._element(index)
        if at < 0:
            offset, shape, strides = self._selected(index)
            if shape != ():
                self._view(offset, shape, strides)._put(value)
                return
            at = offset
        self._words[at] = self._converted(value, f"state.{self._name}")

    def _put(self, value: Any) -> None:
        """Stores to all elements; what is stored is worked out before the first store."""
        if isinstance(value, Array):
            if value.place() == self.place():
                return  # state.row[1] += x, which has stored
            value = value.__array__()
        given = value if isinstance(value, np.ndarray) else self._given(value)
        try:
            spread = np.broadcast_to(given, self._shape)
        except ValueError:
            raise ValueError(
                f"could not broadcast elements of shape {given.shape} into those of state."
                f"{self._name} of shape {self._shape}: the lengths of each axis must be equal, or 1"
            ) from None
        values = self._held(spread)
        first = self._contiguous()
        if first < 0 or self._storage.number == "str":
            for at, one in zip(self._elements(), values.tolist(), strict=True):
                self._words[at] = one
        else:
            self._words.write(first, values.tobytes())

    def _held(self, given: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """What the elements hold for these values, one behind the other; all are checked."""
        storage = self._storage
        if given.dtype.kind in _FITTING.get(storage.number, "") and _is_within(given, storage):
            with np.errstate(over="ignore"):  # a float32 that is too large is infinite
                made = given.astype(storage.dtype).ravel()
            if storage.number == "float":
                made[np.isnan(made)] = np.nan
            return made
        what, convert = f"state.{self._name}", self._converted
        values = [convert(one, what) for one in given.ravel().tolist()]
        return np.array(values, object if storage.number == "str" else storage.dtype)

    def _given(self, value: Any) -> npt.NDArray[Any]:
        """Python's own values as an array that keeps them: a great int stays one."""
        value = plain_elements(value)
        made = np.asarray(_plain(value))
        return made if made.dtype.kind in "biuf" else np.array(value, object)

    def place(self) -> tuple[Any, ...]:
        """Which elements of which space it is."""
        return id(self._words), self._offset, self._shape, self._strides

    def _contiguous(self) -> int:
        """Where the elements begin, if they lie one behind the other; else -1."""
        expected = 1
        for length, stride in zip(reversed(self._shape), reversed(self._strides), strict=True):
            if length != 1 and stride != expected:
                return -1
            expected *= length
        return self._offset

    def __iter__(self) -> Iterator[Any]:
        return (self[at] for at in range(self._shape[0]))

    def __contains__(self, element: Any) -> bool:
        return any(own == element for own in self.__array__().ravel().tolist())

    # ---- as NumPy's array ----

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        made = self._copied()
        if dtype is not None and made.dtype != dtype:
            return made.astype(dtype)
        return made.copy() if copy else made

    def _copied(self) -> npt.NDArray[Any]:
        number, words = self._storage.number, self._words
        first, made = self._contiguous(), None
        if number == "str":
            made = np.empty(self._shape, object)
            made.ravel()[:] = [words[at] for at in self._elements()]
        elif first >= 0:
            made = np.frombuffer(words.read(first, self.size), self._storage.dtype)
            made = made.astype(self.dtype, copy=False).reshape(self._shape)
        else:
            values = [words[at] for at in self._elements()]
            made = np.array(values, self.dtype).reshape(self._shape)
        made.flags.writeable = False
        return made

    def __array_ufunc__(
        self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **named: Any
    ) -> Any:
        function = getattr(ufunc, method)
        if method == "at":
            return _changing(function, *inputs)
        if out is None:
            return function(*map(_plain, inputs), **_plain(named))
        if "where" in named:  # what it leaves out stays
            named["out"] = tuple([one.copy() if isinstance(one, Array) else one for one in out])
        found = function(*map(_plain, inputs), **_plain(named))
        made = found if isinstance(found, tuple) else (found,)
        for target, one in zip(out, made, strict=True):
            if target is not None:
                target[...] = one
        given = [one if into is None else into for into, one in zip(out, made, strict=True)]
        return tuple(given) if isinstance(found, tuple) else given[0]

    def __array_function__(self, function: Any, kinds: Any, given: Any, named: Any) -> Any:
        if function in _CHANGING:
            return _changing(function, *given, **named)
        out = named.pop("out", None)
        made = function(*_plain(given), **_plain(named))
        if out is None:
            return made
        out[...] = made
        return out

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.__array__(), name)

    def __bool__(self) -> bool:
        raise TypeError(f"state.{self._name} is an array: test len(x) or an element")

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return self._shape

    @property
    def ndim(self) -> int:  # type: ignore[override]
        return len(self._shape)

    @property
    def size(self) -> int:
        return math.prod(self._shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the copies."""
        return np.dtype(_WIDE.get(self._storage.number, object))

    def copy(self) -> npt.NDArray[Any]:  # type: ignore[override]
        return self.__array__().copy()

    def tolist(self) -> list[Any]:
        made: list[Any] = self.__array__().tolist()
        return made

    def fill(self, value: Any) -> None:
        self[...] = value


def _as_numpy_does(name: str) -> Any:
    def method(self: Array, *given: Any, **named: Any) -> Any:
        made = getattr(self.__array__(), name)(*map(_plain, given), **named)
        return made.item() if isinstance(made, np.generic) else made

    method.__name__ = name
    return method


def _as_numpy_changes(name: str) -> Any:
    def method(self: Array, *given: Any, **named: Any) -> None:
        _changing(getattr(np.ndarray, name), self, *given, **named)

    method.__name__ = name
    return method


for _name in ("partition", "put", "sort"):
    setattr(Array, _name, _as_numpy_changes(_name))
for _name in ("sum", "mean", "std", "var", "min", "max", "argmin", "argmax", "any", "all"):
    setattr(Array, _name, _as_numpy_does(_name))
