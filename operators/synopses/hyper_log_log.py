"""How many different items came, in a few kilobytes (Flajolet and others 2007).

A hash of the item selects a register with its first bits; the register keeps the greatest position
of the first 1 among the others. A position of r in a register tells of about 2**r items in it. The
harmonic mean over the registers is the estimate; where it is small, and some registers are still
empty, their number tells more (linear counting). With hashes of 64 bits, there is no correction for
large numbers.

How many registers have each value is kept as well, so that the estimate takes a loop over 66
numbers, and it is computed only when a register has risen.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

import specstream as ss
from specstream.declarations.chosen_columns import named_column
from specstream.declarations.options import integer
from specstream.operators.synopses.hashing import mixed

__all__ = ["hyper_log_log"]


def hyper_log_log(precision: int = 12, item: type | Mapping[str, type] = int) -> ss.Operator:
    """How many different items came so far, whenever the estimate has changed.

    Events have one column ``item``. Rows emitted are ``(distinct,)``, a float: at most one per
    event. The standard error is 1.04 / sqrt(2**precision), 1.6 % for 12, and less for small
    numbers.

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
    correction = {16: 0.673, 32: 0.697, 64: 0.709}.get(registers, 0.7213 / (1 + 1.079 / registers))
    scale = correction * registers * registers
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
        empty = registers - taken
        estimate = scale / (total + empty)
        if estimate <= 2.5 * registers and empty > 0:
            estimate = registers * math.log(registers / empty)
        emit(estimate)

    return process
