"""Plants defects in the sources, one at a time, and looks whether the tests notice.

Each entry of a list is a small change of one source file, made in a copy. There are two lists:
``stm_native/tests/mutants.toml`` of the C runtime, and with ``--python`` ``tests/mutants.toml`` of
the Python sources. From the folder of the project:

    PYTHONPATH=tests .venv/bin/python -P -m support.mutants
                                of the C runtime, all of them; exit 1 if one survives
    ... --python                of the Python sources
    ... --only NAME             this one; may be given several times
    ... --check                 none: only whether each entry fits the sources
    ... --seconds S             stress runs of so many seconds (60)
    ... --json FILE             the results as data, kept while it runs
    ... --json FILE --resume    goes on with those that FILE has not, of the same sources: a whole
                                run takes more than half an hour
    ... --markdown FILE         the results as a table, between two marks in that page

A defect that does not build or load counts as a survivor: it proves nothing. Exit 2: an entry no
longer fits the sources, or the unchanged sources fail.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from support.evidence import write_between
from support.mutants.native import NATIVE, SEED, NativeCopy, native_mutants
from support.mutants.package import PackageCopy, package_mutants
from support.mutants.planted import ROOT, Copy, Mutant, Result, Unusable

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Kind:
    """One of the two lists."""

    mark: str
    read: Callable[[], list[Mutant]]
    copy: Callable[[Path], Copy]
    # All that a result depends on, but compilers and libraries.
    sources: tuple[Path, ...]
    # What the results were made with.
    made_with: Callable[[], str]


def of_c(seconds: int) -> Kind:
    def compiler() -> str:
        said = subprocess.run(["cc", "--version"], capture_output=True, text=True).stdout
        return said.splitlines()[0]

    return Kind(
        "mutants",
        native_mutants,
        lambda directory: NativeCopy(directory, seconds),
        (NATIVE,),
        lambda: f"{platform.machine()}, {compiler()}",
    )


def of_python() -> Kind:
    return Kind(
        "python mutants",
        package_mutants,
        PackageCopy,
        tuple(ROOT / name for name in ("specstream", "operators", "tests", "stm_native/src")),
        lambda: f"{platform.machine()}, Python {platform.python_version()}",
    )


def files_below(directories: tuple[Path, ...]) -> Iterator[Path]:
    for directory in directories:
        for path in sorted(directory.rglob("*")):
            left_out = {"build", "__pycache__"} & set(path.relative_to(ROOT).parts)
            if path.is_file() and not left_out and path.parent != HERE:
                yield path


class Kept:
    """Results in a file that a later run may go on with."""

    def __init__(self, path: Path | None, resume: bool, sources: tuple[Path, ...]) -> None:
        self.path = path
        digest = hashlib.sha256()
        for file in files_below(sources):
            digest.update(f"{file.relative_to(ROOT)}\0".encode() + file.read_bytes())
        self.sources = digest.hexdigest()
        self.results: dict[str, Result] = {}
        if path is not None and resume and path.exists():
            kept = json.loads(path.read_text())
            if kept["sources"] != self.sources:
                raise Unusable(f"{path} has results of other sources: run without --resume")
            self.results = {entry["name"]: Result(**entry) for entry in kept["results"]}

    def add(self, result: Result) -> None:
        self.results[result.name] = result
        if self.path is not None:
            entries = [asdict(result) for result in self.results.values()]
            text = json.dumps({"sources": self.sources, "results": entries}, indent=1)
            self.path.write_text(text + "\n")


def table(results: list[Result]) -> str:
    width = max(len(result.name) for result in results)
    by_width = max(len(result.killed_by) for result in results)
    lines = [f"{'mutant':{width}}  {'killed by':{by_width}}  seconds  how"]
    for result in results:
        by = result.killed_by or "SURVIVES"
        lines.append(f"{result.name:{width}}  {by:{by_width}}  {result.seconds:7.1f}  {result.how}")
    return "\n".join(lines)


def markdown(results: list[Result], made_with: str) -> str:
    killed = sum(bool(result.killed_by) for result in results)
    lines = [
        f"{killed} of {len(results)} defects are found ({made_with}).",
        "",
        "| defect | what it breaks | found by |",
        "| --- | --- | --- |",
    ]
    for result in results:
        by = f"`{result.killed_by}`" if result.killed_by else "**nothing**"
        if result.killed_by == "model":
            by += f", {result.how}"
        elif result.killed_by.startswith("stress-"):
            by += f", seed {SEED}"
        lines.append(f"| {result.name} | {result.breaks} | {by} |")
    return "\n".join(lines)


def run(arguments: argparse.Namespace) -> int:
    kind = of_python() if arguments.python else of_c(arguments.seconds)
    mutants = kind.read()
    if arguments.check:
        print(f"{kind.mark}: all {len(mutants)} fit the sources")
        return 0
    only = arguments.only
    unknown = {*only} - {mutant.name for mutant in mutants}
    if unknown:
        raise Unusable(f"there is no such entry: {', '.join(sorted(unknown))}")
    if only and arguments.markdown:
        raise Unusable("the page shows the whole list: --markdown goes without --only")
    if arguments.resume and not arguments.json:
        raise Unusable("--resume goes with --json FILE, which has the results so far")
    mutants = [mutant for mutant in mutants if not only or mutant.name in only]
    kept = Kept(arguments.json, arguments.resume, kind.sources)
    left = [mutant for mutant in mutants if mutant.name not in kept.results]
    with tempfile.TemporaryDirectory(prefix="mutants-") as directory:
        if left:
            copy = kind.copy(Path(directory))
            copy.run_without_defect(left)
        for number, mutant in enumerate(mutants):
            if mutant in left:
                kept.add(copy.try_out(mutant))
            by = kept.results[mutant.name].killed_by or "SURVIVES"
            print(f"{number + 1:3}/{len(mutants)} {mutant.name}: {by}", flush=True)
    results = [kept.results[mutant.name] for mutant in mutants]
    print("\n" + table(results))
    if arguments.markdown:
        try:
            write_between(arguments.markdown, kind.mark, markdown(results, kind.made_with()))
        except ValueError as error:
            raise Unusable(str(error)) from None
    survivors = [result.name for result in results if not result.killed_by]
    if survivors:
        print(f"\n{len(survivors)} of {len(results)} survive: {', '.join(survivors)}")
        return 1
    print(f"\nall {len(results)} are killed")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--python", action="store_true", help="those of the Python sources")
    parser.add_argument("--only", action="append", default=[], metavar="NAME")
    parser.add_argument("--check", action="store_true", help="only whether they fit the sources")
    parser.add_argument("--seconds", type=int, default=60, help="of each stress run (60)")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--resume", action="store_true", help="go on with what --json has")
    parser.add_argument("--markdown", type=Path, metavar="FILE")
    try:
        return run(parser.parse_args())
    except Unusable as error:
        print(f"mutants: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
