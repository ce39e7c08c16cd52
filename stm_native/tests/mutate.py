"""Plants defects in the runtime, one at a time, and looks whether the tests notice.

Each entry of ``mutants.toml`` is a small change of one source file. It is made in a copy of
``stm_native``, built, and run: the stepped tests first, then the stress program that the entry
names, with a fixed seed. A defect that hangs is killed by a time limit, which goes by what a test
takes without any. What no test can show on this processor is left to the model checker, and the
entry names the check.

    python3 mutate.py                   all of them; exit 1 if one survives
    python3 mutate.py --only NAME       this one; may be given several times
    python3 mutate.py --check           none: only whether each entry fits the sources
    python3 mutate.py --seconds S       stress runs of so many seconds (60)
    python3 mutate.py --json FILE       the results as data, kept while it runs
    python3 mutate.py --json FILE --resume
                                        goes on with those that FILE has not, of the same sources:
                                        a whole run takes more than half an hour
    python3 mutate.py --markdown FILE   the results as a table, between two marks in that page

A defect that does not build counts as a survivor: it proves nothing. Exit 2: an entry no longer
fits the sources, or the unchanged sources fail.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from dataclasses import asdict, dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
NATIVE = HERE.parent
BUILDS = ("none", "thread", "address", "undefined")
SEED = 1
PATIENCE_SECONDS = 10
# Of the stepped tests without a defect; and with one so many times what they took then, but as many
# seconds at least.
WITHOUT_DEFECT_SECONDS = 1800
AS_LONG, LEAST_SECONDS = 10, 60
# They throw random events at it, or take seconds: after those that say exactly what is wrong.
LAST_TABLES = ("test_limits", "test_order", "test_open_job", "test_no_memory")
BEGIN, END = "<!-- mutants: begin -->", "<!-- mutants: end -->"


@dataclass(frozen=True)
class Mutant:
    name: str
    breaks: str
    file: str  # below stm_native
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


def read_mutants(only: list[str]) -> list[Mutant]:
    entries = tomllib.loads((HERE / "mutants.toml").read_text())["mutant"]
    mutants = [Mutant(**entry) for entry in entries]
    names = [mutant.name for mutant in mutants]
    wrong = [f"{name}: the name is there twice" for name in names if names.count(name) > 1]
    wrong += [f"{name}: there is no such entry" for name in only if name not in names]
    levels = {"tables", "model", *(f"stress-{build}" for build in BUILDS)}
    for mutant in mutants:
        source = NATIVE / mutant.file
        found = source.read_text().count(mutant.old) if source.exists() else 0
        if found != 1:
            wrong.append(f"{mutant.name}: its old text is {found} times in {mutant.file}")
        if mutant.old == mutant.new or mutant.seen_by not in levels:
            wrong.append(f"{mutant.name}: it changes nothing, or nobody is to see it")
        if (mutant.seen_by == "model") != bool(mutant.model):
            wrong.append(f"{mutant.name}: `model` goes with seen_by = 'model'")
    if wrong:
        raise Unusable("mutants.toml:\n  " + "\n  ".join(wrong))
    return [mutant for mutant in mutants if not only or mutant.name in only]


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


def digest_of_sources() -> str:
    """Of all that a result depends on, but the compiler."""
    digest = hashlib.sha256()
    for path in sorted(NATIVE.rglob("*")):
        left_out = {"build", "__pycache__", Path(__file__).name}
        if path.is_file() and not left_out & set(path.parts):
            digest.update(f"{path.relative_to(NATIVE)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


class Kept:
    """Results in a file that a later run may go on with."""

    def __init__(self, path: Path | None, resume: bool) -> None:
        self.path = path
        self.sources = digest_of_sources()
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


class Copy:
    """A copy of the sources in which one defect at a time is planted."""

    def __init__(self, directory: Path) -> None:
        self.native = directory / "stm_native"
        shutil.copytree(NATIVE, self.native, ignore=shutil.ignore_patterns("__pycache__", "*.o"))
        self.tests = self.native / "tests"
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
        environment = os.environ | {"TSAN_OPTIONS": "halt_on_error=1"}
        try:
            ended = subprocess.run(
                command,
                cwd=self.tests,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=limit,
                env=environment,
            )
        except subprocess.TimeoutExpired:
            return f"it hangs: no end within {limit:.0f} s"
        return complaint(ended.stdout + ended.stderr) if ended.returncode != 0 else None

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

    def run_stress(self, program: str, seconds: int) -> tuple[str, str] | None:
        self.build([program])
        command = [f"build/{program}", "--seed", str(SEED), "--seconds", str(seconds)]
        command += ["--patience", str(PATIENCE_SECONDS)]
        wrong = self.run(command, seconds + 3 * PATIENCE_SECONDS)
        return None if wrong is None else (program, wrong)

    def run_model(self, macros: str) -> tuple[str, str] | None:
        """The model's own list says that the defect of this name must be found."""
        checked = subprocess.run(
            [str(self.native / "model" / "check.sh"), macros], capture_output=True, text=True
        )
        if "checks," not in checked.stdout:
            raise Unusable(checked.stderr.strip())
        line = re.match(r"as_expected +(sleep|assert)\b", checked.stdout)
        if checked.returncode != 0 or line is None:
            return None
        found = "somebody sleeps beside work" if line[1] == "sleep" else "an assertion fails"
        return "model", f"{macros}: {found}"

    def try_out(self, mutant: Mutant, seconds: int) -> Result:
        source = self.native / mutant.file
        original = source.read_text()
        started = time.monotonic()
        source.write_text(original.replace(mutant.old, mutant.new))
        try:
            if mutant.seen_by == "model":
                self.build(self.tables)  # so that the entry is a change of the source indeed
                killed = self.run_model(mutant.model)
            else:
                killed = self.run_tables()
                if killed is None and mutant.seen_by != "tables":
                    killed = self.run_stress(mutant.seen_by, seconds)
            by, how = killed or ("", "nothing notices it")
        except Unusable as error:
            by, how = "", str(error)
        finally:
            source.write_text(original)
        return Result(mutant.name, mutant.breaks, by, how, time.monotonic() - started)


def table(results: list[Result]) -> str:
    width = max(len(result.name) for result in results)
    lines = [f"{'mutant':{width}}  {'killed by':15}  seconds  how"]
    for result in results:
        by = result.killed_by or "SURVIVES"
        lines.append(f"{result.name:{width}}  {by:15}  {result.seconds:7.1f}  {result.how}")
    return "\n".join(lines)


def markdown(results: list[Result]) -> str:
    compiler = subprocess.run(["cc", "--version"], capture_output=True, text=True).stdout
    killed = sum(bool(result.killed_by) for result in results)
    lines = [
        f"{killed} of {len(results)} defects are found ({platform.machine()},"
        f" {compiler.splitlines()[0]}).",
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


def write_page(page: Path, results: list[Result]) -> None:
    before, begin, rest = page.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise Unusable(
            f"{page} has no place for the table: {BEGIN} and {END}, each on its own line"
        )
    page.write_text(f"{before}{BEGIN}\n{markdown(results)}\n{END}{after}")


def run(arguments: argparse.Namespace) -> int:
    mutants = read_mutants(arguments.only)
    if arguments.check:
        print(f"mutants: all {len(mutants)} fit the sources")
        return 0
    if arguments.only and arguments.markdown:
        raise Unusable("the page shows the whole list: --markdown goes without --only")
    if arguments.resume and not arguments.json:
        raise Unusable("--resume goes with --json FILE, which has the results so far")
    if any(mutant.model for mutant in mutants) and shutil.which("spin") is None:
        raise Unusable("some defects are found by the model, which needs spin: install it")
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    kept = Kept(arguments.json, arguments.resume)
    with tempfile.TemporaryDirectory(prefix="mutants-") as directory:
        copy = Copy(Path(directory))
        wrong = copy.run_tables()
        if wrong is not None:
            raise Unusable(f"without any defect, {wrong[0]} fails: {wrong[1]}")
        for number, mutant in enumerate(mutants):
            if mutant.name not in kept.results:
                kept.add(copy.try_out(mutant, arguments.seconds))
            by = kept.results[mutant.name].killed_by or "SURVIVES"
            print(f"{number + 1:3}/{len(mutants)} {mutant.name}: {by}", flush=True)
    results = [kept.results[mutant.name] for mutant in mutants]
    print("\n" + table(results))
    if arguments.markdown:
        write_page(arguments.markdown, results)
    survivors = [result.name for result in results if not result.killed_by]
    if survivors:
        print(f"\n{len(survivors)} of {len(results)} survive: {', '.join(survivors)}")
        return 1
    print(f"\nall {len(results)} are killed")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--only", action="append", default=[], metavar="NAME")
    parser.add_argument("--check", action="store_true", help="only whether they fit the sources")
    parser.add_argument("--seconds", type=int, default=60, help="of each stress run (60)")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--resume", action="store_true", help="go on with what --json has")
    parser.add_argument("--markdown", type=Path, metavar="FILE")
    try:
        return run(parser.parse_args())
    except Unusable as error:
        print(f"mutate: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
