"""Columns of single events: their values are fitted and put in one by one, without a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from specstream.columns.derived import derived_columns
from specstream.columns.events import Events, called, read_value
from specstream.columns.lists import Addresses
from specstream.columns.rejected_rows import RowError
from specstream.columns.strings import StringTable
from specstream.columns.unentered import number_of
from specstream.declarations.options import meant
from specstream.declarations.schema import Column, OneOf, Schema
from specstream.engine.pending_segments import PendingSegments
from specstream.engine.segments import Block, SingleEvent, TextsOfOne
from specstream.engine.sources import Name, Source
from specstream.errors import InputError

__all__ = ["EventColumns", "array_of_one"]


class EventColumns:
    """Those of one engine.

    Args:
        schema: of the events.
        strings: the engine's table.
        what: names the operator in messages.
    """

    def __init__(self, schema: Schema, strings: StringTable, what: str) -> None:
        self._schema = schema
        # What is asked of each column for each event.
        self._columns = tuple(
            (name, column, column.kind if column.is_plain else None) for name, column in schema
        )
        # Strings that are not entered: the number of the column, and the literals that it meets.
        self._literals = dict(schema.unentered)
        self._unentered = [
            (number, name, self._literals[name])
            for number, name in enumerate(schema.names)
            if name in self._literals
        ]
        self._strings = strings
        self._what = what
        self._block: Block | None = None

    def append(
        self,
        segments: PendingSegments,
        time_type: pa.DataType,
        timestamp: Any,
        source: Source,
        key: int,
        fitting: list[Any],
    ) -> SingleEvent:
        """Puts an event into the columns, and behind the segments.

        Args:
            segments: all that have come.
            time_type: of the events' times.
            timestamp: as it was given.
            source: of the event.
            key: the timestamp as it is kept.
            fitting: what :meth:`fitting` gave.
        """
        block = self._block
        if block is None or not block.follows(segments.rows, time_type):
            block = self._block = Block(self._schema, segments.rows, time_type)
        row = block.used
        texts = {}
        if self._unentered:
            fitting = list(fitting)
            for number, name, literals in self._unentered:
                texts[name] = fitting[number]
                fitting[number] = number_of(texts[name], literals)
        for column, value in zip(block.columns, (key, source.code, *fitting), strict=False):
            column[row] = value
        if self._schema.derived:
            declared = 2 + len(fitting)
            own = [column[row : row + 1] for column in block.columns]
            derived = derived_columns(
                self._schema, own[:declared], self._strings, TextsOfOne(texts)
            )
            for column, array in zip(own[declared:], derived, strict=True):
                column[:] = array
                if isinstance(array, Addresses):
                    block.held.append(array)
        block.given.append(timestamp)
        block.texts.append(texts)
        block.used += 1
        native = segments.native(block.pointers, source, 1)
        segment = SingleEvent(segments.rows, source, native, block, row)
        segments.append(segment, 1, key, key)
        return segment

    def leave_block(self) -> None:
        """The next event begins columns of its own, as these may hold one that was taken back."""
        self._block = None

    def fitting(self, values: Mapping[str, Any]) -> list[Any]:
        """An event's values in the order of the schema, as its columns hold them.

        Raises:
            InputError: values are missing, or are of no column.
            RowError: a value does not fit.
        """
        fitting: list[Any] = []
        nulls = []
        for name, column, kind in self._columns:
            if name not in values:
                has = f"; it has {', '.join(values) or 'none'}{meant(name, values)}"
                raise InputError(
                    f"{self._what}: the event has no value for column {name!r}"
                    f"{has if self._schema.one_of is None else ''}"
                )
            value, null = self._fit(name, column, kind, values[name])
            fitting.append(value)
            if column.nullable:
                nulls.append(null)
        if len(values) > len(fitting):
            self._check_known(values)
        if self._schema.one_of is not None:
            self._check_required(self._schema.one_of, values, nulls)
        return fitting + nulls

    def revised(
        self, events: Events, values: Mapping[str, Any], reads: Iterable[str]
    ) -> list[Any] | None:
        """The values of a single event with some of them changed, as :meth:`fitting` gives them;
        None: it has them already, in all columns that the operator ``reads``.

        Raises:
            InputError: a value does not fit.
        """
        names = list(self._schema.names)
        nullable = list(self._schema.nullable)
        own: list[Any] = [
            events.texts[name][0] if name in events.texts else column[0]
            for name, column in zip(names, events.columns[2:], strict=False)
        ]
        nulls: list[Any] = [
            column[0] for column in events.columns[2 + len(names) :][: len(nullable)]
        ]
        self._check_known(values)
        for number, (name, column, kind) in enumerate(self._columns):
            if name in values:
                own[number], null = self._fit(name, column, kind, values[name])
                if column.nullable:
                    nulls[nullable.index(name)] = null
        fitting = [*own, *nulls]
        read = set(reads)
        texts = [events.texts.get(name) for name in names] + [None] * len(nullable)
        asked = [name in read for name in (*names, *nullable)]
        is_same = all(
            np.asarray(value, column.dtype).tobytes() == column[:1].tobytes()
            if text is None
            else value == text[0]
            for value, column, text, is_read in zip(
                fitting, events.columns[2:], texts, asked, strict=False
            )
            if is_read
        )
        return None if is_same else fitting

    def _fit(self, name: str, column: Column, kind: str | None, value: Any) -> tuple[Any, bool]:
        """A value as its column holds it, and whether it is null; of a column that is not entered
        the text, and None where it is null."""
        if name in self._literals:
            return self._fit_text(name, column, value)
        if kind == "str" and type(value) is str:
            return self._strings.add(value), False
        if (
            (kind == "int" and type(value) is int and -(2**63) <= value < 2**63)
            or (kind == "float" and type(value) is float)
            or (kind == "bool" and type(value) is bool)
        ):
            return value, False  # the common cases, which need no conversion
        of = self._schema.one_of
        value, null = read_value(value, name, column, self._strings, self._what, of)
        return value, bool(null)

    def _fit_text(self, name: str, column: Column, value: Any) -> tuple[str | None, bool]:
        """The same for a column that is not entered."""
        if type(value) is str and value.isascii():
            return value, False
        strings = StringTable()  # that takes what the engine's would, or refuses it
        if type(value) is str:
            strings.add(value)
            return value, False
        of = self._schema.one_of
        code, null = read_value(value, name, column, strings, self._what, of)
        return None if null else strings.text(code), bool(null)

    def _check_known(self, values: Mapping[str, Any]) -> None:
        """Whether the operator declares all columns that an event has values for."""
        for unknown in values:
            if unknown in self._schema.names:
                continue
            whose, shown = called(self._what, unknown, self._schema.one_of)
            whole = [called("", name, self._schema.one_of) for name in self._schema.names]
            known = [name for of, name in whole if self._what + of == whose]
            raise InputError(
                f"{whose}: the event has a value for {shown!r}, which the operator does not "
                f"declare; it declares {', '.join(known)}{meant(shown, known)}"
            )

    def _check_required(self, of: OneOf, values: Mapping[str, Any], nulls: list[bool]) -> None:
        """Whether an event of one of several kinds has what that requires."""
        null = dict(zip(self._schema.nullable, nulls, strict=True))
        for name in dict(of.required).get(values[of.tag], ()):
            if null[name]:
                whose, shown = called(self._what, name, of)
                raise RowError(
                    f"{whose}: column {shown!r} gets None: give it a value, declare the column "
                    'ss.nullable(...), or use rejected_rows="side"',
                    np.ones(1, np.bool_),
                    f"column {name!r} is null",
                )

    def as_table(
        self,
        timestamp: Any,
        source: Name,
        values: Mapping[str, Any],
        time_type: pa.DataType | None,
    ) -> pa.Table:
        """A single event that is put aside, as it was given."""
        columns = dict(self._schema)
        return pa.table(
            {
                "timestamp": array_of_one(timestamp, time_type),
                "source": array_of_one(source),
                **{
                    name: array_of_one(value, columns[name].arrow) for name, value in values.items()
                },
            }
        )


def array_of_one(value: Any, arrow_type: pa.DataType | None = None) -> pa.Array:
    """A value as an array: of the type if it can be, else of its own, else as text."""
    for type_ in (arrow_type, None):
        try:
            return pa.array([value], type_)
        except (pa.ArrowException, OverflowError, TypeError, ValueError):
            pass
    return pa.array([repr(value)])
