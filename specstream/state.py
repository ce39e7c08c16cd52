"""The state of an operator: named arrays and scalars, packed into one row of 64-bit words."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from specstream.errors import DeclarationError
from specstream.schema import Kind, kind_of

__all__ = ["Field", "Layout", "State", "StateView", "array", "scalar", "scratch"]

Space = Literal["state", "scratch"]
DTYPES: dict[Kind, np.dtype[Any]] = {
    "int": np.dtype(np.int64),
    "float": np.dtype(np.float64),
    "bool": np.dtype(np.int64),
}


@dataclass(frozen=True)
class Declaration:
    """What :func:`array`, :func:`scalar` and :func:`scratch` return: a field without a name yet."""

    dtype: type
    shape: tuple[int, ...]
    fill: int | float | bool
    space: Space


@dataclass(frozen=True)
class Field:
    """One field of a layout.

    Attributes:
        name: as declared in the state class.
        kind: "int" (int64), "float" (float64) or "bool"; each element takes one word of 8 bytes.
        shape: empty for a scalar.
        fill: every element at the start.
        space: "state", or "scratch" for memory private to the running event.
        offset: first word, within its space.
    """

    name: str
    kind: Kind
    shape: tuple[int, ...]
    fill: int | float | bool
    space: Space
    offset: int

    @property
    def size(self) -> int:
        """Number of elements, hence of words."""
        return math.prod(self.shape)


class State:
    """Base of a state declaration: a class whose attributes are fields.

    >>> import specstream as ss
    >>> class Totals(ss.State):
    ...     seen = ss.scalar(int)
    ...     sums = ss.array(float, (10, 2))
    ...     local = ss.scratch(int, 5)
    >>> [(field.name, field.shape) for field in Totals.layout().fields]
    [('seen', ()), ('sums', (10, 2)), ('local', (5,))]
    """

    @classmethod
    def layout(cls) -> Layout:
        """The fields, packed in the order of their declaration, base classes first."""
        declared: dict[str, Declaration] = {}
        for base in reversed(cls.__mro__):
            for name, value in vars(base).items():
                if isinstance(value, Declaration):
                    declared[name] = value
                elif base not in (State, object) and not name.startswith("__"):
                    raise DeclarationError(
                        f"state {cls.__name__!r} has attribute {name!r}, which is no field; "
                        "expected ss.array(...), ss.scalar(...) or ss.scratch(...): constants "
                        "belong into the operator's module or closure"
                    )
        return Layout.pack(cls.__name__, declared)


@dataclass(frozen=True)
class Layout:
    """Where each field lies. Laid out once."""

    name: str
    fields: tuple[Field, ...]

    @classmethod
    def pack(cls, name: str, declared: dict[str, Declaration]) -> Layout:
        """Fields one after the other, each space for itself, without gaps."""
        fields = []
        used = {"state": 0, "scratch": 0}
        for field_name, declaration in declared.items():
            what = f"state {name!r}, field {field_name!r}"
            kind = kind_of(declaration.dtype, what, ("int", "float", "bool"))
            field = Field(
                field_name,
                kind,
                _shape(declaration.shape, what),
                _fill(declaration.fill, kind, what),
                declaration.space,
                used[declaration.space],
            )
            used[declaration.space] += field.size
            fields.append(field)
        if used["state"] == 0:
            raise DeclarationError(
                f"state {name!r} declares no state field; expected at least one ss.array(...) or "
                "ss.scalar(...)"
            )
        return cls(name, tuple(fields))

    def words(self, space: Space) -> int:
        """Number of words of a space."""
        return sum(field.size for field in self.fields if field.space == space)

    def field(self, name: str) -> Field | None:
        """The field of that name, if there is one."""
        return next((field for field in self.fields if field.name == name), None)

    def allocate(self) -> npt.NDArray[np.int64]:
        """New state words, filled as declared; aligned to a cache line of 64 bytes.

        The system gives memory to what is zero only where it is touched, so that a large state
        takes no time to make and no more memory than its events use.
        """
        words = self.words("state")
        raw = np.zeros(words + 8, np.int64)
        start = (-(raw.ctypes.data // 8)) % 8
        memory = raw[start : start + words]
        for field in self.fields:
            elements = self.elements(memory, field) if field.space == "state" else None
            # By its bits: -0.0 is a zero, too.
            if elements is not None and any(np.array(field.fill, elements.dtype).tobytes()):
                elements[...] = field.fill
        return memory

    def elements(self, memory: npt.NDArray[np.int64], field: Field) -> npt.NDArray[Any]:
        """The field's elements as an array over ``memory``; a bool field shows its words."""
        words = memory[field.offset : field.offset + field.size]
        return words.view(DTYPES[field.kind]).reshape(field.shape)

    def describe(self) -> list[dict[str, object]]:
        """The layout as plain data, as a snapshot stores it."""
        return [
            {"name": field.name, "kind": field.kind, "shape": list(field.shape)}
            for field in self.fields
            if field.space == "state"
        ]

    @classmethod
    def described(cls, name: str, description: Sequence[Mapping[str, Any]]) -> Layout:
        """The layout that :meth:`describe` has described, without scratch and with zero fills."""
        types = {"int": int, "float": float, "bool": bool}
        return cls.pack(
            name,
            {
                field["name"]: Declaration(types[field["kind"]], tuple(field["shape"]), 0, "state")
                for field in description
            },
        )


class StateView:
    """Committed state, by field name: scalars as Python numbers, arrays as read-only NumPy arrays.

    The arrays keep their memory alive, also after the engine was closed. ``kind`` "bool" comes as
    a NumPy array of bool, which is a copy.
    """

    def __init__(self, layout: Layout, memory: npt.NDArray[np.int64]) -> None:
        self._layout = layout
        self._memory = memory

    def __getattr__(self, name: str) -> Any:
        field = None if name.startswith("_") else self._layout.field(name)
        if field is None or field.space == "scratch":
            raise AttributeError(
                f"state {self._layout.name!r} has no field {name!r}; it has: {', '.join(dir(self))}"
            )
        elements = self._layout.elements(self._memory, field)
        if field.kind == "bool":
            elements = elements != 0
        if field.shape == ():
            return elements.item()
        elements = elements.view()
        elements.flags.writeable = False
        return elements

    def __dir__(self) -> list[str]:
        return [field.name for field in self._layout.fields if field.space == "state"]

    def __repr__(self) -> str:
        return f"StateView({self._layout.name}: {', '.join(dir(self))})"

    def to_dict(self) -> dict[str, Any]:
        """All fields, copied."""
        return {name: np.copy(getattr(self, name)) for name in dir(self)}


def array(dtype: type, shape: int | Sequence[int], fill: int | float | bool = 0) -> Any:
    """An array field; ``dtype`` is ``int`` (int64), ``float`` (float64) or ``bool``.

    Args:
        dtype: element type; each element takes 8 bytes.
        shape: one length, or a tuple of any rank.
        fill: value of every element at the start.
    """
    lengths = (shape,) if isinstance(shape, int) else tuple(shape)
    return Declaration(dtype, lengths, fill, "state")


def scalar(dtype: type, fill: int | float | bool = 0) -> Any:
    """A scalar field, read and written as ``state.name``."""
    return Declaration(dtype, (), fill, "state")


def scratch(dtype: type, shape: int | Sequence[int]) -> Any:
    """An array private to the running event: zero at its start, never logged, in no snapshot."""
    lengths = (shape,) if isinstance(shape, int) else tuple(shape)
    return Declaration(dtype, lengths, 0, "scratch")


def _shape(shape: tuple[int, ...], what: str) -> tuple[int, ...]:
    for length in shape:
        if not isinstance(length, int) or isinstance(length, bool) or length < 1:
            raise DeclarationError(f"{what} has shape {shape}; expected lengths of at least 1")
    if math.prod(shape) >= 2**32:
        raise DeclarationError(f"{what} has shape {shape}; a state holds less than 2**32 elements")
    return shape


def _fill(fill: object, kind: Kind, what: str) -> int | float | bool:
    accepted = {"int": (int,), "float": (int, float), "bool": (bool,)}[kind]
    if kind == "bool" and type(fill) is int and fill in (0, 1):
        fill = bool(fill)
    if not isinstance(fill, accepted) or (isinstance(fill, bool) and kind != "bool"):
        raise DeclarationError(f"{what} has fill {fill!r}; expected a value of type {kind}")
    value = fill
    if kind == "int":
        try:
            struct.pack("q", value)
        except struct.error:
            raise DeclarationError(f"{what} has fill {fill!r}, outside of int64") from None
    return value
