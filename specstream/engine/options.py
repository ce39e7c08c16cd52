"""The options of an engine, checked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from specstream._native import lib
from specstream.columns.events import KEY_COLUMNS
from specstream.columns.rejected_rows import Policy, checked_policy
from specstream.compiler.types import PROFILED, Variant
from specstream.declarations.limits import Limits
from specstream.engine.sources import Late, Name, checked_late, checked_sources
from specstream.errors import ConfigurationError, DeclarationError
from specstream.operator.operator import Operator
from specstream.predictors.automatic import Auto
from specstream.predictors.checked import checked_predictor
from specstream.predictors.fixed import Fixed
from specstream.predictors.predictor import (
    LONGEST_CHUNK,
    LONGEST_HORIZON,
    Predictor,
    check_range,
)

__all__ = ["Amount", "Execution", "Options"]

Amount = int | Literal["auto"]
Execution = Literal["ordered", "speculate", "log_free", "locked"]
_EXECUTIONS: dict[str, tuple[int, tuple[Variant, ...]]] = {
    "ordered": (lib.SS_MODE_ORDERED, ("plain", "transactional")),
    "speculate": (lib.SS_MODE_SPECULATE, ("plain", "transactional")),
    "log_free": (lib.SS_MODE_LOG_FREE, ("log_free",)),
    "locked": (lib.SS_MODE_LOCKED, ("locked",)),
}

# What a protocol is to the runtime, and the variant that speculates under it.
_PROTOCOLS: dict[str, tuple[int, Variant]] = {
    "value": (lib.SS_PROTOCOL_VALUE, "transactional"),
    "eager": (lib.SS_PROTOCOL_EAGER, "eager"),
}


@dataclass(frozen=True, kw_only=True)
class Options:
    """What :class:`specstream.Engine` was given, beside a snapshot and hooks; the meanings of the
    options are told there.

    Raises:
        DeclarationError: ``operator`` is none.
        ConfigurationError: an option has a value that it cannot have; names it.
    """

    operator: Operator
    threads: int
    horizon: Amount
    chunk: Amount
    predictor: Predictor | None
    protocol: str
    record_shift: int
    seed: int
    keys: bool
    limits: Limits
    memory: int | None
    execution: Execution
    profile: bool
    sources: Iterable[Name]
    late: Late
    rejected_rows: Policy

    def __post_init__(self) -> None:
        if not isinstance(self.operator, Operator):
            raise DeclarationError(
                f"Engine got {type(self.operator).__name__}; expected an operator: decorate the "
                "function with @ss.operator(...)"
            )
        check_range("threads", self.threads, 1, 256)
        if self.predictor is None:
            self._check_amounts()
        else:
            checked_predictor(self.predictor)
        check_range("seed", self.seed, 0, 2**64 - 1)
        check_range("record_shift", self.record_shift, 0, 32)
        if self.protocol not in _PROTOCOLS:
            raise ConfigurationError(f"protocol={self.protocol!r}; expected 'value' or 'eager'")
        if self.execution not in _EXECUTIONS:
            raise ConfigurationError(
                f"execution={self.execution!r}; expected one of {', '.join(_EXECUTIONS)}"
            )
        if not isinstance(self.limits, Limits):
            raise ConfigurationError(f"limits={self.limits!r}; expected ss.Limits(...)")
        if self.memory is not None:
            check_range("memory", self.memory, 1, 2**63 - 1, " or None")
        clash = [name for name in KEY_COLUMNS if name in self.operator.emits.names]
        if self.keys and clash:
            raise ConfigurationError(
                f"keys=True adds the column {clash[0]!r}, which operator {self.operator.name!r} "
                "emits itself: rename that column"
            )
        checked_late(self.late)
        checked_policy(self.rejected_rows)
        object.__setattr__(self, "sources", checked_sources(self.sources))

    def _check_amounts(self) -> None:
        horizon, chunk = self._amounts()
        if horizon != "auto":
            check_range("horizon", horizon, 0, LONGEST_HORIZON, ' or "auto"')
        if chunk != "auto":
            check_range("chunk", chunk, 1, LONGEST_CHUNK, ' or "auto"')

    def _amounts(self) -> tuple[Amount, Amount]:
        """Horizon and chunk as the execution has them."""
        horizon, chunk = self.horizon, self.chunk
        if self.execution != "ordered":
            # Those of benchmarks have no plain side to choose, and must not be cut into stretches.
            horizon = 8 if horizon == "auto" else horizon
            chunk = 8 if chunk == "auto" else chunk
        return horizon, chunk

    def made_predictor(self) -> Predictor:
        """The predictor that the options ask for."""
        if self.predictor is not None:
            return self.predictor
        horizon, chunk = self._amounts()
        if horizon != "auto" and (chunk != "auto" or horizon == 0):
            return Fixed(horizon, 1 if chunk == "auto" else chunk)
        return Auto(
            self.threads,
            horizon=None if horizon == "auto" else horizon,
            chunk=None if chunk == "auto" else chunk,
        )

    @property
    def mode(self) -> int:
        """The execution, as the runtime calls it."""
        return _EXECUTIONS[self.execution][0]

    @property
    def is_ordered(self) -> bool:
        """Whether events commit in order, and one that fails leaves no trace."""
        return self.mode in (lib.SS_MODE_ORDERED, lib.SS_MODE_SPECULATE)

    @property
    def native_protocol(self) -> int:
        """The protocol, as the runtime calls it."""
        return _PROTOCOLS[self.protocol][0]

    @property
    def speculative(self) -> Variant:
        """The variant of the operator that speculates."""
        variant = _PROTOCOLS[self.protocol][1]
        return PROFILED[variant] if self.profile else variant

    @property
    def variants(self) -> tuple[Variant, ...]:
        """All variants of the operator that the execution runs."""
        variants = _EXECUTIONS[self.execution][1]
        return tuple(self.speculative if v == "transactional" else v for v in variants)
