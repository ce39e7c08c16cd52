"""The columns of events and of emitted rows.

A column is declared by a Python type: ``int`` (int64), ``float`` (float64), ``bool`` or ``str``.
Inside an operator a string is the int64 code of its content (see :mod:`specstream.strings`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from specstream.errors import DeclarationError

__all__ = ["Kind", "Schema", "kind_of"]

Kind = Literal["int", "float", "bool", "str"]

_KINDS: dict[object, Kind] = {int: "int", float: "float", bool: "bool", str: "str"}
_ARROW = {"int": pa.int64(), "float": pa.float64(), "bool": pa.bool_(), "str": pa.string()}
_EVENT_ATTRIBUTES = ("timestamp", "source", "sequence", "random", "random_bits", "is_null")


def kind_of(declared: object, what: str, allowed: tuple[Kind, ...]) -> Kind:
    """The kind that a declared Python type stands for.

    Raises:
        DeclarationError: it stands for none of ``allowed``.
    """
    kind = _KINDS.get(declared) if isinstance(declared, type) else None
    if kind is None or kind not in allowed:
        found = declared.__name__ if isinstance(declared, type) else repr(declared)
        raise DeclarationError(f"{what} has type {found}; expected one of {', '.join(allowed)}")
    return kind


@dataclass(frozen=True)
class Schema:
    """Names and kinds of columns, in order.

    >>> Schema.of({"item": int, "price": float}, "event").names
    ('item', 'price')
    """

    names: tuple[str, ...]
    kinds: tuple[Kind, ...]

    @classmethod
    def of(cls, declared: Mapping[str, type], what: str) -> Schema:
        """A schema from ``{name: type}``; ``what`` names it in errors ("event", "emits")."""
        if not isinstance(declared, Mapping):
            raise DeclarationError(
                f"{what}= is {type(declared).__name__}; expected a dict of column name to type, "
                "like {'item': int}"
            )
        kinds = []
        for name, kind in declared.items():
            if not isinstance(name, str) or not name.isidentifier():
                raise DeclarationError(
                    f"{what}= has column name {name!r}; expected a Python identifier, because the "
                    f"operator reads it as an attribute: rename the column"
                )
            if what == "event" and name in _EVENT_ATTRIBUTES:
                raise DeclarationError(
                    f"event= has a column {name!r}, which every event has already "
                    f"({', '.join(_EVENT_ATTRIBUTES)}): rename the column"
                )
            allowed: tuple[Kind, ...] = ("int", "float", "bool", "str")
            kinds.append(kind_of(kind, f"{what} column {name!r}", allowed))
        return cls(tuple(declared), tuple(kinds))

    def __iter__(self) -> Iterator[tuple[str, Kind]]:
        return iter(zip(self.names, self.kinds, strict=True))

    def __len__(self) -> int:
        return len(self.names)

    def kind(self, name: str) -> Kind | None:
        """Kind of a column, or None where there is no such column."""
        return self.kinds[self.names.index(name)] if name in self.names else None

    def arrow(self) -> pa.Schema:
        """The same columns as an Arrow schema."""
        return pa.schema([pa.field(name, _ARROW[kind]) for name, kind in self])
