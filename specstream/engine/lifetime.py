"""Who may use an engine, and its end: one caller at a time, hooks and forked processes kept out.

A signal handler or a finaliser may come at any point of a call, in the same thread, and use the
engine, close it or raise. So entries come and go by operations that the interpreter does not
divide, and what must be given back is given back by C (``interrupts.py``).
"""

from __future__ import annotations

import _thread
import os
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Literal, TypeVar

from specstream.declarations.options import shown
from specstream.engine.interrupts import insist
from specstream.engine.native import Native
from specstream.errors import ConfigurationError, EngineClosedError, SpecstreamError

__all__ = ["CallLock", "Lifetime", "check_unused"]

T = TypeVar("T")

# The engine that uses a predictor, by the predictor's id. An engine that is still there keeps its
# predictor, so that no other object has the same id.
_served: weakref.WeakValueDictionary[int, Lifetime] = weakref.WeakValueDictionary()


def check_unused(predictor: object) -> None:
    """Refuses a predictor that serves an open engine of this process.

    Raises:
        ConfigurationError: it does; names the operator.
    """
    user = _served.get(id(predictor))
    if user is not None and not (user.closed or user.closing or user.is_inherited()):
        raise ConfigurationError(
            f"predictor={shown(predictor)} serves the open engine of {user.name!r}; expected one "
            "of its own for each engine: make another one, or close that engine first"
        )


class CallLock(_thread.RLock):  # type: ignore[misc]
    """Held by the one call that has the engine to itself.

    It is left by its base's ``__exit__``, which is of C: in one of Python a signal handler might
    raise before its first step, and leave the engine locked.
    """

    lifetime: weakref.ref[Lifetime]

    def __enter__(self) -> Literal[True]:  # type: ignore[override]
        try:
            self.acquire()
            lifetime = self.lifetime()
            assert lifetime is not None  # who enters holds it
            if lifetime.closing or lifetime.closed:
                lifetime.check_open()
            if lifetime.unsettled is not None:
                lifetime.settle()
        except BaseException:
            # Not asked first whether it is ours: a handler may raise after each question.
            try:  # noqa: SIM105
                self.release()
            except RuntimeError:
                pass
            raise
        return True


class Lifetime:
    """From the start of an engine's threads to their end.

    Args:
        native: the engine in the runtime.
        name: of the operator, for messages.

    Attributes:
        closed: it has ended.
        closing: it is to end as soon as nobody is inside.
        process: that it was made in.
        lock: one caller at a time. Never taken twice by one thread; but its owner is known.
        at_end: what is done before the threads end, in order; steps that may be begun anew.
            Forgotten then: it refers to who refers to this, and an engine that nobody holds is to
            go without the collector.
        unsettled: a step that may be begun anew and has to be taken before anything else; who has
            the lock sets it. It was left by a call that was interrupted again and again.
    """

    def __init__(self, native: Native, name: str) -> None:
        self._native = native
        self.name = name
        self.closed = self.closing = False
        self.process = os.getpid()
        self.lock = CallLock()
        self.lock.lifetime = weakref.ref(self)
        self.at_end: list[Callable[[], object]] = []
        self.unsettled: Callable[[], object] | None = None
        # Who is inside without the lock, each call with its thread.
        self._users: dict[object, int] = {}

    def serve(self, predictor: object) -> None:
        """The predictor is this engine's until it is closed."""
        _served[id(predictor)] = self

    def close(self) -> None:
        """Ends it, or has who is inside do so. See :meth:`specstream.Engine.close`."""
        if self.closed:
            return
        if self.is_inherited():
            # There is no thread to join, and a mutex may be held by one that will never be here:
            # what the native runtime holds is left to the end of the process.
            self.closed = True
            self.at_end.clear()
            return
        self.check_hook()
        self.closing = True
        if not self.await_end():
            # Who we interrupted may himself be interrupted before he could see to it.
            threading.Thread(target=self.await_end).start()

    def await_end(self) -> bool:
        """Waits until a closing engine has ended; False: this thread itself is inside."""
        while not self.closed:
            if self.is_inside():
                return False
            self._end()
            if not self.closed:
                time.sleep(0.001)
        return True

    def _end(self) -> None:
        """Ends a closing engine if nobody is inside."""
        if self._users or self.is_inherited():
            return
        try:
            # Whoever waits for the lock, or comes later, sees that the engine is closing.
            if self.lock.acquire(blocking=False) and not self._users:
                insist(self._end_now)
        finally:
            try:  # noqa: SIM105
                self.lock.release()
            except RuntimeError:
                pass

    def _end_now(self) -> None:
        # An interrupted step is begun anew, and what is freed has nothing to tell any more.
        if not self._native.is_freed:
            try:
                self.settle()
            except Exception:  # no memory for rows that nobody can ask for any more
                self.unsettled = None
            for last in self.at_end:
                last()
            self._native.free()
        self.closed = True
        self.at_end.clear()

    def inside(self, act: Callable[[], T]) -> T:
        """What ``act`` gives; the engine does not end meanwhile."""
        use = object()
        try:
            self._users[use] = threading.get_ident()
            # Who closes sees that we are here, or we see that it closes: each looks after it spoke.
            self.check_open()
            return act()
        finally:
            self._users.pop(use, None)

    def is_inside(self) -> bool:
        """Whether the calling thread is, so that it is interrupted in another call."""
        # A copy is made at one go; the others come and go meanwhile.
        if self._users and threading.get_ident() in self._users.copy().values():
            return True
        return bool(self.lock._is_owned())  # type: ignore[attr-defined]

    def is_exclusive(self) -> bool:
        """Whether the calling thread has the engine to itself."""
        return not self.is_inherited() and bool(self.lock._is_owned())  # type: ignore[attr-defined]

    def exclusive(self) -> AbstractContextManager[object]:
        """For ``with``: one caller at a time, on an engine that is not closed."""
        # What refuses says once more why: a call for each question takes longer than all of them.
        if self.closing or self.closed or os.getpid() != self.process:
            self.check_open()
        threads = self._native.threads
        if self._users or threading.get_ident() in threads or self.lock._is_owned():  # type: ignore[attr-defined]
            self.check_caller()
        return self.lock

    def try_lock(self, act: Callable[[], object], seconds: float = 0.0) -> bool:
        """Whether nobody else had the lock, or gave it back in time; then ``act`` was called."""
        try:
            if not self.lock.acquire(timeout=seconds):
                return False
            act()
            return True
        finally:
            # Not asked first whether it is ours: a signal handler may raise after each question.
            try:  # noqa: SIM105
                self.lock.release()
            except RuntimeError:
                pass

    def finish(self, step: Callable[[], object]) -> None:
        """With the lock: takes a step that must not be left half done, and may be begun anew."""
        self.unsettled = step
        self.settle()

    def settle(self) -> None:
        """With the lock: does what is left to do."""
        if self.unsettled is not None:
            insist(self.unsettled)
            self.unsettled = None

    def is_inherited(self) -> bool:
        """This process was forked from the engine's: neither its threads are here, nor the threads
        that held its locks."""
        return os.getpid() != self.process

    def in_hook(self) -> bool:
        """Whether the calling thread is one of the engine's: they run no other Python."""
        return threading.get_ident() in self._native.threads

    def check_open(self) -> None:
        """Refuses an engine that is closed, or of another process."""
        if self.is_inherited() and not self._native.is_freed:
            raise EngineClosedError(
                f"engine of {self.name!r} was made in process {self.process}, and this is process "
                f"{os.getpid()}, forked from it, where the engine's threads do not exist: make a "
                "new one here; Engine(operator, restore=engine.snapshot()) goes on from its state"
            )
        if self.closed or self.closing:
            raise EngineClosedError(
                f"engine of {self.name!r} is closed: make a new one; "
                "Engine(operator, restore=snapshot) goes on from a snapshot"
            )

    def check_hook(self) -> None:
        """Refuses a hook."""
        if self.in_hook():
            raise SpecstreamError(
                f"engine of {self.name!r}: a hook uses the engine that called it, which waits for "
                "the hook: use what the notification holds"
            )

    def check_caller(self) -> None:
        """Refuses who must not wait for the engine."""
        self.check_hook()
        if self.is_inside():
            raise SpecstreamError(
                f"engine of {self.name!r} is used in the middle of another call of this thread: a "
                "signal handler, a finaliser, migrate= or a predictor may ask for stats and "
                "profile(), and close(): have the rest done when the call has returned, or by "
                "another thread"
            )
