"""``python -m bench early [--plot [FOLDER]] [--json FILE] [--quick] [--only PART]``.

With ``--plot`` the page is written too: its tables and its sentences say what the data say.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.early.measure import FULL, QUICK, Amount, delays, rates
from bench.early.page import DELAYS_HEAD, RATES_HEAD, delays_rows, expectations, page, rates_rows
from bench.early.plot import draw_early
from bench.options import Say, measure_amount, page_command, pages_of
from bench.pages import print_expected
from bench.report import print_table

FOLDER = Path("docs/research")
PARTS: dict[str, Callable[[Amount, Say], dict[str, Any]]] = {"rates": rates, "delays": delays}


def main() -> int:
    """Measures, prints what was seen and expected, writes the files that were asked for."""
    parser = pages_of("python -m bench early", __doc__, FOLDER, list(PARTS), "this part")
    return page_command(parser, "early", "both parts", _measured, _print, draw_early, page)


def _measured(arguments: argparse.Namespace) -> dict[str, Any]:
    return measure_amount(arguments, PARTS, FULL, QUICK)


def _print(measured: dict[str, Any]) -> None:
    parts = measured["parts"]
    if "rates" in parts:
        print_table(
            "Two sources; milliseconds, median / 99th percentile",
            RATES_HEAD,
            rates_rows(parts["rates"]),
            range(1, len(RATES_HEAD)),
        )
        print_expected(expectations(measured))
    if "delays" in parts:
        print_table(
            "Late events; throughput relative to the same run without early results",
            DELAYS_HEAD,
            delays_rows(parts["delays"]),
            range(len(DELAYS_HEAD)),
        )


if __name__ == "__main__":
    sys.exit(main())
