"""Random operators: well-typed programs over the whole language that operators may use.

The text is written to a file and imported, as a user's module would be.
"""

from __future__ import annotations

import importlib.util
import random
import sys
from pathlib import Path
from typing import Any, TypeVar

HEADER = """
import datetime
import functools
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

INT_EDGES = ["0", "1", "-1", "2", "7", "63", "64", "255", "BIG", "MASK", "(-9223372036854775808)"]
FLOAT_EDGES = ["0.0", "-0.0", "1.5", "-2.25", "1e300", "TINY", "NAN", "INF", "-INF", "0.1"]
FLOAT_EDGES += ["float('inf')", 'float("-inf")', "float('nan')", "math.inf", "np.nan"]

INTS_OF_THE_EVENT = [
    *("len(event.code)", "event.code.find('o')", "ord(event.code[1])", "int(name)", "len(name)"),
    *("len(f'{event.key}{event.on:>6}')", "ss.when(event.when).minute", "int(event.code)"),
]
BOOLS_OF_THE_EVENT = [
    *("event.code < name", "event.code.endswith('o')", "'1' in name", "name[1] == '1'"),
    *("any(one.isdigit() for one in event.code)", "TEXTS[0] <= event.code > ONE"),
]
TEXTS_OF_THE_EVENT = [
    *("event.code.upper()", "name[::-1]", "f'{event.key:>4}|{event.on}'", "event.code + name"),
    "max(event.code, name)",
]


TEXT_CASES = ["'two'", "''"]


Choice = TypeVar("Choice")


class Writer:
    """Writes one operator, choice by choice, from a source of randomness."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.lines: list[str] = []
        self.ints = ["i0", "i1"]
        self.scopes = 0
        self.in_iterable = 0
        self.floats = ["f0", "f1"]
        self.loops = 0
        # Calls that change the state make all events conflict: not every program has them.
        self.effects = rng.random() < 0.5
        # So do those that catch what they raise.
        self.catches = rng.random() < 0.5
        self.handlers: list[str | None] = []  # around the present statement
        self.in_loop = False
        self.names = 0
        self.leave = "return"

    def pick(self, *options: Choice) -> Choice:
        return self.rng.choice(options)

    def int_(self, depth: int = 2) -> str:
        if depth == 0:
            return self.pick(
                *INT_EDGES[: self.rng.randint(3, len(INT_EDGES))],
                *self.ints,
                *self.ints,
                "event.key",
                "event.key",
                "(event.code & 1023)",
                "event.when",
                "event.price",
                "state.n",
                "event.sequence",
                f"state.a[{self.at(16, 0)}]",
                "len(state.f)",
                "state.w",
                f"state.c[{self.at(11, 0)}]",
                f"PRIMES[{self.rng.randint(0, 5)}]",
                *self.calls("tick(state, 1)", "tick(state, i0)", 'increment(state, "n")'),
            )
        a, b = self.int_(depth - 1), self.int_(self.rng.randint(0, depth - 1))
        chosen: str = self.pick(
            f"({a} {self.pick('+', '-', '*', '&', '|', '^')} {b})",
            f"({a} {self.pick('+', '-', '*')} {b})",
            f"({a} {self.pick('//', '%')} ({b} | 1))",
            f"({a} {self.pick('//', '%')} {b})",
            f"({a} {self.pick('<<', '>>')} ({b} & 31))",
            f"(-{a})",
            f"(~{a})",
            f"abs({a})",
            f"({a} ** ({b} & 7))",
            f"{self.pick('min', 'max')}({a}, {b})",
            f"({a} if {self.bool_(depth - 1)} else {b})",
            f"collatz({a}, 20)",
            f"state.a[{self.at(16, depth - 1)}]",
            f"state.m[{self.at(3, 0)}, {self.at(5, 0)}]",
            f"state.t[{self.at(6, 0)}]",
            f"state.r[{self.at(2, 0)}, {self.at(40, 0)}]",
            f"state.h[{self.at(2, 0)}, {self.at(6, 0)}]",
            f"state.q[{self.at(5, 0)}]",
            f"int({self.float_(0)} % 1000.0)",
            f"{self.pick('min', 'max', 'sum')}(state.{self.pick('a', 't', 'm[1]', 'a[::3]')})",
            f"{self.pick('min', 'max', 'sum')}(state.r[{self.at(2, 0)}])",
            f"{self.pick('min', 'max', 'sum')}(state.{self.pick('c', 'q', 'h[1]', 'c[::-2]')})",
            f"int({self.bool_(depth - 1)})",
            f"np.int64(event.random_bits({self.rng.randint(0, 3)}) % 1000)",
            f"bump(state.a, {a}, {b})",
            f"weigh({self.shuffled(f'second={a}', f'third={b}', f'first={self.int_(0)}')})",
            f"weigh({a}, {self.shuffled(f'third={b}', f'second={self.int_(0)}')})",
            *self.calls(f"tick(state, {a})", f"increment(state.a, {self.at(16, depth - 1)})"),
            f"round({self.float_(0)} % 50.0)",
            *((f"looked_up(state, {self.int_(0)} % 18 - 9)",) if self.catches else ()),
            self.of_the_event("0", INTS_OF_THE_EVENT),
            *self.syntax_int(depth),
        )
        return chosen

    def of_the_event(self, otherwise: str, choices: list[str]) -> str:
        """What Python computes of the event alone; of a string that may be null, if it is not."""
        chosen = self.rng.choice(choices)
        if "event.code" not in chosen:
            return f"({chosen})"
        return f"({chosen} if not event.is_null('code') else {otherwise})"

    def calls(self, *texts: str) -> tuple[str, ...]:
        """Texts that call what changes the state, in programs that have such."""
        return texts if self.effects else ()

    def shuffled(self, *parts: str) -> str:
        return ", ".join(self.rng.sample(parts, len(parts)))

    def narrow(self, low: int, high: int) -> str:
        """An integer from low to high; rarely one that may be outside."""
        value = self.int_(1)
        if self.rng.random() < 0.1:
            return value
        return f"(({value}) % {high - low + 1} {'-' if low < 0 else '+'} {abs(low)})"

    def at(self, length: int, depth: int) -> str:
        """An index; rarely one that may be out of bounds."""
        if self.rng.random() < 0.04:
            return self.int_(0)
        choice = self.rng.random()
        if depth == 0 or choice < 0.5:
            return self.pick(
                str(self.rng.randrange(length)),
                str(-self.rng.randint(1, length)),
                f"event.key % {length}",
                f"i0 % {length}",
                f"state.n % {length}",
                *self.calls(f"tick(state, 3) % {length}"),
            )
        return f"{self.int_(depth - 1)} % {length}"

    def float_(self, depth: int = 2) -> str:
        if depth == 0:
            return self.pick(
                *FLOAT_EDGES[: self.rng.randint(2, len(FLOAT_EDGES))],
                *self.floats,
                *self.floats,
                "event.value",
                "event.value",
                "state.x",
                f"state.f[{self.at(8, 0)}]",
                f"state.g[{self.at(6, 0)}]",
                *self.calls("drift(state)"),
            )
        a, b = self.float_(depth - 1), self.float_(self.rng.randint(0, depth - 1))
        return self.pick(
            f"({a} {self.pick('+', '-', '*')} {b})",
            f"({a} {self.pick('+', '-', '*', '/')} {b})",
            f"({a} {self.pick('%', '//')} {b})",
            f"({a} / ({b} * {b} + 1.0))",
            f"(abs({a}) ** {self.pick('0.5', '2', '-1.5', '3.0', b)})",
            f"math.{self.pick('sin', 'cos', 'atan', 'tanh', 'floor', 'isnan')}({a}) * 1.0"
            if self.rng.random() < 0.3
            else f"math.{self.pick('sin', 'atan', 'tanh', 'fabs')}({a})",
            f"math.{self.pick('sqrt', 'exp', 'log', 'log1p')}({a})",
            f"(-{a})",
            f"float({self.int_(depth - 1)})",
            f"({self.int_(depth - 1)} / ({self.int_(0)} | 1))",
            f"({a} + {self.int_(0)})",
            f"({a} if {self.bool_(depth - 1)} else {b})",
            f"{self.pick('min', 'max')}({a}, {b})",
            f"blend({a}, {b})",
            f"math.copysign({a}, {b})",
            f"event.random({self.rng.randint(0, 3)})",
            f"state.u[{self.at(4, 0)}]",
            f"{self.pick('min', 'max', 'sum')}"
            f"(state.{self.pick('f', 'u', 'g', 'f[::-1]', 'f[1:4]', 'g[2:]')})",
            *self.syntax_float(depth),
        )

    def bool_(self, depth: int = 1) -> str:
        if depth <= 0:
            return self.pick(
                "event.on",
                f"state.b[{self.at(8, 0)}]",
                f"state.e[{self.at(9, 0)}]",
                "(event.key > 5)",
                "(event.value < 0.5)",
                "(state.n % 2 == 0)",
                f"(event.code {self.pick('==', '!=')} {self.text(0)})",
                f"(event.code {self.pick('in', 'not in')} {self.pick('TEXTS', '(ONE, ONE)')})",
                "event.is_null('value')",
                'event.is_null("code")',
                *self.calls("flip(state, state.n)"),
            )
        return self.pick(
            f"({self.int_(depth - 1)} {self.pick('<', '<=', '==', '!=', '>', '>=')} "
            f"{self.int_(depth - 1)})",
            f"({self.float_(depth - 1)} {self.pick('<', '<=', '==', '!=', '>')} "
            f"{self.float_(depth - 1)})",
            f"({self.float_(depth - 1)} {self.pick('<', '==', '>=')} {self.int_(depth - 1)})",
            f"(not {self.bool_(depth - 1)})",
            f"({self.bool_(depth - 1)} {self.pick('and', 'or')} {self.bool_(depth - 1)})",
            f"({self.int_(0)} < {self.int_(0)} <= {self.int_(0)})",
            f"({self.float_(0)} < {self.int_(depth - 1)} {self.pick('<', '!=')} {self.int_(0)} > "
            f"{self.int_(0)})",
            f"({self.int_(0)} {self.pick('in', 'not in')} "
            f"{self.pick('state.a', 'state.c', 'PRIMES', f'state.a[{self.at(16, 0)} :]')})",
            f"math.isfinite({self.float_(0)})",
            f"({self.text()} {self.pick('==', '!=')} {self.text()})",
            f"({self.bool_(0)} {self.pick('&', '|', '^', '==')} {self.bool_(0)})",
            self.of_the_event("event.on", BOOLS_OF_THE_EVENT),
            f"(not {self.text()})",
            *self.syntax_bool(),
        )

    # ---- syntax: what stands for a loop, a function, an assignment inside an expression ----

    def syntax_int(self, depth: int) -> list[str]:
        """A few more integers."""
        a, b = self.int_(0), self.int_(0)
        texts = [
            f"shaped({a}{self.pick('', f', {b}', f', by={b}')}, "
            f"{self.shuffled(f'plus={self.int_(0)}', f'flip={self.bool_(0)}')})",
            f"shifted({a}{self.pick('', ', plus=i0', ', flip=event.on')})",
            f"halved({a}{self.pick('', ', 3', ', by=-7')})",
            f"inner({a}{self.pick('', f', {b}', f', w={b}')})",
        ]
        if not self.in_iterable:
            texts += [f"(k0 := {self.int_(depth - 1)})", f"((k0 := {a}) - k0)"]
        if self.rng.random() < 0.25:
            name, iterable = self.scope("v")
            self.ints.append(name)
            # Often evaluated, so rarely what raises.
            item = self.int_(1) if self.rng.random() < 0.1 else self.harmless(name)
            key = self.harmless(name)
            condition = self.pick("", f" if {self.bool_(1)}", f" if {name} > 1")
            self.ints.remove(name)
            loop = f"for {name} in {iterable}{condition}"
            texts = [
                f"sum({item} {loop})",
                f"sum([{item} {loop}])",
                f"sum(({item} {loop}), {b})",
                f"{self.pick('min', 'max')}(({item} {loop}), default={a})",
                f"{self.pick('min', 'max')}(({name} {loop}), key=lambda {name}: {key}, default=-1)",
                f"max(state.a, key=lambda {name}: {key})",
                f"(lambda {name}, w=3: {key} ^ w)({a})",
                f"sum({item} - u {loop} for u in range({name} & 3))",
                f"len([{item} {loop}])",
            ]
        return [self.pick(*texts)]

    def harmless(self, name: str) -> str:
        return f"({name} {self.pick('+', '-', '*', '^', '&')} {self.int_(0)})"

    def scope(self, letter: str) -> tuple[str, str]:
        """A name of a comprehension's own, now and then one that is another's too, and what it
        goes through: a few ints."""
        self.scopes += 1
        self.in_iterable += 1
        iterable = self.pick(
            "state.t",
            "state.m[1]",
            f"state.a[{self.int_(0)} & 7 :]",
            f"range({self.int_(0)} & 7)",
            f"range({self.int_(0)} & 3, 5)",
            f"({self.int_(0)}, {self.int_(0)})",
        )
        self.in_iterable -= 1
        return self.pick(f"{letter}{self.scopes}", letter), iterable

    def syntax_float(self, depth: int) -> list[str]:
        if self.rng.random() < 0.8:
            return []
        items = self.pick("state.f", "state.u", "state.f[2:5]")
        return [
            self.pick(
                f"sum(z * {self.float_(0)} for z in {items})",
                f"min(z - {self.float_(0)} for z in {items})",
                f"max((z for z in {items} if z > {self.float_(0)}), default={self.float_(0)})",
                f"max({items}, key=lambda z: z * {self.float_(0)})",
            )
        ]

    def syntax_bool(self) -> list[str]:
        if self.rng.random() < 0.6:
            return []
        name, iterable = self.scope("v")
        self.ints.append(name)
        test = self.bool_(1)
        self.ints.remove(name)
        if not self.in_iterable and self.rng.random() < 0.2:
            return [f"any((k0 := {name}) > {self.int_(0)} for {name} in {iterable})"]
        return [
            f"{self.pick('any', 'all')}({test} for {name} in {iterable})",
            f"{self.pick('any', 'all')}([{test} for {name} in {iterable}])",
        ]

    def syntax_statement(self, indent: int, nesting: int) -> None:
        """Statements of more than a line, or that assign in ways of their own."""
        kind = self.rng.randrange(5)
        if kind == 0:
            self.put(indent, f"i0, *rest = {self.int_(1)}, {self.int_(0)}, {self.int_(0)}")
            self.put(indent, "i1 = rest[0] - rest[-1]")
        elif kind == 1:
            pairs = f"({self.int_(0)}, {self.int_(0)})"
            targets = self.pick(
                "state.n, i1", f"(i0, state.t[{self.at(6, 0)}])", "i0, *rest", "(state.x, i0)"
            )
            self.put(indent, f"for {targets} in ({pairs}, {pairs}, (4, i1)):")
            self.block(indent + 1, 1, 0)
            if self.rng.random() < 0.4:
                self.put(indent, "else:")
                self.block(indent + 1, 1, 0)
        elif kind == 2:
            self.put(indent, f"match {self.text()}:")
            self.put(indent + 1, f"case 'one' | {self.pick(*TEXT_CASES)}:")
            self.block(indent + 2, 1, nesting - 1)
            self.put(indent + 1, self.pick("case 'three':", f"case _ if {self.bool_(1)}:"))
            self.block(indent + 2, 1, nesting - 1)
        elif kind == 3:
            self.put(indent, f"match {self.int_(1)}, {self.bool_(1)}:")
            self.put(indent + 1, self.pick("case 0 | 1 | -3, _:", "case (5 | 7 as i0), False:"))
            self.block(indent + 2, 1, nesting - 1)
            self.put(indent + 1, f"case i1, True if {self.bool_(1)}:")
            self.block(indent + 2, 1, nesting - 1)
            if self.rng.random() < 0.5:
                self.put(indent + 1, self.pick("case _:", "case [i0, *_]:"))
                self.block(indent + 2, 1, nesting - 1)
        else:
            self.put(indent, f"d0 = {self.int_(1)}")
            self.put(indent, f"i1 = d0 ^ {self.int_(0)}")
            self.put(indent, "del d0")

    def text(self, depth: int = 1) -> str:
        if depth == 0:
            return self.pick("event.code", "'two'", "ONE", '""', "TEXTS[1]")
        return self.pick(
            f"({self.text(0)} if {self.bool_(0)} else {self.text(0)})",
            f"({self.text(0)} or {self.text(0)})",
            self.of_the_event("ONE", TEXTS_OF_THE_EVENT),
        )

    def update(self) -> str:
        """A commutative update; what it updates is read elsewhere."""
        target = self.pick(
            f"state.a, {self.at(16, 1)}, {self.int_(1)}",
            f"state.a, {self.at(16, 0)}, {self.int_(0)}",
            f"state.m, ({self.at(3, 0)}, {self.at(5, 0)}), {self.int_(0)}",
            f"state.r, ({self.at(2, 0)}, {self.at(40, 0)}), {self.int_(0)}",
            f"state.m[{self.at(3, 0)}], {self.at(5, 0)}, {self.int_(0)}",
            f"state.f, {self.at(8, 0)}, {self.float_(1)}",
            f"state.f, {self.at(8, 0)}, {self.int_(0)}",
            f'state, "n", {self.int_(1)}',
            f'state, "x", {self.float_(1)}',
            f'state, "w", {self.int_(0)}',
            f"state.c, {self.at(11, 0)}, {self.narrow(-9, 9)}",
            f"state.h, ({self.at(2, 0)}, {self.at(6, 0)}), {self.narrow(0, 9)}",
            f"state.g, {self.at(6, 0)}, {self.float_(1)}",
            f"state.t, {self.at(6, 0)}, {self.int_(0)}",
            f"state.q, {self.at(5, 0)}, {self.narrow(0, 9)}",
        )
        return f"{self.pick('add', 'add', 'minimum', 'maximum')}({target})"

    def block(self, indent: int, size: int, nesting: int) -> None:
        for _ in range(size):
            self.statement(indent, nesting)

    def maybe(self) -> str:
        """A float that may be null."""
        return self.pick(
            "None",
            self.float_(1),
            f"{self.float_(1)} if {self.bool_(1)} else None",
            f"None if {self.bool_(0)} else {self.float_(0)} if {self.bool_(1)} else None",
        )

    def put(self, indent: int, text: str) -> None:
        self.lines.append("    " * indent + text)

    def statement(self, indent: int, nesting: int) -> None:
        simple = [
            lambda: f"{self.pick(*self.ints)} = {self.int_()}",
            lambda: f"{self.pick(*self.floats)} = {self.float_()}",
            lambda: (
                f"{self.pick('i0', 'i1')} {self.pick('+', '-', '*', '^', '//', '%')}= "
                f"{self.int_(1)}"
            ),
            lambda: f"state.a[{self.at(16, 1)}] {self.pick('', '+', '-', '^')}= {self.int_()}",
            lambda: f"state.a[{self.at(16, 1)}] += {self.int_(1)}",
            lambda: f"state.f[{self.at(8, 1)}] {self.pick('', '+', '*')}= {self.float_()}",
            lambda: f"state.b[{self.at(8, 0)}] = {self.bool_()}",
            lambda: f"state.m[{self.at(3, 0)}, {self.at(5, 0)}] += {self.int_(1)}",
            lambda: f"state.m[{self.at(3, 0)}][{self.at(5, 0)}] = {self.int_(1)}",
            lambda: f"state.n {self.pick('', '+', '-')}= {self.int_()}",
            lambda: f"state.x {self.pick('', '+', '*')}= {self.float_()}",
            lambda: f"state.c[{self.at(11, 1)}] = {self.narrow(-128, 127)}",
            lambda: f"state.c[{self.at(11, 0)}] {self.pick('+', '-', '^')}= {self.int_(0)}",
            lambda: f"state.h[{self.at(2, 0)}, {self.at(6, 1)}] = {self.narrow(0, 65535)}",
            lambda: f"state.h[{self.at(2, 0)}][{self.at(6, 0)}] += 1",
            lambda: f"state.w = {self.narrow(-(2**31), 2**31 - 1)}",
            lambda: f"state.g[{self.at(6, 1)}] {self.pick('', '+', '*')}= {self.float_()}",
            lambda: f"state.e[{self.at(9, 0)}] = {self.bool_()}",
            lambda: f"state.q[{self.at(5, 0)}] = {self.narrow(0, 255)}",
            lambda: (
                f"state.c[{self.pick('1:5', '4:8', '-6:-2')}] = "
                f"state.{self.pick('c[0:4]', 'c[2:6]', 'q[1:]', 'a[3:7]')}"
            ),
            lambda: f"state.t[{self.at(6, 0)}] += {self.int_(1)}",
            lambda: f"state.u[{self.at(4, 0)}] = {self.float_(1)}",
            lambda: f"i0, i1 = both({self.int_(1)})",
            lambda: f"i0, state.n = {self.int_(0)}, {self.int_(1)}",
            lambda: (
                f"state.a[{self.pick('1:5', '4:8', '-6:-2', '7:3:-1', '2:10:2')}] = "
                f"state.a[{self.pick('0:4', '2:6', '8:12', '9:5:-1', '::4')}]"
            ),
            lambda: f"state.m[1:, {self.pick(':4', '1:', '4:0:-1')}] = state.m[:2, :4]",
            lambda: f"state.m[{self.pick('::2', ':2', '0:1')}] = state.a[3:8]",
            lambda: f"state.m[{self.at(3, 0)}] = {self.pick('state.a[3:8]', self.int_(0))}",
            lambda: f"state.r[{self.at(2, 0)}] = {self.pick('state.r[1]', self.int_(1))}",
            lambda: f"state.r[{self.at(2, 0)}, :35] = state.r[0, {self.pick('2:37', '5:')}]",
            lambda: f"state.r[{self.at(2, 0)}, {self.at(40, 0)}] {self.pick('', '+')}= i0",
            lambda: (
                f"state.m[{self.at(3, 0)}] {self.pick('+', '^')}= "
                f"state.{self.pick('a[3:8]', 'm[0]')}"
            ),
            lambda: f"state.m[{self.at(3, 0)}] {self.pick('-', '//')}= {self.int_(0)}",
            lambda: f"state.{self.pick('a[2:9]', 'm[1:]', 'm[0]', 't[::2]')} **= (i0 & 3)",
            lambda: f"emit({self.int_(1)}, {self.float_(1)}, {self.bool_(0)})",
            lambda: f"emit({self.int_(1)}, {self.float_(1)}, {self.bool_(0)}, {self.maybe()})",
            lambda: (
                "emit("
                + self.shuffled(
                    f"u={self.maybe()}",
                    f"z={self.bool_(0)}",
                    f"y={self.float_(1)}",
                    f"x={self.pick('event.key', self.int_(1))}",
                )
                + ")"
            ),
            lambda: (
                f"state.a[{self.at(16, 1)} : {self.int_(0)} : {self.int_(0)} & 3] = {self.int_(1)}"
            ),
            lambda: (
                f"state.m[{self.at(3, 0)}, {self.at(5, 0)}], state.a[{self.at(16, 0)}] = "
                f"{self.int_(1)}, {self.int_(1)}"
            ),
        ]
        if self.catches and nesting > 0 and self.rng.random() < 0.25:
            self.attempt(indent, nesting)
            return
        kind = self.rng.random()
        if kind < 0.1:
            self.put(indent, self.update())
        elif kind < 0.72 or nesting == 0:
            self.put(indent, self.rng.choice(simple)())
        elif kind < 0.8:
            self.put(indent, f"if {self.bool_(2)}:")
            self.block(indent + 1, self.rng.randint(1, 2), nesting - 1)
            if self.rng.random() < 0.5:
                self.put(indent, "else:")
                self.block(indent + 1, 1, nesting - 1)
        elif kind < 0.84:
            self.syntax_statement(indent, nesting)
        elif kind < 0.92:
            self.loops += 1
            name = f"j{self.loops}"
            bounds = self.pick(
                *("6", "1, 5", "7, 0, -2", "len(state.t)", "BIG - 3, BIG", "-BIG, BIG, BIG"),
                *("event.on, 4", "-BIG + 4, -BIG - 1, -3"),
                f"{self.int_(0)} % 5",
                f"{self.int_(0)} % 5, {self.int_(0)} % 9, {self.int_(0)} & 3",
            )
            self.put(indent, f"for {name} in range({bounds}):")
            self.ints.append(name)
            around, self.in_loop = self.in_loop, True
            self.block(indent + 1, self.rng.randint(1, 2), nesting - 1)
            self.in_loop = around
            if self.rng.random() < 0.3:
                self.put(indent + 1, f"if {self.bool_(1)}:")
                self.put(indent + 2, self.pick("break", "continue"))
            self.ints.remove(name)
        elif kind < 0.95:
            self.loops += 1
            name = f"v{self.loops}"
            self.put(
                indent, f"for {name} in state.{self.pick('a', 't', 'm[2]', 'a[::5]', 'c', 'h[0]')}:"
            )
            self.put(indent + 1, f"i1 = i1 ^ ({name} + {self.int_(0)})")
        else:
            self.put(indent, f"if {self.bool_(1)}:")
            self.put(indent + 1, self.pick(*self.ways_out()))

    def ways_out(self) -> list[str]:
        """What leaves the present statement."""
        ways = [
            "raise ValueError(f'state {state.n} event {event.key}')",
            "raise KeyError(event.key)",
            "assert event.key < 3, 'too large'",
            self.leave,
        ]
        if not self.catches:
            return ways
        ways += [
            "raise Refused",
            f"raise Declined('declined', {self.int_(1)})",
            f"raise Elsewhere(f'{{i0 // {self.pick(*self.ints)}}} of {{f0:.2f}}') from None",
            f"assert {self.bool_(0)}, f'{{state.a[i1]}}'",
            self.leave,
        ]
        ways += ["break", "continue"] * self.in_loop
        for name in self.handlers:
            if name is not None:
                ways += [f"raise {name}", f"raise Elsewhere(f'after {{{name}}}') from {name}"]
        return [*ways, "raise", "raise"] if self.handlers else ways

    def attempt(self, indent: int, nesting: int) -> None:
        """A try statement, in its every form."""
        self.put(indent, "try:")
        self.inside(indent, nesting)
        clauses = self.pick(0, 1, 1, 2, 2, 3)
        for _ in range(clauses):
            self.clause(indent, nesting)
        if clauses and self.rng.random() < 0.4:
            self.put(indent, "except:")
            self.handle(indent, nesting, None)
        if clauses and self.rng.random() < 0.4:
            self.put(indent, "else:")
            self.inside(indent, nesting)
        if not clauses or self.rng.random() < 0.4:
            self.put(indent, "finally:")
            handlers, self.handlers = self.handlers, []
            self.inside(indent, nesting)
            self.handlers = handlers

    def clause(self, indent: int, nesting: int) -> None:
        caught = self.pick(
            *("IndexError", "ZeroDivisionError", "ValueError", "OverflowError", "Refused"),
            *("(IndexError, ArithmeticError)", "(Refused, KeyError)", "LookupError"),
            *("Declined", "Exception", "AssertionError", "(Elsewhere, OverflowError, KeyError)"),
        )
        name = None
        if self.rng.random() < 0.4:
            self.names += 1
            name = f"c{self.names}"
        self.put(indent, f"except {caught} as {name}:" if name else f"except {caught}:")
        self.handle(indent, nesting, name)

    def handle(self, indent: int, nesting: int, name: str | None) -> None:
        self.handlers.append(name)
        self.inside(indent, nesting)
        self.handlers.pop()

    def inside(self, indent: int, nesting: int) -> None:
        self.block(indent + 1, self.rng.randint(1, 2), nesting - 1)
        if self.rng.random() < 0.2:
            self.put(indent + 1, f"if {self.bool_(1)}:")
            self.put(indent + 2, self.pick(*self.ways_out()))
            self.block(indent + 1, self.rng.randint(0, 1), 0)

    def inner(self) -> None:
        """What every function begins with that is given ``i0``."""
        self.put(1, "name = str(event.key)[-3:]")
        self.put(1, "k0 = 2")
        self.put(1, "def inner(v, w=3):")
        self.put(2, "i1 = v ^ i0")
        self.put(2, "return i1 - w * k0")

    def helper(self) -> None:
        """A function in which things are caught, or not: its caller catches them as well."""
        self.put(0, "def part(state, event, emit, i0, f0):")
        self.put(1, "i1 = 3")
        self.put(1, "f1 = -1.5")
        self.inner()
        self.leave = "return i1"
        self.block(1, self.rng.randint(1, 4), 2)
        self.put(1, "return i0 ^ i1")
        self.put(0, "")
        self.put(0, "")
        self.leave = "return"

    def operator(self, statements: int) -> str:
        has_helper = self.catches and self.rng.random() < 0.6
        if has_helper:
            self.helper()
        self.put(
            0,
            '@ss.operator(state=State, event={"key": int, "value": ss.nullable(float), "on": bool, '
            '"code": ss.nullable(str), "when": ss.timestamp("ms"), "price": ss.decimal(3)},',
        )
        self.put(
            0, '             emits={"x": int, "y": float, "z": bool, "u": ss.nullable(float)})'
        )
        self.put(0, "def generated(state, event, emit):")
        self.put(1, "i0 = event.key")
        self.put(1, "i1 = 1")
        self.put(1, "f0 = event.value")
        self.put(1, "f1 = 0.5")
        self.inner()
        self.block(1, statements, 2)
        if has_helper:
            self.put(1, "try:")
            self.put(2, "i1 = part(state, event, emit, i0, f1)")
            self.clause(1, 1)
            self.put(1, "except Exception:")
            self.put(2, "state.n += 1")
        self.put(1, "emit(i0, f0, event.on)")
        return HEADER + "\n".join(self.lines) + "\n"


def load(text: str, folder: Path, number: int) -> Any:
    """The operator that the text defines."""
    name = f"generated_{number}"
    path = folder / f"{name}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module.generated
