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
import typing

if importlib.import_module("specstream.doctor.beginning").begin():
    importlib.import_module("specstream.doctor.alone").take_over(None)

if typing.TYPE_CHECKING:
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
    from specstream.definition.operator import Operator, SequentialRun, operator
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
    from specstream.pipelines.pipeline import Pipeline
    from specstream.predictors.abort_driven import AbortDriven
    from specstream.predictors.automatic import Auto
    from specstream.predictors.fixed import Fixed
    from specstream.predictors.throughput_driven import ThroughputDriven
    from specstream.profiling import Profile
    from specstream.rules.declared import rule
    from specstream.structures import heap
    from specstream.tuning.bench import bench
    from specstream.tuning.profile import profile
    from specstream.tuning.tune import tune

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
    "bench",
    "checkpoint_state",
    "decimal",
    "deque",
    "describe_snapshot",
    "dict",
    "early",
    "formats",
    "heap",
    "list",
    "locks",
    "metrics",
    "nullable",
    "operator",
    "operators",
    "per_worker",
    "priority_queue",
    "profile",
    "pure",
    "rule",
    "rules",
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
    "tune",
    "verbs",
    "verify",
    "when",
    "windows",
]

# Imported when it is first asked for: `import specstream` is to cost next to nothing, also where a
# program needs sinks only, or a State. A test compares this with what type checkers read above.
_MODULE_OF = {
    "Abort": "specstream.engine.hooks",
    "AbortDriven": "specstream.predictors.abort_driven",
    "Auto": "specstream.predictors.automatic",
    "CheckpointState": "specstream.checkpoint.inspect.recorded_state",
    "CompileError": "specstream.errors",
    "ConfigurationError": "specstream.errors",
    "DeclarationError": "specstream.errors",
    "Engine": "specstream.engine.engine",
    "EngineClosedError": "specstream.errors",
    "FailedEventsError": "specstream.errors",
    "Fixed": "specstream.predictors.fixed",
    "InputError": "specstream.errors",
    "Limits": "specstream.declarations.limits",
    "LockError": "specstream.errors",
    "Notification": "specstream.engine.hooks",
    "Operator": "specstream.definition.operator",
    "OperatorCrashError": "specstream.errors",
    "Partial": "specstream.errors",
    "Pipeline": "specstream.pipelines.pipeline",
    "Profile": "specstream.profiling",
    "Record": "specstream.declarations.records",
    "SequentialRun": "specstream.definition.operator",
    "SinkError": "specstream.errors",
    "SnapshotDescription": "specstream.engine.snapshot_description",
    "SnapshotError": "specstream.errors",
    "SourceError": "specstream.errors",
    "SpecstreamError": "specstream.errors",
    "State": "specstream.declarations.state_layout",
    "Statistics": "specstream.engine.statistics",
    "ThroughputDriven": "specstream.predictors.throughput_driven",
    "array": "specstream.declarations.state_layout",
    "bench": "specstream.tuning.bench",
    "checkpoint_state": "specstream.checkpoint.inspect.recorded_state",
    "decimal": "specstream.declarations.schema",
    "deque": "specstream.declarations.container_fields",
    "describe_snapshot": "specstream.engine.snapshot_description",
    "dict": "specstream.declarations.container_fields",
    "heap": "specstream.structures",
    "list": "specstream.declarations.container_fields",
    "locks": "specstream.declarations.locks",
    "nullable": "specstream.declarations.schema",
    "operator": "specstream.definition.operator",
    "per_worker": "specstream.interpreted.per_worker",
    "priority_queue": "specstream.declarations.container_fields",
    "profile": "specstream.tuning.profile",
    "pure": "specstream.declarations.pure",
    "rule": "specstream.rules.declared",
    "scalar": "specstream.declarations.state_layout",
    "scratch": "specstream.declarations.state_layout",
    "set": "specstream.declarations.container_fields",
    "timers": "specstream.declarations.container_fields",
    "timestamp": "specstream.declarations.schema",
    "tune": "specstream.tuning.tune",
    "when": "specstream.columns.instants",
}
_MODULES = {
    "early": "specstream.early",
    "formats": "specstream.formats",
    "metrics": "specstream.monitoring.metrics",
    "operators": "specstream.operators",
    "rules": "specstream.rules",
    "sinks": "specstream.sinks",
    "sources": "specstream.sources",
    "spark": "specstream.spark",
    "structures": "specstream.structures",
    "testing": "specstream.testing",
    "verbs": "specstream.verbs",
    "verify": "specstream.verify",
    "windows": "specstream.windows",
}


def __getattr__(name: str) -> typing.Any:
    if name == "__version__":
        return _version()
    if name not in _MODULE_OF and name not in _MODULES:
        raise AttributeError(f"module 'specstream' has no attribute {name!r}")
    try:
        if name in _MODULES:
            found = importlib.import_module(_MODULES[name])
        else:
            found = getattr(importlib.import_module(_MODULE_OF[name]), name)
    except Exception as broken:
        # A package that is missing, or of a version with which nothing can be imported.
        importlib.import_module("specstream.doctor.beginning").name_the_doctor(broken)
        raise
    globals()[name] = found
    return found


def __dir__() -> typing.Any:
    return sorted({*globals(), *__all__})


def _version() -> str:
    """Of what is installed: pyproject.toml is the only place that says it."""
    from importlib import metadata

    try:
        return metadata.version("specstream")
    except metadata.PackageNotFoundError:  # a copy of the sources on the path
        return "0+unknown"
