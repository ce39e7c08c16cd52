"""The C runtime with a defect, and the program that is to find it.

A defect is built, and run: the stepped tests first, then the stress program that the entry names,
with a fixed seed. One that hangs is killed by a time limit, which goes by what a test takes without
any. What no test can show on this processor is left to the model checker, and the entry names the
check. What does not build proves nothing.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from support.mutants.planted import ROOT, Copy, Mutant, Unusable, read_mutants, refuse, run_program

__all__ = ["LIST", "NATIVE", "SEED", "NativeCopy", "native_mutants"]

NATIVE = ROOT / "stm_native"
LIST = NATIVE / "tests" / "mutants.toml"
BUILDS = ("none", "thread", "address", "undefined")
SEED = 1
PATIENCE_SECONDS = 10
# Of the stepped tests without a defect; and with one so many times what they took then, but as many
# seconds at least.
WITHOUT_DEFECT_SECONDS = 1800
AS_LONG, LEAST_SECONDS = 10, 60
# They throw random events at it, or take seconds: after those that say exactly what is wrong.
LAST_TABLES = ("test_limits", "test_order", "test_open_job", "test_no_memory")


def native_mutants() -> list[Mutant]:
    mutants = read_mutants(LIST, NATIVE)
    wrong = []
    levels = {"tables", "model", *(f"stress-{build}" for build in BUILDS)}
    for mutant in mutants:
        if mutant.seen_by not in levels:
            wrong.append(f"{mutant.name}: nobody is to see it")
        if (mutant.seen_by == "model") != bool(mutant.model):
            wrong.append(f"{mutant.name}: `model` goes with seen_by = 'model'")
    refuse(LIST, wrong)
    return mutants


def complaint(output: str) -> str:
    """The line that says what went wrong."""
    replay = re.search(r"replay: stress --seed (\d+) --world (\d+)", output)
    where = f"seed {replay[1]}, world {replay[2]}: " if replay else ""
    for pattern in (
        r"FAILED: (.*)",
        r"Assertion `(.*)' failed",
        r"ERROR: (AddressSanitizer: [\w-]+)",
        r"WARNING: (ThreadSanitizer: [\w -]+)",
        r"(runtime error: .*)",
        r"ERROR: (LeakSanitizer.*)",
    ):
        match = re.search(pattern, output)
        if match:
            return where + match[1]
    return where + "it ends with an error"


class NativeCopy(Copy):
    def __init__(self, directory: Path, stress_seconds: int) -> None:
        self.sources = directory / "stm_native"
        shutil.copytree(NATIVE, self.sources, ignore=shutil.ignore_patterns("__pycache__", "*.o"))
        self.tests = self.sources / "tests"
        self.stress_seconds = stress_seconds
        shutil.rmtree(self.tests / "build", ignore_errors=True)
        tables = {path.stem for path in self.tests.glob("test_*.c")}
        self.tables = [*sorted(tables - {*LAST_TABLES}), *LAST_TABLES]
        self.limits: dict[str, float] = {}

    def build(self, programs: list[str]) -> None:
        targets = [f"build/{program}" for program in programs]
        jobs = f"-j{os.cpu_count() or 1}"
        built = subprocess.run(
            ["make", "-C", str(self.tests), jobs, "STRICT=", *targets],
            capture_output=True,
            text=True,
        )
        if built.returncode != 0:
            errors = re.search(r"(?:error|ld): (.*)", built.stderr)
            raise Unusable(f"it does not build: {errors[1] if errors else built.stderr}")

    def run(self, command: list[str], limit: float) -> str | None:
        """What went wrong; None: nothing."""
        ended = run_program(command, self.tests, {"TSAN_OPTIONS": "halt_on_error=1"}, limit)
        if ended.status is None:
            return ended.hangs
        return complaint(ended.output) if ended.status != 0 else None

    def run_tables(self) -> tuple[str, str] | None:
        """The first time without a defect."""
        self.build(self.tables)
        for table in self.tables:
            began = time.monotonic()
            wrong = self.run([f"build/{table}"], self.limits.get(table, WITHOUT_DEFECT_SECONDS))
            if wrong is not None:
                return table, wrong
            taken = time.monotonic() - began
            self.limits.setdefault(table, max(LEAST_SECONDS, AS_LONG * taken))
        return None

    def run_stress(self, program: str) -> tuple[str, str] | None:
        seconds = self.stress_seconds
        self.build([program])
        command = [f"build/{program}", "--seed", str(SEED), "--seconds", str(seconds)]
        command += ["--patience", str(PATIENCE_SECONDS)]
        wrong = self.run(command, seconds + 3 * PATIENCE_SECONDS)
        return None if wrong is None else (program, wrong)

    def run_model(self, macros: str) -> tuple[str, str] | None:
        """The model's own list says that the defect of this name must be found."""
        checked = subprocess.run(
            [str(self.sources / "model" / "check.sh"), macros], capture_output=True, text=True
        )
        if "checks," not in checked.stdout:
            raise Unusable(checked.stderr.strip())
        line = re.match(r"as_expected +(sleep|assert)\b", checked.stdout)
        if checked.returncode != 0 or line is None:
            return None
        found = "somebody sleeps beside work" if line[1] == "sleep" else "an assertion fails"
        return "model", f"{macros}: {found}"

    def run_without_defect(self, mutants: Sequence[Mutant]) -> None:
        if any(mutant.model for mutant in mutants) and shutil.which("spin") is None:
            raise Unusable("some defects are found by the model, which needs spin: install it")
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        wrong = self.run_tables()
        if wrong is not None:
            raise Unusable(f"without any defect, {wrong[0]} fails: {wrong[1]}")

    def find(self, mutant: Mutant) -> tuple[str, str] | None:
        if mutant.seen_by == "model":
            self.build(self.tables)  # so that the entry is a change of the source indeed
            return self.run_model(mutant.model)
        killed = self.run_tables()
        if killed is None and mutant.seen_by != "tables":
            killed = self.run_stress(mutant.seen_by)
        return killed
