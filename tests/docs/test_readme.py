"""The README's quickstart runs as it stands, and PyPI shows nothing of it that leads nowhere."""

from __future__ import annotations

import ast
import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"


# It is part of the page that `test_pages.py` runs every day.
@pytest.mark.long
def test_the_quickstart_prints_what_it_says(tmp_path: Path) -> None:
    (quickstart,) = [
        block
        for block in re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
        if "import specstream" in block
    ]
    script = tmp_path / "quickstart.py"
    script.write_text(quickstart)
    run = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines() == re.findall(r"# prints (.*)", quickstart)
    assert run.stdout


def test_what_it_is_comes_first_and_then_the_two_commands() -> None:
    what, quickstart = README.read_text().split("## Quickstart")
    assert "import specstream" in what
    assert "make " not in what
    commands = re.findall(r"```sh\n(.*?)```", quickstart, re.DOTALL)[0].splitlines()
    assert [line.split("#")[0].strip() for line in commands] == ["make demo", "make test"]


def test_what_it_is_takes_a_sentence_and_a_page() -> None:
    what = README.read_text().split("## Quickstart")[0]
    sentence = what.split("\n\n")[1]
    assert sentence.count(".") == 1
    assert len(sentence.split()) <= 25
    assert (
        what.index("import specstream") < what.index("ledger.png") < what.index("specstream run p")
    )
    prose = re.sub(r"```.*?```", "", what, flags=re.DOTALL)
    assert len(prose.splitlines()) < 35


def test_the_program_is_that_of_the_example_whose_picture_is_shown() -> None:
    code = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)[0]
    example = (ROOT / "examples" / "ledger" / "ledger.py").read_text()

    def of(text: str) -> list[str]:
        nodes = {one.name: one for one in ast.parse(text).body if hasattr(one, "name")}
        return [ast.dump(without_hints(nodes[name])) for name in ("receipt", "Bank", "transfers")]

    assert of(code) == of(example)


def without_hints(node: ast.AST) -> ast.AST:
    for one in ast.walk(node):
        if isinstance(one, ast.FunctionDef):
            one.returns = None
        if isinstance(one, ast.arg):
            one.annotation = None
    return node


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "SECURITY.md"])
def test_every_link_leads_to_a_file(page: str) -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", (ROOT / page).read_text())
    assert targets
    assert [target for target in targets if not (ROOT / target).exists()] == []


def test_what_is_cited_is_this_project_and_the_dissertation_that_the_readme_names() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert (cited["title"], cited["license"]) == (project["name"], project["license"])
    assert "version" not in cited, "it would be said in two places"
    (thesis,) = (one for one in cited["references"] if one["type"] == "thesis")
    (author,) = thesis["authors"]
    by = f"{author['given-names']} {author['family-names']}, *{thesis['title']}*"
    assert by in README.read_text()
    assert str(thesis["year"]) in README.read_text()


def test_an_index_shows_no_link_and_no_picture_of_files_that_it_has_not() -> None:
    shown = runpy.run_path(str(ROOT / "setup.py"))["for_pypi"](README.read_text())
    html = MarkdownIt("gfm-like", {"linkify": False}).render(shown)
    targets = re.findall(r"""(?:href|src)\s*=\s*["']([^"']*)""", html)
    assert [target for target in targets if not target.startswith("https://")] == []
    assert "<!--" not in shown
    assert "should I use it?" in shown
    without_comments = re.sub(r"<!--.*?-->", "", README.read_text(), flags=re.DOTALL)
    words = [line for line in without_comments.splitlines() if "](" not in line]
    assert set(words) <= set(shown.splitlines())
