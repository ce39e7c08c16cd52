"""Values derived of events: computed by Python, once per distinct combination of what they need.

Each column is encoded once: its distinct values as Python has them, and for each event the place of
its own. A function is then called for the distinct combinations of its inputs' places, and what it
gave is spread over the events again. That costs nothing where nothing is derived.

What a function raises is kept as that there *is* an exception: the operator may never get there. If
it does, :func:`raise_again` raises it, from the user's own line.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from specstream.columns.dates_and_decimals import Scaled
from specstream.columns.exception_texts import record_of
from specstream.columns.instants import Instant
from specstream.columns.lists import addresses
from specstream.columns.strings import StringTable, check_text
from specstream.columns.unentered import ColumnTexts
from specstream.declarations.derived import Derived, Part, Place
from specstream.declarations.plain_values import plain
from specstream.declarations.schema import Column, Schema
from specstream.errors import SpecstreamError, is_of_signal_handler

__all__ = [
    "ABSENT",
    "NO_TEXTS",
    "UNREACHED",
    "Raised",
    "Texts",
    "computed_again",
    "derived_columns",
    "given_in_place",
    "item_again",
    "outcome_of",
    "raise_again",
    "value_reader",
]

Numbers = npt.NDArray[np.int64]
# Of the columns that are not entered, by name.
Texts = Mapping[str, ColumnTexts]
NO_TEXTS: Texts = {}


ABSENT: dict[str, Any] = {"int": 0, "float": 0.0, "bool": False, "str": "", "list": ()}
"""What lies where there is no value, by what it would be."""


class Unreached:
    """What stands for a value that no operator gets to."""


UNREACHED = Unreached()


@dataclass(frozen=True)
class Raised:
    """What stands for a value whose function raised."""

    error: Exception


@dataclass(frozen=True)
class _Values:
    """The distinct values of a column or of a derived value, and which of them each event has."""

    places: Numbers
    distinct: list[Any]


def derived_columns(
    schema: Schema,
    columns: Sequence[npt.NDArray[Any]],
    strings: StringTable,
    texts: Texts = NO_TEXTS,
) -> list[npt.NDArray[Any]]:
    """The arrays of the schema's derived values, for events of these columns.

    Args:
        schema: of the events.
        columns: timestamp, source, those of the schema, and those of its nulls.
        strings: has the texts of the columns, and gets those of derived strings.
        texts: those of columns that are not entered.
    """
    if not schema.derived:
        return []
    inputs: dict[str | int, _Values] = {}
    arrays: list[npt.NDArray[Any]] = []
    needed = _needed(schema.derived)
    for number, derived in enumerate(schema.derived):
        if number not in needed:
            continue
        for name in derived.inputs:
            if isinstance(name, str) and name not in inputs:
                inputs[name] = _column(schema, columns, strings, name, texts)
        values = _computed(derived, [inputs[name] for name in derived.inputs], len(columns[0]))
        if derived.is_seen:
            checked = [_checked(derived, value) for value in values.distinct]
            arrays += [array[values.places] for array in _arrays(derived, checked, strings)]
        inputs[number] = _merged(values)
    return arrays


def _needed(derived: Sequence[Derived]) -> set[int]:
    """The numbers of the values that an operator sees, and of those that go into them."""
    needed: set[int] = set()
    for number in reversed(range(len(derived))):
        if derived[number].is_seen or number in needed:
            needed |= {number, *(one for one in derived[number].inputs if isinstance(one, int))}
    return needed


def _column(
    schema: Schema,
    columns: Sequence[npt.NDArray[Any]],
    strings: StringTable,
    name: str,
    texts: Texts,
) -> _Values:
    """A column of the events, encoded by its bits; one that is not entered, by its texts."""
    if name in texts:
        return _of_texts(texts[name])
    at, column, nulls = _places(schema, name)
    values = np.ascontiguousarray(columns[at])
    bits = values.view(np.int64) if values.dtype == np.float64 else values
    encoded = pa.array(bits).dictionary_encode()
    places = encoded.indices.to_numpy().astype(np.int64)
    found = encoded.dictionary.to_numpy().view(values.dtype)
    distinct = value_reader(column, strings)(found)
    if nulls is not None:
        places = np.where(columns[nulls] != 0, len(distinct), places)
        distinct.append(None)
    return _Values(places, distinct)


def _of_texts(texts: ColumnTexts) -> _Values:
    """A column of strings that is not entered."""
    array = texts.array()
    if pa.types.is_dictionary(array.type):
        encoded = array.indices.dictionary_encode()  # of the dictionary, what is in use
        found = array.dictionary.take(encoded.dictionary).cast(pa.large_string())
    else:
        encoded = array.cast(pa.large_string()).dictionary_encode()
        found = encoded.dictionary
    check_text(found)
    distinct = found.to_pylist()
    places = encoded.indices.cast(pa.int64())
    if places.null_count:
        places = places.fill_null(len(distinct))
        distinct.append(None)
    return _Values(places.to_numpy(), distinct)


def _places(schema: Schema, name: str) -> tuple[int, Column | None, int | None]:
    """Where a column lies, what it is, and where its nulls lie."""
    if name == "timestamp":
        return 0, None, None
    number = schema.names.index(name)
    nulls = None
    if name in schema.nullable:
        nulls = 2 + len(schema) + schema.nullable.index(name)
    return 2 + number, schema.columns[number], nulls


def value_reader(
    column: Column | None, strings: StringTable
) -> Callable[[npt.NDArray[Any]], list[Any]]:
    """Makes Python's values of a column's elements, none of them null."""
    if column is None:
        return lambda values: values.tolist()
    if column.kind == "str":
        return lambda values: strings.texts(values).to_pylist()
    if column.kind == "bool":
        return lambda values: (values != 0).tolist()
    of = column.arrow
    if pa.types.is_timestamp(of) or pa.types.is_date(of):
        unit, zone = (of.unit, of.tz) if pa.types.is_timestamp(of) else ("day", None)
        return lambda values: [Instant.of(value, unit, zone) for value in values.tolist()]
    if pa.types.is_decimal(of):
        return lambda values: [Scaled.of(value, of.scale) for value in values.tolist()]
    return lambda values: values.tolist()


def _computed(derived: Derived, inputs: list[_Values], count: int) -> _Values:
    """A derived value of events, by those of its inputs."""
    combinations: list[tuple[Any, ...]]
    if not inputs:
        places, combinations = np.zeros(count, np.int64), [()]
    elif len(inputs) == 1:
        places, combinations = inputs[0].places, [(value,) for value in inputs[0].distinct]
    else:
        places, firsts = _combined(inputs, count)
        chosen = [[one.distinct[at] for at in one.places[firsts].tolist()] for one in inputs]
        combinations = list(zip(*chosen, strict=True))
    if derived.is_batch:
        return _Values(places, _in_one_call(derived, combinations))
    return _Values(places, [_outcome(derived, given) for given in combinations])


def _combined(inputs: list[_Values], count: int) -> tuple[Numbers, Numbers]:
    """The distinct combinations of what events have: which one each has, and its first event."""
    places, number = inputs[0].places, len(inputs[0].distinct)
    for one in inputs[1:]:
        # Encoded at each step, the product of the two numbers stays below 2**63.
        encoded = pa.array(places * max(len(one.distinct), 1) + one.places).dictionary_encode()
        places, number = encoded.indices.to_numpy().astype(np.int64), len(encoded.dictionary)
    firsts = np.empty(number, np.int64)
    firsts[places[::-1]] = np.arange(count)[::-1]  # of equal places the last assignment holds
    return places, firsts


def _merged(values: _Values) -> _Values:
    """The same with each value once, as far as values can be told apart by what they are."""
    numbers: dict[Any, int] = {}
    distinct: list[Any] = []
    places: list[int] = []
    for value in values.distinct:
        key = _identity(value)
        if key not in numbers:
            numbers[key] = len(distinct)
            distinct.append(value)
        places.append(numbers[key])
    if len(distinct) == len(places):
        return values
    return _Values(np.array(places, np.int64)[values.places], distinct)


def _identity(value: Any) -> Any:
    """Equal for values between which no function can tell."""
    if type(value) in (int, str, bool, type(None)):
        return type(value), value
    if type(value) is float:
        return float, value.hex(), math.copysign(1.0, value)
    return id(value)


def _outcome(derived: Derived, given: Sequence[Any]) -> Any:
    for at, value in enumerate(given):
        if isinstance(value, Raised | Unreached) and at not in derived.in_place:
            return value
    return outcome_of(lambda: derived.function(*given))


def outcome_of(function: Callable[[], Any]) -> Any:
    """What it gives, or what stands for that."""
    try:
        return function()
    except Exception as error:
        if is_of_signal_handler(error):
            raise
        return Raised(error)


def given_in_place(value: Any) -> Any:
    """What a derived value has of another one where it gets to it: that may have raised."""
    if isinstance(value, Raised):
        raise value.error
    return value


def _in_one_call(derived: Derived, combinations: list[tuple[Any, ...]]) -> list[Any]:
    """The same for a function that takes columns."""
    outcomes: list[Any] = [
        next((value for value in given if isinstance(value, Raised | Unreached)), None)
        for given in combinations
    ]
    wanted = [at for at, outcome in enumerate(outcomes) if outcome is None]
    if not wanted:
        return outcomes
    try:
        found = _of_columns(derived, [combinations[at] for at in wanted])
    except Exception as error:
        if is_of_signal_handler(error):
            raise
        # Which events fail must not depend on what else is in the batch.
        found = [
            outcome_of(lambda at=at: _of_columns(derived, [combinations[at]])[0])  # type: ignore[misc]
            for at in wanted
        ]
    for at, value in zip(wanted, found, strict=True):
        outcomes[at] = value
    return outcomes


def _of_columns(derived: Derived, combinations: list[tuple[Any, ...]]) -> list[Any]:
    """What the function gives for these arguments.

    Raises:
        Exception: what it raises; or it gives another number of values.
    """
    found = _listed(derived.function(*map(_as_column, zip(*combinations, strict=True))))
    if len(found) != len(combinations):
        raise ValueError(
            f"{derived.text} gave {len(found)} value(s) for {len(combinations)}: a function marked "
            "@ss.pure(batch=True) gives one for each element of its columns"
        )
    return found


def _as_column(values: tuple[Any, ...]) -> Any:
    values = tuple(int(value) if isinstance(value, Scaled) else value for value in values)
    numbers = np.array(values) if {type(value) for value in values} <= {int, float, bool} else None
    if numbers is not None and numbers.dtype != object:
        return numbers
    return pa.array([int(value) if isinstance(value, Instant) else value for value in values])


def _listed(column: Any) -> list[Any]:
    if isinstance(column, pa.Array | pa.ChunkedArray):
        return list(column.to_pylist())
    return list(column.tolist() if isinstance(column, np.ndarray) else column)


# ---- what came out, as arrays ----


def _checked(derived: Derived, value: Any) -> Any:
    """The value as the parts have it, or what stands for it."""
    if isinstance(value, Raised | Unreached) or not derived.parts:
        return value
    try:
        if not derived.is_tuple:
            return (_fitting(derived, derived.parts[0], value),)
        if not isinstance(value, tuple) or len(value) != len(derived.parts):
            raise TypeError(
                f"{derived.text} gives {_shown(value)}, and was to give a tuple of "
                f"{len(derived.parts)}"
            )
        return tuple(map(lambda part, one: _fitting(derived, part, one), derived.parts, value))
    except (TypeError, OverflowError, UnicodeEncodeError) as error:
        return Raised(error)


def _fitting(derived: Derived, part: Part, value: Any) -> Any:
    """A value as a part holds it."""
    value = plain(value)
    if value is None and part.nullable:
        return None
    if part.kind == "list":
        return _elements(derived, part, value)
    if part.kind == "str" and isinstance(value, str):
        value.encode()  # a lone surrogate is in no text that a column could hold
        return value
    if part.kind == "bool" and isinstance(value, bool):
        return value
    if part.kind == "int" and isinstance(value, int):
        return _exact(derived, value)
    if part.kind == "float" and isinstance(value, float | int):
        return float(value)
    allowed = f"{part.kind} or None" if part.nullable else part.kind
    raise TypeError(
        f"{derived.text} gives {_shown(value)}, and is declared {allowed}: annotate what it gives"
    )


def _elements(derived: Derived, part: Part, value: Any) -> list[tuple[Any, ...]]:
    """The elements of a list, as the words that hold them."""
    if not isinstance(value, list):
        raise TypeError(f"{derived.text} gives {_shown(value)}, and was to give a list")
    elements = []
    for element in value:
        given = element if part.is_tuple else (element,)
        if not isinstance(given, tuple) or len(given) != len(part.items):
            raise TypeError(
                f"{derived.text} gives a list with {_shown(element)} in it, and was to have tuples "
                f"of {len(part.items)}"
            )
        words: list[Any] = []
        for at, one in enumerate(given):
            inner = _of_item(part, at)
            if at not in part.raising:
                words.append(_fitting(derived, inner, one))
                continue
            item = _item(derived, inner, one)
            is_raised = isinstance(item, Raised)
            words += [derived.status(item.error), ABSENT[inner.kind]] if is_raised else [0, item]
        elements.append(tuple(words))
    return elements


def _of_item(part: Part, at: int) -> Part:
    """What an item of a list's elements is."""
    item = part.items[at]
    return item if isinstance(item, Part) else Part(item)


def _item(derived: Derived, item: Part, value: Any) -> Any:
    """An item of a list's element that may have raised."""
    try:
        return value if isinstance(value, Raised) else _fitting(derived, item, value)
    except (TypeError, OverflowError, UnicodeEncodeError) as error:
        return Raised(error)


def _exact(derived: Derived, value: int) -> int:
    if not -(2**63) <= value < 2**63:
        raise OverflowError(f"{derived.text} gives {value}, which does not fit 64 bits")
    return int(value)


def _shown(value: Any) -> str:
    return f"{value!r} ({type(value).__name__})"


def _arrays(derived: Derived, checked: list[Any], strings: StringTable) -> list[npt.NDArray[Any]]:
    """The arrays of a derived value, over its distinct outcomes."""
    reached = [value if isinstance(value, tuple) else None for value in checked]
    arrays: list[npt.NDArray[Any]] = [
        np.array(
            [derived.status(one.error) if isinstance(one, Raised) else 0 for one in checked],
            np.int64,
        )
    ]
    if derived.tells:
        texts = [record_of(one.error) if isinstance(one, Raised) else None for one in checked]
        arrays.append(_array(Part("str"), texts, strings))
    for number, part in enumerate(derived.parts):
        values = [None if value is None else value[number] for value in reached]
        arrays.append(_array(part, values, strings))
        if part.nullable:
            arrays.append(np.array([value is None for value in values], np.uint8))
    return arrays


def _array(part: Part, values: list[Any], strings: StringTable) -> npt.NDArray[Any]:
    if part.kind == "list":
        return addresses(part, values, strings)
    if part.kind != "str":
        return np.array([0 if value is None else value for value in values], part.dtypes[0])
    if len(values) == 1:
        return np.array([0 if values[0] is None else strings.add(values[0])], np.int64)
    return strings.add_all(pa.array(values, pa.large_string()))


# ---- what was raised ----


def raise_again(
    schema: Schema,
    columns: Sequence[npt.NDArray[Any]],
    row: int,
    strings: StringTable,
    number: int,
    texts: Texts = NO_TEXTS,
) -> None:
    """Raises what the function of a derived value raised for an event."""
    derived = schema.derived[number]
    found = _checked(derived, _again(schema, columns, row, strings, number, texts))
    if isinstance(found, Raised):
        raise found.error
    raise SpecstreamError(
        f"{derived.text} raised when it was computed for the batch, and does not when it is "
        "computed again: what operators call has to depend on its arguments alone"
    )


def computed_again(
    schema: Schema,
    columns: Sequence[npt.NDArray[Any]],
    row: int,
    strings: StringTable,
    number: int,
    texts: Texts = NO_TEXTS,
) -> Any:
    """What the function of a derived value gives for an event, which no column holds."""
    found = _again(schema, columns, row, strings, number, texts)
    if isinstance(found, Raised):
        raise found.error
    return found


def item_again(
    schema: Schema,
    columns: Sequence[npt.NDArray[Any]],
    row: int,
    strings: StringTable,
    place: Place,
    path: Sequence[tuple[int, int]],
    texts: Texts = NO_TEXTS,
) -> Any:
    """What was raised in a list of an event.

    Args:
        schema: of the events.
        columns: as :func:`derived_columns` takes them.
        row: the event.
        strings: the texts.
        place: of the list.
        path: which element, and which item of it; of a list in it the same, and so on.
        texts: those of columns that are not entered.
    """
    derived, part = schema.derived[place.number], place.part
    value = _again(schema, columns, row, strings, place.number, texts)
    for element, item in path:
        assert part is not None
        value, part = value[element][item], _of_item(part, item)
    assert part is not None
    return _item(derived, part, value)


def _again(
    schema: Schema,
    columns: Sequence[npt.NDArray[Any]],
    row: int,
    strings: StringTable,
    number: int,
    texts: Texts,
) -> Any:
    """What the function of a derived value gives for an event, or what stands for it."""
    outcomes: list[Any] = []
    single = [column[row : row + 1] for column in columns]
    texts = {name: of.take(np.array([row])) for name, of in texts.items()}
    for derived in schema.derived[: number + 1]:
        given = [
            outcomes[name]
            if isinstance(name, int)
            else (lambda one: one.distinct[one.places[0]])(
                _column(schema, single, strings, name, texts)
            )
            for name in derived.inputs
        ]
        if derived.is_batch:
            outcomes.append(_in_one_call(derived, [tuple(given)])[0])
        else:
            outcomes.append(_outcome(derived, given))
    return outcomes[number]
