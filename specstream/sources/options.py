"""What a source is run with: the options of ``foreach_batch``, and those of batches."""

from __future__ import annotations

import signal
from collections.abc import Iterable
from dataclasses import dataclass

from specstream.checkpoint.run.stream_options import StreamOptions
from specstream.declarations.options import flag, integer, items, number, refused, whole

__all__ = ["RunOptions"]


# No process can handle them.
_UNHANDLED = {signal.SIGKILL, signal.SIGSTOP}


@dataclass(frozen=True, kw_only=True)
class RunOptions(StreamOptions):
    """The options of :func:`specstream.sources.run`, which says what each of them means.

    Raises:
        ConfigurationError: one of them has a value that it cannot have; names it.
    """

    max_rows: int = 8192
    max_wait: float = 0.001
    finish: bool = True
    at_most_once: bool = False
    signals: Iterable[signal.Signals] = (signal.SIGTERM, signal.SIGINT)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.prefetch:
            raise refused("prefetch", True, "False: sources read ahead by themselves")
        expected = "a list of signals, like [signal.SIGTERM]"
        numbers = items("signals", self.signals, expected)
        if not all(whole(one) in set(signal.Signals) - _UNHANDLED for one in numbers):
            raise refused("signals", numbers, expected)
        for name, value in (
            ("max_rows", integer("max_rows", self.max_rows, 1)),
            ("max_wait", number("max_wait", self.max_wait, 0, 60, "seconds, from 0 to 60")),
            ("finish", flag("finish", self.finish)),
            ("at_most_once", flag("at_most_once", self.at_most_once)),
            ("signals", numbers),
        ):
            object.__setattr__(self, name, value)
