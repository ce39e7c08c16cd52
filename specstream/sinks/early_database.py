"""A table of a database, of what stands: the latest version of each row, final or not.

The rules are those of ``early_delta.py``. Here they are in the statements: a row is replaced by a
later version only, and an early one is taken in only where no row of a later time is final.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from specstream.columns.tables import in_utc
from specstream.declarations.options import function, one_of, refuses_unknown, shown
from specstream.early.latest import KEY
from specstream.engine.early_results import EarlyAnswer
from specstream.errors import ConfigurationError, SinkError
from specstream.sinks.failing import check_begun_here, named, table_of_another_run

__all__ = ["EarlyDatabaseSink", "early_database_sink"]

_ROWS = 10_000  # given to the driver at a time


class EarlyDatabaseSink:
    """Keeps the latest version of each row in a table; see :func:`early_database_sink`, which
    explains ``connect`` and ``placeholder``.

    Attributes:
        table: its name.
    """

    @refuses_unknown
    def __init__(
        self, connect: Callable[[], Any], table: str, *, placeholder: Literal["?", "%s"] = "?"
    ) -> None:
        function("connect", connect, "a function () that opens a connection")
        if not isinstance(table, str) or not all(table.split(".")):
            raise ConfigurationError(
                f'table={shown(table)}: expected the name of a table, like "early" or "desk.early"'
            )
        one_of("placeholder", placeholder, ("?", "%s"))
        self.table = table
        self._connect = connect
        self._placeholder = placeholder
        self._name = ".".join(map(_quoted, table.split(".")))

    def __repr__(self) -> str:
        return f"early_database_sink({self.table!r})"

    def read(self) -> pa.Table | None:
        """The rows of the table, tombstones included; None: there are none. Values as the driver
        gives them; times are texts where the database has no type for them."""
        with self._cursor() as cursor:
            if not self._is_there(cursor):
                return None
            cursor.execute(f"SELECT * FROM {self._name}")
            names = [column[0] for column in cursor.description]
            rows = cursor.fetchall()
        columns = zip(*rows, strict=True)
        return pa.table(dict(zip(names, map(list, columns), strict=True))) if rows else None

    def check_first_batch(self, batch_id: int, *, is_new: bool) -> None:
        """Refuses a table that has rows of another run; ``batch_id`` and ``is_new`` are as of
        :meth:`ParquetSink.check_first_batch`."""
        if not is_new:
            return
        with named(self, batch_id), self._cursor() as cursor:
            newest = self._newest(cursor) if self._is_there(cursor) else None
            if newest is not None:
                raise table_of_another_run(self, batch_id, newest)

    def apply(self, answer: EarlyAnswer, batch_id: int) -> None:
        """Takes in the changes of one batch, an ``answer`` of ``poll_early``, in one transaction.
        ``batch_id`` is for messages."""
        with named(self, batch_id), self._cursor() as cursor:
            changes = answer.changes
            if not changes.num_rows and not self._is_there(cursor):
                return
            if changes.num_rows:
                self._make(cursor, changes.schema)
            if answer.reset:
                check_begun_here(self, batch_id, answer, self._newest(cursor))
            self._merge(cursor, changes)
            if answer.void_below is not None:
                at = self._placeholder
                cursor.execute(
                    f'UPDATE {self._name} SET "change" = \'withdrawn\', "version" = {at} '
                    f'WHERE "change" = \'early\' AND "version" < {at}',
                    [answer.void_below, answer.void_below],
                )
            # Nothing that is early comes from before a row that is final.
            cursor.execute(
                f"DELETE FROM {self._name} WHERE \"change\" = 'withdrawn' "
                f'AND "timestamp" < {self._last_final}'
            )

    @property
    def _last_final(self) -> str:
        return f'(SELECT max("timestamp") FROM {self._name} WHERE "change" = \'final\')'

    @contextlib.contextmanager
    def _cursor(self) -> Iterator[Any]:
        """Of a new connection: of one that was idle a server may have let go, and batches come on
        threads of Spark's own."""
        connection = self._connect()
        try:
            cursor = connection.cursor()
            yield cursor
            connection.commit()
        except BaseException:
            with contextlib.suppress(Exception):
                connection.rollback()  # the first error is the one to be seen
            raise
        finally:
            connection.close()

    def _is_there(self, cursor: Any) -> bool:
        """Whether the table is, asked in a way that no transaction fails of."""
        schema, name = self._parts
        listed = f"{schema}.sqlite_master" if schema else "sqlite_master"
        # SQLite takes names of either case for the same.
        found = f"SELECT name FROM {listed} WHERE name = ? COLLATE NOCASE", name
        if self._placeholder == "%s":
            found = "SELECT to_regclass(%s)", self._name
        question, name = found
        cursor.execute(question, [name])
        row = cursor.fetchone()
        return row is not None and row[0] is not None

    def _newest(self, cursor: Any) -> int | None:
        """The largest version in the table; None: it has no rows."""
        cursor.execute(f'SELECT max("version") FROM {self._name}')
        newest: int | None = cursor.fetchone()[0]
        return newest

    @property
    def _parts(self) -> tuple[str, str]:
        """The schema, as statements have it, or nothing; and the table's own name."""
        schema, _, name = self.table.rpartition(".")
        return ".".join(map(_quoted, schema.split("."))) if schema else "", name

    def _make(self, cursor: Any, schema: pa.Schema) -> None:
        columns = [f"{_quoted(field.name)} {self._type(field)}" for field in schema]
        columns.append(f"PRIMARY KEY ({', '.join(map(_quoted, KEY))})")
        cursor.execute(f"CREATE TABLE IF NOT EXISTS {self._name} ({', '.join(columns)})")
        schema, name = self._parts
        index, on = _quoted(f"{name}_change"), self._name
        if self._placeholder == "?" and schema:
            # SQLite wants the schema before the index, and PostgreSQL before the table.
            index, on = f"{schema}.{index}", _quoted(name)
        cursor.execute(f'CREATE INDEX IF NOT EXISTS {index} ON {on} ("change", "timestamp")')

    def _type(self, field: pa.Field) -> str:
        of, types = field.type, pa.types
        for is_such, name in (
            (types.is_boolean, "BOOLEAN"),
            (types.is_uint64, "NUMERIC(20)"),
            (types.is_integer, "BIGINT"),
            (types.is_floating, "DOUBLE PRECISION"),
            (types.is_string, "TEXT"),
            (types.is_date, "DATE"),
            (types.is_decimal, "NUMERIC"),
        ):
            if is_such(of):
                return name
        if types.is_timestamp(of):
            return "TIMESTAMP WITH TIME ZONE" if of.tz else "TIMESTAMP"
        raise SinkError(
            f"{self!r}: column {field.name!r} is {of}, for which it knows no type of SQL: emit "
            "a number or a text"
        )

    def _merge(self, cursor: Any, changes: pa.Table) -> None:
        at, names = self._placeholder, changes.column_names
        columns = ", ".join(map(_quoted, names))
        values = ", ".join([at] * len(names))
        replaced = ", ".join(f"{c} = excluded.{c}" for c in map(_quoted, names) if c not in KEY)
        upsert = (
            f"INSERT INTO {self._name} AS kept ({columns}) VALUES ({values}) "
            f"ON CONFLICT ({', '.join(map(_quoted, KEY))}) DO UPDATE SET {replaced} "
            'WHERE excluded."version" > kept."version"'
        )
        is_early = pc.equal(changes["change"], "early")
        for rows in _rows(changes.filter(pc.invert(is_early))):
            cursor.executemany(upsert, rows)
        early = changes.filter(is_early)
        cursor.execute(f"SELECT {self._last_final}")
        (last,) = cursor.fetchone()
        if last is not None:
            early = self._from(early, last)
        for rows in _rows(early):
            cursor.executemany(upsert, rows)

    @staticmethod
    def _from(changes: pa.Table, last: Any) -> pa.Table:
        """The changes that are not from before a time, as the database has it."""
        times = changes["timestamp"]
        if isinstance(last, str):
            last = pa.array([last]).cast(times.type)[0]
        return changes.filter(pc.greater_equal(times, pa.scalar(last, times.type)))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _rows(table: pa.Table) -> Iterator[Sequence[tuple[Any, ...]]]:
    """Rows as a driver takes them, in pieces; times as texts, which sort as the times do."""
    texts = [
        column.cast(pa.string())
        if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type)
        else column
        for column in in_utc(table).columns
    ]
    table = pa.table(texts, names=table.column_names)
    for batch in table.to_batches(max_chunksize=_ROWS):
        yield list(zip(*(column.to_pylist() for column in batch.columns), strict=True))


@refuses_unknown
def early_database_sink(
    connect: Callable[[], Any], table: str, *, placeholder: Literal["?", "%s"] = "?"
) -> EarlyDatabaseSink:
    """A sink for ``early_to=``: a table of the latest version of each row, through DB-API.

    Its columns are those of :meth:`specstream.Engine.poll_early`. A row is known by ``timestamp``,
    ``source``, ``sequence`` and ``n``; ``change`` says whether it is "early", "final" or
    "withdrawn". Withdrawn rows are tombstones: leave them out when you read the table. They are
    deleted when a row of a later time is final. Changes that come again, in whatever order, alter
    nothing; what a restart has made void is withdrawn. The table belongs to one query: one that
    begins anew needs an empty one.

    The statements are those that SQLite (3.24 or newer) and PostgreSQL have in common. SQLite has
    no type for times, which are texts in UTC there, and no NaN, which is NULL.

    Args:
        connect: opens a connection; called for each batch.
        table: its name, perhaps with its schema; made with the first rows if it is not there.
        placeholder: of a value in the driver's statements: "?" for sqlite3, "%s" for psycopg.

    Raises:
        ConfigurationError: an option is not what it must be.
        SinkError: a batch cannot be written, or the table is of another query; names table and
            batch.

    >>> import pyarrow as pa, sqlite3, tempfile, specstream as ss
    >>> from specstream.engine.early_results import EarlyAnswer
    >>> def told(version, *rows):
    ...     columns = ["timestamp", "source", "sequence", "n", "price", "change"]
    ...     table = pa.Table.from_pylist([dict(zip(columns, row)) for row in rows])
    ...     versions = pa.array([version] * len(rows))
    ...     return EarlyAnswer(table.append_column("version", versions), None, None, False, version)
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     sink = early_database_sink(lambda: sqlite3.connect(f"{directory}/desk"), "prices")
    ...     first = told(1, (5, "a", 0, 0, 2.5, "early"), (7, "b", 0, 0, 3.5, "early"))
    ...     sink.apply(first, 0)
    ...     sink.apply(told(2, (5, "a", 0, 0, 2.0, "final"), (7, "b", 0, 0, 3.5, "withdrawn")), 1)
    ...     sink.apply(first, 0)      # again
    ...     ss.sinks.latest(sink)["price"].to_pylist()
    [2.0]
    """
    return EarlyDatabaseSink(connect, table, placeholder=placeholder)
