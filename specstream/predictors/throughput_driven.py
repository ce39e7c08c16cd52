"""The predictor that goes by throughput (Brito 2010, 4.2.3)."""

from __future__ import annotations

from specstream.declarations.options import refuses_unknown
from specstream.predictors.moving import Moving
from specstream.predictors.predictor import (
    Measurement,
    Setting,
)

__all__ = ["ThroughputDriven"]


class ThroughputDriven(Moving):
    """Repeats its last move while the throughput rises, and reverses it otherwise.

    Args:
        every: transactions between two decisions.
        chunk: events per transaction.
        start: first horizon.
        limit: longest horizon.

    >>> predictor = ThroughputDriven(every=100, chunk=1, start=4)
    >>> for seconds in (0.0010, 0.0008, 0.0009):
    ...     predictor.record(predictor.next(), Measurement(100, seconds, 100, aborts=0))
    ...     print(predictor.next().horizon)
    5
    6
    5
    """

    @refuses_unknown
    def __init__(
        self, every: int = 100, *, chunk: int = 8, start: int = 8, limit: int = 32
    ) -> None:
        super().__init__(every, chunk, start, limit)
        self._step = 1
        self._before = 0.0

    def _learn(self, setting: Setting, measured: Measurement) -> None:
        throughput = measured.events / measured.seconds if measured.seconds > 0 else float("inf")
        rose = throughput > self._before
        # At either limit it turns round, and so keeps looking.
        if not rose or not 0 <= self.horizon + self._step <= self.limit:
            self._step = -self._step
        change = "rose" if rose else "fell"
        self._move(
            self.horizon + self._step,
            f"throughput {change} from {self._before:.3g} to {throughput:.3g} events/s",
        )
        self._before = throughput
