"""``python -m bench speed [--json FILE] [--plot [FILE]] [--from FILE] [--quick] [--only NAME]``."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.harness import BASELINE, Effort
from bench.options import draws, earlier
from bench.report import print_table, progress_bar
from bench.speed.auto import PHASES, QUICK_PHASES, Phase, measure_phases, over_all
from bench.speed.loads import LOADS, calibrated
from bench.speed.plot import SHORT_LOADS, draw_short, draw_table
from bench.speed.table import CONTESTANTS, AutoResult, Row, measure_row
from bench.stored import to_text
from specstream.figures.style import save
from specstream.tuning.machine import describe

FULL = Effort(rounds=21, seconds=0.04, trials=5, patience=2)
QUICK = Effort(rounds=3, seconds=0.01, trials=1, patience=2)

PLOT = Path("docs/speed/threads.png")

# What the automatic setting may lose against the better of plain and the best fixed setting.
AUTO_TARGET = 0.95
PHASE_TARGET = 0.90


def main() -> int:
    """Measures, prints the tables, and writes the files that were asked for."""
    parser = draws(
        "python -m bench speed",
        __doc__,
        PLOT,
        f"draw the table, and keep its data as JSON beside the picture; {PLOT} unless another PNG "
        "file is named",
    )
    parser.add_argument(
        "--only",
        action="append",
        metavar="NAME",
        help='loads whose name contains NAME; "phases" is the load that changes every second',
    )
    arguments = parser.parse_args()
    kept_earlier = earlier(parser, arguments, "a picture")
    if kept_earlier:
        _draw(kept_earlier[0], arguments.plot)
        return 0

    def wanted(name: str) -> bool:
        return not arguments.only or any(part in name for part in arguments.only)

    loads = [load for load in LOADS if wanted(load.name)]
    if not loads and not wanted("phases"):
        names = ", ".join([*(load.name for load in LOADS), "phases"])
        parser.error(f"no load is called {' or '.join(arguments.only)}; there are {names}")
    effort = QUICK if arguments.quick else FULL
    about = describe()
    print(", ".join(f"{name} {value}" for name, value in about.items()))
    rows: list[Row] = []
    automatic: list[AutoResult] = []
    phases: list[Phase] = []
    with progress_bar(len(loads) + wanted("phases")) as (say, step):
        for load in loads:
            both, auto = measure_row(load, effort, say)
            rows += both
            automatic += [] if auto is None else [auto]
            step()
        if wanted("phases"):
            phased = set(QUICK_PHASES if arguments.quick else PHASES)
            say("phases: calibrating")
            workloads = {load.name: calibrated(load) for load in LOADS if load.name in phased}
            phases = measure_phases(workloads, arguments.quick, say)
            step()
    _print_rows(rows)
    _print_automatic(automatic, phases)
    measured = {
        "machine": about,
        "effort": asdict(effort),
        "rows": [asdict(row) for row in rows],
        "automatic": [asdict(result) for result in automatic],
        "phases": [asdict(phase) for phase in phases],
    }
    if arguments.json:
        arguments.json.write_text(to_text(measured))
    if arguments.plot and rows:
        _draw(measured, arguments.plot)
        arguments.plot.with_suffix(".json").write_text(to_text(measured))
    return 0


def _draw(measured: dict[str, Any], path: Path) -> None:
    """The table, and beside it the short version for the first page."""
    save(draw_table(measured), path)
    if any(row["kind"] == "compiled" and row["name"] in SHORT_LOADS for row in measured["rows"]):
        save(draw_short(measured), path.with_stem(f"{path.stem}-short"))


def _verdict(reached: bool) -> str:
    return "reached" if reached else "MISSED"


def _print_rows(rows: list[Row]) -> None:
    if not rows:
        return

    def cell(row: Row, name: str) -> str:
        result = row.results.get(name)
        return "" if result is None else f"{result.speed:.2f}"

    def setting(row: Row) -> str:
        result = row.results["value"]
        aborts = "" if result.aborts is None else f", {result.aborts:.0%} aborted"
        return row.setting + aborts

    table: list[list[Any]] = [
        [
            row.title,
            row.kind,
            f"{row.nanoseconds:,.0f}",
            *(cell(row, name) for name in CONTESTANTS),
            f"{row.target:.2f} {row.judged}",
            _verdict(row.reached),
            setting(row),
            f"{row.capacity:.2f}",
        ]
        for row in rows
    ]
    headings = ("load", "kind", "ns/event", *CONTESTANTS, "target", "", "value: setting", "2 cores")
    print_table(
        f"Two threads against the {BASELINE} clone of the same round: more is faster",
        headings,
        table,
        (2, 3, 4, 5, 6, 7, 11),
    )


def _print_automatic(automatic: list[AutoResult], phases: list[Phase]) -> None:
    if automatic:
        steady = [
            [
                result.name,
                f"{result.ratio:.2f}",
                f"{result.low:.2f} .. {result.high:.2f}",
                _verdict(result.ratio >= AUTO_TARGET),
                result.rival,
            ]
            for result in automatic
        ]
        print_table(
            "Auto against the better of plain and the best fixed setting, compiled operators: "
            f"at least {AUTO_TARGET}",
            ("load", "ratio", "quartiles", "", "rival"),
            steady,
            (1, 2),
        )
    if phases:
        changing = [
            [
                phase.title,
                f"{phase.ratio:.2f}",
                _verdict(phase.ratio >= PHASE_TARGET),
                phase.rival,
                f"{phase.capacity:.2f}",
            ]
            for phase in phases
        ]
        total, rival = over_all(phases)
        changing.append(
            ["all phases", f"{total:.2f}", _verdict(total >= AUTO_TARGET), f"{rival} in all", ""]
        )
        print_table(
            f"Auto over phases of a second: at least {PHASE_TARGET} of the best setting of each "
            f"phase, {AUTO_TARGET} of the one setting that is best over all",
            ("phase", "ratio", "", "rival", "2 cores"),
            changing,
            (1, 4),
        )


if __name__ == "__main__":
    sys.exit(main())
