"""One planted defect, what became of it, and a copy of the sources to plant it in."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
import time
import tomllib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["ROOT", "Copy", "Ended", "Mutant", "Result", "Unusable", "read_mutants", "run_program"]

ROOT = Path(__file__).resolve().parents[3]


@dataclass(frozen=True)
class Mutant:
    name: str
    breaks: str
    file: str  # below the directory that the list is about
    old: str
    new: str
    seen_by: str
    model: str = ""


@dataclass(frozen=True)
class Result:
    name: str
    breaks: str
    killed_by: str  # empty: it survives
    how: str
    seconds: float


class Unusable(Exception):
    """The list does not fit the sources, or the tests fail without a defect."""


def read_mutants(listed: Path, sources: Path) -> list[Mutant]:
    """The entries of a list, each of which fits the sources."""
    mutants = [Mutant(**entry) for entry in tomllib.loads(listed.read_text())["mutant"]]
    names = [mutant.name for mutant in mutants]
    wrong = [f"{name}: the name is there twice" for name in {*names} if names.count(name) > 1]
    for mutant in mutants:
        source = sources / mutant.file
        found = source.read_text().count(mutant.old) if source.exists() else 0
        if found != 1:
            wrong.append(f"{mutant.name}: its old text is {found} times in {mutant.file}")
        if mutant.old == mutant.new:
            wrong.append(f"{mutant.name}: it changes nothing")
    refuse(listed, wrong)
    return mutants


def refuse(listed: Path, wrong: Sequence[str]) -> None:
    if wrong:
        raise Unusable(f"{listed.relative_to(ROOT)}:\n  " + "\n  ".join(wrong))


class Copy(ABC):
    """A copy of the sources in which one defect at a time is planted."""

    # Where the files of the list lie in the copy.
    sources: Path

    @abstractmethod
    def run_without_defect(self, mutants: Sequence[Mutant]) -> None:
        """What is to find them passes; raises Unusable."""

    @abstractmethod
    def find(self, mutant: Mutant) -> tuple[str, str] | None:
        """By what the planted defect is found, and how; None: it is not."""

    def try_out(self, mutant: Mutant) -> Result:
        source = self.sources / mutant.file
        original = source.read_text()
        started = time.monotonic()
        source.write_text(original.replace(mutant.old, mutant.new))
        try:
            by, how = self.find(mutant) or ("", "nothing notices it")
        except Unusable as error:
            by, how = "", str(error)
        finally:
            source.write_text(original)
        return Result(mutant.name, mutant.breaks, by, how, time.monotonic() - started)


@dataclass(frozen=True)
class Ended:
    """How a program ended; no status: it had to be ended."""

    status: int | None
    output: str
    seconds: float

    @property
    def hangs(self) -> str:
        return f"it hangs: no end within {self.seconds:.0f} s"

    def first(self, pattern: str) -> re.Match[str] | None:
        return re.search(pattern, self.output, re.MULTILINE)


def run_program(
    command: Sequence[str], directory: Path, environment: Mapping[str, str], limit: float
) -> Ended:
    """With all that it starts, which may outlive it and keep what it writes to."""
    began = time.monotonic()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            command,
            cwd=directory,
            env=os.environ | environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        status: int | None = None
        try:
            status = process.wait(limit)
        except subprocess.TimeoutExpired:
            pass
        finally:
            if status is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        output.seek(0)
        text = output.read().decode(errors="replace")
    return Ended(status, text, time.monotonic() - began)
