"""The README's quickstart runs as it stands, and PyPI shows nothing of it that leads nowhere."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"


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


def test_the_two_commands_come_first() -> None:
    text = README.read_text()
    assert text.index("make demo") < text.index("make test") < text.index("## ")


def test_every_link_leads_to_a_file() -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", README.read_text())
    assert len(targets) > 20
    assert [target for target in targets if not (ROOT / target).exists()] == []


def test_pypi_shows_no_link_and_no_picture_of_files_that_it_has_not() -> None:
    shown = runpy.run_path(str(ROOT / "setup.py"))["for_pypi"](README.read_text())
    assert "](docs/" not in shown
    assert "](" not in shown.replace("](https://", "")
    assert "should I use it?" in shown
    words = [line for line in README.read_text().splitlines() if "](" not in line]
    assert set(words) <= set(shown.splitlines())
