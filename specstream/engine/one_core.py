"""Why events run on one core, in a sentence: the answer that ``stats``, ``watch`` and ``run`` give.

First what somebody has declared or set, then what the predictor has measured.
"""

from __future__ import annotations

import os

from specstream.engine.options import Options
from specstream.predictors.checked import current_of
from specstream.predictors.predictor import Predictor

__all__ = ["why_one_core"]


def why_one_core(options: Options, predictor: Predictor, events: int, ran_ahead: int) -> str:
    """Empty where events run ahead on several cores, and before the first event.

    Args:
        options: of the engine.
        predictor: that chooses its setting.
        events: that were applied.
        ran_ahead: runs ahead of their turn so far.
    """
    if not events or (options.threads > 1 and options.execution == "locked"):
        return ""
    if options.threads == 1:
        cores = len(os.sched_getaffinity(0))
        if cores == 1:
            return "the engine has one thread, and this process may use one core"
        return f"the engine has one thread: give it more: threads={cores}, one for each core"
    if options.execution == "log_free":
        return 'execution="log_free" runs events one after the other: leave it out'
    if not options.operator.speculates:
        kind = "vertex" if options.operator.sources else "operator"
        return (
            f"speculate=False of the {kind}: its events run one after the other, as another thread "
            "would see values that may not come to be"
        )
    if current_of(predictor)[0] > 0:
        return ""
    found = predictor.why_plain()
    if found or ran_ahead:
        return found
    return (
        "no event has run ahead yet: too few came at once for Auto to measure whether it pays "
        "(batches of some milliseconds, or submitted events that wait for a frontier)"
    )
