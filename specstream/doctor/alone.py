"""``specstream doctor`` where the command line, or the package itself, cannot be imported.

Then neither click nor rich may be there, and what is missing is what the user wants to know.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
from collections.abc import Sequence

from specstream.doctor.examination import checks
from specstream.doctor.finding import is_complete, run, summary
from specstream.doctor.report import as_json

__all__ = ["is_asked_for", "main", "take_over"]


def is_asked_for() -> bool:
    """Whether this process is ``specstream doctor``."""
    by_name = os.path.basename(sys.argv[0]) == "specstream" if sys.argv else False
    return sys.argv[1:2] == ["doctor"] and (by_name or "specstream.cli" in sys.orig_argv)


def take_over(error: BaseException) -> None:
    """Called when an import has failed: ends the process if it is the doctor's, else returns.

    Raises:
        SystemExit: it was; with the doctor's status.
    """
    if is_asked_for():
        raise SystemExit(main(sys.argv[2:]))
    error.add_note("`specstream doctor` says what is missing on this machine")


def main(arguments: Sequence[str]) -> int:
    """Runs all checks and prints them without a table; gives the exit status."""
    parser = argparse.ArgumentParser(prog="specstream doctor")
    parser.add_argument("--spark", action="store_true", help="start a Spark session as well")
    parser.add_argument("--checkpoint", metavar="DIR", help="look at a directory of checkpoints")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # None where it is closed
            stream.reconfigure(errors="backslashreplace")
    try:
        return _main(options)
    except BrokenPipeError:
        # Nobody reads on; at its end Python would try to write what is left.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 1


def _main(options: argparse.Namespace) -> int:
    findings = []
    for finding in run(checks(options.spark, options.checkpoint), say=lambda text: None):
        findings.append(finding)
        if not options.json:
            print(f"{finding.verdict:8}{finding.name}: {finding.found}")
            if finding.advice:
                print(f"        -> {finding.advice}")
    print(json.dumps(as_json(findings)) if options.json else f"\n{summary(findings)}")
    return 0 if is_complete(findings) else 1
