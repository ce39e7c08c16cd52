"""Stateful stream operators with shared state, on all cores, with the sequential answer.

>>> import specstream as ss
>>> class Largest(ss.State):
...     value = ss.scalar(float, fill=float("-inf"))
>>> @ss.operator(state=Largest, event={"price": float}, emits={"record": float})
... def records(state, event, emit):
...     if event.price > state.value:
...         state.value = event.price
...         emit(record=event.price)
>>> with ss.Engine(records, threads=2) as engine:
...     engine.process({"price": [1.5, 0.5, 2.5]})["record"].to_pylist()
[1.5, 2.5]
"""

import importlib
from typing import Any

if importlib.import_module("specstream.doctor.beginning").begin():
    importlib.import_module("specstream.doctor.alone").take_over(None)
try:
    from specstream.checkpoint.inspect.recorded_state import CheckpointState, checkpoint_state
    from specstream.columns.instants import when
    from specstream.declarations.container_fields import (
        deque,
        dict,
        list,
        priority_queue,
        set,
        timers,
    )
    from specstream.declarations.limits import Limits
    from specstream.declarations.locks import locks
    from specstream.declarations.pure import pure
    from specstream.declarations.records import Record
    from specstream.declarations.schema import decimal, nullable, timestamp
    from specstream.declarations.state_layout import State, array, scalar, scratch
    from specstream.engine.engine import Engine
    from specstream.engine.hooks import Abort, Notification
    from specstream.engine.snapshot_description import SnapshotDescription, describe_snapshot
    from specstream.engine.statistics import Statistics
    from specstream.errors import (
        CompileError,
        ConfigurationError,
        DeclarationError,
        EngineClosedError,
        FailedEventsError,
        InputError,
        LockError,
        OperatorCrashError,
        Partial,
        SinkError,
        SnapshotError,
        SourceError,
        SpecstreamError,
    )
    from specstream.interpreted.per_worker import per_worker
    from specstream.operator.operator import Operator, SequentialRun, operator
    from specstream.pipelines.pipeline import Pipeline
    from specstream.predictors.abort_driven import AbortDriven
    from specstream.predictors.automatic import Auto
    from specstream.predictors.fixed import Fixed
    from specstream.predictors.throughput_driven import ThroughputDriven
    from specstream.profiling import Profile
    from specstream.structures import heap
except Exception as broken:
    # A package that is missing, or of a version with which nothing can be imported.
    importlib.import_module("specstream.doctor.alone").take_over(broken)
    raise

__all__ = [
    "Abort",
    "AbortDriven",
    "Auto",
    "CheckpointState",
    "CompileError",
    "ConfigurationError",
    "DeclarationError",
    "Engine",
    "EngineClosedError",
    "FailedEventsError",
    "Fixed",
    "InputError",
    "Limits",
    "LockError",
    "Notification",
    "Operator",
    "OperatorCrashError",
    "Partial",
    "Pipeline",
    "Profile",
    "Record",
    "SequentialRun",
    "SinkError",
    "SnapshotDescription",
    "SnapshotError",
    "SourceError",
    "SpecstreamError",
    "State",
    "Statistics",
    "ThroughputDriven",
    "array",
    "checkpoint_state",
    "decimal",
    "deque",
    "describe_snapshot",
    "dict",
    "early",
    "heap",
    "list",
    "locks",
    "metrics",
    "nullable",
    "operator",
    "operators",
    "per_worker",
    "priority_queue",
    "pure",
    "scalar",
    "scratch",
    "set",
    "sinks",
    "sources",
    "spark",
    "structures",
    "testing",
    "timers",
    "timestamp",
    "when",
    "windows",
]

_LAZY = {
    "early": "specstream.early",
    "metrics": "specstream.monitoring.metrics",
    "operators": "specstream.operators",
    "sinks": "specstream.sinks",
    "sources": "specstream.sources",
    "spark": "specstream.spark",
    "testing": "specstream.testing",
    "windows": "specstream.windows",
}


def __getattr__(name: str) -> Any:
    # `import specstream` does not import PySpark or prometheus_client; these modules do.
    if name in _LAZY:
        return importlib.import_module(_LAZY[name])
    if name == "__version__":
        return _version()
    raise AttributeError(f"module 'specstream' has no attribute {name!r}")


def _version() -> str:
    """Of what is installed: pyproject.toml is the only place that says it."""
    from importlib import metadata

    try:
        return metadata.version("specstream")
    except metadata.PackageNotFoundError:  # a copy of the sources on the path
        return "0+unknown"
