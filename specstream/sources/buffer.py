"""Rows on their way from whoever receives them to whoever runs them: so many, and no more.

Who puts waits while it is full. So a slow engine slows the receiver, that one stops reading, and
the sender comes to wait: nothing piles up in between.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import Any

__all__ = ["Buffer"]


class Buffer:
    """A queue between two threads, bounded by the number of rows in it.

    Args:
        room: it takes in items until it has so many rows.

    >>> buffer = Buffer(3)
    >>> [buffer.offer(item, 2) for item in "abc"]
    [True, True, False]
    >>> buffer.take(4, 0, 0), buffer.take(4, 0, 0)
    (['a', 'b'], [])
    >>> buffer.end()
    >>> buffer.take(3, 0, 0) is None
    True
    """

    def __init__(self, room: int) -> None:
        self._room = room
        self._items: deque[tuple[Any, int]] = deque()
        self._rows = 0
        self._changed = threading.Condition()
        self._ended = self._closed = False
        self._error: BaseException | None = None

    @property
    def rows(self) -> int:
        """How many are in it."""
        return self._rows

    def offer(self, item: Any, rows: int) -> bool:
        """Puts an item in, if there is room; False: there is none, or the buffer is closed."""
        with self._changed:
            return self._put(item, rows)

    def put(self, item: Any, rows: int) -> bool:
        """Puts an item in, as soon as there is room; False: the buffer was closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._rows < self._room)
            return self._put(item, rows)

    def _put(self, item: Any, rows: int) -> bool:
        if self._closed or self._rows >= self._room:
            return False
        self._items.append((item, rows))
        self._rows += rows
        self._changed.notify_all()
        return True

    def take(self, rows: int, wait: float, idle: float) -> list[Any] | None:
        """Items with so many rows, or one that has more; what has come, but for ``wait`` seconds.

        It waits for the first one, but no longer than ``idle`` seconds.

        Returns:
            The items; None: there are none, and no other comes.

        Raises:
            BaseException: what :meth:`end` was given, behind the items that came before.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._items or self._ended, idle)
            until = time.monotonic() + wait
            while self._items and self._rows < rows and not self._ended:
                left = until - time.monotonic()
                if left <= 0:
                    break
                self._changed.wait(left)
            taken: list[Any] = []
            count = 0
            while self._items and (not taken or count + self._items[0][1] <= rows):
                item, of_item = self._items.popleft()
                taken.append(item)
                count += of_item
            self._rows -= count
            self._changed.notify_all()
            if taken or not self._ended:
                return taken
            if self._error is not None:
                raise self._error
            return None

    def refill(self, left: deque[Any], rows: int, wait: float, idle: float) -> bool:
        """Takes items into ``left`` if that is empty, as :meth:`take` does; False: there are none
        in either, and no other comes."""
        taken = [] if left else self.take(rows, wait, idle)
        left.extend(taken or ())
        return taken is not None

    def end(self, error: BaseException | None = None) -> None:
        """No other item comes: because the source has ended, or because of an error."""
        with self._changed:
            if not self._ended:
                self._ended, self._error = True, error
            self._changed.notify_all()

    def close(self) -> None:
        """Takes nothing in any more, and lets go whoever waits to put something in."""
        with self._changed:
            self._closed = self._ended = True
            self._changed.notify_all()
