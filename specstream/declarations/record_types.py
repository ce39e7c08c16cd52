"""Columns declared by what describes a record already: a dataclass, a schema of another library.

Each becomes ``{name: type}``, whose types :mod:`specstream.declarations.schema` reads: Python's, as
they are annotated, or Arrow's. Spark's types are told by their names, so that PySpark is not
imported.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from specstream.declarations.options import shown
from specstream.errors import DeclarationError

__all__ = ["Record", "columns_declared"]

# Whatever columns_declared takes: no type of Python's says "a TypedDict" or "a dataclass".
Record = Any

_OF_SPARK = {
    "tinyint": pa.int8(),
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "string": pa.string(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}


def columns_declared(declared: Record, what: str) -> Mapping[Any, Any]:
    """Column names and their types, in order.

    Args:
        declared: a mapping of name to type; a dataclass, TypedDict or NamedTuple class; a
            ``pyarrow.Schema``; Spark's ``StructType``.
        what: it is called in errors: "event" or "emits".

    Raises:
        DeclarationError: it is none of these; or names the field whose type cannot be read.

    >>> @dataclasses.dataclass
    ... class Trade:
    ...     symbol: str
    ...     price: float | None
    >>> columns_declared(Trade, "event")
    {'symbol': <class 'str'>, 'price': float | None}
    """
    if isinstance(declared, Mapping):
        return declared
    if isinstance(declared, pa.Schema):
        twice = [name for name in declared.names if declared.names.count(name) > 1]
        if twice:
            raise DeclarationError(
                f"{what}= is a schema with two fields {twice[0]!r}; expected each name once: "
                "rename one"
            )
        return {field.name: field for field in declared}
    if isinstance(declared, type):
        if dataclasses.is_dataclass(declared):
            return _annotated(declared, [one.name for one in dataclasses.fields(declared)], what)
        if typing.is_typeddict(declared):
            return _annotated(declared, list(declared.__annotations__), what)
        if issubclass(declared, tuple) and hasattr(declared, "_fields"):
            return _annotated(declared, list(declared._fields), what)
    if _is_spark(declared, "StructType"):
        return {field.name: _of_spark(field, what) for field in declared.fields}
    raise DeclarationError(
        f"{what}= is {_named(declared)}; expected a dict of column name to type, like "
        "{'item': int}, or a class or schema that names its columns: a dataclass, TypedDict or "
        "NamedTuple class, a pyarrow.Schema, Spark's StructType"
    )


def _named(declared: object) -> str:
    if isinstance(declared, type):
        return f"the class {declared.__name__}, which is none that declares columns"
    if dataclasses.is_dataclass(declared):
        return f"an object of the dataclass {type(declared).__name__}, not the class"
    return type(declared).__name__


def _annotated(declared: type, names: list[str], what: str) -> dict[str, Any]:
    """The annotations of a class, those that are texts evaluated."""
    try:
        hints = typing.get_type_hints(declared, include_extras=True)
    except Exception as error:
        raise DeclarationError(
            f"{what}={declared.__name__}: {_wrong_field(declared, what, error)}"
        ) from None
    found = {}
    for name in names:
        if name not in hints:
            raise DeclarationError(
                f"{what}={declared.__name__}: field {name!r} has no annotation: give it one, like "
                f"{name}: float"
            )
        hint = hints[name]
        # A key that a row need not have is a null where it has not. Python knows of it only where
        # annotations are no texts.
        may_lack = name in getattr(declared, "__optional_keys__", ())
        while typing.get_origin(hint) in (typing.Required, typing.NotRequired):
            may_lack = typing.get_origin(hint) is typing.NotRequired
            hint = typing.get_args(hint)[0]
        found[name] = typing.Union[hint, None] if may_lack else hint  # noqa: UP007
    return found


def _wrong_field(declared: type, what: str, error: Exception) -> str:
    """Which field's annotation cannot be read, and why."""
    for base in declared.__mro__:
        for name, hint in vars(base).get("__annotations__", {}).items():
            alone = type(
                "Alone", (), {"__annotations__": {name: hint}, "__module__": base.__module__}
            )
            try:
                typing.get_type_hints(alone, include_extras=True)
            except Exception as own:
                text = getattr(hint, "__forward_arg__", hint)
                return (
                    f"the annotation of field {name!r}, {shown(text)}, cannot be read ({own}): "
                    "types must be known where the module is; a column's type goes into an "
                    'Annotated, like Annotated[int, ss.timestamp("ms")]'
                )
    return f"the annotations cannot be read ({error}): declare the columns as a dict"


def _is_spark(value: object, name: str) -> bool:
    return any(
        base.__name__ == name and base.__module__ == "pyspark.sql.types"
        for base in type(value).__mro__
    )


def _of_spark(field: Any, what: str) -> pa.Field:
    """Spark's field as Arrow's."""
    of = field.dataType
    found = _OF_SPARK.get(of.typeName())
    if found is None and of.typeName() == "decimal":
        found = pa.decimal128(of.precision, of.scale)
    if found is None:
        raise DeclarationError(
            f"{what} column {field.name!r} has Spark's type {of.simpleString()}; expected numbers, "
            "strings, booleans, dates, timestamps or decimals: select or cast what the operator "
            "needs"
        )
    return pa.field(field.name, found, field.nullable)
