"""A loop by hand: the operator's function as it is written, over Python's own objects.

It is what somebody would write without this library: lists, dicts and deques as the state, an
object of attributes as each event, a list that rows are appended to. Nothing is checked, counted in
64 bits or undone. A function that needs more than that (timers, entries that expire, random
numbers, containers that Python has not) has no such loop, and :class:`NoLoop` says why.
"""

from __future__ import annotations

import collections
import contextlib
import time
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from specstream.columns.events import Events, read_events
from specstream.columns.strings import StringTable
from specstream.declarations.containers import Container
from specstream.declarations.options import shown
from specstream.declarations.state_layout import Field, Layout
from specstream.definition.operator import Operator
from specstream.pipelines.pipeline import Pipeline
from specstream.tuning.contest import Contestant, Order, Rows, same_rows

__all__ = ["BY_HAND", "LoopByHand", "NoLoop"]

BY_HAND = "loop by hand"
# Events that have to give the rows of the sequential run before the loop is measured.
_TRIED = 256


class NoLoop(Exception):
    """A function does not run over Python's own objects as it is; says why."""


class LoopByHand(Contestant):
    """The loop, on the first events of each batch: all of one may take too long. Its state is its
    own, and goes on from one batch to the next.

    Args:
        operator: whose function it runs.
        seconds: for each batch, about.
        order: the columns that order the batches.
        first: gives the first events of the stream, which it is tried with.

    Raises:
        NoLoop: it cannot run, or gives other rows than the sequential run.
    """

    def __init__(
        self,
        operator: Operator,
        seconds: float,
        order: Order,
        first: Callable[[int], pa.Table],
    ) -> None:
        super().__init__(BY_HAND)
        if isinstance(operator, Pipeline):
            raise NoLoop("a pipeline is several functions")
        self._operator, self._order, self._seconds = operator, order, seconds
        self._count = 1
        self.restart()
        self._try(first(_TRIED))
        self.restart()

    def run(self, batch: pa.Table, number: int) -> Rows | None:
        table = batch.slice(0, self._count)
        events = self._events(table)
        self.times[number] = self._loop(events, []) / table.num_rows
        # From the second time on it gets about as much time as the others.
        self._count = max(1, round(self._seconds / max(self.times[number], 1e-9)))
        return None

    def restart(self) -> None:
        self.state = _state(self._operator.layout)

    def _loop(self, events: list[Any], rows: list[tuple[Any, ...]]) -> float:
        """Runs the events, and gives the seconds that it took."""
        function, state = self._operator.function, self.state

        def emit(*values: Any) -> None:
            rows.append(values)

        began = time.perf_counter()
        if self._operator.layout.fields:
            for event in events:
                function(state, event, emit)
        else:
            for event in events:
                function(event, emit)
        return time.perf_counter() - began

    def _try(self, table: pa.Table) -> None:
        operator, rows = self._operator, list[tuple[Any, ...]]()
        try:
            self._loop(self._events(table), rows)
            found = _table(rows, operator.emits.arrow())
        except Exception as error:  # whatever a function does that it is not written for
            raise NoLoop(f"{type(error).__name__}: {shown(str(error))}") from None
        options = {name: self._order[name] for name in ("order_by", "source")}
        if not same_rows(found, operator.run_sequential(table, **options).output):
            raise NoLoop("over Python's own objects the function gives other rows")

    def _events(self, table: pa.Table) -> list[Any]:
        operator = self._operator
        strings = StringTable(operator.program.strings)
        read = read_events(
            table,
            operator.event.declared,
            strings,
            operator.name,
            0,
            order_by=self._order["order_by"],
            source=self._order["source"],
        )
        return _objects(operator, read, strings)


def _objects(operator: Operator, read: Events, strings: StringTable) -> list[Any]:
    """The events as objects of attributes."""
    schema, columns = operator.event.declared, read.columns[2:]
    values: dict[str, list[Any]] = {"timestamp": read.columns[0].tolist()}
    for (name, column), numbers in zip(schema, columns, strict=False):
        found = numbers.astype(bool).tolist() if column.kind == "bool" else numbers.tolist()
        values[name] = strings.texts(numbers).to_pylist() if column.kind == "str" else found
    for name, nulls in zip(schema.nullable, columns[len(schema) :], strict=False):
        values[name] = [
            None if null else one for null, one in zip(nulls, values[name], strict=True)
        ]
    names = list(values)
    return [
        types.SimpleNamespace(**dict(zip(names, row, strict=True)))
        for row in zip(*values.values(), strict=True)
    ]


def _table(rows: list[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    """Emitted rows; times and decimals are numbers in the operator."""
    columns = [list(one) for one in zip(*rows, strict=True)] or [[] for _ in schema]
    arrays = []
    for of, values in zip(schema.types, columns, strict=True):
        if pa.types.is_temporal(of):
            whole = pa.int32() if of.bit_width == 32 else pa.int64()
            arrays.append(pa.array(values, whole).cast(of))
        else:
            arrays.append(pa.array(values, of))
    return pa.Table.from_arrays(arrays, schema=schema)


def _state(layout: Layout) -> Any:
    """The state at the start, as an object of attributes."""
    return types.SimpleNamespace(**{field.name: _field(field) for field in layout.fields})


def _field(field: Field) -> Any:
    if field.container is not None:
        return _container(field.name, field.container)
    if field.space == "locks":
        return [contextlib.nullcontext()] * field.shape[0]  # one thread needs none
    if field.record is not None or field.operations or field.space != "state":
        raise NoLoop(f"field {field.name!r} of its state is none of Python's objects")
    fill = field.fill
    if not field.shape:
        return fill
    if len(field.shape) == 1:
        return [fill] * field.shape[0]
    return np.full(field.shape, fill)


def _container(name: str, of: Container) -> Any:
    if of.expires:
        raise NoLoop(f"entries of field {name!r} expire")
    if of.kind == "deque":
        return collections.deque(maxlen=of.maxlen)
    made = {"dict": dict, "set": set, "list": list}.get(of.kind)
    if made is None:
        raise NoLoop(f"field {name!r} is none of Python's containers")
    return made()
