"""What the state of an operator holds of each trace, and how statements get at it.

Without a key these are fields of the state, and with one entries of dicts, of which a function
reads at its start what it needs of the key, and writes it at its end.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from specstream.rules.text import RuleText
from specstream.verbs.writing import entry, indented

__all__ = ["Cell", "Held", "Queue"]


@dataclass
class Queue:
    """Values in their order, of which both ends can be taken: a deque, or entries of a dict by key.

    Attributes:
        items: the types of a value, or of the parts of one.
        lost: what stands for a value that time has made the state forget.
    """

    rule: RuleText
    name: str
    items: tuple[str, ...]
    lost: str = ""

    def declare(self, expires: int | None) -> None:
        rule, of = self.rule, entry(self.items)
        if not rule.key:
            rule.fields[self.name] = f"ss.deque({of}, limit={rule.options.limit})"
            return
        rule.fields[self.name] = rule.dict_of(of, "int", expires=expires)
        rule.fields[f"{self.name}_ends"] = rule.dict_of("(int, int)", expires=expires)
        if expires is None:
            self.lost = ""

    # Names of the numbers of the first value and of that behind the last one, of a key.
    @property
    def start(self) -> str:
        return f"{self.name}_start"

    @property
    def stop(self) -> str:
        return f"{self.name}_stop"

    def load(self) -> list[str]:
        if not self.rule.key:
            return []
        return [f"{self.start}, {self.stop} = state.{self.name}_ends.get(key, (0, 0))"]

    def store(self, is_pushed: bool) -> list[str]:
        if not self.rule.key:
            return []
        ends = f"state.{self.name}_ends"
        if is_pushed:
            return [f"{ends}[key] = ({self.start}, {self.stop})"]
        return [
            f"if {self.start} == {self.stop}:",
            f"    {ends}.pop(key, (0, 0))",
            "else:",
            f"    {ends}[key] = ({self.start}, {self.stop})",
        ]

    @property
    def size(self) -> str:
        return f"{self.stop} - {self.start}" if self.rule.key else f"len(state.{self.name})"

    @property
    def some(self) -> str:
        """Whether there is one."""
        if self.rule.key:
            return f"{self.start} < {self.stop}"
        return f"len(state.{self.name}) > 0"

    def at(self, place: str) -> str:
        """A value by its place."""
        if not self.rule.key:
            return f"state.{self.name}[{place}]"
        number = self.start if place == "0" else f"{self.start} + {place}"
        return f"state.{self.name}[{self.rule.key_and(number)}]"

    @property
    def first(self) -> str:
        if self.rule.key and self.lost:
            return f"state.{self.name}.get({self.rule.key_and(self.start)}, {self.lost})"
        return self.at("0")

    @property
    def last(self) -> str:
        if not self.rule.key:
            return f"state.{self.name}[-1]"
        return f"state.{self.name}[{self.rule.key_and(f'{self.stop} - 1')}]"

    def push(self, *values: str) -> list[str]:
        if not self.rule.key:
            return [f"state.{self.name}.append({entry(values)})"]
        place = self.rule.key_and(self.stop)
        return [f"state.{self.name}[{place}] = {entry(values)}", f"{self.stop} += 1"]

    def push_first(self, *values: str) -> list[str]:
        if not self.rule.key:
            return [f"state.{self.name}.appendleft({entry(values)})"]
        place = self.rule.key_and(self.start)
        return [f"{self.start} -= 1", f"state.{self.name}[{place}] = {entry(values)}"]

    def take(self, names: str = "") -> list[str]:
        """The first one goes, into names."""
        into = f"{names} = " if names else ""
        if not self.rule.key:
            return [f"{into}state.{self.name}.popleft()"]
        lost = f", {self.lost}" if self.lost else ""
        place = self.rule.key_and(self.start)
        return [f"{into}state.{self.name}.pop({place}{lost})", f"{self.start} += 1"]

    def take_last(self, names: str = "") -> list[str]:
        into = f"{names} = " if names else ""
        if not self.rule.key:
            return [f"{into}state.{self.name}.pop()"]
        place = self.rule.key_and(self.stop)
        return [f"{self.stop} -= 1", f"{into}state.{self.name}.pop({place})"]

    def clear(self) -> list[str]:
        if not self.rule.key:
            return [f"state.{self.name}.clear()"]
        return [f"while {self.some}:", *indented(self.take())]


@dataclass
class Cell:
    """A number of the state, which is a local of its name while a function runs."""

    rule: RuleText
    name: str
    of: str
    fill: str

    def declare(self) -> None:
        rule = self.rule
        if rule.key:
            rule.fields[self.name] = rule.dict_of(self.of)
        else:
            fill = "" if self.fill == "0" else f", fill={self.fill}"
            rule.fields[self.name] = f"ss.scalar({self.of}{fill})"

    def load(self) -> list[str]:
        if not self.rule.key:
            return [f"{self.name} = state.{self.name}"]
        return [f"{self.name} = state.{self.name}.get(key, {self.fill})"]

    def store(self, is_pushed: bool) -> list[str]:
        name = self.name
        if not self.rule.key:
            return [f"if state.{name} != {name}:", f"    state.{name} = {name}"]
        return [
            f"if {name} == {self.fill}:",
            f"    state.{name}.pop(key, {self.fill})",
            "else:",
            f"    state.{name}[key] = {name}",
        ]


@dataclass
class Held:
    """What one function reads and writes of the state.

    Attributes:
        taken: of the function that takes what this one pushes.
    """

    held: dict[str, Queue | Cell] = field(default_factory=dict)
    taken: Held | None = None

    def add(self, *some: Queue | Cell) -> None:
        for one in some:
            self.held[one.name] = one

    def around(self, lines: list[str]) -> list[str]:
        """The statements, between those that read and write."""
        taken = {} if self.taken is None else self.taken.held
        return [
            *(line for one in self.held.values() for line in one.load()),
            *lines,
            *(line for name, one in self.held.items() for line in one.store(name in taken)),
        ]
