"""``python -m bench rules [--plot [FOLDER]] [--json FILE] [--quick] [--only PART]``.

Rules beside other monitors and beside operators by hand, and verbs beside the same by hand. With
``--plot`` the page is written too: its tables and its sentences say what the data say.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from bench.options import Say, measure_parts, page_command, pages_of
from bench.report import print_table
from bench.rules.alone import by_hand, others, threads, twenty
from bench.rules.beside import data, future, past, versions
from bench.rules.page import OTHERS_HEAD, PARTS, TABLES, judged, others_rows, page
from bench.rules.plot import draw_rules
from bench.rules.robustness import robustness
from bench.rules.rounds import Amount
from bench.rules.verbs import verbs

FOLDER = Path("docs/research")
AGREEMENT = FOLDER / "agreement.json"
FULL = Amount(
    events=1_000_000,
    rounds=15,
    beside=5,
    seconds=3.0,
    peer=0.7,
    row=8.0,
    bounds=(10, 100, 1000),
    reaches=(10, 100, 1000, 5000),
    sizes=((10_000, 2_000), (100_000, 2_000), (1_000_000, 2_000), (1_000_000, 100_000)),
    mixed=2_000,
    heavy=200_000,
    orders=1_000_000,
    files=20,
)
QUICK = Amount(
    events=20_000,
    rounds=3,
    beside=2,
    seconds=0.2,
    peer=0.2,
    row=2.0,
    bounds=(10, 100),
    reaches=(10, 100),
    sizes=((1_000, 200), (10_000, 200)),
    mixed=200,
    heavy=10_000,
    orders=10_000,
    files=4,
)


def _through_spark(amount: Amount, say: Say) -> dict[str, Any]:
    # All other parts do without PySpark.
    try:
        from bench.rules.through_spark import through_spark
    except ImportError as error:
        name = "`paid_in_time` through Spark"
        return {"rounds": 0, "rows": [{"name": name, "stopped": f"not installed: {error.name}"}]}
    return through_spark(amount, say)


MEASURES: dict[str, Callable[[Amount, Say], dict[str, Any]]] = {
    "verbs": verbs,
    "past": past,
    "future": future,
    "robustness": robustness,
    "data": data,
    "by_hand": by_hand,
    "twenty": twenty,
    "others": others,
    "threads": threads,
    "spark": _through_spark,
}


def main() -> int:
    """Measures, prints what was seen and asked for, writes the files that were asked for."""
    parser = pages_of("python -m bench rules", __doc__, FOLDER, list(PARTS), "this part")
    return page_command(parser, "rules", "all parts", _measured, _print, draw_rules, _page)


def _page(data: dict[str, Any]) -> str:
    return page(data, json.loads(AGREEMENT.read_text()) if AGREEMENT.exists() else None)


def _measured(arguments: argparse.Namespace) -> dict[str, Any]:
    amount = QUICK if arguments.quick else FULL
    parts = {name: partial(_aloud, measure, amount) for name, measure in MEASURES.items()}
    machine, found = measure_parts(parts, arguments.only)
    peers = {**versions(), **_spark()}
    return {"machine": machine, "quick": arguments.quick, "peers": peers, "parts": found}


def _spark() -> dict[str, str]:
    try:
        return {"transformWithState": version("pyspark")}
    except PackageNotFoundError:
        return {}


def _aloud(measure: Callable[[Amount, Say], Any], amount: Amount, say: Say) -> Any:
    """It takes long: where there is no terminal for a bar it says what it does, too."""

    def told(text: str) -> None:
        say(text)
        if not sys.stderr.isatty():
            print(text, file=sys.stderr, flush=True)

    return measure(amount, told)


def _print(measured: dict[str, Any]) -> None:
    parts = measured["parts"]
    for name, tables in TABLES.items():
        for title, head, rows in tables if name in parts else ():
            print_table(title, head, rows(parts[name]), range(1, len(head)))
    print_table("Together, of no concern, two threads, Spark", OTHERS_HEAD, others_rows(parts), ())
    found = judged(measured)
    print_table(
        f"Asked for: {sum(one.holds for one in found)} of {len(found)} rows reach it; the others",
        ("", "asked for", "seen"),
        [
            [
                one.what,
                f"{'at least' if one.least else 'at most'} {one.bound:g}",
                one.because if one.seen is None else f"{one.seen:.3g}",
            ]
            for one in found
            if not one.holds
        ],
        (),
    )


if __name__ == "__main__":
    sys.exit(main())
