"""Conditions about what is still to come, of streams of truth values.

============================================ ====================================================
:func:`always`, :func:`eventually`           every one from here on is true, or some one is
:func:`until`                                one stream is true until another one is
:func:`both`, :func:`either`,                SQL's three-valued tables, row by row
:func:`implies`, :func:`negated`
============================================ ====================================================

An answer comes when it is known, for each row in their order: ``stream.filter(answers)`` lets rows
go then. After Hallé, *When RV meets CEP* (2016), sections 3.3 and 5.1.
"""

from specstream.rules.truth import always, both, either, eventually, implies, negated, until

__all__ = ["always", "both", "either", "eventually", "implies", "negated", "until"]
