"""Records of the state: names for them, while the state changes around them."""

from __future__ import annotations

from support.generated.drawing import Drawing, Option

__all__ = ["RECORDS", "Records"]

RECORDS = """
class Order(ss.Record):
    n: int
    x: float = 0.5
    on: bool = False
    s: str = "new"


class Held({base}):
    orders = ss.dict(int, Order, limit=6)
    line = ss.list(Order, limit=6)
    ring = ss.deque(Order, maxlen=3)
    grid = ss.array(Order, 4)
    top = ss.scalar(Order)


"""


class Records(Drawing):
    """A few lines at a time: one or two names for records, then changes, then what they have.

    A record that is in two places at once is two here, so that only what is in none is put in.
    """

    def made(self) -> str:
        return self.pick(
            lambda: f"Order({self.int_(0)})",
            lambda: f"Order({self.int_(0)}, {self.float_(0)}, s={self.text(0)})",
            lambda: f"Order(n={self.int_(0)}, on={self.bool_(0)})",
        )

    def at_key(self) -> str:
        return self.pick("3", "1", f"({self.pick(*self.ints)} & 3)")

    def at_place(self) -> str:
        return self.pick("0", "-1", "1", f"({self.pick(*self.ints)} & 3)")

    def record_statement(self, indent: int, nesting: int) -> None:
        if nesting > 0 and self.turns <= 16 and self.chance(0.2):
            return self.record_loop(indent, nesting)
        free: set[str] = set()
        names = [self.bound(indent, free) for _ in range(self.rng.choice([1, 1, 2]))]
        for _ in range(self.rng.randint(1, 4)):
            name = self.rng.choice(names)
            if name in free and self.chance(0.5):
                free.discard(name)
                self.put_in(indent, name)
            elif self.chance(0.4):
                self.changed(indent, name)
            else:
                self.around(indent)
        for name in names:
            self.changed(indent, name)
            self.put(indent, f"emit({name}.n, {name}.x, {name}.on, s={name}.s)")
        return None

    def bound(self, indent: int, free: set[str]) -> str:
        """A new name of a record."""
        name = self.new("r")
        kind = self.rng.randrange(7)
        key, at = self.at_key(), self.at_place()
        if kind == 0:
            self.put(indent, f"{name} = {self.made()}")
            free.add(name)
        elif kind == 1:
            self.put(indent, f"{name} = state.orders.get({key})")
            self.put(indent, f"if {name} is None:")
            self.put(indent + 1, f"{name} = {self.made()}")
            self.put(indent + 1, f"state.orders[{key}] = {name}")
        elif kind <= 4:
            of = self.pick("line", "ring")
            if self.chance(0.9):
                self.put(indent, f"while len(state.{of}) < 2:")
                self.put(indent + 1, f"state.{of}.append({self.made()})")
            if kind < 4:
                self.put(indent, f"{name} = state.{of}[{self.pick('0', '-1', '1', at)}]")
            else:
                self.put(indent, f"{name} = state.{of}.pop()")
                free.add(name)
        else:
            self.put(indent, f"{name} = {self.pick(f'state.grid[{key}]', 'state.top')}")
        return name

    def put_in(self, indent: int, name: str) -> None:
        self.put(
            indent,
            self.pick(
                f"state.orders[{self.at_key()}] = {name}",
                f"state.line.append({name})",
                f"state.line.insert({self.at_place()}, {name})",
                f"state.ring.appendleft({name})",
                f"state.grid[{self.at_key()}] = {name}",
                f"state.top = {name}",
                f"state.line[{self.at_place()}] = {name}",
            ),
        )

    def changed(self, indent: int, name: str) -> None:
        self.put(
            indent,
            self.pick(
                f"{name}.n {self.pick('', '+', '^')}= {self.int_(0)}",
                f"{name}.n += 1",
                f"{name}.x {self.pick('', '+', '*')}= {self.float_(0)}",
                f"{name}.on = not {name}.on",
                f"{name}.s = {self.text(0)}",
            ),
        )

    def around(self, indent: int) -> None:
        """The state changes, and names stay with what they are names of."""
        key, other, at = self.at_key(), self.at_key(), self.at_place()
        options: list[Option] = [
            lambda: f"state.line.append({self.made()})",
            lambda: f"state.line.append({self.made()})",
            lambda: f"state.line.insert(0, {self.made()})",
            lambda: f"state.orders[{key}] = {self.made()}",
            lambda: f"state.orders[{key}] = {self.made()}",
            lambda: f"state.ring.append({self.made()})",
            lambda: f"state.ring.appendleft({self.made()})",
            lambda: f"state.grid[{key}] = {self.made()}",
            lambda: f"state.top = {self.made()}",
            f"state.orders.pop({key}, None)",
            "state.line.reverse()",
            "state.line.sort(key=lambda one: one.n % 5)",
            f"state.grid[{key}], state.grid[{other}] = state.grid[{other}], state.grid[{key}]",
            "state.ring.rotate(1)",
            f"state.grid[{key}].n += 1",
            lambda: f"state.top.x = {self.float_(0)}",
            lambda: f"state.line[{at}] = {self.made()}",
            f"state.orders[{key}].n -= 1",
            f"del state.line[{at}]",
            f"state.line[{at}].s = 'far'",
        ]
        line = self.pick(*options)
        if line.startswith(("del", "state.line[")):
            self.put(indent, "if len(state.line) > 3:")
            indent += 1
        if line.startswith("state.orders[") and "Order" not in line:
            self.put(indent, f"if {key} in state.orders:")
            indent += 1
        if line.startswith(("state.line.append", "state.line.insert")) and self.chance(0.8):
            self.put(indent, "if len(state.line) < 5:")
            indent += 1
        self.put(indent, line)

    def record_loop(self, indent: int, nesting: int) -> None:
        name, key = self.new("r"), self.new("p")
        with self.scope(), self.loop(6):
            over = self.pick(
                *("state.line", "reversed(state.line)", "state.orders.values()", "state.ring"),
                *("sorted(state.line, key=lambda one: one.n % 7)", "list(state.line)"),
                "[one for one in state.line if one.n > 2]",
            )
            if self.chance(0.3):
                self.ints.append(key)
                self.put(indent, f"for {key}, {name} in state.orders.items():")
            else:
                self.put(indent, f"for {name} in {over}:")
            self.changed(indent + 1, name)
            if self.chance(0.4):
                self.put(indent + 1, f"if {name}.n > {self.int_(0)}:")
                self.put(indent + 2, self.pick("break", "continue", f"{name}.on = True"))
            if self.chance(0.5):
                self.put(indent + 1, f"emit({name}.n, {name}.x, {name}.on)")
