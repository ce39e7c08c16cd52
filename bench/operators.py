"""``python -m bench operators [--json FILE] [--quick] [--only NAME]``.

The ready operators and the loads of the literature: speculation against the plain operator, locks
and the sequential check.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from bench.harness import BASELINE, Effort, Measured, Result, measure
from bench.report import print_table, progress
from bench.workloads import Workload, all_workloads
from specstream.tuning.machine import describe

FULL = Effort(rounds=21, seconds=0.05, trials=5)
QUICK = Effort(rounds=5, seconds=0.015, trials=2)


def main() -> int:
    """Measures, prints one table per workload, and writes the JSON file."""
    parser = argparse.ArgumentParser(prog="python -m bench operators", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was measured")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds")
    parser.add_argument(
        "--only", action="append", metavar="NAME", help="workloads whose name contains NAME"
    )
    arguments = parser.parse_args()
    effort = QUICK if arguments.quick else FULL

    def wanted(name: str) -> bool:
        return not arguments.only or any(part in name for part in arguments.only)

    about = describe()
    print(", ".join(f"{name} {value}" for name, value in about.items()))
    print(f"Speed relative to the {BASELINE} clone in the same round: more is faster.")
    workloads = all_workloads(wanted)
    if not workloads:
        parser.error(f"no workload is called {' or '.join(arguments.only)}")
    measured = []
    for workload in workloads:
        found = measure(workload, effort, progress)
        progress("")
        _print(workload, found)
        measured.append(
            {
                "name": workload.name,
                "title": workload.title,
                **asdict(found),
            }
        )
    if arguments.json:
        arguments.json.write_text(
            json.dumps({"machine": about, "effort": vars(effort), "workloads": measured}, indent=2)
            + "\n"
        )
    return 0


COLUMNS = ("", "speed", "quartiles", "ns/event", "aborts", "setting", "target")


def _cells(result: Result) -> list[str]:
    target, measured = "", result.measured
    if result.target is not None:
        verdict = "reached" if measured.speed >= result.target else "MISSED"
        target = f"{result.target:.2f} {verdict}"
    return [
        result.contestant,
        f"{measured.speed:.3g}",
        f"{measured.low:.3g} .. {measured.high:.3g}",
        f"{measured.nanoseconds:,.0f}",
        "" if measured.aborts is None else f"{measured.aborts:.1%}",
        result.setting,
        target,
    ]


def _print(workload: Workload, found: Measured) -> None:
    title = f"{workload.title} (two independent threads: {found.capacity:.2f})"
    print_table(title, COLUMNS, [_cells(result) for result in found.results], (1, 2, 3, 4))


if __name__ == "__main__":
    sys.exit(main())
