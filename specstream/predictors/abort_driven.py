"""The predictor that goes by the share of transactions that abort (Brito 2010, 4.2.3)."""

from __future__ import annotations

from specstream.declarations.options import integer, number, refuses_unknown
from specstream.predictors.moving import Moving
from specstream.predictors.predictor import (
    EVERYTHING,
    Measurement,
    Setting,
)

__all__ = ["AbortDriven"]


class AbortDriven(Moving):
    """Shrinks the horizon while more than ``threshold`` of the transactions abort, else grows it.

    The dissertation counts the head as well: where it sets a horizon that has come down to 1 back
    to 2 from time to time, this sets 0 back to 1.

    Args:
        threshold: share of committed transactions that had to be run again, 0 to 1.
        every: transactions between two decisions.
        chunk: events per transaction.
        start: first horizon.
        limit: longest horizon.
        retry: decisions at horizon 0 before one transaction ahead is tried again.

    >>> predictor = AbortDriven(threshold=0.1, every=100, chunk=1, start=4)
    >>> predictor.record(predictor.next(), Measurement(100, 0.001, 100, aborts=50))
    >>> predictor.next().horizon
    3
    >>> predictor.record(predictor.next(), Measurement(100, 0.001, 100, aborts=2))
    >>> predictor.next().horizon
    4
    """

    @refuses_unknown
    def __init__(
        self,
        threshold: float = 0.1,
        every: int = 100,
        *,
        chunk: int = 8,
        start: int = 8,
        limit: int = 32,
        retry: int = 10,
    ) -> None:
        super().__init__(every, chunk, start, limit)
        self.retry = integer("retry", retry, 1, EVERYTHING)
        self.threshold = number("threshold", threshold, 0, 1, "a number from 0 to 1")
        self._idle = 0

    def _learn(self, setting: Setting, measured: Measurement) -> None:
        if setting.horizon == 0:
            # Without speculation nothing aborts, and nothing can be learned from that.
            self._idle += 1
            if self._idle >= self.retry:
                self._idle = 0
                self._move(1, f"retry after {self.retry} decisions without speculation")
            return
        share = measured.aborts / max(measured.commits, 1)
        if share > self.threshold:
            self._move(self.horizon - 1, f"{share:.1%} aborted, above {self.threshold:.1%}")
        else:
            self._move(self.horizon + 1, f"{share:.1%} aborted, not above {self.threshold:.1%}")
