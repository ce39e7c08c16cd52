"""Writes a result on a page, between two marks that say whose it is."""

from __future__ import annotations

from pathlib import Path

__all__ = ["write_between"]


def write_between(page: Path, mark: str, text: str) -> None:
    """Puts a text between ``<!-- mark: begin -->`` and ``<!-- mark: end -->``.

    Raises:
        ValueError: the page has no such marks.
    """
    opens, closes = f"<!-- {mark}: begin -->", f"<!-- {mark}: end -->"
    before, begin, rest = page.read_text().partition(opens)
    _, end, after = rest.partition(closes)
    if not begin or not end:
        raise ValueError(f"{page} has no place for it: {opens} and {closes}, each on its own line")
    page.write_text(f"{before}{opens}\n{text}\n{closes}{after}")
