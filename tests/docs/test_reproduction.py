"""The index of the papers names pages, commands and verdicts that there are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml
from support.pages import ROOT, broken

from bench.chapter4.experiments import EXPERIMENTS
from bench.registry import BENCHMARKS

PAGE = ROOT / "docs" / "research" / "index.md"
VERDICTS = ("equal", "differs: ", "not yet", "left out: ")
REPRODUCED = ("equal", "differs: ")


class Row(NamedTuple):
    item: str
    shows: str
    page: str
    command: str
    verdict: str


def papers() -> dict[str, list[Row]]:
    """The rows of each paper, by its heading."""
    parts = re.split(r"^### (.*)$", PAGE.read_text(), flags=re.MULTILINE)[1:]
    return {title: list(_rows(text)) for title, text in zip(parts[::2], parts[1::2], strict=True)}


def _rows(text: str) -> Iterator[Row]:
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and cells[0] not in {"item", "---"}:
            yield Row(*cells)


ROWS = [row for rows in papers().values() for row in rows]


def exists(command: str) -> bool:
    """Whether a command of the index names a target, a benchmark or tests that are there."""
    program, *rest = command.split()
    if program == "pytest":
        return bool(rest) and all((ROOT / path).exists() for path in rest)
    if program == "make":
        folder = Path(rest[rest.index("-C") + 1]) if "-C" in rest else Path()
        makefile = (ROOT / folder / "Makefile").read_text()
        return re.search(rf"^{re.escape(rest[-1])}:", makefile, re.MULTILINE) is not None
    if rest[:2] == ["-m", "bench"]:
        name, *operands = rest[2:]
        experiments = {experiment.name for experiment in EXPERIMENTS}
        return name in BENCHMARKS and (
            set(operands) <= experiments if name == "chapter4" else not operands
        )
    return False


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.item)
def test_each_item_has_a_verdict_and_its_command_exists(row: Row) -> None:
    assert row.verdict.startswith(VERDICTS)
    if row.verdict.startswith(REPRODUCED):
        assert row.page, "nothing shows it"
    if row.verdict.startswith("differs: "):
        assert row.command
    for command in re.findall(r"`([^`]+)`", row.command):
        assert exists(command), command


def test_each_page_that_is_named_is_there() -> None:
    assert broken(PAGE) == []


@pytest.mark.parametrize(
    "command",
    ["make nothing", "python -m bench nothing", "python -m bench chapter4 figure_9_9", "pytest no"],
)
def test_a_command_that_is_not_there_is_found(command: str) -> None:
    assert not exists(command)


def test_each_experiment_of_chapter_4_is_in_the_index() -> None:
    named = " ".join(row.command for row in ROWS)
    assert [one.name for one in EXPERIMENTS if f" {one.name}`" not in named] == []


def test_the_papers_are_those_that_are_cited() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())["references"]
    assert len(cited) == len(papers()) == 5
    for paper in cited:
        assert f"*{paper['title']}*" in PAGE.read_text()
        names = [author["family-names"] for author in paper["authors"]]
        assert all(name in PAGE.read_text() for name in names)
        assert str(paper["year"]) in PAGE.read_text()
