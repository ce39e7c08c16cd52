"""What all parts of the writer of random programs share: dice, lines, names, what is in scope."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

__all__ = ["BOOL", "FLOAT", "INT", "TEXT", "Drawing", "Kind", "Option"]

Option = str | Callable[[], str]
"""A text, or what draws one if it is chosen."""


class Kind(NamedTuple):
    """The type of a value: as in an annotation, ``of`` in brackets."""

    name: str
    of: tuple[Kind, ...] = ()

    def __str__(self) -> str:
        return self.name + (f"[{', '.join(map(str, self.of))}]" if self.of else "")


INT, FLOAT, BOOL, TEXT = map(Kind, ("int", "float", "bool", "str"))

# Each program has about half of them: where all meet all the time, hardly two meet often.
FEATURES = (
    # Functions that change the state, inside of expressions, make all events conflict; so do events
    # that catch what they raise.
    *("effects", "catches", "containers", "frozen", "nulls", "arrays", "numbers", "texts", "loops"),
    *("tables", "rows", "records"),
)


class Drawing(ABC):
    """Writes one operator, choice by choice, from a source of randomness.

    Args:
        is_python: leaves out what Python does otherwise (see docs/explanations/arithmetic.md), so
            that the unrewritten function can be asked as well.

    Attributes:
        features: what the program may have.
        asks_none: every null is asked for by ``is None`` before it is used; else they read 0.
        ints, floats: names that are such in the present scope.
        held: names of containers and what they hold.
        arrays: names of whole arrays: what their elements are, and how many.
        wholes: those of them that are no views.
        busy: containers of the state that are gone through.
        handlers: around the present statement: what they call the exception.
        turns: how often loops may turn that are around the present statement.
    """

    def __init__(self, rng: random.Random, is_python: bool = True) -> None:
        self.rng = rng
        self.is_python = is_python
        self.features = {one for one in FEATURES if rng.random() < 0.5}
        self.asks_none = "nulls" in self.features and rng.random() < 0.4
        self.lines: list[str] = []
        self.ints = ["i0", "i1"]
        self.floats = ["f0", "f1"]
        self.held: list[tuple[str, Kind]] = []
        self.maybes: list[tuple[str, Kind]] = []
        self.arrays: list[tuple[str, Kind, int]] = []
        self.wholes: set[str] = set()
        self.functions: list[str] = []
        self.handlers: list[str | None] = []
        self.busy: set[str] = set()
        self.in_loop = False
        self.turns = 1
        self.in_iterable = 0
        self.numbered: dict[str, int] = {}
        self.leave = "return"

    def has(self, feature: str) -> bool:
        return feature in self.features

    def chance(self, of: float) -> bool:
        return self.rng.random() < of

    def pick(self, *options: Option) -> str:
        chosen = self.rng.choice(options)
        return chosen if isinstance(chosen, str) else chosen()

    def new(self, letter: str) -> str:
        """A name that nothing else has."""
        self.numbered[letter] = self.numbered.get(letter, 0) + 1
        return f"{letter}{self.numbered[letter]}"

    def calls(self, *texts: str) -> tuple[str, ...]:
        """Texts that call what changes the state, in programs that have such."""
        return texts if self.has("effects") else ()

    def shuffled(self, *parts: str) -> str:
        return ", ".join(self.rng.sample(parts, len(parts)))

    def put(self, indent: int, text: str) -> None:
        self.lines.append("    " * indent + text)

    @contextmanager
    def scope(self) -> Iterator[None]:
        """What is named inside is forgotten behind it: it may never have been assigned."""
        before = [*self.ints], [*self.floats], [*self.held], [*self.maybes], [*self.arrays]
        yield
        self.ints, self.floats, self.held, self.maybes, self.arrays = before

    def block(self, indent: int, size: int, nesting: int) -> None:
        with self.scope():
            for _ in range(size):
                self.statement(indent, nesting)

    @contextmanager
    def loop(self, turns: int) -> Iterator[None]:
        around = self.in_loop, self.turns
        self.in_loop, self.turns = True, self.turns * turns
        yield
        self.in_loop, self.turns = around

    @abstractmethod
    def int_(self, depth: int = 2) -> str:
        """An expression that is an int."""

    @abstractmethod
    def float_(self, depth: int = 2) -> str:
        """One that is a float."""

    @abstractmethod
    def bool_(self, depth: int = 1) -> str:
        """One that is a bool."""

    @abstractmethod
    def text(self, depth: int = 1) -> str:
        """One that is a string."""

    @abstractmethod
    def at(self, length: int, depth: int) -> str:
        """An index; rarely one that may be out of bounds."""

    @abstractmethod
    def statement(self, indent: int, nesting: int) -> None:
        """One statement; blocks in it are nested so deeply."""

    @abstractmethod
    def hints(self) -> list[str]:
        """What leaves the present statement."""

    @abstractmethod
    def ints_iterable(self) -> str:
        """What gives a few ints."""

    # What is drawn alike of the event's own containers and of those of the state.

    @abstractmethod
    def value_of(self, kind: Kind, depth: int = 1) -> str:
        """An expression of any kind; nobody else has what it gives."""

    @abstractmethod
    def key(self, kind: Kind) -> str:
        """Such that keys meet each other."""

    @abstractmethod
    def target(self, kind: Kind) -> str:
        """Names of what a loop gives."""

    @abstractmethod
    def turned(self, found: str, kind: Kind, wanted: Kind) -> str:
        """An expression of a wanted kind, of one of another."""

    def of_kind(self, kind: Kind, depth: int = 1) -> str:
        """An expression of a number or a string."""
        draw = {"int": self.int_, "float": self.float_, "bool": self.bool_, "str": self.text}
        return draw[kind.name](depth)
