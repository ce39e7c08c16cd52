"""A Spark session on this machine, for the command line, the demo and tests."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from pyspark.sql import SparkSession

from specstream.declarations.options import instance, integer, refused, refuses_unknown
from specstream.spark.java import find_java
from specstream.spark.stopping import shielded_session

__all__ = ["local_session"]

_PYTHON = "PYSPARK_PYTHON"

SETTINGS = {
    "spark.ui.enabled": "false",
    # The name of this machine need not resolve.
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.log.level": "ERROR",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
    "spark.ui.showConsoleProgress": "false",
}


@refuses_unknown
def local_session(
    name: str = "specstream", *, cores: int = 2, settings: Mapping[str, str] | None = None
) -> SparkSession:
    """A Spark session in this process's own JVM (``local[cores]``), or the one already running.

    Timestamps are read and written in UTC. A JVM that is started is a
    :func:`shielded <specstream.spark.shielded_session>` one. Its Python workers run this process's
    own interpreter, unless the environment names another (``PYSPARK_PYTHON``).

    Args:
        name: the application's name.
        cores: threads of Spark's own, 1 to 1024; the engine's threads are apart.
        settings: Spark settings on top of the defaults, or in their place.

    Raises:
        ConfigurationError: ``cores`` is out of its range, or there is no Java that Spark can use.
    """
    cores = integer("cores", cores, 1, 1024)
    name = str(instance("name", name, str, "the application's name"))
    if settings is not None:
        expected = "a dict of Spark's settings, texts by their names"
        for key in instance("settings", settings, Mapping, expected):
            if not isinstance(key, str):
                raise refused("settings", settings, expected)
    find_java()
    builder = SparkSession.builder.master(f"local[{cores}]").appName(name)
    for key, value in {**SETTINGS, **(settings or {})}.items():
        builder = builder.config(key, value)
    named = os.environ.get(_PYTHON)
    # Spark's default is the first python3 of the path, which need not have specstream. It has no
    # setting that counts in a running process; the driver, and the JVM it starts, read this now.
    os.environ[_PYTHON] = named or sys.executable
    try:
        return shielded_session(builder)
    finally:
        del os.environ[_PYTHON]
        if named is not None:
            os.environ[_PYTHON] = named
