"""``python -m bench interpreted [--plot [FOLDER]] [--json FILE] [--quick] [--only PART]``.

What an event and an access of an interpreted operator cost, and what several threads make of it.
With ``--plot`` the page is written too: its tables and its sentences say what the data say.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from bench.interpreted.measure import FULL, QUICK, Amount, costs, lengths, threads
from bench.interpreted.page import (
    COSTS_HEAD,
    LENGTHS_HEAD,
    THREADS_HEAD,
    costs_rows,
    expectations,
    lengths_rows,
    page,
    threads_rows,
)
from bench.interpreted.plot import draw_interpreted
from bench.options import Say, measure_parts, page_command, pages_of
from bench.pages import print_expected
from bench.report import print_table

FOLDER = Path("docs/research")
PARTS: dict[str, Callable[[Amount, Say], dict[str, Any]]] = {
    "costs": costs,
    "threads": threads,
    "lengths": lengths,
}
TABLES: dict[str, tuple[str, tuple[str, ...], Callable[[Any], list[list[str]]]]] = {
    "costs": ("What an event and an access cost", COSTS_HEAD, costs_rows),
    "threads": ("More threads", THREADS_HEAD, threads_rows),
    "lengths": ("Shorter and longer events", LENGTHS_HEAD, lengths_rows),
}


def main() -> int:
    """Measures, prints what was seen and expected, writes the files that were asked for."""
    parser = pages_of("python -m bench interpreted", __doc__, FOLDER, list(PARTS), "this part")
    return page_command(
        parser, "interpreted", "all parts", _measured, _print, draw_interpreted, page
    )


def _measured(arguments: argparse.Namespace) -> dict[str, Any]:
    amount = QUICK if arguments.quick else FULL
    parts = {name: partial(measure, amount) for name, measure in PARTS.items()}
    machine, found = measure_parts(parts, arguments.only)
    return {"machine": machine, "quick": arguments.quick, "parts": found}


def _print(measured: dict[str, Any]) -> None:
    for name, of in measured["parts"].items():
        title, head, rows = TABLES[name]
        print_table(title, head, rows(of), range(1, len(head)))
    print_expected(expectations(measured))


if __name__ == "__main__":
    sys.exit(main())
