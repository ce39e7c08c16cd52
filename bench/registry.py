"""All benchmarks by name: what ``python -m bench`` lists and ``make bench-NAME`` runs."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

__all__ = ["BENCHMARKS", "Benchmark", "near"]


@dataclass(frozen=True)
class Benchmark:
    """A program that measures, or draws what was measured.

    Attributes:
        name: on the command line, and in ``make bench-NAME``.
        module: that is run.
        measures: what, in one line.
        takes: how long, on two cores.
        writes: the page or picture that it keeps, below the root of the project.
        asks: whether it writes that only where ``--plot`` asks for it.
        operands: whether it takes names of its own; with them it stands alone.
        needs_java: whether it starts Spark.
    """

    name: str
    module: str
    measures: str
    takes: str = "minutes"
    writes: str | None = None
    asks: bool = True
    operands: bool = False
    needs_java: bool = False

    @property
    def takes_plot(self) -> bool:
        """Whether it has the option ``--plot``."""
        return self.writes is not None and self.asks


_ALL = [
    Benchmark(
        "operators",
        "bench.operators",
        "ready operators: speculation beside plain, locks and the sequential check",
    ),
    Benchmark(
        "compile-time", "bench.compile_time", "the compile time of an operator of a hundred lines"
    ),
    Benchmark("strings", "bench.strings", "the codes of a column of strings", "a minute"),
    Benchmark("micro", "bench.micro", "a load, a store, a row, a transaction, a call", "a minute"),
    Benchmark(
        "speed",
        "bench.speed",
        "the speed table: two threads against one, in C and compiled, and the automatic setting",
        writes="docs/speed/threads.png",
    ),
    Benchmark(
        "rules",
        "bench.rules",
        "rules beside other monitors, and rules and verbs beside the same operators by hand",
        "two hours",
        writes="docs/research/rules.md",
    ),
    Benchmark(
        "agreement",
        "bench.rules.agreement",
        "nothing: rules beside other monitors on random formulas, every verdict compared",
        "30 minutes",
    ),
    Benchmark(
        "verify",
        "bench.verify",
        "the experiments of a paper on model checking: both engines of verify, and NuSMV",
        "5 minutes",
        writes="docs/research/verify.md",
    ),
    Benchmark(
        "ledger",
        "bench.ledger",
        "the README's ledger on one core, with locks, speculating: time, and same answer or not",
        "a minute",
        writes="docs/speed/ledger.png",
    ),
    Benchmark(
        "containers",
        "bench.containers",
        "a dict of the state beside tables by hand and typed dicts; ten million keys; skew",
        writes="docs/research/containers.png",
    ),
    Benchmark(
        "pipelines",
        "bench.pipelines",
        "pipelines beside their vertices as engines, and beside one function",
        "10 minutes",
        writes="docs/research/pipelines.md",
    ),
    Benchmark(
        "transactional",
        "bench.transactional",
        "transactional stream processing beside coarse, fine and deterministic locks",
        "15 minutes",
        writes="docs/research/transactional.md",
    ),
    Benchmark(
        "early",
        "bench.early",
        "early results: how much sooner than final ones, how often revised, what they cost",
        "10 minutes",
        writes="docs/research/early.md",
    ),
    Benchmark(
        "latency",
        "bench.latency",
        "from an event's arrival to its committed row, at 10, 50 and 90 % of capacity",
        "4 minutes",
        writes="docs/research/latency.md",
    ),
    Benchmark(
        "interpreted",
        "bench.interpreted",
        "interpreted operators: what an event and an access cost, and what threads bring",
        "3 minutes",
        writes="docs/research/interpreted.md",
    ),
    Benchmark(
        "cores",
        "bench.cores",
        "the scheduler on up to 64 cores: its own code on a virtual machine, and real threads",
        "5 minutes",
        writes="docs/research/cores.md",
    ),
    Benchmark(
        "neighbours",
        "bench.cores.neighbours",
        "nearest neighbours on more cores, on the same virtual machine",
    ),
    Benchmark(
        "spark",
        "bench.spark",
        "an operator in Spark: specstream, the bare loop, Spark's own ways, Bytewax",
        writes="docs/research/spark.png",
        needs_java=True,
    ),
    Benchmark(
        "chapter4",
        "bench.chapter4",
        "the figures and tables of the dissertation's chapter 4",
        "long",
        writes="docs/research/chapter4.md",
        asks=False,
        operands=True,
    ),
    Benchmark(
        "versions",
        "bench.versions",
        "this version against another checkout, round by round",
        operands=True,
    ),
    Benchmark(
        "pictures",
        "bench.pictures",
        "nothing: draws all pictures of docs/ once more, from the data beside them",
        writes="docs",
        asks=False,
        operands=True,
    ),
    Benchmark(
        "catalogue",
        "bench.catalogue",
        "nothing: writes the entries of the ready operators",
        "seconds",
        writes="docs/catalogue.md",
        asks=False,
    ),
]
BENCHMARKS = {benchmark.name: benchmark for benchmark in _ALL}


def near(name: str) -> list[str]:
    """The names that look like this one."""
    return difflib.get_close_matches(name.replace("_", "-"), BENCHMARKS, cutoff=0.6)
