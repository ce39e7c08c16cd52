"""What a user has to read has a bound, and its links lead to what is there."""

from __future__ import annotations

import runpy
from pathlib import Path

from support.pages import DOCS, ROOT, broken, words

MOST = 65_000
# Some 6,000 words that come out of docstrings, more with each operator.
GENERATED = {"catalogue.md"}
# For readers of the papers and for contributors; the changelog is included from elsewhere.
OTHERS = ("research", "contributing", "changelog.md")


def user_pages() -> list[Path]:
    return [path for path in DOCS.rglob("*.md") if path.relative_to(DOCS).parts[0] not in OTHERS]


def test_the_pages_of_users_are_short() -> None:
    counts = {path.relative_to(DOCS).as_posix(): words(path.read_text()) for path in user_pages()}
    total = sum(count for page, count in counts.items() if page not in GENERATED)
    longest = sorted(counts.keys() - GENERATED, key=lambda page: -counts[page])[:5]
    print(f"{total:,} words in {len(counts)} pages")
    assert total <= MOST, (
        f"{total:,} words, {total - MOST:,} too many; the longest pages: "
        + ", ".join(f"{page} ({counts[page]:,})" for page in longest)
    )


def test_words_are_counted_without_what_readers_do_not_see() -> None:
    text = "Two words.\n<!-- python\nhidden = 1\n-->\n| a | --- |\n```python\nx = 1\n```"
    assert words(text) == 6


def test_every_link_of_a_page_leads_to_a_file_and_a_heading() -> None:
    """Without building the site, which `test_site.py` looks through."""
    pages = [*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *(ROOT / "examples").rglob("*.md")]
    found = {path.relative_to(ROOT).as_posix(): broken(path) for path in pages}
    assert {page: links for page, links in found.items() if links} == {}


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A page\n\n[a](#a-page) [b](#b) [c](c.md) [d](https://d.org) `[e](e.md)`\n")
    assert broken(page) == ["#b", "c.md", "e.md"]


def test_old_addresses_lead_to_pages_and_hide_none() -> None:
    moved = runpy.run_path(str(DOCS / "conf.py"))["MOVED"]
    assert [new for new in moved.values() if not (DOCS / f"{new}.md").exists()] == []
    assert [old for old in moved if (DOCS / f"{old}.md").exists()] == []
