"""Numbers, bools and strings: literals, columns, fields, operators, calls."""

from __future__ import annotations

from abc import abstractmethod

from support.generated.drawing import Drawing, Option

__all__ = ["Values"]

INT_EDGES = ["0", "1", "-1", "2", "7", "63", "64", "255", "BIG", "MASK", "(-9223372036854775808)"]
FLOAT_EDGES = ["0.0", "-0.0", "1.5", "-2.25", "1e300", "TINY", "NAN", "INF", "-INF", "0.1"]
FLOAT_EDGES += ["float('inf')", 'float("-inf")', "float('nan')", "math.inf", "np.nan"]

INTS_OF_THE_EVENT = [
    *("len(event.code)", "event.code.find('o')", "ord(event.code[1])", "int(name)", "len(name)"),
    *("len(f'{event.key}{event.on:>6}')", "ss.when(event.when).minute", "int(event.code)"),
    *("len(event.code.split('n'))", "int('7' + name[-1])", "event.code.count('w') + len(ONE)"),
]
BOOLS_OF_THE_EVENT = [
    *("event.code < name", "event.code.endswith('o')", "'1' in name", "name[1] == '1'"),
    *("any(one.isdigit() for one in event.code)", "TEXTS[0] <= event.code > ONE"),
    "event.code.startswith(('t', 'o'))",
]
TEXTS_OF_THE_EVENT = [
    *("event.code.upper()", "name[::-1]", "f'{event.key:>4}|{event.on}'", "event.code + name"),
    *("max(event.code, name)", "event.code.replace('o', 'n')", "event.code.partition('n')[2]"),
    *("str(event.price)", "f'{event.when}|{event.price:.1f}'", "repr(event.when)"),
    *(
        "'%s %s' % (event.price, event.key)",
        "f'{event.when:%H:%M} {event.price:>9}'",
    ),
]


class Values(Drawing):
    @abstractmethod
    def syntax_int(self, depth: int) -> str: ...

    @abstractmethod
    def syntax_float(self, depth: int) -> str: ...

    @abstractmethod
    def syntax_bool(self) -> str: ...

    @abstractmethod
    def more_ints(self, depth: int) -> list[Option]: ...

    @abstractmethod
    def more_floats(self, depth: int) -> list[Option]: ...

    @abstractmethod
    def more_bools(self) -> list[Option]: ...

    @abstractmethod
    def more_texts(self) -> list[Option]: ...

    def int_(self, depth: int = 2) -> str:
        if depth <= 0:
            return self.pick(
                *INT_EDGES[: self.rng.randint(3, len(INT_EDGES))],
                *self.ints,
                *self.ints,
                "event.key",
                "event.key",
                self.code_bits,
                "event.when",
                "event.price",
                "state.n",
                "event.sequence",
                lambda: f"state.a[{self.at(16, 0)}]",
                "len(state.f)",
                "state.w",
                lambda: f"state.c[{self.at(11, 0)}]",
                lambda: f"PRIMES[{self.rng.randint(0, 5)}]",
                *self.calls("tick(state, 1)", "tick(state, i0)", 'increment(state, "n")'),
            )
        if self.chance(0.35):
            more = self.more_ints(depth - 1)
            if more:
                return self.pick(*more)
        a, b = self.int_(depth - 1), self.int_(self.rng.randint(0, depth - 1))
        return self.pick(
            lambda: f"({a} {self.pick('+', '-', '*', '&', '|', '^')} {b})",
            lambda: f"({a} {self.pick('+', '-', '*')} {b})",
            lambda: f"({a} {self.pick('//', '%')} ({b} | 1))",
            lambda: f"({a} {self.pick('//', '%')} {b})",
            lambda: f"({a} {self.pick('<<', '>>')} ({b} & 31))",
            f"(-{a})",
            f"(~{a})",
            f"abs({a})",
            f"({a} ** ({b} & 7))",
            lambda: f"{self.pick('min', 'max')}({a}, {b})",
            lambda: f"({a} if {self.bool_(depth - 1)} else {b})",
            f"collatz({a}, 20)",
            lambda: f"state.a[{self.at(16, depth - 1)}]",
            lambda: f"state.m[{self.at(3, 0)}, {self.at(5, 0)}]",
            lambda: f"state.t[{self.at(6, 0)}]",
            lambda: f"state.r[{self.at(2, 0)}, {self.at(40, 0)}]",
            lambda: f"state.h[{self.at(2, 0)}, {self.at(6, 0)}]",
            lambda: f"state.q[{self.at(5, 0)}]",
            lambda: f"int({self.float_(0)} % 1000.0)",
            lambda: self.reduced("a", "t", "m[1]", "a[::3]"),
            lambda: self.reduced(f"r[{self.at(2, 0)}]"),
            lambda: self.reduced("c", "q", "h[1]", "c[::-2]"),
            lambda: f"int({self.bool_(depth - 1)})",
            lambda: f"np.int64(event.random_bits({self.rng.randint(0, 3)}) % 1000)",
            f"bump(state.a, {a}, {b})",
            lambda: f"weigh({self.shuffled(f'second={a}', f'third={b}', f'first={self.int_(0)}')})",
            lambda: f"weigh({a}, {self.shuffled(f'third={b}', f'second={self.int_(0)}')})",
            *self.calls(f"tick(state, {a})"),
            *(
                [lambda: f"increment(state.a, {self.at(16, depth - 1)})"]
                if self.has("effects")
                else []
            ),
            lambda: f"round({self.float_(0)} % 50.0)",
            *([lambda: self.looked_up()] if self.has("catches") else []),
            lambda: self.of_the_event("0", INTS_OF_THE_EVENT),
            lambda: self.syntax_int(depth),
            lambda: self.syntax_int(depth),
        )

    def looked_up(self) -> str:
        return f"looked_up(state, {self.int_(0)} % 18 - 9)"

    def reduced(self, *fields: str) -> str:
        return f"{self.pick('min', 'max', 'sum')}(state.{self.pick(*fields)})"

    def has_code(self) -> str:
        """That the event's string is none that is null."""
        asked = "not event.is_null('code')"
        return self.pick(asked, "event.code is not None") if self.asks_none else asked

    def code_bits(self) -> str:
        if self.asks_none:
            return "(0 if event.code is None else event.code & 1023)"
        return "(event.code & 1023)"

    def value(self) -> str:
        """The event's float, which may be null."""
        if not self.asks_none:
            return "event.value"
        return self.pick(
            "(event.value if event.value is not None else 0.75)",
            "(-0.5 if event.value is None else event.value)",
        )

    def of_the_event(self, otherwise: str, choices: list[str]) -> str:
        """What Python computes of the event alone; of a string that may be null, if it is not."""
        chosen = self.rng.choice(choices)
        if "event.code" not in chosen:
            return f"({chosen})"
        known = self.has_code() if self.asks_none else "not event.is_null('code')"
        return f"({chosen} if {known} else {otherwise})"

    def narrow(self, low: int, high: int) -> str:
        """An integer from low to high; rarely one that may be outside."""
        value = self.int_(1)
        if self.chance(0.1):
            return value
        return f"(({value}) % {high - low + 1} {'-' if low < 0 else '+'} {abs(low)})"

    def at(self, length: int, depth: int) -> str:
        """An index; rarely one that may be out of bounds."""
        if self.chance(0.04):
            return self.int_(0)
        if depth == 0 or self.chance(0.5):
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
        if depth <= 0:
            return self.pick(
                *FLOAT_EDGES[: self.rng.randint(2, len(FLOAT_EDGES))],
                *self.floats,
                *self.floats,
                self.value,
                self.value,
                "state.x",
                lambda: f"state.f[{self.at(8, 0)}]",
                lambda: f"state.g[{self.at(6, 0)}]",
                *self.calls("drift(state)"),
            )
        if self.chance(0.35):
            more = self.more_floats(depth - 1)
            if more:
                return self.pick(*more)
        a, b = self.float_(depth - 1), self.float_(self.rng.randint(0, depth - 1))
        return self.pick(
            lambda: f"({a} {self.pick('+', '-', '*')} {b})",
            lambda: f"({a} {self.pick('+', '-', '*', '/')} {b})",
            lambda: f"({a} {self.pick('%', '//')} {b})",
            f"({a} / ({b} * {b} + 1.0))",
            lambda: f"(abs({a}) ** {self.pick('0.5', '2', '-1.5', '3.0', b)})",
            lambda: f"math.{self.pick('sin', 'atan', 'tanh', 'fabs')}({a})",
            lambda: f"math.{self.pick('cos', 'floor', 'isnan')}({a}) * 1.0",
            lambda: f"math.{self.pick('sqrt', 'exp', 'log', 'log1p')}({a})",
            f"(-{a})",
            lambda: f"float({self.int_(depth - 1)})",
            lambda: f"({self.int_(depth - 1)} / ({self.int_(0)} | 1))",
            lambda: f"({a} + {self.int_(0)})",
            lambda: f"({a} if {self.bool_(depth - 1)} else {b})",
            lambda: f"{self.pick('min', 'max')}({a}, {b})",
            f"blend({a}, {b})",
            f"math.copysign({a}, {b})",
            lambda: f"event.random({self.rng.randint(0, 3)})",
            lambda: f"state.u[{self.at(4, 0)}]",
            lambda: self.reduced("f", "u", "g", "f[::-1]", "f[1:4]", "g[2:]"),
            lambda: self.syntax_float(depth),
        )

    def bool_(self, depth: int = 1) -> str:
        if depth <= 0:
            return self.pick(
                "event.on",
                lambda: f"state.b[{self.at(8, 0)}]",
                lambda: f"state.e[{self.at(9, 0)}]",
                "(event.key > 5)",
                lambda: f"({self.value()} < 0.5)",
                "(state.n % 2 == 0)",
                lambda: f"(event.code {self.pick('==', '!=')} {self.text(0)})",
                lambda: (
                    f"(event.code {self.pick('in', 'not in')} {self.pick('TEXTS', '(ONE, ONE)')})"
                ),
                "event.is_null('value')",
                'event.is_null("code")',
                *self.calls("flip(state, state.n)"),
            )
        if self.chance(0.3):
            more = self.more_bools()
            if more:
                return self.pick(*more)
        one, other = self.int_(depth - 1), self.float_(depth - 1)
        return self.pick(
            lambda: f"({one} {self.pick('<', '<=', '==', '!=', '>', '>=')} {self.int_(depth - 1)})",
            lambda: f"({other} {self.pick('<', '<=', '==', '!=', '>')} {self.float_(depth - 1)})",
            lambda: f"({other} {self.pick('<', '==', '>=')} {one})",
            lambda: f"(not {self.bool_(depth - 1)})",
            lambda: f"({self.bool_(depth - 1)} {self.pick('and', 'or')} {self.bool_(depth - 1)})",
            lambda: f"({self.int_(0)} < {self.int_(0)} <= {self.int_(0)})",
            lambda: (
                f"({self.float_(0)} < {one} {self.pick('<', '!=')} {self.int_(0)} > {self.int_(0)})"
            ),
            lambda: (
                f"({self.int_(0)} {self.pick('in', 'not in')} "
                f"{self.pick('state.a', 'state.c', 'PRIMES', f'state.a[{self.at(16, 0)} :]')})"
            ),
            lambda: f"math.isfinite({self.float_(0)})",
            lambda: f"({self.text()} {self.pick('==', '!=')} {self.text()})",
            lambda: f"({self.bool_(0)} {self.pick('&', '|', '^', '==')} {self.bool_(0)})",
            lambda: self.of_the_event("event.on", BOOLS_OF_THE_EVENT),
            lambda: f"(not {self.text()})",
            self.syntax_bool,
        )

    def text(self, depth: int = 1) -> str:
        if depth <= 0:
            return self.pick("event.code", "'two'", "ONE", '""', "TEXTS[1]")
        if self.chance(0.3):
            more = self.more_texts()
            if more:
                return self.pick(*more)
        return self.pick(
            lambda: f"({self.text(0)} if {self.bool_(0)} else {self.text(0)})",
            lambda: f"({self.text(0)} or {self.text(0)})",
            lambda: self.of_the_event("ONE", TEXTS_OF_THE_EVENT),
        )
