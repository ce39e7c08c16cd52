"""``python -m bench latency [--plot [FOLDER]] [--json FILE] [--quick] [--only PART]``.

With ``--plot`` the page is written too: its tables and its sentences say what the data say.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.latency.measure import FULL, QUICK, Amount, calls, load
from bench.latency.page import CALLS_HEAD, LOAD_HEAD, calls_rows, expectations, load_rows, page
from bench.latency.plot import draw_latency
from bench.options import Say, measure_amount, page_command, pages_of
from bench.pages import print_expected
from bench.report import print_table

FOLDER = Path("docs/research")
PARTS: dict[str, Callable[[Amount, Say], dict[str, Any]]] = {"calls": calls, "load": load}


def main() -> int:
    """Measures, prints what was seen and expected, writes the files that were asked for."""
    parser = pages_of("python -m bench latency", __doc__, FOLDER, list(PARTS), "this part")
    return page_command(parser, "latency", "both parts", _measured, _print, draw_latency, page)


def _measured(arguments: argparse.Namespace) -> dict[str, Any]:
    return measure_amount(arguments, PARTS, FULL, QUICK)


def _print(measured: dict[str, Any]) -> None:
    parts = measured["parts"]
    if "calls" in parts:
        print_table(
            "One event after the other",
            CALLS_HEAD,
            calls_rows(parts["calls"]),
            range(1, len(CALLS_HEAD)),
        )
    if "load" in parts:
        print_table(
            "From the arrival to the committed row",
            LOAD_HEAD,
            load_rows(parts["load"]),
            range(1, len(LOAD_HEAD)),
        )
        print_expected(expectations(measured))


if __name__ == "__main__":
    sys.exit(main())
