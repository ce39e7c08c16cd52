"""The page that shows all figures: the text's claim beside what was seen here."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.chapter4.experiment import Experiment, Finding

__all__ = ["findings_of", "page", "write"]


def findings_of(experiment: Experiment, folder: Path) -> tuple[Mapping[str, Any], list[Finding]]:
    """The machine and the findings, out of the experiment's file."""
    stored = json.loads((folder / f"{experiment.name}.json").read_text())
    return stored["machine"], experiment.judge(stored["data"])


def _anchor(title: str) -> str:
    """The anchor of a heading, as pages of repositories have it."""
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")


def page(experiments: Sequence[Experiment], folder: Path, page: Path) -> str:
    """The page as Markdown; experiments without a file are left out."""
    measured = [e for e in experiments if (folder / f"{e.name}.json").exists()]
    lines = [
        "# The evaluation of chapter 4, again",
        "",
        "Each figure and table of Brito's dissertation (2010, chapter 4) as an experiment with",
        "this runtime: `make figures` measures them all and writes this page. What the text claims",
        "stands beside what was seen here; *no* means that the shape did not appear.",
        "",
        "| experiment | shapes that appeared |",
        "| --- | --- |",
    ]
    found = {experiment.name: findings_of(experiment, folder) for experiment in measured}
    for experiment in measured:
        findings = found[experiment.name][1]
        held = sum(finding.holds for finding in findings)
        link = f"[{experiment.title}](#{_anchor(experiment.title)})"
        lines.append(f"| {link} | {held} of {len(findings)} |")
    for experiment in measured:
        machine, findings = found[experiment.name]
        picture = (folder / f"{experiment.name}.png").relative_to(page.parent)
        lines += [
            "",
            f"## {experiment.title}",
            "",
            f"**The text.** {experiment.claim}",
            "",
            f"![{experiment.title}]({picture})",
            "",
            "| what must appear | seen here | |",
            "| --- | --- | --- |",
        ]
        lines += [
            f"| {finding.what} | {finding.seen} | {'yes' if finding.holds else '**no**'} |"
            for finding in findings
        ]
        if experiment.notes:
            lines += ["", experiment.notes]
        lines += ["", "Measured on: " + ", ".join(f"{k} {v}" for k, v in machine.items()) + "."]
    return "\n".join(lines) + "\n"


def write(experiments: Sequence[Experiment], folder: Path, target: Path) -> None:
    target.write_text(page(experiments, folder, target))
