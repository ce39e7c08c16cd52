"""The load of ``load.c`` in two libraries: for this machine, and for the virtual one."""

from __future__ import annotations

import functools
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.native import FLAGS, RUNTIME, compiled, folder, opened, shared_library
from specstream.tuning.forecast.costs import Costs
from stm_native.build import for_the_machine

__all__ = ["COSTS", "Load", "Numbers", "Seen", "measured_costs", "on_machine", "real"]

HERE = Path(__file__).parent
DECLARED = """
    struct cores_load {
        int64_t threads, horizon, chunk, longest, count, warm, reads, run, writes, words, is_asleep;
        int64_t is_forced;
        int64_t *seeds;
        int64_t *times;
        const int64_t *costs;
    };
    struct cores_result {
        int64_t nanoseconds, transfers, working, looking, awake, queued;
        uint64_t sum;
        struct ss_statistics statistics;
    };
    struct cores_result cores_measure(const struct cores_load *what);
"""
MEASURED = """
    double cores_wake(double *call);
"""
# Nanoseconds, of a server; measured_costs tells what some of them are here.
COSTS = asdict(Costs())

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Load:
    """Events, and the setting that they run on.

    Attributes:
        times: nanoseconds that each event takes beside its accesses.
        threads: of the engine, each on a core of its own.
        horizon: of speculation; 0: one after the other.
        chunk: events of a transaction.
        longest: horizon to which it may grow; 0: it stays.
        reads: words that each event reads.
        run: of these, so many are neighbours, from anywhere in the state on.
        writes: of these, so many are written.
        words: of the state.
        forced: the head is never run in place at its first try.
    """

    times: Numbers
    threads: int
    horizon: int
    chunk: int = 1
    longest: int = 0
    reads: int = 10
    run: int = 1
    writes: int = 1
    words: int = 102_400
    forced: bool = False


@dataclass(frozen=True)
class Seen:
    """What became of a load.

    Attributes:
        seconds: that the events took; a tenth of them ran before, to warm up.
        sum: of state and rows; the same on all settings.
        transfers: cache lines that went from core to core; for real 0.
        reruns: runs that were dropped.
        parks: times that a thread went to sleep.
        working: seconds of all cores on events; for real 0.
        committing: in the runtime: claims, logs, validation, commits.
        queued: seconds that threads were ready and had no core, together; on the machine 0.
    """

    seconds: float
    sum: int
    transfers: int
    reruns: int
    parks: int
    working: float
    committing: float
    queued: float


def on_machine(load: Load, costs: dict[str, float] = COSTS) -> Seen:
    """On the machine of as many cores, with the runtime's own code. The same each time."""
    ffi, lib = _machine()
    picoseconds = ffi.new("int64_t[]", [round(1000 * costs[name]) for name in COSTS])
    return _measure(ffi, lib, load, False, picoseconds)


def real(load: Load, *, asleep: bool) -> Seen:
    """On this machine: each event sleeps for its time, or is busy."""
    ffi, lib = _library()
    return _measure(ffi, lib, load, asleep, ffi.NULL)


def measured_costs() -> dict[str, float]:
    """Those of this machine that can be measured, in nanoseconds."""
    ffi, lib = _library()
    call = ffi.new("double *")
    lines = ffi.new("struct ss_transfer *")
    lib.ss_measure_transfer(lines)
    wake = lib.cores_wake(call)
    return {"transfer": lines.latency, "bulk": lines.bulk, "wake": wake, "call": call[0]}


def _measure(ffi: Any, lib: Any, load: Load, asleep: bool, costs: Any) -> Seen:
    times = np.ascontiguousarray(load.times, np.int64)
    warm = len(times) // 10
    seeds = np.random.default_rng(11).integers(-(2**63), 2**63, len(times))
    what = ffi.new(
        "struct cores_load *",
        {
            "threads": load.threads,
            "horizon": load.horizon,
            "chunk": load.chunk,
            "longest": load.longest,
            "count": len(times),
            "warm": warm,
            "reads": load.reads,
            "run": load.run,
            "writes": load.writes,
            "words": load.words,
            "is_asleep": asleep,
            "is_forced": load.forced,
            "seeds": ffi.cast("int64_t *", seeds.ctypes.data),
            "times": ffi.cast("int64_t *", times.ctypes.data),
            "costs": costs,
        },
    )
    result = lib.cores_measure(what)
    if result.nanoseconds < 0:
        raise MemoryError("no memory or no threads for the load")
    counted = result.statistics
    return Seen(
        result.nanoseconds / 1e9,
        result.sum,
        result.transfers,
        counted.reruns,
        counted.parks,
        result.working / 1e9,
        (result.awake - result.working - result.looking) / 1e9,
        result.queued / 1e9,
    )


@functools.cache
def _library() -> tuple[Any, Any]:
    return shared_library(HERE / "load.c", DECLARED + MEASURED)


@functools.cache
def _machine() -> tuple[Any, Any]:
    into = folder()
    forecast = RUNTIME / "forecast"
    paths = [f"-I{forecast}", f"-I{RUNTIME / 'include'}", f"-I{RUNTIME / 'src'}"]
    common = [*FLAGS, "-fPIC", "-DNDEBUG", *paths, "-c"]
    machine = forecast / "machine.c"

    def made(source: Path) -> str:
        own = ["-D_GNU_SOURCE="] if source == machine else ["-DMACHINE", *for_the_machine(source)]
        return str(compiled([*common, *own, str(source)], into / f"{source.stem}.o"))

    with ThreadPoolExecutor(2) as pool:
        sources = [machine, HERE / "load.c", *sorted((RUNTIME / "src").rglob("*.c"))]
        objects = list(pool.map(made, sources))
    # Not linked as for ThreadSanitizer: what the compiler calls is machine.c's.
    library = compiled(["-shared", *objects, "-Wl,-Bsymbolic", "-lm"], into / "machine.so")
    return opened(library, DECLARED)
