"""``python -m bench compile-time [--json FILE] [--rounds N]``: how long an operator lets wait.

Of :mod:`bench.hundred_lines`, each in a process of its own: the first compile, with an empty cache
directory, and every later one, with the directory that the first has filled. The time is that of
the declaration and of the engine, without the import of specstream, which has a line of its own.
The least of the rounds counts: what else the machine does only adds to it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.report import print_table, progress
from specstream.tuning.machine import describe

ROOT = Path(__file__).parents[1]
CHILD = """
import time
start = time.perf_counter()
import specstream
imported = time.perf_counter()
from bench.hundred_lines import payments
declared = time.perf_counter()
specstream.Engine(payments, threads=2).close()
print(imported - start, declared - imported, time.perf_counter() - declared)
"""


@dataclass(frozen=True)
class Waited:
    """What one process has waited for, in seconds."""

    imported: float
    declared: float
    compiled: float


@dataclass(frozen=True)
class Line:
    """One line of the table.

    Attributes:
        seconds: the least of the rounds.
        target: what was asked for.
    """

    what: str
    seconds: float
    target: float

    @property
    def is_reached(self) -> bool:
        return self.seconds < self.target


def waited(cache: Path) -> Waited:
    """Declares and compiles the operator in a process of its own."""
    environment = os.environ | {"SPECSTREAM_CACHE_DIR": str(cache), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", CHILD]
    run = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return Waited(*map(float, run.stdout.split()))


def measure(rounds: int) -> list[Line]:
    """The import, the first compile and a compile from the cache."""
    first, later = [], []
    for number in range(rounds):
        progress(f"compile time: round {number + 1}")
        with tempfile.TemporaryDirectory(prefix="specstream-compile-") as folder:
            cache = Path(folder, "cache")
            first.append(waited(cache))
            later.append(waited(cache))
    progress("")
    return [
        Line("import specstream", min(one.imported for one in first + later), 0.30),
        Line("first compile", min(one.declared + one.compiled for one in first), 3.0),
        Line("from the cache", min(one.declared + one.compiled for one in later), 0.20),
    ]


def main() -> int:
    """Measures, prints the table, and writes the JSON file."""
    parser = argparse.ArgumentParser(prog="python -m bench compile-time", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was measured")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="of each; 5")
    arguments = parser.parse_args()
    if arguments.rounds < 1:
        parser.error("--rounds is at least 1")
    lines = measure(arguments.rounds)
    rows = [
        [
            line.what,
            f"{line.seconds:.2f} s",
            f"{line.target:.2f} s {'reached' if line.is_reached else 'MISSED'}",
        ]
        for line in lines
    ]
    print_table("An operator of a hundred lines, two threads", ("", "time", "target"), rows, (1,))
    if arguments.json:
        found = {"machine": describe(), "lines": [asdict(line) for line in lines]}
        arguments.json.write_text(json.dumps(found, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
