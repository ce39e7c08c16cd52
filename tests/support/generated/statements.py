"""Statements: assignments, updates, what is emitted; and what leads to all others."""

from __future__ import annotations

from abc import abstractmethod

from support.generated.drawing import FLOAT, Drawing, Kind

__all__ = ["Statements"]

OWN = ("containers", "nulls", "arrays", "tables", "rows", "records")


class Statements(Drawing):
    @abstractmethod
    def attempt(self, indent: int, nesting: int) -> None: ...

    @abstractmethod
    def syntax_statement(self, indent: int, nesting: int) -> None: ...

    @abstractmethod
    def loop_statement(self, indent: int, nesting: int) -> None: ...

    @abstractmethod
    def container_statement(self, indent: int, nesting: int) -> None: ...

    @abstractmethod
    def null_statement(self, indent: int, nesting: int) -> None: ...

    @abstractmethod
    def kept_statement(self, indent: int, nesting: int) -> None: ...

    @abstractmethod
    def record_statement(self, indent: int, nesting: int) -> None: ...

    @abstractmethod
    def array_statement(self, indent: int, nesting: int) -> None: ...

    @abstractmethod
    def narrow(self, low: int, high: int) -> str: ...

    @abstractmethod
    def value(self) -> str: ...

    @abstractmethod
    def maybe_of(self, kind: Kind) -> str: ...

    def statement(self, indent: int, nesting: int) -> None:
        """One statement of those there are: a list of them, whose length says nothing."""
        simple = [
            lambda: f"{self.pick(*self.ints)} = {self.int_()}",
            lambda: f"emit({self.int_(1)}, {self.float_(0)}, s={self.said()}, z={self.bool_(0)})",
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
                f"emit(*({self.int_(0)}, {self.float_(0)}), {self.bool_(0)}, "
                f"*({self.maybe()},), {self.said()})"
            ),
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
        if self.has("catches") and nesting > 0 and self.chance(0.25):
            self.attempt(indent, nesting)
            return
        own = [
            self.container_statement,
            self.null_statement,
            self.array_statement,
            self.kept_statement,
            self.kept_statement,
            self.record_statement,
        ]
        drawn = [draw for feature, draw in zip(OWN, own, strict=True) if self.has(feature)]
        kind = self.rng.random()
        if drawn and self.chance(0.15 + 0.15 * len(drawn)):
            self.rng.choice(drawn)(indent, nesting)
        elif kind < 0.1:
            self.put(indent, self.update())
        elif kind < 0.72 or nesting <= 0:
            self.put(indent, self.rng.choice(simple)())
        elif kind < 0.8:
            self.put(indent, f"if {self.bool_(2)}:")
            self.block(indent + 1, self.rng.randint(1, 2), nesting - 1)
            if self.chance(0.5):
                self.put(indent, "else:")
                self.block(indent + 1, 1, nesting - 1)
        elif kind < 0.84:
            self.syntax_statement(indent, nesting)
        elif kind < 0.95:
            self.loop_statement(indent, nesting)
        else:
            self.put(indent, f"if {self.bool_(1)}:")
            self.put(indent + 1, self.pick(*self.hints()))

    def said(self) -> str:
        """A string to emit, made outside of what the state holds as well."""
        if not self.has("texts"):
            return self.text()
        # Python formats a null as None, and what operators read of it is 0.
        code = f"{{event.code if {self.has_code()} else ONE}}"
        return self.pick(
            self.text,
            "f'{state.n:>4}|{i0}'",
            f'f"{code}-{{state.x:.2f}}"',
            lambda: f"f'{{state.w}}/{{{self.pick(*self.ints)}:+d}}'",
            "f'{event.on} {state.x:8.3f} {state.b[1]}'",
            "f'{name}:{state.a[3]:x}'",
        )

    @abstractmethod
    def has_code(self) -> str: ...

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

    def maybe(self) -> str:
        """A float that may be null."""
        return self.pick(
            "None",
            lambda: self.float_(1),
            lambda: f"{self.float_(1)} if {self.bool_(1)} else None",
            lambda: f"None if {self.bool_(0)} else {self.float_(0)} if {self.bool_(1)} else None",
            *([lambda: self.maybe_of(FLOAT)] if self.has("nulls") else []),
            *(["event.value if event.value is not None else None"] if self.asks_none else []),
        )
