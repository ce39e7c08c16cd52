"""Options that the commands have in common which measure, draw and write pages."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

__all__ = ["draws", "earlier", "pages_of"]


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
