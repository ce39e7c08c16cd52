"""Every example of the documentation runs.

The examples of a page are one program, run from top to bottom in a process and a directory of its
own. ``# prints`` behind a line says what that line prints; the page has all that is printed, or
nothing of it. What an example needs that the page does not show (an operator of before, a table, a
session) stands in a comment of the page, ``<!-- python``.

A page of cells, ``{code-cell}``, is a notebook, which the build of the site runs (`test_site.py`).
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCKS = re.compile(r"^(```python|<!-- python)\n(.*?)^(?:```|-->)$", re.DOTALL | re.MULTILINE)
# These have tests of their own, which look at more than what is printed.
ELSEWHERE = {"docs/guides/operators.md", "docs/guides/containers.md"}
# Of those that start a Spark, these are run each day.
DAILY = {
    *("README.md", "docs/guides/out-of-order.md", "docs/guides/production.md"),
    *("docs/guides/rules.md", "docs/guides/spark.md"),
}
CELL = re.compile(r"^```\{code-cell\} ipython3$", re.MULTILINE)
HEAD = ROOT / "tests" / "docs" / "session_of_pages.py"


def every() -> list[Path]:
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]


def pages() -> list[str]:
    found = [path for path in every() if "```python" in path.read_text()]
    return sorted(str(path.relative_to(ROOT)) for path in found)


def program(page: str) -> str:
    return "\n".join(code for _, code in BLOCKS.findall((ROOT / page).read_text()))


def of_page(page: str) -> object:
    marks = [pytest.mark.slow]
    if "session_of_pages" in program(page):
        marks.append(pytest.mark.spark)
        if page not in DAILY:
            marks.append(pytest.mark.long)
    return pytest.param(page, marks=marks)


@pytest.mark.parametrize("page", [of_page(page) for page in pages() if page not in ELSEWHERE])
def test_the_examples_of_a_page_run(page: str, tmp_path: Path) -> None:
    code = program(page)
    shown = len(re.findall(r"^```python$", (ROOT / page).read_text(), re.MULTILINE))
    assert shown == sum(
        kind == "```python" for kind, _ in BLOCKS.findall((ROOT / page).read_text())
    )
    script = tmp_path / "examples.py"
    script.write_text(code)
    paths = os.pathsep.join([str(HEAD.parent), os.environ.get("PYTHONPATH", "")])
    run = subprocess.run(
        [sys.executable, str(script)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert run.returncode == 0, run.stderr
    expected = re.findall(r"# prints (.*)", code)
    if expected:
        assert run.stdout.splitlines() == expected


def test_every_example_is_python_that_runs() -> None:
    """None is hidden from this test by another name of the language."""
    languages = {
        name
        for page in every()
        for name in re.findall(r"^```([\w{].*)$", page.read_text(), re.MULTILINE)
    }
    assert {name for name in languages if not name.startswith("{")} <= {
        "python",
        "sh",
        "text",
        "bash",
    }


def test_every_cell_is_of_a_notebook_that_the_site_runs() -> None:
    notebooks = [page for page in every() if CELL.search(page.read_text())]
    assert ROOT / "docs" / "tutorial.md" in notebooks
    for page in notebooks:
        text = page.read_text()
        assert text.startswith("---\nfile_format: mystnb\nkernelspec:\n"), page
        assert "```python" not in text, f"{page}: a block that no notebook runs"
        # Cells that stand inside something else are none; tags can leave one out, or let it raise.
        assert len(CELL.findall(text)) == text.count("{code-cell}"), page
        assert not re.search("skip-execution|raises-exception", text), page
    settings = (ROOT / "docs" / "conf.py").read_text()
    assert 'nb_execution_mode = "force"' in settings
    assert "nb_execution_raise_on_error = True" in settings
