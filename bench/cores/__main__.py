"""``python -m bench cores [--plot [FOLDER]] [--json FILE] [--quick] [--only PART]``.

The scheduler on more cores than there are. With ``--plot`` the page is written too: its tables and
its sentences say what the data say.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.cores import page as pages
from bench.cores.native import COSTS, measured_costs
from bench.cores.plot import draw_cores
from bench.cores.table import FULL, QUICK, Amount, asleep, busy, more_cores, reach
from bench.options import Say, measure_amount, page_command, pages_of
from bench.report import print_table

FOLDER = Path("docs/research")
PARTS: dict[str, Callable[[Amount, Say], Any]] = {
    "busy": busy,
    "asleep": asleep,
    "cores": more_cores,
    "reach": reach,
}
Rows = Callable[[Any], list[list[str]]]
SHOWN: dict[str, tuple[str, tuple[str, ...], Rows]] = {
    "busy": ("Busy threads; speed relative to one", pages.BUSY_HEAD, pages.busy_rows),
    "asleep": ("Threads asleep; speed relative to one", pages.ASLEEP_HEAD, pages.asleep_rows),
    "cores": ("By the number of cores", pages.CORES_HEAD, pages.cores_rows),
    "reach": ("What is aimed at", pages.REACH_HEAD, pages.reach_rows),
}


def main() -> int:
    """Runs all parts, prints what was seen, writes the files that were asked for."""
    parser = pages_of("python -m bench cores", __doc__, FOLDER, list(PARTS), "this part")
    return page_command(parser, "cores", "all parts", _measured, _print, draw_cores, pages.page)


def _measured(arguments: argparse.Namespace) -> dict[str, Any]:
    found = measure_amount(arguments, PARTS, FULL, QUICK)
    return found | {"costs": COSTS, "measured costs": measured_costs()}


def _print(measured: dict[str, Any]) -> None:
    for name, of_part in measured["parts"].items():
        title, head, rows = SHOWN[name]
        print_table(title, head, rows(of_part), range(1, len(head)))
    here = measured["measured costs"].items()
    print("Nanoseconds here:", *(f"{name} {value:.0f}," for name, value in here))


if __name__ == "__main__":
    sys.exit(main())
