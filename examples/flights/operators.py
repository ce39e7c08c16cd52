"""The two operators: plain functions of a state and one departure.

Both have a state that all three airports share, and depend on the order of departures, so that
neither can be divided by key.
"""

# Operators carry no types.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import specstream as ss

__all__ = ["BEGINS", "DEPARTURE", "ENDS", "PLACES", "WEIGHT", "jams", "worst_routes"]

# An event: the columns that an operator reads. The time comes from `order_by=`.
DEPARTURE = {"origin": str, "dest": str, "delay": int}  # minutes; negative: before its time
TIME = ss.timestamp("us", "UTC")

PLACES = 5  # of the list of routes
WEIGHT = 0.02  # of one departure in the running mean, which so is about that of the last 50
BEGINS, ENDS = 60.0, 30.0  # minutes


class Routes(ss.State):
    minutes = ss.dict((str, str), int)  # lost so far, by origin and destination
    board = ss.list((str, str))  # the first of them, in order


@ss.operator(
    state=Routes,
    event=DEPARTURE,
    emits={"time": TIME, "place": int, "origin": str, "dest": str, "minutes": int},
)
def worst_routes(state, event, emit):
    """The routes on which most minutes were lost; a row whenever one of the first loses more."""
    if event.delay <= 0:
        return
    route = event.origin, event.dest
    minutes = state.minutes.get(route, 0) + event.delay
    state.minutes[route] = minutes

    board = state.board
    if route in board:
        place = board.index(route)
    elif len(board) < PLACES:
        place = len(board)
        board.append(route)
    elif minutes > state.minutes[board[-1]]:
        place = len(board) - 1
        board[place] = route
    else:
        return  # what nearly all do: they read the end of the list, and change nothing of it
    while place > 0 and minutes > state.minutes[board[place - 1]]:
        board[place] = board[place - 1]
        place -= 1
        board[place] = route
    emit(event.timestamp, place + 1, event.origin, event.dest, minutes)


class City(ss.State):
    mean = ss.scalar(float)  # minutes, of all three airports
    is_jammed = ss.scalar(bool)


@ss.operator(state=City, event={"delay": int}, emits={"time": TIME, "begins": bool, "mean": float})
def jams(state, event, emit):
    """When a jam of the whole city begins and ends, by a running mean of delays."""
    state.mean += WEIGHT * (event.delay - state.mean)
    if state.is_jammed:
        if state.mean < ENDS:
            state.is_jammed = False
            emit(event.timestamp, False, state.mean)
    elif state.mean > BEGINS:
        state.is_jammed = True
        emit(event.timestamp, True, state.mean)
