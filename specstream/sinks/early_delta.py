"""A Delta table of what stands: the latest version of each row, final or not.

A row that was withdrawn stays as a tombstone, so that an older version of it, which comes again,
does not bring it back. When a row with a later time is final, nothing early can come before it any
more: then the tombstone goes, and what comes from before is refused.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from specstream.declarations.options import instance, place, refused, refuses_unknown
from specstream.early.latest import KEY
from specstream.engine.early_results import EarlyAnswer
from specstream.errors import ConfigurationError
from specstream.files.places import is_uri
from specstream.sinks.delta import place_of, to_disk
from specstream.sinks.delta_columns import as_delta, check_names
from specstream.sinks.failing import check_begun_here, named, table_of_another_run

__all__ = ["EarlyDeltaSink", "early_delta_sink"]


class EarlyDeltaSink:
    """Keeps the latest version of each row in a Delta table; see :func:`early_delta_sink`, which
    explains ``storage_options``.

    Attributes:
        path: path or URI of the table.
    """

    @refuses_unknown
    def __init__(
        self, path: str | os.PathLike[str], *, storage_options: Mapping[str, str] | None = None
    ) -> None:
        try:
            import deltalake  # noqa: F401
        except ImportError as error:
            raise ConfigurationError(
                'early_delta_sink needs the package deltalake: pip install "specstream[delta]"'
            ) from error
        if storage_options is not None:
            instance("storage_options", storage_options, Mapping, texts := "a dict of texts")
            if not all(isinstance(t, str) for item in storage_options.items() for t in item):
                raise refused("storage_options", storage_options, texts)
        self.path = place("path", path)
        self._storage_options = dict(storage_options or {})

    def __repr__(self) -> str:
        return f"early_delta_sink({self.path!r})"

    @property
    def place(self) -> str:
        """Equal for two sinks of one table."""
        return place_of(self.path)

    def read(self) -> pa.Table | None:
        """The rows of the table, tombstones included; None: there is no table yet."""
        table = self._table()
        return None if table is None else _without_views(table.to_pyarrow_table())

    def check_first_batch(self, batch_id: int, *, is_new: bool) -> None:
        """Refuses a table that has rows of another run; ``batch_id`` and ``is_new`` are as of
        :meth:`ParquetSink.check_first_batch`."""
        if not is_new:
            return
        with named(self, batch_id):
            known = self._table()
            newest = None if known is None else _newest(known)
            if newest is not None:
                raise table_of_another_run(self, batch_id, newest)

    def apply(self, answer: EarlyAnswer, batch_id: int) -> None:
        """Takes in the changes of one batch, an ``answer`` of ``poll_early``; ``batch_id`` is for
        messages."""
        with named(self, batch_id):
            known = self._table()
            first = 0 if known is None else known.version() + 1
            what = f"{self!r}, batch {batch_id}"
            changes = answer.changes
            if changes.num_rows:  # those without rows know no types of times and sources
                check_names(changes.column_names, what)
                changes = as_delta(changes, known, what)
            if known is None:
                if not changes.num_rows:
                    return
                known = self._made(changes)
            elif answer.reset:
                check_begun_here(self, batch_id, answer, _newest(known))
            if changes.num_rows:
                self._merge(known, self._possible(known, changes))
            if answer.void_below is not None:
                known.update(
                    predicate=f"change = 'early' AND version < {answer.void_below}",
                    updates={"change": "'withdrawn'", "version": str(answer.void_below)},
                )
            self._bury(known, changes)
            if not is_uri(self.path):
                to_disk(Path(self.path), first)

    def _table(self) -> Any:
        from deltalake import DeltaTable

        if not DeltaTable.is_deltatable(self.path, self._storage_options):
            return None
        return DeltaTable(self.path, storage_options=self._storage_options)

    def _made(self, changes: pa.Table) -> Any:
        from deltalake import DeltaTable, write_deltalake

        write_deltalake(self.path, changes.slice(0, 0), storage_options=self._storage_options)
        return DeltaTable(self.path, storage_options=self._storage_options)

    @staticmethod
    def _possible(known: Any, changes: pa.Table) -> pa.Table:
        """Without early rows from before one that is final."""
        is_early = pc.equal(changes["change"], "early")
        first = pc.min(changes["timestamp"].filter(is_early))
        if not first.is_valid:
            return changes
        # The statistics of its files tell most of them apart.
        later = known.to_pyarrow_dataset().to_table(
            ["timestamp", "change"], filter=pc.field("timestamp") > first
        )
        is_final = pc.equal(later["change"].cast(pa.string()), "final")
        last = pc.max(later["timestamp"].filter(is_final))
        if not last.is_valid:
            return changes
        last = last.cast(changes["timestamp"].type)
        return changes.filter(
            pc.or_(pc.invert(is_early), pc.greater_equal(changes["timestamp"], last))
        )

    @staticmethod
    def _merge(known: Any, changes: pa.Table) -> None:
        if not changes.num_rows:
            return
        # A row of a timer has no source, and in SQL a null equals nothing.
        same = " AND ".join(
            f'(told."{name}" = kept."{name}" OR told."{name}" IS NULL AND kept."{name}" IS NULL)'
            if name == "source"
            else f'told."{name}" = kept."{name}"'
            for name in KEY
        )
        # So that files of earlier rows need not be read.
        first = _literal(pc.min(changes["timestamp"]))
        (
            known.merge(
                changes,
                f'{same} AND kept."timestamp" >= {first}',
                source_alias="told",
                target_alias="kept",
            )
            .when_matched_update_all("told.version > kept.version")
            .when_not_matched_insert_all()
            .execute()
        )

    @staticmethod
    def _bury(known: Any, changes: pa.Table) -> None:
        """Removes the tombstones from before a row that is final by now."""
        is_final = pc.equal(changes["change"], "final")
        last = pc.max(changes["timestamp"].filter(is_final))
        if last.is_valid:
            known.delete(f"change = 'withdrawn' AND \"timestamp\" < {_literal(last)}")


def _newest(table: Any) -> int | None:
    """The largest version in a table; None: it has no rows."""
    versions = table.to_pyarrow_dataset().to_table(["version"])["version"]
    newest: int | None = pc.max(versions).as_py()
    return newest


def _without_views(table: pa.Table) -> pa.Table:
    """Texts as those of other tables are."""
    fields: list[Any] = [
        field.with_type(pa.string()) if pa.types.is_string_view(field.type) else field
        for field in table.schema
    ]
    return table.cast(pa.schema(fields))


def _literal(time: pa.Scalar) -> str:
    """A time as SQL has it."""
    of = time.type
    if pa.types.is_timestamp(of):
        zone = 'Some("UTC")' if of.tz else "None"
        return f"arrow_cast('{time.cast(pa.string())}', 'Timestamp(Microsecond, {zone})')"
    if pa.types.is_date(of):
        return f"DATE '{time.as_py()}'"
    return repr(time.as_py())


@refuses_unknown
def early_delta_sink(
    path: str | os.PathLike[str], *, storage_options: Mapping[str, str] | None = None
) -> EarlyDeltaSink:
    """A sink for ``early_to=``: a Delta table of the latest version of each row.

    Its columns are those of :meth:`specstream.Engine.poll_early`. A row is known by ``timestamp``,
    ``source``, ``sequence`` and ``n``; ``change`` says whether it is "early", "final" or
    "withdrawn". Withdrawn rows are tombstones: leave them out when you read the table. They are
    deleted when a row of a later time is final. Changes that come again, in whatever order, alter
    nothing; what a restart has made void is withdrawn.

    Each batch is a merge, and sometimes an update and a deletion: compact and vacuum the table from
    time to time, as any table that is merged into. It belongs to one query: one that begins anew
    needs an empty one. Needs the package deltalake (``pip install "specstream[delta]"``).

    Args:
        path: path or URI of the table, made with the first rows if it is not there.
        storage_options: credentials and the like, as deltalake takes them.

    Raises:
        ConfigurationError: deltalake is not installed, or an option is not what it must be.
        SinkError: a batch cannot be written, or the table is of another query; names table and
            batch. Or a column is not in the table, or of a type there that does not hold its values
            exactly, or has a name that differs from another only in upper and lower case, or has a
            backtick in it; names the column.

    >>> import pyarrow as pa, tempfile, specstream as ss
    >>> from specstream.engine.early_results import EarlyAnswer
    >>> def told(version, *rows):
    ...     columns = ["timestamp", "source", "sequence", "n", "price", "change"]
    ...     table = pa.Table.from_pylist([dict(zip(columns, row)) for row in rows])
    ...     versions = pa.array([version] * len(rows))
    ...     return EarlyAnswer(table.append_column("version", versions), None, None, False, version)
    >>> with tempfile.TemporaryDirectory() as path:
    ...     sink = early_delta_sink(path)
    ...     first = told(1, (5, "a", 0, 0, 2.5, "early"), (7, "b", 0, 0, 3.5, "early"))
    ...     sink.apply(first, 0)
    ...     sink.apply(told(2, (5, "a", 0, 0, 2.0, "final"), (7, "b", 0, 0, 3.5, "withdrawn")), 1)
    ...     sink.apply(first, 0)      # again
    ...     ss.sinks.latest(sink)["price"].to_pylist()
    [2.0]
    """
    return EarlyDeltaSink(path, storage_options=storage_options)
