"""``python -m bench chapter4 [NAME ...] [--quick] [--redraw] [--folder FOLDER] [--page FILE]``."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.chapter4 import gallery
from bench.chapter4.experiment import Effort, Experiment, Say
from bench.chapter4.experiments import EXPERIMENTS
from bench.stored import to_text
from specstream.figures.style import save
from specstream.tuning.machine import describe

FOLDER = Path("docs/research/chapter4")
PAGE = Path("docs/research/chapter4.md")


def main() -> int:
    """Measures, draws, judges; 1: a shape did not appear."""
    parser = argparse.ArgumentParser(prog="python -m bench chapter4", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="experiments; all if none is given"
    )
    parser.add_argument("--list", action="store_true", help="the names of the experiments")
    parser.add_argument("--quick", action="store_true", help="hardly any repetitions")
    parser.add_argument(
        "--redraw", action="store_true", help="from the stored data; measure nothing"
    )
    parser.add_argument("--folder", type=Path, default=FOLDER, help="for data and pictures")
    parser.add_argument("--page", type=Path, default=PAGE, help="the gallery page")
    arguments = parser.parse_args()
    if arguments.list:
        for experiment in EXPERIMENTS:
            print(f"{experiment.name:24} {experiment.title}")
        return 0
    unknown = set(arguments.names) - {experiment.name for experiment in EXPERIMENTS}
    if unknown:
        names = ", ".join(experiment.name for experiment in EXPERIMENTS)
        parser.error(f"no experiment is called {', '.join(sorted(unknown))}; there are {names}")
    wanted = [e for e in EXPERIMENTS if not arguments.names or e.name in arguments.names]
    arguments.folder.mkdir(parents=True, exist_ok=True)
    missing = 0
    for number, experiment in enumerate(wanted):
        print(f"{experiment.title} ({number + 1} of {len(wanted)})", flush=True)
        missing += _run(experiment, arguments.folder, Effort(arguments.quick), arguments.redraw)
    gallery.write(EXPERIMENTS, arguments.folder, arguments.page)
    print(f"written: {arguments.page}")
    return 1 if missing else 0


def _run(experiment: Experiment, folder: Path, effort: Effort, redraw: bool) -> int:
    """How many shapes did not appear."""
    file = folder / f"{experiment.name}.json"
    if not redraw:
        began = time.perf_counter()
        with _progress() as say:
            data = experiment.measure(effort, say)
        stored = {"machine": {**describe(), "commit": _commit()}, "data": data}
        file.write_text(to_text(stored))
        print(f"  {time.perf_counter() - began:.0f} s")
    elif not file.exists():
        raise SystemExit(f"{file} is not there: measure {experiment.name} first")
    data = json.loads(file.read_text())["data"]
    save(experiment.draw(data), folder / f"{experiment.name}.png")
    findings = experiment.judge(data)
    for finding in findings:
        print(f"  {'yes' if finding.holds else 'NO '}  {finding.what}: {finding.seen}", flush=True)
    return sum(not finding.holds for finding in findings)


def _commit() -> str:
    """The last change of what is measured; "unknown": outside of a checkout."""
    root = Path(__file__).parents[2]
    asked = ["git", "log", "-1", "--format=%h", "--", "specstream", "stm_native/src", "operators"]
    try:
        told = subprocess.run(asked, cwd=root, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return told.stdout.strip() or "unknown"


@contextmanager
def _progress() -> Iterator[Say]:
    """A line that says what is measured now, where somebody may be looking."""
    if not sys.stderr.isatty():
        yield lambda text: None
        return
    from rich.console import Console

    with Console(stderr=True).status("") as status:
        yield lambda text: status.update(text)


if __name__ == "__main__":
    sys.exit(main())
