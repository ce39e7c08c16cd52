"""The state of an engine for who reads it from outside, whatever the engine does meanwhile.

The fields that are no containers are seen as they stand, or as a copy while a batch is in flight.
Containers may be large, so they are read when they are asked for: as a whole at one instant, for
which the commits wait, or a key at a time, for which nobody does (``look.c``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from specstream.declarations.codes import Texts
from specstream.declarations.container_views import (
    Entries,
    entries_of,
    key_words,
    value_of,
)
from specstream.declarations.container_words import count, entries
from specstream.declarations.state_content import StateContent, row_codes
from specstream.declarations.state_layout import Field
from specstream.declarations.state_view import StateView
from specstream.engine.parts import Parts
from specstream.errors import EngineClosedError

__all__ = ["LiveState"]

T = TypeVar("T")
Words = npt.NDArray[np.int64]


class LiveState:
    """The committed state of an engine, also after its end."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def view(self) -> StateView:
        """See :attr:`specstream.Engine.state`."""
        layout, lifetime = self._parts.operator.layout, self._parts.lifetime
        if not layout.containers:
            return StateView(layout, *self.fields())
        if not lifetime.closed and not lifetime.is_inherited():
            lifetime.check_caller()
        return StateView.of_moving(layout, self)

    def fields(self) -> tuple[Words | StateContent, Texts]:
        """The fields that are no containers: live, or a copy while a batch is in flight."""
        return self.still(lambda idle: self._parts.committed.fields(copied=not idle))

    def still(self, look: Callable[[bool], T]) -> T:
        """What ``look`` gives, while the state stands still; told True: no batch is in flight.

        Raises:
            EngineClosedError: this process was forked from the engine's during a batch.
            SpecstreamError: as of :attr:`specstream.Engine.state`.
        """
        lifetime = self._parts.lifetime
        if not lifetime.closed or lifetime.is_inherited():
            try:
                return self._parts.turn.still(look)
            except EngineClosedError:
                if not lifetime.closing or lifetime.is_inherited() or not lifetime.await_end():
                    raise
        return look(True)

    # ---- containers ----

    def content(self) -> tuple[StateContent, Texts]:
        """The whole state, at one instant."""
        committed, layout = self._parts.committed, self._parts.operator.layout

        def look(idle: bool) -> tuple[StateContent, Texts]:
            content = StateContent.of(layout, committed.words)
            return content, committed.strings.part(content.codes)

        return self.still(look)

    def rows(self, field: Field) -> tuple[Words, Texts]:
        """The rows of a container, at one instant, and the strings in them."""
        return self.still(lambda idle: self._read(field))

    def first(self, field: Field, most: int | None) -> tuple[int, Words, Texts]:
        """How many rows a container has, and the first of them, at one instant."""
        words = self._parts.committed.words
        return self.still(lambda idle: (count(words, field), *self._read(field, most)))

    def _read(self, field: Field, most: int | None = None) -> tuple[Words, Texts]:
        committed = self._parts.committed
        rows = entries(committed.words, field, most)
        return rows, committed.strings.part(row_codes(field, rows))

    def entries(self, field: Field) -> Entries:
        """What a view of a dict or a set reads."""
        return _LiveEntries(self, self._parts, field)

    def all_entries(self, field: Field) -> tuple[dict[Any, Any], int | None]:
        """All entries of a dict or a set at one instant, and the edition of the state that they are
        of; None: a batch is in flight."""
        native = self._parts.native
        (rows, texts), edition = self.still(
            lambda idle: (self._read(field), native.edition if idle else None)
        )
        assert field.container is not None
        return entries_of(field.container, rows, texts), edition


class _LiveEntries:
    """The entries of a dict or a set of an engine, as of
    :class:`specstream.declarations.container_views.Entries`.

    Once all of them were looked at they are kept, so that ``dict(view)``, which asks for the keys
    and then for one value after the other, sees one instant: while the state stays as it was, or,
    in flight, for good.
    """

    def __init__(self, state: LiveState, parts: Parts, field: Field) -> None:
        assert field.container is not None
        self._state, self._parts, self._field, self._of = state, parts, field, field.container
        self._number = parts.operator.layout.containers.index(field)
        self._seen: tuple[dict[Any, Any], int | None] | None = None

    def all(self) -> dict[Any, Any]:
        kept = self._kept()
        if kept is None:
            self._seen = self._state.all_entries(self._field)
            kept = self._seen[0]
        return kept

    def _kept(self) -> dict[Any, Any] | None:
        if self._seen is None:
            return None
        kept, edition = self._seen
        return kept if edition is None or edition == self._parts.native.edition else None

    def count(self) -> int:
        kept = self._kept()
        if kept is not None:
            return len(kept)
        found = self._look(None, 1)
        if isinstance(found, np.ndarray):
            return int(found[0])
        words = self._parts.committed.words
        return self._state.still(lambda idle: count(words, self._field))

    def get(self, key: Any) -> tuple[Any, ...]:
        kept = self._kept()
        if kept is None:
            words = key_words(self._of.key, key)
            found = None if words is None else self._look(words, self._of.row_words)
            if words is None or found is None:
                return ()
            if isinstance(found, np.ndarray):
                value = self._value(found)
            else:
                key_of = words
                value = self._state.still(lambda idle: self._find(key_of))
            if value is not None:
                return value
            kept = self.all()
        return (kept[key],) if key in kept else ()

    def _look(self, key: Words | None, width: int) -> Words | bool | None:
        """Without the turn; False: it takes the turn."""
        lifetime = self._parts.lifetime
        lifetime.check_hook()
        if lifetime.is_inherited():
            return False
        try:
            return lifetime.inside(lambda: self._parts.native.look(self._number, key, width))
        except EngineClosedError:
            return False

    def _find(self, key: Words) -> tuple[Any, ...] | None:
        """While the state stands still; None: there is no engine to ask."""
        parts, of = self._parts, self._of
        if parts.native.is_freed or parts.lifetime.is_inherited():
            return None
        entry = parts.native.find(self._number, key)
        if entry is None:
            return ()
        return self._value(parts.committed.words[entry + 1 : entry + 1 + of.row_words])

    def _value(self, row: Words) -> tuple[Any, ...] | None:
        """None: a string of it is not in the table, which has been rolled back since."""
        if self._of.kind == "set":
            return (None,)
        missing: list[int] = []
        begin = self._of.key.words

        def text(code: int) -> str | None:
            found = self._parts.committed.strings.text(code)
            if found is None:
                missing.append(code)
            return found

        value = value_of(self._of.value, row[begin : begin + self._of.value.words], text)
        return None if missing else (value,)
