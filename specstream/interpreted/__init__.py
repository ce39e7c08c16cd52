"""Operators that are run by Python as they are written, their state through the same transactions.

What no compiler takes (a model, linear algebra, a look-up over the network) may stand in an
operator that is declared with ``interpreted=True``. Its function is called with wrappers of state,
event and emit; what these do is done by a *backend*: :mod:`specstream.interpreted.runtime` in an
engine's threads, :mod:`specstream.interpreted.memory` in the sequential run. The two share the
wrappers and nothing below them; the wrappers of containers, and how these are held in the
sequential run, are those of the oracle (:mod:`specstream.compiler.oracle_objects`).
"""
