"""Fixtures for pytest. A ``conftest.py`` imports what its tests ask for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

__all__ = ["spark_session"]


@pytest.fixture(scope="session")
def spark_session() -> Iterator[Any]:
    """A Spark session on this machine for all tests of a run; it stops after the last of them.

    One that runs already is taken, and left running. In ``conftest.py``::

        from specstream.testing import spark_session
    """
    from pyspark.sql import SparkSession

    from specstream.spark import local_session

    is_own = SparkSession.getActiveSession() is None
    session = local_session("specstream.testing")
    yield session
    for query in session.streams.active if is_own else ():
        query.stop()
    if is_own:
        session.stop()
