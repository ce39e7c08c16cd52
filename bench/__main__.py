"""``python -m bench [--list] [NAME ...] [OPTION ...]``: runs benchmarks by their names.

Without a name it lists them. Options are those of the benchmark (``python -m bench NAME --help``).
Where several are named, each gets the options; ``--plot`` only those that keep a picture. Each runs
in a process of its own, so that none finds the memory or the threads of another.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from bench.registry import BENCHMARKS, Benchmark, near
from bench.report import print_table

ROOT = Path(__file__).parents[1]
COMMAND = "python -m bench"


def main() -> int:
    """Runs what is named; 1: one of them has failed."""
    arguments = sys.argv[1:]
    if arguments and arguments[0] in ("-h", "--help"):
        print(__doc__)
        return 0
    if not arguments or arguments == ["--list"]:
        show_all()
        return 0
    named, options = split(arguments)
    failed = [benchmark.name for benchmark in named if run(benchmark, options) != 0]
    if failed and len(named) > 1:
        print(f"{COMMAND}: failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def split(arguments: list[str]) -> tuple[list[Benchmark], list[str]]:
    """The benchmarks that a command line names, and what is left for them."""
    named: list[Benchmark] = []
    for at, argument in enumerate(arguments):
        if argument.startswith("-"):
            if not named:
                raise SystemExit(
                    f"{COMMAND}: {argument} stands before a name; see {COMMAND} --list"
                )
            return named, arguments[at:]
        if named and named[-1].operands:
            if len(named) > 1:
                raise SystemExit(f"{COMMAND}: name {named[-1].name} alone: {argument} is for it")
            return named, arguments[at:]
        if argument not in BENCHMARKS:
            raise SystemExit(_unknown(argument))
        named.append(BENCHMARKS[argument])
    return named, []


def _unknown(name: str) -> str:
    said = f"{COMMAND}: there is no benchmark {name!r}"
    if close := near(name):
        return f"{said}: did you mean {' or '.join(close)}?"
    return f"{said}: there are {', '.join(BENCHMARKS)}"


def show_all() -> None:
    """A table of all benchmarks."""
    rows = [
        [
            one.name,
            one.takes,
            "Java" if one.needs_java else "",
            one.writes or "",
            one.measures,
        ]
        for one in BENCHMARKS.values()
    ]
    print_table(f"{COMMAND} NAME", ("name", "takes", "needs", "writes", "measures"), rows, ())
    print(f"\n--plot writes page or picture; {COMMAND} NAME --help tells the options of one.")


def run(benchmark: Benchmark, options: list[str]) -> int:
    """The exit status of a benchmark with these options."""
    given = [one for one in options if one != "--plot" or benchmark.takes_plot]
    environment = dict(os.environ)
    if benchmark.needs_java and not {"-h", "--help"} & set(given):
        environment["JAVA_HOME"] = _java_home()
    command = [sys.executable, "-m", benchmark.module, *given]
    return subprocess.run(command, env=environment, check=False).returncode


def _java_home() -> str:
    """That of a Java that Spark accepts, as for ``make test``."""
    asked = subprocess.run([ROOT / ".ci" / "ensure-java"], stdout=subprocess.PIPE, text=True)
    if asked.returncode != 0:
        raise SystemExit(asked.returncode)
    return asked.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
