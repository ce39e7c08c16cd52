"""A proof as lines, for people: steps that read alike are one line."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Protocol

from specstream.display.values import short

__all__ = [
    *("Line", "Step", "StepEvent", "html_of", "line_of", "rows_text", "shown_name"),
    *("shortened", "text_of", "verdict_text"),
]

_LONGEST = 160  # letters of a formula


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
    def cases(self) -> Any: ...


@dataclass(frozen=True)
class Line:
    """A line, and those that are indented below it.

    Attributes:
        text: without its events.
        below: the others.
        events: that it is about, where the line above is about another one.
    """

    text: str
    below: tuple[Line, ...] = ()
    events: tuple[StepEvent, ...] = field(default=(), compare=False)

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


def line_of(root: Step, order_by: str | None, reads: Sequence[str]) -> Line:
    """A proof's lines.

    Args:
        root: its last step.
        order_by: the order column.
        reads: columns that are shown of an event.
    """
    return _Writer(order_by, frozenset(reads)).first(root)


def text_of(lines: Iterable[Line]) -> str:
    """Lines with their indents."""
    return "\n".join(_indented(lines, ""))


def _indented(lines: Iterable[Line], indent: str) -> Iterable[str]:
    for one in lines:
        yield f"{indent}{one.text}"
        yield from _indented(one.below, f"{indent}  ")


def html_of(lines: Iterable[Line]) -> str:
    """The same as lists, for a notebook."""
    parts = [
        f"<li>{html.escape(one.text)}{html_of(one.below) if one.below else ''}</li>"
        for one in lines
    ]
    return f"<ul>{''.join(parts)}</ul>"


class _Writer:
    def __init__(self, order_by: str | None, reads: frozenset[str]) -> None:
        self.order_by, self.reads = order_by, reads

    def first(self, root: Step) -> Line:
        verdict = verdict_text(root.verdict)
        text = f"{verdict} at {self.at([root.event])}: {self.said(root)}"
        return Line(f"{text}{f': {root.note}' if root.note else ''}", self.below(root))

    def said(self, step: Step) -> str:
        where = ", ".join(f"{shown_name(name)}={short(of)}" for name, of in step.where.items())
        text = shortened(step.formula)
        return f"with {where}: {text}" if where else text

    def lines(self, step: Step, above: Step) -> list[Line]:
        """Those of a step; one that says the same as the one above is not repeated."""
        is_here = step.event.row == above.event.row
        if (
            is_here
            and step.children
            and not step.note
            and (step.formula, step.verdict) == (above.formula, above.verdict)
        ):
            return list(self.below(step))
        note = f", {step.note}" if step.note else ""
        text = f"{self.said(step)}: {verdict_text(step.verdict)}{note}"
        return [Line(text, self.below(step), () if is_here else (step.event,))]

    def below(self, step: Step) -> tuple[Line, ...]:
        if step.cases is not None:
            return tuple(
                Line(f"if it is {way}:", self.case(one, step))
                for way, one in zip(("true", "false"), step.children, strict=True)
            )
        found = [line for one in step.children for line in self.lines(one, step)]
        merged: list[Line] = []
        for _, run in groupby(
            found, lambda one: (one, bool(one.events)) if one.is_movable else one
        ):
            alike = list(run)
            events = [event for one in alike for event in one.events]
            if not events:
                merged += alike
            elif alike[0].is_movable:
                merged.append(self.placed(alike[0], events))
            else:
                merged += [self.placed(one, list(one.events)) for one in alike]
        return tuple(merged)

    def case(self, step: Step, above: Step) -> tuple[Line, ...]:
        """Those of one of two cases, which speaks of the same part."""
        is_told = step.cases is None and step.children
        return self.below(step) if is_told else tuple(self.lines(step, above))

    def placed(self, line: Line, events: list[StepEvent]) -> Line:
        return Line(f"{self.at(events)}: {line.text}", line.below, tuple(events))

    def at(self, events: Sequence[StepEvent]) -> str:
        rows = rows_text([one.row for one in events])
        if len(events) > 1:
            return rows
        (event,) = events
        shown = [] if self.order_by is None else [f"{self.order_by}={event.time}"]
        shown += [
            f"{name}={short(value)}"
            for name, value in event.columns.items()
            if name in self.reads and name != self.order_by
        ]
        return f"{rows} ({', '.join(shown)})" if shown else rows
