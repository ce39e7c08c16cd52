"""The four kinds of operators of databases: filter, map, aggregate, join (Brito 2010, 2.1.2).

A filter or a map without a state is a function of three lines (``docs/guides/operators.md``,
"Without a state"), so none is here.

=============================== =================================================================
:func:`distinct`                a filter: the first event of each key
:func:`distinct_bloom`          the same in fixed memory, but for a few that are dropped by mistake
:func:`enrich`                  a join with a table that changes slowly
:func:`join`                    a join of two windows
:func:`running_aggregate`       count, sum, mean, min, max and variance of each key
=============================== =================================================================
"""

from specstream.operators.basic.distinct import distinct
from specstream.operators.basic.distinct_bloom import distinct_bloom
from specstream.operators.basic.enrich import enrich
from specstream.operators.basic.join import join
from specstream.operators.basic.running_aggregate import running_aggregate

__all__ = ["distinct", "distinct_bloom", "enrich", "join", "running_aggregate"]
