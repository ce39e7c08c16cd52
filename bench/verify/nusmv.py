"""NuSMV 2.5.4 on a model: in a process of its own, whose memory nobody else sees."""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Answer", "MissingError", "Run", "ask", "library"]

ROOT = Path(__file__).parents[2]
# It loads nothing else: symbols of other libraries would be taken for the library's own.
_PROGRAM = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
library.NuSMVCore_init_data()
library.NuSMVCore_init(None, 0)
library.NuSMVCore_init_cmd_options()
names = (ctypes.c_char_p * 3)(b"NuSMV", sys.argv[2].encode(), None)
library.NuSMVCore_main(2, names)
"""
_SPECIFICATION = re.compile(r"-- (specification|invariant)\s+(.*?)\s+is (true|false)\s*$")
_STATE = re.compile(r"-> State: \d+\.(\d+) <-")


class MissingError(Exception):
    """NuSMV cannot be had here."""


@dataclass
class Answer:
    """What it says of a specification.

    Attributes:
        text: as it repeats the specification.
        holds: whether it holds.
        states: of the counterexample; 0: there is none.
    """

    text: str
    holds: bool
    states: int = 0


@dataclass
class Run:
    """What it says of a model.

    Attributes:
        answers: in its order: of CTL, of LTL, of invariants.
        seconds: of the whole process.
    """

    answers: list[Answer]
    seconds: float


@functools.cache
def library() -> Path:
    """The library that it is.

    Raises:
        MissingError: there is none.
    """
    found = subprocess.run(
        [ROOT / ".ci" / "ensure-nusmv"],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHON": sys.executable},
    )
    if found.returncode:
        raise MissingError(found.stderr.strip())
    return Path(found.stdout.strip())


def ask(model: str, seconds: float = 300.0) -> Run:
    """What it says of a model.

    Raises:
        MissingError: it cannot be had.
        ValueError: it does not take the model; says why.
        subprocess.TimeoutExpired: it has no answer in so many seconds.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.smv"
        file.write_text(model)
        command = [sys.executable, "-I", "-S", "-c", _PROGRAM, str(library()), str(file)]
        began = time.perf_counter()
        ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=seconds)
        took = time.perf_counter() - began
    answers: list[Answer] = []
    for line in ran.stdout.splitlines():
        if found := _SPECIFICATION.match(line):
            answers.append(Answer(found[2], found[3] == "true"))
        elif (at := _STATE.match(line.strip())) and answers:
            answers[-1].states = int(at[1])
    asked = len(re.findall(r"^(?:INVARSPEC|CTLSPEC|LTLSPEC)", model, re.MULTILINE))
    if len(answers) != asked:
        told = (ran.stdout + ran.stderr).strip()[-2000:]
        raise ValueError(f"{len(answers)} of {asked} answers: {told}")
    return Run(answers, took)
