"""What is behind an error while Spark hands rows to the driver.

Spark wraps what has happened into exceptions that say only that something was waited for, and
puts the cause below them. The commonest of all, results above ``spark.driver.maxResultSize``, is
one that its user can do something about.
"""

from __future__ import annotations

import contextlib

from py4j.protocol import Py4JError

__all__ = ["reason", "result_is_too_large"]

_LIMIT = "spark.driver.maxResultSize"


def reason(error: Py4JError) -> str:
    """The first line of the innermost Java exception that says something."""
    text = str(error)  # only names the call
    with contextlib.suppress(Exception):  # the JVM may have ended
        cause = error.java_exception
        text = cause.toString()
        while (cause := cause.getCause()) is not None:
            if cause.getMessage():
                text = cause.toString()
    return text.strip().partition("\n")[0]


def result_is_too_large(reason: str) -> bool:
    """Whether rows were refused for ``spark.driver.maxResultSize``; the reason has its value.

    >>> result_is_too_large("it is bigger than spark.driver.maxResultSize (1024.0 MiB)")
    True
    """
    return _LIMIT in reason
