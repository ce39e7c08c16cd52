"""The three questions: how fast, how large, and what skew does."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import specstream as ss
from bench.chapter4.slowed import SlowedEngine, busy_rounds
from bench.containers.operators import by_hand, events_of, keys_of, of_state, typed_dict
from specstream.checkpoint.run.batch import Batch
from specstream.checkpoint.run.batch_runner import BatchRunner
from specstream.checkpoint.run.stream_options import StreamOptions

__all__ = ["Large", "Skewed", "Speed", "large", "skewed", "speeds"]

Say = Callable[[str], None]
# (horizon, chunk) of two threads, of which the fastest counts.
SETTINGS = ((4, 8), (8, 16), (8, 32), (4, 64))


@dataclass(frozen=True)
class Speed:
    """One contestant for one number of keys.

    Attributes:
        nanoseconds: of an event, median of the rounds.
        ratio: its time to that of ``ss.dict`` under the same conditions in the same round, median.
    """

    keys: int
    contestant: str
    nanoseconds: float
    ratio: float


def speeds(sizes: Sequence[int], rounds: int, say: Say) -> list[Speed]:
    """ss.dict, the table by hand and Numba's typed dict, in turns; on one thread and on two."""
    found: list[Speed] = []
    for size in sizes:
        with ExitStack() as stack:
            say(f"{size:,} keys")
            events = max(20_000, min(200_000, size))
            hand = by_hand(size)
            runners: dict[str, Callable[[pa.Table], float]] = {"typed dict": typed_dict()}

            contestants: list[tuple[str, ss.Operator, dict[str, Any]]] = [
                ("ss.dict", of_state, {"threads": 1, "horizon": 0}),
                ("by hand", hand, {"threads": 1, "horizon": 0}),
            ]
            for horizon, chunk in SETTINGS:
                two: dict[str, Any] = {"threads": 2, "horizon": horizon, "chunk": chunk}
                contestants.append((f"ss.dict, 2 threads, {horizon}, {chunk}", of_state, two))
                contestants.append((f"by hand, 2 threads, {horizon}, {chunk}", hand, two))
            for name, operator, options in contestants:
                runners[name] = _runner(stack.enter_context(ss.Engine(operator, **options)))
            # All keys once, so that what is measured is no growth.
            warm = events_of(keys_of(size, 8 * size, 1), 1)
            for run in runners.values():
                run(warm)
            times: dict[str, list[float]] = {name: [] for name in runners}
            for number in range(rounds):
                table = events_of(keys_of(size, events, 100 + number), number)
                order = list(runners)
                for name in order[number % len(order) :] + order[: number % len(order)]:
                    times[name].append(runners[name](table) / events)
            found += _compared(size, times)
    return found


def _runner(engine: ss.Engine) -> Callable[[pa.Table], float]:
    def run(events: pa.Table) -> float:
        before = engine.stats.seconds
        engine.process(events)
        return engine.stats.seconds - before

    return run


def _compared(size: int, times: dict[str, list[float]]) -> Iterator[Speed]:
    best = {}
    for what in ("ss.dict", "by hand"):
        names = [name for name in times if name.startswith(f"{what}, 2")]
        best[what] = min(names, key=lambda name: statistics.median(times[name]))
    chosen = {
        "ss.dict": ("ss.dict", "ss.dict"),
        "by hand": ("by hand", "ss.dict"),
        "typed dict": ("typed dict", "ss.dict"),
        "ss.dict, 2 threads": (best["ss.dict"], best["ss.dict"]),
        "by hand, 2 threads": (best["by hand"], best["ss.dict"]),
    }
    for name, (own, to) in chosen.items():
        ratios = [one / other for one, other in zip(times[own], times[to], strict=True)]
        yield Speed(size, name, 1e9 * statistics.median(times[own]), statistics.median(ratios))


@dataclass(frozen=True)
class Large:
    """What a dict of so many keys takes.

    Attributes:
        full_seconds: of the record of a batch whose checkpoint file is full.
        batch: events of the batch behind it, of keys at random.
        increment_seconds: of its record.
        restart_seconds: until an engine has the state of both files.
    """

    keys: int
    fill_seconds: float
    resident_bytes: int
    snapshot_seconds: float
    snapshot_bytes: int
    restore_seconds: float
    full_seconds: float
    full_bytes: int
    batch: int
    increment_seconds: float
    increment_bytes: int
    restart_seconds: float


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def large(keys: int, say: Say) -> Large:
    """Fills a dict, takes a snapshot, restores it; writes checkpoint files, starts from them."""
    say(f"{keys:,} keys: filling")
    before = _resident()
    with ss.Engine(of_state, threads=1, horizon=0) as engine:
        began = time.perf_counter()
        part = 1_000_000
        for first in range(0, keys, part):
            some = np.arange(first, min(first + part, keys), dtype=np.int64)
            engine.process(events_of(some * 7919, first))
        filled = time.perf_counter() - began
        resident = _resident() - before
        say(f"{keys:,} keys: snapshot")
        began = time.perf_counter()
        snapshot = engine.snapshot()
        kept = time.perf_counter() - began
        with tempfile.TemporaryDirectory() as folder:
            recorded = _checkpoints(engine, keys, folder, say)
    with ss.Engine(of_state, threads=1, horizon=0) as engine:
        began = time.perf_counter()
        engine.restore(snapshot)
        restored = time.perf_counter() - began
    return Large(keys, filled, resident, kept, len(snapshot), restored, *recorded)


def _bytes_in(folder: Path) -> int:
    files = (*folder.glob("*.full"), *folder.glob("*.increment"))
    return sum(file.stat().st_size for file in files)


def _checkpoints(
    engine: ss.Engine, keys: int, folder: str, say: Say
) -> tuple[float, int, int, float, int, float]:
    """Seconds and bytes of a full file, size of a batch, the same of its increment, a restart."""
    options = StreamOptions(to=lambda rows, batch_id: None, checkpoint=folder)
    runner = BatchRunner(engine, options, in_use=lambda: False)
    seconds: list[float] = []
    sizes: list[int] = []
    batch = 10_000
    for number in range(2):
        say(f"{keys:,} keys: checkpoint {number}")
        drawn = np.random.default_rng(number).integers(0, keys, batch)
        before = runner.stats.recording
        runner.run(Batch(number, None, events_of(drawn * 7919, number)))
        seconds.append(runner.stats.recording - before)
        sizes.append(_bytes_in(Path(folder)) - sum(sizes))
    runner.close()
    say(f"{keys:,} keys: restart")
    with ss.Engine(of_state, threads=1, horizon=0) as again:
        began = time.perf_counter()
        BatchRunner(again, options).close()
        restarted = time.perf_counter() - began
    return seconds[0], sizes[0], batch, seconds[1], sizes[1], restarted


@dataclass(frozen=True)
class Skewed:
    """One setting under one skew.

    Attributes:
        exponent: of Zipf's law; 0: all keys alike.
        threads: busy ones, or such that sleep.
        speedup: to one thread in the same round, median.
        aborts: dropped speculative runs per speculative run.
    """

    exponent: float
    kind: str
    threads: int
    speedup: float
    aborts: float


def skewed(exponents: Sequence[float], rounds: int, say: Say) -> list[Skewed]:
    """10,000 keys, chunk 1: two busy threads with 5 us of work, 16 that sleep for 200 us."""
    found = []
    busy = {"rounds": round(5e-6 * busy_rounds()), "before": 1}
    for exponent in exponents:
        for kind, threads, horizon, count, pace in (
            ("busy", 2, 16, 20_000, busy),
            ("asleep", 16, 64, 2_000, {"sleep": 200e-6, "before": 1}),
        ):
            say(f"Zipf {exponent}, {kind}")
            one = SlowedEngine(of_state, threads=1, horizon=0)
            many = SlowedEngine(of_state, threads=threads, horizon=horizon, chunk=1)
            with one, many:
                ratios = []
                for number in range(rounds):
                    keys = keys_of(10_000, count, number, exponent or None)
                    events = events_of(keys, number)
                    alone = one.run(events, **pace)
                    ratios.append(alone / many.run(events, **pace))
                aborts = many.runs().dropped_per_run
            found.append(Skewed(exponent, kind, threads, statistics.median(ratios), aborts))
    return found
