"""Verbs: what a stream does by itself, each an operator that could stand in ``operators/``.

=========================================== ======================================================
:func:`map`, :func:`with_columns`           a row computed of each event
:func:`filter`                              the events of which a function says True
:func:`accumulate`                          a running value
:func:`skip`, :func:`take`, :func:`every`   all but the first n, the first n, every n-th
:func:`freeze`, :func:`last`                the first row again and again; the last one at the end
:func:`start_with`                          a row before the first one
:func:`zip`, :func:`merge`                  several streams side by side, or one after the other
:func:`window`                              the last n rows
:func:`keyed`, :func:`machine`              a record, or a state machine, for each key
:func:`across`                              what the latest rows of all keys come to
=========================================== ======================================================

A :class:`specstream.pipelines.Stream` has them as methods, and gives them its columns. After Hallé,
*When RV meets CEP* (2016): BeepBeep's processors.
"""

from specstream.verbs.accumulate import accumulate
from specstream.verbs.by_key import across, keyed
from specstream.verbs.counting import every, skip, take
from specstream.verbs.edges import freeze, last, start_with
from specstream.verbs.machine import ANY, OTHERWISE, machine
from specstream.verbs.mapping import filter, map, with_columns
from specstream.verbs.merging import merge
from specstream.verbs.windowing import window
from specstream.verbs.zipping import zip

__all__ = [
    "ANY",
    "OTHERWISE",
    "accumulate",
    "across",
    "every",
    "filter",
    "freeze",
    "keyed",
    "last",
    "machine",
    "map",
    "merge",
    "skip",
    "start_with",
    "take",
    "window",
    "with_columns",
    "zip",
]
