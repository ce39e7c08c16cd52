"""The site of docs/ builds without a warning, and every public name is in its reference."""

from __future__ import annotations

import fcntl
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from support.public import MODULES, names_of

import specstream as ss
from specstream import predictors

ROOT = Path(__file__).parents[2]
TUTORIAL = ROOT / "docs" / "tutorial.md"

# The tutorial is a notebook, which the build runs; it starts Spark.
pytestmark = [pytest.mark.slow, pytest.mark.spark]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built by the first of the processes that share the tests."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return build(tmp_path_factory.mktemp("site"))
    built = tmp_path_factory.getbasetemp().parent / "site"
    with built.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return built if (built / "objects.inv").exists() else build(built)


def build(target: Path) -> Path:
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html"]
    done = subprocess.run(
        [*command, str(ROOT / "docs"), str(target)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return target


class _Page(HTMLParser):
    """The places of a page, and where its links and pictures lead."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.places: set[str] = set()
        self.targets: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value is None:
                continue
            if name == "id":
                self.places.add(value)
            elif (tag, name) in {("a", "href"), ("img", "src")}:
                self.targets.append(value)


def targets(path: Path, page: _Page, site: Path) -> Iterator[tuple[Path, str]]:
    for target in page.targets:
        parts = urlsplit(target)
        if parts.scheme or parts.netloc:
            continue
        file = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        yield file, unquote(parts.fragment)


def test_every_link_and_picture_is_there(site: Path) -> None:
    pages = {path.resolve(): _Page(path.read_text()) for path in site.rglob("*.html")}
    broken = []
    for path, page in pages.items():
        for file, place in targets(path, page, site):
            there = file.exists() and (
                not place or file not in pages or place in pages[file].places
            )
            if not there:
                broken.append(f"{path.relative_to(site.resolve())}: {file.name}#{place}")
    assert len(pages) > 20
    assert not broken


def test_every_page_is_reached_from_the_first_one(site: Path) -> None:
    pages = {path.resolve(): _Page(path.read_text()) for path in site.rglob("*.html")}
    first = (site / "index.html").resolve()
    seen, todo = {first}, [first]
    while todo:
        path = todo.pop()
        for file, _ in targets(path, pages[path], site):
            if file in pages and file not in seen:
                seen.add(file)
                todo.append(file)
    written = {site.resolve() / path.relative_to(ROOT / "docs") for path in sources()}
    assert {path.with_suffix(".html") for path in written} <= seen


def sources() -> Iterator[Path]:
    for pattern in ("*.md", "*.ipynb"):
        yield from (ROOT / "docs").rglob(pattern)


def test_the_tutorial_was_run_and_is_offered_as_a_notebook(site: Path) -> None:
    (notebook,) = site.glob("_downloads/*/tutorial.ipynb")
    assert notebook.resolve() in {
        file for file, _ in targets(site / "tutorial.html", _Page(text_of(site)), site)
    }
    content = json.loads(notebook.read_text())
    cells = [cell for cell in content["cells"] if cell["cell_type"] == "code"]
    assert len(cells) == len(re.findall(r"^```\{code-cell\}", TUTORIAL.read_text(), re.MULTILINE))
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    shown = [
        said.rstrip("\n")
        for cell in cells
        for output in cell["outputs"]
        if output["output_type"] == "stream" and output["name"] == "stdout"
        for said in "".join(output["text"]).splitlines()
    ]
    # Whatever it compares is the same.
    assert not any("False" in said for said in shown)
    assert sum(said.endswith("True") for said in shown) == 7
    assert shown[-1] == "True"


def test_the_tutorial_shows_objects_as_tables_and_nothing_of_the_machine(site: Path) -> None:
    page = text_of(site)
    for title in ("State Desk", "Engine of operator review, open", "Profile of operator review"):
        assert f"<strong>{title}</strong>" in page
    assert "WARN" not in page


def text_of(site: Path) -> str:
    return (site / "tutorial.html").read_text()


def test_the_reference_has_every_public_name(site: Path) -> None:
    text = "".join(path.read_text() for path in (site / "reference").glob("*.html"))
    documented = set(re.findall(r'id="(specstream\.[\w.]+)"', text))
    for module in (ss, predictors, *MODULES):
        assert names_of(module) <= documented, names_of(module) - documented
