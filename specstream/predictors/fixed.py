"""The predictor that never moves."""

from __future__ import annotations

from specstream.declarations.options import integer, refuses_unknown
from specstream.predictors.predictor import (
    EVERYTHING,
    LONGEST_CHUNK,
    LONGEST_HORIZON,
    Measurement,
    Predictor,
    Setting,
)

__all__ = ["Fixed"]


class Fixed(Predictor):
    """Always the same setting.

    Args:
        horizon: transactions that may start ahead of the head, 0 to 65536; 0: plain, on one thread.
        chunk: events per transaction, 1 to 1048576.

    Raises:
        ConfigurationError: one of them is none.
    """

    @refuses_unknown
    def __init__(self, horizon: int, chunk: int) -> None:
        super().__init__()
        self.horizon = integer("Fixed: horizon", horizon, 0, LONGEST_HORIZON)
        self.chunk = integer("Fixed: chunk", chunk, 1, LONGEST_CHUNK)

    def current(self) -> tuple[int, int]:
        return self.horizon, self.chunk

    def next(self) -> Setting:
        return Setting(self.horizon, self.chunk, EVERYTHING)

    @property
    def speculates(self) -> bool:
        return self.horizon > 0

    def why_plain(self) -> str:
        return "" if self.horizon else "horizon=0 was given, which is one core: leave it out"

    def least(self) -> int:
        return self.horizon

    def cap(self, horizon: int) -> None:
        pass

    def _learn(self, setting: Setting, measured: Measurement) -> None:
        pass
