"""``python -m bench.verify.capacity``: how many states there may be, how fast, in how much memory.

In a process of its own: its memory is what is measured.
"""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs

from __future__ import annotations

import json
import random
import resource
import subprocess
import sys
import time
from typing import Any

import specstream as ss
from bench.options import Say

__all__ = ["capacity"]

BITS = 20


class Last(ss.State):
    bits = ss.scalar(int)


@ss.operator(state=Last, event={"x": int}, emits={"bits": int})
def last_bits(state, event, emit):
    """The last twenty events: a state for each."""
    state.bits = (2 * state.bits + event.x) % 2**BITS
    if state.bits == 0:
        emit(event.x)


def not_negative(state):
    return state.bits >= 0


def capacity(say: Say) -> dict[str, Any]:
    """All 2 ** 20 states of an operator, beside the sequential run of it."""
    say(f"{2**BITS:,} states")
    command = [sys.executable, "-m", "bench.verify.capacity"]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def _measured() -> dict[str, Any]:
    table = {"x": random.Random(1).choices((0, 1), k=200_000)}
    began = time.perf_counter()
    last_bits.run_sequential(table)
    sequential = 200_000 / (time.perf_counter() - began)
    most = {"time": 600.0, "within_states": 2 * 2**BITS}
    report = ss.verify.check(last_bits, domain={"x": (0, 1)}, always=not_negative, **most)
    return {
        "states": report.states,
        "closed": report.closed,
        "seconds": report.seconds,
        "transitions per second": report.transitions / report.seconds,
        "events per second": sequential,
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


if __name__ == "__main__":
    print(json.dumps(_measured()))
