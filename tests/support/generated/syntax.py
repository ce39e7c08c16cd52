"""What stands for a loop, a function, an assignment inside an expression; match and loops."""

from __future__ import annotations

from support.generated.drawing import Drawing

__all__ = ["Syntax"]


class Syntax(Drawing):
    def syntax_int(self, depth: int) -> str:
        a, b = self.int_(0), self.int_(0)
        if self.chance(0.6):
            calls = [
                f"shaped({a}{self.pick('', f', {b}', f', by={b}')}, "
                f"{self.shuffled(f'plus={self.int_(0)}', f'flip={self.bool_(0)}')})",
                f"shifted({a}{self.pick('', ', plus=i0', ', flip=event.on')})",
                f"halved({a}{self.pick('', ', 3', ', by=-7')})",
                f"inner({a}{self.pick('', f', {b}', f', w={b}')})",
                *(f"{name}({a})" for name in self.functions),
            ]
            if not self.in_iterable:
                calls += [f"(k0 := {self.int_(depth - 1)})", f"((k0 := {a}) - k0)"]
            return self.pick(*calls)
        name, iterable = self.over("v")
        with self.scope():
            self.ints.append(name)
            # Often evaluated, so rarely what raises.
            item = self.int_(1) if self.chance(0.1) else self.harmless(name)
            key = self.harmless(name)
            condition = self.pick("", f" if {self.bool_(1)}", f" if {name} > 1")
        loop = f"for {name} in {iterable}{condition}"
        return self.pick(
            f"sum({item} {loop})",
            f"sum([{item} {loop}])",
            f"sum(({item} {loop}), {b})",
            lambda: f"{self.pick('min', 'max')}(({item} {loop}), default={a})",
            lambda: (
                f"{self.pick('min', 'max')}(({name} {loop}), key=lambda {name}: {key}, default=-1)"
            ),
            f"max(state.a, key=lambda {name}: {key})",
            f"(lambda {name}, w=3: {key} ^ w)({a})",
            f"sum({item} - u {loop} for u in range({name} & 3))",
            f"len([{item} {loop}])",
        )

    def harmless(self, name: str) -> str:
        return f"({name} {self.pick('+', '-', '*', '^', '&')} {self.int_(0)})"

    def over(self, letter: str) -> tuple[str, str]:
        """A name of a comprehension's own, now and then one that is another's too, and what it
        goes through: a few ints."""
        self.in_iterable += 1
        iterable = self.ints_iterable()
        self.in_iterable -= 1
        return self.pick(self.new(letter), letter), iterable

    def syntax_float(self, depth: int) -> str:
        items = self.pick("state.f", "state.u", "state.f[2:5]")
        return self.pick(
            lambda: f"sum(z * {self.float_(0)} for z in {items})",
            lambda: f"min(z - {self.float_(0)} for z in {items})",
            lambda: f"max((z for z in {items} if z > {self.float_(0)}), default={self.float_(0)})",
            lambda: f"max({items}, key=lambda z: z * {self.float_(0)})",
        )

    def syntax_bool(self) -> str:
        name, iterable = self.over("v")
        with self.scope():
            self.ints.append(name)
            test = self.bool_(1)
        if not self.in_iterable and self.chance(0.2):
            return f"any((k0 := {name}) > {self.int_(0)} for {name} in {iterable})"
        return self.pick(
            lambda: f"{self.pick('any', 'all')}({test} for {name} in {iterable})",
            lambda: f"{self.pick('any', 'all')}([{test} for {name} in {iterable}])",
        )

    def syntax_statement(self, indent: int, nesting: int) -> None:
        """Statements of more than a line, or that assign in ways of their own."""
        kind = self.rng.randrange(6)
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
            if self.chance(0.4):
                self.put(indent, "else:")
                self.block(indent + 1, 1, 0)
        elif kind == 2:
            self.put(indent, f"match {self.text()}:")
            others = self.pick("'two'", "''")
            self.put(indent + 1, f"case 'one' | {others}:")
            self.block(indent + 2, 1, nesting - 1)
            self.put(indent + 1, self.pick("case 'three':", f"case _ if {self.bool_(1)}:"))
            self.block(indent + 2, 1, nesting - 1)
        elif kind == 3:
            self.put(indent, f"match {self.int_(1)}, {self.bool_(1)}:")
            self.put(indent + 1, self.pick("case 0 | 1 | -3, _:", "case (5 | 7 as i0), False:"))
            self.block(indent + 2, 1, nesting - 1)
            self.put(indent + 1, f"case i1, True if {self.bool_(1)}:")
            self.block(indent + 2, 1, nesting - 1)
            if self.chance(0.5):
                self.put(indent + 1, self.pick("case _:", "case [i0, *_]:"))
                self.block(indent + 2, 1, nesting - 1)
        elif kind == 4:
            name = self.new("w")
            test = f"({name} := {self.int_(1)}) {self.pick('<', '>', '!=')} {self.int_(0)}"
            self.put(indent, f"if {test}{self.pick('', f' and {self.bool_(0)}')}:")
            with self.scope():
                self.ints.append(name)
                self.block(indent + 1, 1, nesting - 1)
        else:
            self.put(indent, f"d0 = {self.int_(1)}")
            self.put(indent, f"i1 = d0 ^ {self.int_(0)}")
            self.put(indent, "del d0")
