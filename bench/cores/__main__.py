"""``python -m bench.cores [--json FILE] [--quick]``: the scheduler on more cores than there are.

``--neighbours`` shows instead what becomes there of events that read as nearest neighbours do.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from bench.cores import neighbours
from bench.cores.native import COSTS, measured_costs
from bench.cores.table import FULL, QUICK, error, table
from bench.report import print_table
from specstream.tuning.machine import describe

HEAD = ("event", "threads", "horizon", "sigma", "ideal", "asleep", "machine", "of ideal", "error")


def main() -> int:
    """Runs the table, prints it, and writes the file that was asked for."""
    parser = argparse.ArgumentParser("python -m bench.cores", description=__doc__)
    parser.add_argument("--json", metavar="FILE", type=Path, help="write what was seen")
    parser.add_argument("--quick", action="store_true", help="two rows, short; to see that it runs")
    parser.add_argument(
        "--neighbours", action="store_true", help="events that read as nearest neighbours do"
    )
    arguments = parser.parse_args()
    if arguments.neighbours:
        show_neighbours(arguments.quick, arguments.json)
        return 0
    seen = table(QUICK if arguments.quick else FULL, lambda what: print(what, flush=True))
    here = measured_costs()
    rows = [
        [
            f"{row['time'] / 1000:g} µs",
            str(row["threads"]),
            str(row["horizon"]),
            f"{row['sigma']:g}",
            f"{row['ideal']:.2f}",
            f"{row['asleep']:.2f}",
            f"{row['machine']:.2f}",
            f"{row['machine'] / row['ideal']:.2f}",
            f"{100 * error(row):+.0f} %",
        ]
        for row in seen
    ]
    print_table("Speed relative to one thread", HEAD, rows, range(len(HEAD)))
    print("Nanoseconds here:", *(f"{name} {value:.0f}," for name, value in here.items()))
    if arguments.json:
        found = {"machine": describe(), "costs": COSTS, "measured costs": here, "table": seen}
        arguments.json.write_text(json.dumps(found, indent=1))
    return 0


NEIGHBOURS_HEAD = ("buckets", "beside", "threads", "speed", "horizon", "chunk", "reruns", "lines")


def show_neighbours(is_quick: bool, into: Path | None) -> None:
    amount = neighbours.QUICK if is_quick else neighbours.FULL
    seen = neighbours.table(amount, lambda what: print(what, flush=True))
    rows = [
        [
            f"{one.shape.buckets:g}",
            f"{one.shape.time / 1000:g} µs",
            str(one.threads),
            f"{one.speed:.2f}",
            str(one.horizon),
            str(one.chunk),
            f"{one.reruns:.3f}",
            f"{one.transfers:.1f}",
        ]
        for one in seen
    ]
    title = "Speed relative to one thread; runs again and lines from core to core, by event"
    print_table(title, NEIGHBOURS_HEAD, rows, range(len(NEIGHBOURS_HEAD)))
    if into:
        table_ = [one._asdict() | {"shape": one.shape._asdict()} for one in seen]
        into.write_text(json.dumps({"costs": COSTS, "table": table_}, indent=1))


if __name__ == "__main__":
    sys.exit(main())
