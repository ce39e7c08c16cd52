"""Hooks: what happens to transactions, reported to Python (Brito 2010, 4.2.4).

The C side calls ``ss_python_hook`` in a worker's thread, with the interpreter lock; it finds the
engine's :class:`Hooks` through the handle that the engine gave it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from specstream._native import ffi, lib
from specstream.columns.python_values import event_values, row_tuples
from specstream.declarations.options import function
from specstream.definition.operator import Operator
from specstream.engine.committed_state import Committed
from specstream.engine.flight import Flight
from specstream.engine.native import ABORT_REASONS, Native

if TYPE_CHECKING:
    from specstream._native import CData, ss_occasion_p

__all__ = ["KINDS", "Abort", "Describer", "Hook", "Hooks", "Notification"]


class Abort(Exception):
    """Raised in ``on_commit``: this run must not commit; the event is run again."""


@dataclass(frozen=True)
class Notification:
    """What a hook is called with.

    Attributes:
        timestamp, source, sequence: the event's order key; the source as it was given.
        values: the event's columns, as plain Python values, strings as text.
        rows: ``on_commit``: what the event emitted, a list of tuples in the order of ``emits``.
        reason: ``on_abort``: why the run was dropped, one of the reasons of
            :attr:`specstream.Statistics.aborts`.
    """

    timestamp: Any
    source: Any
    sequence: int
    values: Mapping[str, Any]
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    reason: str = ""


Hook = Callable[[Notification], object]

# The kinds of occasions, by the name of the option that asks for a hook.
KINDS = {
    "on_abort": lib.SS_ON_ABORT,
    "on_commit": lib.SS_ON_COMMIT,
    "on_post_commit": lib.SS_ON_POST_COMMIT,
}


class Describer:
    """Tells hooks of an engine what happens, in Python's terms."""

    def __init__(self, operator: Operator, committed: Committed, flight: Flight) -> None:
        self._operator = operator
        self._committed = committed
        self._flight = flight

    def describe(self, occasion: ss_occasion_p) -> Notification:
        """An occasion of the C side, as a hook is told of it."""
        locate = self._flight.locate or self._committed.pending.segments.locate
        events, row, timestamp, source, sequence = locate(occasion.row)
        strings, emits = self._committed.strings, self._operator.emits
        values = event_values(self._operator.event, events, row, strings)
        rows: list[tuple[Any, ...]] = []
        reason = ""
        if occasion.kind == lib.SS_ON_COMMIT:
            rows = row_tuples(emits, Native.rows(occasion, emits.row_words), strings)
        elif occasion.kind == lib.SS_ON_ABORT:
            reason = next(name for name, at in ABORT_REASONS.items() if at == occasion.reason)
        return Notification(timestamp, source, sequence, values, rows, reason)


class Hooks:
    """The hooks of one engine.

    Args:
        given: callables by the names on_abort, on_commit, on_post_commit; None: not set.
        describe: makes the notification of an occasion of the C side. It must not refer to the
            engine, which is to end without the collector when nobody holds it.

    Attributes:
        refusal: what on_commit raised: the error of the event that has failed, if it is its own.
    """

    def __init__(
        self, given: Mapping[str, Hook | None], describe: Callable[[ss_occasion_p], Notification]
    ) -> None:
        for name, hook in given.items():
            if hook is not None:
                function(name, hook, "a function of one argument, the notification")
        self._hooks = {KINDS[name]: hook for name, hook in given.items() if hook is not None}
        self._names = {kind: name for name, kind in KINDS.items()}
        self._describe = describe
        self._errors: deque[BaseException] = deque()
        self.refusal: BaseException | None = None

    def __bool__(self) -> bool:
        return bool(self._hooks)

    def set_in(self, native: Native) -> None:
        """Has the C side call them."""
        if self._hooks:
            native.set_hook(sum(self._hooks), lib.ss_python_hook, ffi.new_handle(self))

    @property
    def error(self) -> BaseException | None:
        """The first that on_abort or on_post_commit raised and that nobody has taken yet."""
        return self._errors[0] if self._errors else None

    def take_error(self) -> BaseException | None:
        """Likewise, and takes it."""
        return self._errors.popleft() if self._errors else None

    def take_refusal(self) -> BaseException | None:
        """The refusal, and takes it."""
        refusal, self.refusal = self.refusal, None
        return refusal

    def may_go_on(self, outcome: Any) -> bool:
        """Whether the open job waits for nothing but that somebody hears of hooks that have raised.

        A hook's thread may halt the job only when its error is taken already.
        """
        by_hook = outcome.failed and outcome.failed_row == lib.SS_NO_ROW_FOR_HOOK
        return bool(by_hook and self.error is None)

    def forget(self, error: BaseException) -> None:
        """Takes it, if it is one of these. May be called again."""
        if self.error is error:
            self._errors.popleft()
        if self.refusal is error:
            self.refusal = None

    def call(self, occasion: ss_occasion_p) -> int:
        """One call; gives an ``enum ss_answer``."""
        name = self._names[occasion.kind]
        try:
            notification = self._describe(occasion)
            try:
                self._hooks[occasion.kind](notification)
            except Abort:
                if occasion.kind == lib.SS_ON_COMMIT:
                    return int(lib.SS_RUN_AGAIN)
                raise
        except BaseException as error:
            error.add_note(f"raised by the hook {name}")
            if occasion.kind == lib.SS_ON_COMMIT:
                self.refusal = error
            else:
                self._errors.append(error)
            return int(lib.SS_FAIL)
        return int(lib.SS_PROCEED)


@ffi.def_extern(name="ss_python_hook", error=lib.SS_FAIL)
def _python_hook(context: CData, occasion: ss_occasion_p) -> int:
    hooks: Hooks = ffi.from_handle(context)
    return hooks.call(occasion)
