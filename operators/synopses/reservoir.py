"""A uniform random sample of all values so far (Vitter 1985; Brito 2010, Listing 2.1).

The first values fill the sample; the n-th one then takes a random place among n, which is one of
the sample with a chance of its size over n. So at any time each value has the same chance of being
in it.
"""

from __future__ import annotations

from collections.abc import Mapping

import specstream as ss
from specstream.declarations.chosen_columns import named_column
from specstream.declarations.options import integer, refuses_unknown
from specstream.structures import offer

__all__ = ["reservoir"]


@refuses_unknown
def reservoir(size: int = 100, value: type | Mapping[str, type] = float) -> ss.Operator:
    """A sample of the values; each value that gets into it is forwarded, with its place.

    Events have one column ``value``. A value that is taken into the sample emits a row ``(place,
    value)``, and replaces the one that was there: who keeps the last value of each place has the
    sample. Of n events about size * (1 + log(n / size)) emit one. Which are taken follows from the
    engine's ``seed`` and the events' keys.

    Args:
        size: of the sample, 1 to 2**24.
        value: type of the column: ``int``, ``float``, ``bool`` or ``str``; with another name for it
            ``{"price": float}``.

    State: ``sample`` (size), of which the first ``min(offered[0], size)`` are values, and
    ``offered`` (1), the number of events. Events conflict only if they take the same place.

    Raises:
        ConfigurationError: an argument has a value that it cannot have.

    >>> import specstream as ss
    >>> from specstream.operators.synopses import reservoir
    >>> with ss.Engine(reservoir(4, int), threads=2, seed=1) as engine:
    ...     output = engine.process({"value": range(1000)})
    ...     sample = engine.state.sample.tolist()
    >>> last = dict(zip(output["place"].to_pylist(), output["value"].to_pylist()))
    >>> [last[place] for place in range(4)] == sample
    True
    """
    size = integer("reservoir: size", size, 1, 2**24)
    types = (int, float, bool, str)
    column, of = named_column("reservoir: value", value, "value", types, taken=("place",))

    class ReservoirState(ss.State):
        sample = ss.array(of, size)
        offered = ss.array(int, 1)

    @ss.operator(
        state=ReservoirState,
        event={column: of},
        emits={"place": int, column: of},
        name="reservoir",
    )
    def process(state, event, emit):  # type: ignore[no-untyped-def]
        this = getattr(event, column)
        place = offer(state.sample, state.offered, event, 0, this)
        if place >= 0:
            emit(place, this)

    return process
