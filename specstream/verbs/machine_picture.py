"""A state machine as a picture: states, and transitions with their guards."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

__all__ = ["Drawn", "dot_of", "svg_of"]

_FONT = "DejaVu Sans Mono, Menlo, Consolas, monospace"
_NAMESPACE = "//www.w3.org/2000/svg"  # a name, which leads nowhere
_TEXT, _LINE, _LETTER = 10.0, 14.0, 6.3
_GAP, _BESIDE, _MARGIN = 46.0, 34.0, 20.0
_LONGEST = 70  # letters


@dataclass(frozen=True)
class Drawn:
    """What is drawn.

    Attributes:
        name: of the machine.
        start: its first state.
        states: all of them.
        outputs: those that give a row.
        transitions: in their order: the states from which each can be taken, what is written
            there, the state reached.
    """

    name: str
    start: str
    states: tuple[str, ...]
    outputs: tuple[str, ...]
    transitions: tuple[tuple[tuple[str, ...], str, str], ...]


def _shown(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def svg_of(machine: Drawn) -> str:
    """The picture: states below each other, in the order in which they are reached; transitions
    down on the right, back up on the left, and their guards in a table below, by number."""
    return "\n".join(_svg(machine)) + "\n"


def _svg(machine: Drawn) -> Iterator[str]:
    order = _reached(machine)
    wide = max(_LETTER * max(map(len, order)) + 36, 90.0)
    lanes = _lanes(machine, order)
    left = _MARGIN + _out(max((lane for lane, is_down in lanes.values() if not is_down), default=0))
    right = _MARGIN + _out(max((lane for lane, is_down in lanes.values() if is_down), default=0))
    rows = [f"{at + 1:>2}  {_row(one)}" for at, one in enumerate(machine.transitions)]
    rows += ["    a green state gives a row"] if machine.outputs else []
    title = f"machine {machine.name}"
    texts = _LETTER * max(map(len, [*rows, title])) + 2 * _MARGIN
    width = max(left + wide + right + _MARGIN, texts)
    top = _MARGIN + 3.2 * _LINE
    below = top + len(order) * (_GAP + _BESIDE)
    height = below + _LINE * (len(rows) + 1) + _MARGIN
    yield (
        f'<svg xmlns="http:{_NAMESPACE}" width="{width:g}" height="{height:g}" '
        f'viewBox="0 0 {width:g} {height:g}" font-family="{_FONT}" font-size="{_TEXT:g}">'
    )
    yield f"<title>{html.escape(title)}</title>"
    yield '<rect width="100%" height="100%" fill="#ffffff"/>'
    yield _text(_MARGIN, 1.6 * _LINE, title, "start", True)
    middles = {}
    for at, state in enumerate(order):
        y = top + at * (_GAP + _BESIDE) + _BESIDE / 2
        middles[state] = y
        edge, inside = (
            ("#00846a", "#e5f5f0") if state in machine.outputs else ("#444444", "#ffffff")
        )
        yield (
            f'<rect x="{left:g}" y="{y - _BESIDE / 2:g}" width="{wide:g}" height="{_BESIDE:g}" '
            f'rx="{_BESIDE / 2:g}" fill="{inside}" stroke="{edge}" stroke-width="1.3"/>'
        )
        yield _text(left + wide / 2, y, state, "middle", True)
    x = left + wide / 2
    y = middles[machine.start] - _BESIDE / 2
    yield f'<path d="M{x:g} {y - 20:g} L{x:g} {y - 6:g}" stroke="#555555" fill="none"/>'
    yield _arrow(x, y, "down")
    for (state, reached), numbers in _numbered(machine, order).items():
        lane, is_down = lanes[state, reached]
        label = ",".join(map(str, numbers))
        out = _out(lane)
        a, b = middles[state], middles[reached]
        if state == reached:
            a, b, is_down, out = a - 7, b + 7, True, 24.0
        else:
            a, b = (a + 7, b - 7) if is_down else (a - 7, b + 7)
        edge_of, to = (left + wide, left + wide + out) if is_down else (left, left - out)
        yield (
            f'<path d="M{edge_of:g} {a:g} C{to:g} {a:g} {to:g} {b:g} {edge_of:g} {b:g}" '
            'stroke="#555555" fill="none" stroke-width="1.1"/>'
        )
        yield _arrow(edge_of, b, "left" if is_down else "right")
        place = edge_of + (0.75 * out + 3 if is_down else -0.75 * out - 3)
        yield _text(place, (a + b) / 2, label, "start" if is_down else "end", halo=True)
    for at, row in enumerate(rows):
        yield _text(_MARGIN, below + _LINE * (at + 0.5), row, "start")
    yield "</svg>"


def _out(lane: int) -> float:
    """How far out a line bends."""
    return 34.0 + 44.0 * lane


def _row(one: tuple[tuple[str, ...], str, str]) -> str:
    states, written, reached = one
    return f"{states[0] if len(states) == 1 else 'any'} → {reached}: {_shown(written)}"


def _reached(machine: Drawn) -> list[str]:
    """The states in the order in which they are reached; behind all others those that are reached
    from anywhere."""
    order = [machine.start]
    for is_anywhere in (False, True):
        for state in order:  # grows meanwhile
            for states, _, to in machine.transitions:
                if state in states and to not in order and (len(states) == 1 or is_anywhere):
                    order.append(to)
    return order


def _numbered(machine: Drawn, order: Sequence[str]) -> dict[tuple[str, str], list[int]]:
    """The numbers of the transitions from one state to another."""
    found: dict[tuple[str, str], list[int]] = {}
    for number, (states, _, reached) in enumerate(machine.transitions, start=1):
        for one in states:
            found.setdefault((one, reached), []).append(number)
    return found


def _lanes(machine: Drawn, order: Sequence[str]) -> dict[tuple[str, str], tuple[int, bool]]:
    """How far out each line is, and whether it leads down: longer ones are further out."""
    found = {}
    for state, reached in _numbered(machine, order):
        way = order.index(reached) - order.index(state)
        found[state, reached] = abs(way), way >= 0
    return found


def _arrow(x: float, y: float, way: str) -> str:
    points = {
        "down": ((x - 3, y - 6), (x + 3, y - 6), (x, y)),
        "left": ((x + 6, y - 3), (x + 6, y + 3), (x, y)),
        "right": ((x - 6, y - 3), (x - 6, y + 3), (x, y)),
    }[way]
    text = " ".join(f"{a:g},{b:g}" for a, b in points)
    return f'<polygon points="{text}" fill="#555555"/>'


def _text(
    x: float, y: float, text: str, anchor: str, bold: bool = False, halo: bool = False
) -> str:
    weight = ' font-weight="bold"' if bold else ""
    weight += ' stroke="#ffffff" stroke-width="4" paint-order="stroke"' if halo else ""
    return (
        f'<text x="{x:g}" y="{y + 0.35 * _TEXT:g}" text-anchor="{anchor}" fill="#000000"{weight} '
        f'xml:space="preserve">{html.escape(text)}</text>'
    )


def dot_of(machine: Drawn) -> str:
    """The same in the language of Graphviz."""
    lines = [f"digraph {_quoted(machine.name)} {{", "  node [shape=box, style=rounded];"]
    lines += [
        f"  {_quoted(one)}{' [peripheries=2]' if one in machine.outputs else ''};"
        for one in machine.states
    ]
    for states, written, reached in machine.transitions:
        for one in states:
            lines.append(
                f"  {_quoted(one)} -> {_quoted(reached)} [label={_quoted(_shown(written))}];"
            )
    return "\n".join([*lines, "}"]) + "\n"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
