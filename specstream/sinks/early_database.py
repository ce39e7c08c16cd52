"""A table of a database, of what stands: the latest version of each row, final or not.

The rules are those of ``early_delta.py``. Here they are in the statements: a row is replaced by a
later version only, and an early one is taken in only where no row of a later time is final.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from specstream.columns.tables import in_utc, whole_microseconds
from specstream.declarations.options import function, one_of, refuses_unknown, shown
from specstream.early.latest import KEY
from specstream.engine.early_results import EarlyAnswer
from specstream.errors import ConfigurationError, SinkError
from specstream.sinks.delta_columns import check_names
from specstream.sinks.failing import check_begun_here, named, table_of_another_run
from specstream.sinks.kept_types import as_kept

__all__ = ["EarlyDatabaseSink", "early_database_sink"]

_ROWS = 10_000  # given to the driver at a time
_KEY = ", ".join(f'"{name}"' for name in KEY)
_KEY_OF_TIMER = ", ".join(f'"{name}"' for name in KEY if name != "source")
_IS_OF_TIMER = 'WHERE "source" IS NULL'
_TYPES = {
    "boolean": pa.bool_(),
    "smallint": pa.int16(),
    "integer": pa.int64(),  # SQLite's has 64 bits, and PostgreSQL refuses what is too large
    "bigint": pa.int64(),
    "numeric": pa.decimal256(76, 38),
    "real": pa.float32(),
    "double precision": pa.float64(),
    "text": pa.string(),
    "character varying": pa.string(),
    "varchar": pa.string(),
    "date": pa.date32(),
}


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
                if self._placeholder == "%s":
                    changes = whole_microseconds(changes)  # the server would round
                self._make(cursor, changes.schema, f"{self!r}, batch {batch_id}")
                self._check_columns(cursor, changes, f"{self!r}, batch {batch_id}")
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

    def _make(self, cursor: Any, schema: pa.Schema, what: str) -> None:
        if self._placeholder == "?":
            check_names(schema.names, what)
        columns = [f"{_quoted(field.name)} {self._type(field, what)}" for field in schema]
        cursor.execute(f"CREATE TABLE IF NOT EXISTS {self._name} ({', '.join(columns)})")
        # No primary key: a row of a timer has no source, and in SQL a null equals nothing.
        for unique, name, on in (
            ("UNIQUE ", "key", f"({_KEY})"),
            ("UNIQUE ", "timer", f"({_KEY_OF_TIMER}) {_IS_OF_TIMER}"),
            ("", "change", '("change", "timestamp")'),
        ):
            schema_name, table = self._parts
            index, of = _quoted(f"{table}_{name}"), self._name
            if self._placeholder == "?" and schema_name:
                # SQLite wants the schema before the index, and PostgreSQL before the table.
                index, of = f"{schema_name}.{index}", _quoted(table)
            cursor.execute(f"CREATE {unique}INDEX IF NOT EXISTS {index} ON {of} {on}")

    def _check_columns(self, cursor: Any, changes: pa.Table, what: str) -> None:
        """Whether the table, perhaps made before the operator changed, has all columns, in types
        that hold their values: SQLite stores what it can convert, and so does PostgreSQL."""
        schema, name = self._parts
        if self._placeholder == "%s":
            cursor.execute(
                "SELECT attname::text, format_type(atttypid, atttypmod) FROM pg_attribute "
                "WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped",
                [self._name],
            )
            said = dict(cursor.fetchall())
        else:
            at = f"{schema}." if schema else ""
            cursor.execute(f"PRAGMA {at}table_info({_quoted(name)})")
            said = {row[1]: row[2] for row in cursor.fetchall()}
        for field in changes.schema:
            if field.name not in said:
                raise SinkError(
                    f"{what}: the table has no column {field.name!r} (it has {', '.join(said)}): "
                    f"ALTER TABLE {self._name} ADD COLUMN {_quoted(field.name)} "
                    f"{self._type(field, what)}, or give an empty table of another name"
                )
        is_sqlite = self._placeholder == "?"
        kept = {name: arrow_type(of, is_sqlite=is_sqlite) for name, of in said.items()}
        as_kept(changes, {name: of for name, of in kept.items() if of is not None}, what, said)

    def _type(self, field: pa.Field, what: str) -> str:
        of, types = field.type, pa.types
        for is_such, name in (
            (types.is_boolean, "BOOLEAN"),
            (types.is_uint64, "NUMERIC(20)"),
            (types.is_integer, "BIGINT"),
            (types.is_floating, "DOUBLE PRECISION"),
            (types.is_string, "TEXT"),
            (types.is_date, "DATE"),
            (lambda of: self._placeholder == "%s" and types.is_decimal(of), "NUMERIC"),
        ):
            if is_such(of):
                return name
        if types.is_timestamp(of):
            return "TIMESTAMP WITH TIME ZONE" if of.tz else "TIMESTAMP"
        raise SinkError(
            f"{what}: column {field.name!r} is {of}, for which it knows no type of SQL: emit "
            "a number or a text"
        )

    def _merge(self, cursor: Any, changes: pa.Table) -> None:
        at, names = self._placeholder, changes.column_names
        columns = ", ".join(map(_quoted, names))
        values = ", ".join([at] * len(names))
        replaced = ", ".join(f"{c} = excluded.{c}" for c in map(_quoted, names) if c not in KEY)

        def upsert(rows: pa.Table) -> None:
            of_timer = rows["source"].is_null()
            for key, part in (
                (f"({_KEY})", rows.filter(pc.invert(of_timer))),
                (f"({_KEY_OF_TIMER}) {_IS_OF_TIMER}", rows.filter(of_timer)),
            ):
                for some in _rows(part):
                    cursor.executemany(
                        f"INSERT INTO {self._name} AS kept ({columns}) VALUES ({values}) "
                        f"ON CONFLICT {key} DO UPDATE SET {replaced} "
                        'WHERE excluded."version" > kept."version"',
                        some,
                    )

        is_early = pc.equal(changes["change"], "early")
        upsert(changes.filter(pc.invert(is_early)))
        early = changes.filter(is_early)
        cursor.execute(f"SELECT {self._last_final}")
        (last,) = cursor.fetchone()
        if last is not None:
            early = self._from(early, last)
        upsert(early)

    @staticmethod
    def _from(changes: pa.Table, last: Any) -> pa.Table:
        """The changes that are not from before a time, as the database has it."""
        times = changes["timestamp"]
        if isinstance(last, str):
            last = pa.array([last]).cast(times.type)[0]
        return changes.filter(pc.greater_equal(times, pa.scalar(last, times.type)))


def arrow_type(said: str, *, is_sqlite: bool = False) -> pa.DataType | None:
    """What a column of the database holds, by its type in a statement; None: unknown.

    >>> arrow_type("BIGINT"), arrow_type("character varying(9)"), arrow_type("box")
    (DataType(int64), DataType(string), None)
    >>> arrow_type("numeric(9,2)"), arrow_type("timestamp(6) with time zone")
    (Decimal128Type(decimal128(9, 2)), TimestampType(timestamp[us, tz=UTC]))
    """
    said = said.lower()
    name = said.partition("(")[0].strip()
    if name.startswith("timestamp"):
        return pa.timestamp("us", "UTC" if "with time zone" in said else None)
    if found := re.fullmatch(r"numeric\((\d+)(?:,\s*(\d+))?\)", said):
        return pa.decimal128(int(found[1]), int(found[2] or 0))
    if name == "real" and is_sqlite:
        return pa.float64()
    return _TYPES.get(name)


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
    no type for times, which are texts in UTC there, no NaN, which is NULL, and no -0.0, which is
    0.0; decimals are refused there.

    Args:
        connect: opens a connection; called for each batch.
        table: its name, perhaps with its schema; made with the first rows if it is not there.
        placeholder: of a value in the driver's statements: "?" for sqlite3, "%s" for psycopg.

    Raises:
        ConfigurationError: an option is not what it must be.
        SinkError: a batch cannot be written, or the table is of another query; names table and
            batch. Or a column is not in the table, or of a type there that does not hold its values
            exactly; names the column.

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
