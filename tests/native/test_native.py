"""The C runtime on its own: what its programs check without Python."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

TESTS = Path(__file__).resolve().parents[2] / "stm_native" / "tests"


@pytest.mark.skipif(
    shutil.which("make") is None or shutil.which("cc") is None, reason="needs make and a C compiler"
)
def test_the_stepped_tests_of_the_runtime(tmp_path: Path) -> None:
    """Who runs, waits, aborts and commits when; under Address- and UndefinedBehaviorSanitizer."""
    command = ["make", "-C", str(TESTS), "tables", f"BUILD={tmp_path}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    passed = {line for line in done.stdout.splitlines() if line.endswith(": passed")}
    assert passed == {
        "boosted structures: passed",
        "containers: passed",
        "counters of an open job: passed",
        "deltas: passed",
        "early timers: passed",
        "early: passed",
        "faults: passed",
        "figure 4.4: passed",
        "hooks: passed",
        "interpreted: passed",
        "limits: passed",
        "memory: passed",
        "narrow elements: passed",
        "local lists, dicts and sets: passed",
        "longest horizon: passed",
        "look ahead: passed",
        "look: passed",
        "machine: passed",
        "no memory: passed",
        "objects: passed",
        "open job: passed",
        "order: passed",
        "profile: passed",
        "range writes: passed",
        "ranges: passed",
        "redo log: passed",
        "replay: passed",
        "retry queue: passed",
        "revalidation: passed",
        "running head: passed",
        "sequences: passed",
        "table 4.1: passed",
        "timers: passed",
        "watchdog: passed",
        "waking: passed",
    }
