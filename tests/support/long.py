"""Runs the tests marked ``long``, and writes the result on the page of evidence.

    python -m support.long [pytest's arguments]

The page gets the date, the commit, the machine and the counts, also of a run that fails. With
arguments of pytest's, which may select tests, nothing is written.
"""

from __future__ import annotations

import datetime
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from specstream.tuning.machine import cores, processor
from support.evidence import write_between

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "research" / "evidence.md"
COMMAND = [sys.executable, "-m", "pytest", "-n", "2", "--dist", "worksteal", "-m", "long"]


def output_of(*command: str) -> str:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def counts_of(summary: str) -> Counter[str]:
    """
    >>> counts_of("== 2 failed, 4103 passed, 7 skipped in 61.00s (0:01:01) ==")["passed"]
    4103
    """
    found = re.findall(r"(\d+) (passed|failed|errors?|skipped)", summary)
    return Counter({word.rstrip("s"): int(count) for count, word in found})


def main(arguments: list[str]) -> int:
    began = time.monotonic()
    last = ""
    with subprocess.Popen(
        [*COMMAND, *arguments], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        for line in running.stdout:
            print(line, end="", flush=True)
            last = line.strip() or last
    if not arguments:
        commit = output_of("git", "rev-parse", "--short", "HEAD").strip()
        minutes = round((time.monotonic() - began) / 60)
        counts = ", ".join(f"{count} {word}" for word, count in counts_of(last).items())
        machine = f"{cores()} cores of {processor()}"
        today = datetime.date.today()
        text = f"{today}, commit {commit}, {machine}: {counts}, in {minutes} minutes."
        write_between(PAGE, "long", text)
    return running.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
