"""Every state of an operator over a finite domain: breadth first, until no new one comes.

The transitions are those of the sequential run itself, so that whatever runs can be looked at. Of a
state that was seen, a hash of 128 bits is kept, and the event that first led there; a stream is
made of these, and run again, before anybody sees it.
"""

from __future__ import annotations

import hashlib
import time as clock
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from specstream.verify.transitions import Outcome, Pair, Transitions

__all__ = ["MOST_STATES", "TIME_IS_OVER", "Bounds", "Graph", "Watcher"]

MOST_STATES = 1_000_000
TIME_IS_OVER = "the time is over"
_NOT_YET = -1


@dataclass
class Bounds:
    """How far an exploration goes.

    Attributes:
        events: length of the streams; None: as long as new states come.
        states: the most that are looked at.
        inside: whether streams go on from a state; None: from each.
        until: by ``time.monotonic``.
        progress: called with the number of states, about every thousand.
    """

    events: int | None
    states: int
    inside: Callable[[Any], bool] | None
    until: float
    progress: Callable[[int], None] | None = None


class Watcher:
    """A question that looks on; each method says whether it is answered."""

    def state(self, number: int, seen: Callable[[], Any]) -> bool:
        """A new state."""
        return False

    def event(self, source: int, at: int, target: int, outcome: Outcome) -> bool:
        """What an event does in a state."""
        return False

    def layer(self, graph: Graph, is_last: bool) -> bool:
        """All events of the states that so many events lead to have been looked at."""
        return False


@dataclass
class Graph:
    """The states that streams lead to, numbered as they were found, and where each event leads.

    Attributes:
        of: the transitions.
        parents: of each state, the one that first led there.
        events: of each state, the event that did.
        depths: the length of the shortest stream to it.
        targets: of each state that was looked at, where each of the events leads.
        looked_at: so many states were, those of the least numbers, but for ``left_out``.
        depth: every stream of so many events was looked at.
        stopped: why not all states were looked at; "": they were.
        left_out: states from which streams do not go on.
        seconds: that it has taken so far.
    """

    of: Transitions | Pair
    parents: array[int] = field(default_factory=lambda: array("l"))
    events: array[int] = field(default_factory=lambda: array("l"))
    depths: array[int] = field(default_factory=lambda: array("l"))
    targets: array[int] = field(default_factory=lambda: array("l"))
    looked_at: int = 0
    depth: int = 0
    stopped: str = ""
    left_out: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._numbers: dict[bytes, int] = {}
        self._began = clock.monotonic()
        self._took: float | None = None

    @property
    def seconds(self) -> float:
        return clock.monotonic() - self._began if self._took is None else self._took

    def __len__(self) -> int:
        return len(self.parents)

    @property
    def is_closed(self) -> bool:
        """Whether these are all states that there are."""
        return not self.stopped

    def is_known(self, number: int) -> bool:
        """Whether it is known where the events lead from a state."""
        return number < self.looked_at and number not in self.left_out

    def stream(self, number: int) -> list[int]:
        """The events of the shortest stream to a state, as it was found."""
        found: list[int] = []
        while number:
            found.append(self.events[number])
            number = self.parents[number]
        return found[::-1]

    def state_after(self, stream: list[int]) -> bytes:
        """The state that a stream leads to."""
        state = self.of.start
        for at in stream:
            self.of.load(state)
            state = self.of.step(at).after
        return state

    def _number(self, state: bytes) -> tuple[int, bool]:
        """The number of a state, and whether it is new."""
        key = hashlib.blake2b(state, digest_size=16).digest()
        number = len(self._numbers)
        found = self._numbers.setdefault(key, number)
        return found, found == number

    def _add(self, parent: int, at: int, depth: int) -> None:
        self.parents.append(parent)
        self.events.append(at)
        self.depths.append(depth)

    def explore(self, watchers: list[Watcher], bounds: Bounds) -> None:
        """Looks at states, breadth first, until there are no more, all questions are answered, or a
        bound is met."""
        open_ones = list(watchers)
        self._number(self.of.start)
        self._add(0, _NOT_YET, 0)
        self._ask(open_ones, partial(_asked_of_state, 0, self.of, self.of.start))
        self._explore(watchers, open_ones, bounds)
        self._ask(open_ones, lambda one: one.layer(self, True))
        self._took = self.seconds

    def _explore(self, watchers: list[Watcher], open_ones: list[Watcher], bounds: Bounds) -> None:
        layer, layers = [(0, self.of.start)], 0
        while layer and not self.stopped:
            if watchers and not open_ones:
                self.stopped = "all is answered"
            elif layers == bounds.events:
                self.stopped = f"streams of more than {layers} events were not looked at"
            else:
                layer = self._layer(layer, open_ones, bounds)
                layers += not self.stopped
                if not self.left_out:
                    self.depth = layers
                self._ask(open_ones, lambda one: one.layer(self, False))
        if self.left_out and not self.stopped:
            self.stopped = "streams do not go on from where within_states= ends them"

    def _ask(self, open_ones: list[Watcher], asked: Callable[[Watcher], bool]) -> None:
        open_ones[:] = [one for one in open_ones if not asked(one)]

    def _layer(
        self, layer: list[tuple[int, bytes]], open_ones: list[Watcher], bounds: Bounds
    ) -> list[tuple[int, bytes]]:
        """Looks at the states of a layer; gives the next one."""
        of, found, count = self.of, [], range(len(self.of))
        for number, state in layer:
            if clock.monotonic() > bounds.until:
                self.stopped = TIME_IS_OVER
                return layer
            depth = self.depths[number] + 1
            if bounds.inside is not None and not bounds.inside(of.seen(state)):
                self.left_out.add(number)
                self.targets.extend([_NOT_YET] * len(count))
                self.looked_at = number + 1
                continue
            of.load(state)
            for at in count:
                outcome = of.step(at)
                target, is_new = self._number(outcome.after)
                if is_new:
                    self._add(number, at, depth)
                    found.append((target, outcome.after))
                    self._ask(open_ones, partial(_asked_of_state, target, of, outcome.after))
                self.targets.append(target)
                self._ask(open_ones, lambda one: one.event(number, at, target, outcome))  # noqa: B023
            self.looked_at = number + 1
            if bounds.progress is not None and number % 1024 == 1023:
                bounds.progress(len(self))
            if len(self) > bounds.states:
                self.stopped = f"there are more than {bounds.states:,} states"
                return layer
        return found


def _asked_of_state(number: int, of: Transitions | Pair, state: bytes, asked: Watcher) -> bool:
    return asked.state(number, lambda: of.seen(state))
