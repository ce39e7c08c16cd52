"""The turn, taken by somebody who is no worker: while he has it, the state stands still."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from specstream._native import ffi
from specstream.engine.flight import Flight
from specstream.engine.lifetime import Lifetime
from specstream.engine.native import Native
from specstream.errors import EngineClosedError

if TYPE_CHECKING:
    from specstream._native import Pointer

__all__ = ["Turn"]

T = TypeVar("T")

# Between two looks whether who uses the engine has begun with a batch.
LOOK_SECONDS = 0.001


class Turn:
    """The turn of one engine; ``name`` is its operator's."""

    def __init__(self, native: Native, lifetime: Lifetime, flight: Flight, name: str) -> None:
        self._native = native
        self._lifetime = lifetime
        self._flight = flight
        self._name = name

    def taken(self, act: Callable[[], T]) -> T:
        """What ``act`` gives: nothing commits meanwhile; for who is inside the engine already."""
        # Set where the turn is taken: a signal handler may raise before we see what was returned.
        held: Pointer[bool] = ffi.new("bool *", False)
        try:
            while not self._native.try_turn(held):
                self._lifetime.check_open()
            return act()
        finally:
            if held[0]:
                self._native.release_turn()

    def still(self, look: Callable[[bool], T]) -> T:
        """What ``look`` gives, while the state stands still; told True: no batch is in flight."""
        if self._lifetime.is_inherited():
            self._check_left_idle()
            return look(True)
        self._lifetime.check_caller()
        return self._lifetime.inside(lambda: self._still(look))

    def _still(self, look: Callable[[bool], T]) -> T:
        lifetime, flight = self._lifetime, self._flight
        seen: list[T] = []

        def alone() -> None:
            lifetime.settle()
            seen.append(self.taken(lambda: look(False)) if flight.is_open else look(True))

        # Everything but a batch is soon done, and must not be seen half done.
        while flight.counted is None:
            if lifetime.try_lock(alone, LOOK_SECONDS):
                return seen[0]
            lifetime.check_open()
        # A batch is in flight in another thread.
        return self.taken(lambda: look(False))

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
