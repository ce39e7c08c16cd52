"""Elements of lists, deques and queues that lie in the words of a run, behind its logs.

The other store of :mod:`specstream.compiler.oracle_objects.sequences`, for interpreted operators in
an engine's threads. It does what a few functions of the runtime do: insert and delete elements, and
say where one is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from specstream.compiler.oracle_objects.entries import full
from specstream.declarations.state_layout import Field
from specstream.interpreted.coded import Coded, ElementsOf
from specstream.interpreted.records import Records

__all__ = ["LoggedSequence"]


class LoggedSequence:
    """The elements of one field, as one worker has them.

    Args:
        number: of the container.
        run: of the worker.
        slots: of the records that it holds; else None.
    """

    def __init__(
        self, field: Field, number: int, run: Any, elements_of: ElementsOf, slots: Records | None
    ) -> None:
        assert field.container is not None
        self.of, self.name, self.slots = field.container, field.name, slots
        self.reader = self
        self._number, self._run = number, run
        self._value = None if slots is not None else Coded(self.of.value, elements_of)

    # ---- what is read ----

    def __len__(self) -> int:
        found: int = self._run.sequence_count(self._number)
        return found

    def _word(self, at: int) -> int:
        found: int = self._run.sequence_element(self._number, at)
        return found

    def __getitem__(self, at: int) -> Any:
        count = len(self)
        if not -count <= at < count:
            raise IndexError(at)
        return self._held_at(at % count)

    def __iter__(self) -> Iterator[Any]:
        at = 0
        while at < len(self):
            yield self._held_at(at)
            at += 1

    def _held_at(self, at: int) -> Any:
        if self.slots is None:
            assert self._value is not None
            return self._value.load(self._word(at))
        return self.slots.objects.get(at) or self.slots.at(at, self._place(at))

    def _place(self, at: int) -> Callable[[], int]:
        """Of the object that is at a place now, wherever that place is later."""
        place = [at]

        def word() -> int:
            return self._word(place[0])

        word.place = place  # type: ignore[attr-defined]
        return word

    # ---- what is written ----

    def put(self, at: int, value: Any) -> None:
        """Stores a value that was checked."""
        if self.slots is not None:
            self.slots.put(at, self._place(at), *value)
        else:
            assert self._value is not None
            self._value.store(self._word(at), value)

    def _moved(self, to: Callable[[int], int]) -> None:
        """The objects of places that have moved."""
        if self.slots is None or not self.slots.objects:
            return
        objects: Any = dict(self.slots.objects)
        self.slots.objects.clear()
        for at, one in objects.items():
            place = to(at)
            one.__dict__["_specstream_word"].place[0] = place
            self.slots.objects[place] = one

    def insert(self, at: int, value: Any) -> None:
        if self._run.sequence_insert(self._number, at) == -2:
            full(self.name, self.of)
        self._moved(lambda place: place + (place >= at))
        self.put(at, value)

    def delete(self, places: range) -> None:
        """Removes the elements at places, which ascend."""
        if not places:
            return
        if self.slots is not None:
            for at in places:
                self.slots.left(at)
        self._run.sequence_delete(self._number, places.start, places.step, len(places))
        self._moved(lambda place: place - sum(at < place for at in places))

    def replace(self, places: range, values: list[Any]) -> None:
        """Stores values in place of those there; as many, or the places are neighbours."""
        count = len(self)
        if count - len(places) + len(values) > max(self.of.limit, count):
            full(self.name, self.of)
        if self.slots is not None:
            values = self.slots.to_copy(values)
        for at, value in zip(places, values, strict=False):
            self.put(at, value)
        if len(places) > len(values):
            self.delete(places[len(values) :])
        for number, value in enumerate(values[len(places) :], start=places.start + len(places)):
            self.insert(number, value)

    def permute(self, order: list[int]) -> None:
        """Puts the element ``order[i]`` to place i."""
        if self.slots is None:
            values = [self._held_at(at) for at in range(len(order))]
            for place, at in enumerate(order):
                if place != at:
                    self.put(place, values[at])
            return
        held = [self.slots.read(self._word(at)) for at in range(len(order))]
        for place, at in enumerate(order):
            if place != at:
                self.slots.write(self._word(place), held[at])
        back = {at: place for place, at in enumerate(order)}
        self._moved(lambda place: back[place])
