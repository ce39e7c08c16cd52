"""Names in which Spark's source of files finds a pattern."""

from __future__ import annotations

import os
import re

__all__ = ["REFUSED_NAME", "pattern_below"]

REFUSED_NAME = (
    "Spark takes a name with [, ], {, }, *, ? or \\ in it for a pattern, and would read the files "
    "that match it, some of them more than once: rename it"
)
_OF_PATTERNS = re.compile(r"[\[\]{}*?\\]")


def pattern_below(directory: str | os.PathLike[str]) -> str | None:
    """The path of a directory, or of what is in it, in which Spark would find a pattern.

    Spark looks for patterns in each file's whole path, those above the directory included. Names
    that begin with ``.`` or ``_`` it leaves out. What is no directory here, such as a URI, is not
    looked at.
    """
    if not os.path.isdir(directory):
        return None
    top = os.path.abspath(directory)
    if _OF_PATTERNS.search(top):
        return top
    for path, inner, files in os.walk(top):
        inner[:] = [name for name in inner if name[0] not in "._"]
        for name in (*inner, *files):
            if name[0] not in "._" and _OF_PATTERNS.search(name):
                return os.path.join(path, name)
    return None
