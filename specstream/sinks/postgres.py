"""A table of PostgreSQL, to which each batch is one transaction.

Rows go there as Arrow has them, by ADBC, which copies them in binary. In the same transaction the
batch id is written down, in a table ``specstream_batches`` beside it. So a batch that comes again
is known, whatever became of the process that wrote it, or of the server; and a commit of which the
answer was lost is found done, or is done again.

The transaction is open while the batch is recorded, and nobody sees its rows (``delivery.py``).
Another process that is to write the batch, because it has taken over, waits for its end: the server
ends it where the writer was stopped, or its host is gone.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

import pyarrow as pa

from specstream.columns.tables import whole_microseconds
from specstream.declarations.options import number, refused, refuses_unknown, shown
from specstream.errors import ConfigurationError, SinkError
from specstream.files.tree import shown_uri
from specstream.sinks.failing import of_another_run
from specstream.sinks.postgres_types import (
    NAME_BYTES,
    Column,
    as_table,
    columns_of,
    identifier,
    is_name,
)

__all__ = ["PostgresSink", "PreparedRows", "postgres_sink"]

Of = TypeVar("Of")

BATCHES = "specstream_batches"
_COMES_AGAIN = (
    "the batch is not acknowledged, and comes again when the query is started again: correct the "
    "cause first"
)
_PAUSES = 0.1, 2.0  # in seconds, the first and the longest one
# By SQLSTATE, or its first letters: no connection, a server that ends or begins or has too many,
# transactions that are in each other's way, or were open for too long; and two that make one table
# at the same moment.
_LOCKED = "55P03"
_PASSES = ("08", "57P0", "53300", "40001", "40P01", "25P03", "42P07", _LOCKED)
# Settings of the transaction that has the rows. So long, in seconds, the server waits for a writer
# that does nothing (one that comes later writes the batch again), and asks its host whether it is
# there; so long the batch of another transaction is waited for before it is told.
_OPEN = {
    "idle_in_transaction_session_timeout": "30s",
    "tcp_keepalives_idle": "10s",
    "tcp_keepalives_interval": "10s",
    "tcp_keepalives_count": "3",
    "lock_timeout": "1s",
}
# A key that is there already: it passes where two make one table, or record one batch.
_UNIQUE, _OURS = "23505", re.compile(rf'constraint "(pg_|{BATCHES})\w*"')
# What only a person can change, in the answer to a connection, which has no SQLSTATE.
_STAYS = re.compile(
    "authentication failed|no password supplied|no pg_hba.conf entry|does not exist|"
    "invalid |could not translate host name|unrecognized|permission denied"
)
_HINTS = {
    "42501": "give the role the right to it (GRANT), or make the table for it",
    "3F000": "make the schema, or name another",
    "22021": "PostgreSQL's texts have no NUL character: leave it out of what is emitted",
    "23505": "emit rows whose key is not in the table yet, or drop the constraint",
    "23502": "give the column a default, allow nulls in it, or emit it",
    "53100": "make room on the server's disk",
}


class _Away(Exception):
    """The server cannot be had now; it may be later."""


class PostgresSink:
    """Appends each batch to a table of PostgreSQL; see :func:`postgres_sink`, which explains
    ``uri`` and ``retry``.

    Attributes:
        table: its name.
        app_id: names the writer in the table of batches.
    """

    @refuses_unknown
    def __init__(
        self, uri: str, table: str, *, app_id: str = "specstream", retry: float = 60.0
    ) -> None:
        try:
            import adbc_driver_postgresql.dbapi  # noqa: F401
        except ImportError as error:
            raise ConfigurationError(
                "postgres_sink needs the package adbc-driver-postgresql: "
                'pip install "specstream[postgres]"'
            ) from error
        is_one = isinstance(uri, str) and uri.startswith(("postgresql://", "postgres://"))
        if not is_one:
            # What was given may have a password in it.
            raise ConfigurationError(
                "uri: expected one like postgresql://user@host:5432/database, and not "
                + (f"a {type(uri).__name__}" if not isinstance(uri, str) else "what was given")
                + "; a password is best in PGPASSWORD or ~/.pgpass"
            )
        expected = 'the name of a table, like "rows" or "desk.rows"'
        if not isinstance(table, str) or not all(parts := table.split(".")) or len(parts) > 2:
            raise refused("table", table, expected)
        if not all(map(is_name, parts)):
            raise refused(
                "table",
                table,
                f"{expected}, each part of at most {NAME_BYTES} bytes, none of them 0",
            )
        if not isinstance(app_id, str) or not app_id:
            raise ConfigurationError(
                f"app_id={shown(app_id)}: expected a name for this query, of which it is the only "
                f"user, in the table {BATCHES}"
            )
        self.table = table
        self.app_id = app_id
        self._retry = number("retry", retry, 0, 86_400, "seconds, up to 86400")
        self._schema: str | None = parts[0] if len(parts) == 2 else None
        self._name: str = parts[-1]
        self._uri = uri if "connect_timeout" in uri else f"{uri}{_more(uri)}connect_timeout=10"
        self._secrets = _secrets_of(uri)
        self.shown = self._scrubbed(shown_uri(uri))

    def __repr__(self) -> str:
        return f"postgres_sink({self.shown!r}, {self.table!r})"

    @property
    def place(self) -> tuple[str, str, str]:
        """Equal for two sinks that the table of batches cannot distinguish."""
        return self.shown, self.table, self.app_id

    def __call__(self, table: pa.Table, batch_id: int) -> None:
        """Appends the rows of one batch, unless the table has that batch."""
        self.prepare(table, batch_id).commit()

    def prepare(self, table: pa.Table, batch_id: int) -> PreparedRows:
        """Writes ``table``, the rows of batch ``batch_id``, in a transaction that is left open;
        ``commit()`` ends it.

        Raises:
            SinkError: they cannot be written; nothing is left of them.
        """
        return PreparedRows(self, table, batch_id, self._opened(table, batch_id))

    def check_first_batch(self, batch_id: int, *, is_new: bool) -> None:
        """Refuses a table that has batches of another run; ``batch_id`` and ``is_new`` are as of
        :meth:`ParquetSink.check_first_batch`."""
        last = self._trying(self._last, batch_id)
        if last is not None and (is_new or last > batch_id):
            raise SinkError(f"{self!r}, batch {batch_id}: {self._of_another_run(last)}")

    def _last(self) -> int | None:
        """The last batch that the table has; None: it has none."""
        from adbc_driver_postgresql import dbapi

        with self._told(connecting=True):
            connection = dbapi.connect(self._uri)
        with contextlib.closing(connection), self._told(), connection.cursor() as cursor:
            if not self._is_there(cursor, BATCHES):
                return None
            cursor.execute(f"SELECT max(batch_id) FROM {self._quoted(BATCHES)} WHERE {self._own}")
            last: int | None = cursor.fetchone()[0]
            return last

    def _of_another_run(self, last: int) -> str:
        return of_another_run(
            f"the table has batch {last} of app_id={self.app_id!r}",
            "a table without its rows, and another app_id=",
        )

    def _opened(self, table: pa.Table, batch_id: int) -> Any | None:
        """A connection with the rows in an open transaction; None: the table has the batch."""
        return self._trying(lambda: self._written(table, batch_id), batch_id)

    def _deliver(self, opened: Any | None, table: pa.Table, batch_id: int) -> None:
        left = [opened]

        def attempt() -> None:
            # The transaction that was left open is tried once. Whether it was committed when the
            # server went away, the table of batches says.
            connection = left.pop() if left else self._written(table, batch_id)
            if connection is not None:
                with contextlib.closing(connection), self._told():
                    connection.commit()

        self._trying(attempt, batch_id)

    def _trying(self, attempt: Callable[[], Of], batch_id: int) -> Of:
        """What a function returns, which is called again while the server is away."""
        until = time.monotonic() + self._retry
        pause = _PAUSES[0]
        while True:
            try:
                return attempt()
            except _Away as error:
                text = str(error)
            except SinkError as error:
                raise SinkError(f"{self!r}, batch {batch_id}: {error}") from None
            if time.monotonic() + pause > until:
                raise SinkError(
                    f"{self!r}, batch {batch_id}: the server could not be had for "
                    f"{self._retry:g} s ({text}). Start it, or see that it can be reached; "
                    f"{_COMES_AGAIN}. retry= says how long a batch waits"
                ) from None
            time.sleep(pause)
            pause = min(2 * pause, _PAUSES[1])

    def _written(self, table: pa.Table, batch_id: int) -> Any | None:
        from adbc_driver_postgresql import dbapi

        with self._told(connecting=True):
            connection = dbapi.connect(self._uri)
        try:
            columns = columns_of(table.schema)
            with self._told(), connection.cursor() as cursor:
                # By itself: another sink of the batch waits for what this one makes, and this one
                # is not committed before that.
                self._make(cursor, columns)
                connection.commit()
                has_it = self._has(cursor, batch_id)
                rows = self._fitting(cursor, columns, table)
                if rows.num_rows and not has_it:
                    cursor.adbc_ingest(self._name, rows, mode="append", db_schema_name=self._schema)
            if not has_it:
                return connection
            connection.close()
            return None
        except BaseException:
            with contextlib.suppress(Exception):
                connection.close()  # and so the transaction
            raise

    def _make(self, cursor: Any, columns: Sequence[Column]) -> None:
        """Makes the tables that are not there."""
        if not self._is_there(cursor, BATCHES):
            cursor.execute(
                f"CREATE TABLE IF NOT EXISTS {self._quoted(BATCHES)} (table_name text, "
                "app_id text, batch_id bigint NOT NULL, written timestamptz NOT NULL, "
                "PRIMARY KEY (table_name, app_id))"
            )
        if not self._is_there(cursor, self._name):
            cursor.execute(f"SELECT max(batch_id) FROM {self._quoted(BATCHES)} WHERE {self._own}")
            (last,) = cursor.fetchone()
            if last is not None:
                raise SinkError(
                    f"the table is not there any more, and {BATCHES} has its batch {last} of "
                    f"app_id={self.app_id!r}: put it back; or, to go on without the rows of "
                    "earlier batches, make an empty one (CREATE TABLE). A query that is begun "
                    "anew takes another app_id="
                )
            made = ", ".join(f"{identifier(one.name)} {one.type}" for one in columns)
            cursor.execute(f"CREATE TABLE IF NOT EXISTS {self._quoted(self._name)} ({made})")

    def _has(self, cursor: Any, batch_id: int) -> bool:
        """Whether the table has the batch; if not, that it has is written down.

        Another process that writes the same batch waits here until this one has committed.

        Raises:
            SinkError: it has a later one.
        """
        batches, own = self._quoted(BATCHES), (_literal(self._name), _literal(self.app_id))
        settings = (f"set_config('{name}', '{value}', true)" for name, value in _OPEN.items())
        cursor.execute(f"SELECT {', '.join(settings)}")
        cursor.execute(
            f"INSERT INTO {batches} VALUES ({own[0]}, {own[1]}, -1, now()) ON CONFLICT DO NOTHING"
        )
        cursor.execute(f"SELECT batch_id FROM {batches} WHERE {self._own} FOR UPDATE")
        (last,) = cursor.fetchone()
        cursor.execute("SET LOCAL lock_timeout TO DEFAULT")  # not of who changes the table
        if last > batch_id:
            raise SinkError(self._of_another_run(last))
        if last == batch_id:
            return True
        cursor.execute(
            f"UPDATE {batches} SET batch_id = {batch_id:d}, written = now() WHERE {self._own}"
        )
        return False

    def _fitting(self, cursor: Any, columns: Sequence[Column], table: pa.Table) -> pa.Table:
        """The rows in the types of the columns of the table."""
        cursor.execute(
            "SELECT a.attname::text, t.typname || coalesce(substring("
            r"format_type(a.atttypid, a.atttypmod) from '\([0-9,]+\)'), '') FROM pg_attribute a "
            "JOIN pg_type t ON t.oid = a.atttypid "
            f"WHERE a.attrelid = to_regclass({_literal(self._quoted(self._name))}) "
            "AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"
        )
        there = dict(cursor.fetchall())
        return as_table(whole_microseconds(table), columns, there, f"table {self.table!r}")

    def _is_there(self, cursor: Any, name: str) -> bool:
        cursor.execute(f"SELECT to_regclass({_literal(self._quoted(name))}) IS NOT NULL")
        return bool(cursor.fetchone()[0])

    @property
    def _own(self) -> str:
        """Which row of the table of batches is this writer's."""
        return f"table_name = {_literal(self._name)} AND app_id = {_literal(self.app_id)}"

    def _quoted(self, name: str) -> str:
        schema = "" if self._schema is None else f"{identifier(self._schema)}."
        return schema + identifier(name)

    # ---- what goes wrong ----

    @contextlib.contextmanager
    def _told(self, *, connecting: bool = False) -> Iterator[None]:
        """What the driver raises becomes a SinkError, or _Away where it may pass; without the
        password, which is in some of the driver's messages."""
        from adbc_driver_manager import Error

        try:
            yield
        except Error as error:
            text = self._scrubbed(" ".join(str(error).split()))
            state = (error.sqlstate or "").strip("\0")
            is_lost = not state and error.status_code.name in ("IO", "UNKNOWN", "CANCELLED")
            passes = state.startswith(_PASSES)
            passes = passes or (state == _UNIQUE and _OURS.search(text) is not None)
            if state == _LOCKED:
                text = f"another process has a batch of app_id={self.app_id!r} under way: {text}"
            if passes or (is_lost and not (connecting and _STAYS.search(text))):
                raise _Away(text) from None
            hint = _HINTS.get(state, "correct the URI, or the server's settings")
            if not connecting and state not in _HINTS:
                hint = "correct the cause"
            raise SinkError(f"{text}: {hint}; {_COMES_AGAIN}") from None
        except (pa.ArrowException, OSError) as error:
            raise SinkError(f"{self._scrubbed(str(error))}; {_COMES_AGAIN}") from None

    def _scrubbed(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text


class PreparedRows:
    """Rows of a batch in an open transaction; made by :meth:`PostgresSink.prepare`."""

    def __init__(
        self, sink: PostgresSink, table: pa.Table, batch_id: int, opened: Any | None
    ) -> None:
        self._sink, self._table, self._batch_id, self._opened = sink, table, batch_id, opened

    def commit(self) -> None:
        """Makes them visible; where the server has gone meanwhile, writes them once more.

        Raises:
            SinkError: it cannot be.
        """
        opened, self._opened = self._opened, None
        self._sink._deliver(opened, self._table, self._batch_id)

    def abort(self) -> None:
        """Ends the transaction: nothing was written."""
        opened, self._opened = self._opened, None
        if opened is not None:
            with contextlib.suppress(Exception):  # a server that is gone has no transaction
                opened.close()


def _more(uri: str) -> str:
    return "&" if "?" in uri else "?"


def _secrets_of(uri: str) -> list[str]:
    """The passwords in a URI, as they are written there and as they are meant; longest first."""
    found = set(re.findall(r"[?&](?:ssl)?password=([^&]*)", uri))
    with contextlib.suppress(ValueError):
        user, at, _ = urlsplit(uri).netloc.rpartition("@")
        if at and ":" in user:
            found.add(user.partition(":")[2])
    found |= {unquote(one) for one in found}
    return sorted(filter(None, found), key=len, reverse=True)


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


@refuses_unknown
def postgres_sink(
    uri: str, table: str, *, app_id: str = "specstream", retry: float = 60.0
) -> PostgresSink:
    """A sink that appends to a table of PostgreSQL, each batch in one transaction, exactly once.

    The batch id is written in the same transaction, in a table ``specstream_batches`` beside it, so
    a batch that comes again changes nothing. Rows are copied as Arrow has them. Needs the packages
    of ``pip install "specstream[postgres]"``; neither Spark nor Java is used.

    The table is made with the first batch, by the types of the rows, if it is not there. One that
    is there may have more columns, if they have defaults or take nulls, and wider numbers; none of
    less precision, as PostgreSQL would round. Rows with a column of Arrow's lists, structs, maps,
    unions, durations, intervals, fixed-size binary, string and binary views, or one that is
    run-end encoded, are refused: the sink has no PostgreSQL type for it.

    Args:
        uri: ``postgresql://user@host:5432/database``, as libpq takes it. A password is best in
            ``PGPASSWORD`` or ``~/.pgpass``; messages never have it.
        table: its name, with a schema or without: ``"rows"``, ``"desk.rows"``.
        app_id: a name in ``specstream_batches``, under which the last batch is known: one for each
            query that writes to the table, the same at each start, and a new one for a query that
            begins anew, with batch 0.
        retry: seconds for which a batch tries again while the server is away.

    Raises:
        ConfigurationError: the packages are not installed, or an argument is not what it must be.
        SinkError: a batch cannot be written: a column is missing in the table, or of another type,
            or of one that has no column there;
            the server is away, or refuses it. Names table and batch, and says what to do.
    """
    return PostgresSink(uri, table, app_id=app_id, retry=retry)
