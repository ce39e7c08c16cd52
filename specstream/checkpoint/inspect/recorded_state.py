"""The state of a stream at a batch, read from its checkpoint: for queries, notebooks, reports.

The checkpoint is read and nothing else. No operator is needed: the files say what the fields are.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

import pyarrow as pa

from specstream.checkpoint.inspect.recorded_batch import newest_state, state_after
from specstream.checkpoint.run.run_directory import recorded_store
from specstream.declarations.options import integer, refuses_unknown
from specstream.display.sheet import Sheet
from specstream.engine.snapshot_description import SnapshotDescription, describe_snapshot

__all__ = ["CheckpointState", "checkpoint_state"]


@dataclass(frozen=True, repr=False)
class CheckpointState(SnapshotDescription):
    """The state of a stream after a micro-batch.

    Attributes:
        state: the committed state, to be read as ``engine.state``.
        next_sequence: number of the next event of ``process``.
        pending: events that wait for the frontier of their source.
        rejected_rows: rejected rows that nobody has fetched.
        failed_events: failed events that nobody has fetched.
        strings: texts in the string table.
        size: of the state with all that, as a snapshot, in bytes.
        batch_id: the batch.
        operator: name of the operator.
        query: id of Spark's query; None: the batch was given by hand.
        finished: the stream has ended with the batch.
        newest_batch: the last batch that has a file, whole or damaged; if a batch was asked for,
            that batch.
        damaged: where that is a later one, the files that cannot be used, each with the reason.
    """

    batch_id: int
    operator: str
    query: str | None
    finished: bool
    newest_batch: int
    damaged: tuple[str, ...] = ()

    def _sheet(self) -> Sheet:
        sheet = super()._sheet()
        ended = ", the last" if self.finished else ""
        facts = [("operator", self.operator), ("after batch", f"{self.batch_id:,}{ended}")]
        if self.damaged:
            facts.append(("newest batch", f"{self.newest_batch:,}, whose state cannot be had"))
            facts.append(("damaged", "; ".join(self.damaged)))
        return Sheet("Checkpoint", [*facts, *sheet.facts])

    @property
    def fields(self) -> list[str]:
        """Names of the fields, as they were declared."""
        return list(self.state.__dir__())  # dir() sorts them

    def tables(self) -> dict[str, pa.Table]:
        """All fields as Arrow tables, by name, as of :meth:`table`."""
        return {name: self.table(name) for name in self.fields}

    def table(self, field: str) -> pa.Table:
        """A field as an Arrow table, as ``engine.state.table(field)`` gives it.

        Raises:
            KeyError: the state has no such field.
        """
        return self.state.table(field)


@refuses_unknown
def checkpoint_state(
    checkpoint: str | os.PathLike[str], batch: int | None = None
) -> CheckpointState:
    """The state that a stream had after a micro-batch, from its checkpoint.

    No operator and no Spark is needed, nothing is written or locked, and the query may be running.

    Args:
        checkpoint: what ``foreach_batch(checkpoint=...)`` got, a path or a URI; or what
            ``specstream run --checkpoint`` got.
        batch: id of a batch whose files are still there: ``specstream checkpoint list`` lists
            these, and ``keep_batches=`` keeps more. None: the newest that is whole; where that is
            not the newest of all, ``damaged`` says why.

    Returns:
        The state, to be read as ``engine.state``, or as Arrow tables by field.

    Raises:
        ConfigurationError: there is no such directory, or no file of the batch; says which batches
            there are.
        SnapshotError: a file that the batch needs is damaged; names it, and says which batches
            there are.

    ::

        found = ss.checkpoint_state("/data/top/checkpoint", batch=12)
        found.state.total, found.table("counts")
    """
    store = recorded_store(checkpoint)
    wanted = None if batch is None else integer("batch", batch, 0)
    damaged: tuple[str, ...] = ()
    if wanted is None:
        chain, newest = newest_state(store)
        last, damaged = newest.newest, tuple(newest.damaged)
    else:
        chain = state_after(store, wanted)
        last = wanted
    about = chain.last.about
    held = describe_snapshot(chain.snapshot())
    return CheckpointState(
        held.state,
        held.next_sequence,
        held.pending,
        held.rejected_rows,
        held.failed_events,
        held.strings,
        held.size,
        about.batch_id,
        about.operator,
        about.query,
        about.finished,
        about.batch_id if last is None else last,
        damaged,
    )
