"""Properties of streams: what holds at each event, where others are spoken of.

============================================ ====================================================
:func:`rule`                                 a property, as a function of one event
:func:`previous_event`, :func:`once`,        about earlier events
:func:`historically`, :func:`since`
:func:`next_event`, :func:`eventually`,      about later ones
:func:`always`, :func:`until`,
:func:`unless`
:func:`implies`                              where one thing is so, another one is
============================================ ====================================================

Of *streams* of truth values :func:`always`, :func:`eventually`, :func:`until`, :func:`implies`,
:func:`both`, :func:`either` and :func:`negated` give an answer for each row when it is known, in
their order. After Hallé, *When RV meets CEP* (2016), sections 3.3 and 5.1.
"""

from specstream.rules.declared import Rule, rule
from specstream.rules.operators import (
    always,
    eventually,
    historically,
    implies,
    next_event,
    once,
    previous_event,
    since,
    unless,
    until,
)
from specstream.rules.truth import both, either, negated

__all__ = [
    "Rule",
    "always",
    "both",
    "either",
    "eventually",
    "historically",
    "implies",
    "negated",
    "next_event",
    "once",
    "previous_event",
    "rule",
    "since",
    "unless",
    "until",
]
