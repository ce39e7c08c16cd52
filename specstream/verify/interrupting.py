"""An end to what Python runs and nobody else can stop."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from specstream.verify.paths import OutOfTime

__all__ = ["ends_at"]


@contextmanager
def ends_at(until: float) -> Iterator[None]:
    """Raises :class:`OutOfTime` in this thread, between two steps of Python, when it is so late.

    Args:
        until: by ``time.monotonic``.
    """
    thread, lock, is_over = threading.get_ident(), threading.Lock(), threading.Event()
    was_sent = False

    def watch() -> None:
        nonlocal was_sent
        if is_over.wait(min(max(until - time.monotonic(), 0), threading.TIMEOUT_MAX)):
            return
        with lock:
            if not is_over.is_set():
                was_sent = True
                _raise_in(thread)

    threading.Thread(target=watch, daemon=True, name="specstream-verify-deadline").start()
    came = False
    try:
        yield
    except OutOfTime:
        came = True
        raise
    finally:
        with lock:
            is_over.set()
        if was_sent and not came:
            _wait_for_it()


def _wait_for_it() -> None:
    """What was sent comes here, and not where nobody expects it any more."""
    try:
        while True:
            time.sleep(0.001)
    except OutOfTime:
        return


def _raise_in(thread: int) -> None:
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(OutOfTime))
