"""Locks inside an operator, for the lock-based rivals in ``bench/locked``.

An operator that calls these is run by ``Engine(..., execution="locked", locks=n)`` as a programmer
without speculation would run it: on all threads, in no order, under the locks that it takes itself.
In every other execution, and under the oracle, both calls do nothing.

The numbers of locks go from 0 to ``locks - 1``. A lock is not reentrant. An event that raises or
crashes keeps the locks that it holds: whatever may raise belongs before :func:`acquire`.

>>> import specstream as ss
>>> from specstream.locks import acquire, release
>>> class Total(ss.State):
...     value = ss.scalar(int)
>>> @ss.operator(state=Total, event={"x": int}, emits={})
... def add(state, event, emit):
...     square = event.x * event.x
...     acquire(0)
...     state.value += square
...     release(0)
>>> with ss.Engine(add, threads=2, execution="locked", locks=1) as engine:
...     _ = engine.process({"x": list(range(100))})
...     engine.state.value
328350
"""

from __future__ import annotations

__all__ = ["acquire", "release"]


def acquire(lock: int) -> None:
    """Waits until no other thread holds the lock, and takes it."""


def release(lock: int) -> None:
    """Gives the lock back."""
