"""Every link that leads out of the documentation is in one list; no network is used."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
LIST = ROOT / "docs" / "contributing" / "index.md"
FENCE = re.compile(r"(`{3,}|:{3,})(.*)")
ASIDE = re.compile(r"<!--.*?-->|`[^`\n]+`", re.DOTALL)
URL = re.compile(r"https?://[^\s)>\]\"'|]+")


def prose(text: str) -> str:
    """A page without its blocks of code; what directives hold stays."""
    opened: list[tuple[str, bool]] = []  # how each fence began, and whether code is in it
    kept = []
    for line in text.splitlines():
        fence = FENCE.match(line)
        if fence and opened and fence[1].startswith(opened[-1][0]) and not fence[2]:
            opened.pop()
        elif fence and not (opened and opened[-1][1]):
            opened.append((fence[1], not fence[2].startswith("{")))
        elif not any(is_code for _, is_code in opened):
            kept.append(line)
    return ASIDE.sub("", "\n".join(kept))


def links_of(text: str) -> set[str]:
    """The links of a page; addresses in code are examples, and lead nowhere."""
    return {url.rstrip(".,;:") for url in URL.findall(prose(text))}


def listed() -> set[str]:
    return links_of(LIST.read_text().partition("## Links that lead out\n")[2])


def found() -> dict[str, set[str]]:
    """The files in which each link is: the pages, and docstrings, which the reference shows."""
    files = [*ROOT.glob("*.md"), *ROOT.glob("*.cff")]
    for folder, pattern in (("docs", "*.md"), ("docs", "*.ipynb"), ("specstream", "*.py")):
        files += (ROOT / folder).rglob(pattern)
    where = defaultdict(set)
    for file in {*files, *(ROOT / "operators").rglob("*.py")} - {LIST}:
        for link in links_of(file.read_text()):
            where[link].add(file.relative_to(ROOT).as_posix())
    return where


def test_every_link_that_leads_out_is_listed_and_no_other() -> None:
    where = found()
    assert {link: files for link, files in where.items() if link not in listed()} == {}
    assert listed() - set(where) == set()


PAGE = """
See [a](https://a.org/x), <https://b.org>.
```sh
curl http://c.org
```
```{note}
In a directive: https://d.org.
```
`http://e.org` and https://f.org
```
$ curl http://g.org
```
<!-- python
"http://h.org"
-->
"""


def test_links_are_found_in_text_and_not_in_code() -> None:
    letters = {link.removeprefix("https://")[0] for link in links_of(PAGE)}
    assert letters == {"a", "b", "d", "f"}
