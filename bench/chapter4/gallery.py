"""The page that shows all figures: the text's claim beside what was seen here."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.chapter4.experiment import Experiment, Finding
from bench.chapter4.margin import MARGIN

__all__ = ["findings_of", "page", "write"]

_HEAD = (
    "# The evaluation of chapter 4, again",
    "",
    "Each figure and table of Brito's dissertation (2010, chapter 4) as an experiment with",
    "this runtime: `make bench-chapter4` measures them all and writes this page. What the text",
    "claims stands beside what was seen here; *no* means that the shape did not appear, and what",
    "was measured to find out why stands below.",
    "",
    MARGIN,
    "",
)
_TESTS = "evidence.md#stepped-tests"
# What is none of the experiments, and why.
_ELSEWHERE = (
    "Not measured here:",
    "",
    "- **Figure 4.10**, and the right-hand panels of 4.5 to 4.14: the text's second machine, a Sun",
    "  Niagara, whose cores run several hardware threads each. There is none here, and a virtual",
    "  machine of two cores cannot stand for one.",
    "- **Figures 4.1 and 4.2** are drawings: see [the algorithm](algorithm.md).",
    "- **Table 4.1** (who aborts in the eight cases of two transactions and one word), the",
    "  operations that commute (**Table 4.2**) and the six steps each of **Figure 4.3** (out of",
    "  order) and **Figure 4.4** (parallel) are tests: [`test_table_4_1.c`, `test_boosting.c`,",
    f"  `test_open_job.c`, `test_parallel.c`]({_TESTS}).",
)


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
    found = {experiment.name: findings_of(experiment, folder) for experiment in measured}
    lines = [*_HEAD, *_machines({name: machine for name, (machine, _) in found.items()}), ""]
    lines += ["| experiment | section | shapes that appeared |", "| --- | --- | --- |"]
    for experiment in measured:
        findings = found[experiment.name][1]
        held = sum(finding.holds for finding in findings)
        link = f"[{experiment.title}](#{_anchor(experiment.title)})"
        lines.append(f"| {link} | {experiment.section} | {held} of {len(findings)} |")
    lines += ["", *_ELSEWHERE]
    for experiment in measured:
        lines += ["", *_shown(experiment, found[experiment.name][1], folder, page)]
    return "\n".join(lines) + "\n"


def _machines(machines: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """What was measured on: one line, unless the experiments differ in it."""
    told: dict[str, list[str]] = {}
    for name, machine in machines.items():
        text = ", ".join(f"{key} {value}" for key, value in machine.items() if key != "load")
        told.setdefault(text, []).append(name)
    if len(told) == 1:
        return [f"**Measured on:** {text}." for text in told]
    return [f"**Measured on:** {text} ({', '.join(names)})." for text, names in told.items()]


def _shown(
    experiment: Experiment, findings: Sequence[Finding], folder: Path, page: Path
) -> list[str]:
    """One experiment: the claim, the picture, what was to be seen, and why some of it was not."""
    picture = (folder / f"{experiment.name}.png").relative_to(page.parent)
    lines = [
        f"## {experiment.title}",
        "",
        f"**The text** ({experiment.section}). {experiment.claim}",
        "",
        f"![{experiment.title}]({picture})",
    ]
    if experiment.definitions:
        lines.append("")
        lines += [f"- *{word}*: {means}" for word, means in experiment.definitions.items()]
    lines += ["", "| what must appear | seen here | |", "| --- | --- | --- |"]
    lines += [
        f"| {finding.what} | {finding.seen} | {'yes' if finding.holds else '**no**'} |"
        for finding in findings
    ]
    missed = [finding for finding in findings if not finding.holds]
    if missed:
        lines += ["", "Why not:", ""]
        lines += [f"- *{finding.what}*: {finding.because}" for finding in missed]
    if experiment.notes:
        lines += ["", experiment.notes]
    return lines


def write(experiments: Sequence[Experiment], folder: Path, target: Path) -> None:
    target.write_text(page(experiments, folder, target))
