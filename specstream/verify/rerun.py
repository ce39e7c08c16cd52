"""A counterexample as a test: the stream runs again, and what was asked has to hold of it."""

from __future__ import annotations

import ast
import decimal
import importlib
import importlib.util
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa

from specstream.declarations.options import refuses_unknown
from specstream.definition.operator import Operator
from specstream.errors import ConfigurationError
from specstream.verify.counterexample import Replay, Table, events_seen, replay
from specstream.verify.properties import Property
from specstream.verify.report import Refuted

__all__ = ["RERUN", "difference", "event_values", "rerun", "sequence_difference"]

RERUN = ("always", "each", "same")
"""The kinds of questions that can be asked of one stream again."""


@refuses_unknown
def rerun(
    target: str,
    name: str,
    events: pa.Table,
    *,
    arguments: tuple[str, ...] = (),
    kind: str = "always",
    against: str | None = None,
    order_by: str | None = None,
) -> None:
    """Runs a stream again, through the oracle and an engine, and looks whether a property holds.

    Args:
        target: ``MODULE:OPERATOR``, where MODULE may be the path of a file.
        name: of the property, in the same module or as ``MODULE:NAME``.
        events: the stream.
        arguments: of a function that makes the operator, as ``NAME=VALUE``.
        kind: "always", "each" or "same".
        against: of kind "same", the operator before the change.
        order_by: the column of times, if there is one.

    Raises:
        Refuted: it does not hold.
    """
    operator = _operator(target, arguments)
    table = Table(event_values(operator, events, order_by), events, order_by)
    run = replay(operator, table)
    if not run.agrees:
        raise Refuted("the sequential run and an engine of two threads differ")
    if kind == "same":
        assert against is not None
        found = difference(replay(_operator(against, arguments), table), run)
        if found:
            raise Refuted(f"not the same rows: {found}")
        return
    where = target.rpartition(":")[0]
    asked = name if ":" in name else f"{where}:{name}"
    function = _named(asked)
    if kind == "always":
        of = Property(function, operator, ("state",), "always=")
        for count, state in enumerate(run.states):
            if not of.holds(state=state):
                raise Refuted(f"{name} does not hold after {count} events")
        return
    of = Property(function, operator, ("before", "event", "rows", "after"), "each=")
    for at, seen in enumerate(events_seen(table, run)):
        if not of.holds(**seen):
            raise Refuted(f"{name} does not hold of event {at + 1}")


def difference(old: Replay, new: Replay) -> str:
    """How the rows or errors of two operators differ; "": they do not."""
    for at in range(len(old.rows)):
        if found := _raised_otherwise(old, new, at):
            return found
        one, other = old.rows[at], new.rows[at]
        if repr(one) != repr(other):
            return f"rows of event {at + 1}: expected {_rows(one)}, found {_rows(other)}"
    return ""


def sequence_difference(old: Replay, new: Replay) -> str:
    """Likewise, of the rows one by one, whenever they come."""
    for at in range(len(old.rows)):
        if found := _raised_otherwise(old, new, at):
            return found
    left, right = ([row for rows in of.rows for row in rows] for of in (old, new))
    for at, (one, other) in enumerate(zip(left, right, strict=False)):
        if repr(one) != repr(other):
            return f"row {at + 1}: expected {_rows([one])}, found {_rows([other])}"
    return ""


def _raised_otherwise(old: Replay, new: Replay, at: int) -> str:
    """How what an event, or a timer that it lets fire, has raised differs; "": it does not."""
    expected, found = (", ".join(name for name, _ in of.raised[at]) for of in (old, new))
    if expected == found:
        return ""
    none = "no exception"
    return f"event {at + 1}: expected {expected or none}, found {found or none}"


def _rows(rows: list[dict[str, Any]]) -> str:
    return "; ".join(", ".join(map(repr, row.values())) for row in rows) or "no row"


def event_values(
    operator: Operator, events: pa.Table, order_by: str | None
) -> list[dict[str, Any]]:
    """The values of events as an operator has them: numbers in place of times and decimals."""
    columns: dict[str, list[Any]] = {}
    for name, column in operator.event:
        values = events[name]
        of = column.arrow
        if pa.types.is_decimal(of):
            columns[name] = [
                None if one is None else int(decimal.Decimal(one).scaleb(of.scale))
                for one in values.to_pylist()
            ]
        elif pa.types.is_timestamp(of) or pa.types.is_date(of):
            whole = pa.int32() if pa.types.is_date(of) else pa.int64()
            columns[name] = values.cast(of).cast(whole).to_pylist()
        else:
            columns[name] = values.to_pylist()
    if order_by is not None:
        columns[order_by] = events[order_by].to_pylist()
    return [
        {name: values[row] for name, values in columns.items()} for row in range(events.num_rows)
    ]


def _operator(target: str, arguments: tuple[str, ...]) -> Operator:
    found = _named(target)
    if not isinstance(found, Operator):
        pairs = (one.partition("=") for one in arguments)
        found = found(**{name: _value(text) for name, _, text in pairs})
    if not isinstance(found, Operator):
        raise ConfigurationError(f"{target} is no operator; expected MODULE:OPERATOR")
    return found


def _value(text: str) -> Any:
    types_ = {"int": int, "float": float, "bool": bool, "str": str}
    return types_[text] if text in types_ else ast.literal_eval(text)


def _named(target: str) -> Any:
    where, _, name = target.rpartition(":")
    return getattr(_module(where), name)


def _module(where: str) -> Any:
    if not where.endswith(".py"):
        return importlib.import_module(where)
    path = Path(where)
    spec = importlib.util.spec_from_file_location(f"_verified_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ConfigurationError(f"{where} cannot be loaded as Python")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.insert(0, str(path.resolve().parent))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.pop(0)
    return module
