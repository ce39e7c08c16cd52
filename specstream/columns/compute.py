"""pyarrow.compute, imported when it is first used: it would be a tenth of ``import specstream``."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    return getattr(import_module("pyarrow.compute"), name)
