"""Nearest neighbours under locks: the search and the insertion inside, roots and rows outside.

Fine-grained locks are one for each bucket. An event holds one at a time then, so there is no order
to keep: up to nine for looking through the buckets, one after the other, and its own for the
insertion.
The price is that it may see one bucket before and another one after somebody else's event.
"""

import math

import specstream as ss
from specstream.operators.nearest_neighbours import AROUND, least_distance

INFINITY = math.inf


def nearest_neighbours(grid: int, per_bucket: int, k: int, fine: bool = False) -> ss.Operator:
    """As :func:`specstream.operators.nearest_neighbours`."""

    class NeighbourState(ss.State):
        locks = ss.locks(grid * grid if fine else 1)
        xs = ss.array(float, (grid * grid, per_bucket))
        ys = ss.array(float, (grid * grid, per_bucket))
        ids = ss.array(int, (grid * grid, per_bucket))
        counts = ss.array(int, grid * grid)
        squares = ss.scratch(float, k)
        nearest = ss.scratch(int, k)

    @ss.operator(
        state=NeighbourState,
        event={"x": float, "y": float},
        emits={"neighbour": int, "distance": float, "rank": int},
        name="nearest_neighbours_fine" if fine else "nearest_neighbours_locked",
    )
    def process(state, event, emit):  # type: ignore[no-untyped-def]
        x = event.x
        y = event.y
        if not (0.0 <= x < 1.0 and 0.0 <= y < 1.0):
            raise ValueError(f"point ({x}, {y}) lies outside of the unit square [0, 1) x [0, 1)")
        column = int(x * grid)
        row = int(y * grid)
        own = row * grid + column
        found = 0
        worst = INFINITY

        if not fine:
            state.locks[0].acquire()
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
                if fine:
                    state.locks[near].acquire()
                for slot in range(min(state.counts[near], per_bucket)):
                    dx = state.xs[near, slot] - x
                    dy = state.ys[near, slot] - y
                    square = dx * dx + dy * dy
                    if square > worst:
                        continue
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
                if fine:
                    state.locks[near].release()
        if fine:
            state.locks[own].acquire()
        count = state.counts[own]
        slot = count % per_bucket
        state.xs[own, slot] = x
        state.ys[own, slot] = y
        state.ids[own, slot] = event.sequence
        state.counts[own] = count + 1
        state.locks[own if fine else 0].release()

        for rank in range(found):
            emit(state.nearest[rank], math.sqrt(state.squares[rank]), rank + 1)

    return process
