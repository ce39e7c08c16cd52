"""``specstream doctor`` where the command line, or the package itself, cannot be imported.

Then neither click nor rich may be there, and what is missing is what the user wants to know. Each
check has a process of its own, as what it imports may crash.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import signal
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import TextIO

from specstream.doctor import beginning
from specstream.doctor.examination import checks
from specstream.doctor.finding import LOOK_ABOVE, Check, Finding, Verdict, is_complete, run, summary
from specstream.doctor.limits import hint
from specstream.doctor.report import as_json
from specstream.doctor.requirements import PACKAGE, version_of

__all__ = ["main", "nobody_reads_on", "printable", "take_over", "tell", "write"]


def take_over(error: BaseException | None) -> None:
    """Called when an import has failed: ends the process if it is the doctor's, else returns.

    Args:
        error: what was raised; None: the process was ended, and another one calls this.

    Raises:
        SystemExit: it was, or was asked for the version only; with its status.
    """
    if beginning.is_asked_for():
        beginning.began()
        raise SystemExit(main(sys.argv[2:]))
    if sys.argv[1:] == ["--version"] and beginning.is_command():
        print(f"{PACKAGE}, version {version_of(PACKAGE)}")
        raise SystemExit(0)
    if error is not None:
        beginning.name_the_doctor(error)


def printable(streams: Iterable[TextIO | None]) -> None:
    """Has streams show by its number what they cannot show, as names of files, of any bytes."""
    for stream in streams:
        if isinstance(stream, io.TextIOWrapper):  # None where it is closed
            stream.reconfigure(errors="backslashreplace")


def nobody_reads_on() -> None:
    """At its end Python would try to write what is left."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def main(arguments: Sequence[str]) -> int:
    """Runs all checks and prints them without a table; gives the exit status."""
    parser = argparse.ArgumentParser(prog="specstream doctor")
    parser.add_argument("--spark", action="store_true", help="start a Spark session as well")
    parser.add_argument("--checkpoint", metavar="DIR", help="look at a directory of checkpoints")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(arguments)
    printable((sys.stdout, sys.stderr))
    try:
        status = _main(options)
        if sys.stdout is not None:
            sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except OSError as error:
        nobody_reads_on()
        print(f"specstream doctor: standard output: {error.strerror}", file=sys.stderr)
        return 1


def _main(options: argparse.Namespace) -> int:
    findings = []
    apart = map(_apart, checks(options.spark, options.checkpoint))
    for finding in run(apart, say=tell):
        findings.append(finding)
        if not options.json:
            write(f"{finding.verdict:8}{finding.name}: {finding.found}")
            if finding.advice:
                write(f"        -> {finding.advice}")
    write(json.dumps(as_json(findings)) if options.json else f"\n{summary(findings)}")
    return 0 if is_complete(findings) else 1


def write(text: str) -> None:
    """Where nobody reads on, the exit status still says what was found."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        nobody_reads_on()


def tell(text: str) -> None:
    """Says what is waited for, and nothing of what is just begun."""
    if ": " in text:
        print(text, file=sys.stderr, flush=True)


def _apart(check: Check) -> Check:
    """The same check in a process of its own."""

    def look(say: Callable[[str], None]) -> Finding:
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            _answer(check, writer)
        os.close(writer)
        with os.fdopen(reader, "rb") as stream:
            output = stream.read()
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if output:
            return Finding(**json.loads(output))
        verdict: Verdict = "missing" if check.is_required else "warning"
        how = f"crashed: {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
        advice = hint(how) or LOOK_ABOVE
        return Finding(check.name, verdict, f"cannot be looked at: {how}", advice)

    return Check(check.name, look, check.is_required)


def _answer(check: Check, writer: int) -> None:
    """Makes a check, in a process of its own, which ends here."""
    try:
        (finding,) = run([check], say=tell)
        with os.fdopen(writer, "wb") as stream:
            stream.write(json.dumps(asdict(finding)).encode())
    finally:
        os._exit(0)
