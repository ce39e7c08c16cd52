"""Connections to PostgreSQL as psycopg's are, for what takes "%s" in its statements: by ADBC."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import Any


class _Cursor:
    def __init__(self, cursor: Any) -> None:
        self._cursor = cursor
        self.description: Any = None

    def execute(self, statement: str, values: Sequence[Any] = ()) -> None:
        self._cursor.execute(_numbered(statement), values or None)
        self.description = self._cursor.description

    def executemany(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        self._cursor.executemany(_numbered(statement), rows)

    def fetchone(self) -> Any:
        return self._cursor.fetchone()

    def fetchall(self) -> Any:
        return self._cursor.fetchall()


class _Connection:
    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._cursors: list[Any] = []

    def cursor(self) -> _Cursor:
        self._cursors.append(self._connection.cursor())
        return _Cursor(self._cursors[-1])

    def commit(self) -> None:
        self._connection.commit()

    def rollback(self) -> None:
        self._connection.rollback()

    def close(self) -> None:
        for one in self._cursors:
            one.close()
        self._connection.close()


def connect(uri: str) -> _Connection:
    """A connection whose statements have "%s" for a value."""
    from adbc_driver_postgresql import dbapi

    return _Connection(dbapi.connect(uri))


def _numbered(statement: str) -> str:
    numbers = itertools.count(1)
    return re.sub("%s", lambda _: f"${next(numbers)}", statement)
