"""A k-nearest-neighbour classifier over the latest labelled points (Cover and Hart 1967).

The points lie in the cells of a grid over the first two features (or the only one), as in
:mod:`specstream.operators.nearest_neighbours`, and a cell keeps its latest points. A query looks
into its own cell, then into the ring of cells around it, and so on, until what is farther out
cannot be among the k nearest: points that differ by much in two features are far apart, whatever
the other features are. So the answer is that of a search through all points that are kept, and a
query mostly conflicts with those who learn nearby.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import specstream as ss
from specstream.declarations.chosen_columns import named_column
from specstream.declarations.options import integer, number, refused, refuses_unknown
from specstream.operators.learning.features import check_features, column_names
from specstream.structures import increment

__all__ = ["k_nearest"]


@refuses_unknown
def k_nearest(
    features: tuple[str, ...] = ("x", "y"),
    k: int = 5,
    label: type | Mapping[str, type] = str,
    cells: int = 16,
    per_cell: int = 16,
    low: float = 0.0,
    high: float = 1.0,
) -> ss.Operator:
    """Predicts the class of each event by a vote of the nearest earlier ones, then keeps it.

    Events have the columns named by ``features``, floats, and ``label``, the class, or null where
    it is not known: such an event is predicted and not kept. Each event emits one row ``(predicted,
    share)``: the class that most of the ``k`` nearest points have, and their share of these. Where
    several classes have as many, it is that of the nearest point; of points at the same Euclidean
    distance the earlier one is the nearer. As long as there are fewer than ``k`` points all of
    them vote, and before the first one both columns are null.

    Features should be of about the same size, as a distance is mostly that of the largest ones.

    Args:
        features: names of the columns, 1 to 256. The first two should be those that tell points
            apart best.
        k: points that vote, 1 to 1024.
        label: type of the column ``label``, ``int`` or ``str``; with another name for it
            ``{"species": str}``.
        cells: of the grid along each axis, 1 to 1000.
        per_cell: points that a cell keeps; one more and it forgets its oldest. All cells together
            keep less than 2**28 numbers (of each point its features).
        low: where the grid begins, on both axes; -1e100 to 1e100.
        high: where it ends, likewise, above ``low``. Points outside of it belong to the cells at
            its edge: the answer is no other, but where there are many of these the search is slower
            and they are forgotten sooner.

    State: ``points`` (cells * cells * per_cell, features), of which each cell has ``per_cell``
    rows; ``labels`` and ``ids`` of these points, numbered in the order in which they came;
    ``learned``, how many came; and ``counts`` (cells * cells), how many were ever put into a cell.
    With one feature there are ``cells`` cells.

    The operator raises ValueError for a feature that is NaN or larger than 1e100 (or less than
    -1e100).

    Raises:
        ConfigurationError: an argument has a value that it cannot have.

    >>> import specstream as ss
    >>> from specstream.operators.learning import k_nearest
    >>> events = {
    ...     "x": [0.1, 0.2, 0.9, 0.8, 0.7, 0.3],
    ...     "y": [0.1, 0.1, 0.9, 0.8, 0.9, 0.1],
    ...     "label": ["left", "left", "right", "right", None, None],
    ... }
    >>> with ss.Engine(k_nearest(k=3, cells=4), threads=2) as engine:
    ...     output = engine.process(events)
    >>> output["predicted"].to_pylist()
    [None, 'left', 'left', 'left', 'right', 'left']
    """
    # One piece: state and operator are read together, and close over the same numbers.
    labelled, of = named_column("k_nearest: label", label, "label")
    names = column_names("k_nearest: features", features, (labelled,))
    n = len(names)
    k = integer("k_nearest: k", k, 1, 1024)
    cells = integer("k_nearest: cells", cells, 1, 1000)
    rows = cells if n > 1 else 1
    most = (2**28 - 1) // (cells * rows * n)
    bound = f", as {cells * rows} cells of points of {n} features hold less than 2**28 numbers"
    per_cell = integer("k_nearest: per_cell", per_cell, 1, most, bound)
    expected = "a number from -1e100 to 1e100"
    low = float(number("k_nearest: low", low, -1e100, 1e100, expected))
    high = float(number("k_nearest: high", high, -1e100, 1e100, expected))
    width = (high - low) / cells
    if not width > 0.0:
        raise refused("k_nearest: high", high, f"a number above low={low}")
    second = min(1, n - 1)

    class KNearestState(ss.State):
        points = ss.array(float, (cells * rows * per_cell, n))
        labels = ss.array(of, cells * rows * per_cell)
        ids = ss.array(int, cells * rows * per_cell)
        counts = ss.array(int, cells * rows)
        learned = ss.scalar(int)
        squares = ss.scratch(float, k)  # the nearest so far, in order: squared distance
        nearest = ss.scratch(int, k)  # and row of points

    def nearer(state: Any, x: Any, cell: int, found: int) -> int:
        """Puts the points of a cell among the nearest; gives how many these are."""
        first = cell * per_cell
        for place in range(first, first + min(state.counts[cell], per_cell)):
            square = 0.0
            for i in range(n):
                off = state.points[place, i] - x[i]
                square += off * off
            # Insertion from the far end; when all places are taken, the last drops out.
            at = found
            while at > 0 and (
                square < state.squares[at - 1]
                or (
                    square == state.squares[at - 1]
                    and state.ids[place] < state.ids[state.nearest[at - 1]]
                )
            ):
                if at < k:
                    state.squares[at] = state.squares[at - 1]
                    state.nearest[at] = state.nearest[at - 1]
                at -= 1
            if at < k:
                state.squares[at] = square
                state.nearest[at] = place
                found = min(found + 1, k)
        return found

    @ss.operator(
        state=KNearestState,
        event={**dict.fromkeys(names, float), labelled: ss.nullable(of)},
        emits={"predicted": ss.nullable(of), "share": ss.nullable(float)},
        name="k_nearest",
    )
    def process(state, event, emit):  # type: ignore[no-untyped-def]
        x = [getattr(event, name) for name in names]
        check_features(x, "k_nearest", names)
        column = int(min(max((x[0] - low) / width, 0.0), cells - 1.0))
        row = int(min(max((x[second] - low) / width, 0.0), rows - 1.0))

        found = 0
        for radius in range(cells):
            # What lies beyond the rings so far is at least as far away as these are wide. (A
            # little less, as the cells' edges are rounded.)
            reach = 0.999999999 * (radius - 1) * width
            if radius > 0 and found == k and state.squares[k - 1] < reach * reach:
                break
            for near_row in range(max(row - radius, 0), min(row + radius + 1, rows)):
                # Of rows between the first and last one of a ring only the two ends are in it.
                is_whole = abs(near_row - row) == radius
                step = 1 if is_whole else 2 * radius
                for near_column in range(column - radius, column + radius + 1, step):
                    if 0 <= near_column < cells:
                        near = near_row * cells + near_column
                        found = nearer(state, x, near, found)

        if found == 0:
            emit()
        else:
            predicted = state.nearest[0]
            most = 0
            for i in range(found):
                votes = 0
                for j in range(found):
                    if state.labels[state.nearest[j]] == state.labels[state.nearest[i]]:
                        votes += 1
                if votes > most:
                    predicted, most = state.nearest[i], votes
            emit(state.labels[predicted], most / found)

        known = getattr(event, labelled)
        if known is None:
            return
        own = row * cells + column
        place = own * per_cell + state.counts[own] % per_cell
        state.points[place] = x
        state.labels[place] = known
        state.ids[place] = increment(state, "learned")
        state.counts[own] += 1

    return process
