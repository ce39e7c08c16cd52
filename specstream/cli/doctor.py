"""``specstream doctor``: what is missing on this machine."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from specstream.cli.errors import reported_errors
from specstream.cli.options import Command, json_option
from specstream.doctor.alone import nobody_reads_on, printable, tell, write
from specstream.doctor.beginning import began
from specstream.doctor.examination import checks
from specstream.doctor.finding import Check, Finding, is_complete, run, summary
from specstream.doctor.report import as_json as report

__all__ = ["doctor"]

STYLES = {"ok": "green", "warning": "yellow", "missing": "bold red"}


@click.command(cls=Command)
@click.option(
    "--spark",
    is_flag=True,
    help="Start a Spark session and run two micro-batches; takes some seconds.",
)
@click.option(
    "--checkpoint", metavar="DIR", help="Check a directory that checkpoint= uses or will use."
)
@json_option
def doctor(*, spark: bool, checkpoint: str | None, as_json: bool) -> None:
    """Say what is missing on this machine, and what to do.

    Versions, the engine (which is run), permissions, limits and, where PySpark is installed, what
    Spark needs. The exit status is 1 if something required is missing or broken; warnings do not
    count. Only entries of the compile cache remain of what it writes. No network is needed.
    """
    with reported_errors():
        began()
        printable((sys.stdout, sys.stderr))
        findings = _looked(checks(spark, checkpoint))
        if as_json:
            write(json.dumps(report(findings)))
        else:
            show(findings)
    if not is_complete(findings):
        sys.exit(1)


class _Report(Console):
    """Where nobody reads on, the exit status still says what was found."""

    def on_broken_pipe(self) -> None:
        self.quiet = True
        nobody_reads_on()


def _looked(chosen: Sequence[Check]) -> list[Finding]:
    """Makes the checks, and says meanwhile what is waited for."""
    stderr = Console(stderr=True)
    if not stderr.is_terminal:
        return list(run(chosen, say=tell))
    status = stderr.status("looking")
    try:
        status.start()
    except RuntimeError:  # no thread is to be had
        return list(run(chosen, say=tell))
    with status:
        return list(run(chosen, say=lambda text: status.update(text)))


def show(findings: Sequence[Finding]) -> None:
    """A table of what was found, and below it what to do."""
    if sys.stdout is None:  # closed by who started this
        return
    console = _Report(width=None if sys.stdout.isatty() else 120, highlight=False)
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for finding in findings:
        verdict = Text(finding.verdict, style=STYLES[finding.verdict])
        table.add_row(verdict, Text(finding.name), Text(finding.found))
    console.print(table)
    todo = [finding for finding in findings if finding.advice]
    if todo:
        advice = Table(box=None, pad_edge=False, show_header=False)
        advice.add_column(no_wrap=True)
        advice.add_column(overflow="fold")
        for finding in todo:
            advice.add_row(Text(finding.name, style=STYLES[finding.verdict]), Text(finding.advice))
        console.print("\nWhat to do:")
        console.print(advice)
    console.print(Text(f"\n{summary(findings)}"))
