"""Who may use an engine, and its end: one caller at a time, hooks and forked processes kept out.

A signal handler or a finaliser may come at any point of a call, in the same thread, and use the
engine, close it or raise. So entries come and go by operations that the interpreter does not
divide, and what must not be left half done is no call, or in ``finally``.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator

from specstream.declarations.options import shown
from specstream.engine.native import Native
from specstream.errors import ConfigurationError, EngineClosedError, SpecstreamError

__all__ = ["Lifetime", "check_unused"]


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
        at_end: what is done before the threads end, in order. Forgotten then: it refers to who
            refers to this, and an engine that nobody holds is to go without the collector.
    """

    def __init__(self, native: Native, name: str) -> None:
        self._native = native
        self.name = name
        self.closed = self.closing = False
        self.process = os.getpid()
        self.lock = threading.RLock()
        self.at_end: list[Callable[[], object]] = []
        self._users: dict[object, int] = {}  # who is inside, each call with its thread
        self._enders: list[tuple[int, object]] = []  # who came to end it; the first one does

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
        self.await_end()

    def await_end(self) -> bool:
        """Waits until a closing engine has ended; False: this thread itself is to end it, later."""
        while not self.closed:
            if self.is_inside() or (self._enders and self._enders[0][0] == threading.get_ident()):
                return False
            self._end()
            if not self.closed:
                time.sleep(0.001)
        return True

    def _end(self) -> None:
        """Ends a closing engine if nobody is inside. Only the first who comes that far does it."""
        if self._users or self.is_inherited():
            return
        mine = threading.get_ident(), object()
        try:
            self._enders.append(mine)
            if self._enders[0] is mine:
                for last in self.at_end:
                    last()
        finally:
            if self._enders[:1] == [mine]:
                try:
                    self._native.free()
                finally:
                    self.closed = True
                    self.at_end.clear()

    @contextlib.contextmanager
    def inside(self) -> Iterator[None]:
        """The engine does not end before this is left."""
        use = object()
        try:
            self._users[use] = threading.get_ident()
            # Who closes sees that we are here, or we see that it closes: each looks after it spoke.
            self.check_open()
            yield
        finally:
            self._users.pop(use, None)
            if self.closing:
                self._end()

    def is_inside(self) -> bool:
        """Whether the calling thread is, so that it is interrupted in another call."""
        # A copy is made at one go; the others come and go meanwhile.
        return threading.get_ident() in self._users.copy().values()

    @contextlib.contextmanager
    def exclusive(self) -> Iterator[None]:
        """One caller at a time, on an engine that is not closed."""
        self.check_open()
        self.check_caller()
        with self.inside(), self.lock:
            self.check_open()
            yield

    @contextlib.contextmanager
    def try_lock(self, seconds: float = 0.0) -> Iterator[bool]:
        """True: nobody else has the lock, or he gave it back in time; it is ours inside."""
        try:
            yield self.lock.acquire(timeout=seconds)
        finally:
            # Not asked first whether it is ours: a signal handler may raise after each question.
            try:  # noqa: SIM105
                self.lock.release()
            except RuntimeError:
                pass

    def regain_lock(self) -> None:
        """Takes the lock, whatever a signal handler raises meanwhile: the caller releases it."""
        try:
            while not self.lock._is_owned():  # type: ignore[attr-defined]
                self.lock.acquire()
        except BaseException:
            self.regain_lock()
            raise

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
