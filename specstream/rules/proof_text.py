"""A proof as lines, for people: steps that read alike are one line."""

from __future__ import annotations

import datetime
import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any, Protocol

from specstream.display.values import short
from specstream.rules.formula import Formula, Temporal

__all__ = [
    *("Line", "Step", "StepEvent", "html_of", "line_of", "rows_text", "shown_name"),
    *("shortened", "text_of", "verdict_text"),
]

_LONGEST = 160  # letters of a formula
_MOST_LINES = 40  # below one
Where = Mapping[str, Any]
_NOWHERE: Where = {}


class StepEvent(Protocol):
    """An event of a proof, as far as it goes here."""

    @property
    def row(self) -> int: ...
    @property
    def time(self) -> Any: ...
    @property
    def columns(self) -> Mapping[str, Any]: ...


class Step(Protocol):
    """A step of a proof, as far as it goes here."""

    @property
    def formula(self) -> str: ...
    @property
    def event(self) -> StepEvent: ...
    @property
    def verdict(self) -> bool | None: ...
    @property
    def children(self) -> Sequence[Step]: ...
    @property
    def note(self) -> str: ...
    @property
    def where(self) -> Mapping[str, Any]: ...
    @property
    def part(self) -> Formula: ...
    @property
    def cases(self) -> Any: ...
    @property
    def values(self) -> tuple[Any, Any] | None: ...


@dataclass(frozen=True)
class Line:
    """A line, and those that are indented below it.

    Attributes:
        text: without its events.
        below: the others.
        events: that it is about, where they are not that of the line above.
        values: what it compares, which is shown where it stands for itself alone.
    """

    text: str
    below: tuple[Line, ...] = ()
    events: tuple[StepEvent, ...] = field(default=(), compare=False)
    values: str = field(default="", compare=False)

    @property
    def is_movable(self) -> bool:
        """Whether nothing below is about another event."""
        return all(not one.events and one.is_movable for one in self.below)


def verdict_text(verdict: bool | None) -> str:
    """A verdict in a word."""
    return "open" if verdict is None else str(verdict).lower()


def shortened(text: str, longest: int = _LONGEST) -> str:
    """A formula in one line that is not too long."""
    text = " ".join(text.split())
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def shown_name(variable: str) -> str:
    """A variable of a quantifier, as it is written."""
    return variable.removeprefix("each_")


def rows_text(rows: Sequence[int]) -> str:
    """Which rows they are.

    >>> rows_text([3, 4, 5]), rows_text([3, 7, 5]), rows_text([2])
    ('rows 3 to 5', '3 events of rows 3 to 7', 'row 2')
    """
    first, last = min(rows), max(rows)
    if first == last:
        return f"row {first}"
    of_all = f"rows {first} to {last}" if last - first > 1 else f"rows {first} and {last}"
    return of_all if last - first == len(rows) - 1 else f"{len(rows):,} events of {of_all}"


def line_of(
    root: Step, order_by: str | None, reads: Sequence[str], key: Sequence[str] = ()
) -> Line:
    """A proof's lines.

    Args:
        root: its last step.
        order_by: the order column.
        reads: columns that are shown of an event.
        key: those whose values are traces of their own.
    """
    return _Writer(order_by, frozenset(reads) - frozenset(key), key, root.event.row).first(root)


def text_of(lines: Iterable[Line]) -> str:
    """Lines with their indents."""
    return "\n".join(_indented(lines, ""))


def _indented(lines: Iterable[Line], indent: str) -> Iterable[str]:
    for one in lines:
        yield f"{indent}{one.text}{one.values}"
        yield from _indented(one.below, f"{indent}  ")


def html_of(lines: Iterable[Line]) -> str:
    """The same as lists, for a notebook."""
    parts = [
        f"<li>{html.escape(one.text + one.values)}{html_of(one.below) if one.below else ''}</li>"
        for one in lines
    ]
    return f"<ul>{''.join(parts)}</ul>"


class _Writer:
    def __init__(
        self, order_by: str | None, reads: frozenset[str], key: Sequence[str], row: int
    ) -> None:
        self.order_by, self.reads, self.key, self.row = order_by, reads, key, row

    def first(self, root: Step) -> Line:
        verdict = verdict_text(root.verdict)
        of_key = ", ".join(f"{name}={short(root.event.columns[name])}" for name in self.key)
        scope = f", of the events with {of_key}" if of_key else ""
        text = f"{verdict} at {self.at([root.event])}{scope}: {self.said(root)}"
        return Line(f"{text}{f': {root.note}' if root.note else ''}", self.below(root, {}))

    def said(self, step: Step, known: Where = _NOWHERE) -> str:
        """What is said, and for which values of variables, unless lines above say that."""
        where = ", ".join(
            f"{shown_name(name)}={short(value)}"
            for name, value in step.where.items()
            if name not in known or known[name] is not value
        )
        text = shortened(step.formula)
        return f"with {where}: {text}" if where else text

    def lines(self, step: Step, above: Step, known: Where) -> list[Line]:
        """Those of a step; one that says the same as the one above is not repeated."""
        is_here = not isinstance(above.part, Temporal)
        told = step.formula, step.verdict
        if is_here and step.children and not step.note and told == (above.formula, above.verdict):
            return self.of_children(step, known)
        note = f", {step.note}" if step.note else ""
        text = f"{self.said(step, known)}: {verdict_text(step.verdict)}{note}"
        below = self.below(step, {**known, **step.where})
        values = "" if step.values is None else f" ({' and '.join(map(short, step.values))})"
        return [Line(text, below, () if is_here else (step.event,), values)]

    def of_children(self, step: Step, known: Where) -> list[Line]:
        return [line for one in step.children for line in self.lines(one, step, known)]

    def below(self, step: Step, known: Where) -> tuple[Line, ...]:
        """The lines below that of a step, with their events: those that read alike as one."""
        if step.cases is not None:
            return tuple(
                Line(f"if it is {way}:", self.case(one, step, known))
                for way, one in zip(("true", "false"), step.children, strict=True)
            )
        lines = self.of_children(step, known)
        alike = [list(run) for _, run in groupby(lines, _reading)]
        if len(alike) > _MOST_LINES:  # those that are apart as well
            by_text: dict[Any, list[Line]] = {}
            for one in lines:
                by_text.setdefault(_reading(one), []).append(one)
            alike = list(by_text.values())
        runs = []
        for some in alike:
            is_one = some[0].events and some[0].is_movable
            runs += [some] if is_one else [[one] for one in some]
        shown = [self.placed(some, step) for some in runs[:_MOST_LINES]]
        more = len(runs) - len(shown)
        return (*shown, Line(f"... {more:,} more")) if more else tuple(shown)

    def placed(self, alike: Sequence[Line], above: Step) -> Line:
        """One line for some that read alike."""
        events = tuple(event for one in alike for event in one.events)
        (line, *_) = alike
        text = f"{self.at(events, above.event.row)}: {line.text}" if events else line.text
        if len(alike) > 1:
            line = _without_values(line)
        return Line(text, line.below, events, line.values)

    def case(self, step: Step, above: Step, known: Where) -> tuple[Line, ...]:
        """Those of one of two cases, which speaks of the same part."""
        is_told = step.cases is None and step.children
        return self.below(step, known) if is_told else tuple(self.lines(step, above, known))

    def at(self, events: Sequence[StepEvent], above: int | None = None) -> str:
        """Which events they are; of one alone also what it is, if it is not that above."""
        rows = rows_text([one.row for one in events])
        (event, *others) = events
        if others or event.row == above:
            is_own = above is not None and not others and event.row == self.row
            return f"{rows} itself" if is_own else rows
        shown = [] if self.order_by is None else [f"{self.order_by}={event.time}"]
        shown += [
            f"{name}={value if isinstance(value, datetime.date) else short(value)}"
            for name, value in event.columns.items()
            if name in self.reads and name != self.order_by
        ]
        return f"{rows} ({', '.join(shown)})" if shown else rows


def _without_values(line: Line) -> Line:
    return replace(line, below=tuple(map(_without_values, line.below)), values="")


def _reading(line: Line) -> tuple[Line, bool]:
    return line, bool(line.events)
