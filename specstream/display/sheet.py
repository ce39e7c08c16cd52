"""A sheet: what an object says of itself, as lines of text and as HTML for notebooks.

The HTML has no colours and no style sheet, so that it takes those of the notebook, dark or light.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

__all__ = ["Sheet", "table"]

Row = Sequence[str]


@dataclass(frozen=True)
class Sheet:
    """What an object says of itself.

    Attributes:
        title: what it is.
        facts: rows of texts; the first of each is what it is about.
        head: names of the columns of ``facts``; without, there are none.
        notes: sentences below.
        more: further rows, for notebooks alone, under a heading: their head, then the rows.
        opened: whether these are seen at once, and not when they are asked for.

    >>> sheet = Sheet("Basket", [("apples", "3"), ("pears", "<none>")])
    >>> print(sheet.text())
    Basket
      apples  3
      pears   <none>
    >>> "pears</th><td style='text-align:left'>&lt;none&gt;</td>" in sheet.html()
    True
    """

    title: str
    facts: Sequence[Row]
    head: Row = ()
    notes: Sequence[str] = ()
    more: tuple[str, Sequence[Row]] | None = None
    opened: bool = False

    def text(self) -> str:
        """A line for the title, one for each fact and note."""
        widths = [max(map(len, column)) for column in zip(*self.facts, strict=True)]
        rows = [
            "  " + "  ".join(map(str.ljust, row, widths)).rstrip() for row in map(list, self.facts)
        ]
        return "\n".join([self.title, *rows, *(f"  {note}" for note in self.notes)])

    def html(self) -> str:
        """The same for a notebook: tables, lists, nothing that runs."""
        parts = [f"<div><strong>{html.escape(self.title)}</strong>"]
        if self.facts:
            parts.append(table(self.head, self.facts, named=True))
        if self.more is not None and len(self.more[1]) > 1:
            head, *rows = self.more[1]
            parts.append("<details open>" if self.opened else "<details>")
            parts.append(f"<summary>{html.escape(self.more[0])}</summary>")
            parts.append(f"{table(head, rows)}</details>")
        if self.notes:
            parts.append("<ul>")
            parts += [f"<li>{html.escape(note)}</li>" for note in self.notes]
            parts.append("</ul>")
        return "".join([*parts, "</div>"])


def table(head: Row, rows: Iterable[Row], *, named: bool = False) -> str:
    """A table in HTML, of texts, which are escaped.

    Args:
        head: names of the columns; empty: none are shown.
        rows: a text for each column.
        named: the first text of each row is its name.
    """
    first = "th" if named else "td"
    top = f"<thead><tr>{_cells(head, 'th', 'th')}</tr></thead>" if head else ""
    body = "".join(f"<tr>{_cells(row, first, 'td')}</tr>" for row in rows)
    return f"<table>{top}<tbody>{body}</tbody></table>"


def _cells(row: Row, first: str, others: str) -> str:
    return "".join(
        f"<{of} style='text-align:left'>{html.escape(text)}</{of}>"
        for of, text in zip([first, *[others] * (len(row) - 1)], row, strict=True)
    )
