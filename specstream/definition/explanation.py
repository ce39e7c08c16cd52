"""What :meth:`specstream.Operator.explain` returns: an operator in words, as text, HTML, data."""

from __future__ import annotations

import html
import itertools
import os
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

from specstream.compiler.frontend.inputs import ASKED
from specstream.compiler.frontend.program import Program
from specstream.compiler.language.user_code import is_own
from specstream.declarations.schema import Schema
from specstream.declarations.state_layout import Field, Layout
from specstream.definition.accesses import Access, accesses_of
from specstream.display.sheet import table

__all__ = ["Explanation", "FieldUse", "PossibleConflict", "Source", "explained", "prefixed"]


@dataclass(frozen=True)
class Source:
    """A function of the operator, as it was written.

    Attributes:
        function: its name.
        filename: where it stands.
        line: number of its first line.
        text: its lines.
    """

    function: str
    filename: str
    line: int
    text: str

    def numbered(self) -> str:
        """With the numbers that the lines have in the file."""
        rows = self.text.rstrip("\n").splitlines()
        width = len(str(self.line + len(rows)))
        return "\n".join(f"{self.line + at:{width}}  {row}".rstrip() for at, row in enumerate(rows))


@dataclass(frozen=True)
class FieldUse:
    """A field of the state, and what the operator does with it.

    Attributes:
        name: its name.
        space: "state", "scratch" (private to the running event) or "locks".
        type: of an element.
        shape: empty for a scalar.
        bytes: that its elements take.
        words: of 8 bytes that it takes in the state. Of a container bytes and words are those of
            an entry or element.
        limit: entries or elements of a container at most; else None.
        read, written, updated, operated, locked: numbers of the accesses in
            :attr:`Explanation.accesses`; updated ones are not read.
    """

    name: str
    space: str
    type: str
    shape: tuple[int, ...]
    bytes: int
    words: int
    read: tuple[int, ...] = ()
    written: tuple[int, ...] = ()
    updated: tuple[int, ...] = ()
    operated: tuple[int, ...] = ()
    locked: tuple[int, ...] = ()
    limit: int | None = None

    def __str__(self) -> str:
        what = f"{' x '.join(map(str, self.shape))} {self.type}" if self.shape else self.type
        if self.space == "locks":
            return f"{self.shape[0]} locks"
        size = f"{_many(self.bytes, 'byte')}, {_many(self.words, 'word')}"
        if self.limit is not None:
            return f"{what}, each of {size}; {self.limit:,} at most"
        return f"{what}, {size}" + (", scratch" if self.space == "scratch" else "")


@dataclass(frozen=True)
class PossibleConflict:
    """A pair of accesses: where the earlier event does one, a later one did the other too early.

    Attributes:
        field: that both touch.
        earlier: number of the access of the earlier event, which changes the field.
        later: number of the access of the later event, which needs its value.
        when: "always": they touch the same element in whatever events; "same element": where the
            indices come out equal; "overlap": one of them touches a row, a slice or all, and the
            other something of it; "same key": operations of a boosted field; "wrong prediction":
            of a counter.
        text: in a sentence.
    """

    field: str
    earlier: int
    later: int
    when: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """An operator in words.

    ``str(...)`` gives it as text; a notebook shows it with tables.

    Attributes:
        operator: its name.
        functions: the operator's own function, then those that it calls, but for this package's.
        staged: expressions of the event alone that Python computes before the operator runs.
        event: columns of an event: name and type.
        columns_read: those that the functions read, and ``timestamp``, ``random`` and so on, which
            every event has.
        unentered: of the event's columns of strings those that are compared with the operator's own
            literals at most, or read by Python alone: their texts are not kept.
        emits: columns of an emitted row: name and type.
        fields: of the state.
        accesses: every place where a field is touched, in the order of the lines.
        conflicts: pairs of accesses for which a speculative run may have to be repeated. Whether
            they do conflict the events say: see :meth:`specstream.Engine.profile`.
        notes: what its author says of its cost, like a rule that goes through all that waits.

    >>> import specstream as ss
    >>> from specstream.structures import add
    >>> class Seen(ss.State):
    ...     last = ss.array(float, 10)
    ...     count = ss.scalar(int)
    >>> @ss.operator(state=Seen, event={"item": int, "price": float}, emits={"change": float})
    ... def changes(state, event, emit):
    ...     add(state, "count", 1)
    ...     emit(event.price - state.last[event.item])
    ...     state.last[event.item] = event.price
    >>> for conflict in changes.explain().conflicts:
    ...     conflict.field, conflict.when
    ('last', 'same element')
    """

    operator: str
    functions: tuple[Source, ...]
    staged: tuple[str, ...]
    event: tuple[tuple[str, str], ...]
    columns_read: tuple[str, ...]
    unentered: tuple[str, ...] = ()
    emits: tuple[tuple[str, str], ...]
    fields: tuple[FieldUse, ...]
    accesses: tuple[Access, ...]
    conflicts: tuple[PossibleConflict, ...]
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain data, for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        rows = [f"operator {self.operator!r}"]
        for source in self.functions:
            rows += ["", f"{source.filename}", source.numbered()]
        for title, lines in self.sections():
            rows += ["", title, *(f"  {line}" for line in lines)]
        return "\n".join(rows)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        parts = [f"<h4>operator <code>{html.escape(self.operator)}</code></h4>"]
        parts += [
            f"<details open><summary>{html.escape(source.function)} "
            f"<small>{html.escape(source.filename)}</small></summary>"
            f"<pre>{html.escape(source.numbered())}</pre></details>"
            for source in self.functions
        ]
        fields = [
            [one.name, str(one), *(self._lines(numbers) for numbers in _uses(one))]
            for one in self.fields
        ]
        parts.append(table(["field", "layout", "read", "written", "updated unread"], fields))
        for title, lines in self.sections():
            if not title.startswith("state"):
                items = "".join(f"<li>{html.escape(line)}</li>" for line in lines)
                parts.append(f"<h5>{html.escape(title)}</h5><ul>{items}</ul>")
        return "".join(parts)

    def sections(self) -> Iterator[tuple[str, list[str]]]:
        """Of the text behind the source: title and lines."""
        read = [f"{name}: {of}{self._use(name)}" for name, of in self.event]
        yield "event", read or ["no columns"]
        yield "emits", [f"{name}: {of}" for name, of in self.emits] or ["no columns"]
        if self.staged:
            yield "computed by Python before the operator runs", list(self.staged)
        total = sum(one.words for one in self.fields if one.space == "state" and one.limit is None)
        yield f"state: {_many(total, 'word')} of 8 bytes", list(self._layout())
        yield (
            "what could conflict, of an earlier and a later event that run at once",
            [one.text for one in self.conflicts]
            or ["nothing: no event needs what another one changes"],
        )
        if self.notes:
            yield "what it costs", list(self.notes)

    def _use(self, column: str) -> str:
        if column not in self.columns_read:
            return ", not read"
        return ", its texts not kept" if column in self.unentered else ""

    def _layout(self) -> Iterator[str]:
        for one in self.fields:
            yield f"{one.name}: {one}"
            for action, numbers in zip(_ACTIONS, _uses(one), strict=True):
                if numbers:
                    yield f"    {action}: {self._lines(numbers)}"
            if one.operated or one.locked:
                yield f"    used: {self._lines((*one.operated, *one.locked))}"
            if not any((*_uses(one), one.operated, one.locked)):
                yield "    never touched"

    def _lines(self, numbers: Iterable[int]) -> str:
        lines: dict[str, list[int]] = {}
        for one in (self.accesses[number] for number in numbers):
            said = lines.setdefault(f"{one.by} of {one.text}" if one.by else one.text, [])
            if one.line not in said:
                said.append(one.line)
        return "; ".join(f"{text} in line {', '.join(map(str, at))}" for text, at in lines.items())


_ACTIONS = ("read", "written", "updated unread")


def _uses(one: FieldUse) -> tuple[tuple[int, ...], ...]:
    return one.read, one.written, one.updated


def _many(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def explained(program: Program, layout: Layout, event: Schema, emits: Schema) -> Explanation:
    """An operator in words, from its syntax alone."""
    accesses, columns = _in_order(program, layout, event)
    names = [field.name for field in layout.fields]
    written = dict(reversed(program.written.items()))
    # What a timer runs is never ahead of its turn, so that it meets only those that come later.
    ahead = len(accesses)
    if program.on_timer is not None:
        accesses += _in_order(program.on_timer, layout, program.on_timer.event)[0]
        written |= dict(reversed(program.on_timer.written.items()))
    return Explanation(
        operator=program.operator,
        functions=tuple(
            Source(function.__name__, one.filename, one.line, one.text)
            for function, one in written.items()
            if not is_own(one.filename)
        ),
        staged=tuple(one.text for one in program.derived if one.is_seen),
        event=tuple(one for one in event.describe() if not is_asked(one[0])),
        columns_read=tuple(columns),
        unentered=tuple(name for name, _ in event.unentered),
        emits=tuple(emits.describe()),
        fields=tuple(_field_use(field, accesses) for field in layout.fields),
        accesses=accesses,
        conflicts=tuple(
            one for name in names for one in _conflicts(layout.field(name), accesses, ahead)
        ),
    )


def is_asked(column: str) -> bool:
    """Whether a column of the event is what it says of an input."""
    name, dot, _ = column.partition(".")
    return bool(dot) and name in ASKED


def prefixed(of: Explanation, prefix: str) -> Explanation:
    """The same with other names of the fields: ``prefix`` stands before each.

    >>> import specstream as ss
    >>> class Seen(ss.State):
    ...     count = ss.scalar(int)
    >>> @ss.operator(state=Seen, event={"x": int}, emits={})
    ... def counted(state, event, emit):
    ...     state.count += event.x
    >>> print(prefixed(counted.explain(), "first.").conflicts[0].text.partition(":")[0])
    one writes first.count (line 3), a later one reads first.count (line 3)
    """
    accesses = tuple(
        replace(one, field=prefix + one.field, text=prefix + one.text) for one in of.accesses
    )
    return replace(
        of,
        fields=tuple(replace(one, name=prefix + one.name) for one in of.fields),
        accesses=accesses,
        conflicts=tuple(
            replace(
                one,
                field=prefix + one.field,
                text=_sentence(accesses[one.earlier], accesses[one.later], one.when),
            )
            for one in of.conflicts
        ),
    )


def _in_order(
    program: Program, layout: Layout, event: Schema
) -> tuple[tuple[Access, ...], tuple[str, ...]]:
    """The accesses, function by function and line by line, and the columns that are read."""
    found, columns = accesses_of(program, layout, event)
    starts = {
        (one.filename, function.__name__): at
        for at, (function, one) in enumerate(reversed(program.written.items()))
    }
    by_place = {one: (starts.get((one.filename, one.function), 0), one.line) for one in found}
    in_order = sorted(found, key=by_place.__getitem__)
    return tuple(in_order), columns


def _field_use(field: Field, accesses: tuple[Access, ...]) -> FieldUse:
    numbers: dict[str, Any] = {
        action: tuple(
            at
            for at, one in enumerate(accesses)
            if one.field == field.name and one.action == action
        )
        for action in ("read", "written", "updated", "operated", "locked")
    }
    if field.container is not None:
        of = field.container
        words = of.key.words + of.value.words
        return FieldUse(
            field.name,
            field.space,
            field.type_name,
            (),
            8 * words,
            words,
            **numbers,
            limit=of.limit,
        )
    takes = field.space != "locks"
    return FieldUse(
        field.name,
        field.space,
        field.type_name,
        field.dimensions,
        field.size * field.storage.size if takes else 0,
        field.words if takes else 0,
        **numbers,
    )


def _conflicts(
    field: Field | None, accesses: tuple[Access, ...], ahead: int
) -> Iterator[PossibleConflict]:
    """``ahead``: how many of the accesses, the first, are of events."""
    if field is None or field.space != "state":
        return
    own = [(at, one) for at, one in enumerate(accesses) if one.field == field.name]
    # Of what a function of this package does, all goes by the line of its call: the worst counts.
    worst: dict[tuple[object, ...], PossibleConflict] = {}
    of_events = [(at, one) for at, one in own if at < ahead]
    for (earlier, change), (later, need) in itertools.product(own, of_events):
        when = _when(field, change, need)
        if when is None:
            continue
        key = (change.filename, change.line, change.text, need.filename, need.line, need.text)
        if key not in worst or _ORDER.index(when) < _ORDER.index(worst[key].when):
            said = _sentence(change, need, when)
            worst[key] = PossibleConflict(field.name, earlier, later, when, said)
    yield from worst.values()


def _when(field: Field, change: Access, need: Access) -> str | None:
    """In which case the later event, which needs the field, must wait for the earlier one."""
    if change.action == "operated" and need.action == "operated":
        has_inverse = {one.name: one.inverse is not None for one in field.operations}
        return "same key" if has_inverse[change.by] or has_inverse[need.by] else None
    predicted = need.action == "updated" and need.by == "increment"
    if change.action not in ("written", "updated") or not (need.action == "read" or predicted):
        return None
    pairs = list(zip(change.at, need.at, strict=False))
    if any(one != other for one, other in pairs if None not in (one, other)):
        return None  # constant indices that differ
    if predicted:
        return "wrong prediction"
    if field.container is not None and not field.container.is_keyed and change.is_part:
        # One that changes the length, or all of it, meets all that ask for the length.
        return "always" if need.is_part else "overlap"
    if change.is_part or need.is_part:
        return "overlap"
    if field.container is not None and field.container.is_keyed:
        return "same key" if any(None in pair for pair in pairs) else "always"
    return "same element" if any(None in pair for pair in pairs) else "always"


# What costs most comes first.
_WHEN = {
    "always": "in every two events that get there",
    "overlap": "where the two overlap",
    "same element": "where both have the same element",
    "same key": "where both have the same key",
    "wrong prediction": "where the number was predicted wrongly",
}


_ORDER = list(_WHEN)


def _sentence(change: Access, need: Access, when: str) -> str:
    verb = {"updated": "changes", "operated": "uses"}.get(change.action, "writes")
    other = {"updated": "counts with", "operated": "uses"}.get(need.action, "reads")
    one_file = change.filename == need.filename
    where = "" if one_file else f" of {os.path.basename(need.filename)}"
    return (
        f"one {verb} {change.text} (line {change.line}), a later one {other} {need.text} "
        f"(line {need.line}{where}): {_WHEN[when]}"
    )
