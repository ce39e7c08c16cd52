"""``python -m bench verify [--plot [FOLDER]] [--json FILE] [--only PART]``.

The experiments of a paper on model checking: its pipelines and questions, with both engines of
``ss.verify`` and with NuSMV on what is exported, beside the paper's numbers. With ``--plot`` the
page is written too: its tables and its sentences say what the data say.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.options import Say, measure_parts, page_command, pages_of
from bench.report import print_table
from bench.verify.capacity import capacity
from bench.verify.catalogue import catalogue
from bench.verify.measure import comparisons, grid, properties, queue_sizes
from bench.verify.page import TABLES, claims, page
from bench.verify.plot import draw_verify

FOLDER = Path("docs/research")
MEASURES: dict[str, Callable[[Say], dict[str, Any]]] = {
    "properties": properties,
    "queues": queue_sizes,
    "comparisons": comparisons,
    "grid": grid,
    "catalogue": catalogue,
    "capacity": capacity,
}


def main() -> int:
    """Measures, prints it beside the paper's numbers, writes the files that were asked for."""
    parser = pages_of("python -m bench verify", __doc__, FOLDER, list(MEASURES), "this part")
    return page_command(parser, "verify", "all parts", _measured, _print, draw_verify, page)


def _measured(arguments: argparse.Namespace) -> dict[str, Any]:
    machine, found = measure_parts(MEASURES, arguments.only)
    return {"machine": machine, "parts": found}


def _print(measured: dict[str, Any]) -> None:
    parts = measured["parts"]
    for name, (title, head, rows) in TABLES.items():
        if name in parts:
            print_table(title, head, rows(parts[name]), range(3, len(head)))
    if len(parts) == len(MEASURES):
        print_table("Claims", ("the paper says", "here", "numbers"), list(claims(parts)), ())
    elif "grid" in parts:
        of = parts["grid"]
        print(f"{of['problems']} problems in {of['seconds']:.1f} s: {of['said']}")


if __name__ == "__main__":
    sys.exit(main())
