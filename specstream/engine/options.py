"""The options of an engine, checked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from specstream._native import lib
from specstream.columns.events import KEY_COLUMNS
from specstream.columns.failed_events import Errors, check_names, checked_errors
from specstream.columns.rejected_rows import Policy, check_no_reason, checked_policy
from specstream.compiler.backend.numba_types import PROFILED, Variant
from specstream.declarations.limits import Limits
from specstream.declarations.options import flag, instance, integer, one_of
from specstream.definition.operator import Operator
from specstream.engine.sources import Late, Name, checked_late, checked_sources
from specstream.errors import ConfigurationError, DeclarationError
from specstream.predictors.automatic import Auto
from specstream.predictors.checked import checked_predictor
from specstream.predictors.fixed import Fixed
from specstream.predictors.predictor import LONGEST_CHUNK, LONGEST_HORIZON, Predictor

__all__ = [
    "EARLY_COLUMNS",
    "Amount",
    "Execution",
    "Options",
    "checked_operator",
    "no_early_results",
]

Amount = int | Literal["auto"]
Execution = Literal["ordered", "speculate", "log_free", "locked"]
# What early results add to emitted rows.
EARLY_COLUMNS = (*KEY_COLUMNS, "n", "version", "change")
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
    errors: Errors
    early: bool

    def __post_init__(self) -> None:
        checked_operator(self.operator)
        if self.predictor is not None:
            checked_predictor(self.predictor)
        checked = {
            "threads": integer("threads", self.threads, 1, 256),
            "horizon": _amount("horizon", self.horizon, 0, LONGEST_HORIZON),
            "chunk": _amount("chunk", self.chunk, 1, LONGEST_CHUNK),
            "protocol": one_of("protocol", self.protocol, _PROTOCOLS),
            "record_shift": integer("record_shift", self.record_shift, 0, 32),
            "seed": integer("seed", self.seed, 0, 2**64 - 1),
            "keys": flag("keys", self.keys),
            "limits": instance("limits", self.limits, Limits, "ss.Limits(...)"),
            "memory": self.memory
            if self.memory is None
            else integer("memory", self.memory, 1, 2**63 - 1, " (bytes, as 2 * 1024**3) or None"),
            "execution": one_of("execution", self.execution, _EXECUTIONS),
            "profile": flag("profile", self.profile),
            "sources": checked_sources(self.sources),
            "late": checked_late(self.late),
            "rejected_rows": checked_policy(self.rejected_rows),
            "errors": checked_errors(self.errors),
            "early": flag("early", self.early),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        if self.execution == "locked" and self.operator.layout.goes_by_time:
            raise ConfigurationError(
                f"operator {self.operator.name!r} goes by the time of events, "
                'and execution="locked" has no order: leave it out'
            )
        if self.operator.calls_python and self.execution == "locked":
            raise ConfigurationError(
                f"operator {self.operator.name!r} runs functions as Python, and "
                'execution="locked" is there to compare compiled code with locks; expected another '
                "execution. One with a lock around it all is horizon=0, or speculate=False"
            )
        asking = next((form for form in self.operator.program.forms if form.asking), None)
        if asking is not None and not self.is_ordered:
            raise ConfigurationError(
                f"operator {self.operator.name!r} emits what Python alone knows of an exception "
                f"({asking.where}), and execution={self.execution!r}, which undoes nothing, cannot "
                "ask for it: emit str(error) of an exception that the operator raises itself; or "
                'expected execution="ordered": leave it out'
            )
        self._check_speculation()
        # Where none is known, events are told apart by another column than that of their source.
        known, given = self.operator.sources, list(self.sources)
        unknown = [name for name in given if name not in known]
        if len(known) > 1 and 0 < len(unknown) < len(given):
            raise ConfigurationError(
                f"sources={given!r}: {unknown[0]!r} is none of the sources of "
                f"pipeline {self.operator.name!r} (it has {', '.join(known)}), and events would "
                "wait for it"
            )
        # Of a pipeline with several sinks a column is called sink.column.
        emitted = {name.rpartition(".")[2] for name in self.operator.emits.names}
        clash = [name for name in KEY_COLUMNS if name in emitted]
        if self.keys and clash:
            raise ConfigurationError(
                f"keys=True adds the column {clash[0]!r}, which operator {self.operator.name!r} "
                "emits itself: rename that column"
            )
        what, columns = f"operator {self.operator.name!r}", self.operator.event.names
        if self.rejected_rows == "side":
            check_no_reason(columns, what, ConfigurationError)
        if self.errors == "side":
            check_names(what, columns)
            if not self.is_ordered:
                raise ConfigurationError(
                    f'errors="side" and execution={self.execution!r}, which undoes nothing: an '
                    "event that fails would be applied in part; expected "
                    'execution="ordered": leave it out'
                )
        if self.early:
            self._check_early()

    def _check_early(self) -> None:
        if self.execution != "ordered":
            raise ConfigurationError(
                f"early=True and execution={self.execution!r}: early results are those of "
                'submitted events, which need execution="ordered": leave it out'
            )
        why = no_early_results(self.operator)
        if why is not None:
            raise ConfigurationError(f"early=True: operator {self.operator.name!r} {why}")

    def _check_speculation(self) -> None:
        if self.operator.speculates:
            return
        asked = {
            "horizon": self.horizon not in ("auto", 0),
            "predictor": self.predictor is not None,
        }
        asked |= {"early": self.early, "execution": self.execution == "speculate"}
        for option, is_asked in asked.items():
            if is_asked:
                raise ConfigurationError(
                    f"{option}= asks for speculation, and operator {self.operator.name!r} is "
                    "declared with speculate=False: leave one of them out"
                )

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
        if not self.operator.speculates:
            return Fixed(0, 1 if chunk == "auto" else chunk)
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
    def running_ahead(self) -> Variant:
        """The variant that runs submitted events. Early results compare what was read by value."""
        if not self.early:
            return self.speculative
        return PROFILED["transactional"] if self.profile else "transactional"

    @property
    def variants(self) -> tuple[Variant, ...]:
        """All variants of the operator that the execution runs."""
        variants = _EXECUTIONS[self.execution][1]
        return tuple(self.speculative if v == "transactional" else v for v in variants)


def no_early_results(operator: Operator) -> str | None:
    """Why an operator can have no early results, and what could; None: it can."""
    if operator.event.phases:
        return (
            "is a pipeline with phases by time, of which nothing is known before a phase is whole; "
            'expected phases="events", or an engine without early='
        )
    # Of a pipeline with several sinks a column is called sink.column.
    emitted = {name.rpartition(".")[2] for name in operator.emits.names}
    for name in EARLY_COLUMNS:
        if name in emitted:
            return f"emits a column {name!r}, and early results add one of that name: rename it"
    return None


def checked_operator(operator: object) -> Operator:
    """The operator.

    Raises:
        DeclarationError: it is none, or one that is to be a vertex.
    """
    expected = "an operator: decorate the function with @ss.operator(...)"
    found: Operator = instance("operator", operator, Operator, expected, DeclarationError)
    found.check_alone()
    return found


def _amount(option: str, value: object, low: int, high: int) -> Amount:
    if isinstance(value, str) and value == "auto":
        return "auto"
    return integer(option, value, low, high, ' or "auto"')
