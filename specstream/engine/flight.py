"""What of an engine is in flight: a batch, or the open job; and where a hook finds its event."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from specstream.columns.events import Events

__all__ = ["Flight", "Locate"]

# From a row of the job to its event: (events, row among them, timestamp, source, sequence).
Locate = Callable[[int], tuple[Events, int, Any, Any, int]]


class Flight:
    """What is in flight.

    Attributes:
        counted: rows of the batch in flight that earlier stretches have done, and the job of the
            last of these; None: no batch is in flight. With the outcome of the job in flight, if it
            is a later one, it says how far the state is.
        between: the lock that is held while this or the job changes.
        batch: the batch in flight, if it has order times, and the events applied before it.
        is_open: an open job takes submitted events.
        locate: finds the event of a hook in a batch; None: it is one that was submitted.
        unheard: outcome of the job that was counted last, while what has failed in it, if anything,
            is not yet told of.
        end_is_unheard: the last batch has raised. If it has come to the end of the input, or only
            begun with it, the caller cannot know, and a call that ends the input again ends it at
            the same place.
        answered: words that Python has given the event that asked last, which runs again.
    """

    def __init__(self) -> None:
        self.counted: tuple[int, int] | None = None
        self.between = threading.Lock()
        self.batch: tuple[Events, int] | None = None
        self.is_open = False
        self.locate: Locate | None = None
        self.unheard: Any = None
        self.end_is_unheard = False
        self.answered: npt.NDArray[np.int64] = np.empty(0, np.int64)
