"""One schema for tables whose columns have changed in between: what is new is in it, and each type
holds all values as they are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from specstream.errors import SpecstreamError

__all__ = ["joined_schema", "joined_tables"]


def joined_schema(
    schemas: Iterable[tuple[str, pa.Schema]], what: str, error: type[SpecstreamError]
) -> pa.Schema:
    """The columns of all of them, in the order in which they come first.

    Args:
        schemas: with the name of what each is of.
        what: what they are read for, in errors.
        error: raised where no type holds the values of two of them.

    Raises:
        error: names the column and both.

    >>> one, other = pa.schema({"a": pa.int32()}), pa.schema({"a": pa.int64(), "b": pa.string()})
    >>> joined_schema([("0", one), ("1", other)], "it", SpecstreamError)
    a: int64
    b: string
    >>> wrong = pa.schema({"b": pa.float32()})
    >>> joined_schema([("1", other), ("2", wrong)], "it", SpecstreamError)
    Traceback (most recent call last):
    specstream.errors.SpecstreamError: it: column 'b' is string in 1 and float in 2, and no type
    holds both as they are: cast one of them, or read them apart
    """
    fields: dict[str, pa.Field] = {}
    found_in: dict[str, str] = {}
    metadata = None
    for number, (where, schema) in enumerate(schemas):
        metadata = schema.metadata if not number else metadata
        for field in schema:
            name, known = field.name, fields.get(field.name)
            if known is None or known.type == field.type:
                fields.setdefault(name, field)
                found_in.setdefault(name, where)
                continue
            of = _joined(known.type, field.type)
            if of is None:
                raise error(
                    f"{what}: column {name!r} is {known.type} in {found_in[name]} and {field.type} "
                    f"in {where}, and no type holds both as they are: cast one of them, or read "
                    "them apart"
                )
            if of != known.type:
                fields[name], found_in[name] = known.with_type(of), where
    return pa.schema(fields.values(), metadata)


def _joined(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """A type that holds the values of both, or whose cast finds those that it does not hold."""
    if pa.types.is_timestamp(one) and pa.types.is_timestamp(other) and one.tz and other.tz:
        other = pa.timestamp(other.unit, one.tz)  # the instants are the same
    # Two dictionaries may not go into one.
    one, other = (of.value_type if pa.types.is_dictionary(of) else of for of in (one, other))
    pair = [pa.schema({"x": of}) for of in (one, other)]
    try:
        found = pa.unify_schemas(pair, promote_options="permissive").field(0).type
    except pa.ArrowException:
        return None
    # Arrow would round decimals to floats, and take texts for bytes.
    is_text = pa.types.is_string(found) or pa.types.is_large_string(found)
    if pa.types.is_floating(found) and any(map(pa.types.is_decimal, (one, other))):
        return None
    was_text = any(pa.types.is_string(of) or pa.types.is_large_string(of) for of in (one, other))
    return None if was_text and not is_text else found


def joined_tables(tables: Sequence[pa.Table], what: str, error: type[SpecstreamError]) -> pa.Table:
    """The rows of tables, one after the other; what a table has not is null in its rows.

    Raises:
        error: no type holds the values of a column.

    >>> joined_tables([pa.table({"a": [1]}), pa.table({"b": ["x"]})], "it", ValueError).to_pydict()
    {'a': [1, None], 'b': [None, 'x']}
    """
    if len(tables) == 1:
        return tables[0]
    schema = joined_schema(
        ((f"table {number}", table.schema) for number, table in enumerate(tables)), what, error
    )
    try:
        parts = [_with(schema, table) for table in tables]
        return pa.concat_tables(parts)
    except pa.ArrowException as problem:
        raise error(
            f"{what}: the tables do not go together ({problem}): read them apart"
        ) from problem


def _with(schema: pa.Schema, table: pa.Table) -> pa.Table:
    if table.schema.equals(schema):
        return table
    columns = [
        table[field.name].cast(field.type)
        if field.name in table.column_names
        else pa.nulls(table.num_rows, field.type)
        for field in schema
    ]
    return pa.table(columns, schema)
