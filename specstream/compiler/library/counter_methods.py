"""Counting with ``Counter``: of a dict it takes the counts, of all else it counts the items.

``Counter(xs)`` counts, and ``Counter(d)`` has the counts already. Which of both it is, is known
with the type of the argument.
"""

# Numba's internals are only partly typed.
# mypy: allow-untyped-calls

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numba.core import types

from specstream.compiler.backend.instructions import Value
from specstream.compiler.backend.local_types import DictType, Unknown
from specstream.compiler.backend.none_types import may_be_none
from specstream.compiler.backend.overloads import Core, Meaning, called
from specstream.compiler.backend.scalar_kinds import scalar_kind
from specstream.compiler.language.typing_refusals import refuse
from specstream.compiler.library.local_table_methods import same_tables
from specstream.compiler.library.local_tables import keys, values

__all__ = ["by_argument"]

by_argument = Core("Counter", "it counts the items of an iterable, or takes the counts of a dict")
"""(function, function of a dict, arguments of either): see ``standard_library.OF_MAPPINGS``."""


@by_argument.rule
def _chosen(context: Any, args: Sequence[types.Type]) -> Meaning | None:
    plain, of_mapping, *given = args
    counts, counted = given[1:-1], given[-1]
    if may_be_none(counted):
        raise refuse("a Counter gets a value that may be None: test it first")
    is_mapping = isinstance(counted, DictType)
    if is_mapping:
        _check_counts(counted)
    if counts:
        _settle_counter(counts[0], counted)
    chosen = of_mapping if is_mapping else plain
    result, taken, call = called(chosen.dispatcher)(context, given)

    def code(context: Any, builder: Any, sig: Any, values: Sequence[Value]) -> Value:
        return call(context, builder, result(*taken), values[2:])

    return result, (plain, of_mapping, *taken), code


def _check_counts(of: DictType) -> None:
    value = of.value_type
    if not isinstance(value, Unknown) and scalar_kind(value) is None:
        raise refuse(f"the counts of a Counter are {value}: give it a dict of numbers")


def _settle_counter(counts: types.Type, counted: types.Type) -> None:
    """What ``Counter`` counts says what an empty one holds, whose types nobody knows yet.

    It is the caller's, and nobody else has put anything into it.
    """
    if not isinstance(counts, DictType):
        return
    if isinstance(counted, DictType):
        same_tables(counts, counted)
    elif isinstance(counted, types.IterableType):
        keys(counts, counted.iterator_type.yield_type)
        values(counts, types.int64)
