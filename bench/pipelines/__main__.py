"""``python -m bench pipelines [--plot [FOLDER]] [--json FILE] [--quick] [--only PART] [--resume]``.

With ``--plot`` the page is written too: its tables and its sentences say what the data say.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.options import earlier, pages_of
from bench.pages import print_expected, write_page
from bench.pipelines.graphs import GRAPHS
from bench.pipelines.measure import FULL, QUICK, Amount, asleep, busy, one_vertex, quiet
from bench.pipelines.page import expectations, page
from bench.pipelines.plot import draw_pipelines
from bench.report import print_table, progress_bar
from bench.stored import to_text
from specstream.tuning.machine import describe

Say = Callable[[str], None]

FOLDER = Path("docs/research")
UNFINISHED = Path("build/bench-pipelines.json")


def main() -> int:
    """Measures, prints what was expected and seen, writes the files that were asked for."""
    parser = pages_of("python -m bench pipelines", __doc__, FOLDER, list(all_parts()), "this part")
    parser.add_argument(
        "--resume",
        action="store_true",
        help=f"go on where a run was interrupted that has left {UNFINISHED}",
    )
    arguments = parser.parse_args()
    if arguments.only and arguments.plot:
        parser.error("--plot wants all parts: leave out --only")
    kept_earlier = earlier(parser, arguments)
    if kept_earlier:
        (measured,) = kept_earlier
    else:
        parts = [name for name in all_parts() if not arguments.only or name in arguments.only]
        measured = _measured(parts, QUICK if arguments.quick else FULL, arguments.resume)
        _print(measured)
    # What is drawn is what is kept, with as many digits.
    text = to_text(measured)
    if arguments.json:
        arguments.json.write_text(text)
    if arguments.plot:
        kept = json.loads(text)
        write_page(arguments.plot, "pipelines", text, draw_pipelines(kept), page(kept))
    if not arguments.earlier:
        UNFINISHED.unlink(missing_ok=True)
    return 0


def all_parts() -> dict[str, Callable[[Amount, Say], Any]]:
    """What there is to measure, by name."""
    found: dict[str, Callable[[Amount, Say], Any]] = {}
    for graph in GRAPHS:
        found[graph.name] = lambda amount, say, graph=graph: busy(graph, amount, say)  # type: ignore[misc]
    for graph in GRAPHS:
        if graph.asleep is not None:
            found[f"{graph.name}-asleep"] = lambda amount, say, graph=graph: asleep(  # type: ignore[misc]
                graph, amount, say
            )
    return {**found, "quiet": quiet, "one-vertex": one_vertex}


def _measured(names: list[str], amount: Amount, resume: bool) -> dict[str, Any]:
    """All parts, one after the other; what is done stands in a file until everything is."""
    measured: dict[str, Any] = {"machine": describe(), "quick": amount is QUICK, "parts": {}}
    if resume and UNFINISHED.exists():
        begun = json.loads(UNFINISHED.read_text())
        alike = ("processor", "cores", "specstream", "numba", "numpy", "python")
        if begun["quick"] != measured["quick"] or any(
            begun["machine"][one] != measured["machine"][one] for one in alike
        ):
            raise SystemExit(f"{UNFINISHED} is of another machine or version: leave out --resume")
        measured = begun
    print(", ".join(f"{name} {value}" for name, value in measured["machine"].items()))
    UNFINISHED.parent.mkdir(exist_ok=True)
    with progress_bar(len(names)) as (say, step):
        for name in names:
            if name not in measured["parts"]:
                measured["parts"][name] = all_parts()[name](amount, say)
                UNFINISHED.write_text(to_text(measured))
            step()
    return measured


def _print(measured: dict[str, Any]) -> None:
    parts = measured["parts"]
    for graph in GRAPHS:
        if graph.name in parts:
            of = parts[graph.name]
            rows = [
                [
                    name,
                    f"{one['nanoseconds']:,.0f}",
                    f"{one['speed'][1]:.3f}",
                    f"{one['speed'][0]:.2f} .. {one['speed'][2]:.2f}",
                    one["setting"],
                    "" if one["dropped"] is None else f"{one['dropped']:.1%}",
                ]
                for name, one in of["contestants"].items()
            ]
            print_table(
                f"{graph.title}; two cores {of['capacity']:.2f}",
                ("", "ns/event", "speed", "quartiles", "setting", "dropped"),
                rows,
                (1, 2, 5),
            )
        if f"{graph.name}-asleep" in parts:
            of = parts[f"{graph.name}-asleep"]
            print_table(
                f"{graph.title}; asleep {of['milliseconds']:g} ms",
                ("", "speed"),
                [[name, f"{speed[1]:.2f}"] for name, speed in of["speed"].items()],
                (1,),
            )
    print_expected(expectations(measured))


if __name__ == "__main__":
    sys.exit(main())
