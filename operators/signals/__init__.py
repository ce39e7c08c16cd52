"""Signals: what a series of numbers does, by key.

=========================== ===================================================================
:func:`moving_average`      the mean of the last n values of each key
:func:`crossing`            where a short moving average crosses a long one
=========================== ===================================================================
"""

from specstream.operators.signals.crossing import crossing
from specstream.operators.signals.moving_average import moving_average

__all__ = ["crossing", "moving_average"]
