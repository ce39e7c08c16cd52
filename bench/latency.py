"""``python -m bench.latency [--json FILE] [--events N]``: from submit_event to poll_rows.

One event at a time: it is submitted, with its frontier, and polled for until its row is there.
The time is that of the whole way: Python, the engine's lock, waking a worker, the run, the commit,
the row as a tuple. Settings take turns, so that all meet the same machine.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

import specstream as ss
from specstream.tuning.machine import describe


class Counts(ss.State):
    """A hundred counters, as in Listing 4.2 of Brito 2010."""

    counts = ss.array(int, 100)


@ss.operator(state=Counts, event={"x": int}, emits={"x": int, "count": int})
def count(state, event, emit):  # type: ignore[no-untyped-def]
    """Counts one of a hundred."""
    state.counts[event.x % 100] += 1
    emit(event.x, state.counts[event.x % 100])


SETTINGS: dict[str, dict[str, Any]] = {
    "one thread, horizon 0": {"threads": 1, "horizon": 0},
    "one thread, horizon 4": {"threads": 1, "horizon": 4, "chunk": 1},
    "two threads, horizon 4": {"threads": 2, "horizon": 4, "chunk": 1},
    "two threads, eager": {"threads": 2, "horizon": 4, "chunk": 1, "protocol": "eager"},
}
ROUND = 100


def measure(events: int) -> dict[str, dict[str, float]]:
    """Percentiles of the way of one event, in microseconds, by setting."""
    times: dict[str, list[int]] = {name: [] for name in SETTINGS}
    with ExitStack() as stack:
        engines = {
            name: stack.enter_context(ss.Engine(count, **options))
            for name, options in SETTINGS.items()
        }
        for begin in range(0, events + ROUND, ROUND):
            for name, engine in engines.items():
                for number in range(begin, begin + ROUND):
                    start = time.perf_counter_ns()
                    engine.submit_event(number, ordered=True, x=number)
                    while not engine.poll_rows(timeout=1.0):
                        pass
                    if begin > 0:  # the first round warms up
                        times[name].append(time.perf_counter_ns() - start)
    return {
        name: {
            "p50": float(np.percentile(taken, 50)) / 1e3,
            "p99": float(np.percentile(taken, 99)) / 1e3,
        }
        for name, taken in times.items()
    }


def main() -> int:
    """Measures and prints."""
    parser = argparse.ArgumentParser(prog="python -m bench.latency", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was measured")
    parser.add_argument("--events", type=int, default=5000, help="events per setting")
    arguments = parser.parse_args()
    about = describe()
    print(", ".join(f"{name} {value}" for name, value in about.items()))
    print(f"From submit_event to poll_rows, {arguments.events} events, microseconds")
    measured = measure(arguments.events)
    for name, taken in measured.items():
        print(f"{name:<24} p50 {taken['p50']:7.1f}   p99 {taken['p99']:7.1f}")
    if arguments.json:
        document = {"machine": about, "events": arguments.events, "latency": measured}
        arguments.json.write_text(json.dumps(document, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
