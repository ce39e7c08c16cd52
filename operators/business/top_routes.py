"""The most frequent routes of taxis, as they change: query 1 of the DEBS Grand Challenge 2015.

A city is a grid of cells; a route leads from one cell to another (Jerzak and Ziekow 2015). The
trips of the window are a deque, and each route has a count of its own. A trip that comes in makes
its route more frequent, those that leave make theirs less so. The first places are kept in order as
those of :func:`leaderboard` are: with some spare ones behind them, and made anew of all routes only
when these are used up.
"""

# What an operator calls carries no types, as it does not itself.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import bisect
import math

import specstream as ss
from specstream.declarations.options import integer, number, refuses_unknown

__all__ = ["top_routes"]

_HALF_AN_HOUR = 1_800_000_000  # microseconds


@refuses_unknown
def top_routes(
    window: int = _HALF_AN_HOUR,
    routes: int = 10,
    cells: int = 300,
    north: float = 41.474937,
    west: float = -74.913585,
    height: float = 0.004491556,
    width: float = 0.005986,
    spare: int = 90,
    time_unit: str | None = None,
) -> ss.Operator:
    """The ``routes`` most frequent routes of the last ``window``, whenever the list changes.

    Events are trips, ordered by the time at which they end (``order_by=``), with the columns
    ``pickup_longitude``, ``pickup_latitude``, ``dropoff_longitude`` and ``dropoff_latitude``,
    floats in degrees. The list at time t is of the trips after t - ``window``. Of equally frequent
    routes the one with the latest trip comes first. When other routes are on the list after an
    event, or in another order, the whole list is emitted, rows ``(rank, start, end, trips)``: rank
    from 1 on, and cells as ``"column.row"``, "1.1" in the north-west. Trips that begin or end
    outside of the grid are left out, and so are those with a NaN: as if they had not come, so that
    the list stays as it was though their time is later.

    Args:
        window: units of ``event.timestamp``, 1 to 2**61; the default is half an hour of timestamps
            in microseconds.
        routes: length of the list, 1 to 1000.
        cells: along each side of the grid, 1 to 10000.
        north, west: latitude and longitude of the *centre* of cell 1.1; by default, like all of
            the grid, those of the challenge: cells of 500 m around New York.
        height, width: of a cell in degrees of latitude and longitude, above 0.
        spare: places that are kept in order behind the list, 0 to 10000.
        time_unit: of the window, as of :func:`specstream.operator`: an order column of times
            is cast to it. By default us, if the window is.

    State: ``trips``, a deque of (time, route), where a route is one number of its four
    coordinates; ``counts``, a dict by route with the number of its ``trips`` and the number of the
    ``last``; ``board``, the first routes in order: (-trips, -last, route); ``outside``, whether
    there are routes that are not on it; ``number``, of all trips so far.

    Every trip is put into the one window, so that the events of this operator are a chain.

    The operator raises ValueError for a trip before the last one, as a later batch may have; with
    ``submit``, or ``watermark=`` in Spark, there is none.

    Raises:
        ConfigurationError: an argument has a value that it cannot have.

    >>> import specstream as ss
    >>> from specstream.operators.business import top_routes
    >>> trips = {
    ...     "pickup_longitude": [0.0, 2.0, 2.0, 1.0],
    ...     "pickup_latitude": [0.0, 0.0, 0.0, -1.0],
    ...     "dropoff_longitude": [1.0, 2.0, 2.0, 1.0],
    ...     "dropoff_latitude": [-2.0, -2.0, -2.0, -1.0],
    ...     "time": [0, 10, 20, 65],
    ... }
    >>> operator = top_routes(window=60, routes=2, cells=3, north=0, west=0, height=1, width=1)
    >>> with ss.Engine(operator, threads=2) as engine:
    ...     for row in engine.process(trips, order_by="time").to_pylist():
    ...         print(row["rank"], row["start"], row["end"], row["trips"])
    1 1.1 2.3 1
    1 3.1 3.3 1
    2 1.1 2.3 1
    1 3.1 3.3 2
    2 2.2 2.2 1
    """
    # One piece: state and operator are read together, and close over the same numbers.
    window = integer("top_routes: window", window, 1, 2**61)
    if time_unit is None and window == _HALF_AN_HOUR:
        time_unit = "us"
    routes = integer("top_routes: routes", routes, 1, 1000)
    cells = integer("top_routes: cells", cells, 1, 10_000)
    north = _degrees("north", north, -180.0, "a number from -180 to 180")
    west = _degrees("west", west, -180.0, "a number from -180 to 180")
    above_0 = math.nextafter(0.0, 1.0)
    height = _degrees("height", height, above_0, "a number above 0, at most 180")
    width = _degrees("width", width, above_0, "a number above 0, at most 180")
    kept = routes + integer("top_routes: spare", spare, 0, 10_000)

    class Route(ss.Record):
        trips: int
        last: int

    class TopRoutesState(ss.State):
        trips = ss.deque((int, int))
        counts = ss.dict(int, Route)
        board = ss.list((int, int, int))
        outside = ss.scalar(bool)
        number = ss.scalar(int)

    def cell(longitude, latitude):
        """The number of a cell, row by row; -1 outside of the grid."""
        column = (longitude - west) / width + 0.5
        row = (north - latitude) / height + 0.5
        if not (0.0 <= column < cells and 0.0 <= row < cells):
            return -1
        return int(row) * cells + int(column)

    def count(state, route, change, last):
        """A trip more of a route, or one less; the board stays the first of all routes."""
        board = state.board
        known = state.counts.get(route)
        trips = 0
        latest = 0
        if known is not None:
            trips, latest = known.trips, known.last
        before = (-trips, -latest, route)
        trips += change
        latest = max(latest, last)
        after = (-trips, -latest, route)
        if trips > 0:
            state.counts[route] = Route(trips, latest)
        else:
            del state.counts[route]

        is_first = len(board) > 0 and after < board[-1]
        if before[0] < 0 and len(board) > 0 and before <= board[-1]:
            board.pop(bisect.bisect_left(board, before))
        if trips > 0 and (is_first or not state.outside):
            bisect.insort(board, after)
            if len(board) > kept:
                board.pop()
                state.outside = True

    @ss.operator(
        state=TopRoutesState,
        event={
            "pickup_longitude": float,
            "pickup_latitude": float,
            "dropoff_longitude": float,
            "dropoff_latitude": float,
        },
        emits={"rank": int, "start": str, "end": str, "trips": int},
        name="top_routes",
        time_unit=time_unit,
    )
    def process(state, event, emit):
        start = cell(event.pickup_longitude, event.pickup_latitude)
        end = cell(event.dropoff_longitude, event.dropoff_latitude)
        if start < 0 or end < 0:
            return
        now = event.timestamp
        if len(state.trips) > 0 and now < state.trips[-1][0]:
            raise ValueError(
                f"top_routes: trip at {now}; the last was at {state.trips[-1][0]}; sort the "
                "events of all tables, submit() them, or take watermark= in Spark"
            )

        old = [route for _, _, route in state.board[:routes]]
        # A difference below 0 is one that does not fit into 64 bits.
        while len(state.trips) > 0 and not 0 <= now - state.trips[0][0] < window:
            _, gone = state.trips.popleft()
            count(state, gone, -1, 0)
        route = start * cells * cells + end
        state.number += 1
        state.trips.append((now, route))
        count(state, route, 1, state.number)

        if state.outside and len(state.board) < routes:
            every = [(-one.trips, -one.last, route) for route, one in state.counts.items()]
            every.sort()
            state.board.clear()
            state.board.extend(every[:kept])
            state.outside = len(every) > kept

        if [route for _, _, route in state.board[:routes]] != old:
            for rank in range(min(routes, len(state.board))):
                trips, _, route = state.board[rank]
                start, end = divmod(route, cells * cells)
                emit(
                    rank + 1,
                    f"{start % cells + 1}.{start // cells + 1}",
                    f"{end % cells + 1}.{end // cells + 1}",
                    -trips,
                )

    return process


def _degrees(option: str, value: object, low: float, expected: str) -> float:
    return float(number(f"top_routes: {option}", value, low, 180.0, expected))
