"""The turn, taken by somebody who is no worker: while he has it, the state stands still."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from specstream._native import ffi, lib
from specstream.errors import EngineClosedError

if TYPE_CHECKING:
    from specstream.engine import Engine
    from specstream.out_of_order import OutOfOrder

__all__ = ["WAIT_MILLISECONDS", "native_turn", "turn"]

# Between two looks at the interpreter's signals.
WAIT_MILLISECONDS = 50


@contextlib.contextmanager
def turn(engine: Engine) -> Iterator[bool]:
    """The state stands still inside; True: no batch is in flight."""
    if engine._is_inherited():
        _check_left_idle(engine)
        yield True
        return
    engine._check_caller()
    with engine._inside(), engine._try_lock() as mine:
        if mine and not engine._is_open:
            yield True
        else:  # another thread is in a call, perhaps with a batch in flight
            with native_turn(engine):
                yield False


@contextlib.contextmanager
def native_turn(engine: OutOfOrder) -> Iterator[None]:
    """Nothing commits inside."""
    # Set where the turn is taken: a signal handler may raise before we see what was returned.
    held = ffi.new("bool *", False)
    try:
        while not lib.ss_engine_try_turn(engine._native, WAIT_MILLISECONDS, held):
            engine._check_open()
        yield
    finally:
        if held[0]:
            lib.ss_engine_release_turn(engine._native)


def _check_left_idle(engine: Engine) -> None:
    """In a forked process: the state was whole at the fork, and nobody changes it any more."""
    idle = True
    for lock in (engine._lock, engine._between):
        # One held by a thread of this process comes free at once, one held at the fork never.
        idle = idle and lock.acquire(timeout=0.1)
        if idle:
            lock.release()
    # The thread that forked may itself have been in process(), in a signal handler.
    if idle and engine._native != ffi.NULL:
        idle = lib.ss_engine_is_idle(engine._native)
    if not idle:
        raise EngineClosedError(
            f"engine of {engine.name!r} was busy in process {engine._process} when this one was "
            "forked from it, so that its state here is that between no two events: fork "
            "between batches, or take a snapshot before"
        )
