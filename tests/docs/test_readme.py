"""The README's quickstart runs as it stands."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).parents[2] / "README.md"


def test_the_quickstart_runs(tmp_path: Path) -> None:
    (quickstart,) = [
        block
        for block in re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
        if "import specstream" in block
    ]
    script = tmp_path / "quickstart.py"
    script.write_text(quickstart)
    run = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert "100000 bids" in run.stdout


def test_the_two_commands_come_first() -> None:
    text = README.read_text()
    assert text.index("make demo") < text.index("make test") < text.index("## ")
