"""The operator that a record has: pickled, and read also where its modules have moved since.

A pickle names the classes that it is made of by the paths of their modules. A record outlives the
version of specstream that has written it; so a module that moves, and that pickled operators may
name, gets a line in the table below, for good.
"""

from __future__ import annotations

import io
import pickle
from typing import Any

from specstream.definition.operator import Operator

__all__ = ["pickled", "unpickled"]

# Where the modules are that earlier versions have named.
MOVED = {
    "specstream.compiler.frozen": "specstream.compiler.language.frozen",
    "specstream.compiler.shipping": "specstream.compiler.pickling",
    "specstream.compiler.standard_library": "specstream.compiler.language.standard_library",
    "specstream.conversion": "specstream.columns.conversion",
    "specstream.declarations.state": "specstream.declarations.state_layout",
    "specstream.limits": "specstream.declarations.limits",
    "specstream.locks": "specstream.declarations.locks",
    "specstream.operations": "specstream.declarations.operations",
    "specstream.operator": "specstream.definition.operator",
    "specstream.operator.operator": "specstream.definition.operator",
    "specstream.schema": "specstream.declarations.schema",
    "specstream.spark.sinks.delta": "specstream.sinks.delta",
    "specstream.spark.sinks.early_database": "specstream.sinks.early_database",
    "specstream.spark.sinks.early_delta": "specstream.sinks.early_delta",
    "specstream.spark.sinks.memory": "specstream.sinks.memory",
    "specstream.spark.sinks.parquet": "specstream.sinks.parquet",
    "specstream.spark.sinks.postgres": "specstream.sinks.postgres",
    "specstream.state": "specstream.declarations.state_layout",
    "specstream.storage": "specstream.declarations.element_types",
    "specstream.strings": "specstream.columns.strings",
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        return super().find_class(MOVED.get(module, module), name)


def pickled(operator: Operator) -> bytes:
    """The operator as bytes; empty if a constant of it cannot be pickled."""
    try:
        return pickle.dumps(operator)
    except Exception:  # whatever the constant's own class raises
        return b""


def unpickled(content: bytes) -> Any:
    """What :func:`pickled` got; also from an earlier version of specstream.

    Raises:
        Exception: whatever it raises that something in it cannot be made here.
    """
    return _Unpickler(io.BytesIO(content)).load()
