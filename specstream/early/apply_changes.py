"""The early rows of one engine as tentative events of the next.

A row is known by its source, its sequence number and its place among those of its event; the event
that it becomes, by a sequence number above all before. So numbers go by the order in which rows
were told. The order of events is that of their times, and within one time that of the rows: where a
row comes before others of its time, these are told anew, with numbers of their own. And events are
confirmed up to a number: a final row waits for those with lower numbers to be final, or gone.
"""

from __future__ import annotations

import threading
import weakref
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from specstream.columns.conversion import order_values
from specstream.columns.events import order_key
from specstream.declarations.options import instance, refuses_unknown, text
from specstream.early.latest import check_changes
from specstream.engine.early_results import ANSWER_BITS, EarlyAnswer
from specstream.engine.engine import Engine
from specstream.engine.sources import Name
from specstream.errors import ConfigurationError, InputError

__all__ = ["apply_changes"]

_CALL = "ss.early.apply_changes"
_TIME = "timestamp"
_NUMBER = "__number"
_LAST = 2**62
# How a row is told, which is nothing of the row.
_TELLING = ("version", "change")

# Timestamp as a number, False for a row of a timer, source (of such a row None), sequence number,
# place; in the order of the rows.
Key = tuple[int, bool, Any, int, int]


@dataclass(eq=False)
class _Row:
    """A row of one engine; an event of the next, if it has a number."""

    key: Key
    time: int
    values: dict[str, Any]
    change: str
    number: int = -1
    version: int = 1


class _Link:
    """What a source of an engine has of the rows of another engine.

    Args:
        source: its name.
        order_by: column of the events' times.
    """

    def __init__(self, source: Name, order_by: str) -> None:
        self.source = source
        self.order_by = order_by
        self._rows: dict[Key, _Row] = {}  # not confirmed, in the order of their numbers
        self._by_time: dict[int, dict[Key, _Row]] = {}
        self._gone: list[int] = []  # numbers of events that are to be retracted
        self._following = 0
        self._version = 0
        self._final: Key | None = None  # of the last row that was reported as final
        # The engine's incarnation when it had just this; None: that has to be looked at.
        self._seen: int | None = None

    def apply(self, engine: Engine, changes: pa.Table, version: int, final_to: Any) -> None:
        """Brings the engine to what stands after some changes.

        Args:
            engine: the same each time.
            changes: a table.
            version: of the latest.
            final_to: the time of what is final; None: it is not known.
        """
        self._look(engine)
        if version < self._version:
            raise InputError(
                f"{_CALL}: these changes have version {version}, and source {self.source!r} of "
                f"{engine.name!r} has those of {self._version}: they are older, or of an engine "
                "that was made anew; expected all changes of one engine, in their order. Restore "
                "into the engine that there is, or make the next one anew as well"
            )
        changes = changes.filter(pc.greater(changes["version"], self._version))
        reported = self._reported(engine, changes)
        (began, number), (began_before, before) = map(_parts, (version, self._version))
        is_reset = began > began_before
        if number == before:
            final_to = None  # an answer while things are taken back: what is final comes later
        # Until the end: an interruption may leave something of it.
        self._seen = None
        self._change(engine, reported, is_reset, changes.schema)
        for key, row in reported.items():
            if row.change == "final":
                self._rows[key].change, self._final = "final", max(key, self._final or key)
        self._version = version
        self._confirm(engine)
        if self.order_by == _TIME:
            if final_to is None:
                finals = changes.filter(pc.equal(changes["change"], "final"))
                final_to = pc.max(finals[_TIME]).as_py()
            if final_to is not None:
                engine.advance(self.source, final_to)
        self._seen = engine.durable.incarnation

    def _look(self, engine: Engine) -> None:
        """Whether the engine has what is known here of the source.

        Raises:
            InputError: it has not.
        """
        if self._seen == engine.durable.incarnation:
            return
        pending = engine.durable.pending
        known = pending.sources.known(self.source)
        there = {}
        if known is not None:
            self._following = max(self._following, known.next_sequence)
            there = {
                segment.first_sequence: pending.tentative.version(segment)
                for segment in pending.tentative.confirmable(known, _LAST)
            }
        for number in self._gone:
            there.pop(number, None)
        if there != {row.number: row.version for row in self._rows.values()}:
            raise InputError(
                f"{_CALL}: the tentative events of source {self.source!r} of {engine.name!r} are "
                "not those that were fed here: it was restored or rolled back, a call was "
                "interrupted, or somebody else changes them; expected a source for these changes "
                "alone. Make the engine anew, and give it all changes"
            )

    def _reported(self, engine: Engine, changes: pa.Table) -> dict[Key, _Row]:
        """The rows of changes by their keys, and in the order of these."""
        if not changes.num_rows:
            return {}
        operator = engine.operator
        columns = operator.sources if len(operator.sources) > 1 else {}
        wanted = columns.get(str(self.source), operator.event.names)
        names = [name for name in changes.column_names if name in wanted and name not in _TELLING]
        times, at = (
            order_key(changes[name].combine_chunks(), name, _CALL).tolist()
            for name in (_TIME, self.order_by)
        )
        rest = (changes[name].to_pylist() for name in ("source", "sequence", "n"))
        of_event = changes["source"].is_valid().to_pylist()
        keys = list(zip(times, of_event, *rest, strict=True))
        values = changes.select(names).to_pylist()
        rows = map(_Row, keys, at, values, changes["change"].to_pylist())
        reported = {row.key: row for row in sorted(rows, key=lambda row: row.key)}
        # A timer that was set for a time that has come fires behind events of that time.
        final = self._final
        late = [key for key in reported if final and key <= (final if key[1] else final[:1])]
        if late:
            raise InputError(
                f"{_CALL}: a row of event {late[0][3]} of source {late[0][2]!r} is reported as "
                f"{reported[late[0]].change!r} and lies before one that was final: the engine has "
                "gone back behind what it reported as final. Make the next one anew as well"
            )
        return reported

    def _change(
        self, engine: Engine, told: dict[Key, _Row], is_reset: bool, schema: pa.Schema
    ) -> None:
        """Revises, submits and retracts; what is final is not confirmed yet."""

        def stays(known: _Row) -> bool:
            row = told.get(known.key)
            if row is None:
                return known.change == "final" or not is_reset
            return row.change != "withdrawn" and row.time == known.time

        known = self._rows if is_reset else told.keys() & self._rows.keys()
        gone = {key for key in known if not stays(self._rows[key])}
        new = {
            key: row
            for key, row in told.items()
            if row.change != "withdrawn" and (key in gone or key not in self._rows)
        }
        # Those that are now before others of their time.
        first: dict[int, Key] = {}
        for key, row in new.items():
            first.setdefault(row.time, key)
        for time, key in first.items():
            behind = {
                at: told.get(at, known)
                for at, known in self._by_time.get(time, {}).items()
                if at > key and at not in gone and known.change != "final"
            }
            gone.update(behind)
            new |= behind

        for key, row in told.items():
            if key in self._rows and key not in gone:
                self._revise(engine, self._rows[key], row.values)
        self._submit(engine, [new[key] for key in sorted(new)], gone, schema)
        while self._gone:
            engine.retract(self.source, self._gone[-1])  # twice does no harm
            self._gone.pop()

    def _revise(self, engine: Engine, known: _Row, values: dict[str, Any]) -> None:
        if repr(known.values) != repr(values):  # not ==, which takes -0.0 for 0.0
            engine.revise(self.source, known.number, known.version + 1, **values)
            known.version += 1
            known.values = values

    def _submit(self, engine: Engine, rows: list[_Row], gone: set[Key], schema: pa.Schema) -> None:
        """Submits rows in this order; others, or the same with other numbers, are to go."""
        numbers = range(self._following, self._following + len(rows))
        if rows:
            times = np.array([row.time for row in rows], np.int64)
            table = {
                self.order_by: order_values(times, schema.field(self.order_by).type),
                **{
                    name: pa.array([row.values[name] for row in rows], schema.field(name).type)
                    for name in rows[0].values
                },
                _NUMBER: pa.array(numbers),
            }
            engine.submit(
                pa.table(table),
                order_by=self.order_by,
                source=self.source,
                final=False,
                sequence_by=_NUMBER,
            )
        for key in gone:
            self._gone.append(self._rows[key].number)
            self._forget(key)
        for row, number in zip(rows, numbers, strict=True):
            row.number, row.version = number, 1
            self._rows[row.key] = self._by_time.setdefault(row.time, {})[row.key] = row
        self._following = numbers.stop

    def _confirm(self, engine: Engine) -> None:
        """What is final, as far as numbers go by."""
        final = list(takewhile(lambda row: row.change == "final", self._rows.values()))
        if final:
            engine.confirm(self.source, final[-1].number)
        for row in final:
            self._forget(row.key)

    def _forget(self, key: Key) -> None:
        row = self._rows.pop(key)
        del self._by_time[row.time][key]
        if not self._by_time[row.time]:
            del self._by_time[row.time]


def _parts(version: int) -> tuple[int, int]:
    """Its incarnation, and the number of the answer."""
    return divmod(version, 1 << ANSWER_BITS)


_links: weakref.WeakKeyDictionary[Engine, dict[Name, _Link]] = weakref.WeakKeyDictionary()
_links_guard = threading.Lock()


@refuses_unknown
def apply_changes(
    answer: EarlyAnswer | pa.Table, engine: Engine, *, source: Name, order_by: str = _TIME
) -> None:
    """Feeds the early results of one engine to the next, as tentative events of a source.

    An early row is submitted or revised as an event; a withdrawn one is retracted, a final one
    confirmed. In the end, final rows and state of the next engine are those of one that is fed with
    the final rows alone; until then, its ``poll_early`` gives the sequential run over the rows that
    stand. Do not call it from two threads at once.

    Args:
        answer: what :meth:`specstream.Engine.poll_early` of the first engine gave with
            ``changes="upsert"``: every answer, in order. One that comes again changes nothing. Its
            table will do as well; but only the answer says how far all is final and, after a
            restart, that nothing reported before stands.
        engine: the next one, made with ``early=True``. It reads columns of the rows by their names.
        source: of the events, and of no others.
        order_by: column of the events' times: "timestamp", the time of the event that has emitted
            the row, or a column of the rows. With "timestamp" the source's frontier follows what is
            final; with a column you advance it, no further than to rows that are not final.

    Raises:
        InputError: these are no such changes, do not fit the operator, or do not follow those
            before: the first engine was made anew, or has gone back behind what it reported as
            final; or the next one was restored or rolled back.
        ConfigurationError: another argument is not what it must be.

    >>> import specstream as ss
    >>> class Seen(ss.State):
    ...     total = ss.scalar(int)
    >>> @ss.operator(state=Seen, event={"x": int}, emits={"total": int})
    ... def sums(state, event, emit):
    ...     state.total += event.x
    ...     emit(state.total)
    >>> @ss.operator(state=Seen, event={"total": int}, emits={"highest": int})
    ... def highest(state, event, emit):
    ...     state.total = max(state.total, event.total)
    ...     emit(state.total)
    >>> first = ss.Engine(sums, sources=["a", "b"], early=True)
    >>> second = ss.Engine(highest, sources=["sums"], early=True)
    >>> with first, second:
    ...     for source, time, x in [("a", 20, 5), ("a", 30, -2), ("b", 10, 4)]:
    ...         first.submit_event(time, source, x=x)
    ...         ss.early.apply_changes(first.poll_early(timeout=None), second, source="sums")
    ...         print(second.poll_early(timeout=None).changes["highest"].to_pylist())
    [5]
    [5]
    [4, 9, 9]
    """
    instance("engine", engine, Engine, "an engine")
    text("order_by", order_by, "the name of a column")
    changes = answer.changes if isinstance(answer, EarlyAnswer) else answer
    check_changes(_CALL, changes, "changes", [order_by], "order_by")
    with _links_guard:
        link = _links.setdefault(engine, {}).setdefault(source, _Link(source, order_by))
    if link.order_by != order_by:
        raise ConfigurationError(
            f"{_CALL}: order_by={order_by!r}, and source {source!r} of {engine.name!r} had its "
            f"times from column {link.order_by!r} before; expected the same each time"
        )
    if isinstance(answer, EarlyAnswer):
        final_to = None if answer.final_up_to is None else answer.final_up_to[0]
        link.apply(engine, changes, answer.version, final_to)
    elif changes.num_rows:
        link.apply(engine, changes, pc.max(changes["version"]).as_py(), None)
