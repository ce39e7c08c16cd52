"""``python -m bench versions CHECKOUT``: this version against another one, round by round.

``CHECKOUT`` is a directory with another version of the sources, built in an environment of its own
(``CHECKOUT/.venv``). A process of each version prepares the same engines, and they measure in
turns, so that whatever else the machine does meets both alike. The operators are those of this
file: they use nothing that version 0.1 did not have.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
MULTIPLIER = 6364136223846793005
WORDS = 1 << 20  # 8 MB
SECONDS = 0.1  # of one run, roughly
REPEATS = 3  # runs of a measurement; the fastest counts
ACCEPTED = 0.98  # of the other version's speed, by the upper quartile

# Rounds of the busy loop, words updated, options: what one line of the table runs.
PLAIN = {"threads": 1, "horizon": 0}
FORCED = {"threads": 1, "horizon": 8, "chunk": 32, "execution": "speculate"}
UPDATES: dict[str, tuple[int, int, dict[str, Any]]] = {
    "5 words, plain": (40, 5, PLAIN),
    "5 words, log-free": (40, 5, {"threads": 1, "execution": "log_free"}),
    "5 words, forced": (40, 5, FORCED),
    "5 words, value": (40, 5, {"threads": 2, "horizon": 8, "chunk": 32}),
    "5 words, eager": (40, 5, {"threads": 2, "horizon": 8, "chunk": 32, "protocol": "eager"}),
    "5 words, longer, value": (400, 5, {"threads": 2, "horizon": 8, "chunk": 16}),
    "5 words, longer, eager": (
        400,
        5,
        {"threads": 2, "horizon": 8, "chunk": 16, "protocol": "eager"},
    ),
    "5 words, long, value": (4_000, 5, {"threads": 2, "horizon": 16, "chunk": 1}),
    "100 words, value": (3_000, 100, {"threads": 2, "horizon": 16, "chunk": 1}),
    "100 words, eager": (
        3_000,
        100,
        {"threads": 2, "horizon": 16, "chunk": 1, "protocol": "eager"},
    ),
    "no work, value": (0, 1, {"threads": 2, "horizon": 16, "chunk": 16}),
}
READY: dict[str, tuple[str, dict[str, Any]]] = {
    "top-k, plain": ("top_k", PLAIN),
    "top-k, forced": ("top_k", FORCED),
    "top-k, value": ("top_k", {"threads": 2, "horizon": 8, "chunk": 32}),
    "neighbours, plain": ("nearest_neighbours", PLAIN),
    "neighbours, forced": ("nearest_neighbours", FORCED),
    "neighbours, value": ("nearest_neighbours", {"threads": 2, "horizon": 4, "chunk": 8}),
}
SUBMITTED = "top-k, one by one"


def main() -> int:
    """Measures both versions, prints the table; 1 if a line is slower than accepted."""
    parser = argparse.ArgumentParser(prog="python -m bench versions", description=__doc__)
    parser.add_argument("checkout", type=Path, help="the other version, built in its .venv")
    parser.add_argument("--rounds", type=int, default=21, help="measurements of each line")
    parser.add_argument("--only", action="append", metavar="NAME", help="lines that contain NAME")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was measured")
    arguments = parser.parse_args()
    if not (arguments.checkout / ".venv/bin/python").exists():
        parser.error(f"{arguments.checkout} has no environment: expected .venv/bin/python in it")
    lines = [
        line
        for line in [*UPDATES, *READY, SUBMITTED]
        if not arguments.only or any(part in line for part in arguments.only)
    ]
    if not lines:
        parser.error(f"no line contains {' or '.join(arguments.only)}")
    versions = [Version(ROOT), Version(arguments.checkout.resolve())]
    print("speed relative to the other version; nanoseconds per event of this and the other one\n")
    measured: dict[str, list[list[float]]] = {}
    slower = []
    for line in lines:
        times: list[list[float]] = [[], []]
        for version in versions:
            version.ask(line)  # compiles and warms up
        for turn in range(arguments.rounds):
            for at in (0, 1) if turn % 2 else (1, 0):
                times[at].append(versions[at].ask(line))
        ratios = [other / this for this, other in zip(*times, strict=True)]
        low, middle, high = statistics.quantiles(ratios, n=4)
        here, there = (statistics.median(of) * 1e9 for of in times)
        verdict = "" if high >= ACCEPTED else "SLOWER"
        slower += [line] if verdict else []
        print(
            f"{line:24} {middle:5.2f}  quartiles {low:.2f} {high:.2f}"
            f"  {here:9.1f} {there:9.1f}  {verdict}",
            flush=True,
        )
        measured[line] = times
    for version in versions:
        version.close()
    if arguments.json:
        arguments.json.write_text(json.dumps(measured) + "\n")
    return 1 if slower else 0


class Version:
    """A process that measures with the sources of one checkout."""

    def __init__(self, root: Path) -> None:
        self._process = subprocess.Popen(
            [str(root / ".venv/bin/python"), str(Path(__file__).resolve()), "--measure"],
            cwd=root,
            env={**os.environ, "PYTHONPATH": str(root)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, line: str) -> float:
        """Seconds per event of this line, measured once."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise SystemExit(f"the process of {self._process.args!r} ended: see its message above")
        return float(answer)

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def measure() -> None:
    """The other side: reads names of lines, answers with seconds per event."""
    prepared: dict[str, Callable[[], float]] = {}
    for request in sys.stdin:
        line = request.rstrip("\n")
        if line not in prepared:
            prepared.clear()  # the engines of the line before
            prepared[line] = prepare(line)
        # The first fills the caches that the other process has used.
        print(min(prepared[line]() for _ in range(REPEATS)), flush=True)


def prepare(line: str) -> Callable[[], float]:
    """An engine that is warm, and what one measurement with it is."""
    import numpy as np
    import pyarrow as pa

    import specstream as ss
    from specstream.operators import nearest_neighbours, top_k

    generator = np.random.default_rng(1)
    count = 400_000
    if line in UPDATES:
        rounds, words, options = UPDATES[line]
        operator = updates(words)
        count //= 1 + rounds // 40 + words // 5
        events = pa.table(
            {"value": generator.integers(0, 2**62, count), "work": np.full(count, rounds)}
        )
    elif READY.get(line, ("top_k",))[0] == "top_k":
        options = PLAIN if line == SUBMITTED else READY[line][1]
        operator = top_k(k=5, rows=5, width=1024)
        events = pa.table({"item": generator.zipf(1.3, count).astype(np.int64)})
    else:
        options = READY[line][1]
        operator = nearest_neighbours(grid=100, per_bucket=10, k=3)
        events = pa.table({"x": generator.random(count), "y": generator.random(count)})
    engine = ss.Engine(operator, **options)

    def batch(events: pa.Table) -> float:
        before = time.perf_counter()
        engine.process(events)
        seconds = time.perf_counter() - before
        return seconds / float(events.num_rows)

    times = itertools.count()

    def one_by_one(events: pa.Table) -> float:
        items = events["item"].to_pylist()[:8_000]
        before = time.perf_counter()
        for item in items:
            engine.submit_event(next(times), item=item)
        seconds = time.perf_counter() - before
        engine.advance(next(times))
        engine.poll(timeout=None)
        return seconds / len(items)

    run = one_by_one if line == SUBMITTED else batch
    if line != SUBMITTED:
        per_event = min(batch(events.slice(0, 10_000)) for _ in range(3))
        events = events.slice(0, max(1_000, min(count, int(SECONDS / per_event))))
    return lambda: run(events)


def updates(count: int) -> Any:
    """``count`` words of 8 MB are incremented after a busy loop."""
    import specstream as ss

    class Words(ss.State):
        values = ss.array(int, WORDS)

    @ss.operator(
        state=Words, event={"value": int, "work": int}, emits={"busy": int}, name="updates"
    )
    def process(state, event, emit):  # type: ignore[no-untyped-def]
        busy = event.value
        for _ in range(event.work):
            busy = (busy ^ (busy >> 32)) * MULTIPLIER
        at = event.value
        for _ in range(count):
            at = (at ^ (at >> 32)) * MULTIPLIER
            state.values[(at >> 32) % WORDS] += 1
        emit(busy)

    return process


if __name__ == "__main__":
    if sys.argv[1:] == ["--measure"]:
        measure()
    else:
        raise SystemExit(main())
