"""Arrays of the state, rows and slices of them, as interpreted operators see them.

An element is a Python number. As a whole an array is NumPy's: arithmetic, comparisons, methods and
functions work on a copy of it, which is read as one range and cannot be written to; what they give
are NumPy's arrays and numbers. Narrow elements are widened in the copy, as they are when one is
read. What is stored to an index, a row or a slice is stored in the state.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib.mixins import NDArrayOperatorsMixin

from specstream.compiler.oracle_view import View
from specstream.declarations.element_types import Storage
from specstream.interpreted.values import stored

__all__ = ["Array"]

_WIDE = {"int": np.int64, "uint": np.uint64, "float": np.float64, "bool": np.bool_}


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
            index = operator.index(index)
        except TypeError:
            raise TypeError(
                f"state.{self._name} is indexed with {index!r} ({type(index).__name__}); expected "
                "an int or a slice, or for other ways of NumPy's a copy: state."
                f"{self._name}.copy()[...]"
            ) from None
        at: int = index + length if index < 0 else index
        if not 0 <= at < length:
            raise IndexError(
                f"index {index} is out of bounds for axis {axis} of state.{self._name}, "
                f"which has length {length}"
            )
        return at

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
        if index is Ellipsis:
            return self._offset, self._shape, self._strides
        return self._select(index)

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
        what, convert = f"state.{self._name}", self._converted
        try:
            spread = np.broadcast_to(given, self._shape)
        except ValueError:
            raise ValueError(
                f"could not broadcast elements of shape {given.shape} into those of {what} of "
                f"shape {self._shape}: the lengths of each axis must be equal, or 1"
            ) from None
        values = [convert(one, what) for one in spread.ravel().tolist()]
        first = self._contiguous()
        if first < 0 or self._storage.number == "str":
            for at, one in zip(self._elements(), values, strict=True):
                self._words[at] = one
        else:
            self._words.write(first, np.array(values, self._storage.dtype).tobytes())

    def _given(self, value: Any) -> npt.NDArray[Any]:
        """Python's own values as an array that keeps them: a great int stays one."""
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
            size = int(np.prod(self._shape))
            made = np.frombuffer(words.read(first, size), self._storage.dtype)
            made = made.astype(_WIDE[number], copy=False).reshape(self._shape)
        else:
            values = [words[at] for at in self._elements()]
            made = np.array(values, _WIDE[number]).reshape(self._shape)
        made.flags.writeable = False
        return made

    def __array_ufunc__(
        self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **named: Any
    ) -> Any:
        made = getattr(ufunc, method)(*map(_plain, inputs), **_plain(named))
        if out is None:
            return made
        (target,) = out
        target[...] = made
        return target

    def __array_function__(self, function: Any, kinds: Any, given: Any, named: Any) -> Any:
        return function(*_plain(given), **_plain(named))

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


for _name in ("sum", "mean", "std", "var", "min", "max", "argmin", "argmax", "any", "all"):
    setattr(Array, _name, _as_numpy_does(_name))
