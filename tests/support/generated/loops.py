"""Loops: some whose turns are known before, some that end when a condition says so."""

from __future__ import annotations

from support.generated.drawing import Drawing

__all__ = ["Loops"]

# All loops around one place turn together so often at most.
TURNS = 150


class Loops(Drawing):
    def loop_statement(self, indent: int, nesting: int) -> None:
        if self.turns > TURNS // 4:
            self.put(indent, f"i1 = i1 ^ {self.int_(1)}")
        elif not self.has("loops") or self.chance(0.3):
            self.range_loop(indent, nesting)
        else:
            draw = self.rng.choice([self.constant_loop, self.while_loop, self.array_loop])
            draw(indent, nesting)

    def body(self, indent: int, nesting: int, turns: int, *names: str) -> None:
        with self.scope(), self.loop(turns):
            self.ints += names
            self.block(indent, self.rng.randint(1, 2), nesting - 1)
            if self.chance(0.3):
                self.put(indent, f"if {self.bool_(1)}:")
                self.put(indent + 1, self.pick("break", "continue"))

    def otherwise(self, indent: int) -> None:
        if self.chance(0.2):
            self.put(indent, "else:")
            self.block(indent + 1, 1, 0)

    def range_loop(self, indent: int, nesting: int) -> None:
        name = self.new("j")
        bounds = self.pick(
            *("6", "1, 5", "7, 0, -2", "len(state.t)", "BIG - 3, BIG", "-BIG, BIG, BIG"),
            *("event.on, 4", "-BIG + 4, -BIG - 1, -3"),
            lambda: f"{self.int_(0)} % 5",
            lambda: f"{self.int_(0)} % 5, {self.int_(0)} % 9, {self.int_(0)} & 3",
        )
        self.put(indent, f"for {name} in range({bounds}):")
        self.body(indent + 1, nesting, 6, name)
        self.otherwise(indent)

    def constant_loop(self, indent: int, nesting: int) -> None:
        """Nested loops that turn a number of times that is known: they look for no abort."""
        name, other, last = self.new("j"), self.new("j"), self.new("j")
        bounds = self.pick("4", "1, 4", "3, -1, -1", "-2, 2", "5, 0, -2")
        inner = self.pick(
            *(f"range({name}, 4)", f"range({name} + 1)", f"range(5 - {name})", "range(3)"),
            *("PRIMES", "(1, i0, 7)", f"reversed(range({name} - 1, 4))"),
        )
        self.put(indent, f"for {name} in range({bounds}):")
        if self.chance(0.5):
            self.body(indent + 1, 0, 4, name)
        at = indent + 1
        if self.chance(0.3):
            self.put(at, f"for {last}, {other} in enumerate({inner}):")
            self.body(at + 1, nesting, 16, name, other, last)
        else:
            self.put(at, f"for {other} in {inner}:")
            self.body(at + 1, nesting, 16, name, other)
        self.otherwise(at)
        if self.chance(0.3):
            self.put(at, f"i0 = i0 - {name}")

    def while_loop(self, indent: int, nesting: int) -> None:
        name, most = self.new("w"), self.rng.randint(1, 6)
        self.put(indent, f"{name} = 0")
        form = self.rng.randrange(3)
        if form == 0:
            self.put(indent, f"while {name} < {most} and {self.bool_(1)}:")
            self.put(indent + 1, f"{name} += 1")
        elif form == 1:
            self.put(indent, f"while ({name} := {name} + 1) < {most}:")
        else:
            self.put(indent, "while True:")
            self.put(indent + 1, f"{name} += {self.pick('1', '2')}")
            self.put(indent + 1, f"if {name} > {most} or {self.bool_(1)}:")
            if self.chance(0.5):
                self.put(indent + 2, f"i1 = {self.pick('i0', 'i1')} + {self.int_(0)}")
            self.put(indent + 2, self.pick("break", "break", self.leave))
        # Nothing in the body may assign the name: it is no int of the scope, but of expressions.
        self.body(indent + 1, nesting, most)
        if form < 2:
            self.otherwise(indent)
        self.put(indent, f"i1 = i1 + {name}")

    def array_loop(self, indent: int, nesting: int) -> None:
        name, other = self.new("j"), self.new("j")
        rows = self.pick("a", "t", "m[2]", "a[::5]", "c", "h[0]")
        form = self.rng.randrange(4)
        if form == 0:
            self.put(indent, f"for {name} in state.{rows}:")
            self.put(indent + 1, f"i1 = i1 ^ ({name} + {self.int_(0)})")
            return
        over = {
            1: f"enumerate(state.{rows}{self.pick('', ', 5', ', start=-2')})",
            2: f"zip(state.{rows}, {self.pick('PRIMES', 'state.t', 'range(4)')})",
            3: f"zip(range({self.int_(0)} & 7), reversed(state.t))",
        }[form]
        self.put(indent, f"for {name}, {other} in {over}:")
        self.body(indent + 1, 0, 16, name, other)
        self.otherwise(indent)
