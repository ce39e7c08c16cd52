"""Processes that run a module of the tests, which by its name finds what it shares with others.

By its path a file would find what lies beside it and nothing else. ``python -m`` alone would put
the working directory first, and there may be the sources of the package: what is tested is the one
that is installed, or that :mod:`support.stress.sanitizers` names.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

__all__ = ["TESTS", "command", "environment"]

TESTS = Path(__file__).parents[1]


def command(module: str, *arguments: object) -> list[str]:
    """Runs a module; it needs the :func:`environment`."""
    return [sys.executable, "-P", "-m", module, *map(str, arguments)]


def environment(*before: Path, **more: str) -> dict[str, str]:
    """This process's, with the tests on Python's path.

    Args:
        before: what comes before them there.
        more: what else is to be in it.
    """
    inherited = os.environ.get("PYTHONPATH")
    path = [*map(str, before), str(TESTS), *([inherited] if inherited else [])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path), **more}
