"""Whole arrays: arithmetic on them, methods, names of what it gives."""

from __future__ import annotations

from support.generated.drawing import FLOAT, INT, Drawing, Kind, Option

__all__ = ["Arrays"]

FIELDS = {
    (FLOAT, 8): ["state.f", "state.f[::-1]"],
    (FLOAT, 4): ["state.u", "state.f[2:6]", "state.g[1:5]", "state.f[::2]"],
    (INT, 5): ["state.m[1]", "state.a[3:8]", "state.t[1:]", "state.q", "state.h[0, 1:]"],
    (INT, 16): ["state.a", "state.r[0, 10:26]"],
}
FROZEN = {(FLOAT, 4): ["CURVE"], (INT, 5): ["SHAPE[1]", "SHAPE[-1, ::-1]"]}
SHAPES = list(FIELDS)


class Arrays(Drawing):
    def array(self, kind: Kind, length: int, depth: int = 1) -> str:
        """An expression that is an array of so many numbers."""
        names = [name for name, *one in self.arrays if one == [kind, length]]
        fields = FIELDS.get((kind, length), [])
        if self.has("frozen"):
            fields = fields + FROZEN.get((kind, length), [])
        if depth <= 0:
            return self.pick(*fields, *names, *names)
        a = self.array(kind, length, depth - 1)
        b = self.pick(lambda: self.array(kind, length, depth - 1), lambda: self.of_kind(kind, 0))
        if kind == FLOAT:
            ints = self.int_(0)
            return self.pick(
                lambda: f"({a} {self.pick('+', '-', '*')} {b})",
                lambda: f"({a} {self.pick('+', '*', '-')} {ints})",
                f"({a} / (abs({b}) + 1.0))",
                f"abs({a})",
                f"(-{a})",
                lambda: f"np.{self.pick('minimum', 'maximum')}({a}, {b})",
                lambda: f"np.{self.pick('floor', 'sign', 'rint', 'trunc', 'ceil', 'square')}({a})",
                f"np.sqrt(abs({a}))",
                lambda: f"np.clip({a}, -1.5, {self.float_(0)})",
                f"{a}.copy()",
                f"({b} - {a})",
            )
        return self.pick(
            lambda: f"({a} {self.pick('+', '-', '*', '&', '|', '^')} {b})",
            lambda: f"({a} {self.pick('//', '%')} ({b} | 1))",
            f"({a} >> ({b} & 31))",
            f"abs({a})",
            f"(~{a})",
            lambda: f"np.{self.pick('minimum', 'maximum')}({a}, {b})",
            lambda: f"np.clip({a}, -100, {self.pick('7', '1000')})",
            f"{a}.copy()",
            f"({b} * {a})",
        )

    def compared(self) -> str:
        kind, length = self.rng.choice(SHAPES)
        a = self.array(kind, length, 0)
        b = self.pick(lambda: self.array(kind, length, 0), lambda: self.of_kind(kind, 0))
        return f"({a} {self.pick('<', '<=', '==', '!=', '>')} {b})"

    def array_int(self) -> str:
        kind, length = self.rng.choice(SHAPES)
        a = self.array(kind, length)
        options: list[Option] = [
            f"{a}.argmin()",
            f"{a}.argmax()",
            f"len({a})",
            lambda: f"{self.compared()}.sum()",
            lambda: f"{self.compared()}.argmax()",
        ]
        if kind == INT:
            options += [
                lambda: f"{a}.{self.pick('sum', 'min', 'max')}()",
                lambda: f"{self.pick('sum', 'min', 'max')}({a})",
                lambda: f"np.dot({a}, {self.array(kind, length, 0)})",
                lambda: f"{a}[{self.at(length, 0)}]",
                lambda: f"sum({a}.tolist())",
                f"sum(one for one in {a} if one > 1)",
            ]
        return self.pick(*options)

    def array_float(self) -> str:
        kind, length = self.rng.choice(SHAPES)
        a = self.array(kind, length)
        if kind == INT:
            return f"{a}.mean()"
        return self.pick(
            lambda: f"{a}.{self.pick('sum', 'min', 'max', 'mean')}()",
            lambda: f"{self.pick('sum', 'min', 'max')}({a})",
            lambda: f"np.dot({a}, {self.array(kind, length, 0)})",
            lambda: f"{a}[{self.at(length, 0)}]",
            f"sum({a}.tolist())",
            f"math.fsum(np.clip({a}, -1e9, 1e9))",
        )

    def array_bool(self) -> str:
        kind, length = self.rng.choice(SHAPES)
        return self.pick(
            lambda: f"{self.compared()}.{self.pick('any', 'all')}()",
            lambda: f"{self.pick('any', 'all')}({self.compared()})",
            lambda: f"{self.array(kind, length)}.any()",
            lambda: f"({self.of_kind(kind, 0)} in {self.array(kind, length)})",
            lambda: f"{self.compared()}[1]",
        )

    def array_statement(self, indent: int, nesting: int) -> None:
        kind, length = self.rng.choice(SHAPES)
        form = self.rng.randrange(6)
        own = [one for one in self.arrays if one[1:] == (kind, length)]
        fields = [one for one in FIELDS[kind, length] if "state.g" not in one]
        if form <= 1 or not own:
            name = self.new("z")
            # Of a field by itself the name is a view; of an expression an array of its own.
            depth = 0 if self.chance(0.2) and not self.has("frozen") else 1
            self.put(indent, f"{name} = {self.array(kind, length, depth)}")
            self.arrays.append((name, kind, length))
            if depth:
                self.wholes.add(name)
            return
        name = self.rng.choice(own)[0]
        value = self.array(kind, length)
        one = self.of_kind(kind, 0)
        field = self.pick(*(one for one in fields if "q" not in one and "h[" not in one))
        self.put(
            indent,
            self.pick(
                f"{name}[{self.at(length, 0)}] = {one}",
                lambda: f"{name} {self.pick('+', '-', '*')}= {self.pick(one, value)}",
                f"{name}[1:3] = {one}",
                f"{name}[:] = {value}",
                f"{name}.fill({one})",
                f"{name} = {value}" if name in self.wholes else "i1 += 1",
                f"{field}[:] = {value}" if "[" not in field else f"{field} = {value}",
                f"{field}.fill({one})",
            ),
        )
