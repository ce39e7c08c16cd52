"""``python -m bench [--json FILE] [--quick] [--only NAME]``."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from bench.harness import BASELINE, Effort, Measurement, Result, machine, measure, to_dict
from bench.report import print_table, progress
from bench.workloads import Workload, all_workloads

FULL = Effort(rounds=21, seconds=0.05, trials=5)
QUICK = Effort(rounds=5, seconds=0.015, trials=2)


def main() -> int:
    """Measures, prints one table per workload, and writes the JSON file."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to a file")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds")
    parser.add_argument(
        "--only", action="append", metavar="NAME", help="workloads whose name contains NAME"
    )
    arguments = parser.parse_args()
    effort = QUICK if arguments.quick else FULL

    def wanted(name: str) -> bool:
        return not arguments.only or any(part in name for part in arguments.only)

    about = machine()
    print(", ".join(f"{name} {value}" for name, value in about.items()))
    print(f"Speed relative to the {BASELINE} clone in the same round: more is faster.")
    workloads = all_workloads(wanted)
    if not workloads:
        parser.error(f"no workload is called {' or '.join(arguments.only)}")
    measured = []
    for workload in workloads:
        measurement = measure(workload, effort, progress)
        progress("")
        _print(workload, measurement)
        measured.append(
            {
                "name": workload.name,
                "title": workload.title,
                **to_dict(measurement),
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
    target = ""
    if result.target is not None:
        target = f"{result.target:.2f} {'reached' if result.ratio >= result.target else 'MISSED'}"
    return [
        result.contestant,
        f"{result.ratio:.3g}",
        f"{result.low:.3g} .. {result.high:.3g}",
        f"{result.nanoseconds:,.0f}",
        "" if result.aborts is None else f"{result.aborts:.1%}",
        result.setting,
        target,
    ]


def _print(workload: Workload, measurement: Measurement) -> None:
    title = f"{workload.title} (two independent threads: {measurement.capacity:.2f})"
    print_table(title, COLUMNS, [_cells(result) for result in measurement.results], (1, 2, 3, 4))


if __name__ == "__main__":
    sys.exit(main())
