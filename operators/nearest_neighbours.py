"""The nearest earlier points of each point (Brito 2010, 4.5.4).

The plane is divided into equally sized buckets (the bucketing algorithm [Wel71]); a query looks at
the point's own bucket and at those around it. The number of points per bucket is bounded, and with
it memory and the time of a query. The answer is exact as long as the k nearest points are no
farther away than the edge of the nine buckets and none of them has been overwritten.

A bucket whose edge is farther away than k points that have been found already cannot change the
answer, and is not looked at. The own bucket comes first, so that of uniform points, ten to a
bucket, only two or three of the nine are looked at: there is less to compute, and less for an event
to conflict over.
"""

from __future__ import annotations

import math
from typing import Any

import specstream as ss
from specstream.declarations.options import integer, refuses_unknown
from specstream.structures import increment

__all__ = ["AROUND", "least_distance", "nearest_neighbours"]

_INFINITY = math.inf
AROUND = (0, -1, 1)  # steps to neighbours along an axis, the own bucket first
_ROUNDING = 1e-12
_MOST = 1_400_000_000  # points of three words each, of the less than 2**32 that a state has


@refuses_unknown
def nearest_neighbours(grid: int = 100, per_bucket: int = 10, k: int = 3) -> ss.Operator:
    """The ``k`` nearest earlier points of each point in the unit square, among those around it.

    Events have two columns ``x`` and ``y``, floats in [0, 1). For each event up to ``k`` rows
    ``(neighbour, distance, rank)`` are emitted: the number of an earlier point, its Euclidean
    distance, and 1 for the nearest, 2 for the next and so on. Points are numbered from 0 in the
    order of their events, whatever their sources; one that raises has no number. Points are
    compared by the squares of their distances; of equal ones the one with the lower number comes
    first. Then the point itself is put into its bucket; a full bucket forgets its oldest point.

    Only the point's own bucket and the up to eight around it are looked at, and of these none that
    is farther away than ``k`` points that have been found. So a neighbour closer
    than 1 / grid is always found, unless its bucket has forgotten it; one farther away than two
    diagonals of a bucket never is, and a point with none around it emits nothing. Take a coarse
    grid where points are few.

    Args:
        grid: buckets along each axis, 1 to 1000; a bucket is 1 / grid wide.
        per_bucket: points kept in a bucket, 1 to 65536; all buckets together keep at most 1.4e9.
        k: neighbours to find, 1 to 65536.

    State: ``xs``, ``ys`` (float64) and ``ids`` (int64), each (grid * grid, per_bucket), bucket
    ``row * grid + column``; ``counts`` (grid * grid), the number of points that were ever put into
    a bucket; and ``points``, the number of all. A snapshot of a version without that can be
    restored.

    Raises:
        ConfigurationError: an argument has a value that it cannot have.

    The operator raises ValueError for a point outside of the unit square.

    >>> import specstream as ss
    >>> from specstream.operators import nearest_neighbours
    >>> with ss.Engine(nearest_neighbours(grid=4, k=2), threads=2) as engine:
    ...     output = engine.process({"x": [0.5, 0.5, 0.53], "y": [0.5, 0.6, 0.54]})
    >>> for row in output.to_pylist():
    ...     print(row["neighbour"], round(row["distance"], 3), row["rank"])
    0 0.1 1
    0 0.05 1
    1 0.067 2
    """
    # One piece: state and operator are read together, and close over the same numbers.
    grid = _checked("grid", grid, 1, 1000)
    per_bucket = _checked("per_bucket", per_bucket, 1, 2**16)
    k = _checked("k", k, 1, 2**16)
    if grid * grid * per_bucket > _MOST:
        raise ss.ConfigurationError(
            f"nearest_neighbours: grid={grid} and per_bucket={per_bucket} make "
            f"{grid * grid * per_bucket} points; expected at most {_MOST}: use a coarser grid"
        )

    class NeighbourState(ss.State):
        xs = ss.array(float, (grid * grid, per_bucket))
        ys = ss.array(float, (grid * grid, per_bucket))
        ids = ss.array(int, (grid * grid, per_bucket))
        counts = ss.array(int, grid * grid)
        points = ss.scalar(int)
        squares = ss.scratch(float, k)  # the nearest so far, in order: squared distance
        nearest = ss.scratch(int, k)  # and number

    @ss.operator(
        state=NeighbourState,
        event={"x": float, "y": float},
        emits={"neighbour": int, "distance": float, "rank": int},
        name="nearest_neighbours",
    )
    def process(state, event, emit):  # type: ignore[no-untyped-def]
        x = event.x
        y = event.y
        if not (0.0 <= x < 1.0 and 0.0 <= y < 1.0):
            raise ValueError(f"point ({x}, {y}) lies outside of the unit square [0, 1) x [0, 1)")
        column = int(x * grid)
        row = int(y * grid)

        # Squared distances order as distances do, and the root is taken of the winners only. The
        # own bucket comes first: by then most others are too far away to be looked at.
        found = 0
        worst = _INFINITY
        for down in AROUND:
            near_row = row + down
            if near_row < 0 or near_row >= grid:
                continue
            gap = least_distance(y, row, down, grid)
            beyond = gap * gap
            if beyond > worst:
                continue
            for right in AROUND:
                near_column = column + right
                if near_column < 0 or near_column >= grid:
                    continue
                gap = least_distance(x, column, right, grid)
                if gap * gap + beyond > worst:
                    continue
                near = near_row * grid + near_column
                for slot in range(min(state.counts[near], per_bucket)):
                    dx = state.xs[near, slot] - x
                    dy = state.ys[near, slot] - y
                    square = dx * dx + dy * dy
                    if square > worst:
                        continue
                    # Insertion from the far end; when all places are taken, the last drops out.
                    point = state.ids[near, slot]
                    at = found
                    while at > 0 and (
                        square < state.squares[at - 1]
                        or (square == state.squares[at - 1] and point < state.nearest[at - 1])
                    ):
                        if at < k:
                            state.squares[at] = state.squares[at - 1]
                            state.nearest[at] = state.nearest[at - 1]
                        at -= 1
                    if at < k:
                        state.squares[at] = square
                        state.nearest[at] = point
                        if found < k:
                            found += 1
                        if found == k:
                            worst = state.squares[k - 1]

        for rank in range(found):
            emit(state.nearest[rank], math.sqrt(state.squares[rank]), rank + 1)

        own = row * grid + column
        count = state.counts[own]
        slot = count % per_bucket
        state.xs[own, slot] = x
        state.ys[own, slot] = y
        number = increment(state, "points") - 1
        if number == 0 and state.counts.any():  # restored from a version that did not count
            number = state.ids.max() + 1
            state.points = number + 1
        state.ids[own, slot] = number
        state.counts[own] = count + 1

    return process


def least_distance(at: Any, own: Any, step: Any, grid: Any) -> Any:
    """How far it is at least along an axis from ``at``, in bucket ``own``, to ``own + step``.

    Which bucket a point on an edge belongs to, and what its distance is, are rounded; what is taken
    off here is a thousand times as much.
    """
    if step > 0:
        return max((own + 1) / grid - at - _ROUNDING, 0.0)
    if step < 0:
        return max(at - own / grid - _ROUNDING, 0.0)
    return 0.0


def _checked(option: str, value: object, low: int, high: int) -> int:
    return integer(f"nearest_neighbours: {option}", value, low, high)
