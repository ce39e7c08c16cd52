"""The event of an interpreted vertex: rows of its inputs, and what is kept of those without one.

``event.x`` of an operator with one input, ``event.left.x`` of one with several, which also asks
``event.changed("left")`` and ``event.known("left")``. What the inputs have now comes from the words
that the vertex is given; a last value is read in the state, when it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from specstream.compiler.backend.interpreted_vertex import KEY, Input, InterpretedVertex
from specstream.compiler.frontend.inputs import ASKED
from specstream.compiler.language.hints import names_it_has
from specstream.declarations.codes import EMPTY
from specstream.declarations.schema import Column
from specstream.declarations.state_layout import Field
from specstream.interpreted.coded import ElementsOf
from specstream.interpreted.events import Drawing, OnlyRead
from specstream.interpreted.values import Texts

__all__ = ["make_vertex_event"]

_INT, _FLOAT, _BOOL = map(ord, "id?")
_FORMS = {"int": _INT, "str": _INT, "float": _FLOAT, "bool": _BOOL}
_NEVER = {"int": 0, "float": 0.0, "bool": False, "str": ""}


class _OfVertex(Drawing):
    """Order key and random numbers, as the vertex is given them."""

    __slots__ = ()

    @property
    def timestamp(self) -> int:
        found: int = self.__ss_run__.given(0, _INT)
        return found

    @property
    def source(self) -> int:
        found: int = self.__ss_run__.given(1, _INT)
        return found

    @property
    def sequence(self) -> int:
        found: int = self.__ss_run__.given(2, _INT)
        return found

    def __ss_key__(self, draw: int) -> tuple[int, int, int, int, int]:
        seed = self.__ss_run__.given(3, _INT) % 2**64
        return seed, self.timestamp, self.source, self.sequence, int(draw)


class _Reader:
    """Reads the columns of one input."""

    def __init__(
        self,
        vertex: InterpretedVertex,
        number: int,
        run: Any,
        texts: Texts,
        elements_of: ElementsOf,
    ) -> None:
        self._vertex, self._number, self._run, self._texts = vertex, number, run, texts
        self._elements_of = elements_of
        self.of: Input = vertex.inputs[number]
        self._changed = vertex.given[f"changed.{self.of.name}"]

    def changed(self) -> bool:
        found: bool = self._run.given(self._changed, _BOOL)
        return found

    def known(self) -> bool:
        of = self.of.known
        return self.changed() or of is None or self._kept(of)

    def _kept(self, field: Field) -> Any:
        return self._elements_of("state", field.storage)[field.start]

    def null(self, name: str) -> Callable[[], bool]:
        """What tells whether a column is null."""
        if name not in self.of.columns.nullable:
            return lambda: False
        run, at = self._run, self._vertex.given[f"null {self.of.name}.{name}"]
        _, kept = self.of.last.get(name, (None, None))

        def is_null() -> bool:
            if self.changed():
                return bool(run.given(at, _BOOL))
            return True if kept is None else self._kept(kept)

        return is_null

    def value(self, name: str) -> Callable[[], Any]:
        """What gives a column's value; None for a null."""
        column: Column = self._vertex.column(self._number, name)
        run, at = self._run, self._vertex.given[f"{self.of.name}.{name}"]
        form, is_text, never = _FORMS[column.kind], column.kind == "str", _NEVER[column.kind]
        is_null = self.null(name) if column.nullable else None
        kept, _ = self.of.last.get(name, (None, None))

        def read() -> Any:
            if is_null is not None and is_null():
                return None
            if not self.changed():
                return never if kept is None else self._kept(kept)
            word = run.given(at, form)
            if is_text:
                return "" if word == EMPTY else self._texts.text(word)
            return word

        return read


def _members(reader: _Reader, lacks: str) -> dict[str, Any]:
    """Attributes of what has the columns of an input."""
    names = reader.of.columns.names
    values = {name: reader.value(name) for name in names}
    nulls = {name: reader.null(name) for name in names}

    def made(name: str) -> property:
        value = values[name]
        return property(lambda self: value())

    def missing(self: Any, name: str) -> Any:
        raise AttributeError(f"{lacks} {name!r}; {names_it_has(name, names)}")

    def is_null(self: Any, name: str) -> bool:
        if name not in nulls:
            missing(self, name)
        return nulls[name]()

    members: dict[str, Any] = {name: made(name) for name in names}
    return members | {"__slots__": (), "is_null": is_null, "__getattr__": missing}


def _input(reader: _Reader) -> Any:
    """One input, as an object."""
    name = reader.of.name
    members = _members(reader, f"input {name!r} has no column")
    return type("Input", (OnlyRead,), members | {"__ss_name__": f"event.{name}"})()


def make_vertex_event(
    vertex: InterpretedVertex, run: Any, texts: Texts, elements_of: ElementsOf
) -> Any:
    """The event of a vertex, over a backend: whatever that is given."""
    readers = [
        _Reader(vertex, number, run, texts, elements_of) for number in range(len(vertex.inputs))
    ]
    if not readers[0].of.name:
        members = _members(readers[0], "the event has no column")
        return type("Event", (_OfVertex,), members)(run, 0)
    inputs = {one.of.name: _input(one) for one in readers}
    by_name = {one.of.name: one for one in readers}
    known = (*inputs, *KEY[:3])

    def reader_of(name: str) -> _Reader:
        if name not in by_name:
            raise AttributeError(f"the event has no input {name!r}; {names_it_has(name, by_name)}")
        return by_name[name]

    def lacks(self: Any, name: str) -> Any:
        raise AttributeError(f"the event has no input {name!r}; {names_it_has(name, known)}")

    def input_of(name: str) -> property:
        one = inputs[name]
        return property(lambda self: one)

    asked = {
        "changed": lambda self, name: reader_of(name).changed(),
        "known": lambda self, name: reader_of(name).known(),
    }
    assert set(asked) == set(ASKED)
    every: dict[str, Any] = {name: input_of(name) for name in inputs}
    every |= {"__slots__": (), "__getattr__": lacks, **asked}
    return type("Event", (_OfVertex,), every)(run, 0)
