"""What a predictor asks for, looked at before the runtime gets it: it may be a user's own."""

from __future__ import annotations

import math
from numbers import Real
from typing import NamedTuple

import numpy as np

from specstream.declarations.options import refused, shown, whole
from specstream.errors import ConfigurationError
from specstream.predictors.predictor import LONGEST_CHUNK, LONGEST_HORIZON, Predictor, Setting

__all__ = [
    "checked_predictor",
    "current_of",
    "least_of",
    "longest_of",
    "next_of",
    "open_of",
    "speculates_of",
]


def checked_predictor(predictor: object) -> Predictor:
    """The predictor.

    Raises:
        ConfigurationError: it is none.
    """
    if not isinstance(predictor, Predictor):
        raise refused("predictor", predictor, "a predictor, like ss.Auto() or ss.Fixed(8, 8)")
    if not hasattr(predictor, "decisions"):
        raise ConfigurationError(
            f"predictor {type(predictor).__name__} is not complete: its __init__ has to call "
            "super().__init__()"
        )
    return predictor


def next_of(predictor: Predictor, longest: int) -> Setting:
    """The setting of the next stretch; no horizon may be beyond ``longest``.

    Raises:
        ConfigurationError: it asks for what cannot be; names the predictor.
    """
    setting = predictor.next()
    asks = _Asks(predictor, "next", setting)
    if not isinstance(setting, Setting):
        raise asks.wrong("a Setting")
    horizon, chunk = asks.reach(setting.horizon, setting.chunk, longest)
    events, seconds = asks.integer("events", setting.events, 1), setting.seconds
    if seconds is not None:
        is_number = isinstance(seconds, Real) and not isinstance(seconds, bool)
        if not is_number or not 0 < seconds < math.inf:
            raise asks.wrong("a finite number of seconds above 0, or None")
        seconds = float(seconds)
    return Setting(horizon, chunk, events, seconds)


def open_of(predictor: Predictor, longest: int) -> tuple[int, int]:
    """Horizon and chunk for events out of order.

    Raises:
        ConfigurationError: as of :func:`next_of`.
    """
    return _Asks(predictor, "open", predictor.open()).pair(longest)


def current_of(predictor: Predictor) -> tuple[int, int]:
    """Horizon and chunk as they stand.

    Raises:
        ConfigurationError: as of :func:`next_of`.
    """
    return _Asks(predictor, "current", predictor.current()).pair(LONGEST_HORIZON)


def least_of(predictor: Predictor) -> int:
    """The shortest horizon that it can be capped to.

    Raises:
        ConfigurationError: as of :func:`next_of`.
    """
    least = predictor.least()
    return _Asks(predictor, "least", least).integer("the horizon", least, 0, LONGEST_HORIZON)


def longest_of(predictor: Predictor, longest: int) -> int:
    """The horizon up to which the runtime may lengthen one; 0: not at all.

    Raises:
        ConfigurationError: as of :func:`next_of`.
    """
    method = predictor.longest
    if not callable(method):
        # A predictor that is older than this method may have an attribute of its name.
        raise ConfigurationError(
            f"predictor {type(predictor).__name__}: longest is {shown(method)}; expected a "
            "method that returns a horizon or None; give the attribute another name"
        )
    returned = method()
    if returned is None:
        return 0
    return _Asks(predictor, "longest", returned).integer("horizon", returned, 1, longest)


def speculates_of(predictor: Predictor) -> bool:
    """Whether a stretch may have a horizon.

    Raises:
        ConfigurationError: as of :func:`next_of`.
    """
    speculates = predictor.speculates
    if not isinstance(speculates, bool | np.bool_):
        raise _Asks(predictor, "speculates", speculates).wrong("True or False")
    return bool(speculates)


class _Asks(NamedTuple):
    """What a method of a predictor has returned."""

    predictor: Predictor
    method: str
    returned: object

    def pair(self, longest: int) -> tuple[int, int]:
        if not isinstance(self.returned, tuple) or len(self.returned) != 2:
            raise self.wrong("(horizon, chunk)")
        return self.reach(*self.returned, longest)

    def reach(self, horizon: object, chunk: object, longest: int) -> tuple[int, int]:
        return (
            self.integer("horizon", horizon, 0, longest),
            self.integer("chunk", chunk, 1, LONGEST_CHUNK),
        )

    def integer(self, what: str, value: object, low: int, high: int | None = None) -> int:
        number = value if type(value) is int else whole(value)
        if number is None or number < low or (high is not None and number > high):
            most = "or more" if high is None else f"to {high}"
            capped = high is not None and what == "horizon" and high < LONGEST_HORIZON
            why = ", as memory= has capped it with cap()" if capped else ""
            raise self.wrong(f"{what} an integer from {low} {most}{why}")
        return number

    def wrong(self, expected: str) -> ConfigurationError:
        called = " is" if self.method == "speculates" else "() returned"
        return ConfigurationError(
            f"predictor {type(self.predictor).__name__}: {self.method}{called} "
            f"{shown(self.returned)}; expected {expected}"
        )
