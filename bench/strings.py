"""``python -m bench strings [--json FILE] [--rounds N] [--rows N]``: what strings cost.

The numbers of a column of 20-byte strings, in turns with what pyarrow's ``dictionary_encode`` takes
for the same column: the least that has to be done where strings become numbers. New strings, each
once, go into an empty table; known ones are some thousand that are in it already; and a column that
is not entered is compared with four literals, two of which are as long. The least of the rounds
counts: what else the machine does only adds to it.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa

from bench.report import print_table, progress
from specstream.columns.strings import StringTable
from specstream.columns.unentered import numbers_of
from specstream.tuning.machine import describe

KNOWN = 10_000
LITERALS = ("BUY", "SELL", "a literal of 20 byte", "another of that size")


@dataclass(frozen=True)
class Line:
    """One line of the table.

    Attributes:
        codes: nanoseconds for the number of a string, the least of the rounds.
        encode: the same of ``dictionary_encode``.
        target: the ratio that was asked for.
    """

    what: str
    codes: float
    encode: float
    target: float

    @property
    def ratio(self) -> float:
        return self.codes / self.encode


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _least(
    what: str, column: pa.Array, numbered: Callable[[], Callable[[], object]], rounds: int
) -> tuple[float, float]:
    """Nanoseconds of a string: of what ``numbered`` makes ready, and of ``dictionary_encode``."""
    codes, encode = [], []
    for number in range(rounds):
        progress(f"strings: {what}, round {number + 1}")
        work = numbered()
        encode.append(_seconds(column.dictionary_encode))
        codes.append(_seconds(work))
    return min(codes) / len(column) * 1e9, min(encode) / len(column) * 1e9


def measure(rounds: int, rows: int) -> list[Line]:
    """New strings, and known ones, entered and not."""
    new = pa.array([f"order-{number:014}" for number in range(rows)])
    known = pa.array([f"order-{number % KNOWN:014}" for number in range(rows)])
    met = StringTable()
    met.add_all(known)
    has_lanes = "avx2" in Path("/proc/cpuinfo").read_text()
    kinds: list[tuple[str, pa.Array, Callable[[], Callable[[], object]], float]] = [
        ("new", new, lambda: partial(StringTable().add_all, new), 1.0 if has_lanes else 1.5),
        ("known", known, lambda: partial(met.add_all, known), 1.0),
        ("new, not entered", new, lambda: partial(numbers_of, new, LITERALS), 0.2),
        ("known, not entered", known, lambda: partial(numbers_of, known, LITERALS), 0.2),
    ]
    lines = [
        Line(what, *_least(what, column, work, rounds), target)
        for what, column, work, target in kinds
    ]
    progress("")
    return lines


def main() -> int:
    """Measures, prints the table, and writes the JSON file."""
    parser = argparse.ArgumentParser(prog="python -m bench strings", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was measured")
    parser.add_argument("--rounds", type=int, default=7, metavar="N", help="of each; 7")
    parser.add_argument(
        "--rows", type=int, default=1_000_000, metavar="N", help="of a column; 10^6"
    )
    arguments = parser.parse_args()
    if arguments.rounds < 1 or arguments.rows < 1:
        parser.error("--rounds and --rows are at least 1")
    lines = measure(arguments.rounds, arguments.rows)
    rows = [
        [
            line.what,
            f"{line.codes:.0f} ns",
            f"{line.encode:.0f} ns",
            f"{line.ratio:.2f}",
            f"{line.target:.1f} {'reached' if line.ratio <= line.target else 'MISSED'}",
        ]
        for line in lines
    ]
    print_table(
        f"Numbers of {arguments.rows:,} strings of 20 bytes, for each",
        ("strings", "numbers", "dictionary_encode", "ratio", "target"),
        rows,
        (1, 2, 3),
    )
    if arguments.json:
        told = [asdict(line) | {"ratio": line.ratio} for line in lines]
        found = {"machine": describe(), "lines": told}
        arguments.json.write_text(json.dumps(found, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
