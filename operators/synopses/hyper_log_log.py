"""How many different items came, in a few kilobytes (Flajolet and others 2007).

A hash of the item selects a register with its first bits; the register keeps the greatest position
of the first 1 among the others. A position of r in a register tells of about 2**r items in it. The
estimate is the harmonic mean over the registers, in which an empty one counts for what the share of
the empty ones tells of it (Ertl 2017, "improved raw estimator"). The formula of 2007 takes that
share alone for small numbers, and has a bias of several standard errors where it changes over, at
2.5 times the number of registers. With hashes of 64 bits, there is no correction for large numbers.

How many registers have each value is kept as well, so that the estimate takes a loop over 66
numbers, and it is computed only when a register has risen.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

import specstream as ss
from specstream.declarations.chosen_columns import named_column
from specstream.declarations.options import integer, refuses_unknown
from specstream.operators.synopses.hashing import mixed

__all__ = ["hyper_log_log"]


@refuses_unknown
def hyper_log_log(precision: int = 12, item: type | Mapping[str, type] = int) -> ss.Operator:
    """How many different items came so far, whenever the sketch has changed.

    Events have one column ``item``. Rows emitted are ``(distinct,)``, a float: at most one per
    event, and none lower than the one before, up to rounding. The standard error is about
    1.04 / sqrt(2**precision), 1.6 % for 12, and less for small numbers.

    Args:
        precision: the sketch has 2**precision registers, of a byte each; 4 to 18.
        item: type of the column, ``int`` or ``str``; with another name for it ``{"page": str}``.

    State: ``registers`` (2**precision), and ``with_value``, how many registers have the value 1, 2
    and so on. An event that emits nothing changes nothing; those that emit conflict with each
    other, and become rare where many different items have come.

    Raises:
        ConfigurationError: an argument has a value that it cannot have.

    >>> import specstream as ss
    >>> from specstream.operators.synopses import hyper_log_log
    >>> with ss.Engine(hyper_log_log(), threads=2) as engine:
    ...     output = engine.process({"item": [7, 7, 3, 9, 7]})
    >>> [round(one, 2) for one in output["distinct"].to_pylist()]
    [1.0, 2.0, 3.0]
    """
    precision = integer("hyper_log_log: precision", precision, 4, 18)
    column, item = named_column("hyper_log_log: item", item, "item")
    registers = 2**precision
    scale = registers * registers / (2.0 * math.log(2.0))
    rest = 64 - precision  # bits that give the position
    highest = rest + 1

    class DistinctCountState(ss.State):
        registers = ss.array(np.uint8, 2**precision)
        with_value = ss.array(int, highest + 1)

    @ss.operator(
        state=DistinctCountState,
        event={column: item},
        emits={"distinct": float},
        name="hyper_log_log",
    )
    def process(state, event, emit):  # type: ignore[no-untyped-def]
        h = mixed(getattr(event, column))
        register = int(h >> np.uint64(rest))
        below = int(h & np.uint64(2**rest - 1))
        position = highest - below.bit_length()
        before = state.registers[register]
        if position <= before:
            return
        state.registers[register] = position
        state.with_value[position] += 1
        if before > 0:  # those of value 0 are not counted: they are what remains
            state.with_value[before] -= 1

        taken = 0
        total = 0.0
        for value in range(1, highest + 1):
            count = state.with_value[value]
            taken += count
            total += math.ldexp(count, -value)
        emit(scale / (total + registers * _of_empty((registers - taken) / registers)))

    return process


def _of_empty(share: Any) -> Any:
    """Inside an operator: of the share x of empty registers x + x**2 + 2 x**4 + 4 x**8 + ..."""
    total = share
    before = -1.0
    factor = 1.0
    while total != before:
        before = total
        share *= share
        total += share * factor
        factor += factor
    return total
