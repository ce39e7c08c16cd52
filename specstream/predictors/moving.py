"""A horizon that moves by one: what the dissertation's two predictors have in common."""

from __future__ import annotations

from specstream.declarations.options import integer
from specstream.predictors.predictor import (
    EVERYTHING,
    LONGEST_CHUNK,
    LONGEST_HORIZON,
    Predictor,
    Setting,
)

__all__ = ["Moving"]


class Moving(Predictor):
    """A horizon that moves by one every so many transactions."""

    def __init__(self, every: int, chunk: int, start: int, limit: int) -> None:
        super().__init__()
        self.every = integer("every", every, 1, EVERYTHING)
        self.chunk = integer("chunk", chunk, 1, LONGEST_CHUNK)
        self.limit = integer("limit", limit, 1, LONGEST_HORIZON)
        self.horizon = integer("start", start, 0, self.limit, " (limit)")

    def current(self) -> tuple[int, int]:
        return self.horizon, self.chunk

    def next(self) -> Setting:
        return Setting(self.horizon, self.chunk, self.every * self.chunk)

    def least(self) -> int:
        return 1

    def cap(self, horizon: int) -> None:
        self.limit = min(self.limit, horizon)
        self.horizon = min(self.horizon, horizon)

    def _move(self, horizon: int, reason: str) -> None:
        horizon = min(max(horizon, 0), self.limit)
        if horizon != self.horizon:
            self.horizon = horizon
            self._decide(horizon, self.chunk, reason)
