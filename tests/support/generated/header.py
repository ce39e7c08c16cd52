"""What all random programs begin with: the state, constants, functions that they call."""

from __future__ import annotations

__all__ = ["HEADER"]

HEADER = """
import bisect
import collections
import dataclasses
import datetime
import enum
import functools
import heapq
import math

import numpy as np

import specstream as ss
from specstream.structures import add, increment, maximum, minimum

BIG = 9223372036854775807
MASK = 0x0F0F0F0F0F0F0F0F
PRIMES = (2, 3, 5, 7, 11, 13)
ONE = "one"
TEXTS = ("two", "three", "")
TINY = 5e-324
NAN = float("nan")
INF = float("inf")
NOTHING = None
LEVELS = [1, 5, 9, 200]
WEIGHTS = [0.5, -1.5, 2.0]
RATES = {1: 10, 2: 20, 7: -3, 0: 5}
FEES = {"one": 0.5, "two": 2.0, "": -0.25}
ODD = {1, 3, 5, 7}
WORDS = {"one", "two"}
NESTED = {"one": [1, 2, 3], "two": [4]}
GRID = [[1, 2], [3, 4, 5], [6]]
PAIRS = [(1, 0.5), (2, 1.5), (3, -2.0)]
SPANS = {(1, True): 3, (2, False): 4}
CODES = ("one", 7, 0.5)
CURVE = np.array([0.5, 1.5, -2.0, 0.0])
SHAPE = np.arange(10).reshape(2, 5) * 3 - 7


class Side(enum.Enum):
    BUY = 1
    SELL = -1


class Tier(enum.IntEnum):
    LOW = 1
    HIGH = 9


class Keeper:
    most = 3


@dataclasses.dataclass(frozen=True)
class Config:
    rate: float
    limit: int
    name: str


CONFIG = Config(0.25, 3, "one")
POINT = collections.namedtuple("Point", "x y")(4, -0.5)


class State(ss.State):
    a = ss.array(int, 16, fill=1)
    f = ss.array(float, 8, fill=-0.0)
    b = ss.array(bool, 8)
    m = ss.array(int, (3, 5))
    r = ss.array(int, (2, 40), fill=3)
    n = ss.scalar(int)
    x = ss.scalar(float, fill=1.0)
    c = ss.array(np.int8, 11, fill=-1)
    h = ss.array(np.uint16, (2, 6), share=2)
    w = ss.scalar(np.int32)
    g = ss.array(np.float32, 6, fill=0.3)
    e = ss.array(np.bool_, 9)
    q = ss.scratch(np.uint8, 5)
    t = ss.scratch(int, 6)
    u = ss.scratch(float, 4)


def collatz(value, limit):
    steps = 0
    while value > 1 and steps < limit:
        if value % 2 == 0:
            value = value // 2
        else:
            value = 3 * value + 1
        steps += 1
    return steps


def blend(left, right):
    return left * 0.25 + right


def bump(values, at, by):
    values[at % len(values)] += by
    return values[(at + 1) % len(values)]


def both(value):
    return value // 3, value % 3


def tick(state, by):
    state.n = (state.n ^ by) + 1
    return state.n


def drift(state):
    state.x = state.x * 0.5 + 1.0
    return state.x


def flip(state, at):
    state.b[at % 8] = not state.b[at % 8]
    return state.b[at % 8]


def weigh(first, second, third):
    return first * 3 - second + (third & 7)


def found(state, wanted):
    for at in range(16):
        if state.a[at] == wanted:
            return at
    return None


def best_of(values, least=None):
    best = None
    for one in values:
        if (least is None or one > least) and (best is None or one > best):
            best = one
    return best


def capped(value, limit=None):
    if limit is None or value > limit:
        return value
    if value == 0.0:
        return None
    return limit


def push(values, value):

    values.append(value)
    values[0] ^= 1


class Refused(ValueError):
    pass


class Declined(Refused):
    def __init__(self, why, amount=0):
        super().__init__(f"{why}: {amount}")
        self.amount = amount


class Elsewhere(Exception):
    pass


def looked_up(state, at):
    for turn in range(3):
        try:
            state.t[turn] = state.a[at + turn]
            if at == 5:
                return turn
        except IndexError as missing:
            state.n += 1
            if turn == 2:
                raise Declined("no place", at) from missing
            continue
        finally:
            at = at + 9
            state.t[5] = at
            if at == 31:
                break
    else:
        return 7
    return at


def shaped(value, /, by=PRIMES[1], *, plus=0, flip=False):
    return (value * by) ^ plus if flip else value * by - plus


halved = lambda value, by=2: value // by
shifted = functools.partial(shaped, plus=5)

"""
