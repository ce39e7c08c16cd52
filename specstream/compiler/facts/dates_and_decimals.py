"""Date, time and decimal columns that meet Python's own dates, times and decimals.

To an operator ``event.day`` is a number. Where Python computes an expression in which it meets a
``datetime.date``, as in ``event.day in HOLIDAYS``, it becomes a ``datetime.date`` as well; so do
times and decimals. The type of the number tells which column it comes from. Comparisons that can
never be true and computations that Python does not know are refused: with a number computed from
such a column, between a date and a time, between times with and without a zone.
"""

from __future__ import annotations

import ast
import datetime
import re
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa

from specstream.columns.instants import when
from specstream.compiler.facts import value_types as of
from specstream.compiler.facts.fact import EVENT, STATE, Binding, Fact
from specstream.compiler.facts.name_bindings import MISSING
from specstream.compiler.facts.value_types import ANY, BOOL, FLOAT, INT, STR, Type
from specstream.declarations.schema import Column

__all__ = [
    *("OWN_CLASSES", "OwnValues", "as_number", "as_own", "counts", "is_of_column", "named_of"),
    *("is_counted", "is_of_time", "of_constant", "own_type"),
]

OWN_CLASSES = (datetime.date, datetime.time, datetime.timedelta, Decimal)
_DECIMAL, _TIME = Type("Decimal"), Type("time")
_OWN = {one.name: one for one in (of.DATE, of.WHEN, of.DELTA, _TIME, _DECIMAL)}
_PLAIN = (INT, FLOAT, BOOL, STR)
_SCALARS = (*_PLAIN, *_OWN.values())


def counts(column: Column) -> Type:
    """The type of a number that is a value of such a column."""
    return replace(INT, counts=column)


def is_counted(column: Column) -> bool:
    """Whether the column is one of dates, times or decimals."""
    is_of = pa.types
    return bool(
        is_of.is_date(column.arrow)
        or is_of.is_timestamp(column.arrow)
        or is_of.is_decimal(column.arrow)
    )


def own_type(given: Type) -> Type:
    """A type with Python's own in place of the numbers of columns."""
    if is_of_column(given):
        return _own_of(given.counts)
    if not given.of:
        return given
    return replace(given, of=tuple(map(own_type, given.of)))


def is_of_column(given: Type) -> bool:
    """Whether a type is that of a number as it stands in a column of dates, times or decimals."""
    return given.counts is not None and not given.is_computed


def named_of(given: Type) -> str:
    """What a number of such a column is, in a message."""
    return _named(own_type(given))


def is_of_time(spec: ast.expr | None) -> bool:
    """Whether a date or time column is formatted as Python's own, by ``%d.%m.`` or the like.

    The format is what stands behind the colon."""
    parts = [spec] if isinstance(spec, ast.Constant) else getattr(spec, "values", ())
    texts = [str(part.value) for part in parts if isinstance(part, ast.Constant)]
    return any(re.search("%[A-Za-z]", text) for text in texts)


def as_number(given: Type) -> str | None:
    """How to get a number of one of Python's own values; None: it is none."""
    given = of.required(given)
    if given == of.WHEN:
        return (
            "compute with the number of its column, like event.x + 3_600_000_000 for an hour in "
            "microseconds, or take what you need out of it, like x.hour"
        )
    if given == of.DATE:
        return (
            "compute with the number of its column, like event.x + 1 for the next day, or take "
            "what you need out of it, like x.year"
        )
    if given == of.DELTA:
        return "take a number out of it, like x.total_seconds()"
    if given == _DECIMAL:
        return "make a number of it, like int(x * 100) of cents, or float(x)"
    return None


def as_own(node: ast.expr, given: Type) -> str | None:
    """What to write for a number of a column that Python's own value is wanted of."""
    column = of.required(given).counts
    if column is None or of.required(given).is_computed:
        return None
    kind, written = _own_of(column), ast.unparse(node)
    if kind == _DECIMAL:
        return f"{written} + decimal.Decimal(0)"
    return f"ss.when({written})" + (".date()" if kind == of.DATE else "")


def of_constant(value: Any) -> tuple[str, str] | None:
    """The date, time or decimal that a constant of a module is or holds, and what to write.

    It is one of Python's own values, of which compiled code has none; None: it holds none."""
    while isinstance(value, dict | tuple | list | set | frozenset):
        value = next(filter(_holds_own, value), None)
    if not isinstance(value, OWN_CLASSES):
        return None
    name = type(value).__name__
    number = {
        "date": "(x - datetime.date(1970, 1, 1)).days",
        "datetime": "int(x.timestamp()) * 1_000_000, of microseconds",
        "timedelta": "x // datetime.timedelta(microseconds=1)",
        "Timedelta": "x.value // 1000, of microseconds",
        "Decimal": "int(x * 100), of cents",
    }.get(name, "60 * x.hour + x.minute")
    return name, (
        "combine it with a value that depends on the event alone, like event.y == x, and use the "
        f"result; or turn it into a number outside the operator: N = {number}"
    )


def _own_of(column: Any) -> Type:
    if pa.types.is_decimal(column.arrow):
        return _DECIMAL
    return of.WHEN if pa.types.is_timestamp(column.arrow) else of.DATE


def _parts(given: Type) -> list[Type]:
    """A type, and all that it is made of."""
    return [given, *(part for one in given.of for part in _parts(one))]


def _has_own(given: Type) -> bool:
    return any(one.name in _OWN for one in _parts(given))


def _has_counted(given: Type) -> bool:
    return any(map(is_of_column, _parts(given)))


def _is_decimal(given: Type) -> bool:
    return given.counts is not None and pa.types.is_decimal(given.counts.arrow)


def _holds_own(value: Any) -> bool:
    """Whether a value of a module is or holds one of Python's own."""
    if isinstance(value, dict):
        return any(map(_holds_own, value))
    if isinstance(value, tuple | list | set | frozenset):
        return any(map(_holds_own, value))
    return isinstance(value, OWN_CLASSES)


class OwnValues:
    """Which parts of expressions are Python's own values.

    Args:
        of: what is known of an expression.
        constant: the value of a global, or of an attribute of one; MISSING: it is no such.
        forget: lets an expression be asked about anew.
        bindings: the names of the function that are assigned in one place.

    Attributes:
        own: expressions of columns whose values are given as Python's own.
        never: what can be neither equal nor computed: what is wrong, and what to write.
    """

    def __init__(
        self,
        of: Callable[[ast.expr], Fact],
        constant: Callable[[ast.expr], Any],
        forget: Callable[[ast.expr], None],
        bindings: dict[str, Binding],
    ) -> None:
        self.of = of
        self.constant = constant
        self.forget = forget
        self.bindings = bindings
        self.own: set[ast.expr] = set()
        self.never: dict[ast.expr, tuple[str, str]] = {}

    def type_here(self, node: ast.expr) -> Type:
        """The type of a part of what stands around it."""
        given = self.of(node).type
        return own_type(given) if node in self.own else given

    def is_counted(self, node: ast.expr) -> bool:
        """Whether an expression gives a number of a column of dates, times or decimals, or
        Python's own."""
        return _has_counted(self.of(node).type) or node in self.own

    def make_own(self, node: ast.expr) -> None:
        """Lets an expression give Python's own values."""
        if _has_counted(self.of(node).type):
            self.own.add(node)

    def fill_in(self, node: ast.expr) -> None:
        """What stands behind the % of a text: of a decimal, %.2f and %d ask for another number than
        that of its column. Dates and times have none."""
        for one in node.elts if isinstance(node, ast.Tuple) else [node]:
            parts = _parts(self.of(one).type)
            if self.of(one).depends < STATE and any(map(_is_decimal, parts)):
                self.make_own(one)

    def ask(self, node: ast.Attribute) -> None:
        """What an attribute or method is asked of: a number has but a few."""
        if of.required(self.of(node.value).type) == INT and not hasattr(int, node.attr):
            self.make_own(node.value)
            if isinstance(node.value, ast.BinOp):
                self.make_parts_own(node.value)
        computed = _computed_in(of.required(self.type_here(node.value)))
        if computed is not None and not hasattr(int, node.attr):
            self.never[node] = _of_computed(computed, ast.unparse(node.value))

    def make_parts_own(self, node: ast.BinOp) -> None:
        """Lets an operation take Python's own values, so that it gives such a one."""
        self.make_own(node.left)
        self.make_own(node.right)
        self.forget(node)  # what they give is another thing now

    def meet(self, nodes: list[ast.expr], are_alike: bool = False) -> None:
        """Expressions whose values meet: of one kind, if one of them is Python's own.

        Args:
            are_alike: whoever has one of the values may have any of them, so that there is nothing
                to write for one of another kind.
        """
        if any(self.of(one).depends == STATE for one in nodes):
            return
        if not any(self.has_own(one) for one in nodes):
            return
        for one in nodes:
            self.make_own(one)
            if isinstance(one, ast.BinOp) and self.is_difference(one):
                self.make_parts_own(one)
            computed = _computed_in(of.required(self.type_here(one)))
            if are_alike and computed is not None:
                self.never[one] = _of_computed(computed, ast.unparse(one))

    def is_difference(self, node: ast.expr) -> bool:
        """Whether it is one of two dates, times or decimals of the event."""
        return isinstance(node, ast.BinOp) and (
            isinstance(node.op, ast.Sub)
            and all(is_of_column(of.required(self.of(one).type)) for one in (node.left, node.right))
            and node.left not in self.own
        )

    def has_own(self, node: ast.expr) -> bool:
        """Whether an expression gives Python's own values, or a container of such, or with such
        keys."""
        given = of.required(self.type_here(node))
        if given.name == "dict":
            given = given.of[-1]
        if _has_own(given):
            return True
        if any(part == ANY for part in _parts(given)):
            value = self.constant(node)
            return value is not MISSING and _holds_own(value)
        return False

    # ---- what is never equal, and what cannot be computed ----

    def check_units(self, node: ast.expr, left: ast.expr, right: ast.expr) -> None:
        """Numbers that count something else are not compared, nor subtracted."""
        one, other = (of.required(self.type_here(part)) for part in (left, right))
        are_differences = self.is_difference(left) and self.is_difference(right)
        if None in (one.counts, other.counts):
            return
        if (one.is_computed or other.is_computed) and not are_differences:
            return
        units = [_unit(given.counts) for given in (one, other)]
        if units[0] == units[1]:
            return
        texts = [ast.unparse(part) for part in (left, right)]
        hint = f"convert both to times, ss.when({texts[0]}) and ss.when({texts[1]})"
        if any(pa.types.is_decimal(given.counts.arrow) for given in (one, other)):
            hint = (
                "convert both to Decimals, like event.x + decimal.Decimal(0), or declare both "
                "with as many digits"
            )
        elif are_differences:
            hint = "convert both to durations, like ss.when(event.x) - ss.when(event.y)"
        self.never[node] = (
            f"{texts[0]} is a number of {units[0]}, and {texts[1]} one of {units[1]}",
            hint,
        )

    def check_compared(
        self, node: ast.expr, op: ast.cmpop, left: ast.expr, right: ast.expr
    ) -> None:
        if isinstance(op, ast.Is | ast.IsNot):
            return
        if EVENT not in (self.of(left).depends, self.of(right).depends):
            return
        is_in = isinstance(op, ast.In | ast.NotIn)
        if not is_in:
            self.check_units(node, left, right)
        types = [self.type_here(left), self.type_here(right)]
        if is_in:
            types[1] = of.element(types[1])
        written = [ast.unparse(left), ast.unparse(right)]
        kinds = [of.required(one) for one in types]
        for at, (one, other) in enumerate((kinds, kinds[::-1])):
            if _has_own(other) and (computed := _computed_in(one)) is not None:
                self.never[node] = _of_computed(computed, written[at])
                return
        if not all(one in _SCALARS for one in kinds):
            return
        names = [one.name for one in kinds]
        own = [name in _OWN for name in names]
        if names[0] != names[1] and any(own) and not _are_numbers(kinds):
            at = own.index(False) if False in own else int(names[1] == "datetime")
            self.never[node] = _of_different(kinds, written, at)
        elif names == ["datetime", "datetime"]:
            zoned = [self.zones(left), self.zones(right)]
            if all(zoned) and not zoned[0] & zoned[1]:
                self.never[node] = _of_zones(
                    [True in one for one in zoned], written, left in self.own
                )

    def check_operation(self, node: ast.BinOp) -> None:
        types = [of.required(self.type_here(one)) for one in (node.left, node.right)]
        written = [ast.unparse(one) for one in (node.left, node.right)]
        if EVENT not in (self.of(node.left).depends, self.of(node.right).depends):
            return
        if isinstance(node.op, ast.Add | ast.Sub):
            self.check_units(node, node.left, node.right)
        for at, (one, other) in enumerate((types, types[::-1])):
            if other.name in _OWN and (computed := _computed_in(one)) is not None:
                self.never[node] = _of_computed(computed, written[at])
                return
        if not any(one.name in _OWN for one in types) or not all(one in _SCALARS for one in types):
            return
        if not _is_possible(node.op, *types):
            what = f"{written[0]} is {_named(types[0])} and {written[1]} {_named(types[1])}"
            self.never[node] = (
                f"{ast.unparse(node)} cannot be computed: {what}",
                _to_compute(types, written),
            )

    def zones(self, node: ast.expr) -> set[bool]:
        """Whether times that an expression gives have a zone; neither: that is not known."""
        column = of.required(self.of(node).type).counts
        if column is not None:
            return {getattr(column.arrow, "tz", None) is not None}
        if isinstance(node, ast.Name) and node.id in self.bindings:
            binding = self.bindings[node.id]
            return self.zones(binding.value) if binding.at is None else set()
        if isinstance(node, ast.Tuple | ast.List | ast.Set):
            return set[bool]().union(*map(self.zones, node.elts))
        if isinstance(node, ast.BinOp):
            return self.zones(node.left) | self.zones(node.right)
        if isinstance(node, ast.Call):
            called = self.constant(node.func)
            if called is datetime.datetime:
                has_zone = len(node.args) > 7 or any(one.arg == "tzinfo" for one in node.keywords)
                return {has_zone}
            return {True} if called is when else set()
        value = self.constant(node)
        return set() if value is MISSING else _zones_in(value)


def _unit(column: Any) -> str:
    of_column = column.arrow
    if pa.types.is_decimal(of_column):
        return "units" if not of_column.scale else f"1e-{of_column.scale}"
    if pa.types.is_timestamp(of_column):
        names = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
        return names[of_column.unit]
    return "days"


def _zones_in(value: Any) -> set[bool]:
    if isinstance(value, tuple | list | set | frozenset | dict):
        return set[bool]().union(*map(_zones_in, value))
    return {value.tzinfo is not None} if isinstance(value, datetime.datetime) else set()


def _computed_in(given: Type) -> Any:
    """The column of which a number in it is computed."""
    return next((one.counts for one in _parts(given) if one.is_computed), None)


def _are_numbers(kinds: list[Type]) -> bool:
    return all(one in (_DECIMAL, INT, FLOAT, BOOL) for one in kinds)


def _is_possible(op: ast.operator, left: Type, right: Type) -> bool:
    kinds = (left, right)
    moments = (of.DATE, of.WHEN)
    if isinstance(op, ast.Add):
        possible = of.DELTA in kinds and all(one in (*moments, of.DELTA) for one in kinds)
    elif isinstance(op, ast.Sub):
        possible = left in (*moments, of.DELTA) and right in (left, of.DELTA)
    elif isinstance(op, ast.Mult):
        possible = of.DELTA in kinds and any(one in (INT, FLOAT, BOOL) for one in kinds)
    elif isinstance(op, ast.Div | ast.FloorDiv | ast.Mod):
        numbers = (of.DELTA, INT, BOOL, *([FLOAT] if isinstance(op, ast.Div) else []))
        possible = left == of.DELTA and right in (
            (of.DELTA,) if isinstance(op, ast.Mod) else numbers
        )
    else:
        possible = False
    is_exact = _DECIMAL in kinds and all(one in (_DECIMAL, INT, BOOL) for one in kinds)
    return possible or (is_exact and not isinstance(op, ast.MatMult))


def _named(given: Type) -> str:
    names = {"date": "a date", "datetime": "a time", "time": "a time of the day"}
    names |= {"timedelta": "a duration", "int": "an int"}
    return names.get(given.name, f"a {given.name}")


def _of_computed(column: Any, written: str) -> tuple[str, str]:
    kind = _own_of(column)
    what = {"Decimal": "a decimal", "datetime": "a time"}.get(kind.name, "a date")
    problem = f"{written} is a number, made of the number that {what} is to an operator"
    if kind == _DECIMAL:
        return problem, (
            "convert the columns to Decimals first, like (event.x + decimal.Decimal(0)) * 2, or "
            "compare with a number"
        )
    return problem, (
        "compute with times, like ss.when(event.x) - ss.when(event.y), or compare with a number"
    )


def _of_different(kinds: list[Type], written: list[str], at: int) -> tuple[str, str]:
    one, other = written[at], written[1 - at]
    wanted, given = kinds[1 - at], kinds[at]
    problem = f"{one}, {_named(given)}, is never equal to {_named(wanted)} like {other}"
    if given == of.WHEN and wanted == of.DATE:
        return problem, f"take its date, {one}.date()"
    if given == INT and wanted in (of.WHEN, of.DATE):
        date = ".date()" if wanted == of.DATE else ""
        return problem, f'say what the number counts, like ss.when({one}, "us"){date}'
    return problem, f"compare it with {_named(given)}"


def _of_zones(has_zone: list[bool], written: list[str], is_left: bool) -> tuple[str, str]:
    zoned = written[has_zone.index(True)]
    plain = written[has_zone.index(False)]
    problem = f"{zoned} has a time zone and {plain} has none, so they cannot be compared"
    is_of_event = is_left == (not has_zone[0])
    if is_of_event:
        return problem, f"take it in UTC, ss.when({plain})"
    return problem, f"give it one: {plain}.replace(tzinfo=datetime.timezone.utc)"


def _to_compute(types: list[Type], written: list[str]) -> str:
    if _DECIMAL in types and FLOAT in types:
        return 'write a Decimal for the float, like decimal.Decimal("0.5")'
    if of.DELTA in types and INT in types:
        at = types.index(INT)
        return f"write a duration for the number, like datetime.timedelta(seconds={written[at]})"
    if of.DATE in types and of.WHEN in types:
        return f"take the date of the time, {written[types.index(of.WHEN)]}.date()"
    return "add durations to times, and subtract times of one kind"
