"""A recipe is one program that prints something, and a page; the index has them all."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "cookbook"
INDEX = (FOLDER / "index.md").read_text()
RECIPES = sorted(path.name for path in FOLDER.glob("*.md") if path.name != "index.md")


def test_the_index_has_every_recipe() -> None:
    assert len(RECIPES) >= 12
    table = re.findall(r"^\| \[.+\]\((.+\.md)\) \| .+\? \| .+ \|$", INDEX, re.MULTILINE)
    assert sorted(table) == RECIPES
    (tree,) = re.findall(r"```\{toctree\}\n:hidden:\n\n(.*?)```", INDEX, re.DOTALL)
    assert [f"{name}.md" for name in tree.split()] == table


@pytest.mark.parametrize("name", RECIPES)
def test_the_program_comes_first_and_is_whole(name: str) -> None:
    """A sentence, the program with what it prints, and at most two paragraphs."""
    page = re.sub(r"^<!-- python\n.*?^-->\n\n", "", (FOLDER / name).read_text(), flags=re.M | re.S)
    before, program, after = re.split(r"^```(?:python)?\n", page, flags=re.MULTILINE)
    assert len(before.split("\n\n")) == 3, "title, sentence, and the empty end"
    assert re.search(r"^import specstream as ss$", program, re.MULTILINE)
    assert re.search(r"^# prints ", program, re.MULTILINE)
    assert len(program.splitlines()) <= 90
    paragraphs = after.strip().split("\n\n")
    assert len(paragraphs) <= 2
    assert "](" in after, "a link to more"
