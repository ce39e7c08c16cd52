"""Events that are submitted to an engine out of order, and what is said of them and their sources.

Each call is checked, changes the pending events or leaves them as they were, and has the open job
take the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from specstream.columns.events import column, sequence_numbers
from specstream.declarations.options import flag, integer, refused, text
from specstream.engine.open_job import OpenJob
from specstream.engine.parts import Parts
from specstream.engine.pending_events import Numbers, RollbackPoint
from specstream.engine.segments import Segment
from specstream.engine.sources import Name, Source
from specstream.engine.string_sweep import StringSweep
from specstream.errors import ConfigurationError, InputError

__all__ = ["Submitter"]


class Submitter:
    """Takes events of one engine. The public calls are documented at :class:`specstream.Engine`.

    Args:
        parts: of the engine.
        job: its open job.
        sweep: of its strings, for which each call is an occasion.
    """

    def __init__(self, parts: Parts, job: OpenJob, sweep: StringSweep) -> None:
        self._parts = parts
        self._lifetime = parts.lifetime
        self._committed = parts.committed
        self._job = job
        self._sweep = sweep

    def submit(
        self,
        table: Any,
        *,
        order_by: str,
        source: Name | None = None,
        source_column: str | None = None,
        ordered: bool = False,
        final: bool = True,
        sequence_by: str | None = None,
    ) -> None:
        """See :meth:`specstream.Engine.submit`."""
        order_by = text("order_by", order_by, "the name of a column")  # type: ignore[assignment]
        source_column = column("source_column", source_column)
        ordered = flag("ordered", ordered)
        if order_by is None:
            raise refused("order_by", order_by, "the name of a column: the time of the events")
        if source is not None and source_column is not None:
            raise ConfigurationError(
                "source and source_column were both given: name the one source of the table, or "
                "the column that names each row's"
            )
        if source is None:
            source_column = self._parts.operator.source_column(source_column)
        numbers = self._numbers(table, flag("final", final), sequence_by, ordered)
        with self._lifetime.exclusive():
            self._sweep.sweep_if_due()
            pending = self._committed.pending
            self._take(
                pending.rollback_point(),
                lambda: pending.read(
                    self._parts.operator.events_table(
                        table, f"operator {self._parts.name!r}", (order_by, source_column), source
                    ),
                    order_by,
                    0 if source is None and source_column is None else source,
                    source_column,
                    ordered,
                    numbers,
                ),
            )
            self._job.send()

    def _numbers(
        self, table: Any, final: bool, sequence_by: str | None, ordered: bool
    ) -> Numbers | None:
        """Sequence numbers of tentative events; None: they are not tentative."""
        sequence_by = column("sequence_by", sequence_by)
        if final:
            if sequence_by is not None:
                raise ConfigurationError(
                    "sequence_by= numbers tentative events: leave it out, or give final=False"
                )
            return None
        self._check_tentative("final=False", ordered)
        if sequence_by is None:
            return ()
        return sequence_numbers(table, sequence_by, f"operator {self._parts.name!r}")

    def _check_tentative(self, what: str, ordered: bool = False) -> None:
        if not self._parts.options.early:
            raise ConfigurationError(
                f"{what}: tentative events are for engines with early results; expected "
                "Engine(..., early=True)"
            )
        if ordered:
            raise ConfigurationError(
                "ordered=True says that nothing earlier comes, and of a tentative event another "
                "version may: leave it out, and advance() the source"
            )

    def submit_event(
        self,
        timestamp: Any,
        source: Name,
        ordered: bool,
        values: Mapping[str, Any],
        final: bool = True,
        sequence: int | None = None,
    ) -> None:
        """See :meth:`specstream.Engine.submit_event`."""
        if ordered is not False and ordered is not True:
            ordered = flag("ordered", ordered)
        if final is not True or sequence is not None:
            number = self._number(flag("final", final), sequence, ordered)
        else:
            number = None
        values = self._parts.operator.event_values(source, values)
        with self._lifetime.exclusive():
            self._sweep.sweep_if_due()
            pending = self._committed.pending
            self._take(
                pending.rollback_point(source),
                lambda: pending.read_event(source, timestamp, values, ordered, number),
            )
            self._job.send()

    def _number(self, final: bool, sequence: int | None, ordered: bool) -> int | None:
        """Of a tentative event, or -1 for the next one; None: it is not tentative."""
        if final:
            if sequence is None:
                return None
            raise ConfigurationError(
                f"sequence={sequence!r} numbers a tentative event; expected final=False with it"
            )
        self._check_tentative("final=False", ordered)
        return -1 if sequence is None else integer("sequence", sequence, 0, 2**62)

    def confirm(self, source: Name, up_to: int | None) -> None:
        """See :meth:`specstream.Engine.confirm`."""
        self._check_tentative("confirm")
        with self._lifetime.exclusive():
            pending = self._committed.pending
            known = self._known(source, "confirm")
            number = (
                known.next_sequence - 1
                if up_to is None
                else integer("up_to", up_to, -1, 2**62, " or None")
            )
            for segment in pending.tentative.confirmable(known, number):
                self._job.confirm(segment)
            pending.tentative.note_confirmed(known, number)
            self._job.send()

    def revise(self, source: Name, sequence: int, version: int, values: Mapping[str, Any]) -> None:
        """See :meth:`specstream.Engine.revise`."""
        self._check_tentative("revise")
        sequence = integer("sequence", sequence, 0, 2**62)
        version = integer("version", version, 1, 2**62)
        if not values:
            raise InputError(
                f"operator {self._parts.name!r}: revise of event {sequence} of source {source!r} "
                "changes no column; expected values, by the names of columns"
            )
        with self._lifetime.exclusive():
            pending = self._committed.pending
            known = self._known(source, "revise")
            old = pending.tentative.find(known, sequence, version)
            if old is None:
                return
            operator = self._parts.operator
            inside = operator.values_of(source, values)
            reads: Iterable[str] = operator.event.names
            # What a pipeline reads is told by vertex; and Python reads what no syntax shows.
            if not operator.sources and not operator.is_interpreted:
                reads = operator.explain().columns_read

            def revised() -> list[Segment]:
                return pending.revised(old, version, inside, reads)

            before = len(pending.unsent)
            self._take(pending.rollback_point(source), revised)
            if len(pending.unsent) == before:
                pending.tentative.note_version(old, version)
            self._job.send()

    def retract(self, source: Name, sequence: int) -> None:
        """See :meth:`specstream.Engine.retract`."""
        self._check_tentative("retract")
        sequence = integer("sequence", sequence, 0, 2**62)
        with self._lifetime.exclusive():
            pending = self._committed.pending
            old = pending.tentative.find(self._known(source, "retract"), sequence, None)
            if old is not None:
                self._job.withdraw(old)
                pending.tentative.note_retracted(old)
            self._job.send()

    def _known(self, source: Name, call: str) -> Source:
        known = self._committed.pending.sources.known(source)
        if known is None:
            names = ", ".join(repr(one.name) for one in self._committed.pending.sources) or "none"
            raise InputError(
                f"operator {self._parts.name!r}: {call}: nothing has come of source {source!r}; "
                f"known: {names}"
            )
        return known

    def _take(self, before: RollbackPoint, read: Callable[[], list[Segment]]) -> None:
        """Takes segments to be sent, or leaves all as it was before."""
        pending, lifetime = self._committed.pending, self._lifetime
        lifetime.unsettled = before.restore
        try:
            unsent = [*read(), *pending.unsent]
            pending.unsent, lifetime.unsettled = unsent, None  # at one go
        except BaseException:
            lifetime.settle()
            raise

    def advance(self, source: Name, to: Any = None) -> None:
        """See :meth:`specstream.Engine.advance`."""
        with self._lifetime.exclusive():
            pending = self._committed.pending
            before = pending.rollback_point(source)
            try:
                pending.times.advance(pending.sources.get(source), to)
            except BaseException:
                before.restore()
                raise
            self._job.send()
