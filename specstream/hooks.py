"""Hooks: what happens to transactions, told to Python (Brito 2010, 4.2.4).

The C side calls ``ss_python_hook`` in a worker's thread, with the interpreter lock; it finds the
engine's :class:`Hooks` through the handle that the engine gave it.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from specstream._native import ffi, lib
from specstream.errors import ConfigurationError

__all__ = ["Abort", "Hook", "Hooks", "Notification"]


class Abort(Exception):
    """Raised in ``on_commit``: this run must not commit; the event is run again."""


@dataclass(frozen=True)
class Notification:
    """What a hook is told.

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

_KINDS = {
    "on_abort": lib.SS_ON_ABORT,
    "on_commit": lib.SS_ON_COMMIT,
    "on_post_commit": lib.SS_ON_POST_COMMIT,
}


class Hooks:
    """The hooks of one engine.

    Args:
        given: callables by the names on_abort, on_commit, on_post_commit; None: not set.
        describe: a method that makes the notification of an occasion of the C side. Its object is
            not kept alive, so that an engine that nobody holds ends without the collector.
    """

    def __init__(
        self, given: Mapping[str, Hook | None], describe: Callable[[Any], Notification]
    ) -> None:
        for name, hook in given.items():
            if hook is not None and not callable(hook):
                raise ConfigurationError(
                    f"{name}={hook!r}; expected a function of one argument, the notification"
                )
        self._hooks = {_KINDS[name]: hook for name, hook in given.items() if hook is not None}
        self._names = {kind: name for name, kind in _KINDS.items()}
        self._describe = weakref.WeakMethod(describe)
        self._handle = ffi.new_handle(self)
        self._errors: deque[BaseException] = deque()
        self._refusal: BaseException | None = None

    def __bool__(self) -> bool:
        return bool(self._hooks)

    def set_in(self, native: Any) -> None:
        """Has the C side call them."""
        if self._hooks:
            lib.ss_engine_set_hook(native, sum(self._hooks), lib.ss_python_hook, self._handle)

    @property
    def has_errors(self) -> bool:
        """Whether :meth:`take_error` would give one."""
        return bool(self._errors)

    def take_error(self) -> BaseException | None:
        """The first that on_abort or on_post_commit raised and that nobody has taken yet."""
        return self._errors.popleft() if self._errors else None

    def take_refusal(self) -> BaseException | None:
        """What on_commit raised: the error of the event that has failed, if it is its own."""
        refusal, self._refusal = self._refusal, None
        return refusal

    def call(self, occasion: Any) -> int:
        """One call; gives an ``enum ss_answer``."""
        name = self._names[occasion.kind]
        try:
            describe = self._describe()
            if describe is None:  # the collector is about to end the engine
                return int(lib.SS_FAIL)
            notification = describe(occasion)
            try:
                self._hooks[occasion.kind](notification)
            except Abort:
                if occasion.kind == lib.SS_ON_COMMIT:
                    return int(lib.SS_RUN_AGAIN)
                raise
        except BaseException as error:
            error.add_note(f"raised by the hook {name}")
            if occasion.kind == lib.SS_ON_COMMIT:
                self._refusal = error
            else:
                self._errors.append(error)
            return int(lib.SS_FAIL)
        return int(lib.SS_PROCEED)


@ffi.def_extern(name="ss_python_hook", error=lib.SS_FAIL)
def _python_hook(context: Any, occasion: Any) -> int:
    hooks: Hooks = ffi.from_handle(context)
    return hooks.call(occasion)
