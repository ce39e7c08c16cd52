"""What tests ask of the pages of the documentation: their words, their headings, their links."""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["DOCS", "ROOT", "broken", "words"]

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_FENCE = re.compile(r"(`{3,})(.*)")
_LINK = re.compile(r"\]\(([^)\s]+)\)|^(?::img-top: |```\{(?:image|figure)\} )(\S+)$", re.MULTILINE)


def words(text: str) -> int:
    """Words of prose, tables and code; what a comment hides from readers does not count."""
    return sum(1 for word in _COMMENT.sub("", text).split() if re.search(r"\w", word))


def _without_code(text: str) -> str:
    """A page without its blocks of code; the head of a directive stays, as it names pictures."""
    fence, kept = "", []
    for line in text.splitlines():
        found = _FENCE.match(line)
        if not fence and found:
            fence = found[1]
            kept.append(line)
        elif fence:
            fence = "" if line == fence else fence
        else:
            kept.append(line)
    return "\n".join(kept)


def _anchors(path: Path) -> set[str]:
    """The places of a page: its headings, as repositories and the site name them."""
    found = set()
    for heading in re.findall(r"^#{1,6} (.*)$", _without_code(path.read_text()), re.MULTILINE):
        text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        for dropped in (r"[^\w\- ]", r"[^\w\- .]"):
            found.add(re.sub(dropped, "", text).replace(" ", "-").replace(".", "-"))
    return found


def broken(path: Path) -> list[str]:
    """The links and pictures of a page that lead to no file, or to no heading of one."""
    missing = []
    for link, picture in _LINK.findall(_without_code(path.read_text())):
        file, _, place = (link or picture).partition("#")
        if re.match(r"[a-z]+:", file):
            continue
        target = (path.parent / file).resolve() if file else path
        there = target.exists() and (
            not place or target.suffix != ".md" or place in _anchors(target)
        )
        # This page shows another file, CONTRIBUTING.md, with its headings.
        if not there and target != DOCS / "contributing" / "index.md":
            missing.append(link or picture)
    return missing
