"""The horizon that fits into the memory an engine may take."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specstream.engine.native import memory_needed
from specstream.engine.options import Options
from specstream.errors import ConfigurationError
from specstream.predictors.checked import least_of
from specstream.predictors.predictor import LONGEST_HORIZON, Predictor

if TYPE_CHECKING:
    from specstream._native import ss_config_p

__all__ = ["fit"]


def fit(config: ss_config_p, options: Options, predictor: Predictor) -> int:
    """Keeps the predictor to horizons whose logs fit ``memory=``; gives the longest of them.

    Raises:
        ConfigurationError: not even the shortest does; says how much it takes.
    """
    memory = options.memory
    if memory is None:
        return LONGEST_HORIZON

    least = least_of(predictor)
    need = memory_needed(config, least, options.mode)
    if need.total > memory:
        others = need.fixed + config.threads * need.thread
        raise ConfigurationError(
            f"memory={memory}: the engine of {options.operator.name!r} needs {need.total} bytes "
            f"for its logs and buffers: {others} for itself and {config.threads} thread(s), and "
            f"{need.transactions} (twice horizon {least}, rounded up to a power of two) "
            f"transactions of {need.transaction} each: lower horizon, threads or "
            "limits=ss.Limits(...), or raise memory"
        )
    longest = least
    # The ring is a power of two, and longer than twice the horizon.
    while longest < LONGEST_HORIZON:
        longer = 2 * longest + 1
        if memory_needed(config, longer, options.mode).total > memory:
            break
        longest = longer
    predictor.cap(longest)
    return min(longest, LONGEST_HORIZON)
