"""The C runtime on its own: what its programs check without Python."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1] / "stm_native" / "tests"


@pytest.mark.skipif(
    shutil.which("make") is None or shutil.which("cc") is None, reason="needs make and a C compiler"
)
def test_the_eight_cases_of_table_4_1(tmp_path: Path) -> None:
    """Brito 2010, 4.2.1: who aborts, when and why, stepped; under Address- and UBSanitizer."""
    command = ["make", "-C", str(TESTS), "tables", f"BUILD={tmp_path}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "table 4.1: passed" in done.stdout
    assert "faults: passed" in done.stdout
