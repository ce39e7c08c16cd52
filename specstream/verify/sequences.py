"""Lists and deques of an unknown state: elements from a start on, and how many there are."""

# z3 carries no types.
# mypy: allow-untyped-calls

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import z3

from specstream.compiler.language.numbers import Int64
from specstream.declarations.state_layout import Field
from specstream.verify.containers import Slots, Store
from specstream.verify.elements import refused, wide_term
from specstream.verify.paths import path
from specstream.verify.values import Bool, Int, as_int, bits

__all__ = ["Sequence"]

_SHORT = 4  # of which each length has a path of its own


class Sequence:
    """A list or deque of the state: elements from ``start`` on, of which there are ``count``."""

    def __init__(self, field: Field, state: Store) -> None:
        assert field.container is not None
        self._of = field.container
        self._slots = Slots(field.name, field.container.value, state)
        self.name, self.store = field.name, state
        if self._of.value.record is not None:
            refused(self.name, "records in a sequence", "keep them in a dict or an array")
        if self._of.most <= _SHORT:
            self._count_out()

    def _count_out(self) -> None:
        """Has a path for each length of a short one: places in it are then known, to the solver
        as well."""
        for length in range(self._of.most):
            if path().fork(self._count == length):
                self._change(bits(length))
                return
        path().require(self._count == self._of.most)
        self._change(bits(self._of.most))

    @property
    def maxlen(self) -> Any:
        return None if self._of.maxlen is None else Int64(self._of.maxlen)

    @property
    def zero(self) -> Any:
        return 0.0 if self._of.value.parts[0].number == "float" else Int64(0)

    @property
    def _count(self) -> Any:
        return self.store[f"{self.name}#count"]

    @property
    def _start(self) -> Any:
        return self.store[f"{self.name}#start"]

    def length(self) -> Any:
        return Int(self._count)

    def __bool__(self) -> bool:
        return path().fork(self._count != 0)

    def _word(self, index: Any) -> Any:
        """Where an element is."""
        whole = as_int(index)
        if whole is None or isinstance(index, bool | Bool):
            raise TypeError("an index is no integer")
        term = whole.term
        if not path().fork(z3.And(term >= -self._count, term < self._count)):
            raise IndexError(f"{self._of.kind} index out of range")
        return self._start + z3.If(term < 0, term + self._count, term)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            refused(self.name, "a slice", "write a loop over what it takes")
        return self._slots.value_at(self._word(index))

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(index, slice):
            refused(self.name, "a slice", "write a loop over what it takes")
        self._slots.put_at(self._word(index), value)

    def _change(self, count: Any, start: Any = None) -> None:
        self.store[f"{self.name}#count"] = count
        if start is not None:
            self.store[f"{self.name}#start"] = start

    def _forget(self, word: Any) -> None:
        """An element counts no longer in the sum."""
        for name, part in zip(self._slots.parts, self._of.value.parts, strict=True):
            if f"{name}#sum" in self.store:
                gone = wide_term(part, z3.Select(self.store[name], word))
                self.store[f"{name}#sum"] = self.store[f"{name}#sum"] - gone

    def _room(self, drop: str) -> bool:
        """Makes room for an element; False: there is none for any."""
        if self._of.maxlen is None:
            if path().fork(self._count >= self._of.limit):
                raise OverflowError(f"state.{self.name} is full")
        elif path().fork(self._count >= self._of.maxlen):
            if self._of.maxlen == 0:
                return False
            self._take(drop)
        return True

    def _take(self, end: str) -> None:
        if end == "left":
            self._forget(self._start)
            self._change(self._count - 1, self._start + 1)
        else:
            self._forget(self._start + self._count - 1)
            self._change(self._count - 1)

    def append(self, value: Any) -> None:
        self._slots._terms(value)
        if self._room("left"):
            self._slots.put_at(self._start + self._count, value, z3.BoolVal(False))
            self._change(self._count + 1)

    def appendleft(self, value: Any) -> None:
        if self._of.kind != "deque":
            raise AttributeError("appendleft")
        self._slots._terms(value)
        if self._room("right"):
            self._slots.put_at(self._start - 1, value, z3.BoolVal(False))
            self._change(self._count + 1, self._start - 1)

    def extend(self, values: Any) -> None:
        for one in list(values):
            self.append(one)

    def pop(self, at: Any = -1) -> Any:
        if path().fork(self._count == 0):
            raise IndexError("pop from empty list")
        if self._of.kind == "list" and at != -1:
            refused(self.name, "pop(i)", "take from an end")
        value = self._slots.value_at(self._start + self._count - 1)
        self._take("right")
        return value

    def popleft(self) -> Any:
        if path().fork(self._count == 0):
            raise IndexError("pop from an empty deque")
        value = self._slots.value_at(self._start)
        self._take("left")
        return value

    def clear(self) -> None:
        self._change(bits(0))
        for name in self._slots.parts:
            if f"{name}#sum" in self.store:
                self.store[f"{name}#sum"] = z3.BitVecVal(0, 128)

    def __iter__(self) -> Iterator[Any]:
        for at in each(self._count):
            yield self._slots.value_at(self._start + at)

    def __contains__(self, value: object) -> bool:
        return any(own == value for own in self)

    def __getattr__(self, name: str) -> Any:
        refused(self.name, f"the method {name}()", "use append, pop, popleft, [] and loops")


def each(count: Any) -> Iterator[int]:
    """0, 1, 2 ... below an unknown count; after ``rounds`` of them the path is cut."""
    at = 0
    while path().fork(count > at):
        path().turn(at)
        yield at
        at += 1
