"""A finite domain: every event that the streams of an exploration are made of."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from specstream.declarations.options import shown
from specstream.declarations.schema import EVENT_ATTRIBUTES, Column
from specstream.definition.operator import Operator
from specstream.errors import ConfigurationError
from specstream.verify.counterexample import Seen, Table, made_table
from specstream.verify.properties import Property, PropertyError
from specstream.verify.questions import holds
from specstream.verify.reads import CONTEXT, read_by, read_by_operator
from specstream.verify.rerun import event_values

__all__ = ["Domain", "Given", "domain_of_texts", "steps_of_time"]

Given = Mapping[str, Any]
_MOST = 100_000
# Arrow would cut off what is behind the point of a float.
_TYPES: dict[str, Any] = {
    "int": int | np.integer,
    "float": int | float | np.integer | np.floating,
    "bool": bool | np.bool_,
    "str": str,
}


class Domain:
    """The events that there are, each with how long after the one before it comes.

    Args:
        operator: whose events.
        given: the values of each column; of a pipeline with several sources these of each.
        assume: only events that fit are taken.
        steps: of time; of an operator that knows no time, just one.

    Attributes:
        values: of each event, by column, as the operator has them.
        steps: of time, from one event to the next.

    Raises:
        ConfigurationError: a column is missing, unknown, has no value, or one that does not fit;
            there are too many events, or none that fits.
    """

    def __init__(
        self, operator: Operator, given: Given, assume: list[Property], steps: tuple[int, ...]
    ) -> None:
        self.operator, self.steps = operator, steps
        what = f"verify: domain= of {operator.name!r}"
        if not isinstance(given, Mapping):
            raise ConfigurationError(
                f"{what} is {shown(given)}; expected the values of each column by its name, like "
                '{"x": range(4)}'
            )
        self.values: list[dict[str, Any]] = []
        for source, columns in _by_source(operator, given, what):
            self.values += _product(operator, source, columns, what)
        for of in assume:
            if read_by(of.function) & {*CONTEXT}:
                of.refuse_all(
                    "reads the time or the number of an event", "give time_steps=, events="
                )
        taken = [
            one
            for one in self.values
            if all(holds(of, event=Seen("the event", one)) for of in assume)
        ]
        if assume and not taken:
            names = ", ".join(one.name for one in assume)
            raise PropertyError(f"assume={names}: no event of domain= fits it")
        self.values = taken

    def of_another(self, operator: Operator) -> Domain:
        """The same events, for an operator that has the same columns."""
        made = copy.copy(self)
        made.operator = operator
        return made

    def __len__(self) -> int:
        return len(self.values) * len(self.steps)

    def value(self, at: int) -> dict[str, Any]:
        """The values of an event, by its number."""
        return self.values[at // len(self.steps)]

    def step(self, at: int) -> int:
        """How long after the one before it comes."""
        return self.steps[at % len(self.steps)]

    def at_once(self, now: int) -> Table:
        """All events, at one time."""
        values = [dict(one) for one in self.values]
        return made_table(self.operator, values, [now] * len(values))

    def table(self, events: Iterable[int]) -> Table:
        """A stream of events, by their numbers, as a table that can be run."""
        several = list(events)
        times = itertools.accumulate(map(self.step, several))
        return made_table(self.operator, [dict(self.value(at)) for at in several], list(times))


def domain_of_texts(texts: Iterable[str], operator: Operator) -> Given:
    """A domain as the command line has it: ``x=0..3``, ``side=B,S``, ``price=0.5,null``; of a
    pipeline with several sources ``source.x=0..3``.

    Raises:
        ConfigurationError: a text is none, or names no column.
    """
    found: dict[str, Any] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        source, dot, column = name.rpartition(".")
        into = found.setdefault(source, {}) if dot and len(operator.sources) > 1 else found
        name = column if into is not found else name
        inside = operator.values_of(source, {column: None}) if into is not found else {name: None}
        declared = dict(operator.event).get(next(iter(inside)))
        if not equals or name in into:
            raise ConfigurationError(
                f"--domain {text}: expected COLUMN=VALUES, each column once, like x=0..3"
            )
        into[name] = [] if declared is None else _parsed(text, values, declared)
    return found


def _parsed(text: str, values: str, column: Column) -> list[Any]:
    found: list[Iterable[Any]] = []  # a range may be longer than memory is large
    for one in values.split(","):
        first, dots, last = one.partition("..")
        try:
            if one == "null":
                found.append([None])
            elif column.kind == "int" and dots and column.is_plain:
                found.append(range(int(first), int(last) + 1))
            elif column.kind == "bool":
                found.append([{"true": True, "false": False}[one]])
            else:
                found.append([pa.scalar(one).cast(column.arrow).as_py()])
        except (KeyError, ValueError, pa.ArrowException):
            raise ConfigurationError(
                f"--domain {text}: {one!r} is no value of a column that is declared {column}; "
                "expected values with commas between, and of ints also 0..3"
            ) from None
    return list(itertools.islice(itertools.chain.from_iterable(found), _MOST + 1))


def steps_of_time(given: Any, operator: Operator) -> tuple[int, ...]:
    """The steps of time that somebody asks for; None: nobody does.

    Raises:
        ConfigurationError: they are none, or the operator has none and others are given, or the
            other way round.
    """
    has_time = operator.layout.goes_by_time or "timestamp" in read_by_operator(operator)
    if given is None:
        if has_time:
            raise ConfigurationError(
                f"verify: {operator.name!r} goes by the time of its events; say how long after one "
                "the next one may come, as in time_steps=(0, 1, 10)"
            )
        return (0,)
    steps = list(given) if isinstance(given, Iterable) and not isinstance(given, str) else [given]
    if not steps or not all(type(one) is int and 0 <= one < 2**40 for one in steps):
        raise ConfigurationError(
            f"verify: time_steps={shown(given)}; expected ints from 0 on, in the unit of the times "
            "(microseconds where durations are declared), like (0, 1, 10)"
        )
    if not has_time:
        raise ConfigurationError(
            f"verify: time_steps={shown(given)}, and {operator.name!r} does not go by time; leave "
            "it out"
        )
    return tuple(dict.fromkeys(steps))


def _by_source(operator: Operator, given: Given, what: str) -> list[tuple[str | None, Given]]:
    sources = operator.sources
    if len(sources) < 2:
        return [(None, given)]
    others = [name for name in given if name not in sources]
    others += [name for name in sources if name not in given]
    if others or not all(isinstance(of, Mapping) for of in given.values()):
        raise ConfigurationError(
            f"{what} is {shown(given)}; expected the columns of each source, by the names "
            f"{', '.join(sources)}, like {{{next(iter(sources))!r}: {{...}}}}"
        )
    return list(given.items())


def _product(
    operator: Operator, source: str | None, given: Given, what: str
) -> list[dict[str, Any]]:
    """Every event of the columns' values."""
    declared = dict(operator.event)
    if source is None:
        columns = declared
    else:
        whole = operator.values_of(source, {name: name for name in operator.sources[source]})
        columns = {name: declared[inside] for inside, name in whole.items()}
    of = "" if source is None else f" of source {source!r}"
    wrong = [f"has no values of column {name!r}{of}" for name in columns if name not in given]
    wrong += [f"has {name!r}, which is no column{of}" for name in given if name not in columns]
    if wrong:
        hint = f"expected values of {', '.join(columns) or 'no column'}"
        if any(name in EVENT_ATTRIBUTES for name in given):
            hint += "; times are given by time_steps="
        if len(operator.sources) == 1 and list(given) == list(operator.sources):
            hint += ", of the only source without its name"
        raise ConfigurationError(f"{what} {wrong[0]}; {hint}")
    values = {name: _values(name, columns[name], given[name], what) for name in columns}
    count = 1
    for several in values.values():
        count *= len(several)
    if count > _MOST:
        raise ConfigurationError(
            f"{what} has {count:,} events; expected at most {_MOST:,}: give fewer values"
        )
    rows = [dict(zip(values, one, strict=True)) for one in itertools.product(*values.values())]
    inside = [operator.event_values(source, row) if source else row for row in rows]
    if not declared:
        return [{}]
    arrays = {
        name: pa.array([row[name] for row in inside], of.arrow) for name, of in declared.items()
    }
    return event_values(operator, pa.table(arrays), None)


def _kind(column: Column) -> str:
    return column.kind if column.is_plain else ""


def _values(name: str, column: Column, given: Any, what: str) -> list[Any]:
    if not isinstance(given, Iterable) or isinstance(given, str | bytes):
        raise ConfigurationError(
            f"{what}, column {name!r}: {shown(given)}; expected its values, like range(4)"
        )
    if isinstance(given, pa.Array | pa.ChunkedArray):
        given = given.to_pylist()
    several = list(itertools.islice(given, _MOST + 1))
    if not several:
        raise ConfigurationError(
            f"{what}, column {name!r} has no value, and so there is no event; a range goes from "
            "the lower to the higher one"
        )
    for one in several:
        if one is None and column.nullable:
            continue
        try:
            if one is None or not isinstance(one, _TYPES.get(_kind(column), object)):
                raise TypeError("it is of another type")
            if isinstance(one, bool | np.bool_) != (column.kind == "bool"):
                raise TypeError("it is of another type")
            pa.array([one], column.arrow)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            told = "it has more bits" if isinstance(error, OverflowError) else error
            raise ConfigurationError(
                f"{what}, column {name!r} is declared {column} and cannot be {shown(one)}: {told}"
            ) from None
    return several
