"""Every example of the documentation runs.

The examples of a page are one program, run from top to bottom in a process and a directory of its
own. ``# prints`` behind a line says what that line prints; the page has all that is printed, or
nothing of it. What an example needs that the page does not show (an operator of before, a table, a
session) stands in a comment of the page, ``<!-- python``.
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
HEAD = ROOT / "tests" / "docs" / "session_of_pages.py"


def pages() -> list[str]:
    every = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    found = [path for path in every if "```python" in path.read_text()]
    return sorted(str(path.relative_to(ROOT)) for path in found)


def program(page: str) -> str:
    return "\n".join(code for _, code in BLOCKS.findall((ROOT / page).read_text()))


def of_page(page: str) -> object:
    marks = [pytest.mark.slow]
    if "session_of_pages" in program(page):
        marks.append(pytest.mark.spark)
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
    every = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    languages = {
        name
        for page in every
        for name in re.findall(r"^```([\w{].*)$", page.read_text(), re.MULTILINE)
    }
    assert {name for name in languages if not name.startswith("{")} <= {
        "python",
        "sh",
        "text",
        "bash",
    }
