"""Random programs as people write them by mistake: plausible, and mostly not operators."""

from __future__ import annotations

import random

HEADER = """
import enum
import functools
import math
import os
import random
import re
from dataclasses import dataclass

import numpy as np

import specstream as ss
from specstream.structures import add, allocate, hash_map, increment, maximum, put, release

PRIMES = (2, 3, 5)
MIXED = (1, 0.5, "x", True)
NESTED = ((1, 2), (3, 4))
EMPTY = ()
LIST = [1, 2]
DICT = {"a": 1}
BIG = 2**70
WORD = "word"
NOTHING = None


class Color(enum.IntEnum):
    RED = 1


class State(ss.State):
    n = ss.scalar(int)
    x = ss.scalar(float)
    q = ss.scalar(bool)
    h = ss.scalar(np.uint64)
    a = ss.array(int, 8)
    m = ss.array(float, (2, 3))
    c = ss.array(np.int8, 4)
    t = ss.scratch(int, 4)
    blocks = ss.heap(4, 2)
    map = hash_map(8)
    locks = ss.locks(4)


def helper(x, y):
    return x + y


def nothing(x):
    pass


def pair(x):
    return x, x


def first(values):
    return values[0]


def recursive(x):
    return recursive(x) if x else 0


@functools.lru_cache
def cached(x):
    return x


"""


def words(text: str) -> list[str]:
    return text.split()


# What may stand in an operator, though perhaps not here; and what may not.
ALLOWED = words("""
state event emit state.n state.x state.q state.h state.a state.m state.c state.t state.blocks
state.map state.locks state.locks[0] state.missing state.a.T state.a.size state.a.shape
state.m.shape[0] state.m[0] state.m[0,1] state.m[0][1] state.m[:,1] state.m[0,1,2] state.a[-1]
state.a[1:] state.a[::0] state.a[True] state.a[0.5] state.a["x"] state.a[event.s]
state.a[state.a] state.a[1,] state.a[()] event.k event.f event.b event.s event.o event.missing
event.timestamp event.sequence event.source event.random event.random(0) event.random(0.5)
event.random_bits(1) event.is_null("o") event.k.real event.s[0] event.k[0] PRIMES MIXED NESTED
EMPTY WORD PRIMES[0] MIXED[1] MIXED[event.k] NESTED[1][0] EMPTY[0] PRIMES[5] PRIMES[event.k]
PRIMES[1:] helper(1,2) helper(event.s,1) helper(x=1,y=2) helper(state,event) nothing(1) pair(1)
pair(state.a) first(state.a) first(PRIMES) first(event) first(1) emit(1,0.5) 0 1 -1 0.5 True
False "x" 18446744073709551615 1e400 () (1,2) (1,"x") math.pi math.sqrt(4) math.sqrt("x")
math.sqrt(state.a) math.floor(0.5,1) math.sqrt() np.int64(5) np.uint64(-1) np.pi np.nan int()
int("5") int(event.k,2) int(state.a) float() float("x") float(state.a) bool() bool(state.a)
len(1) len(event) len(PRIMES) len(range(3)) abs() abs("x") abs(state.a) min() min(1) min(1,0.5)
min(state.m) min(PRIMES) min(MIXED) max(1,"x") max(state.a,state.t) sum(1) sum(PRIMES)
sum(state.m) sum(range(3)) round() round(0.5,1) round("x") range(3) range() range(0.5)
range("x") range(1,2,0) enumerate(state.a) enumerate(1) zip(state.a,state.t) zip() zip(1)
add(state,"n",1) add(state.a,0,1) add(state.a,0,"x") add(state,"missing",1) add(1,2,3)
add(state,event.s,1) increment(state,"n") increment(state,"x") increment(state.a,0)
increment(event,"k") maximum(state.q,0,1) allocate(state.blocks) allocate(state.a)
release(state.blocks,1) put(state.map,1,2) put(state.a,1,2) put(1,2,3) __name__
""")
REFUSED = words("""
state.a[...] state.a[None] event.random() event.is_null("k") event.is_null(event.s)
event.s.upper() LIST DICT BIG NOTHING Color Color.RED Color.RED.value helper pair nothing
helper(1) helper(*PRIMES) recursive(1) cached(1) emit() None b"x" 1j ... 18446744073709551616 []
[1] {} {1} {1:2} lambda:1 f"{event.k}" math math.sqrt math.hypot(1,2) np np.int8 np.int64
np.int8(5) np.zeros(3) np.exp(1.0) np.float32(1) os os.getcwd() random.random()
re.match("a",event.s) print print(1) open("x") int str(1) len len() sum() sum(state.a,1) range
sorted(state.a) list(state.a) tuple(state.a) set(PRIMES) dict() type(1) isinstance(1,int)
hash(1) pow(2,3) divmod(1,2) map(abs,PRIMES) slice(1) complex(1) any(state.a) all(PRIMES)
iter(state.a) next(event) super() object() repr(1) ord("a") chr(1) super add add(state.a,0)
undefined undefined() undefined.x self __ss_run [i,i]
""")

TARGETS = words("""
x y state.n state.x state.q state.h state.a state.m state.a[0] state.m[0] state.m[0,1]
state.a[:] state.a[1:3] state.m[:,1] state.missing state event emit event.k event.s event[0]
event.random emit.x (x,y) [x,y] (x,(y,z)) (x,state.n) (state.n,state.a[0]) (x,*y) *x state.locks
state.locks[0] state.blocks state.blocks[0,0] state.map state.t state.t[0] state.c[0] PRIMES
PRIMES[0] WORD helper math.pi np.pi int x[0] x.y helper(1,2) None
""")

BINARY = [*words("+ - * / // % ** << >> & | ^ < <= == != > >= in and or"), "not in"]


class Writer:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.lines: list[str] = []

    def pick(self, *options: str) -> str:
        return self.rng.choice(options)

    def value(self, depth: int = 1) -> str:
        if depth == 0 or self.rng.random() < 0.4:
            kind = self.rng.random()
            names = ALLOWED if kind < 0.75 else ["x", "y", "z"] if kind < 0.97 else REFUSED
            return self.pick(*names)
        a, b, c = (self.value(depth - 1) for _ in range(3))
        kind = self.rng.randrange(13)
        if kind < 4:
            return f"({a} {self.pick(*BINARY)} {b})"
        return (
            f"({self.pick('-', '+', '~', 'not ')}{a})",
            f"({a} if {b} else {c})",
            f"({a} {self.pick(*BINARY)} {b} {self.pick(*BINARY)} {c})",
            f"({a})[{b}]",
            f"({a})({b})",
            f"({a}).x",
            f"({a}, {b})",
            f"({a})[{b}:{c}]",
            f"(x := {a})",
        )[kind - 4]

    def target(self) -> str:
        return self.pick(*TARGETS)

    def put(self, indent: int, text: str) -> None:
        self.lines.append("    " * indent + text)

    def statement(self, indent: int, nesting: int) -> None:
        kind = self.rng.randrange(25 if nesting else 16)
        v, w = self.value(), self.value(0)
        if kind < 4:
            self.put(indent, f"{self.target()} = {v}")
        elif kind < 7:
            self.put(indent, f"{self.target()} {self.pick(*BINARY[:12])}= {v}")
        elif kind < 8:
            self.put(indent, f"{self.target()} = {self.target()} = {v}")
        elif kind < 9:
            self.put(indent, f"{self.target()}: {self.pick('int', 'missing', '1')} = {v}")
        elif kind < 11:
            self.put(indent, v)
        elif kind < 13:
            more = self.pick("", ", 0.5", ", None", ", f=0.5", ", g=1", ", *PRIMES", ", **DICT")
            self.put(indent, f"emit({v}{more})")
        elif kind < 16:
            self.put(
                indent,
                self.pick(
                    f"return {v}",
                    "return",
                    "pass",
                    "break",
                    "continue",
                    f"raise {v}",
                    "raise",
                    f"raise ValueError({v})",
                    f"assert {v}",
                    f"assert {v}, {w}",
                    f"del {self.target()}",
                    "global x",
                    "import os",
                    "nonlocal x",
                    f"yield {v}",
                    "'text'",
                    "def inner(): pass",
                    "class Inner: pass",
                ),
            )
        else:
            self.put(
                indent,
                self.pick(
                    f"if {v}:",
                    f"if {v}:",
                    f"while {v}:",
                    f"for {self.target()} in {v}:",
                    f"for x in {v}:",
                    f"for x, y in {v}:",
                    f"with {v}:",
                    f"with {v} as {self.target()}:",
                    "try:",
                    f"match {v}:",
                    "async def later():",
                ),
            )
            is_try, is_match = self.lines[-1].endswith("try:"), "match" in self.lines[-1]
            if is_match:
                self.put(indent + 1, f"case {self.pick('1', 'x', '_', '(1, x)')}:")
            if "while" in self.lines[-1]:
                self.put(indent + 1, "state.n = 1 // 0")  # it ends, if it runs
            self.statement(indent + 1 + is_match, nesting - 1)
            if is_try:
                self.put(indent, "except ValueError:")
                self.statement(indent + 1, nesting - 1)
            elif not is_match and self.rng.random() < 0.2:
                self.put(indent, "else:")
                self.statement(indent + 1, nesting - 1)

    def operator(self, statements: int) -> str:
        self.put(0, "def generated(state, event, emit):")
        for name in ("x", "y", "z"):
            if self.rng.random() < 0.6:
                self.put(1, f"{name} = {self.value(0)}")
        for _ in range(statements):
            self.statement(1, 1)
        return "\n".join(self.lines) + "\n"
