"""What can go wrong, as a small tree.

Every message names the operator, column, event or option, says what was expected and what was
found, and ends with what to do. What a user's own operator raises is raised as it is, never
wrapped; it carries a :class:`Partial` as ``specstream_partial``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "CompileError",
    "ConfigurationError",
    "DeclarationError",
    "EngineClosedError",
    "InputError",
    "Partial",
    "SnapshotError",
    "SpecstreamError",
]


class SpecstreamError(Exception):
    """Base of everything that specstream itself raises."""


class DeclarationError(SpecstreamError, TypeError):
    """A state, an event schema or an emit schema is not declared as it must be."""


class CompileError(SpecstreamError):
    """The operator's function has something that cannot be compiled to the oracle's arithmetic.

    Attributes:
        operator: name of the operator.
        filename: file of the offending line.
        line: line number in that file.
    """

    def __init__(self, operator: str, filename: str, line: int, problem: str, way_out: str) -> None:
        self.operator = operator
        self.filename = filename
        self.line = line
        super().__init__(f"operator {operator!r}, {filename}:{line}: {problem}; {way_out}")


class ConfigurationError(SpecstreamError, ValueError):
    """An option of an engine or of a command has a value that it cannot have."""


class InputError(SpecstreamError, ValueError):
    """A batch of events does not fit the operator's event schema."""


class SnapshotError(SpecstreamError, ValueError):
    """A snapshot is damaged, or its fields do not fit the state that it is restored into."""


class EngineClosedError(SpecstreamError, RuntimeError):
    """The engine was closed, before or during the call, or lives in the process that this one was
    forked from."""


@dataclass(frozen=True)
class Partial:
    """What a call had done when it was cut short.

    Attributes:
        output: rows emitted by the events that were applied.
        consumed: how many of the call's rows, in order, were applied.
    """

    output: pa.Table
    consumed: int
