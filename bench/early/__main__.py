"""``python -m bench.early [--plot [FOLDER]] [--json FILE] [--quick] [--only PART]``.

With ``--plot`` the page is written too: its tables and its sentences say what the data say.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.early.measure import FULL, QUICK, Amount, delays, rates
from bench.early.page import DELAYS_HEAD, RATES_HEAD, delays_rows, expectations, page, rates_rows
from bench.early.plot import draw_early
from bench.options import earlier, pages_of
from bench.pages import print_expected, write_page
from bench.report import print_table, progress_bar
from bench.stored import to_text
from specstream.tuning.machine import describe

Say = Callable[[str], None]

FOLDER = Path("docs/speed")
PARTS: dict[str, Callable[[Amount, Say], dict[str, Any]]] = {"rates": rates, "delays": delays}


def main() -> int:
    """Measures, prints what was seen and expected, writes the files that were asked for."""
    parser = pages_of("python -m bench.early", __doc__, FOLDER, list(PARTS), "this part")
    arguments = parser.parse_args()
    if arguments.only and arguments.plot:
        parser.error("--plot wants both parts: leave out --only")
    kept_earlier = earlier(parser, arguments)
    if kept_earlier:
        (measured,) = kept_earlier
    else:
        names = [name for name in PARTS if not arguments.only or name in arguments.only]
        measured = _measured(names, QUICK if arguments.quick else FULL)
    # What is shown is what is kept, with as many digits.
    text = to_text(measured)
    kept = json.loads(text)
    if not arguments.earlier:
        _print(kept)
    if arguments.json:
        arguments.json.write_text(text)
    if arguments.plot:
        write_page(arguments.plot, "early", text, draw_early(kept), page(kept))
    return 0


def _measured(names: list[str], amount: Amount) -> dict[str, Any]:
    machine = describe()
    print(", ".join(f"{name} {value}" for name, value in machine.items()))
    parts = {}
    with progress_bar(len(names)) as (say, step):
        for name in names:
            parts[name] = PARTS[name](amount, say)
            step()
    return {"machine": machine, "quick": amount is QUICK, "parts": parts}


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
