"""Signals: what a series of numbers does, by key.

============================ ==================================================================
:func:`moving_average`       the mean of the last n values
:func:`crossing`             where a short moving average crosses a long one
:func:`bollinger_bands`      mean and standard deviations of the last n values
:func:`exponential_average`  a mean in which values count for less with age
:func:`cusum`                an alarm when the mean has shifted
:func:`adwin`                a window that shrinks when its mean has changed
============================ ==================================================================
"""

from specstream.operators.signals.adwin import adwin
from specstream.operators.signals.bollinger_bands import bollinger_bands
from specstream.operators.signals.crossing import crossing
from specstream.operators.signals.cusum import cusum
from specstream.operators.signals.exponential_average import exponential_average
from specstream.operators.signals.moving_average import moving_average

__all__ = ["adwin", "bollinger_bands", "crossing", "cusum", "exponential_average", "moving_average"]
