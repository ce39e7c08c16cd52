"""The Python sources with a defect, and the test file that is to find it.

A copy of the project lies in a directory of its own, and is what its tests import. A test that
fails has found the defect, and so has one that does not end. What cannot be imported proves
nothing: each entry must leave Python that compiles, and modules that load.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from support.mutants.planted import (
    ROOT,
    Copy,
    Ended,
    Mutant,
    Unusable,
    read_mutants,
    refuse,
    run_program,
)

__all__ = ["LIST", "PackageCopy", "package_mutants"]

LIST = ROOT / "tests" / "mutants.toml"
PYTHON = ROOT / ".venv" / "bin" / "python"
# Nothing that git does not have, but the extension.
LEFT_OUT = (
    *(".venv", ".git", ".*_cache", ".hypothesis", ".benchmarks", "__pycache__"),
    *("build", "dist", "*.egg-info", "*.o"),
)
# Of a test file without a defect; and with one so many times what it took then, but as many seconds
# at least. All of it is compiled in both cases.
WITHOUT_DEFECT_SECONDS = 900
AS_LONG, LEAST_SECONDS = 5, 60
# Of pytest.
WRONG_OPTIONS, NO_TESTS = 4, 5
IMPORTS = "import specstream, specstream.operators as o; print(specstream.__file__, o.__file__)"


def package_mutants() -> list[Mutant]:
    mutants = read_mutants(LIST, ROOT)
    wrong = []
    for mutant in mutants:
        text = (ROOT / mutant.file).read_text().replace(mutant.old, mutant.new)
        try:
            compile(text, mutant.file, "exec")
        except SyntaxError as error:
            wrong.append(f"{mutant.name}: it is no Python: {error}")
        if not (ROOT / file_of(mutant)).is_file():
            wrong.append(f"{mutant.name}: there is no {mutant.seen_by}")
    refuse(LIST, wrong)
    return mutants


def file_of(mutant: Mutant) -> str:
    return mutant.seen_by.partition("::")[0]


class PackageCopy(Copy):
    def __init__(self, directory: Path) -> None:
        self.sources = directory / "project"
        shutil.copytree(ROOT, self.sources, ignore=shutil.ignore_patterns(*LEFT_OUT))
        # The editable installation says that the ready operators lie beside the package, and means
        # those of the checkout.
        (self.sources / "specstream" / "operators").symlink_to("../operators")
        self.environment = {
            "PYTHONPATH": str(self.sources),
            "SPECSTREAM_CACHE_DIR": str(directory / "compiled"),
            # As in most of `make test`: it takes a third of the time.
            "NUMBA_OPT": "0",
            # Random tests draw the same examples each time.
            "CI": "1",
        }
        self.limits: dict[str, float] = {}
        self.import_from_here()

    def import_from_here(self) -> None:
        shown = self.python("-c", IMPORTS)
        files = [Path(file) for file in shown.output.split()]
        if shown.status != 0 or not all(file.is_relative_to(self.sources) for file in files):
            raise Unusable(f"the copy is not what is imported: {shown.output}")

    def python(self, *arguments: str, limit: float = LEAST_SECONDS) -> Ended:
        return run_program([str(PYTHON), *arguments], self.sources, self.environment, limit)

    def pytest(self, tests: str, limit: float) -> tuple[str | None, float]:
        """What went wrong, where anything did, and the seconds that it took."""
        options = ["-x", "-q", "-p", "no:cacheprovider", "-m", "not long"]
        ended = self.python("-m", "pytest", *options, tests, limit=limit)
        if ended.status is None:
            return ended.hangs, ended.seconds
        if ended.status == 0:
            return None, ended.seconds
        line = ended.first(r"^(?:FAILED|ERROR) (.*)$")
        if line is None and ended.status in (WRONG_OPTIONS, NO_TESTS):
            raise Unusable(f"pytest runs no test of {tests}")
        if line is None:
            return f"pytest ends with {ended.status}: {last_of(ended)}", ended.seconds
        # "file::name[case] - what was raised"; the file is known.
        return line[1].partition("::")[2] or line[1], ended.seconds

    def run_without_defect(self, mutants: Sequence[Mutant]) -> None:
        for tests in dict.fromkeys(mutant.seen_by for mutant in mutants):
            wrong, seconds = self.pytest(tests, WITHOUT_DEFECT_SECONDS)
            if wrong is not None:
                raise Unusable(f"without any defect, {tests} fails: {wrong}")
            self.limits[tests] = max(LEAST_SECONDS, AS_LONG * seconds)

    def find(self, mutant: Mutant) -> tuple[str, str] | None:
        module = mutant.file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        loaded = self.python("-c", f"import {module}")
        if loaded.status != 0:
            raise Unusable(f"it does not load: {last_of(loaded)}")
        wrong, _ = self.pytest(mutant.seen_by, self.limits[mutant.seen_by])
        return None if wrong is None else (file_of(mutant), wrong)


def last_of(ended: Ended) -> str:
    return " ".join(ended.output.split())[-200:]
