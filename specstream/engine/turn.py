"""The turn, taken by somebody who is no worker: while he has it, the state stands still."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from specstream._native import ffi
from specstream.engine.flight import Flight
from specstream.engine.lifetime import Lifetime
from specstream.engine.native import Native
from specstream.errors import EngineClosedError

__all__ = ["Turn"]

# Between two looks whether who uses the engine has begun with a batch.
LOOK_SECONDS = 0.001


class Turn:
    """The turn of one engine; ``name`` is its operator's."""

    def __init__(self, native: Native, lifetime: Lifetime, flight: Flight, name: str) -> None:
        self._native = native
        self._lifetime = lifetime
        self._flight = flight
        self._name = name

    @contextlib.contextmanager
    def taken(self) -> Iterator[None]:
        """Nothing commits inside; for who is inside the engine already."""
        # Set where the turn is taken: a signal handler may raise before we see what was returned.
        held = ffi.new("bool *", False)
        try:
            while not self._native.try_turn(held):
                self._lifetime.check_open()
            yield
        finally:
            if held[0]:
                self._native.release_turn()

    @contextlib.contextmanager
    def still(self) -> Iterator[bool]:
        """The state stands still inside; True: no batch is in flight."""
        lifetime, flight = self._lifetime, self._flight
        if lifetime.is_inherited():
            self._check_left_idle()
            yield True
            return
        lifetime.check_caller()
        with lifetime.inside():
            # Everything but a batch is soon done, and must not be seen half done.
            while flight.begun is None:
                with lifetime.try_lock(LOOK_SECONDS) as mine:
                    if not mine:
                        lifetime.check_open()
                        continue
                    if not flight.is_open:
                        yield True
                        return
                    with self.taken():
                        yield False
                    return
            # A batch is in flight in another thread.
            with self.taken():
                yield False

    def _check_left_idle(self) -> None:
        """In a forked process: the state was whole at the fork, and nobody changes it any more."""
        idle = True
        for lock in (self._lifetime.lock, self._flight.between):
            # One held by a thread of this process comes free at once, one held at the fork never.
            idle = idle and lock.acquire(timeout=0.1)
            if idle:
                lock.release()
        # The thread that forked may itself have been in process(), in a signal handler.
        if idle and not self._native.is_freed:
            idle = self._native.is_idle()
        if not idle:
            raise EngineClosedError(
                f"engine of {self._name!r} was busy in process {self._lifetime.process} when this "
                "one was forked from it, so that its state here is that between no two events: "
                "fork between batches, or take a snapshot before"
            )
