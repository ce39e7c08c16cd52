"""What can go wrong, as a small tree.

Every message names the operator, column, event or option, says what was expected and what was
found, and ends with what to do. What a user's own operator raises is raised as it is, never
wrapped; it carries a :class:`Partial` as ``specstream_partial``.
"""

from __future__ import annotations

import _signal
import functools
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import CodeType
from typing import Any

__all__ = [
    "CompileError",
    "ConfigurationError",
    "DeclarationError",
    "EngineClosedError",
    "FailedEventsError",
    "InputError",
    "LockError",
    "OperatorCrashError",
    "OptionNameError",
    "Partial",
    "SinkError",
    "SnapshotError",
    "SourceError",
    "SpecstreamError",
    "is_of_signal_handler",
]


class SpecstreamError(Exception):
    """Base of everything that specstream itself raises."""


class DeclarationError(SpecstreamError, TypeError):
    """The declaration of a state, an event schema or an emit schema is wrong."""


class CompileError(SpecstreamError):
    """The operator's function contains something that cannot be compiled.

    Attributes:
        operator: name of the operator.
        filename: file of the offending line.
        line: line number in that file.
        vertex: of the pipeline that it stands in; None: it is refused by itself.
        pipeline: its name, likewise.
    """

    def __init__(
        self,
        operator: str,
        filename: str,
        line: int,
        problem: str,
        hint: str,
        vertex: str | None = None,
        pipeline: str | None = None,
    ) -> None:
        self.operator = operator
        self.filename = filename
        self.line = line
        self.vertex = vertex
        self.pipeline = pipeline
        self._told = f"{problem}; {hint}"
        stands = "" if vertex is None else f" in vertex {vertex!r} of pipeline {pipeline!r}"
        super().__init__(f"operator {operator!r}{stands}, {filename}:{line}: {self._told}")
        # What does not fit a declaration does not fit it under Python either.
        is_of_declaration = any(
            one in problem for one in (" is declared ", " has no field ", " has no column ")
        )
        if vertex is None and not is_of_declaration:
            self.add_note(
                "Another way out is @ss.operator(..., interpreted=True): Python runs the function "
                "as it is written. An access to the state then takes about a microsecond, and "
                "events run at the same time where the interpreter lock is released."
            )

    def in_vertex(
        self, operator: str, vertex: str, pipeline: str, hint: str | None = None
    ) -> CompileError:
        """The same of an operator in its place, where there may be another way out."""
        problem, _, of_operator = self._told.partition("; ")
        advice = of_operator if hint is None else hint
        return CompileError(operator, self.filename, self.line, problem, advice, vertex, pipeline)


class ConfigurationError(SpecstreamError, ValueError):
    """An option of an engine or of a command has a value that is not allowed."""


class OptionNameError(ConfigurationError, TypeError):
    """There is no option of that name, or one is given without its name. It is a TypeError as well,
    as Python's own error of such a call is."""


class InputError(SpecstreamError, ValueError):
    """A batch of events does not fit the operator's event schema."""


class FailedEventsError(SpecstreamError, RuntimeError):
    """More events of a batch have failed than may fail. What the first one raised is its
    ``__cause__``.

    Attributes:
        count: how many have failed; the batch ended there.
        limit: how many may.

    >>> raise FailedEventsError("operator 'add'", 3, 2, "(7, 0, 12): ValueError: negative")
    Traceback (most recent call last):
    specstream.errors.FailedEventsError: operator 'add': 3 event(s) have failed, and \
errors_limit=2; the first: (7, 0, 12): ValueError: negative. Nothing of the batch is applied: \
mend the operator or the events, or start again with a larger errors_limit=
    """

    def __init__(self, what: str, count: int, limit: int, first: str) -> None:
        self.count = count
        self.limit = limit
        super().__init__(
            f"{what}: {count} event(s) have failed, and errors_limit={limit}; the first: {first}. "
            "Nothing of the batch is applied: mend the operator or the events, or start again with "
            "a larger errors_limit="
        )


class SnapshotError(SpecstreamError, ValueError):
    """A snapshot is damaged, or its fields do not fit the state that it is restored into."""


class SinkError(SpecstreamError, RuntimeError):
    """A sink could not store the rows of a batch."""


class SourceError(SpecstreamError, RuntimeError):
    """A source of events cannot be reached, or no longer has what is to be read."""


class EngineClosedError(SpecstreamError, RuntimeError):
    """The engine was closed, before or during the call, or lives in the process that this one was
    forked from."""


_FAULTS = {
    signal.SIGSEGV: "segmentation fault",
    signal.SIGBUS: "bus error",
    signal.SIGFPE: "arithmetic fault",
    signal.SIGILL: "illegal instruction",
}


class OperatorCrashError(SpecstreamError):
    """The operator's machine code faulted; the process and the engine go on.

    Compiled operators check what Python checks, so this is a bug in compiled code. The fault of a
    speculative run is only counted, as an abort; this is the fault of a run on committed state.

    Attributes:
        operator: name of the operator.
        signal: SIGSEGV, SIGBUS, SIGFPE or SIGILL.
        stack_overflow: the worker's stack was used up.
        specstream_partial: output and number of the rows before the event.

    >>> raise OperatorCrashError("top_k", "(7, 0, 12)", signal.SIGSEGV, address=8)
    Traceback (most recent call last):
    specstream.errors.OperatorCrashError: operator 'top_k': compiled code crashed at event \
(timestamp, source, sequence) = (7, 0, 12): segmentation fault (SIGSEGV) at address 0x8. ...
    """

    specstream_partial: Partial

    def __init__(
        self,
        operator: str,
        event: str,
        number: int,
        *,
        stack_overflow: bool = False,
        address: int | None = None,
        undone: bool = True,
    ) -> None:
        self.operator = operator
        self.signal = signal.Signals(number)
        self.stack_overflow = stack_overflow
        what = "stack overflow" if stack_overflow else _FAULTS.get(self.signal, "fault")
        where = "" if address is None else f" at address {address:#x}"
        cause = (
            "Its calls need more stack than a worker has: raise the limit (ulimit -s) before "
            "Python starts, or nest them less"
            if stack_overflow
            else "This is a bug in compiled code, not in the state: please report the operator and "
            "the event"
        )
        effect = (
            "The event is not applied, and the engine goes on with the next call"
            if undone
            else "This execution keeps no undo log, so the state may hold half of the event: make "
            "a new engine"
        )
        super().__init__(
            f"operator {operator!r}: compiled code crashed at event "
            f"(timestamp, source, sequence) = {event}: {what} ({self.signal.name}){where}. "
            f"{cause}. {effect}"
        )


class LockError(SpecstreamError):
    """Events of an operator with locks of its own could not go on; see ``specstream.locks``.

    Attributes:
        operator: name of the operator.
        locks: the locks that it is about, as ``field[index]``.
        specstream_partial: output and number of the rows before.
    """

    specstream_partial: Partial

    def __init__(self, operator: str, locks: Sequence[str], what: str, hint: str) -> None:
        self.operator = operator
        self.locks = tuple(locks)
        super().__init__(
            f"operator {operator!r}: {what}: {hint}. A locked execution keeps no undo log, so "
            "the state may hold half of the event: make a new engine"
        )


@dataclass(frozen=True)
class Partial:
    """What a call had done when it was cut short.

    Attributes:
        output: rows emitted by the events that were applied: a table, or of a pipeline with several
            sinks a dict of tables.
        consumed: how many of the call's rows, in order, were applied.
    """

    output: Any
    consumed: int


def is_of_signal_handler(error: BaseException) -> bool:
    """Whether a signal handler has raised it, and not the function that it came out of: that is
    what the traceback shows, whatever class it has.

    >>> is_of_signal_handler(ValueError("negative"))
    False
    """
    codes = frozenset(_codes_of_handlers())
    at = error.__traceback__
    while at is not None:
        if at.tb_frame.f_code in codes:
            return True
        at = at.tb_next
    return False


_SIGNALS = tuple(map(int, signal.valid_signals()))


def _codes_of_handlers() -> Iterator[CodeType]:
    # Asked for each event that raises: without what signal.getsignal makes of a number.
    for number in _SIGNALS:
        handler: Any = _signal.getsignal(number)
        while isinstance(handler, functools.partial):
            handler = handler.func
        if callable(handler):
            function = getattr(handler, "__func__", handler)  # of a method
            if not hasattr(function, "__code__"):  # an object that can be called
                function = type(handler).__call__
            if isinstance(code := getattr(function, "__code__", None), CodeType):
                yield code
