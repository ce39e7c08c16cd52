"""``python -m bench transactional [--plot [FOLDER]] [--json FILE] [--quick] [--only WORKLOAD]``.

With ``--plot`` the page is written too: its tables and its sentences say what the data say.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import Any

from bench.options import measure_parts, page_command, pages_of
from bench.pages import print_expected
from bench.report import print_table
from bench.transactional.measure import FULL, QUICK, Seen, measure
from bench.transactional.page import expectations, page
from bench.transactional.plot import draw_transactional
from bench.transactional.workloads import WORKLOADS

FOLDER = Path("docs/research")


def main() -> int:
    """Measures, prints what was seen and expected, writes the files that were asked for."""
    parser = pages_of("python -m bench transactional", __doc__, FOLDER, list(WORKLOADS), "this one")
    return page_command(
        parser, "transactional", "all workloads", _measured, _print, draw_transactional, page
    )


def _measured(arguments: argparse.Namespace) -> dict[str, Any]:
    amount = QUICK if arguments.quick else FULL
    parts = {name: partial(measure, of, amount) for name, of in WORKLOADS.items()}
    machine, found = measure_parts(parts, arguments.only)
    return {"machine": machine, "quick": arguments.quick, "workloads": found}


def _print(measured: dict[str, Any]) -> None:
    for of in measured["workloads"].values():
        schemes = [*of["points"][0]["schemes"]]
        rows = []
        for point in of["points"]:
            seen = {name: Seen(*point["schemes"][name]) for name in schemes}
            rows.append(
                [
                    f"{point['knob']} {point['value']:g}" if point["knob"] else "usual",
                    f"{seen['plain'].nanoseconds:,.0f}",
                    *(f"{seen[name].speed:.2f}" for name in schemes[1:]),
                    f"{point['capacity']:.2f}",
                ]
            )
        print_table(
            f"{of['title']}; speed relative to plain on one thread",
            ("", "ns/event", *schemes[1:], "two cores"),
            rows,
            range(1, len(schemes) + 2),
        )
        threads = [*of["asleep"]["schemes"]["value"]]
        print_table(
            f"{of['title']}; latency in microseconds; speed asleep",
            ("", "median", "99 %", *(f"{count} threads" for count in threads)),
            [
                [
                    name,
                    *(f"{time:.1f}" for time in of["latency"][name]),
                    *(f"{Seen(*asleep[count]).speed:.2f}" for count in threads),
                ]
                for name, asleep in of["asleep"]["schemes"].items()
            ],
            range(1, len(threads) + 3),
        )
    print_expected(expectations(measured))


if __name__ == "__main__":
    sys.exit(main())
