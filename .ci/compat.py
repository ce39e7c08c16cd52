#!/usr/bin/env python3
"""Runs tests over the oldest and newest NumPy, Numba and PySpark, and over other Pythons.

It is what ``make compat`` does.

The ends are those of ``pyproject.toml``. Each combination gets an environment of its own, in which
pip resolves the requirements of the wheel of this checkout, so that what the wheel asks for is
tried as well. The tests run against the wheel, never against the sources beside them.

Which Pythons there are: those on PATH, and pyenv's. What cannot be had is skipped, with a word.

What was tried is kept in ``docs/versions-tried.json``, the last result of each combination, and the
page that says it has its table from there; ``--draw`` only draws it anew.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
OLDEST, NEWEST = "oldest", "newest"
TRIED = ROOT / "docs" / "versions-tried.json"
PAGE = ROOT / "docs" / "should-i-use-it.md"
BEGIN, END = "<!-- by `make compat` -->\n", "<!-- end -->\n"
MARKS = "not spark and not slow and not large"
# Of those that need Spark, the kills are left in.
SPARK_MARKS = "not large and not long"
# What compiled code and columns do. Neither needs Spark.
TESTS = (
    "tests/compiler",
    "tests/engine",
    "tests/out_of_order",
    "tests/structures",
    "tests/operators",
    "tests/checkpoint/test_version_0_1.py",
    "tests/checkpoint/test_checkpoint.py",
)
# Those with which it is soon seen whether a version is worth the rest.
QUICK_TESTS = (
    "tests/compiler/test_compiler.py",
    "tests/compiler/test_exceptions.py",
    "tests/compiler/test_functions.py",
    "tests/compiler/test_mistakes.py",
    "tests/compiler/test_optional_values.py",
    "tests/compiler/test_state_containers.py",
    "tests/compiler/test_values.py",
    "tests/engine/test_containers.py",
    "tests/engine/test_engine.py",
    "tests/engine/test_snapshot.py",
    "tests/checkpoint/test_version_0_1.py",
)
# With the oldest and the newest PySpark.
SPARK_TESTS = (
    "tests/sinks",
    "tests/spark",
    "tests/pipelines/test_phases_by_time_in_spark.py",
    "tests/pipelines/test_pipelines_in_spark.py",
)
# Batches, sharded mode, apply, signals, kills.
QUICK_SPARK_TESTS = (
    "tests/spark/test_spark.py",
    "tests/spark/test_spark_crash.py",
    "tests/spark/test_spark_sharded.py::test_every_shard_gives_its_sequential_answer_also_after_restarts",
    "tests/spark/test_spark_sharded.py::test_a_back_test_is_the_sequential_run",
    "tests/spark/test_spark_stopping.py",
    "tests/spark/test_spark_time_zones.py",
)
# What the tests import beside specstream, with its extra `testing`.
BESIDE = ("pandas>=2.2,<3", "polars>=1.0", "duckdb>=1.0", "pyte>=0.8.2")


@dataclass
class Combination:
    """A Python and what is asked of three packages; then what came of it."""

    python: str
    numba: str
    numpy: str
    pyspark: str = ""
    """Empty: it is not installed, and nothing is tested that needs it."""
    versions: dict[str, str] = field(default_factory=dict)
    result: str = ""
    """``passed``, ``failed`` or ``skipped``."""
    said: str = ""
    passed: int = 0
    failed: int = 0
    seconds: float = 0.0

    @property
    def name(self) -> str:
        """As ``--only`` has it."""
        if self.pyspark:
            return f"python{self.python}-pyspark-{self.pyspark}"
        return f"python{self.python}-numba-{self.numba}-numpy-{self.numpy}"

    def tests(self, quick: bool) -> list[str]:
        """What is run with it."""
        if self.pyspark:
            return list(QUICK_SPARK_TESTS if quick else SPARK_TESTS)
        return list(QUICK_TESTS if quick else TESTS)


def combinations() -> Iterator[Combination]:
    """All four ends on the first Python, and both ends of Numba on the others; then PySpark's."""
    for numba, numpy in itertools.product((OLDEST, NEWEST), repeat=2):
        yield Combination(PYTHONS[0], numba, numpy)
    for python in PYTHONS[1:]:
        yield Combination(python, OLDEST, NEWEST)
        yield Combination(python, NEWEST, NEWEST)
    for pyspark in (OLDEST, NEWEST):
        yield Combination(PYTHONS[0], NEWEST, NEWEST, pyspark)


def lowest(package: str) -> str:
    """The version that pyproject.toml begins a package's range with.

    Raises:
        ValueError: it has no such range.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    for requirement in itertools.chain(project["dependencies"], *extras.values()):
        if found := re.match(rf"{package}>=([0-9.]+)", requirement):
            parts = found[1].split(".")
            return ".".join([*parts, "0", "0"][:3])
    raise ValueError(f"pyproject.toml has no {package}>=VERSION")


def interpreter(python: str) -> str | None:
    """A Python of that version that starts; None: there is none."""
    candidates = [found] if (found := shutil.which(f"python{python}")) else []
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    candidates += map(str, sorted(pyenv.glob(f"{python}.*/bin/python"), reverse=True))
    code = "import ensurepip, sys, venv; print('%d.%d' % sys.version_info[:2])"
    for one in candidates:
        asked = subprocess.run([one, "-c", code], capture_output=True, text=True, check=False)
        if asked.stdout.strip() == python:
            return one
    return None


def tell(text: str) -> None:
    """Progress; what is printed to standard output is the table alone."""
    print(text, file=sys.stderr, flush=True)


def run(command: list[str], log: Path, **environment: str) -> int:
    """Runs it, all output to a file; its exit status."""
    with log.open("a") as output:
        output.write(f"$ {' '.join(command)}\n")
        output.flush()
        return subprocess.run(
            command, stdout=output, stderr=subprocess.STDOUT, cwd=ROOT, check=False,
            env={**os.environ, **environment},
        ).returncode  # fmt: skip


def last_line(log: Path, pattern: str) -> str:
    """The last line in which the pattern is found."""
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    found = (line for line in reversed(lines) if re.search(pattern, line))
    return next(found, lines[-1] if lines else "").strip("= ")


def install(one: Combination, home: Path, wheel: Path, log: Path) -> Path | None:
    """An environment with the combination; None where it cannot be had, and then it says why."""
    found = interpreter(one.python)
    if found is None:
        one.result, one.said = "skipped", f"no Python {one.python} here"
        return None
    shutil.rmtree(home, ignore_errors=True)
    python = home / "bin" / "python"
    if run([found, "-m", "venv", str(home)], log):
        one.result, one.said = "skipped", "its venv cannot be made"
        return None
    # The oldest Numba decides over the newest NumPy: it names the highest that it takes. Newer
    # pyarrow does not start with NumPy 1, without saying so to pip; so the oldest go together.
    ends = {"numba": one.numba, "numpy": one.numpy, "pyarrow": one.numpy, "pyspark": one.pyspark}
    asked = [f"{name}=={lowest(name)}" for name, end in ends.items() if end == OLDEST]
    # No compiler: a version without a wheel for this Python counts as not to be had.
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    extras = "testing,spark,delta,metrics" if one.pyspark else "testing"
    needed = [f"specstream[{extras}] @ {wheel.as_uri()}", *BESIDE, *asked]
    # PySpark comes as its sources, in Python.
    if run([*pip, "--only-binary=:all:", "--no-binary=pyspark", *needed], log):
        one.result = "skipped"
        one.said = last_line(log, "ERROR: (No matching|Cannot install|Could not find)")
        return None
    code = (
        "import importlib.metadata as m, json, platform;"
        "there = {d.metadata['Name'] for d in m.distributions()};"
        "names = ('numba', 'numpy', 'llvmlite', 'pyarrow', 'pyspark');"
        "found = {n: m.version(n) for n in names if n in there};"
        "print(json.dumps({'python': platform.python_version(), **found}))"
    )
    one.versions = json.loads(subprocess.check_output([str(python), "-c", code], text=True))
    return python


def test(one: Combination, python: Path, tests: list[str], log: Path) -> None:
    """Runs the tests and notes what came of them."""
    # -P: the sources in this folder are not to be imported. NUMBA_OPT=0: as in `make test`.
    command = [
        str(python), "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider",
        "-m", SPARK_MARKS if one.pyspark else MARKS, *tests,
    ]  # fmt: skip
    # Programs that tests start find what several of them share.
    path = str(ROOT / "tests")
    status = run(command, log, NUMBA_OPT="0", PYTHONSAFEPATH="1", PYTHONPATH=path, CI="1")
    one.result = "passed" if status == 0 else "failed"
    one.said = last_line(log, r"\d+ (passed|failed|error)")
    counts = {what: int(n) for n, what in re.findall(r"(\d+) (passed|failed|error)", one.said)}
    one.passed = counts.get("passed", 0)
    one.failed = counts.get("failed", 0) + counts.get("error", 0)


def try_out(one: Combination, to: Path, wheel: Path, tests: list[str], keep: bool) -> None:
    """Installs a combination and runs the tests with it; ``keep``: its environment stays."""
    log, home = to / f"{one.name}.log", to / one.name
    log.unlink(missing_ok=True)
    began = time.monotonic()
    python = install(one, home, wheel, log)
    if python is not None:
        shown = ", ".join(f"{name} {version}" for name, version in one.versions.items())
        tell(f"    {shown}: testing, the log is {log}")
        test(one, python, tests, log)
    if not keep:
        shutil.rmtree(home, ignore_errors=True)
    one.seconds = round(time.monotonic() - began, 1)
    tell(f"    {one.result} after {one.seconds:.0f} s: {one.said}")


def build_wheel(python: str, to: Path, log: Path) -> Path:
    """One for all: it is made for the stable interface of Python."""
    # What an earlier build left would go into it.
    for left in (to, *ROOT.glob("build/lib*"), *ROOT.glob("build/temp*"), *ROOT.glob("build/bd*")):
        shutil.rmtree(left, ignore_errors=True)
    command = [python, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(to), "."]
    if run(command, log):
        sys.exit(f"the wheel cannot be built: see {log}")
    return next(to.glob("*.whl"))


def table(done: list[Combination]) -> str:
    """What is printed at the end: of each package the version that there was, or that was asked."""
    packages = ("python", "numba", "numpy", "llvmlite", "pyarrow", "pyspark")
    lines = [[*packages, "result", ""]]
    for one in done:
        versions = {**asdict(one), **one.versions}
        lines.append([*(versions.get(name, "") for name in packages), one.result, one.said])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    padded = [[text.ljust(n) for text, n in zip(line, widths, strict=True)] for line in lines]
    return "\n".join("  ".join(line).rstrip() for line in padded)


def store(done: list[Combination], tests: str, to: Path = TRIED) -> None:
    """Adds results to those that are stored."""
    kept = json.loads(to.read_text()) if to.is_file() else {}
    today = datetime.now(UTC).date().isoformat()
    for one in done:
        result = asdict(one)
        del result["said" if one.result != "skipped" else "versions"], result["seconds"]
        kept[one.name] = {**result, "tests": tests, "date": today}
    order = [one.name for one in combinations()]
    kept = {name: kept[name] for name in order if name in kept}
    to.write_text(json.dumps(kept, indent=1) + "\n")


def _asked(one: dict[str, Any]) -> str:
    if one.get("pyspark"):
        return f"{one['pyspark']} PySpark"
    return f"{one['numba']} Numba and {one['numpy']} NumPy"


def drawn(kept: dict[str, dict[str, Any]]) -> str:
    """The table of the page."""
    lines = [
        "| Python | Numba | NumPy | pyarrow | PySpark | tests | failed |",
        "| --- | --- | --- | --- | --- | ---: | ---: |",
    ]
    for one in kept.values():
        if one["result"] == "skipped":
            continue
        versions = [one["versions"][name] for name in ("python", "numba", "numpy", "pyarrow")]
        versions.append(one["versions"].get("pyspark", "-"))
        counts = one["passed"] + one["failed"], one["failed"]
        lines.append(f"| {' | '.join([*versions, *map(str, counts)])} |")
    tried = {one["python"] for one in kept.values() if one["result"] != "skipped"}
    skipped = [one for one in kept.values() if one["result"] == "skipped"]
    words = [
        f"Not to be had: {_asked(one)} for Python {one['python']}"
        if one["python"] in tried
        else f"Python {one['python']} was not tried"
        for one in skipped
    ]
    days = sorted({one["date"] for one in kept.values()})
    when = " to ".join(dict.fromkeys((days[0], days[-1])))
    lines += ["", f"Run on {when}." + "".join(f" {one}." for one in dict.fromkeys(words))]
    return "\n".join(lines) + "\n"


def draw(page: Path = PAGE, tried: Path = TRIED) -> str:
    """The text of the page with the table of what is stored."""
    text = page.read_text()
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{drawn(json.loads(tried.read_text()))}\n{END}{after}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a few files of tests in each")
    parser.add_argument("--only", default="", help="names of combinations that have this in them")
    parser.add_argument("--list", action="store_true", help="name the combinations and end")
    parser.add_argument("--draw", action="store_true", help="draw the page's table, and end")
    parser.add_argument("--keep", action="store_true", help="keep the environments")
    parser.add_argument("--to", type=Path, default=ROOT / ".venv" / "compat", help="where they are")
    parser.add_argument("tests", nargs="*", help="other tests, of which nothing is stored")
    given = parser.parse_args()
    if given.draw:
        PAGE.write_text(draw())
        return 0
    chosen = [one for one in combinations() if given.only in one.name]
    if given.list or not chosen:
        print("\n".join(one.name for one in (chosen or combinations())))
        return 0 if given.list else 2
    to = given.to.resolve()
    to.mkdir(parents=True, exist_ok=True)
    log = to / "wheel.log"
    log.unlink(missing_ok=True)
    wheel = build_wheel(sys.executable, to / "wheel", log)
    for number, one in enumerate(chosen, 1):
        tell(f"[{number}/{len(chosen)}] {one.name}: installing")
        try_out(one, to, wheel, given.tests or one.tests(given.quick), given.keep)
        if not given.tests:  # after each: what was done is kept if the next is interrupted
            store([one], "quick" if given.quick else "all")
            PAGE.write_text(draw())
    print(table(chosen))
    # Where nothing could be had, nothing was tried.
    results = [one.result for one in chosen]
    return 1 if "failed" in results or "passed" not in results else 0


if __name__ == "__main__":
    sys.exit(main())
