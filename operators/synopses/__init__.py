"""Summaries of a stream in bounded memory, with bounds of their error (Brito 2010, 2.1.1).

The count sketch is also a part of :func:`specstream.operators.top_k`.

=============================== =================================================================
:func:`adaptive_histogram`      a histogram whose range need not be known before
:func:`count_min`               how often each item came, never too low
:func:`count_sketch`            how often each item came, too high or too low by a little
:func:`haar_wavelet`            the largest Haar coefficients of each block of values
:func:`histogram`               how many values lie in each of some equally wide bins
:func:`hyper_log_log`           how many different items came
:func:`quantiles`               quantiles of all values, to a relative error
:func:`reservoir`               a uniform random sample
:func:`space_saving`            the frequent items, and how often they came at most and at least
=============================== =================================================================
"""

from specstream.operators.synopses.adaptive_histogram import adaptive_histogram
from specstream.operators.synopses.count_min import count_min
from specstream.operators.synopses.count_sketch import count_sketch
from specstream.operators.synopses.haar_wavelet import haar_wavelet
from specstream.operators.synopses.histogram import histogram
from specstream.operators.synopses.hyper_log_log import hyper_log_log
from specstream.operators.synopses.quantiles import quantiles
from specstream.operators.synopses.reservoir import reservoir
from specstream.operators.synopses.space_saving import space_saving

__all__ = [
    "adaptive_histogram",
    "count_min",
    "count_sketch",
    "haar_wavelet",
    "histogram",
    "hyper_log_log",
    "quantiles",
    "reservoir",
    "space_saving",
]
