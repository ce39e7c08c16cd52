"""An event loop in a thread of its own, for what is written with ``async`` in a program without."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any

__all__ = ["LoopThread"]


class LoopThread:
    """Runs coroutines in a thread of its own.

    >>> async def answer():
    ...     return 42
    >>> thread = LoopThread("example")
    >>> thread.call(answer())
    42
    >>> thread.close()
    """

    def __init__(self, name: str) -> None:
        self.loop = asyncio.new_event_loop()
        # A daemon: an iterator that does not come back would keep the interpreter.
        self._thread = threading.Thread(target=self.loop.run_forever, name=name, daemon=True)
        self._thread.start()

    def call(self, work: Coroutine[Any, Any, Any], timeout: float | None = None) -> Any:
        """Runs a coroutine to its end.

        Raises:
            TimeoutError: it takes longer.
            Exception: what it raised.
        """
        running = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            return running.result(timeout)
        except TimeoutError:
            running.cancel()
            raise

    def post(self, work: Coroutine[Any, Any, Any]) -> None:
        """Begins to run a coroutine, whose outcome nobody waits for."""
        asyncio.run_coroutine_threadsafe(work, self.loop)

    def close(self) -> None:
        """Cancels what is under way, and ends the thread."""
        if not self.loop.is_running():
            return
        self.call(self._cancel_all())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()

    async def _cancel_all(self) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
