"""A proof as a picture: a line of the events that matter for each part of the rule."""

from __future__ import annotations

import datetime
import html
from collections.abc import Iterator, Sequence
from typing import Any

from specstream.rules.proof_text import Step, StepEvent, shortened, verdict_text

__all__ = ["svg_of"]

_FONT = "DejaVu Sans Mono, Menlo, Consolas, monospace"
_NAMESPACE = "//www.w3.org/2000/svg"  # a name, which leads nowhere
_TEXT, _LINE, _LETTER, _MARGIN = 10.0, 18.0, 6.3, 20.0
_WIDE = 420.0
_LONGEST = 60  # letters
_MOST_PARTS, _MOST_EVENTS = 16, 400
# Filled and hollow tell them apart without colours.
_FILLS = {True: "#00846a", False: "#ffffff", None: "#bbbbbb"}
_EDGES = {True: "#00846a", False: "#b03030", None: "#777777"}


def svg_of(rule: str, root: Step, order_by: str | None) -> str:
    """The picture: parts of the rule below each other, and events from left to right by their
    times; a full mark is where a part is true, a hollow one where it is false.

    Args:
        rule: its name.
        root: the last step of the proof.
        order_by: the order column.
    """
    return "\n".join(_svg(rule, root, order_by)) + "\n"


def _steps(root: Step) -> Iterator[Step]:
    yield root
    for one in root.children:
        yield from _steps(one)


def _svg(rule: str, root: Step, order_by: str | None) -> Iterator[str]:
    parts: dict[str, dict[int, Step]] = {}
    for one in _steps(root):
        of_part = parts.setdefault(one.formula, {})
        if len(of_part) < _MOST_EVENTS:
            of_part.setdefault(one.event.row, one)
    shown = dict(list(parts.items())[:_MOST_PARTS])
    events = {row: one.event for of in shown.values() for row, one in of.items()}
    places = _places(list(events.values()))
    texts = [shortened(text, _LONGEST) for text in shown]
    title = f"{rule}: {verdict_text(root.verdict)} at row {root.event.row}"
    left = _MARGIN + _LETTER * max(map(len, [*texts, title])) + 12
    width, top = left + _WIDE + 2 * _MARGIN, _MARGIN + 1.5 * _LINE
    bottom = top + _LINE * len(shown)
    height = bottom + 1.5 * _LINE + _MARGIN
    yield (
        f'<svg xmlns="http:{_NAMESPACE}" width="{width:g}" height="{height:g}" '
        f'viewBox="0 0 {width:g} {height:g}" font-family="{_FONT}" font-size="{_TEXT:g}">'
    )
    yield f"<title>{html.escape(title)}</title>"
    yield '<rect width="100%" height="100%" fill="#ffffff"/>'
    yield _text(_MARGIN, _MARGIN, title, "start", ' font-weight="bold"')
    asked = left + _WIDE * places[root.event.row]
    yield f'<path d="M{asked:g} {top - 8:g} V{bottom:g}" stroke="#999999" stroke-dasharray="2 2"/>'
    for at, (text, of_part) in enumerate(zip(texts, shown.values(), strict=True)):
        y = top + _LINE * (at + 0.3)
        yield _text(_MARGIN, y, text, "start")
        yield f'<path d="M{left:g} {y:g} H{left + _WIDE:g}" stroke="#dddddd"/>'
        for row, step in of_part.items():
            x = left + _WIDE * places[row]
            said = f"row {row}: {verdict_text(step.verdict)}"
            yield (
                f'<circle cx="{x:g}" cy="{y:g}" r="4" fill="{_FILLS[step.verdict]}" '
                f'stroke="{_EDGES[step.verdict]}" stroke-width="1.5">'
                f"<title>{html.escape(said)}</title></circle>"
            )
    first, last = (pick(events.values(), key=lambda one: places[one.row]) for pick in (min, max))
    yield _text(left, bottom + 0.5 * _LINE, _mark(first, order_by), "start")
    if first.row != last.row:
        yield _text(left + _WIDE, bottom + 1.3 * _LINE, _mark(last, order_by), "end")
    if len(parts) > len(shown):
        more = f"and {len(parts) - len(shown)} more"
        yield _text(_MARGIN, bottom + 0.5 * _LINE, more, "start")
    yield "</svg>"


def _mark(event: StepEvent, order_by: str | None) -> str:
    return f"row {event.row}" + (f", {order_by}={event.time}" if order_by is not None else "")


def _places(events: Sequence[StepEvent]) -> dict[int, float]:
    """Where events are, from 0 to 1; those of one time side by side, as are all where times cannot
    be told apart."""
    times = [_number(one.time) for one in events]
    known = [one for one in times if one is not None]
    if len(known) < len(times) or min(known) == max(known):
        rows = sorted(one.row for one in events)
        return {row: at / max(len(rows) - 1, 1) for at, row in enumerate(rows)}
    first, length = min(known), max(known) - min(known)
    found: dict[int, float] = {}
    taken: dict[float, int] = {}
    ordered = zip(known, events, strict=True)
    for time, event in sorted(ordered, key=lambda one: (one[0], one[1].row)):
        place = (time - first) / length
        found[event.row] = place + 0.012 * taken.get(place, 0)
        taken[place] = taken.get(place, 0) + 1
    widest = max(1.0, *found.values())
    return {row: place / widest for row, place in found.items()}


def _number(time: Any) -> float | None:
    if isinstance(time, datetime.datetime):
        return time.replace(tzinfo=datetime.UTC).timestamp()
    if isinstance(time, datetime.date):
        return float(time.toordinal())
    return float(time) if isinstance(time, int | float) else None


def _text(x: float, y: float, text: str, anchor: str, more: str = "") -> str:
    return (
        f'<text x="{x:g}" y="{y + 0.35 * _TEXT:g}" text-anchor="{anchor}" fill="#000000"{more} '
        f'xml:space="preserve">{html.escape(text)}</text>'
    )
