"""One column, from Arrow to the numbers that operators read, and back.

All conversions are exact. A value that has no exact counterpart is reported with its row, so that
whoever reads a table can refuse it or leave the row out. Strings are not here: their codes come
from a table (:mod:`specstream.columns.strings`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from specstream.columns import compute as pc
from specstream.declarations.durations import DAY, PER_SECOND, UNIT_TICKS
from specstream.declarations.schema import Column

__all__ = [
    "accepts",
    "from_arrow",
    "hint",
    "in_time_unit",
    "is_text",
    "of_order",
    "order_distance",
    "order_values",
    "target",
    "tick_of",
    "time_at",
    "time_type",
    "to_arrow",
]

Mask = npt.NDArray[np.bool_]

_INT64 = np.iinfo(np.int64)
_WHOLE = 2**53  # the integers up to here are floats
# Numbers that operators read as they are, and those that come out as they are.
_PLAIN = frozenset(of.id for of in (pa.int64(), pa.float64()))
_WORDS = _PLAIN | {pa.timestamp("us").id}


def is_text(of: pa.DataType) -> bool:
    """Whether a column of that type holds strings."""
    return bool(
        pa.types.is_string(of) or pa.types.is_large_string(of) or pa.types.is_string_view(of)
    )


def accepts(column: Column, of: pa.DataType) -> bool:
    """Whether a column of a table may have that type."""
    if of == column.arrow:
        return True
    if pa.types.is_dictionary(of):
        of = of.value_type
    types = pa.types
    if types.is_timestamp(column.arrow):
        return bool(types.is_timestamp(of))
    if types.is_date(column.arrow):
        return bool(types.is_date(of))
    if types.is_decimal(column.arrow):
        whole = types.is_decimal32(of) or types.is_decimal64(of) or types.is_decimal128(of)
        return bool(whole or types.is_integer(of))
    if column.kind == "int":
        return bool(types.is_integer(of))
    if column.kind == "float":
        return bool(types.is_floating(of) or types.is_integer(of))
    return is_text(of) if column.kind == "str" else bool(types.is_boolean(of))


def hint(column: Column, of: pa.DataType) -> str:
    """What to do about a column of a type that is not accepted."""
    if pa.types.is_run_end_encoded(of):
        decoded = "decode it, pyarrow.compute.run_end_decode(x)"
        is_enough = accepts(column, of.value_type)
        return decoded if is_enough else f"{decoded}, and then {hint(column, of.value_type)}"
    if column.kind == "bool":
        return "compare it, so that it becomes a bool"
    try:
        pa.nulls(0, of).cast(column.arrow)
    except pa.ArrowNotImplementedError:  # Arrow has no such cast, so nobody is told to use it
        return f"make a column of {column.arrow} from it"
    wider = ", or declare it float" if _is_int_of_float(column, of) else ""
    return f"cast it to {column.arrow}{wider}"


def _is_int_of_float(column: Column, of: pa.DataType) -> bool:
    return bool(column.arrow == pa.int64() and pa.types.is_floating(of))


def target(column: Column) -> str:
    """What values are converted to, where one does not fit.

    >>> import specstream as ss
    >>> target(ss.decimal(2))
    'decimal128(19, 2) of 64 bits'
    """
    of = column.arrow
    return f"{of} of 64 bits" if pa.types.is_decimal(of) else str(of)


def from_arrow(array: pa.Array, column: Column) -> tuple[npt.NDArray[Any], Mask | None]:
    """Values as operators read them, and where they could not be converted; None: nowhere.

    Args:
        array: of a type that :func:`accepts` accepts; not a dictionary. Nulls become zeros.
        column: any but a string's.

    >>> import specstream as ss
    >>> times = pa.array([1_500_000, 2_000_000], pa.timestamp("us"))
    >>> values, wrong = from_arrow(times, ss.timestamp("s"))
    >>> values.tolist()[1], wrong.tolist()
    (2, [True, False])
    """
    of = array.type
    if of.id in _PLAIN and of == column.arrow:
        return _numpy(array), None
    if pa.types.is_boolean(of):
        return _numpy(array.cast(pa.uint8())), None
    if pa.types.is_floating(of):
        return _numpy(array.cast(pa.float64())), None
    if pa.types.is_decimal(column.arrow):
        return _scaled(array, column.arrow.scale)
    if pa.types.is_timestamp(of):
        return _ticks(_numpy(array.view(pa.int64())), of.unit, column.arrow.unit)
    if pa.types.is_date64(of):
        milliseconds = _numpy(array.view(pa.int64()))
        day = DAY // 10**6
        return milliseconds // day, milliseconds % day != 0
    if pa.types.is_date32(of):
        return _numpy(array.view(pa.int32()).cast(pa.int64())), None
    numbers = _numpy(array)
    if column.kind == "float":
        wrong = (numbers > _WHOLE) | (numbers < -_WHOLE) if numbers.itemsize == 8 else None
        return numbers.astype(np.float64), wrong
    wrong = numbers > _INT64.max if numbers.dtype == np.uint64 else None
    return numbers.astype(np.int64, copy=False), wrong


def of_order(array: pa.Array) -> tuple[npt.NDArray[np.int64], Mask | None] | None:
    """An order column as int64 of the same order, and the rows that have no place in it, if any.

    None: its type has no order.
    """
    of = array.type
    if pa.types.is_floating(of):
        numbers = _numpy(array.cast(pa.float64()))
        # The usual order-preserving image of a float; + 0.0 makes the two zeros equal.
        bits = (numbers + 0.0).view(np.int64)
        return np.where(bits < 0, bits ^ np.int64(2**63 - 1), bits), np.isnan(numbers)
    if pa.types.is_integer(of):
        return from_arrow(array, Column("int", pa.int64()))
    if pa.types.is_temporal(of) and not pa.types.is_interval(of):
        plain = array.cast(pa.int32()) if of.bit_width == 32 else array
        return _numpy(plain.cast(pa.int64())), None
    return None


def order_values(numbers: npt.NDArray[np.int64], of: pa.DataType) -> pa.Array:
    """Numbers of :func:`of_order` as a column of that type; of int64 where one does not fit."""
    values = pa.array(numbers)
    if of == values.type:
        return values
    try:
        if pa.types.is_floating(of):
            bits = np.where(numbers < 0, numbers ^ np.int64(2**63 - 1), numbers)
            return pa.array(bits.view(np.float64)).cast(of)
        if pa.types.is_temporal(of) and of.bit_width == 32:
            values = values.cast(pa.int32())
        return values.cast(of)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return pa.array(numbers)


def order_distance(of: pa.DataType, later: int, earlier: int) -> float:
    """Between numbers of :func:`of_order`: seconds where they are times, else the column's unit.

    >>> order_distance(pa.timestamp("ms"), 2500, 1000), order_distance(pa.date32(), 2, 1)
    (1.5, 86400.0)
    >>> numbers, _ = of_order(pa.array([-0.5, 2.0]))
    >>> order_distance(pa.float64(), int(numbers[1]), int(numbers[0]))
    2.5
    >>> infinite, _ = of_order(pa.array([np.inf]))
    >>> order_distance(pa.float64(), int(infinite[0]), int(infinite[0]))
    0.0
    """
    if later == earlier:
        return 0.0  # of infinities the difference is NaN
    if pa.types.is_floating(of):
        bits = np.array([later, earlier])
        first, second = np.where(bits < 0, bits ^ np.int64(2**63 - 1), bits).view(np.float64)
        return float(first) - float(second)  # NumPy's would warn of two infinities
    tick = tick_of(of)
    between = float(later - earlier)
    if tick is None:
        return between
    return between * (tick // 10**9) if tick >= 10**9 else between / (10**9 // tick)


def tick_of(of: pa.DataType) -> int | None:
    """Nanoseconds from a number of :func:`of_order` to the next; None: it is no time.

    >>> tick_of(pa.timestamp("us")), tick_of(pa.date32()), tick_of(pa.int64())
    (1000, 86400000000000, None)
    """
    if not pa.types.is_temporal(of) or pa.types.is_interval(of):
        return None
    if pa.types.is_date32(of):
        return DAY
    return int(10**9 // PER_SECOND["ms" if pa.types.is_date64(of) else of.unit])


def time_type(of: pa.DataType, unit: str | None) -> pa.DataType:
    """The type of the times of an operator that counts in a unit, where they come in another type.

    Args:
        of: the type that they come in; one that is no time stays as it is.
        unit: "s", "ms", "us", "ns" or "day"; None: that in which they come.

    >>> time_type(pa.timestamp("ns", "UTC"), "us"), time_type(pa.int64(), "us")
    (TimestampType(timestamp[us, tz=UTC]), DataType(int64))
    """
    tick = tick_of(of)
    if unit is None or tick is None or tick == UNIT_TICKS[unit]:
        return of
    if pa.types.is_duration(of) or pa.types.is_time(of):
        if unit == "day":
            return of
        if pa.types.is_duration(of):
            return pa.duration(unit)
        return pa.time32(unit) if unit in ("s", "ms") else pa.time64(unit)
    return pa.date32() if unit == "day" else pa.timestamp(unit, getattr(of, "tz", None))


def in_time_unit(times: pa.Array, unit: str | None) -> tuple[pa.Array, Mask | None]:
    """An order column in the unit that an operator counts in, and the rows whose times are not
    whole in it, or too far for it; None: there are none.

    >>> times, wrong = in_time_unit(pa.array([1_000, 2_500], pa.timestamp("ns")), "us")
    >>> times.type, wrong.tolist()
    (TimestampType(timestamp[us]), [False, True])
    """
    wanted = time_type(times.type, unit)
    if wanted == times.type:
        return times, None
    read, given, own = of_order(times), tick_of(times.type), tick_of(wanted)
    assert read is not None
    assert given is not None
    assert own is not None
    numbers, _ = read
    if given >= own:
        factor = given // own
        wrong = (numbers > _INT64.max // factor) | (numbers < -(2**63 // factor))
        numbers = np.where(wrong, 0, numbers) * factor
    else:
        divisor = own // given
        numbers, wrong = numbers // divisor, numbers % divisor != 0
        if own == DAY:
            far = np.abs(numbers) > np.iinfo(np.int32).max
            numbers, wrong = np.where(far, 0, numbers), wrong | far
    if times.null_count:
        wrong &= times.is_valid().to_numpy(zero_copy_only=False)
    return order_values(numbers, wanted), (wrong if wrong.any() else None)


def time_at(times: pa.Array, row: int) -> Any:
    """An element of an order column as a plain Python value; its number if Python has none such."""
    try:
        return times[row].as_py()
    except (OverflowError, ValueError, KeyError):  # no such year, or no such zone
        return int(of_order(times[row : row + 1])[0][0])  # type: ignore[index]


def _numpy(array: pa.Array) -> npt.NDArray[Any]:
    """As NumPy has it, without a copy where that can be; nulls become zeros."""
    if array.null_count:
        array = array.fill_null(0)
    numbers: npt.NDArray[Any] = array.to_numpy(zero_copy_only=False)
    flags = numbers.flags
    if flags.c_contiguous and flags.aligned:
        return numbers
    return np.require(numbers, requirements=["C", "A"])


def _ticks(
    values: npt.NDArray[np.int64], given: str, wanted: str
) -> tuple[npt.NDArray[np.int64], Mask]:
    """Numbers of one unit of time as numbers of another."""
    finer, coarser = PER_SECOND[wanted], PER_SECOND[given]
    if finer >= coarser:
        factor = finer // coarser
        return values * factor, (values > _INT64.max // factor) | (values < -(2**63 // factor))
    divisor = coarser // finer
    return values // divisor, values % divisor != 0


def _scaled(array: pa.Array, scale: int) -> tuple[npt.NDArray[np.int64], Mask]:
    """Decimals or integers times 10**scale."""
    if pa.types.is_integer(array.type):
        array = array.cast(pa.decimal128(20, 0))
    given = array.type.scale
    # Wide enough for every decimal128 at every scale that is allowed, so that nothing overflows.
    width = 76
    whole = array.cast(pa.decimal256(width, max(given, scale)), safe=False)
    scaled = whole.cast(pa.decimal256(width, scale), safe=False)  # cuts off what is beyond
    back = scaled.cast(whole.type, safe=False)
    exact = pc.equal(back, whole).fill_null(True).to_numpy(zero_copy_only=False)
    end = scaled.offset + len(scaled)
    words = np.frombuffer(scaled.buffers()[1], np.int64, 4 * end).reshape(-1, 4)
    words = words[scaled.offset :].copy()
    words[array.is_null().to_numpy(zero_copy_only=False)] = 0
    lowest = np.ascontiguousarray(words[:, 0])
    fits = (words[:, 1:] == (lowest >> 63)[:, None]).all(axis=1)
    return lowest, ~(exact & fits)


def to_arrow(words: npt.NDArray[np.int64], column: Column) -> pa.Array:
    """Emitted words as the column's Arrow type; any column but a string's.

    >>> import specstream as ss
    >>> to_arrow(np.array([-150]), ss.decimal(2))[0].as_py()
    Decimal('-1.50')
    """
    if column.kind == "bool":
        return pa.array(words != 0)
    if column.arrow.id in _WORDS:
        pass
    elif pa.types.is_decimal(column.arrow):
        words = np.stack([words, words >> 63], axis=1)
    elif pa.types.is_date(column.arrow):
        words = words.astype(np.int32)
    # The bits as they are, without asking NumPy what they are.
    return pa.Array.from_buffers(column.arrow, len(words), [None, pa.py_buffer(words)])
