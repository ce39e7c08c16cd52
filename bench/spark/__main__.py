"""``python -m bench spark [--json FILE] [--plot [FILE]] [--quick] [--only NAME]``."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from bench.report import print_table, progress
from bench.spark import arrivals
from bench.spark.beside import has_bytewax
from bench.spark.loads import LOADS
from bench.spark.plot import ORDER, draw_rates
from bench.spark.rounds import Effort, Measurement, Row, measure, own_share, warm_up
from bench.spark.ways import AHEAD, SPARK_WAYS, SPECSTREAM
from bench.stored import to_text
from specstream.figures.style import save
from specstream.tuning.machine import describe

PLOT = Path("docs/research/spark.png")
# What was measured so far, if the rest fails; for --from.
KEPT = Path("build/bench-spark.json")
FULL = Effort((100_000, 500_000), rounds=3, batches=3, warm=16, python_seconds=0.5)
QUICK = Effort((2_000, 5_000), rounds=1, batches=1, warm=1, python_seconds=0.1)

# specstream's own part of a batch: conversion, order, checkpoint of a small state.
SHARE_ROWS = 200_000
SHARE_SECONDS = 0.060
SHARE_PARTS = ("conversion and order", "checkpoint")


def main() -> int:
    """Measures, prints the tables, and writes the files that were asked for."""
    parser = argparse.ArgumentParser(prog="python -m bench spark", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was measured")
    parser.add_argument(
        "--plot",
        type=Path,
        metavar="FILE",
        nargs="?",
        const=PLOT,
        help=f"draw them, and keep their data as JSON beside the picture; {PLOT} unless another "
        "PNG file is named",
    )
    parser.add_argument("--quick", action="store_true", help="one round of small batches")
    parser.add_argument(
        "--only",
        action="append",
        metavar="NAME",
        help="what contains NAME, of top_k-100000, neighbours-500000, ..., share, which is what "
        "specstream itself costs, and arrivals: from an event to its row in the sink, with "
        "and without Spark",
    )
    parser.add_argument(
        "--rows", type=int, action="append", metavar="ROWS", help="batches of this size only"
    )
    parser.add_argument("--rounds", type=int, metavar="N", help="turns of each way")
    parser.add_argument("--batches", type=int, metavar="N", help="batches of a turn")
    parser.add_argument(
        "--from",
        dest="earlier",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="show what an earlier run has written with --json, instead of measuring",
    )
    arguments = parser.parse_args()

    def wanted(name: str) -> bool:
        return not arguments.only or any(part in name for part in arguments.only)

    effort = QUICK if arguments.quick else FULL
    if arguments.rounds:
        effort = replace(effort, rounds=arguments.rounds)
    if arguments.batches:
        effort = replace(effort, batches=arguments.batches)
    if arguments.rows:
        effort = replace(effort, sizes=tuple(arguments.rows))
    measured = (
        _joined([json.loads(path.read_text()) for path in arguments.earlier])
        if arguments.earlier
        else _measured(effort, wanted, arguments.json or KEPT)
    )
    rows = [_row(row) for row in measured["rows"]]
    print("\n" + ", ".join(f"{name} {value}" for name, value in measured["machine"].items()))
    _print_rows(rows)
    _print_targets(rows, measured["share"])
    _print_arrivals(measured.get("arrivals", []))
    _write(measured, arguments.json)
    if arguments.plot and rows:
        save(draw_rates(measured), arguments.plot)
        _write(measured, arguments.plot.with_suffix(".json"))
    return 0


def _measured(effort: Effort, wanted: Callable[[str], bool], path: Path | None) -> dict[str, Any]:
    """Measures what is wanted; the file has what was measured so far."""
    import pyspark

    import specstream as ss

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    about = {**describe(), "pyspark": pyspark.__version__, **_java(), "bytewax": _bytewax()}
    measured: dict[str, Any] = {
        "machine": about,
        "effort": asdict(effort),
        "rows": [],
        "share": {},
        "arrivals": [],
    }
    share_rows = SHARE_ROWS if effort.warm > 1 else effort.sizes[-1]
    cells = [(load, size) for load in LOADS for size in effort.sizes]
    with tempfile.TemporaryDirectory(prefix="specstream-bench-") as directory:
        home = Path(directory)
        session = ss.spark.local_session(
            "bench",
            settings={
                "spark.sql.streaming.stateStore.providerClass": "org.apache.spark.sql.execution."
                "streaming.state.RocksDBStateStoreProvider",
                # One key is in one partition: others would only cost those who shuffle.
                "spark.sql.shuffle.partitions": "1",
            },
        )
        try:
            if any(wanted(f"{load.name}-{size}") for load, size in cells) or wanted("share"):
                progress("warming up")
                warm_up(LOADS[0], effort.warm, session, home / "warm-up")
            if wanted("share"):
                progress("specstream's own share")
                batches = 5 * effort.rounds
                parts = own_share(LOADS[0], share_rows, batches, session, home / "share")
                measured["share"] = {"rows": share_rows, **parts}
            for load, size in cells:
                name = f"{load.name}-{size}"
                if wanted(name):
                    row = measure(load, size, effort, session, home / name, progress)
                    measured["rows"].append(asdict(row))
                    _write(measured, path)
            if wanted("arrivals"):
                amount = arrivals.FULL if effort.warm > 1 else arrivals.QUICK
                found = arrivals.arrivals(amount, session, home / "arrivals", progress)
                measured["arrivals"] = list(map(asdict, found))
                _write(measured, path)
        finally:
            session.stop()
    progress("")
    return measured


def _write(measured: dict[str, Any], path: Path | None) -> None:
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(to_text(measured))


def _java() -> dict[str, str]:
    import specstream as ss

    return {"java": str(ss.spark.find_java().version)}


def _bytewax() -> str:
    if not has_bytewax():
        return "not installed"
    from importlib.metadata import version

    return version("bytewax")


def _joined(earlier: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        **earlier[0],
        "rows": [row for measured in earlier for row in measured["rows"]],
        "share": next((measured["share"] for measured in earlier if measured["share"]), {}),
        "arrivals": [row for measured in earlier for row in measured.get("arrivals", [])],
    }


def _row(row: dict[str, Any]) -> Row:
    measured = {name: Measurement(**values) for name, values in row["measured"].items()}
    return Row(**{**row, "measured": measured})


def _quartiles(of: Measurement) -> str:
    # Of some earlier runs only the medians were kept.
    return f"{of.low:.2f} .. {of.high:.2f}" if of.high else ""


def _print_rows(rows: list[Row]) -> None:
    for row in rows:
        lines = [
            [
                name,
                f"{row.measured[name].rate:,.0f}",
                f"{1e3 * row.measured[name].latency:,.0f}",
                f"{row.measured[name].ratio:.2f}",
                _quartiles(row.measured[name]),
            ]
            for name in ORDER
            if name in row.measured
        ]
        print_table(
            f"{row.title}, batches of {row.rows:,} rows",
            ("", "rows/s", "ms a batch", "to the bare loop", "quartiles"),
            lines,
            (1, 2, 3, 4),
        )
        if row.parts:
            parts = ", ".join(f"{name} {1e3 * seconds:.0f}" for name, seconds in row.parts.items())
            print(f"of specstream's milliseconds: {parts}")


def _print_targets(rows: list[Row], share: dict[str, float]) -> None:
    lines = []
    for row in rows:
        load = next(load for load in LOADS if load.name == row.load)
        for own in (SPECSTREAM, AHEAD):
            found = row.measured[own].ratio
            lines.append(_target(row, f"{own}, to the bare loop", found, load.least))
            for rival in SPARK_WAYS:
                if load.rivals is not None:
                    ratio = found / row.measured[rival].ratio
                    lines.append(_target(row, f"{own}, to {rival}", ratio, load.rivals))
    if share:
        own_seconds = sum(share[part] for part in SHARE_PARTS)
        verdict = "reached" if own_seconds < SHARE_SECONDS else "MISSED"
        lines.append(
            [
                f"own share of {share['rows']:,} rows: {', '.join(SHARE_PARTS)}",
                f"{1e3 * own_seconds:.0f} ms",
                f"< {1e3 * SHARE_SECONDS:.0f} ms",
                verdict,
            ]
        )
    if lines:
        print_table("Targets", ("", "seen", "asked for", ""), lines, (1, 2))


def _print_arrivals(found: list[dict[str, Any]]) -> None:
    if found:
        lines = [
            [row["name"], f"{row['median']:.2f}", f"{row['high']:.2f}", f"{row['rate']:,.0f}"]
            for row in found
        ]
        head = ("", "ms, median", "ms, 99 %", "events/s, all at once")
        print_table("From an event's arrival to its row in the sink", head, lines, (1, 2, 3))


def _target(row: Row, what: str, seen: float, least: float) -> list[str]:
    verdict = "reached" if seen >= least else "MISSED"
    return [f"{row.title}, {row.rows:,}: {what}", f"{seen:.2f}", f">= {least}", verdict]


if __name__ == "__main__":
    sys.exit(main())
