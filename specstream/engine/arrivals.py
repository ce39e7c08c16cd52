"""Old names of ``pending_events.py``, ``pending_image.py`` and ``sources.py``."""

from __future__ import annotations

from specstream.engine.pending_events import PendingEvents as Arrivals
from specstream.engine.pending_image import unpacked
from specstream.engine.sources import END, Late, Name, Sources, checked_late, checked_sources

__all__ = [
    "END",
    "Arrivals",
    "Late",
    "Name",
    "Sources",
    "checked_late",
    "checked_sources",
    "unpacked",
]
