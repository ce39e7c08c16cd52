"""What users need to test their own operators.

``check`` runs an operator on all settings and compares; ``streams`` draws tables for it;
``arrivals`` brings a table in out of order; ``spark_session`` is a fixture for pytest.
"""

from __future__ import annotations

from typing import Any

from specstream.testing.arrival import Arrival, arrivals, shuffled
from specstream.testing.checking import Setting, check, settings

__all__ = [
    "Arrival",
    "Setting",
    "arrivals",
    "check",
    "settings",
    "shuffled",
    "spark_session",
    "streams",
]


def __getattr__(name: str) -> Any:
    # These need hypothesis and pytest, which nothing else here does.
    try:
        if name == "streams":
            from specstream.testing.strategies import streams

            return streams
        if name == "spark_session":
            from specstream.testing.fixtures import spark_session

            return spark_session
    except ModuleNotFoundError as missing:
        raise ImportError(
            f'specstream.testing.{name} needs {missing.name}: pip install "specstream[testing]"'
        ) from missing
    raise AttributeError(f"module 'specstream.testing' has no attribute {name!r}")
