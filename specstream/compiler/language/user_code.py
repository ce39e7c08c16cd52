"""Tells the code of the package from the code that users write."""

from __future__ import annotations

import os
from pathlib import Path

from specstream import errors

__all__ = ["PACKAGE", "is_own"]

# errors.py lies at the top of the package, whatever room the file is in that asks.
PACKAGE = Path(errors.__file__).parent

_OWN = os.path.join(PACKAGE, "")
# Ready operators are operators like the user's.
_OPERATORS = os.path.join(PACKAGE, "operators", "")


def is_own(filename: str) -> bool:
    """Whether a file is the package's own: errors do not point at its lines.

    >>> is_own(__file__), is_own("operators/of/mine.py")
    (True, False)
    """
    return filename.startswith(_OWN) and not filename.startswith(_OPERATORS)
