"""Scores, matches and boards."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls
# mypy: disable-error-code="attr-defined, var-annotated, operator, misc"

import functools
import math
from enum import Enum
from typing import NamedTuple

import numpy as np
import pyarrow as pa

import specstream as ss
from corpus.case import case

PLAYERS = 10


def matches(rng):
    n = 210
    winner = rng.integers(0, PLAYERS, n)
    return pa.table(
        {
            "winner": winner,
            "loser": (winner + rng.integers(1, PLAYERS, n)) % PLAYERS,
            "draw": rng.random(n) < 0.15,
            "points": rng.integers(0, 60, n),
            "x": rng.integers(-1, 9, n),
            "y": rng.integers(-1, 9, n),
            "move": rng.choice(["up", "down", "left", "right", "jump"], n),
            "cell": rng.integers(0, 9, n),
        }
    )


MATCH = {
    "winner": int,
    "loser": int,
    "draw": bool,
    "points": int,
    "x": int,
    "y": int,
    "move": str,
    "cell": int,
}


class Elo(ss.State):
    rating = ss.array(float, PLAYERS, fill=1500.0)


def elo_by_numpy(table):
    r = np.full(PLAYERS, 1500.0)
    rows = []
    for t in table.to_pylist():
        a, b = t["winner"], t["loser"]
        e = 1 / (1 + 10 ** ((r[b] - r[a]) / 400))
        change = 32 * ((0.5 if t["draw"] else 1.0) - e)
        r[a] += change
        r[b] -= change
        rows.append((a, float(r[a]), b, float(r[b])))
    return rows


def chances(mine, theirs, scale=400.0):
    return 1 / (1 + math.pow(10, (theirs - mine) / scale))


def rated(a, b, score, k=32):
    change = k * (score - chances(a, b))
    return a + change, b - change


@case(
    "Elo ratings",
    matches,
    elo_by_numpy,
    state=Elo,
    event=MATCH,
    emits={"winner": int, "gained": float, "loser": int, "lost": float},
)
def elo(state, event, emit):
    a, b = event.winner, event.loser
    score = 0.5 if event.draw else 1
    state.rating[a], state.rating[b] = rated(state.rating[a], state.rating[b], score)
    emit(a, state.rating[a], b, state.rating[b])


class Board(ss.State):
    points = ss.array(int, PLAYERS)
    best = ss.array(int, 5)


def board_by_hand(table):
    points, rows = [0] * PLAYERS, []
    for w, p in zip(table["winner"].to_pylist(), table["points"].to_pylist(), strict=True):
        points[w] += p
        table_of = sorted(enumerate(points), key=lambda one: (-one[1], one[0]))
        rows.append((w, [k for k, _ in table_of].index(w) + 1, table_of[0][0]))
    return rows


@case(
    "a leader board, ranks by sorting pairs",
    matches,
    board_by_hand,
    state=Board,
    event=MATCH,
    emits={"player": int, "rank": int, "leader": int},
)
def leaderboard(state, event, emit):
    state.points[event.winner] += event.points
    board = sorted(((p, -i) for i, p in enumerate(state.points)), reverse=True)
    rank = board.index((state.points[event.winner], -event.winner)) + 1
    _, leader = board[0]
    emit(event.winner, rank, -leader)


class Streaks(ss.State):
    streak = ss.array(int, PLAYERS)
    longest = ss.scalar(int)
    holder = ss.scalar(int, fill=-1)


def streaks_by_hand(table):
    streak, best, holder, rows = [0] * PLAYERS, 0, -1, []
    for t in table.to_pylist():
        if t["draw"]:
            streak[t["winner"]] = streak[t["loser"]] = 0
        else:
            streak[t["winner"]] += 1
            streak[t["loser"]] = 0
            if streak[t["winner"]] > best:
                best, holder = streak[t["winner"]], t["winner"]
        rows.append((holder, best))
    return rows


@case(
    "the longest winning streak",
    matches,
    streaks_by_hand,
    state=Streaks,
    event=MATCH,
    emits={"player": int, "streak": int},
)
def streaks(state, event, emit):
    def end(player):
        state.streak[player] = 0

    end(event.loser)
    if event.draw:
        end(event.winner)
    else:
        state.streak[event.winner] += 1
        if (now := state.streak[event.winner]) > state.longest:
            state.longest, state.holder = now, event.winner
    emit(state.holder, state.longest)


class Snake(ss.State):
    x = ss.scalar(int)
    y = ss.scalar(int)
    visited = ss.array(bool, (8, 8))


MOVES = {"up": (0, -1), "down": (0, 1), "left": (-1, 0), "right": (1, 0)}


def snake_by_hand(table):
    position, seen, rows = 0 + 0j, set(), []
    for move in table["move"].to_pylist():
        position += {"up": -1j, "down": 1j, "left": -1, "right": 1}.get(move, 0)
        x, y = int(position.real) % 8, int(position.imag) % 8
        seen.add((x, y))
        rows.append((x, y, len(seen)))
    return rows


@case(
    "a walk over a torus, the moves in a dict of tuples",
    matches,
    snake_by_hand,
    state=Snake,
    event=MATCH,
    emits={"x": int, "y": int, "visited": int},
)
def walk(state, event, emit):
    dx, dy = MOVES.get(event.move, (0, 0))
    state.x = (state.x + dx) % 8
    state.y = (state.y + dy) % 8
    state.visited[state.x, state.y] = True
    emit(state.x, state.y, sum(1 for row in state.visited for cell in row if cell))


class Grid(ss.State):
    alive = ss.array(bool, (8, 8))


def life_by_numpy(table):
    grid, rows = np.zeros((8, 8), bool), []
    for i, (x, y) in enumerate(zip(table["x"].to_pylist(), table["y"].to_pylist(), strict=True)):
        if 0 <= x < 8 and 0 <= y < 8:
            grid[x, y] ^= True
        if i % 10 == 9:
            around = sum(
                np.roll(grid, (a, b), (0, 1)).astype(int)
                for a in (-1, 0, 1)
                for b in (-1, 0, 1)
                if (a, b) != (0, 0)
            )
            grid = (around == 3) | (grid & (around == 2))
            rows.append((i // 10, int(grid.sum())))
    return rows


NEIGHBOURS = [(a, b) for a in (-1, 0, 1) for b in (-1, 0, 1) if (a, b) != (0, 0)]


def inside(x, y, size=8):
    return 0 <= x < size and 0 <= y < size


@case(
    "Conway's game of life, a step every ten events",
    matches,
    life_by_numpy,
    state=Grid,
    event=MATCH,
    emits={"step": int, "alive": int},
)
def life(state, event, emit):
    if inside(event.x, event.y):
        state.alive[event.x, event.y] = not state.alive[event.x, event.y]
    step, last = divmod(event.sequence, 10)
    if last != 9:
        return
    around = [
        [sum(state.alive[(x + a) % 8, (y + b) % 8] for a, b in NEIGHBOURS) for y in range(8)]
        for x in range(8)
    ]
    for x in range(8):
        for y in range(8):
            n = around[x][y]
            state.alive[x, y] = n == 3 or (n == 2 and state.alive[x, y])
    emit(step, sum(sum(row) for row in state.alive))


class TicTacToe(ss.State):
    cells = ss.array(int, 9)
    turn = ss.scalar(int, fill=1)
    games = ss.scalar(int)


LINES = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6))


def tictactoe_by_numpy(table):
    board, turn, games, rows = np.zeros((3, 3), int), 1, 0, []
    for cell in table["cell"].to_pylist():
        if board.flat[cell]:
            continue
        board.flat[cell] = turn
        sums = [*board.sum(0), *board.sum(1), np.trace(board), np.trace(board[::-1])]
        won = 3 * turn in sums
        if won or board.all():
            games += 1
            rows.append((games, {1: "cross", -1: "nought"}[turn] if won else "draw"))
            board[:] = 0
        turn = -turn
    return rows


@case(
    "noughts and crosses on one board",
    matches,
    tictactoe_by_numpy,
    state=TicTacToe,
    event=MATCH,
    emits={"game": int, "winner": str},
)
def tictactoe(state, event, emit):
    if state.cells[event.cell] != 0:
        return
    state.cells[event.cell] = state.turn
    won = any(all(state.cells[i] == state.turn for i in line) for line in LINES)
    if won or all(c != 0 for c in state.cells):
        state.games += 1
        emit(state.games, "draw" if not won else "cross" if state.turn > 0 else "nought")
        state.cells[:] = 0
    state.turn = -state.turn


class Level(Enum):
    BRONZE = 0
    SILVER = 100
    GOLD = 300


class Levels(ss.State):
    points = ss.array(int, PLAYERS)


def levels_by_pandas(table):
    d = table.to_pandas()
    total = d.groupby("winner").points.cumsum()
    return [
        (int(w), "GOLD" if t >= 300 else "SILVER" if t >= 100 else "BRONZE")
        for w, t in zip(d.winner, total, strict=True)
    ]


@case(
    "levels from an enum",
    matches,
    levels_by_pandas,
    state=Levels,
    event=MATCH,
    emits={"player": int, "level": str},
)
def level_up(state, event, emit):
    state.points[event.winner] += event.points
    reached = Level.BRONZE
    for level in Level:
        if state.points[event.winner] >= level.value:
            reached = level
    emit(event.winner, reached.name)


class Dice(ss.State):
    faces = ss.array(int, 7)


@case(
    "dice by the event's own random numbers",
    matches,
    None,
    state=Dice,
    event=MATCH,
    emits={"roll": int, "often": int},
)
def dice(state, event, emit):
    rolls = [1 + int(event.random(i) * 6) for i in range(3)]
    for roll in rolls:
        state.faces[roll] += 1
    emit(sum(rolls), max(range(1, 7), key=lambda f: (state.faces[f], f)))


class Pairs(ss.State):
    wins = ss.array(int, (PLAYERS, PLAYERS))


def pairs_by_pandas(table):
    d = table.to_pandas()
    wins = np.zeros((PLAYERS, PLAYERS), int)
    rows = []
    for w, loser in zip(d.winner, d.loser, strict=True):
        wins[w, loser] += 1
        rows.append((int(wins[w].sum()), int(wins[:, loser].max()), int((wins[w] > 0).sum())))
    return rows


@case(
    "who beat whom, rows and columns of a matrix",
    matches,
    pairs_by_pandas,
    state=Pairs,
    event=MATCH,
    emits={"wins": int, "nemesis": int, "victims": int},
)
def rivals(state, event, emit):
    state.wins[event.winner, event.loser] += 1
    row = state.wins[event.winner]
    emit(sum(row), max(state.wins[:, event.loser]), len([n for n in row if n > 0]))


class Cooldown(NamedTuple):
    name: str
    length: int


COOLDOWNS = (Cooldown("up", 3), Cooldown("jump", 12))


class Jumps(ss.State):
    ready = ss.array(int, PLAYERS)
    refused = ss.scalar(int)


def cooldown_by_hand(table):
    ready, rows, refused = [0] * PLAYERS, [], 0
    for i, t in enumerate(table.to_pylist()):
        if i < ready[t["winner"]]:
            refused += 1
        else:
            ready[t["winner"]] = i + {"up": 3, "jump": 12}.get(t["move"], 1)
            rows.append((t["winner"], t["move"], refused))
    return rows


def length_of(move):
    for name, length in COOLDOWNS:
        if name == move:
            return length
    return 1


@case(
    "cooldowns of moves, named tuples in a tuple",
    matches,
    cooldown_by_hand,
    state=Jumps,
    event=MATCH,
    emits={"player": int, "move": str, "refused": int},
)
def cooldowns(state, event, emit):
    player = event.winner
    if event.sequence < state.ready[player]:
        state.refused += 1
        return
    state.ready[player] = event.sequence + length_of(event.move)
    emit(player, event.move, state.refused)


def clamp(value, low, high):
    return min(max(value, low), high)


to_board = functools.partial(clamp, low=0, high=7)


class Heat(ss.State):
    heat = ss.array(float, (8, 8))


def heat_by_numpy(table):
    heat, rows = np.zeros((8, 8)), []
    for x, y in zip(np.clip(table["x"], 0, 7), np.clip(table["y"], 0, 7), strict=True):
        heat *= 0.9
        heat[x, y] += 1
        i, j = np.unravel_index(heat.argmax(), heat.shape)
        rows.append((int(i), int(j), float(heat.max())))
    return rows


@case(
    "a heat map that cools",
    matches,
    heat_by_numpy,
    state=Heat,
    event=MATCH,
    emits={"x": int, "y": int, "heat": float},
)
def heat_map(state, event, emit):
    state.heat[:] *= 0.9
    state.heat[to_board(event.x), to_board(event.y)] += 1
    hottest = max(((i, j) for i in range(8) for j in range(8)), key=lambda at: state.heat[at])
    emit(*hottest, state.heat[hottest])
