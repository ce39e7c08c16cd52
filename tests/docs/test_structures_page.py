"""The examples of docs/structures.md and docs/timers.md run, and print what they say."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGES = Path(__file__).parents[2] / "docs"


@pytest.mark.slow
@pytest.mark.parametrize("page", ["structures.md", "timers.md"])
def test_the_examples_print_what_they_say(page: str, tmp_path: Path) -> None:
    text = "\n".join(re.findall(r"```python\n(.*?)```", (PAGES / page).read_text(), re.DOTALL))
    expected = re.findall(r"# prints (.*)", text)
    assert len(expected) >= 4
    script = tmp_path / "examples.py"
    script.write_text(text)
    run = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines() == expected
