"""Operators over records at random: objects that are named, changed, stored, moved and taken out.

A record is only stored where it is in no other place, or changes places with others: there an
operator is Python, object for object.
"""

from __future__ import annotations

import random
from collections.abc import Callable

__all__ = ["program"]

HEADER = """\
import specstream as ss


class Item(ss.Record):
    a: int
    b: float = 0.5
    on: bool = True
    name: str = "item"


class State(ss.State):
    slots = ss.array(Item, 5)
    grid = ss.array(Item, (2, 2))
    best = ss.scalar(Item, fill=Item(1, name="best"))
    items = ss.list(Item)
    ring = ss.deque(Item, maxlen=6)
    table = ss.dict(int, Item)
    count = ss.scalar(int)


def bumped(one, by):
    one.a += by
    return one


def least(items):
    found = None
    for one in items:
        if found is None or one.a < found.a:
            found = one
    return found


@ss.operator(
    state=State, event={"k": int, "x": float}, emits={"a": int, "b": float, "c": str}
)
def process(state, event, emit):
    k = event.k
    x = event.x
    p = state.slots[k % 5]
    q = Item(k, x)
    r = state.grid[k % 2, 1]
"""
NAMES = ("p", "q", "r")


class _Program:
    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.lines: list[str] = []
        self.fresh = {"q"}
        self.indent = 1

    def pick(self, *options: str) -> str:
        return self.dice.choice(options)

    def add(self, line: str) -> None:
        self.lines.append("    " * self.indent + line)

    def name(self) -> str:
        return self.pick(*NAMES)

    def number(self) -> str:
        return self.pick("k", "3", "len(state.items)", f"{self.name()}.a", "-k", "len(state.table)")

    def at(self) -> str:
        return f"(k + {self.dice.randrange(9)}) % 5"

    def key(self) -> str:
        return f"(k + {self.dice.randrange(4)}) % 4"

    def made(self) -> str:
        return self.pick(
            f"Item({self.number()}, x)", f"Item(b=x, a={self.number()})", "Item(k, name='made')"
        )

    def to_store(self) -> str:
        """A record that is in no place."""
        if self.fresh and self.dice.random() < 0.7:
            name = self.dice.choice(sorted(self.fresh))
            self.fresh.discard(name)
            return name
        return self.made()

    def block(self, condition: str, *steps: Callable[[], None]) -> None:
        """What is done only sometimes: nothing is known to be in no place behind it."""
        self.add(f"if {condition}:")
        self.indent += 1
        before = set(self.fresh)
        for step in steps:
            step()
        self.fresh &= before
        self.indent -= 1

    def taken(self, value: str) -> Callable[[], None]:
        """A record is taken out of its place, and goes to another, perhaps."""

        def step() -> None:
            name = self.name()
            self.add(f"{name} = {value}")
            self.fresh.add(name)
            self.change()
            if self.dice.random() < 0.6:
                self.put()

        return step

    def change(self) -> None:
        name = self.name()
        self.add(
            self.pick(
                f"{name}.a += {self.number()} % 7",
                f"{name}.b = x + {self.number()}",
                f"{name}.on = not {name}.on",
                f"{name}.name = '{self.pick('one', 'two', '')}'",
                f"state.slots[{self.at()}].a += {self.number()} % 5",
                f"state.slots[{self.at()}].b *= 0.5",
                f"state.best.a -= {self.number()} % 3",
                f"state.grid[k % 2, 0].b += {name}.b",
                f"{name} = bumped({name}, 2)",
                f"state.count += int({name} == {self.name()})",
            )
        )

    def see(self) -> None:
        name = self.name()
        self.fresh.discard(name)
        self.add(
            f"{name} = "
            + self.pick(
                f"state.slots[{self.at()}]",
                "state.best",
                "state.grid[k % 2, k % 2]",
                f"state.table.setdefault({self.key()}, {self.made()})",
                self.name(),
            )
        )
        if self.lines[-1].split()[-1] in NAMES:
            self.fresh.discard(self.lines[-1].split()[-1])

    def put(self) -> None:
        one = self.to_store()
        self.add(
            self.pick(
                f"state.slots[{self.at()}] = {one}",
                f"state.best = {one}",
                f"state.items.append({one})",
                f"state.items.insert({self.key()}, {one})",
                f"state.ring.append({one})",
                f"state.ring.appendleft({one})",
                f"state.table[{self.key()}] = {one}",
                f"state.grid[1, k % 2] = {one}",
            )
        )

    def swap(self) -> None:
        i, j, m = self.at(), self.at(), self.at()
        kind = self.dice.randrange(3)
        if kind == 0:
            self.add(f"state.slots[{i}], state.slots[{j}] = state.slots[{j}], state.slots[{i}]")
        elif kind == 1:
            self.block(
                "len(state.items) > 2",
                lambda: self.add(
                    "state.items[0], state.items[-1] = state.items[-1], state.items[0]"
                ),
            )
        elif len({i, j, m}) == 3 and len({int(one.split()[2][0]) % 5 for one in (i, j, m)}) == 3:
            self.add(
                f"state.slots[{i}], state.slots[{j}], state.slots[{m}] = "
                f"state.slots[{m}], state.slots[{i}], state.slots[{j}]"
            )

    def take(self) -> None:
        position = self.pick("0", "-1", "len(state.items) // 2")
        condition, value = self.dice.choice(
            [
                ("state.items", f"state.items.pop({position})"),
                ("state.items", "state.items.pop()"),
                ("state.ring", self.pick("state.ring.popleft()", "state.ring.pop()")),
                (f"{(key := self.key())} in state.table", f"state.table.pop({key})"),
                ("state.table", "state.table.popitem()[1]"),
            ]
        )
        self.block(condition, self.taken(value))

    def replace(self) -> None:
        """What is overwritten is in no place any more."""
        at, name = self.at(), self.name()
        self.add(f"{name} = state.slots[{at}]")
        self.fresh.discard(name)
        self.add(f"state.slots[{at}] = {self.to_store()}")
        self.fresh.add(name)

    def go_through(self) -> None:
        held = self.pick("state.slots", "state.items", "state.ring", "state.table.values()")
        one = self.pick(
            "one.a += 1", "one.b += x", f"one.on = one.a > {self.number()}", "state.count += one.a"
        )
        self.add(f"for one in {held}:")
        self.add(f"    {one}")

    def reorder(self) -> None:
        self.add(
            self.pick(
                "state.items.reverse()",
                "state.items.sort(key=lambda one: one.a)",
                "state.items.sort(key=lambda one: (one.on, -one.a), reverse=True)",
                "state.ring.rotate(k % 3)",
                "del state.items[1::2]",
                "del state.items[k % 4 :]",
                "state.items.clear()",
                "state.ring.clear()",
                "state.table.clear()",
            )
        )

    def ask(self) -> None:
        self.add(f"t = state.table.get({self.key()})")
        self.add("if t is None:")
        self.add(f"    t = {self.made()}")
        if self.dice.random() < 0.5:
            self.add(f"    state.table[(k + {self.dice.randrange(4)}) % 4] = t")
        self.add(f"t.a += {self.name()}.a % 4")

    def own(self) -> None:
        self.add(f"own = [{self.name()}, {self.made()}, {self.name()}]")
        self.add(self.pick("own.sort(key=lambda one: one.a)", "own.reverse()", "own.append(p)"))
        self.add(f"own[{self.pick('0', '-1', '1')}].a += 1")
        self.add(self.pick("state.count += own.count(p)", "state.count += int(q in own)"))
        self.fresh.clear()

    def lowest(self) -> None:
        self.add(f"low = least({self.pick('state.slots', 'state.items', 'state.ring')})")
        self.add("if low is not None:")
        self.add("    low.b -= 1.0")

    def text(self) -> str:
        steps = [self.change] * 4 + [self.see] * 3 + [self.put] * 4 + [self.swap] * 2
        steps += [self.take] * 4 + [self.replace, self.go_through, self.reorder, self.ask]
        steps += [self.own, self.lowest]
        for _ in range(self.dice.randrange(8, 18)):
            if self.dice.random() < 0.2:
                self.block(
                    f"k % {self.dice.randrange(2, 4)} == 0",
                    *self.dice.choices(steps, k=2),
                )
            else:
                self.dice.choice(steps)()
        if self.dice.random() < 0.4:
            self.add("if k % 7 == 5:")
            self.add("    raise ValueError(k)")
        for name in NAMES:
            self.add(f"emit(a={name}.a, b={name}.b, c={name}.name)")
        self.add("emit(a=sum(one.a for one in state.items), b=state.best.b, c=state.best.name)")
        return HEADER + "\n".join(self.lines) + "\n"


def program(seed: int) -> str:
    """The text of a module with an operator ``process``."""
    return _Program(seed).text()
