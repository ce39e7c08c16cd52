"""Values that a user gives for the fields of a state, as what the state holds.

They come from ``initial=``, and from the function of ``migrate=``. Nothing is guessed: a value that
its field could hold only rounded, cut or turned into another type is refused. Floats alone are
rounded to their field's type, as they are where an operator stores them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, KeysView, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from specstream.columns.strings import StringTable
from specstream.columns.tables import as_table, one_array
from specstream.declarations.codes import EMPTY
from specstream.declarations.container_views import StateSet
from specstream.declarations.containers import Container, Shape
from specstream.declarations.element_types import Storage
from specstream.declarations.options import shown, whole
from specstream.declarations.ordered_set import OrderedSet
from specstream.declarations.plain_values import plain, plain_elements
from specstream.declarations.records import Record, record_fields
from specstream.declarations.state_content import StateContent, first_repeated
from specstream.declarations.state_layout import Field, Layout
from specstream.declarations.state_view import column_names
from specstream.errors import ConfigurationError, InputError, SpecstreamError

__all__ = ["FieldValues", "initial_state"]

Words = npt.NDArray[np.int64]

_ACCEPTED = {"int": "iu", "uint": "iu", "float": "iuf", "bool": "b"}
_WRITE = {
    "int": "round it, and keep it within the type's range",
    "uint": "round it, and keep it within the type's range",
    "float": "cast it with .astype(np.float64)",
    "bool": "compare it, so that it becomes a bool",
}
# Every integer up to here is a float32.
_SMALL = 2**24


def initial_state(layout: Layout, strings: StringTable, initial: object, what: str) -> StateContent:
    """The state that ``initial=`` describes.

    Args:
        layout: of the state.
        strings: of who has it; what comes new is added.
        initial: as :class:`specstream.Engine` takes it.
        what: whom it was given to, in errors.

    Raises:
        ConfigurationError: it is no mapping, a value does not fit its field, or a field is not
            declared; names it.
    """
    if not isinstance(initial, Mapping):
        raise ConfigurationError(
            f"{what}: initial={shown(initial)}; expected a dict from field names to their values"
        )
    return FieldValues(layout, strings, f"{what}: initial= has", ConfigurationError).content(
        initial
    )


class FieldValues:
    """Makes what a state holds of values by field name.

    Args:
        layout: of the state.
        strings: the codes of all strings; what comes new is added.
        giver: who gives the values, as errors begin: "engine of 'count': initial= has".
        error: raised where a value does not fit; it says what and the way out.
        codes: fields of strings may get codes, which an int field of a snapshot has held.
    """

    def __init__(
        self,
        layout: Layout,
        strings: StringTable,
        giver: str,
        error: type[SpecstreamError],
        codes: bool = False,
    ) -> None:
        self._layout, self._strings = layout, strings
        self._giver, self._error, self._takes_codes = giver, error, codes

    def content(self, values: Mapping[Any, Any]) -> StateContent:
        """The state with these values; fields that are not among them have their fill.

        Raises:
            error: a value does not fit its field, or a field is not declared; names it.
        """
        new = StateContent.new(self._layout)
        rows = {
            field.name: one for field, one in zip(self._layout.containers, new.rows, strict=True)
        }
        for name, value in values.items():
            field = self._layout.field(name) if isinstance(name, str) else None
            if field is None or field.space != "state":
                names = ", ".join(one.name for one in self._layout.fields if one.space == "state")
                raise self._wrong(
                    f"a field {shown(name)}, which the operator does not declare (it declares "
                    f"{names}): expected one of these; leave it out, or declare it"
                )
            try:
                self._put(value, field, new, rows)
            except SpecstreamError:
                raise
            except (pa.ArrowException, ValueError, KeyError, OverflowError) as error:
                raise self._wrong(
                    f"what Arrow cannot read for field {field.name!r} ({error}): give plain values"
                ) from error
        return StateContent(self._layout, new.fixed, tuple(rows.values()))

    def _put(self, value: Any, field: Field, new: StateContent, rows: dict[str, Words]) -> None:
        if field.container is not None:
            rows[field.name] = self._rows(value, field, field.container)
        elif field.record is not None:
            new.elements(field)[...] = self._records(value, field, field.record)
        elif field.kind == "str":
            new.elements(field)[...] = self._codes(value, field)
        else:
            self._store(value, new.elements(field), field)

    def _wrong(self, what: str) -> SpecstreamError:
        return self._error(f"{self._giver} {what}")

    # ---- scalars and arrays ----

    def _codes(self, value: Any, field: Field) -> Words:
        """What a field of strings holds: of strings, or of codes that an int field has held."""
        given = np.asarray(_in_one(value), object)
        self._check_shape(given, field)
        codes = np.empty(given.shape, np.int64)
        for place, one in np.ndenumerate(given):
            code = whole(one) if self._takes_codes else None
            if isinstance(one, str):
                codes[place] = self._code(plain(one), field)
            elif code is not None and (code == 0 or self._strings.text(code) is not None):
                codes[place] = code
            else:
                more = ", or the code of a string that the snapshot has" * self._takes_codes
                raise self._wrong(
                    f"{shown(one)} for field {field.name!r}, which holds strings: give a str{more}"
                )
        codes[codes == EMPTY] = 0
        return codes

    def _code(self, text: str, field: Field) -> int:
        try:
            return self._strings.add(text) if text else 0
        except InputError as error:
            raise self._wrong(f"in field {field.name!r} a {error}") from None

    def _check_shape(self, given: npt.NDArray[Any], field: Field) -> None:
        if given.shape != field.shape:
            raise self._wrong(
                f"shape {given.shape} for field {field.name!r}, which is declared with shape "
                f"{field.shape}: bring it into that shape"
            )

    def _store(self, value: Any, elements: npt.NDArray[Any], field: Field) -> None:
        value = plain_elements(_in_one(value))
        try:
            given = np.asarray(value)
        except (ValueError, pa.ArrowException) as error:
            raise self._wrong(
                f"no array for field {field.name!r} ({error}); expected shape {field.shape}"
            ) from None
        self._check_shape(given, field)
        fits = given.dtype.kind in _ACCEPTED[field.kind]
        if fits and field.kind != "bool" and isinstance(value, list):
            self._check_no_bools(value, field)
        if fits and field.kind in ("int", "uint"):
            limits = np.iinfo(elements.dtype)
            fits = limits.min <= int(given.min()) and int(given.max()) <= limits.max
        if not fits:
            raise self._wrong(
                f"{given.dtype} values for field {field.name!r} that do not fit its type, "
                f"{field.storage.name}: {_WRITE[field.kind]}"
            )
        if field.kind == "float":
            self._check_integers(value, given, elements.dtype.type, field)
        with np.errstate(over="ignore"):
            elements[...] = given
        if field.kind == "float":
            self._check_range(given, elements, field)
            elements[np.isnan(elements)] = np.nan  # all NaNs of a state have the same bits

    def _check_range(self, given: npt.NDArray[Any], stored: npt.NDArray[Any], field: Field) -> None:
        """Refuses finite floats of which the field's type makes an infinity."""
        beyond = np.isinf(stored) & np.isfinite(given)
        if beyond.any():
            place = tuple(int(one[0]) for one in np.nonzero(np.atleast_1d(beyond)))
            at = f" at {list(place)}" if field.shape else ""
            most = np.finfo(stored.dtype).max
            raise self._wrong(
                f"{np.atleast_1d(given)[place]!s}{at} for field {field.name!r}, which is beyond "
                f"the range of its type, {field.storage.name}: declare the field as a float, or "
                f"give a number within +-{most!s}"
            )

    def _check_no_bools(self, value: list[Any], field: Field) -> None:
        """Refuses bools, of which NumPy makes numbers where they stand beside some."""
        kinds = set(map(type, np.asarray(value, object).flat))
        if not kinds.isdisjoint((bool, np.bool_)):
            raise self._wrong(
                f"bools among the values for field {field.name!r} of type {field.storage.name}: "
                "make each an int, int(x)"
            )

    def _check_integers(
        self, value: Any, given: npt.NDArray[Any], of: type[np.floating[Any]], field: Field
    ) -> None:
        """Refuses integers that would be rounded, which no cast of the user's has asked for."""
        if given.dtype.kind in "iu":
            large = given[(given > _SMALL) | (given < -_SMALL)].tolist()
        elif isinstance(value, np.ndarray):
            return
        else:  # numbers of Python, among which NumPy has made floats of the integers
            large = [one for one in np.asarray(value, object).flat if whole(one) is not None]
        for one in large:
            self._check_rounding(one, float(of(one)), field)

    def _check_rounding(self, given: int, stored: float, field: Field) -> None:
        if stored != given:
            name = field.storage.name if field.container is None else "float"
            raise self._wrong(
                f"{given} for field {field.name!r}, which its type, {name}, holds as {stored!r} "
                f"only: give float({given}), or an array of floats, if it may be rounded; or "
                "declare the field as an int"
            )

    def _records(self, value: Any, field: Field, shape: Shape) -> Words:
        """The words of an array of records, or of one."""
        lengths = field.shape[:-1]
        if isinstance(value, np.ndarray) and value.dtype.names == shape.names:
            given, columns = value, [value[name].reshape(-1).tolist() for name in shape.names]
        else:
            given = np.empty((), object) if isinstance(value, Record) else np.array(value, object)
            if isinstance(value, Record):
                given[()] = value
            columns = self._split(given.reshape(-1).tolist(), shape, "record", field)
        if given.shape != lengths:
            raise self._wrong(
                f"shape {given.shape} for field {field.name!r}, which is declared with shape "
                f"{lengths}: bring it into that shape"
            )
        words = [
            self._words(column, part, name, field)
            for column, part, name in zip(columns, shape.parts, shape.names, strict=True)
        ]
        return np.stack(words, axis=-1).reshape(field.shape)

    # ---- containers ----

    def _rows(self, value: Any, field: Field, of: Container) -> Words:
        """The rows of a container."""
        keys, values = self._parts(value, field, of)
        names = ("key", "value") if of.is_mapping else ("element", "element")
        columns = [
            self._words(column, part, _part_name(what, shape, at), field)
            for what, shape, parts in ((names[0], of.key, keys), (names[1], of.value, values))
            for at, (part, column) in enumerate(zip(shape.parts, parts, strict=True))
        ]
        if of.expires:
            # Nobody knows when they were written: they stay until they are.
            columns.append(np.full(len(columns[0]), 2**63 - 1))
        rows = np.stack(columns, axis=1)
        if of.kind == "priority_queue" and _has_nan(of, rows):
            raise self._wrong(f"a NaN for field {field.name!r}, which is in no order: leave it out")
        if len(rows) > of.most:
            bound = "maxlen" if of.most == of.maxlen else "limit"
            raise self._wrong(
                f"{len(rows)} entries for field {field.name!r}, whose {bound} is {of.most}: give "
                f"fewer, or declare a larger {bound}="
            )
        twice = first_repeated(rows[:, : of.key.words]) if of.is_keyed else None
        if twice is not None:
            key = [_shown_at(column, twice) for column in keys]
            raise self._wrong(
                f"the key {', '.join(key)} twice for field {field.name!r}: give each key once"
            )
        return np.ascontiguousarray(rows)

    def _parts(self, value: Any, field: Field, of: Container) -> tuple[list[Any], list[Any]]:
        """The columns of the keys and those of the values."""
        if _is_table(value):
            value = self._columns(value, field, of)
            keys, values = value[: of.key.words], value[of.key.words :]
            if of.kind != "priority_queue":
                return keys, values
            parts = [_listed(column) for column in values]
            value = list(map(of.value.made, zip(*parts, strict=True)))
        if isinstance(value, str | bytes) or not isinstance(value, Iterable):
            raise self._wrong(
                f"{shown(value)} for field {field.name!r}, which is a {of.kind}: expected "
                f"{_EXPECTED[of.kind]}"
            )
        if of.is_mapping:
            return self._pairs(value, field, of)
        if isinstance(value, pa.Array | pa.ChunkedArray | np.ndarray) and of.value.is_whole:
            value = _plain_column(value)
            if of.kind != "priority_queue" and of.kind != "set":
                return [], [value]
            value = _listed(value)
        given = list(value)
        try:
            # A set of Python's has no order that the next process would have as well.
            if of.kind == "priority_queue" or (
                isinstance(value, AbstractSet) and not isinstance(value, _IN_ORDER)
            ):
                given = sorted(given)
        except TypeError as error:
            raise self._wrong(
                f"elements for field {field.name!r} that have no order ({error})"
            ) from None
        if of.kind == "set":
            return self._split(given, of.key, "element", field), []
        return [], self._split(given, of.value, "element", field)

    def _pairs(self, value: Any, field: Field, of: Container) -> tuple[list[Any], list[Any]]:
        keys: Sequence[Any]
        values: Sequence[Any]
        if isinstance(value, Mapping):
            pairs = list(value.items())
        else:
            pairs = list(value)
            for at, pair in enumerate(pairs):
                if not isinstance(pair, tuple | list) or len(pair) != 2:
                    raise self._wrong(
                        f"{shown(pair)} as entry {at} for field {field.name!r}, which is a "
                        f"{of.kind}: expected {_EXPECTED[of.kind]}"
                    )
        keys, values = [key for key, _ in pairs], [one for _, one in pairs]
        return (
            self._split(keys, of.key, "key", field),
            self._split(values, of.value, "value", field),
        )

    def _columns(self, value: Any, field: Field, of: Container) -> list[Any]:
        """The columns of a table, in the order of a row's words."""
        table = as_table(value, self._giver)
        names = [*column_names("key", of.key), *column_names("value", of.value)]
        if sorted(table.column_names) != sorted(names):
            raise self._wrong(
                f"a table with the columns {', '.join(table.column_names)} for field "
                f"{field.name!r}: expected {', '.join(names)}"
            )
        return [table.column(name) for name in names]

    def _split(self, given: list[Any], shape: Shape, what: str, field: Field) -> list[list[Any]]:
        """The parts of keys, values or elements, column by column."""
        if shape.is_whole:
            return [given]
        if shape.record is not None:
            return self._split_records(given, shape, what, field)
        for at, one in enumerate(given):
            if not isinstance(one, tuple | list) or len(one) != shape.words:
                raise self._wrong(
                    f"{shown(one)} as {what} {at} for field {field.name!r}; expected {shape}"
                )
        return [list(column) for column in zip(*given, strict=True)] or [[]] * shape.words

    def _split_records(
        self, given: list[Any], shape: Shape, what: str, field: Field
    ) -> list[list[Any]]:
        for at, one in enumerate(given):
            # Of a class with the same fields, as a snapshot gives them to migrate=, too.
            names = [of.name for of in record_fields(type(one))] if isinstance(one, Record) else []
            if names != list(shape.names):
                assert shape.record is not None
                raise self._wrong(
                    f"{shown(one)} as {what} {at} for field {field.name!r}; expected "
                    f"{shape.record.__name__}({', '.join(shape.names)})"
                )
        return [[getattr(one, name) for one in given] for name in shape.names]

    def _words(self, column: Any, part: Storage, what: str, field: Field) -> Words:
        """The words of one part of all rows."""
        if isinstance(column, pa.ChunkedArray):
            found = self._words_of_arrow(column, part, what, field)
            if found is not None:
                return found
            column = column.to_pylist()
        if part.number == "str":
            return self._words_of_texts(column, what, field)
        kinds = set(map(type, column))
        if not kinds <= {{"int": int, "float": float}.get(part.number, bool)}:
            column = [self._number(one, part, at, what, field) for at, one in enumerate(column)]
        if part.number == "float":
            return _float_words(np.array(column, np.float64))
        try:
            return np.array(column, np.int64)
        except OverflowError:
            beyond = next(one for one in column if not -(2**63) <= one < 2**63)
            raise self._wrong(
                f"{beyond} as {what} {column.index(beyond)} of field {field.name!r}, which is "
                "beyond 64 bits"
            ) from None

    def _number(self, one: Any, part: Storage, at: int, what: str, field: Field) -> Any:
        number = whole(one)
        if part.number == "bool" and isinstance(one, bool | np.bool_):
            return bool(one)
        if part.number == "int" and number is not None:
            return number
        if part.number == "float" and isinstance(one, float | np.floating):
            return float(plain(one))
        if part.number == "float" and number is not None:
            try:
                stored = float(number)
            except OverflowError:
                stored = float("inf")
            self._check_rounding(number, stored, field)
            return stored
        raise self._wrong(
            f"{shown(one)} as {what} {at} of field {field.name!r}, where type {part.name} is "
            "expected: convert it"
        )

    def _words_of_texts(self, column: Collection[Any], what: str, field: Field) -> Words:
        for at, one in enumerate(column):
            if not isinstance(one, str):
                raise self._wrong(
                    f"{shown(one)} as {what} {at} of field {field.name!r}, where type str is "
                    "expected: convert it"
                )
        try:
            texts = pa.array(column, pa.large_string())
        except (UnicodeEncodeError, pa.ArrowException):
            for one in column:
                self._code(one, field)
            raise
        return self._codes_of(pa.chunked_array([texts]), field)

    def _codes_of(self, texts: pa.ChunkedArray, field: Field) -> Words:
        try:
            codes = self._strings.add_all(texts)
        except InputError as error:
            raise self._wrong(f"in field {field.name!r} a {error}") from None
        return np.where(codes == EMPTY, 0, codes)

    def _words_of_arrow(
        self, column: pa.ChunkedArray, part: Storage, what: str, field: Field
    ) -> Words | None:
        """Of a column whose type says that all fits; None: it has to be looked at one by one."""
        column = _decoded(column)
        of = column.type
        if column.null_count:
            raise self._wrong(
                f"{column.null_count} null(s) as {what} of field {field.name!r}, which has none: "
                "drop or fill them"
            )
        try:
            if part.number == "int" and pa.types.is_integer(of):
                return np.array(column.cast(pa.int64()).to_numpy())
            if part.number == "float" and pa.types.is_floating(of):
                return _float_words(np.array(column.cast(pa.float64()).to_numpy()))
            if part.number == "bool" and pa.types.is_boolean(of):
                return np.array(column.cast(pa.int8()).to_numpy(), np.int64)
            if part.number == "str" and (pa.types.is_string(of) or pa.types.is_large_string(of)):
                return self._codes_of(column.cast(pa.large_string()), field)
        except pa.ArrowException as error:
            raise self._wrong(f"for field {field.name!r} what does not fit ({error})") from None
        return None


# The sets that are gone through in an order of their own.
_IN_ORDER = (StateSet, OrderedSet, KeysView)
_EXPECTED = {
    **dict.fromkeys(
        ("dict", "timers"),
        "a mapping, pairs of a key and a value, or a table with columns key and value",
    ),
    "set": "an iterable of elements, or a table with a column key",
    **dict.fromkeys(
        ("list", "deque", "priority_queue"),
        "an iterable of elements, an array, or a table with a column value",
    ),
}


def _has_nan(of: Container, rows: Words) -> bool:
    parts = [at for at, part in enumerate(of.value.parts) if part.number == "float"]
    return any(np.isnan(np.ascontiguousarray(rows[:, at]).view(np.float64)).any() for at in parts)


def _part_name(what: str, shape: Shape, at: int) -> str:
    """One part of keys, values or elements, in errors."""
    if shape.record is not None:
        return f"the field {shape.names[at]!r} of {what}"
    return f"part {at} of {what}" if shape.is_tuple else what


def _is_table(value: Any) -> bool:
    if isinstance(value, pa.Table | pa.RecordBatch):
        return True
    if isinstance(value, Mapping | pa.Array | pa.ChunkedArray | np.ndarray):
        return False
    module = type(value).__module__.split(".")[0]
    return hasattr(value, "columns") and (
        module == "pandas" or hasattr(value, "__arrow_c_stream__")
    )


def _in_one(value: Any) -> Any:
    """A column of Arrow's in one piece, of which NumPy makes an array; others as they are."""
    return _decoded(one_array(value) if isinstance(value, pa.ChunkedArray) else value)


def _decoded(value: Any) -> Any:
    """A column of a dictionary as what is in it, of which nulls are a part; others as they are."""
    if not isinstance(value, pa.Array | pa.ChunkedArray) or not pa.types.is_dictionary(value.type):
        return value
    if isinstance(value, pa.Array):
        return value.dictionary_decode()
    parts = [one.dictionary_decode() for one in value.chunks]
    return pa.chunked_array(parts, value.type.value_type)


def _plain_column(value: Any) -> Any:
    """An array as a column of Arrow's, where that has its numbers as they are."""
    if isinstance(value, pa.Array):
        return pa.chunked_array([value])
    if isinstance(value, np.ndarray):
        is_plain = value.ndim == 1 and value.dtype.kind in "iufb"
        return pa.chunked_array([pa.array(value)]) if is_plain else value.tolist()
    return value


def _listed(column: Any) -> list[Any]:
    return list(column.to_pylist() if isinstance(column, pa.ChunkedArray) else column)


def _shown_at(column: Any, at: int) -> str:
    one = column[at]
    return shown(one.as_py() if isinstance(one, pa.Scalar) else one)


def _float_words(numbers: npt.NDArray[np.float64]) -> Words:
    numbers[np.isnan(numbers)] = np.nan  # all NaNs of a state have the same bits
    return numbers.view(np.int64)
