"""The oracle: the user's function under plain Python, one event after the other.

State, event and emit are thin wrappers over the same words, columns and rows that native code uses.
Everything that is promised about native runs is promised as "equal to this".
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from specstream._native import lib
from specstream.compiler import numbers
from specstream.compiler.numbers import Int64, Uint64
from specstream.compiler.program import CompiledOperation, Program
from specstream.compiler.reserved import RESERVED_COLUMNS
from specstream.compiler.text import Text, refuse
from specstream.declarations.element_types import Storage
from specstream.declarations.schema import Column, Schema
from specstream.declarations.state import Layout, Space

__all__ = ["BUILTINS", "Oracle", "OverlaidWords", "by_value", "to_power"]

NAN = float("nan")


def _words(array: Any) -> memoryview:
    """Elements of a memoryview are Python's own, and come several times faster than NumPy's."""
    return memoryview(array)


class OverlaidWords:
    """Elements that can be read and written without changing those below: what the failing event is
    rerun on, over committed state, without a copy. Each element type has an overlay of its own: no
    word is of two types."""

    def __init__(self, words: Any) -> None:
        self._words = words
        self._changed: dict[int, Any] = {}

    def __getitem__(self, at: int) -> Any:
        return self._changed[at] if at in self._changed else self._words[at]

    def __setitem__(self, at: int, value: Any) -> None:
        self._changed[at] = value


def _store_int(value: Any, what: str, declared: str = "int") -> int:
    if isinstance(value, Text) and declared == "int":
        return value.code
    if isinstance(value, Int64 | bool) or type(value) is int:
        return int(value)
    raise TypeError(_mismatch(what, declared, value))


def _store_float(value: Any, what: str, declared: str = "float") -> float:
    if isinstance(value, float | Int64 | bool) or type(value) is int:
        return NAN if value != value else float(value)
    raise TypeError(_mismatch(what, declared, value))


def _store_bool(value: Any, what: str) -> int:
    if isinstance(value, bool):
        return int(value)
    raise TypeError(_mismatch(what, "bool", value))


def _store_uint64(value: Any, what: str) -> int:
    if isinstance(value, Uint64):
        return int(value)
    raise TypeError(_mismatch(what, "uint64", value))


def _store_float32(value: Any, what: str) -> float:
    """Rounded here and not by the memory, because an overlay has to give it back rounded."""
    return ctypes.c_float(_store_float(value, what, "float32")).value


def _store_narrow(storage: Storage, value: Any, what: str) -> int:
    exact = _store_int(value, what, storage.name)
    assert storage.bounds is not None
    low, high = storage.bounds
    if low <= exact <= high:
        return exact
    raise OverflowError(
        f"{what} is declared {storage.name}, which holds {low} to {high}, and gets {exact}: "
        "declare a wider type, or test the value before it is stored"
    )


def _mismatch(what: str, declared: str, value: Any) -> str:
    if isinstance(value, Text):
        refuse(
            f"{what} is declared {declared} and gets a string",
            "keep it in an int field, or emit it into a column that is declared str",
        )
    return f"{what} is declared {declared} and gets {value!r} ({type(value).__name__})"


_load_int: Callable[[int], Int64] = functools.partial(int.__new__, Int64)


_LOAD: dict[str, Callable[[Any], Any]] = {
    "int": _load_int,
    "uint": functools.partial(int.__new__, Uint64),
    "float": float,
    "bool": bool,
    "str": Text,
}
_STORE: dict[str, Callable[[Any, str], Any]] = {
    "int": _store_int,
    "uint64": _store_uint64,
    "float": _store_float,
    "float32": _store_float32,
    "bool": _store_bool,
    "bool8": _store_bool,
    "str": _store_int,
}


def _store_of(storage: Storage) -> Callable[[Any, str], Any]:
    """What checks a value and makes it what the elements hold."""
    return _STORE.get(storage.name) or functools.partial(_store_narrow, storage)


def _emitted(value: Any, column: Column, name: str) -> Any:
    what = f"emitted column {name!r}"
    if isinstance(value, Text) and column.kind != "str":
        raise TypeError(_mismatch(what, str(column), value))
    stored = _STORE[column.kind](value, what)
    if column.bounds is not None and not column.bounds[0] <= stored <= column.bounds[1]:
        raise OverflowError(
            f"{what} is declared {column}, which holds {column.bounds[0]} to {column.bounds[1]}, "
            f"and gets {stored}: test the value before it is emitted"
        )
    return stored


class View:
    """An array field, or a row or slice of one, as operators see it under Python."""

    __slots__ = (
        *("_converted", "_journal", "_load", "_name", "_offset", "_shape", "_storage"),
        *("_strides", "_words"),
    )

    def __init__(
        self,
        name: str,
        storage: Storage,
        words: Any,
        journal: list[tuple[Any, int, Any]],
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
        self._load = _LOAD[storage.number]
        self._converted = _store_of(storage)

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
        return 0.0 if number == "float" else Uint64(0) if number == "uint" else Int64(0)

    def __len__(self) -> int:
        return self._shape[0]

    def _at(self, axis: int, index: Any) -> int:
        length = self._shape[axis]
        if isinstance(index, Text):
            refuse("an index is a string", "hash it, like (x & 65535) % n")
        if isinstance(index, bool) or not isinstance(index, int):
            raise TypeError(f"state.{self._name} is indexed with {index!r}: write int(x)")
        at = index + length if index < 0 and not isinstance(index, Uint64) else int(index)
        if not 0 <= at < length:
            raise IndexError(
                f"index {int(index)} is out of bounds for axis {axis} of state.{self._name}, "
                f"which has length {length}"
            )
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
        if isinstance(value, View):
            # All elements are read before the first is written: windows may overlap.
            elements = [value._load(value._words[at]) for at in value._broadcast(target)]
            for at, element in zip(target._elements(), elements, strict=True):
                self._store(at, element)
        else:
            for at in target._elements():
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
            raise ValueError(
                f"could not broadcast elements of state.{self._name} of shape {self._shape} into "
                f"those of state.{target._name} of shape {target._shape}: the lengths of each axis "
                "must be equal, or 1"
            )
        repeated = tuple(
            stride if length == wanted else 0
            for length, stride, wanted in zip(lengths, strides, target._shape, strict=True)
        )
        return self._view(self._offset, target._shape, repeated)._elements()

    def _store(self, offset: int, value: Any) -> None:
        stored = self._converted(value, f"state.{self._name}")
        self._journal.append((self._words, offset, self._words[offset]))
        self._words[offset] = stored

    def __iter__(self) -> Iterator[Any]:
        for position in range(self._shape[0]):
            yield self[Int64(position)]

    def __contains__(self, element: Any) -> bool:
        return any(own == element for own in self)

    def __bool__(self) -> bool:
        raise TypeError(f"state.{self._name} is an array: test len(x) or an element")


class _ByValue:
    """A tuple in which ``in`` finds what is equal, and not what is the same object: a NaN is in no
    tuple. Compiled code has no objects."""

    def __init__(self, values: tuple[Any, ...]) -> None:
        self._values = values

    def __contains__(self, element: Any) -> bool:
        return any(own == element for own in self._values)


def by_value(container: Any) -> Any:
    """What stands on the right of ``in``."""
    return _ByValue(container) if type(container) is tuple else container


def to_power(left: Any, right: Any) -> Any:
    """What ``left **= right`` makes of a number or of a row or slice."""
    if isinstance(left, View):
        return left._update(numbers.power, right)
    return numbers.power(left, right)


def _sum(values: Any, *start: Any) -> Any:
    total = start[0] if start else getattr(values, "zero", Int64(0))
    for value in values:
        total = total + value
    return total


BUILTINS: dict[str, object] = {**numbers.ORACLE_BUILTINS, "sum": _sum}


class OracleState:
    """The state under Python: scalars as attributes, arrays as :class:`View`."""

    def __init__(
        self,
        layout: Layout,
        elements: dict[tuple[Space, str], Any],
        journal: list[Any],
        operations: Iterable[CompiledOperation],
    ) -> None:
        views: dict[str, Any] = {}
        scalars = {}
        for field in layout.fields:
            if field.space == "locks":
                self.__dict__[field.name] = OracleLocks(field.name, field.size)
                continue
            storage = field.storage
            words = elements[field.space, storage.name]
            if field.shape == ():
                convert = _store_of(storage)
                scalars[field.name] = (words, field.start, _LOAD[storage.number], convert)
                continue
            strides = [1]
            for length in reversed(field.shape[1:]):
                strides.insert(0, strides[0] * length)
            views[field.name] = View(
                field.name, storage, words, journal, field.start, field.shape, tuple(strides)
            )
        declared = [field.name for field, _ in layout.operations]
        for name in dict.fromkeys(declared):
            of_field = [one for at, one in zip(declared, operations, strict=True) if at == name]
            views[name] = OracleBoosted(name, views[name], of_field)
        self.__dict__.update(views)
        self.__dict__["_scalars"] = scalars
        self.__dict__["_journal"] = journal
        self.__dict__["_name"] = layout.name

    def __getattr__(self, name: str) -> Any:
        scalar = self.__dict__["_scalars"].get(name)
        if scalar is None:
            raise AttributeError(f"state {self._name!r} has no field {name!r}")
        words, offset, load, _ = scalar
        return load(words[offset])

    def __setattr__(self, name: str, value: Any) -> None:
        scalar = self.__dict__["_scalars"].get(name)
        if scalar is None:
            known = "is an array and cannot be replaced" if name in self.__dict__ else "is no field"
            raise AttributeError(f"{name!r} of state {self._name!r} {known}")
        words, offset, _, convert = scalar
        stored = convert(value, f"state.{name}")
        self._journal.append((words, offset, words[offset]))
        words[offset] = stored


class OracleBoosted:
    """A boosted field under Python: its operations, and nothing else."""

    def __init__(self, name: str, view: View, operations: Iterable[CompiledOperation]) -> None:
        self._name = name
        for one in operations:
            self.__dict__[one.declared.name] = self._operation(view, one)

    def _operation(self, view: View, one: CompiledOperation) -> Callable[..., Any]:
        kinds = one.declared.kinds
        what = f"state.{self._name}.{one.declared.name}"

        def operation(*values: Any) -> Any:
            if len(values) != len(kinds):
                raise TypeError(f"{what} takes {len(kinds)} number(s) and gets {len(values)}")
            taken = [
                _LOAD[kind](_STORE["uint64" if kind == "uint" else kind](value, what))
                for kind, value in zip(kinds, values, strict=True)
            ]
            return one.oracle(view, *taken)

        return operation

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"state.{self._name} is boosted and has no {name!r}: use its operations"
        )


class OracleLocks:
    """A field of locks under Python: one event at a time needs none."""

    def __init__(self, name: str, count: int) -> None:
        self._name = name
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: Any) -> OracleLocks:
        if isinstance(index, bool) or not isinstance(index, int):
            raise TypeError(f"state.{self._name} is indexed with {index!r}: write int(x)")
        if not -self._count <= index < self._count:
            raise IndexError(
                f"index {int(index)} is out of bounds for the {self._count} locks of "
                f"state.{self._name}"
            )
        return self

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        pass

    acquire = release = __enter__


class OracleEvent:
    """The running event under Python."""

    def __init__(
        self,
        schema: Schema,
        columns: Sequence[npt.NDArray[Any]],
        first_sequence: int,
        seed: int,
        sequences: npt.NDArray[np.int64] | None = None,
    ) -> None:
        self._seed = seed
        self._first_sequence = first_sequence
        self._sequences = None if sequences is None else _words(sequences)
        self._columns = [_words(column) for column in columns]
        self._readers: dict[str, tuple[Any, Callable[[Any], Any]]] = {
            name: (self._columns[number], _load_int) for number, name in enumerate(RESERVED_COLUMNS)
        }
        for number, (name, column) in enumerate(schema, start=len(RESERVED_COLUMNS)):
            reader = _LOAD[column.kind]
            self._readers[name] = (self._columns[number], reader)
        nulls = self._columns[len(RESERVED_COLUMNS) + len(schema) :]
        self._nulls = dict(zip(schema.nullable, nulls, strict=True))
        self._row = 0

    def __getattr__(self, name: str) -> Any:
        if name == "sequence":
            sequences = self._sequences
            if sequences is not None:
                return Int64(sequences[self._row])
            return Int64(self._first_sequence + self._row)
        reader = self.__dict__["_readers"].get(name)
        if reader is None:
            raise AttributeError(
                f"the event has no column {name!r}; it has {', '.join(self._readers)}, sequence"
            )
        column, load = reader
        return load(column[self._row])

    def is_null(self, name: str) -> bool:
        return bool(self._nulls[name][self._row])

    def random_bits(self, draw: int) -> Uint64:
        bits = lib.ss_random_bits(
            self._seed, int(self.timestamp), int(self.source), int(self.sequence), int(draw)
        )
        return int.__new__(Uint64, bits)

    def random(self, draw: int) -> float:
        return (int(self.random_bits(draw)) >> 11) * 2.0**-53


class OracleEmit:
    """Collects rows: the event's row number, the values, and the words of the nulls."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._null_bits = schema.null_bits
        self._null_words = schema.row_words - 1 - len(schema)
        self.rows: list[tuple[Any, ...]] = []
        self.row = 0

    def __call__(self, *values: Any, **named: Any) -> None:
        schema = self._schema
        if named or len(values) != len(schema):
            values = self._completed(values, named)
        nulls = [0] * self._null_words
        if self._null_words:
            for number, (word, bit) in self._null_bits.items():
                if values[number] is None:
                    nulls[word - 1 - len(schema)] |= 1 << bit
        converted = [
            0 if value is None and column.nullable else _emitted(value, column, name)
            for (name, column), value in zip(schema, values, strict=True)
        ]
        self.rows.append((self.row, *converted, *nulls))

    def _completed(self, values: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
        """The values in the order of the columns; a nullable one that is not given is null."""
        schema = self._schema
        given = dict(zip(schema.names, values, strict=False)) | named
        missing = set(schema.names) - set(schema.nullable) - set(given)
        if len(given) != len(values) + len(named) or set(given) - set(schema.names) or missing:
            raise TypeError(f"expected emit({', '.join(schema.names)})")
        return tuple(given.get(name) for name in schema.names)


class Oracle:
    """Runs an operator's oracle over one set of columns.

    Args:
        program: what is run.
        layout: the state's layout.
        words: state words, changed in place (int64, as :meth:`Layout.allocate` makes them).
        overlay: leave ``words`` as they are and keep changes on the side.
    """

    def __init__(
        self,
        program: Program,
        layout: Layout,
        words: npt.NDArray[np.int64],
        overlay: bool = False,
    ) -> None:
        self._function = program.oracle
        self._journal: list[tuple[Any, int, Any]] = []
        scratch = np.zeros(layout.words("scratch"), np.int64)
        self._scratch = scratch
        elements: dict[tuple[Space, str], Any] = {}
        for field in layout.fields:
            if field.space == "locks":
                continue
            of_space = words if field.space == "state" else scratch
            view = _words(of_space.view(field.storage.dtype))
            is_overlaid = overlay and field.space == "state"
            elements.setdefault(
                (field.space, field.storage.name), OverlaidWords(view) if is_overlaid else view
            )
        self._state = OracleState(layout, elements, self._journal, program.operations)

    def begin(
        self,
        event: Schema,
        emits: Schema,
        columns: Sequence[npt.NDArray[Any]],
        first_sequence: int,
        seed: int,
        sequences: npt.NDArray[np.int64] | None = None,
    ) -> None:
        """Sets the columns that :meth:`run` takes its events from.

        Their sequence numbers run on from ``first_sequence``, unless ``sequences`` has them.
        """
        self._event = OracleEvent(event, columns, first_sequence, seed, sequences)
        self._emit = OracleEmit(emits)

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        """Emitted rows so far: (row of the event, value, value ...)."""
        return self._emit.rows

    def run(self, row: int) -> None:
        """Runs one event; one that raises changes nothing and emits nothing."""
        self._journal.clear()
        self._scratch[:] = 0
        self._event._row = self._emit.row = row
        emitted = len(self._emit.rows)
        try:
            self._function(self._state, self._event, self._emit)
        except BaseException:
            for words, offset, value in reversed(self._journal):
                words[offset] = value
            del self._emit.rows[emitted:]
            raise
