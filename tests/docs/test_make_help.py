"""``make help`` and ``make help-all`` tell of every target, in the words beside it."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
MAKEFILE = (ROOT / "Makefile").read_text()


def make(*arguments: str) -> str:
    """What make prints, also where the tests are run by another make."""
    environment = {name: value for name, value in os.environ.items() if name != "MAKEFLAGS"}
    command = ["make", "--no-print-directory", *arguments]
    return subprocess.run(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True
    ).stdout


def targets_of(page: str) -> list[str]:
    shown = make("--silent", page)
    lines = [re.fullmatch(r"make (\S+) +(\S.*)", line) for line in shown.splitlines()]
    assert all(lines), shown
    return [line[1] for line in lines if line]


def test_every_target_has_its_line() -> None:
    (names,) = re.findall(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)
    (lints,) = re.findall(r"^LINTS := (.*)$", MAKEFILE, re.MULTILINE)
    phony = names.replace("$(LINTS)", lints).split()
    assert sorted(targets_of("help-all")) == sorted([*phony, "bench-NAME"])


def test_what_makes_no_file_is_phony() -> None:
    """So that every target that a person types is in the list above."""
    (names,) = re.findall(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)
    typed = set(re.findall(r"^([a-z][a-z-]*):(?!=)", MAKEFILE, re.MULTILINE))
    typed -= {name for name in typed if name.startswith(("lint-", "bench-"))}
    assert typed == set(names.replace("$(LINTS)", "").split())


def test_the_first_page_is_short_and_names_the_way_to_the_rest() -> None:
    (names,) = re.findall(r"^HELP := (.*)$", MAKEFILE, re.MULTILINE)
    shown = targets_of("help")
    assert sorted(shown) == sorted(names.split())
    assert len(shown) <= 12
    assert {"demo", "quick", "test", "help-all"} <= set(shown)


def test_one_rule_runs_every_benchmark() -> None:
    for given, line in (
        ([], "-m bench containers --plot"),
        (["BENCH_ARGS=--quick --only speed"], "-m bench containers --quick --only speed"),
    ):
        assert make("--dry-run", "bench-containers", *given).rstrip().endswith(line)
