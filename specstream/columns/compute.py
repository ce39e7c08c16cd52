"""pyarrow.compute, imported when it is first used: it would be a tenth of ``import specstream``.

And what makes of a column one that its functions take.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pyarrow as pa


def __getattr__(name: str) -> Any:
    return getattr(import_module("pyarrow.compute"), name)


def without_views(column: Any) -> Any:
    """A column whose texts lie one behind the other: Arrow takes nothing out of views.

    Args:
        column: an array or a chunked array, of whatever type; or a table.

    >>> without_views(pa.array(["a"], pa.string_view())).type
    DataType(large_string)
    >>> without_views(pa.array([[b"a"]], pa.list_(pa.binary_view()))).type
    ListType(list<item: large_binary>)
    """
    if isinstance(column, pa.Table):
        fields = [one.with_type(_type_without_views(one.type)) for one in column.schema]
        return column.cast(pa.schema(fields, column.schema.metadata))
    of = _type_without_views(column.type)
    return column if of == column.type else column.cast(of)


def _type_without_views(of: pa.DataType) -> pa.DataType:
    if pa.types.is_string_view(of):
        return pa.large_string()
    if pa.types.is_binary_view(of):
        return pa.large_binary()
    if pa.types.is_dictionary(of):
        return pa.dictionary(of.index_type, _type_without_views(of.value_type), of.ordered)
    if pa.types.is_list(of) or pa.types.is_large_list(of):
        item = of.value_field.with_type(_type_without_views(of.value_type))
        return pa.list_(item) if pa.types.is_list(of) else pa.large_list(item)
    if pa.types.is_struct(of):
        return pa.struct([one.with_type(_type_without_views(one.type)) for one in of])
    return of
