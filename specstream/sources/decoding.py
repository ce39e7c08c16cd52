"""Messages as events: the bytes of each, as JSON or in another format, and where it stood.

A message that is no event must not become one of zeros and nulls. It is an error, which names the
message's place and the column. Or, where an engine sets such rows aside, it is a row in which all
that comes from the message is null, which the engine rejects; beside it are the message's bytes,
``raw``, and what is wrong with them, ``error``. Where ``decode=`` makes several events of a
message, each is a row by itself, beside the columns of the message.

Columns are converted as a whole, and looked through row by row only where that fails.
"""

from __future__ import annotations

import decimal
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from specstream.columns.message_values import Misfit, column_of, expected, float_of, problem
from specstream.declarations.options import function, instance, meant, shown
from specstream.declarations.schema import Column, declared_column
from specstream.errors import ConfigurationError, DeclarationError, InputError
from specstream.sources.source import Wanted

__all__ = ["ERROR", "Decode", "Decoder"]

# A message's bytes as the fields of an event, or of each of several.
Decode = Callable[[bytes], Any]
# What a message calls itself, by its number among others.
Place = Callable[[int], str]
RAW, ERROR = "raw", "error"
_FUNCTION = (
    "a function from a message's bytes to a dict of its fields, or to a list of dicts or of named "
    "tuples, an event each"
)


class Decoder:
    """Makes tables of messages.

    Args:
        wanted: what the engine wants.
        own: columns of a message itself, which are no fields of its content.
        columns: types of fields that the operator does not declare and an option names; they come
            before a message's own.
        decode: makes the fields of a message's bytes, or a list of dicts or named tuples, an event
            each; None: they are a JSON object. One that has ``__specstream_events__``, as formats
            have, is asked for that: dicts with values as JSON has them, where the numbers that it
            gives to operators say no unit.
        adds: names of the columns that say what is wrong with a rejected row.

    Raises:
        ConfigurationError: an option names a column of which nobody says what it is; or rows are
            set aside, and a field has the name of a column that is put beside them.
        DeclarationError: all fields may be null, and a rejected row could not be told from an
            event.
    """

    def __init__(
        self,
        wanted: Wanted,
        own: Sequence[str] = (),
        columns: Mapping[str, Any] | None = None,
        decode: Decode | None = None,
        adds: Sequence[str] = (RAW, ERROR),
    ) -> None:
        self._wanted = wanted
        declared = _declared(columns)
        self._columns = {
            name: column
            for name, column in wanted.columns.items()
            if name not in own or name in declared
        }
        for option, name in wanted.beside.items():
            if name in declared:
                self._columns.setdefault(name, declared[name])
            elif name not in self._columns and name not in own:
                raise ConfigurationError(
                    f"{wanted.what}: {option}={name!r} names a field that the operator does not "
                    f"declare: give the source its type, columns={{{name!r}: int}}, or "
                    "datetime.datetime for times"
                )
        clash = [name for name in adds if name in self._columns]
        if wanted.sets_aside and clash:
            raise ConfigurationError(
                f'{wanted.what}: rejected_rows="side" sets messages aside with a column '
                f"{clash[0]!r} beside their fields, and they have a field of that name: rename it "
                "in the operator and in what is sent"
            )
        needed = [column for column in self._columns.values() if not column.nullable]
        if wanted.sets_aside and self._columns and not needed:
            raise DeclarationError(
                f"{wanted.what} declares only nullable columns ({', '.join(self._columns)}): a "
                "message that cannot be decoded would be an event of nulls; declare one that every "
                "event has without ss.nullable"
            )
        self._is_given = decode is not None
        self._is_exact = any(pa.types.is_decimal(of.arrow) for of in self._columns.values())
        given = self._json if decode is None else function("decode", decode, _FUNCTION)
        self._decode = getattr(given, "__specstream_events__", given)

    def messages(
        self,
        contents: Sequence[bytes | Misfit | None],
        own: Mapping[str, pa.Array],
        place: Place,
    ) -> pa.Table:
        """Messages as a table.

        Args:
            contents: their bytes; None: one has none; or what is wrong with it already.
            own: their own columns.
            place: what a message calls itself.

        Raises:
            InputError: one is no event, and is not to be set aside.
        """
        nothing: list[Mapping[str, Any] | Misfit] = [{}]
        events = [self._fields(one) if self._columns else nothing for one in contents]
        at = [at for at, of_message in enumerate(events) for _ in of_message]
        if any(len(of_message) != 1 for of_message in events):
            contents = [contents[one] for one in at]
            own = {name: array.take(pa.array(at, pa.int64())) for name, array in own.items()}
        found = [event for of_message in events for event in of_message]
        made = self._columns_of(found, lambda row: place(at[row]))
        errors = made.pop(ERROR, None)
        table = {name: array for name, array in own.items() if name not in made} | made
        if errors is not None:
            wrong = errors.is_valid().to_pylist()
            raw = [
                content if is_wrong and isinstance(content, bytes) else None
                for content, is_wrong in zip(contents, wrong, strict=True)
            ]
            table = {RAW: pa.array(raw, pa.binary()), ERROR: errors} | table
        return pa.table(table)

    def rows(self, rows: Sequence[Mapping[str, Any]], place: Place) -> pa.Table:
        """Rows that are dicts already as a table.

        Raises:
            InputError: one is no event, and is not to be set aside.
        """
        return pa.table(self._columns_of(rows, place))

    def _fields(self, content: bytes | Misfit | None) -> Sequence[Mapping[str, Any] | Misfit]:
        """The fields of each event of a message, or what is wrong with it."""
        if isinstance(content, Misfit):
            return [content]
        if content is None:
            return [Misfit("it is empty")]
        try:
            found = self._decode(content)
        except Exception as error:  # of the user's function as well
            return [Misfit(f"it cannot be decoded ({type(error).__name__}: {error})")]
        several = isinstance(found, list) and self._is_given
        return list(map(_event, found if several else [found]))

    def _json(self, content: bytes) -> Any:
        return json.loads(content, parse_float=decimal.Decimal if self._is_exact else float_of)

    def _columns_of(
        self, rows: Sequence[Mapping[str, Any] | Misfit], place: Place
    ) -> dict[str, pa.Array]:
        """The columns of rows; where wrong ones are set aside, with the column of errors."""
        errors: list[str | None] = [None] * len(rows)
        try:
            made = {name: self._column(name, rows) for name in self._columns}
        except Misfit as misfit:
            errors = list(map(self._wrong, rows))
            if not any(errors):  # each by itself fits
                errors[0] = f"{len(rows)} messages do not go together ({misfit})"
            if not self._wanted.sets_aside:
                at = next(at for at, error in enumerate(errors) if error is not None)
                raise InputError(
                    f"{self._wanted.what}: {place(at)}: {errors[at]}: correct who sends it, or "
                    'make the engine with rejected_rows="side", which sets such messages aside'
                ) from None
            kept = [{} if error else row for row, error in zip(rows, errors, strict=True)]
            made = {name: self._column(name, kept, or_null=True) for name in self._columns}
        if self._wanted.sets_aside:
            made[ERROR] = pa.array(errors, pa.string())
        return made

    def _column(
        self, name: str, rows: Sequence[Mapping[str, Any] | Misfit], or_null: bool = False
    ) -> pa.Array:
        """A field of all rows.

        Raises:
            Misfit: one of them has it not, or is none.
        """
        column = self._columns[name]
        try:
            values = [row.get(name) for row in rows]  # type: ignore[union-attr]
        except AttributeError:
            raise Misfit("one of them is no row") from None
        made = column_of(self._numbers(values, column), column)
        if made.null_count and not column.nullable and not or_null:
            raise Misfit("a null")
        return made

    def _numbers(self, values: list[Any], column: Column) -> list[Any]:
        if not self._is_exact or column.kind != "float":
            return values
        return [float_of(one) if isinstance(one, decimal.Decimal) else one for one in values]

    def _wrong(self, row: Mapping[str, Any] | Misfit) -> str | None:
        """What is wrong with a row; None: nothing."""
        if isinstance(row, Misfit):
            return str(row)
        for name, column in self._columns.items():
            value = row.get(name)
            if value is None and column.nullable:
                continue
            if value is None:
                has = f"it has {_names(row)}){_meant(name, row)}"
                what = "is null" if name in row else f"is missing ({has}"
                return f"column {name!r} {what}; expected {expected(column)}"
            (value,) = self._numbers([value], column)
            wrong = problem(value, column)
            if wrong is not None:
                return f"column {name!r} {wrong}"
        return None


def _event(found: Any) -> Mapping[str, Any] | Misfit:
    """The fields of an event: those of a dict or a named tuple."""
    if isinstance(found, tuple) and hasattr(found, "_fields"):
        found = dict(zip(found._fields, found, strict=True))
    if not isinstance(found, Mapping):
        return Misfit(f"it is {shown(found)}; expected an object with the columns as fields")
    return found


def _declared(columns: object) -> dict[str, Column]:
    if columns is None:
        return {}
    given = instance("columns", columns, Mapping, 'types by field: columns={"time": int}')
    return {name: declared_column(of, f"columns= field {name!r}") for name, of in given.items()}


def _meant(name: str, row: Mapping[str, Any]) -> str:
    return meant(name, [one for one in row if isinstance(one, str)])


def _names(row: Mapping[str, Any]) -> str:
    return ", ".join(map(str, row)) or "no fields"
