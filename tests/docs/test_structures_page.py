"""The examples of docs/structures.md run, and print what they say."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "structures.md"


@pytest.mark.slow
def test_the_examples_print_what_they_say(tmp_path: Path) -> None:
    text = "\n".join(re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL))
    expected = re.findall(r"# prints (.*)", text)
    assert len(expected) >= 5
    script = tmp_path / "examples.py"
    script.write_text(text)
    run = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines() == expected
