"""None: as a local value, an argument, a result, a column that is null."""

from __future__ import annotations

from support.generated.drawing import FLOAT, INT, Drawing, Kind, Option

__all__ = ["Nulls"]


class Nulls(Drawing):
    def some(self, kind: Kind, depth: int = 1) -> str:
        """A number that is not None: a null, if it is only kept, will be asked and tell the truth,
        which Python does not know unless it is asked at once."""
        one = self.of_kind(kind, depth)
        return f"({one} * 1.0)" if kind == FLOAT else one

    def maybe_of(self, kind: Kind) -> str:
        """What may be None."""
        one = self.some(kind)
        options: list[Option] = [
            lambda: f"{one} if {self.bool_(0)} else None",
            lambda: f"None if {self.bool_(1)} else {one}",
            *(name for name, other in self.maybes if other == kind),
        ]
        if kind == INT:
            options += [
                lambda: f"found(state, {self.int_(0)})",
                lambda: f"found(state, {one} & 3)",
                lambda: f"best_of({self.ints_iterable()})",
            ]
        else:
            options += [f"capped({one})", lambda: f"capped({one}, limit={self.some(FLOAT, 0)})"]
        return self.pick(*options)

    def unless(self, kind: Kind) -> str:
        """A value, made of one that may be None."""
        other = self.of_kind(kind, 0)
        names = [name for name, one in self.maybes if one == kind]
        if not names or self.chance(0.2):
            if self.in_iterable:
                return other
            name = "o0" if kind == INT else "q0"
            walrus = f"({name} := {self.maybe_of(kind)})"
            return f"({name} if {walrus} is not None else {other})"
        name = self.pick(*names)
        return self.pick(
            f"({name} if {name} is not None else {other})",
            f"({other} if {name} is None else {name})",
            f"({name} or {other})",
            f"(-1 if {name} is None else {name} + {other})"
            if kind == INT
            else f"(-0.0 if not {name} else {name} * {other})",
            *([f"({name} + {other})"] if self.chance(0.15) else []),
        )

    def asked_none(self) -> str:
        names = [name for name, _ in self.maybes]
        if self.asks_none and (not names or self.chance(0.4)):
            return f"(event.{self.pick('value', 'code')} is {self.pick('', 'not ')}None)"
        if not names:
            return "(NOTHING is None)"
        name = self.pick(*names)
        return self.pick(
            f"({name} is None)",
            f"({name} is not None)",
            f"({name} == None)",
            f"({name} != NOTHING)",
            f"(not {name})",
            lambda: f"({name} is not None and {name} > {self.float_(0)})",
            lambda: f"({name} is None or {name} <= {self.int_(0)})",
            lambda: f"({name} == {self.int_(0)})",
        )

    def null_statement(self, indent: int, nesting: int) -> None:
        kind = self.rng.choice([INT, INT, FLOAT])
        names = [name for name, one in self.maybes if one == kind]
        form = self.rng.randrange(6)
        if not names or form == 0:
            name = self.new("o")
            begin = self.pick("None", "None", lambda: self.maybe_of(kind))
            self.put(indent, f"{name} = {begin}")
            self.put(indent, f"if {self.bool_(1)}:")
            self.put(indent + 1, f"{name} = {self.some(kind)}")
            self.maybes.append((name, kind))
            return
        name = self.pick(*names)
        if form == 1:
            self.put(indent, f"{name} = {self.maybe_of(kind)}")
        elif form == 2:
            self.put(indent, f"if {name} is None:")
            self.put(indent + 1, f"{name} = {self.some(kind)}")
        elif form == 3 and self.turns <= 16:
            one = self.new("j")
            over = self.ints_iterable() if kind == INT else "state.f"
            order = self.pick("<", ">")
            self.put(indent, f"for {one} in {over}:")
            self.put(indent + 1, f"if {name} is None or {one} {order} {name}:")
            self.put(indent + 2, f"{name} = {one}")
        elif form == 4 and kind == INT:
            self.put(indent, f"match {name}:")
            self.put(indent + 1, "case None:")
            self.block(indent + 2, 1, nesting - 1)
            self.put(indent + 1, self.pick("case 1 | 2:", "case 0:", "case -1:"))
            self.block(indent + 2, 1, nesting - 1)
            other = self.new("p")
            self.put(indent + 1, f"case {other}:")
            with self.scope():
                self.ints.append(other)
                self.block(indent + 2, 1, nesting - 1)
        else:
            self.put(indent, f"if {name} is not None:")
            with self.scope():
                self.put(
                    indent + 1,
                    f"i1 = i1 ^ {name}" if kind == INT else f"state.f[i1 & 7] = {name}",
                )
                self.block(indent + 1, 1, nesting - 1)
