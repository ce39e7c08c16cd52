"""What pages have in common that a measuring run writes: tables, sentences, what was expected."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from bench.chapter4.margin import Quartiles, above, shown
from bench.report import print_table
from specstream.figures.style import save

__all__ = [
    "Expectation",
    "compared",
    "disturbed",
    "duration",
    "expected",
    "measured_on",
    "print_expected",
    "table",
    "wrapped",
    "write_page",
]

WIDTH = 140


@dataclass(frozen=True)
class Expectation:
    """Something that was expected.

    Attributes:
        what: in words.
        bound: what the median is held against.
        least: it was to be at least that; False: at most.
        seen: first quartile, median, third quartile.
        because: what the numbers say where it was missed.
    """

    what: str
    bound: float
    least: bool
    seen: Quartiles
    because: str

    @property
    def holds(self) -> bool:
        return self.seen[1] >= self.bound if self.least else self.seen[1] <= self.bound


def wrapped(text: str, indent: str = "") -> str:
    return textwrap.fill(
        text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def table(*rows: Sequence[str]) -> str:
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([lines[0], "| --- " * len(rows[0]) + "|", *lines[1:]])


def disturbed(machine: Mapping[str, Any]) -> list[str]:
    """That others had the cores, where they had."""
    if machine["load"] < 0.75 * machine["cores"]:
        return []
    told = (
        f"**Provisional:** other processes had a load of {machine['load']:.0f} when this was "
        "measured. What two threads gain cannot be seen in it."
    )
    return [wrapped(told)]


def duration(nanoseconds: float) -> str:
    """A time with its unit.

    >>> [duration(value) for value in (5.25, 940.0, 1234.5, 98_765.0, 12_345_678.0)]
    ['5.2 ns', '940 ns', '1.2 µs', '98.8 µs', '12.3 ms']
    """
    if nanoseconds < 1_000:
        return f"{nanoseconds:.1f} ns" if nanoseconds < 100 else f"{nanoseconds:.0f} ns"
    if nanoseconds < 1e6:
        return f"{nanoseconds / 1e3:.1f} µs"
    return f"{nanoseconds / 1e6:.1f} ms"


def compared(one: Quartiles, other: Quartiles, what: str) -> str:
    if above(one, other):
        return f"faster than {what}"
    return f"slower than {what}" if above(other, one) else f"as fast as {what}"


def measured_on(machine: Mapping[str, Any]) -> str:
    """The machine and the versions."""
    told = ", ".join(f"{key} {value}" for key, value in machine.items() if key != "load")
    return wrapped(f"**Measured on:** {told}.")


def expected(
    found: Sequence[Expectation], form: Callable[[Expectation], str] = lambda one: "{:.2f}"
) -> str:
    """A table of what was expected and seen; below it, why what was missed was missed.

    Args:
        found: all of it.
        form: how the numbers of one are written.
    """
    rows: list[list[str]] = [["", "expected", "seen", ""]]
    for one in found:
        bound = f"{'at least' if one.least else 'at most'} {one.bound:g}"
        seen = shown(one.seen, form(one))
        rows.append([one.what, bound, seen, "yes" if one.holds else "**no**"])
    told = table(*rows)
    missed = [wrapped(f"- *{one.what}*: {one.because}.", "  ") for one in found if not one.holds]
    return "\n\n".join([told, "Where it was missed:", "\n".join(missed)]) if missed else told


def print_expected(found: Iterable[Expectation]) -> None:
    """The same on the terminal."""
    print_table(
        "What was expected",
        ("", "expected", "seen", "quartiles", ""),
        [
            [
                one.what,
                f"{'at least' if one.least else 'at most'} {one.bound:g}",
                f"{one.seen[1]:.3f}",
                f"{one.seen[0]:.3f} .. {one.seen[2]:.3f}",
                "reached" if one.holds else "MISSED",
            ]
            for one in found
        ],
        (1, 2),
    )


def write_page(folder: Path, name: str, data: str, picture: Figure, page: str) -> None:
    """A page with its picture and its data, which it says on the terminal."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(data)
    save(picture, folder / f"{name}.png")
    (folder / f"{name}.md").write_text(page)
    print(f"written: {folder / f'{name}.md'}, and data and picture beside it")
