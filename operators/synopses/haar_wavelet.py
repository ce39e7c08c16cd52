"""The largest Haar coefficients of each block of values (Brito 2010, 2.1.1: wavelets; [AY07]).

The Haar transform replaces two neighbours by their mean and their difference, both times the root
of 2, and goes on with the means. So it keeps the sum of squares: of all choices of k coefficients
the largest ones leave the least squared error, which is the sum of squares of those left out.

Values are cut into blocks, as the largest coefficients of a stream without an end are not known in
one pass.
"""

from __future__ import annotations

import math

import specstream as ss
from specstream.declarations.chosen_columns import column_name
from specstream.declarations.options import integer, refused, refuses_unknown
from specstream.structures import increment

__all__ = ["haar_wavelet"]

_LARGEST = 1e300
_HALF = math.sqrt(0.5)


@refuses_unknown
def haar_wavelet(block: int = 1024, k: int = 32, value: str = "value") -> ss.Operator:
    """The ``k`` largest Haar coefficients of each block of values, at its end.

    Events have one column ``value``, a float. At the last event of each block up to ``k`` rows
    ``(block, index, coefficient)`` are emitted, the largest absolute value first, of equal ones the
    lower index; coefficients that are 0 are left out. Blocks count from 0. Index 0 is the sum of
    all values over sqrt(block). Index 2**j + i is the sum of the first half of the i-th of 2**j
    equal parts of the block minus that of its second half, over sqrt(block / 2**j). These hold up
    to rounding: what would be 0, or equal, may differ from that in the last bits.

    Args:
        block: values of a block, a power of two, 2 to 2**20.
        k: coefficients of a block, 1 to ``block``.
        value: name of the column ``value``.

    State: ``pending`` (block), of the block that is not complete, and ``events``. Events write to
    places of their own, and conflict only with the last one of a block.

    Raises:
        ConfigurationError: an argument has a value that it cannot have.

    The operator raises ValueError for a value that is NaN, or beyond 1e300.

    >>> import specstream as ss
    >>> from specstream.operators.synopses import haar_wavelet
    >>> with ss.Engine(haar_wavelet(block=4, k=2), threads=2) as engine:
    ...     output = engine.process({"value": [5.0, 5.0, 1.0, 1.0, 0.0, 0.0, 3.0, 0.0]})
    >>> for row in output.to_pylist():
    ...     print(row["block"], row["index"], round(row["coefficient"], 3))
    0 0 6.0
    0 1 4.0
    1 3 2.121
    1 0 1.5
    """
    block = integer("haar_wavelet: block", block, 2, 2**20)
    if block & (block - 1) != 0:
        raise refused("haar_wavelet: block", block, "a power of two")
    k = integer("haar_wavelet: k", k, 1, block)
    value = column_name("haar_wavelet: value", value)

    class WaveletState(ss.State):
        pending = ss.array(float, block)
        events = ss.scalar(int)
        sums = ss.scratch(float, block)
        coefficients = ss.scratch(float, block)

    @ss.operator(
        state=WaveletState,
        event={value: float},
        emits={"block": int, "index": int, "coefficient": float},
        name="haar_wavelet",
    )
    def process(state, event, emit):  # type: ignore[no-untyped-def]
        x = getattr(event, value)
        if not abs(x) <= _LARGEST:
            raise ValueError(f"{value} {x} is not a number from -1e300 to 1e300")
        count = increment(state, "events")
        state.pending[(count - 1) % block] = x
        if count % block != 0:
            return

        state.sums[:] = state.pending
        half = block // 2
        while half > 0:
            for i in range(half):
                one = state.sums[2 * i]
                other = state.sums[2 * i + 1]
                state.sums[i] = (one + other) * _HALF
                state.coefficients[half + i] = (one - other) * _HALF
            half //= 2
        state.coefficients[0] = state.sums[0]

        order = sorted(range(block), key=lambda i: -abs(state.coefficients[i]))
        for index in order[:k]:
            if state.coefficients[index] != 0.0:
                emit(count // block - 1, index, state.coefficients[index])

    return process
