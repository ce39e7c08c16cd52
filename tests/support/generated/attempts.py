"""What raises, and what catches it."""

from __future__ import annotations

from support.generated.drawing import Drawing

__all__ = ["Attempts"]


class Attempts(Drawing):
    def hints(self) -> list[str]:
        ways = [
            "raise ValueError(f'state {state.n} event {event.key}')",
            "raise KeyError(event.key)",
            "assert event.key < 3, 'too large'",
            self.leave,
        ]
        if not self.has("catches"):
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
        clauses = self.rng.choice([0, 1, 1, 2, 2, 3])
        for _ in range(clauses):
            self.clause(indent, nesting)
        if clauses and self.chance(0.4):
            self.put(indent, "except:")
            self.handle(indent, nesting, None)
        if clauses and self.chance(0.4):
            self.put(indent, "else:")
            self.inside(indent, nesting)
        if not clauses or self.chance(0.4):
            self.put(indent, "finally:")
            handlers, self.handlers = self.handlers, []
            self.inside(indent, nesting)
            self.handlers = handlers

    def clause(self, indent: int, nesting: int) -> None:
        caught = self.pick(
            *("IndexError", "ZeroDivisionError", "ValueError", "OverflowError", "Refused"),
            *("(IndexError, ArithmeticError)", "(Refused, KeyError)", "LookupError", "TypeError"),
            *("Declined", "Exception", "RuntimeError", "(Elsewhere, OverflowError, KeyError)"),
        )
        name = self.new("c") if self.chance(0.4) else None
        self.put(indent, f"except {caught} as {name}:" if name else f"except {caught}:")
        self.handle(indent, nesting, name)

    def handle(self, indent: int, nesting: int, name: str | None) -> None:
        self.handlers.append(name)
        self.inside(indent, nesting)
        self.handlers.pop()

    def inside(self, indent: int, nesting: int) -> None:
        with self.scope():
            for _ in range(self.rng.randint(1, 2)):
                self.statement(indent + 1, nesting - 1)
            if self.chance(0.2):
                self.put(indent + 1, f"if {self.bool_(1)}:")
                self.put(indent + 2, self.pick(*self.hints()))
                self.block(indent + 1, self.rng.randint(0, 1), 0)
