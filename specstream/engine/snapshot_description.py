"""What a snapshot holds, described without an engine."""

from __future__ import annotations

from dataclasses import dataclass, replace

from specstream.columns.failed_events import FailedEvents
from specstream.columns.rejected_rows import RejectedRows
from specstream.declarations.options import refuses_unknown
from specstream.declarations.state_view import StateView
from specstream.display.sheet import Sheet
from specstream.display.values import size
from specstream.engine.packed_pending import unpacked
from specstream.engine.snapshot import Snapshot, refused

__all__ = ["SnapshotDescription", "describe_snapshot"]


@dataclass(frozen=True, repr=False)
class SnapshotDescription:
    """What a snapshot holds.

    Attributes:
        state: the committed state, to be read as ``engine.state``.
        next_sequence: number of the next event of ``process``.
        pending: submitted events that are not committed.
        rejected_rows: rejected rows that nobody has fetched.
        failed_events: failed events that nobody has fetched.
        strings: texts in the string table.
        size: of the snapshot, in bytes.
    """

    state: StateView
    next_sequence: int
    pending: int
    rejected_rows: int
    failed_events: int
    strings: int
    size: int

    def __repr__(self) -> str:
        return f"{self._sheet().text()}\n{self.state!r}"

    def _repr_html_(self) -> str:
        return self._sheet().html() + self.state._repr_html_()

    def _sheet(self) -> Sheet:
        facts = [
            ("size", size(self.size)),
            ("next sequence number", f"{self.next_sequence:,}"),
            ("pending events", f"{self.pending:,}"),
            ("rejected rows", f"{self.rejected_rows:,}"),
            ("failed events", f"{self.failed_events:,}"),
            ("strings", f"{self.strings:,}"),
        ]
        return Sheet("Snapshot", facts)


@refuses_unknown
def describe_snapshot(snapshot: bytes) -> SnapshotDescription:
    """What a snapshot holds: its state, and how much of what else. No operator is needed.

    Args:
        snapshot: what :meth:`specstream.Engine.snapshot` returned. All of it is checked, but not
            whether it fits an operator.

    Raises:
        SnapshotError: it is damaged or no snapshot.

    >>> import specstream as ss
    >>> class Seen(ss.State):
    ...     count = ss.scalar(int)
    ...     last = ss.dict(str, int)
    >>> @ss.operator(state=Seen, event={"name": str, "x": int})
    ... def seen(state, event, emit):
    ...     state.count += 1
    ...     state.last[event.name] = event.x
    >>> with ss.Engine(seen) as engine:
    ...     _ = engine.process({"name": ["a", "b", "a"], "x": [1, 2, 3]})
    ...     held = ss.describe_snapshot(engine.snapshot())
    >>> held.state.last, held.next_sequence
    ({'a': 3, 'b': 2}, 3)
    """
    what = "describe_snapshot()"
    content = Snapshot.as_saved(snapshot, what)
    with refused(what):
        strings = content.table(())
        pending = unpacked(content.pending).events.num_rows if content.pending else 0
        rejected = RejectedRows.read(content.rejected_rows)
        failed = FailedEvents.read(content.failed_events)
    layout = content.state.layout
    # Only fields of a pipeline's vertices have a dot in their names.
    parts = dict.fromkeys(one.name.partition(".")[0] for one in layout.fields if "." in one.name)
    layout = replace(layout, parts=tuple(parts))
    return SnapshotDescription(
        StateView(layout, content.state, strings.objects),
        content.next_sequence,
        pending,
        sum(table.num_rows for table in rejected),
        sum(table.num_rows for table in failed),
        len(strings),
        memoryview(snapshot).nbytes,
    )
