"""Random pipelines, one after the other: ``make stress-pipelines``.

Each is made of its seed alone: a graph of up to 40 vertices, events of one to three sources, and
settings of engines. Its rows and its state have to be those of the oracle and of the third witness
(``support.pipelines.phases``), with any number of threads, horizon, chunk, protocol and predictor,
cut into batches, out of order with frontiers, and with a snapshot restored into another engine in
between.
Every fifth graph takes all events of a time together; of every fourth about half of the vertices
are interpreted.

The graphs are run by processes of their own, so that one that ends its process is told as well, and
the rest runs on. With ``--sanitizer`` these have a package that was built with one, and the machine
code of the pipelines tells it what it reads and writes (``instrumented.py``).
"""

from __future__ import annotations

import argparse
import faulthandler
import itertools
import json
import random
import shlex
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from support import processes
from support.stress import sanitizers

if TYPE_CHECKING:
    import pyarrow as pa

    import specstream as ss
    from support.pipelines.phases import Phases

MODULE = "support.stress.pipelines"
# A hang is one that no busy machine explains.
STUCK_SECONDS = 900
# Seeds that one process runs: of what Numba has compiled nothing is given back.
BLOCK = 10
WRONG = 3  # exit status: a finding that was told
# A graph of three vertices that conflict often, and more engines of it than one of which threads
# may happen never to meet.
PLANTED_IN, PLANTED_ENGINES = 1, 60
SIZES = [3, 5, 8, 8, 12, 20, 40]
EVENTS = [20, 60, 120]
# Runs of vertices, under the witness, after which no more events follow.
MOST_RUNS = 20_000
# Source and values of an event, and its key.
Given = tuple[str, dict[str, Any], tuple[int, int, int]]
TIME, ROW, ORIGIN = "time", "row", "origin"


def optimises(seed: int) -> bool:
    """Whether LLVM does for a graph what it does for users; it takes three times as long."""
    return seed // BLOCK % 4 == 3


def is_by_time(seed: int) -> bool:
    """Whether a phase of a graph is all events of one time."""
    return seed % 5 == 4


def in_python(seed: int) -> float:
    """How many of the vertices of a graph are interpreted."""
    return 0.5 if seed % 4 == 3 else 0.0


# ---- one graph ----


@dataclass(frozen=True)
class Case:
    """A pipeline and its events, in the order of (time, source).

    Attributes:
        pipeline: the pipeline.
        seed: of the engines.
        timed: whether there may be timers, and the input ends.
        table: the events, with their times and the numbers of their rows.
        events: source, values and time of each.
        seen: what the witness made of them.
    """

    pipeline: ss.Pipeline
    seed: int
    timed: bool
    table: pa.Table
    events: list[tuple[str, dict[str, Any], int]]
    seen: Phases


def made(seed: int, draw: random.Random, most: int | None) -> Case:
    """The graph of a seed, of at most so many vertices."""
    import numpy as np
    import pyarrow as pa

    from support.pipelines.graphs import events_of, random_pipeline
    from support.pipelines.phases import Phases, salts, source_number

    by_time = is_by_time(seed)
    timed = seed % 3 == 2
    p = random_pipeline(
        draw,
        most or draw.choice(SIZES),
        raising=True,
        timed=timed,
        phases="time" if by_time else "event",
        in_python=in_python(seed),
    )
    count, of_engine = draw.choice(EVENTS), draw.choice([0, 7, 2**64 - 1])
    table, each = events_of(p, count, seed)
    times = [draw.randrange(count // 4 if by_time else 2 * count) for _ in range(count)]
    order = sorted(range(count), key=lambda row: (times[row], each[row][0], row))
    several = len(p._graph.sources) > 1
    seen = Phases(p, salts(p), of_engine)
    given: list[Given] = []
    for number, row in enumerate(order):
        source, values = each[row]
        key = times[row], source_number(source) if several else 0, number
        given.append((source, values, key))
    done = witnessed(seen, given, MOST_RUNS)
    events = [(source, values, key[0]) for source, values, key in given[:done]]
    if timed:
        seen.end()
    table = table.take(pa.array(order[: len(events)]))
    table = table.append_column(TIME, pa.array([at for _, _, at in events]))
    table = table.append_column(ROW, pa.array(np.arange(len(events))))
    return Case(p, of_engine, timed, table, events, seen)


def witnessed(seen: Phases, events: list[Given], most: int | None = None) -> int:
    """Has the witness run events, which are in order; how many it has before so many runs."""
    done, by_time = 0, seen.graph.by_time
    phases = itertools.groupby(
        enumerate(events), key=lambda one: one[1][2][0] if by_time else one[0]
    )
    for _, group in phases:
        phase = [one for _, one in group]
        source, values, key = phase[0]
        if by_time:
            seen.phase_of_time(key[0], [(one, of) for one, of, _ in phase])
        else:
            seen.phase(source, values, key)
        done += len(phase)
        if most is not None and seen.runs > most:
            break
    return done


def settings(draw: random.Random) -> Iterator[dict[str, Any]]:
    """Settings of engines, without an end. Of most graphs one protocol is compiled."""
    import specstream as ss

    protocols = draw.choice([["value"], ["value"], ["eager"], ["value", "eager"]])
    while True:
        found: dict[str, Any] = {"threads": draw.choice([1, 2, 2, 3, 4, 8])}
        found["protocol"] = draw.choice(protocols)
        if found["protocol"] == "eager":
            found["record_shift"] = draw.choice([0, 0, 1, 4])
        how = draw.randrange(8)
        if how == 0:
            found["horizon"] = draw.choice([0, "auto"])
        elif how == 1:
            found["predictor"] = draw.choice([ss.AbortDriven, ss.ThroughputDriven])()
        else:
            found["horizon"] = draw.choice([1, 2, 4, 8, 16, 64])
            found["chunk"] = draw.choice([1, 1, 2, 3, 8, "auto"])
            if how == 2 and found["chunk"] != "auto":
                found["execution"] = "speculate"
        if draw.random() < 0.2:
            found["limits"] = ss.Limits(
                reads=draw.choice([8, 100]), writes=draw.choice([8, 100]), rows=draw.choice([1, 9])
            )
        yield found


class Told:
    """Rows of sinks, and how many events have raised."""

    def __init__(self, pipeline: ss.Pipeline) -> None:
        self.sinks = list(pipeline._graph.sinks)
        self.rows: dict[str, list[tuple[Any, ...]]] = {name: [] for name in self.sinks}
        self.raised = 0
        self.aborts: Counter[str] = Counter()

    def add(self, output: Any) -> None:
        tables = output if isinstance(output, dict) else {self.sinks[0]: output}
        for name, table in tables.items():
            self.rows[name] += zip(*table.to_pydict().values(), strict=True)

    def failed(self, error: Exception) -> Any:
        """What an event has raised, and nothing else."""
        from support.pipelines.phases import RAISED

        partial = getattr(error, "specstream_partial", None)
        if partial is None or not isinstance(error, RAISED):
            raise error
        self.add(partial.output)
        self.raised += 1
        return partial


def moved(engine: ss.Engine, told: Told, options: dict[str, Any], seed: int) -> ss.Engine:
    """Another engine, which goes on where this one is."""
    import specstream as ss

    snapshot = engine.snapshot()
    told.aborts.update(engine.stats.aborts)
    engine.close()
    return ss.Engine(engine.operator, seed=seed, restore=snapshot, **options)


def in_order(
    case: Case, draw: random.Random, setting: Iterator[dict[str, Any]]
) -> tuple[Told, dict[str, Any]]:
    """By ``process``, in batches."""
    import specstream as ss

    told, count = Told(case.pipeline), case.table.num_rows
    bounds = [0, *sorted(draw.randint(0, count) for _ in range(draw.randint(0, 4))), count]
    by_time = case.pipeline._graph.by_time
    if by_time:  # no time is cut in two
        times = [at for _, _, at in case.events]
        bounds = [at if at in (0, count) else times.index(times[at]) for at in bounds]
        if case.timed:  # the end of each is that of the input
            bounds = [0, count]
    engine = ss.Engine(case.pipeline, seed=case.seed, **next(setting))
    try:
        for number, (at, end) in enumerate(itertools.pairwise(bounds), start=2):
            ends = case.timed and number == len(bounds)
            while True:
                try:
                    batch = case.table.slice(at, end - at)
                    told.add(engine.process(batch, order_by=TIME, end=by_time or ends))
                    break
                except Exception as error:
                    _, failed = getattr(error, "specstream_phase", (None, 1))
                    failed = 0 if hasattr(error, "specstream_timer") else failed  # of no event
                    at += told.failed(error).consumed + failed
            if draw.random() < 0.15:
                engine = moved(engine, told, next(setting), case.seed)
        told.aborts.update(engine.stats.aborts)
        return told, engine.state.to_dict()
    finally:
        engine.close()


def out_of_order(
    case: Case, draw: random.Random, setting: Iterator[dict[str, Any]]
) -> tuple[Told, dict[str, Any], Phases]:
    """By ``submit``; and what the witness makes of the same events, whose numbers are those of
    their arrival."""
    import pyarrow as pa

    import specstream as ss
    from support.pipelines.phases import Phases, salts, source_number

    p, table = case.pipeline, case.table
    column: str | None = "stream" if len(p._graph.sources) > 1 else None
    if column is None and draw.random() < 0.7:
        column = ORIGIN
        names = [draw.choice(["a", "b", "ä"]) for _ in case.events]
        table = table.append_column(ORIGIN, pa.array(names))
    of = table[column].to_pylist() if column else [0] * len(case.events)
    pieces = ss.testing.arrivals(
        table,
        order_by=TIME,
        source=column,
        disorder=draw.choice([0, 4, 16, 64]),
        rows=draw.choice([1, 3, 8, 20]),
        seed=draw.randrange(1000),
    )
    # The witness.
    seen, counts, keys = Phases(p, salts(p), case.seed), Counter[Any](), {}
    for piece in pieces:
        # A table's events are numbered in the order of their times.
        for row in sorted(piece.table[ROW].to_pylist(), key=lambda row: case.events[row][2]):
            number = source_number(of[row]) if column else 0
            keys[row] = (case.events[row][2], of[row], counts[of[row]], number)
            counts[of[row]] += 1
    given: list[Given] = []
    for row in sorted(keys, key=lambda row: keys[row][:3]):
        source, values, at = case.events[row]
        _, _, sequence, number = keys[row]
        given.append((source, values, (at, number, sequence)))
    witnessed(seen, given)
    if case.timed:
        seen.reach(reached_in(pieces, set(of)))
        seen.end()
    # The engine.
    told = Told(p)
    engine = ss.Engine(p, seed=case.seed, sources=dict.fromkeys(of), **next(setting))

    def poll(timeout: float | None) -> None:
        while True:
            try:
                told.add(engine.poll(timeout=timeout))
                return
            except Exception as error:
                told.failed(error)

    try:
        for piece in pieces:
            if len(piece.table) == 1 and draw.random() < 0.5:
                row = piece.table[ROW][0].as_py()
                _, values, at = case.events[row]
                engine.submit_event(at, of[row], **values)
                for name, to in piece.frontiers.items():
                    engine.advance(name, to)
            else:
                piece.submit_to(engine)
            if draw.random() < 0.2:
                poll(draw.choice([0.0, 0.001, None]))
            if draw.random() < 0.5 / len(pieces):
                engine = moved(engine, told, next(setting), case.seed)
        poll(None)
        told.aborts.update(engine.stats.aborts)
        return told, engine.state.to_dict(), seen
    finally:
        engine.close()


def reached_in(pieces: Any, sources: set[Any]) -> int:
    """How far the frontier of all sources comes before the end."""
    frontiers: dict[Any, float] = {}
    reached = -(2**63)
    for piece in pieces:
        for name, to in piece.frontiers.items():
            frontiers[name] = float("inf") if to is None else to.as_py()
            least = min(frontiers.values())
            if len(frontiers) == len(sources) and least != float("inf"):
                reached = max(reached, int(least))
    return reached


def same_state(found: dict[str, Any], seen: Phases) -> None:
    """All fields of all vertices, and their last values."""
    import numpy as np

    fields = {f"{vertex}.{name}" for vertex in seen.states for name in vars(seen.states[vertex])}
    for name, value in found.items():
        vertex, _, rest = name.partition(".")
        if name in fields:
            wanted = getattr(seen.states[vertex], rest)
            if rest == "timers":
                wanted = {key: at for key, (at, _) in wanted.held.items()}
        else:
            one, _, column = rest.partition(".")
            last = seen.last.get((vertex, one))
            kept = None if last is None else last.get(column.removesuffix(".null"))
            if column == "known":
                wanted = last is not None
            elif column.endswith(".null"):
                wanted = kept is None
            elif kept is None:
                continue  # what is null, or was never there: no value
            else:
                wanted = kept
        plain = value.tolist() if isinstance(value, np.ndarray) else value
        if not isinstance(plain, str | dict):
            plain, wanted = np.array(plain).tolist(), np.array(wanted).tolist()
        assert plain == wanted, f"state.{name} is {plain!r}, and should be {wanted!r}"


def same_rows(found: dict[str, list[tuple[Any, ...]]], seen: Phases) -> None:
    for name, wanted in seen.rows.items():
        for number, (one, other) in enumerate(zip(found[name], wanted, strict=False)):
            assert one == other, f"sink {name}, row {number} is {one}, and should be {other}"
        assert len(found[name]) == len(wanted), (
            f"sink {name} has {len(found[name])} rows, and should have {len(wanted)}"
        )


def attempt(seed: int, engines: int, most: int | None = None) -> dict[str, Any]:
    """Everything about one graph; what it came to.

    Raises:
        AssertionError: something is not what it should be.
    """
    draw = random.Random(seed)
    case = made(seed, draw, most)
    setting = settings(draw)
    expected = case.pipeline.run_sequential(
        case.table, order_by=TIME, on_error="skip", seed=case.seed, end=case.timed
    )
    oracle = Told(case.pipeline)
    oracle.add(expected.output)
    same_rows(oracle.rows, case.seen)
    same_state(expected.state.to_dict(), case.seen)
    assert [row for row, _ in expected.raised] == case.seen.raised
    aborts: Counter[str] = Counter()
    for number in range(engines):
        used: list[dict[str, Any]] = []

        def noted(used: list[dict[str, Any]] = used) -> Iterator[dict[str, Any]]:
            for one in setting:
                used.append(one)
                yield one

        try:
            if number % 2:
                told, state, seen = out_of_order(case, draw, noted())
            else:
                (told, state), seen = in_order(case, draw, noted()), case.seen
            same_rows(told.rows, seen)
            same_state(state, seen)
            assert told.raised == len(seen.raised), (told.raised, seen.raised)
        except BaseException as error:
            way = "out of order" if number % 2 else "in order"
            error.add_note(f"engine {number}, {way}: {used}")
            raise
        aborts.update(told.aborts)
    graph = case.pipeline._graph
    return {
        "vertices": len(graph.vertices),
        "sources": len(graph.sources),
        "sinks": len(graph.sinks),
        "events": len(case.events),
        "runs": case.seen.runs,
        "fired": case.seen.fired,
        "raised": len(case.seen.raised),
        "engines": engines,
        "aborts": dict(aborts),
    }


# ---- a process ----


def work(arguments: argparse.Namespace) -> int:
    """Runs graphs; where it is, and what they came to, stands in a file that outlives it."""
    faulthandler.enable()
    counted: Counter[str] = Counter()
    if arguments.sanitizer:
        from support.stress import instrumented

        counted = instrumented.install(arguments.sanitizer, arguments.planted)
    with arguments.progress.open("a") as progress:

        def log(**values: Any) -> None:
            progress.write(json.dumps(values) + "\n")
            progress.flush()

        for seed in range(arguments.seed, arguments.seed + arguments.count):
            if time.time() > arguments.until:
                break
            log(begun=seed)
            faulthandler.dump_traceback_later(STUCK_SECONDS, exit=True)
            began = time.monotonic()
            try:
                found = attempt(seed, arguments.engines)
            except Exception:
                print(traceback.format_exc(), flush=True)
                return WRONG
            seconds = time.monotonic() - began
            print(
                f"seed {seed}: {found['vertices']} vertices, {found['sources']} sources, "
                f"{found['sinks']} sinks, {found['events']} events, {found['runs']} runs, "
                f"{found['fired']} fired, {found['raised']} raised, {found['engines']} engines, "
                f"{'by time, ' if is_by_time(seed) else ''}"
                f"{sum(found['aborts'].values())} aborts; {seconds:.0f} s",
                flush=True,
            )
            log(done=seed, **found, told=dict(counted))
    return 0


# ---- all of them ----


def replay(arguments: argparse.Namespace, seed: int) -> str:
    words = ["env", f"PYTHONPATH={processes.TESTS}"]
    words += processes.command(MODULE, "--seed", seed, "--count", 1)
    if arguments.sanitizer:
        words += ["--sanitizer", arguments.sanitizer, "--package", str(arguments.package)]
    return shlex.join([*words, "--engines", str(arguments.engines)])


def run_block(
    arguments: argparse.Namespace, first: int, count: int, until: float, planted: bool = False
) -> list[Any]:
    """Lines of what a process has written down; its own words go where ours do."""
    with tempfile.TemporaryDirectory() as directory:
        progress = Path(directory, "progress")
        progress.touch()
        command = processes.command(MODULE, "--work", progress, "--seed", first)
        command += ["--count", str(count), "--until", repr(until)]
        command += ["--engines", str(arguments.engines)]
        if arguments.sanitizer:
            command += ["--sanitizer", arguments.sanitizer]
        if planted:
            command += ["--planted"]
        environment = sanitizers.environment(arguments.sanitizer, arguments.package)
        environment["NUMBA_OPT"] = "3" if optimises(first) else "0"
        # Compiled each time: nothing is met twice, and what is instrumented is for nobody else.
        environment["SPECSTREAM_CACHE_DIR"] = ""
        quiet = subprocess.DEVNULL if planted else None
        done = subprocess.run(command, env=environment, stdout=quiet, stderr=subprocess.STDOUT)
        lines = [json.loads(line) for line in progress.read_text().splitlines()]
    if done.returncode:
        lines.append({"status": done.returncode})
    return lines


def is_found(arguments: argparse.Namespace) -> bool:
    """Whether the sanitizer reports a defect that is planted in machine code."""
    planted = argparse.Namespace(**{**vars(arguments), "engines": PLANTED_ENGINES})
    lines = run_block(planted, PLANTED_IN, 1, time.time() + STUCK_SECONDS, planted=True)
    return bool(lines[-1].get("status") == sanitizers.REPORTED)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, help="how long (default: 60)")
    parser.add_argument("--count", type=int, help="graphs, instead of a time")
    parser.add_argument("--seed", type=int, default=random.randrange(10**9), help="the first one's")
    parser.add_argument("--engines", type=int, default=8, help="of each graph")
    parser.add_argument("--sanitizer", choices=["address", "thread"])
    parser.add_argument("--package", type=Path, help="where the package is, built with it")
    parser.add_argument("--findings", type=int, default=10, help="stop after so many")
    parser.add_argument("--work", dest="progress", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--planted", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--until", type=float, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if bool(arguments.sanitizer) != bool(arguments.package) and not arguments.progress:
        parser.error("--sanitizer and --package go together")
    if arguments.progress:
        return work(arguments)
    if arguments.package:
        arguments.package = arguments.package.resolve()
    began, seed, wrong = time.time(), arguments.seed, 0
    until = began + (arguments.seconds or (1e9 if arguments.count else 60))
    last = seed + (arguments.count or 10**9)
    totals, aborts = Counter[str](), Counter[str]()
    print(f"stress-pipelines, {arguments.sanitizer or 'plain'}: seed {seed}", flush=True)
    # Who reports nothing proves nothing: defects in what machine code tells have to be found.
    if arguments.sanitizer and not is_found(arguments):
        print(f"a planted defect was not reported: {arguments.sanitizer} sees no machine code")
        return 1
    while seed < last and time.time() < until and wrong < arguments.findings:
        end = min(last, (seed // BLOCK + 1) * BLOCK)
        lines = run_block(arguments, seed, end - seed, until)
        begun = [line["begun"] for line in lines if "begun" in line]
        for line in lines:
            if "done" in line:
                totals["graphs"] += 1
                aborts.update(line["aborts"])
                for name in ("vertices", "events", "runs", "fired", "raised", "engines"):
                    totals[name] += line[name]
        if lines and "status" in lines[-1]:
            wrong += 1
            at = begun[-1] if begun else seed
            print(f"seed {at}: status {lines[-1]['status']}; again with\n  {replay(arguments, at)}")
            sys.stdout.flush()
            end = at + 1
        seed = end
    told = ", ".join(f"{count:,} {what}" for what, count in totals.items())
    print(f"{time.time() - began:.0f} s: {told}; aborts {dict(aborts)}; {wrong} wrong")
    return 1 if wrong or not totals["graphs"] else 0


if __name__ == "__main__":
    sys.exit(main())
