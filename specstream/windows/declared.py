"""What all windows have in common: their options, their keys, and the rows that they emit."""

from __future__ import annotations

import ast
import datetime
import inspect
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from specstream.compiler.language.definitions import definition_of
from specstream.compiler.language.hints import not_compilable
from specstream.declarations.chosen_columns import kept_as, key_of
from specstream.declarations.container_fields import dict as dict_field
from specstream.declarations.durations import DAY, PER_SECOND, nanoseconds
from specstream.declarations.options import flag, function, integer, one_of, refused, shown, whole
from specstream.declarations.record_types import columns_declared
from specstream.declarations.records import is_record, record_fields
from specstream.declarations.schema import Schema
from specstream.definition.operator import Operator
from specstream.errors import ConfigurationError, DeclarationError

__all__ = [
    "EARLY",
    "IN_ORDER",
    "LATE",
    "LIMIT",
    "LONGEST",
    "NEVER",
    "ON_TIME",
    "Clock",
    "Windowed",
    "alike",
    "counted_in",
    "declared",
    "kept_in_dict",
    "not_too_many",
    "plain_function",
    "takes",
    "ticks",
    "within",
]

EARLY, ON_TIME, LATE = "early", "on time", "late"
LIMIT = 2**24
LONGEST = 2**61
IN_ORDER = (
    "sort the events of all tables, submit() them, or give ss.spark.foreach_batch or "
    "ss.sources.run a watermark="
)
"""What is to be done about an event that is too old."""
MOST_OF_AN_EVENT = 100_000
"""Windows that an event is in, and panes that a window has: each costs time and memory."""
NEVER = -(2**63)
"""Before all times."""
FARTHEST = 2**62
"""Of times, on either side of 0: where a window begins and ends is within 64 bits then."""


@dataclass(frozen=True)
class Clock:
    """What times are.

    Attributes:
        column: type of a column of them.
        unit: from one to the next, as messages have it.
        tick: the same in nanoseconds.
        is_declared: whether somebody has said so.
        is_assumed: whether nobody has, and lengths are durations.
    """

    column: Any
    unit: str
    tick: int
    is_declared: bool = True
    is_assumed: bool = False

    @property
    def time_unit(self) -> str | None:
        """What an operator declares as its unit; None: it goes by whatever the times count."""
        if not self.is_declared:
            return None
        return "day" if self.unit == "days" else self.unit

    @classmethod
    def counting(cls, option: str, given: Any, length: int | str | datetime.timedelta) -> Clock:
        """Likewise, where there may be no unit: microseconds then for a duration, and for a length
        that is a number whatever the times count.

        Args:
            length: of a window.
        """
        if given is not None:
            return cls.of(option, given)
        is_duration = isinstance(length, str | datetime.timedelta)
        return replace(cls.of(option, "us"), is_declared=is_duration, is_assumed=is_duration)

    @classmethod
    def of(cls, option: str, given: Any) -> Clock:
        """By a unit, of times that are ints; or by the type of a column.

        >>> Clock.of("by_time: unit", "ms")
        Clock(column=<class 'int'>, unit='ms', tick=1000000, is_declared=True, \
is_assumed=False)

        Raises:
            ConfigurationError: it is neither.
        """
        if isinstance(given, str):
            one_of(option, given, tuple(PER_SECOND))
            return cls(int, given, 10**9 // PER_SECOND[given])
        try:
            (column,) = Schema.of({"time": given}, "event").columns
        except DeclarationError:
            column = None
        if column is not None and not column.nullable:
            if pa.types.is_timestamp(column.arrow):
                return cls(column, column.arrow.unit, 10**9 // PER_SECOND[column.arrow.unit])
            if pa.types.is_date(column.arrow):
                return cls(column, "days", DAY)
        raise refused(
            option,
            given,
            f"one of {', '.join(PER_SECOND)}, or the type of a column of "
            "times: ss.timestamp(...) or datetime.date",
        )


@dataclass(frozen=True)
class Windowed:
    """The options of windows that all kinds have, checked.

    Attributes:
        event: columns of the events.
        emits: columns of the rows.
        columns: those of the events that are the key.
        place: type of what is kept by key and number.
        values: of a window, the columns that are its own.
        limit: entries of a container.
        full: what is said when one is full.
    """

    event: Any
    emits: dict[str, Any]
    columns: tuple[str, ...]
    place: tuple[type, ...]
    values: Callable[[Any], tuple[Any, ...]]
    limit: int
    full: str


def declared(
    what: str,
    record: Any,
    event: Any,
    key: str | Sequence[str],
    result: Callable[..., Any] | None,
    emits: Any,
    limit: int,
    name: str,
    collect: bool = False,
    time: Any = int,
    is_bare: bool = False,
) -> Windowed:
    """Checks what all windows are declared with.

    Raises:
        ConfigurationError: an option is not what it must be.
        DeclarationError: ``event`` or ``emits`` are no columns.
    """
    if not is_record(record):
        raise refused(f"{what}: record", record, "a class of records, class Volume(ss.Record)")
    found = record_fields(record)
    types = {"int": int, "float": float, "bool": bool, "str": str}
    fields = {one.name: types[one.storage.number] for one in found}
    bare = [one.name for one in found if not one.has_default]
    if bare:
        raise ConfigurationError(
            f"{what}: record={record.__name__}, whose field {bare[0]!r} has no default; expected "
            f"what it is in a window without events: {bare[0]}: {fields[bare[0]].__name__} = ..."
        )
    given = columns_declared(event, "event")
    Schema.of(given, "event")
    columns = key_of(f"{what}: key", key, given, ("int", "str"), least=0)
    if not isinstance(name, str) or not name:
        raise refused(f"{what}: name", name, "a text that names the operator")
    limit = integer(f"{what}: limit", limit, 1, 2**31)
    if flag(f"{what}: collect", collect) and result is None:
        raise ConfigurationError(
            f"{what}: collect=True gives the rows of a window to result=, and there is none"
        )
    if (result is None) != (emits is None):
        raise ConfigurationError(
            f"{what}: result= and emits= go together: the columns that the function gives, in its "
            "order; without both, rows have the fields of the record"
        )
    own = fields if emits is None else dict(columns_declared(emits, "emits"))
    of_window = {} if is_bare else {"start": time, "end": time, "kind": str}
    before = [*columns, *of_window]
    twice = [name for at, name in enumerate(before) if name in before[:at]]
    if twice:
        raise ConfigurationError(
            f"{what}: rows have two columns {twice[0]!r}: beside those of the key a row has "
            "start, end and kind: give each column once, and call it otherwise"
        )
    for one in own:
        if one in before:
            raise ConfigurationError(
                f"{what}: rows have two columns {one!r}: beside {', '.join(map(repr, before))} "
                "those of the window: call it otherwise"
            )
    rows = {**{column: given[column] for column in columns}, **of_window, **own}
    place = (*(kept_as(given[column]) for column in columns), int)
    names = tuple(fields)

    def all_fields(window: Any) -> tuple[Any, ...]:
        return tuple(getattr(window, name) for name in names)

    values = all_fields if result is None else function(f"{what}: result", result, "a function")
    if result is not None:
        plain_function(f"{what}: result", result, "a function")
        _check_row(what, result, tuple(own))
    named = what if name == what else f"{what}, {name!r}"
    full = (
        f"{named}: limit={limit} windows, panes or rows are kept already, of all keys together: "
        "give a larger limit="
    )
    return Windowed(event, rows, columns, place, values, limit, full)


def kept_in_dict(of: Any, key: Any, value: Any, limit: int | None = None) -> Any:
    """A dict of the state that has the windows' own limit, and says so when it is full."""
    return replace(dict_field(key, value, limit=limit or of.limit), full=of.full)


def _check_gives_nothing(option: str, given: Any) -> None:
    """Refuses a function that returns a value, for all that can be read: nobody would look at it.

    Raises:
        ConfigurationError: names the option.
    """
    tree = _tree_of(given)
    if tree is None:
        return
    for value in _returned(tree):
        # What a lambda calls may well return nothing.
        is_called = tree.name == "<lambda>" and isinstance(value, ast.Call)
        if value is not None and not _is_none(value) and not is_called:
            raise ConfigurationError(
                f"{option}={tree.name} returns {ast.unparse(value)}, which nobody takes: "
                "expected a function that changes the window, like window.count += 1, and returns "
                "nothing"
            )


def _tree_of(function: Any) -> ast.FunctionDef | None:
    """A function as it is written; None: that cannot be read."""
    found = definition_of(function) if isinstance(function, types.FunctionType) else None
    return None if found is None else found.tree


def _returned(tree: ast.FunctionDef) -> list[ast.expr | None]:
    """What its own ``return`` statements give, not those of functions inside of it."""
    inner = [
        one
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.Lambda) and node is not tree
        for one in ast.walk(node)
    ]
    return [
        node.value for node in ast.walk(tree) if isinstance(node, ast.Return) and node not in inner
    ]


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def plain_function(option: str, given: Any, expected: str) -> None:
    """Refuses what is no function of the user's."""
    found = not_compilable(function(option, given, expected))
    if found is not None:
        raise ConfigurationError(
            f"{option}={shown(given)} {found[0]}; expected {expected} of your own: {found[1]}"
        )


def _check_row(what: str, result: Any, columns: tuple[str, ...]) -> None:
    """Refuses a result that gives, for all that can be read, no row of these columns.

    What it gives by a name or a call is told when it is compiled.
    """
    tree = _tree_of(result)
    if tree is None or not tree.args.args:
        return
    given = _returned(tree)
    expected = f"a tuple of its columns, return ({', '.join(columns)}{',' * (len(columns) == 1)})"
    said = f"{what}: result={result.__name__}"
    if not given:
        raise ConfigurationError(f"{said} returns nothing; expected {expected}")
    for value in given:
        if value is None or _is_scalar(value, tree.args.args[0].arg):
            found = "nothing" if value is None else f"one value, {ast.unparse(value)}"
            raise ConfigurationError(f"{said} returns {found}; expected {expected}")
        if not isinstance(value, ast.Tuple) or any(
            isinstance(one, ast.Starred) for one in value.elts
        ):
            continue
        if len(value.elts) != len(columns):
            raise ConfigurationError(
                f"{said} returns {len(value.elts)} values, ({ast.unparse(value).strip('()')}), and "
                f"emits= has the columns {', '.join(columns)}; expected {expected}"
            )


def _is_scalar(node: ast.expr, window: str) -> bool:
    """Whether it is a number or the like, whatever its parts are."""
    if isinstance(node, ast.Attribute):
        return isinstance(node.value, ast.Name) and node.value.id == window
    if isinstance(node, ast.BinOp):
        if isinstance(node.op, ast.Add | ast.Mult):
            return _is_scalar(node.left, window) and _is_scalar(node.right, window)
        return True
    return isinstance(node, ast.Constant | ast.Compare | ast.UnaryOp | ast.JoinedStr)


def ticks(option: str, value: int | str | datetime.timedelta, clock: Clock, least: int = 1) -> int:
    """A length of time in the unit of the order column; an int is in it already.

    >>> ticks("by_time: length", "1 minute", Clock.of("by_time: unit", "ms"))
    60000
    """
    if isinstance(value, str | datetime.timedelta):
        length = nanoseconds(option, value)
        if length % clock.tick:
            raise ConfigurationError(f"{option}={value!r} is no whole number of {clock.unit}")
        value = length // clock.tick
    return integer(option, value, least, LONGEST)


def counted_in(made: Operator, clock: Clock, option: str, length: Any) -> Operator:
    """The operator of windows whose length is a number, or a duration without ``unit=``, which says
    so where it is to be warned of.

    Args:
        clock: of its times.
        option: that the length is given by.
        length: as it was given.
    """
    if not clock.is_declared:
        counts_times = f"its {option}={shown(length)} is a number"
        made.event = replace(made.event, counts_times=counts_times)
    if clock.is_assumed:
        made.event = replace(made.event, assumed=f"its {option}={shown(length)} is a duration")
    return made


def alike(what: str, given: Iterable[tuple[str, Any]]) -> None:
    """Lengths of time are all durations, or all numbers: beside a duration a number says nothing
    of its unit. Zero has none.

    Raises:
        ConfigurationError: they are some of each; names two of them.
    """
    durations: list[tuple[str, Any]] = []
    numbers: list[tuple[str, Any]] = []
    for option, value in given:
        if isinstance(value, str | datetime.timedelta):
            durations.append((option, value))
        elif value is not None and whole(value):
            numbers.append((option, value))
    if durations and numbers:
        (duration, length), (number, count) = durations[0], numbers[0]
        raise ConfigurationError(
            f"{what}: {duration}={shown(length)} is a duration, and "
            f"{number}={shown(count)} a number, which counts units of the order column; "
            f'expected both of one kind: write {number}= as a duration too, like "5 seconds"'
        )


def not_too_many(
    what: str, length: int, step: int, given: Mapping[str, Any], pane: int | None = None
) -> None:
    """Refuses lengths and steps with which one event takes the time and memory of a table.

    Args:
        what: the kind of windows.
        length: of one.
        step: from one to the next.
        given: options as users write them.
        pane: positions of the panes that windows are cut into; None: they are not.

    Raises:
        ConfigurationError: names the options, and how many windows or panes there would be.
    """
    call = f"{what}: length={shown(given['length'])} and step={shown(given['step'])}"
    bound = f"at most {MOST_OF_AN_EVENT:,}"
    if length > MOST_OF_AN_EVENT * step:
        raise ConfigurationError(
            f"{call} put each event into {-(-length // step):,} windows; expected {bound}: give a "
            "longer step= or a shorter length="
        )
    if pane is not None and length > MOST_OF_AN_EVENT * pane:
        raise ConfigurationError(
            f"{call} cut each window into {length // pane:,} panes, as they are multiples of "
            f"nothing longer than {pane}; expected {bound}: round them, so that both are multiples "
            "of something longer"
        )


def within(time: Any) -> None:
    """What an operator calls with the time of its event.

    Raises:
        OverflowError: it is too far from 0.
    """
    if time > FARTHEST or time < -FARTHEST:
        raise OverflowError("the time of an event of windows is within 2**62 of 0")


def takes(what: str, option: str, given: Any, *parameters: str) -> None:
    """Refuses what cannot be called with so many values.

    Raises:
        ConfigurationError: names the option.
    """
    plain_function(f"{what}: {option}", given, f"a function ({', '.join(parameters)})")
    try:
        inspect.signature(given).bind(*parameters)
    except TypeError as error:
        raise ConfigurationError(
            f"{what}: {option} cannot be called as {option}({', '.join(parameters)}): {error}"
        ) from None
    if parameters[0] == "window":
        _check_gives_nothing(f"{what}: {option}", given)
