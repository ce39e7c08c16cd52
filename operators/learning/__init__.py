"""Learning: models that predict each event, and most of them learn from it then.

============================ ==================================================================
:func:`naive_bayes`          classes, by means and variances of each feature
:func:`k_nearest`            classes, by a vote of the nearest points
:func:`linear_regression`    numbers, by the least squares of all events so far
:func:`logistic_regression`  yes or no, by a step down the gradient for each event
:func:`network`              scores, by a neural network that was trained elsewhere
============================ ==================================================================
"""

from specstream.operators.learning.k_nearest import k_nearest
from specstream.operators.learning.linear_regression import linear_regression
from specstream.operators.learning.logistic_regression import logistic_regression
from specstream.operators.learning.naive_bayes import naive_bayes
from specstream.operators.learning.network import network

__all__ = ["k_nearest", "linear_regression", "logistic_regression", "naive_bayes", "network"]
