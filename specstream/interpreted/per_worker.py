"""Objects that are not safe in threads: one for each thread that runs an operator."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from specstream.declarations.options import function, refuses_unknown

__all__ = ["PerWorker", "per_worker"]

T = TypeVar("T")


class PerWorker(Generic[T]):
    """Made by :func:`per_worker`: called, it gives the object of the thread that calls."""

    def __init__(self, factory: Callable[[], T]) -> None:
        self._factory = factory
        self._held = threading.local()

    def __call__(self) -> T:
        try:
            found: T = self._held.one
        except AttributeError:
            found = self._held.one = self._factory()
        return found

    def __reduce__(self) -> Any:
        return PerWorker, (self._factory,)


@refuses_unknown
def per_worker(factory: Callable[[], T]) -> PerWorker[T]:
    """One object for each thread of an engine, made when an interpreted operator first asks for it.

    For what an interpreted operator uses and what threads cannot share: a connection, a model with
    buffers of its own. It goes with its thread, at the engine's end. What it gives must not depend
    on which thread asks, nor on what was asked before.

    Args:
        factory: called without arguments, once in each thread.

    Raises:
        ConfigurationError: ``factory`` is no function.

    >>> import specstream as ss
    >>> class Smoother:
    ...     def __call__(self, x):
    ...         return 0.5 * x
    >>> smoother = ss.per_worker(Smoother)
    >>> class Level(ss.State):
    ...     level = ss.scalar(float)
    >>> @ss.operator(state=Level, event={"x": float}, emits={"level": float}, interpreted=True)
    ... def levels(state, event, emit):
    ...     state.level = smoother()(state.level + event.x)
    ...     emit(state.level)
    >>> with ss.Engine(levels, threads=2) as engine:
    ...     engine.process({"x": [1.0, 2.0]})["level"].to_pylist()
    [0.5, 1.25]
    """
    return PerWorker(function("per_worker", factory, "a function without arguments"))
