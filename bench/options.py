"""What commands have in common which measure, draw and write pages: options, and their order."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from matplotlib.figure import Figure

from bench.pages import write_page
from bench.report import progress_bar
from bench.stored import to_text
from specstream.tuning.machine import describe

__all__ = [
    *("Measure", "Say", "draws", "earlier"),
    *("measure_amount", "measure_parts", "page_command", "pages_of"),
]

Say = Callable[[str], None]
Measure = Callable[[Say], Any]
Amount = TypeVar("Amount")


def draws(
    prog: str,
    description: str | None,
    plot: Path,
    drawn: str,
    *,
    kept: str = "draw what an earlier run has kept as JSON, with --plot, and measure nothing",
    quick: str = "fewer and shorter rounds",
    several: bool = False,
) -> argparse.ArgumentParser:
    """A parser of ``--json``, ``--plot``, ``--from`` (as ``earlier``) and ``--quick``.

    Args:
        prog: the command.
        description: of it.
        plot: what ``--plot`` alone names, a file with a suffix or a folder.
        drawn: help of ``--plot``.
        kept: help of ``--from``.
        quick: help of ``--quick``.
        several: whether ``--from`` may be given several times; then it is a list.
    """
    parser = argparse.ArgumentParser(prog=prog, description=description)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was measured")
    parser.add_argument(
        "--plot",
        type=Path,
        metavar="FILE" if plot.suffix else "FOLDER",
        nargs="?",
        const=plot,
        help=drawn,
    )
    parser.add_argument(
        "--from",
        dest="earlier",
        type=Path,
        metavar="FILE",
        action="append" if several else "store",
        help=kept,
    )
    parser.add_argument("--quick", action="store_true", help=quick)
    return parser


def pages_of(
    prog: str, description: str | None, plot: Path, parts: list[str], this: str
) -> argparse.ArgumentParser:
    """A parser of a command that writes a page, with ``--only`` for one of its parts.

    Args:
        prog: the command.
        description: of it.
        plot: the folder of the page.
        parts: names of the parts.
        this: what ``--only`` calls one of them.
    """
    parser = draws(
        prog,
        description,
        plot,
        f"write data, picture and page; {plot} unless another folder is named",
        kept="what an earlier run has kept as JSON, with --plot; measure nothing",
        quick="few and short rounds",
    )
    parser.add_argument("--only", action="append", choices=parts, help=f"{this}; without --plot")
    return parser


def earlier(
    parser: argparse.ArgumentParser, arguments: argparse.Namespace, drawn: str = "a folder"
) -> list[Any]:
    """What ``--from`` names, read; without it an empty list. Ends the command where it draws
    nothing."""
    given = arguments.earlier or []
    if given and not arguments.plot:
        parser.error(f"--from draws: name {drawn} with --plot")
    return [json.loads(one.read_text()) for one in (given if isinstance(given, list) else [given])]


def page_command(
    parser: argparse.ArgumentParser,
    name: str,
    whole: str,
    measure: Callable[[argparse.Namespace], dict[str, Any]],
    show: Callable[[dict[str, Any]], None],
    draw: Callable[[dict[str, Any]], Figure],
    page: Callable[[dict[str, Any]], str],
) -> int:
    """Runs a command of :func:`pages_of`: measures or reads, shows, writes what was asked for.

    Args:
        parser: of its options.
        name: of the files of the page, without their endings.
        whole: all of its parts, in a message.
        measure: what is to be kept, by the options.
        show: prints it.
        draw: makes the picture of it.
        page: makes the text of it.
    """
    arguments = parser.parse_args()
    if arguments.only and arguments.plot:
        parser.error(f"--plot wants {whole}: leave out --only")
    kept_earlier = earlier(parser, arguments)
    # What is shown is what is kept, with as many digits.
    text = to_text(kept_earlier[0] if kept_earlier else measure(arguments))
    kept = json.loads(text)
    if not kept_earlier:
        show(kept)
    if arguments.json:
        arguments.json.write_text(text)
    if arguments.plot:
        write_page(arguments.plot, name, text, draw(kept), page(kept))
    return 0


def measure_amount(
    arguments: argparse.Namespace,
    parts: Mapping[str, Callable[[Amount, Say], Any]],
    full: Amount,
    quick: Amount,
) -> dict[str, Any]:
    """What is to be kept of a command of :func:`pages_of` whose parts are told how much to measure.

    Args:
        arguments: of the command.
        parts: by their names.
        full: how much.
        quick: how much with ``--quick``.
    """
    amount = quick if arguments.quick else full
    measures = {name: partial(measure, amount) for name, measure in parts.items()}
    machine, found = measure_parts(measures, arguments.only)
    return {"machine": machine, "quick": arguments.quick, "parts": found}


def measure_parts(
    parts: Mapping[str, Measure], only: list[str] | None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The machine, and what each of the parts has measured; of some only, where they are named."""
    machine = describe()
    print(", ".join(f"{name} {value}" for name, value in machine.items()))
    names = [name for name in parts if not only or name in only]
    found = {}
    with progress_bar(len(names)) as (say, step):
        for name in names:
            found[name] = parts[name](say)
            step()
    return machine, found
