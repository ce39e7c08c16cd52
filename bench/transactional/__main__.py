"""``python -m bench.transactional [--plot [FOLDER]] [--json FILE] [--quick] [--only WORKLOAD]``.

With ``--plot`` the page is written too: its tables and its sentences say what the data say.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from bench.options import earlier, pages_of
from bench.pages import print_expected, write_page
from bench.report import print_table, progress_bar
from bench.stored import to_text
from bench.transactional.measure import FULL, QUICK, Amount, Seen, measure
from bench.transactional.page import expectations, page
from bench.transactional.plot import draw_transactional
from bench.transactional.workloads import WORKLOADS
from specstream.tuning.machine import describe

FOLDER = Path("docs/speed")


def main() -> int:
    """Measures, prints what was seen and expected, writes the files that were asked for."""
    parser = pages_of("python -m bench.transactional", __doc__, FOLDER, list(WORKLOADS), "this one")
    arguments = parser.parse_args()
    if arguments.only and arguments.plot:
        parser.error("--plot wants all workloads: leave out --only")
    kept_earlier = earlier(parser, arguments)
    if kept_earlier:
        (measured,) = kept_earlier
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
        write_page(arguments.plot, "transactional", text, draw_transactional(kept), page(kept))
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
    print_expected(expectations(measured))


if __name__ == "__main__":
    sys.exit(main())
