"""Which streaming query an engine works for; one at a time."""

from __future__ import annotations

import threading
import weakref

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from specstream.engine.engine import Engine
from specstream.errors import ConfigurationError

__all__ = ["Tenancy", "any_runs", "tenancy_of"]


class Tenancy:
    """Which query an engine works for.

    Attributes:
        turn: held while a batch is under way.
        query: id of the query; None: there is none yet, or batches are given by hand.
    """

    def __init__(self) -> None:
        self.turn = threading.Lock()
        self.query: str | None = None
        self._session: SparkSession | None = None

    def in_use(self) -> bool:
        """Whether a batch is under way, or the query may send one."""
        if self.turn.locked():
            return True
        if self.query is None or self._session is None:
            return False
        try:
            return _is_active(self.query, self._session)
        except (Py4JError, OSError):  # the JVM has ended, and its queries with it
            return False

    def move_in(self, query: str | None, session: SparkSession, what: str) -> bool:
        """Ties the engine to a query, unless a query that still runs has it.

        Args:
            query: its id.
            session: its session.
            what: names the batch in errors.

        Returns:
            Whether it is another query than before.

        Raises:
            ConfigurationError: a query that still runs has the engine.
        """
        if self.query == query:
            return False
        if self.query is not None and _is_active(self.query, session):
            raise ConfigurationError(
                f"{what}: the engine already works for the streaming query "
                f"{self.query}, which is still running; use one engine per query, because the "
                "batches of two queries have no order between them"
            )
        self.query, self._session = query, session
        return True


def any_runs(query: str | None) -> str | None:
    """Id of a query that runs in this process's Spark application; None: there is none.

    Args:
        query: the one that is asked for; None: any of them.
    """
    session = SparkSession.getActiveSession() or SparkSession._instantiatedSession
    if session is None:
        return None
    try:
        if query is not None:
            return query if _is_active(query, session) else None
        active = session.streams.active
        return str(active[0].id) if active else None
    except (Py4JError, OSError):  # the JVM has ended, and its queries with it
        return None


_tenancies: weakref.WeakKeyDictionary[Engine, Tenancy] = weakref.WeakKeyDictionary()
_tenancies_guard = threading.Lock()


def tenancy_of(engine: Engine) -> Tenancy:
    """The engine's, which all feeds that it has share."""
    with _tenancies_guard:
        return _tenancies.setdefault(engine, Tenancy())


def _is_active(query: str, session: SparkSession) -> bool:
    """Whether a query of that id runs in this Spark application."""
    # The batch's session is a clone, whose own list of queries is empty; the list that all
    # sessions share is reached through the JVM.
    active = session._jsparkSession.sharedState().activeStreamingQueries()
    uuid = session._jvm.java.util.UUID.fromString(query)  # type: ignore[union-attr]
    return bool(active.containsKey(uuid))
