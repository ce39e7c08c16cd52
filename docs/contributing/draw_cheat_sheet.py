"""Draws cheat-sheet.pdf: the tables of cheat-sheet.md on one sheet of A4.

`make cheat-sheet` runs it after a change of the page; a test compares the two. It needs no browser:
the page is three columns of tables, whose lines are broken by the widths that the fonts of
matplotlib have.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from matplotlib.backends.backend_pdf import PdfPages
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.patches import Rectangle
from matplotlib.textpath import TextToPath

PAGE = Path(__file__).parents[1] / "cheat-sheet.md"
SHEET = PAGE.with_suffix(".pdf")

# Everything is in points.
WIDTH, HEIGHT = 842, 595  # A4, landscape
MARGIN, GAP, COLUMNS = 22, 14, 3
SIZE, LEADING, CODE_LEADING = 6.8, 8.3, 8.0
TITLE_SIZE = 12.0
COLUMN = (WIDTH - 2 * MARGIN - (COLUMNS - 1) * GAP) / COLUMNS
LEFT = 0.5 * COLUMN  # of a row at most, for what is typed
BLUE, INK, GREY = "#0072b2", "#1a1a1a", "#f0f3f6"
MONO = FontProperties(family="DejaVu Sans Mono", size=SIZE * 0.93)
TEXT = FontProperties(family="DejaVu Sans", size=SIZE)
BOLD = FontProperties(family="DejaVu Sans", size=SIZE + 1.2, weight="bold")
_MEASURE = TextToPath()

Piece = tuple[str, bool]  # what it says, and whether it is code


class Section(NamedTuple):
    """A heading, and the two cells of each row below it."""

    heading: str
    rows: list[tuple[str, str]]


def digest() -> str:
    """What the sheet says of the page that it was drawn from."""
    return hashlib.sha256(PAGE.read_bytes()).hexdigest()


def sections() -> list[Section]:
    """The tables of the page, each without its head."""
    _, *parts = re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)
    found = []
    for part in parts:
        heading, _, table = part.partition("\n")
        rows = re.findall(r"^\| (.+) \| (.+) \|$", table, re.MULTILINE)
        found.append(Section(re.sub(r"\[(.+?)\]\(.+?\)", r"\1", heading), rows[2:]))
    return found


def example() -> list[str]:
    """The lines of the program above the tables, without empty ones."""
    (code,) = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    return [line for line in code.splitlines() if line]


@cache
def width(text: str, is_code: bool) -> float:
    """How wide a text is, in points."""
    font = MONO if is_code else TEXT
    return float(_MEASURE.get_text_width_height_descent(text, font, ismath=False)[0])


def words(cell: str) -> Iterator[list[Piece]]:
    """The words of a cell, each up to a space: a comma stays with the code before it."""
    word: list[Piece] = []
    for number, part in enumerate(cell.replace("\\|", "|").split("`")):
        for text in re.findall(r"\S+\s*|\s+", part):
            word.append((text, number % 2 == 1))
            if text[-1].isspace():
                yield word
                word = []
    if word:
        yield word


def width_of(line: list[Piece]) -> float:
    """How wide pieces of text are, one behind the other."""
    return sum(width(text, is_code) for text, is_code in line)


def lines(cell: str, room: float) -> list[list[Piece]]:
    """A cell, broken into lines that fit.

    Raises:
        ValueError: a word is wider than the column.
    """
    broken: list[list[Piece]] = [[]]
    for word in words(cell):
        *first, (last, is_code) = word
        least = width_of([*first, (last.rstrip(), is_code)])
        if least > room:
            shown = "".join(text for text, _ in word)
            raise ValueError(f"cheat-sheet.md: {shown!r} does not fit into a column: shorten it")
        if width_of(broken[-1]) + least > room:
            broken.append([])
        broken[-1].extend(word)
    return broken


def draw() -> Figure:
    """The sheet.

    Raises:
        ValueError: the page has more than fits.
    """
    figure = Figure(figsize=(WIDTH / 72, HEIGHT / 72))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, WIDTH), ylim=(HEIGHT, 0))
    axes.axis("off")

    def write(x: float, y: float, line: list[Piece]) -> None:
        for text, is_code in line:
            font = MONO if is_code else TEXT
            axes.text(x, y, text, fontproperties=font, color=INK, va="baseline")
            x += width(text, is_code)

    axes.text(MARGIN, MARGIN + TITLE_SIZE - 2, "specstream", size=TITLE_SIZE, weight="bold")
    top = float(MARGIN + TITLE_SIZE + 6)
    for number, line in enumerate(example()):
        write(MARGIN, top + 6.2 + number * CODE_LEADING, [(line, True)])
    column, y = 0, top + len(example()) * CODE_LEADING + 6
    for section in sections():
        room = min(
            LEFT,
            max(
                width_of([piece for word in words(left) for piece in word])
                for left, _ in section.rows
            )
            + 8,
        )
        cells = [
            (lines(left, room - 6), lines(right, COLUMN - room - 2)) for left, right in section.rows
        ]
        heights = [max(len(left), len(right)) * LEADING + 1.6 for left, right in cells]
        if y + 13 + sum(heights) > HEIGHT - MARGIN:
            column, y = column + 1, top
        if column == COLUMNS or y + 13 + sum(heights) > HEIGHT - MARGIN:
            raise ValueError(f"cheat-sheet.md: {section.heading!r} no longer fits on the sheet")
        x = MARGIN + column * (COLUMN + GAP)
        axes.add_patch(Rectangle((x - 2, y), COLUMN + 4, 11, color=BLUE, linewidth=0))
        axes.text(x + 1, y + 8, section.heading, fontproperties=BOLD, color="white")
        y += 13
        for number, ((left, right), height) in enumerate(zip(cells, heights, strict=True)):
            if number % 2:
                axes.add_patch(Rectangle((x - 2, y), COLUMN + 4, height, color=GREY, linewidth=0))
            for column_at, broken in ((x, left), (x + room, right)):
                for at, pieces in enumerate(broken):
                    write(column_at, y + 6.6 + at * LEADING, pieces)
            y += height
        y += 6
    return figure


def save(path: Path) -> None:
    """Writes the sheet, with the digest of the page among its keywords, and no date."""
    keywords = {"Title": "specstream: cheat sheet", "Keywords": digest(), "CreationDate": None}
    with PdfPages(path, metadata=keywords) as pdf:
        pdf.savefig(draw())


if __name__ == "__main__":
    save(SHEET)
