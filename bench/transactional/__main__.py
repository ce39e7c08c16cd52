"""``python -m bench.transactional [--plot [FOLDER]] [--json FILE] [--quick] [--only WORKLOAD]``.

With ``--plot`` the page is written too: its tables and its sentences say what the data say.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from bench.report import print_table, progress_bar
from bench.stored import to_text
from bench.transactional.measure import FULL, QUICK, Amount, Seen, measure
from bench.transactional.page import expectations, page
from bench.transactional.plot import draw_transactional
from bench.transactional.workloads import WORKLOADS
from specstream.figures.style import save
from specstream.tuning.machine import describe

FOLDER = Path("docs/speed")


def main() -> int:
    """Measures, prints what was seen and expected, writes the files that were asked for."""
    parser = argparse.ArgumentParser(prog="python -m bench.transactional", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was measured")
    parser.add_argument(
        "--plot",
        type=Path,
        metavar="FOLDER",
        nargs="?",
        const=FOLDER,
        help=f"write data, picture and page; {FOLDER} unless another folder is named",
    )
    parser.add_argument(
        "--from",
        dest="earlier",
        type=Path,
        metavar="FILE",
        help="what an earlier run has kept as JSON, with --plot; measure nothing",
    )
    parser.add_argument("--quick", action="store_true", help="few and short rounds")
    parser.add_argument(
        "--only", action="append", choices=list(WORKLOADS), help="this one; without --plot"
    )
    arguments = parser.parse_args()
    if arguments.only and arguments.plot:
        parser.error("--plot wants all workloads: leave out --only")
    if arguments.earlier:
        if not arguments.plot:
            parser.error("--from draws: name a folder with --plot")
        measured = json.loads(arguments.earlier.read_text())
    else:
        names = [name for name in WORKLOADS if not arguments.only or name in arguments.only]
        measured = _measured(names, QUICK if arguments.quick else FULL)
    # What is shown is what is kept, with as many digits.
    text = to_text(measured)
    kept = json.loads(text)
    if not arguments.earlier:
        _print(kept)
    if arguments.json:
        arguments.json.write_text(text)
    if arguments.plot:
        arguments.plot.mkdir(parents=True, exist_ok=True)
        (arguments.plot / "transactional.json").write_text(text)
        save(draw_transactional(kept), arguments.plot / "transactional.png")
        (arguments.plot / "transactional.md").write_text(page(kept))
        print(f"written: {arguments.plot / 'transactional.md'}, and data and picture beside it")
    return 0


def _measured(names: list[str], amount: Amount) -> dict[str, Any]:
    machine = describe()
    print(", ".join(f"{name} {value}" for name, value in machine.items()))
    found = {}
    with progress_bar(len(names)) as (say, step):
        for name in names:
            found[name] = measure(WORKLOADS[name], amount, say)
            step()
    return {"machine": machine, "quick": amount is QUICK, "workloads": found}


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
    print_table(
        "What was expected",
        ("", "expected", "seen", "quartiles", ""),
        [
            [
                one.what,
                f"{'at least' if one.least else 'at most'} {one.bound:g}",
                f"{one.seen[1]:.3f}",
                f"{one.seen[0]:.3f} .. {one.seen[2]:.3f}",
                "reached" if one.holds else "MISSED",
            ]
            for one in expectations(measured)
        ],
        (1, 2),
    )


if __name__ == "__main__":
    sys.exit(main())
