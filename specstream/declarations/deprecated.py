"""Names that have changed: the old one works for one release, and says what the new one is."""

from __future__ import annotations

import warnings

__all__ = ["GONE_WITH", "renamed"]

GONE_WITH = "0.3"
"""The version that has the old names no more: those that version 0.2 has changed."""


def renamed(old: str, new: str, *, stacklevel: int = 3) -> None:
    """Warns that ``old`` was used, which is called ``new`` now.

    Args:
        old: as the user wrote it, for instance ``Engine.mark()``.
        new: what to write instead.
        stacklevel: whose line the warning names; 3 is the caller of the function that calls this.
    """
    warnings.warn(
        f"{old} is now called {new}; the old name goes with version {GONE_WITH}",
        DeprecationWarning,
        stacklevel=stacklevel,
    )
