"""The best players of a game, whose scores change.

Scores of all players are in a dict; the first of them, and some more, are a list in order. While
players rise, the list is all that is needed: whoever gets past its end is put in, and the last one
drops out. A player of the list who falls behind its end leaves it, as one outside may be better
now; the list is shorter then, and still the best of all. Only when it gets shorter than what is
asked for, it is made anew of all scores. This is how a materialized top-k view is maintained (Yi,
Yu, Yang, Xia and Chen 2003); the spare places make looks at all scores rare.

Events of players outside of the list read its last place and nothing else of it, so that they
conflict with changes of the list only, and not with each other.
"""

from __future__ import annotations

import bisect
from collections.abc import Mapping

import specstream as ss
from specstream.declarations.chosen_columns import named_column
from specstream.declarations.options import integer, one_of, refuses_unknown
from specstream.structures import increment

__all__ = ["leaderboard"]


@refuses_unknown
def leaderboard(
    places: int = 10, scores: str = "last", spare: int = 10, player: type | Mapping[str, type] = str
) -> ss.Operator:
    """The first ``places`` players by score: each place that changes is emitted.

    Events have the columns ``player`` and ``score``, an int. Higher is better; of equal scores the
    one that was reached first. For each of the first places that has another player or score after
    an event, a row ``(place, player, score)`` is emitted, from place 1 on. So who has seen all rows
    knows the board.

    Args:
        places: how many are emitted, 1 to 1000.
        scores: what a player's score is: "last", the one of the last event; "sum", of all events;
            "best", the highest of all.
        spare: places that are kept in order behind these, 0 to 10000. With 0, each fall behind the
            last place is a look at all players; with n, each n + 1st or fewer.
        player: type of the column, ``int`` or ``str``; with another name for it ``{"team": str}``.

    State: ``changes``, how many scores were reached so far; ``scores``, a dict by player with the
    score and the ``number`` of this change; ``board``, the list in order: (-1 - score, number,
    player), where the code of a string stands for it; ``outside``, whether there are players that
    are not on the board.

    What is reached first goes by the order in which events commit: of several sources their order
    keys, and a table after the one before, whatever its times.

    With "best", and "sum" of points that are not negative, no player falls, and an event takes time
    for the board alone, however many players there are.

    The operator raises OverflowError where a sum does not fit into 64 bits.

    Raises:
        ConfigurationError: an argument has a value that it cannot have.

    >>> import specstream as ss
    >>> from specstream.operators.business import leaderboard
    >>> games = {"player": ["ann", "bob", "eve", "bob"], "score": [10, 30, 20, 5]}
    >>> with ss.Engine(leaderboard(places=2), threads=2) as engine:
    ...     for row in engine.process(games).to_pylist():
    ...         print(row["place"], row["player"], row["score"])
    1 ann 10
    1 bob 30
    2 ann 10
    2 eve 20
    1 eve 20
    2 ann 10
    """
    # One piece: state and operator are read together, and close over the same numbers.
    places = integer("leaderboard: places", places, 1, 1000)
    scores = one_of("leaderboard: scores", scores, ("last", "sum", "best"))
    kept = places + integer("leaderboard: spare", spare, 0, 10_000)
    named, player = named_column("leaderboard: player", player, "player", taken=("place", "score"))

    class Score(ss.Record):
        score: int
        number: int

    class LeaderboardState(ss.State):
        changes = ss.scalar(int)
        scores = ss.dict(player, Score)
        board = ss.list((int, int, int))
        outside = ss.scalar(bool)

    @ss.operator(
        state=LeaderboardState,
        event={named: player, "score": int},
        emits={"place": int, named: player, "score": int},
        name="leaderboard",
    )
    def process(state, event, emit):  # type: ignore[no-untyped-def]
        # An entry of the board: the smaller, the better. (~score is -1 - score, which always fits.)
        this = getattr(event, named)
        code = this | 0
        score = event.score
        board = state.board
        was_at = -1  # the player's place on the board, from 0
        known = state.scores.get(this)
        if known is not None:
            if scores == "sum":
                total = known.score + score
                if (total < known.score) != (score < 0):
                    raise OverflowError("leaderboard: a sum of scores leaves 64 bits")
                score = total
            if scores == "best":
                score = max(score, known.score)
            if score == known.score:
                return
            before = (~known.score, known.number, code)
            if before <= board[-1]:
                was_at = bisect.bisect_left(board, before)
        number = increment(state, "changes")
        entry = (~score, number, code)
        state.scores[this] = Score(score, number)
        belongs = not state.outside or entry < board[-1]
        if was_at < 0 and not belongs:
            return

        old = board[:places]
        if was_at >= 0:
            board.pop(was_at)
        if belongs:
            bisect.insort(board, entry)
            if len(board) > kept:
                board.pop()
                state.outside = True
        if state.outside and len(board) < places:
            every = [(~one.score, one.number, who | 0) for who, one in state.scores.items()]
            every.sort()
            board.clear()
            board.extend(every[:kept])

        for place in range(min(places, len(board))):
            if place >= len(old) or board[place] != old[place]:
                emit(place + 1, board[place][2], ~board[place][0])

    return process
