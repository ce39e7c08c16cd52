"""The page: its tables and sentences come from the data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.cores.table import COMMIT_READS, COMMIT_WRITES, MOST_WAITED, error
from bench.pages import disturbed, measured_on, table, wrapped

__all__ = [
    "ASLEEP_HEAD",
    "BUSY_HEAD",
    "CORES_HEAD",
    "REACH_HEAD",
    "asleep_rows",
    "busy_rows",
    "cores_rows",
    "page",
    "reach_rows",
]

ASLEEP_HEAD = (
    "event", "threads", "horizon", "sigma", "ideal", "asleep", "waited", "machine", "of ideal",
    "error",
)  # fmt: skip
BUSY_HEAD = ("event", "reads", "writes", "threads", "busy", "machine", "error")
CORES_HEAD = (
    "durations", "cores", "ideal", "machine", "running", "committing", "waiting", "run again",
)  # fmt: skip
REACH_HEAD = ("event", "sigma", "cores", "aimed at", "machine", "", "horizon", "chunk")


def _time(row: Mapping[str, Any]) -> str:
    return f"{row['time'] / 1000:g} µs"


def _error(row: Mapping[str, Any]) -> str:
    return f"{100 * error(row):+.0f} %"


def asleep_rows(rows: list[dict[str, Any]]) -> list[list[str]]:
    """Rows below ``ASLEEP_HEAD``."""
    return [
        [
            _time(row),
            str(row["threads"]),
            str(row["horizon"]),
            f"{row['sigma']:g}",
            f"{row['ideal']:.2f}",
            f"{row['real']:.2f}",
            f"{100 * row['waited']:.0f} %",
            f"{row['machine']:.2f}",
            f"{row['machine'] / row['ideal']:.2f}",
            _error(row),
        ]
        for row in rows
    ]


def busy_rows(rows: list[dict[str, Any]]) -> list[list[str]]:
    """Rows below ``BUSY_HEAD``."""
    return [
        [
            _time(row),
            str(row["reads"]),
            str(row["writes"]),
            "1, forced" if row["threads"] == 1 else str(row["threads"]),
            f"{row['real']:.2f}",
            f"{row['machine']:.2f}",
            _error(row),
        ]
        for row in rows
    ]


def cores_rows(rows: list[dict[str, Any]]) -> list[list[str]]:
    """Rows below ``CORES_HEAD``."""
    return [
        [
            row["kind"],
            str(row["cores"]),
            f"{row['ideal']:.1f}",
            f"{row['machine']:.1f}",
            *(f"{100 * row[share]:.0f} %" for share in ("running", "committing", "waiting")),
            f"{100 * row['reruns']:.1f} %",
        ]
        for row in rows
    ]


def reach_rows(of: Mapping[str, Any]) -> list[list[str]]:
    """Rows below ``REACH_HEAD``."""
    rows = [
        [
            _time(row),
            f"{row['sigma']:g}",
            str(row["threads"]),
            f"{row['target']:g}",
            f"{row['machine']:.1f}",
            _reached(row),
            str(row["horizon"]),
            str(row["chunk"]),
        ]
        for row in of["cells"]
    ]
    commits = of["commits"]
    rows.append(
        [
            "commits a second",
            "",
            str(commits["threads"]),
            f"{commits['target'] / 1e6:g} million",
            f"{commits['machine'] / 1e6:.1f} million",
            _reached(commits),
            str(commits["horizon"]),
            "1",
        ]
    )
    return rows


def _reached(row: Mapping[str, Any]) -> str:
    return "yes" if row["machine"] >= row["target"] else "**no**"


def page(data: Mapping[str, Any]) -> str:
    """The page as Markdown.

    Args:
        data: as ``--json`` writes it, of all parts.
    """
    parts = data["parts"]
    costs = ", ".join(f"{name} {cost:g}" for name, cost in data["costs"].items())
    here = ", ".join(f"{name} {cost:.0f}" for name, cost in data["measured costs"].items())
    blocks = [
        "# On more cores",
        _summary(parts),
        *disturbed(data["machine"]),
        wrapped(
            "`make bench-cores` makes all of it and writes this page: tables, picture and "
            "sentences come from what it has seen. There are no more than two cores to measure on. "
            "So the C code of the runtime itself, unchanged, runs on a *virtual machine*: each "
            "thread has a core and a clock of its own, and each access to memory, each lock and "
            "each wake-up moves that clock by what it costs. The same run gives the same numbers "
            "each time. It is compared with real threads where there can be any: asleep, as many "
            "as wanted, and busy, as many as there are cores."
        ),
        "![Speed by the number of cores beside the ideal, and shares of the cores' time running, "
        "committing and waiting](cores.png)",
        "## The ceiling",
        _ceiling(parts["reach"]["commits"]),
        "## By the number of cores (simulated)",
        wrapped(
            "Events of 50 µs on average read 10 words of 102,400 and write 2 of them. *Ideal*: "
            "cores that take events in their order, run ahead by as much as the engine may, and "
            "need nothing else. The horizon begins at four transactions for each core and may grow "
            "to 64 for each. *Recorded* are durations of an order book's events, with that mean. "
            "*Committing* is all that is done for transactions beside their events: claims, logs, "
            "validation, publication, waking; *waiting* is looking for work, and sleeping. *Run "
            "again*: of all events, those whose first run read too early."
        ),
        table(CORES_HEAD, *cores_rows(parts["cores"])),
        "## What is aimed at (simulated)",
        wrapped(
            "10 reads and 2 writes; the best of some horizons and chunks. Commits a second: of "
            f"transactions of {COMMIT_READS} reads and {COMMIT_WRITES} writes, on as many cores as "
            "make the most."
        ),
        table(REACH_HEAD, *reach_rows(parts["reach"])),
        "## Beside real threads that sleep",
        wrapped(
            "An event sleeps for its time, and reads 10 words and writes one; so many threads fit "
            "on two cores, as long as those have the time for what the threads do in between. "
            "*Waited*: the part of their time for which threads were ready and had no core, as the "
            "kernel counts it, less that of one thread alone. *Error*: the machine's speed, less "
            f"that part, above the real one. Where it is more than {100 * MOST_WAITED:.0f} %, the "
            "error says little of the machine."
        ),
        table(ASLEEP_HEAD, *asleep_rows(parts["asleep"])),
        "## Beside real threads that are busy",
        wrapped(
            "An event is busy for its time (sigma 0.5). *Forced* is one thread that runs all "
            "events as transactions: what speculation itself costs. Two threads say something only "
            "while the machine has two cores to give."
        ),
        table(BUSY_HEAD, *busy_rows(parts["busy"])),
        wrapped(
            f"The machine's costs, in nanoseconds: {costs}. Those of them that can be measured "
            f"here: {here}."
        ),
        wrapped(
            "It has not: memory bandwidth, caches that are full, cores that share execution units "
            "or power, sockets, and other processes. [`specstream tune "
            "--cores`](../guides/tuning.md#more-cores-than-there-are---cores) puts the events of "
            "an operator of yours on the same machine."
        ),
        measured_on(data["machine"]),
    ]
    return "\n\n".join(blocks) + "\n"


def _summary(parts: Mapping[str, Any]) -> str:
    rows = parts["cores"]
    most = max(row["cores"] for row in rows)
    told = ", ".join(f"{row['kind']}: {row['machine']:.1f}" for row in rows if row["cores"] == most)
    sleeping = max(abs(error(row)) for row in parts["asleep"] if row["waited"] <= MOST_WAITED)
    awake = max(abs(error(row)) for row in parts["busy"])
    return wrapped(
        f"**By simulation, {most} cores run events of 50 µs at so many times the speed of one: "
        f"{told}. Real threads that sleep are met within {100 * sleeping:.0f} % where they wait "
        f"for a core no more than {100 * MOST_WAITED:.0f} % of their time, busy ones within "
        f"{100 * awake:.0f} %.**"
    )


def _ceiling(commits: Mapping[str, Any]) -> str:
    each = 1e9 / commits["machine"]
    return wrapped(
        "Transactions commit one at a time, in their order; no number of cores lifts that. Of "
        f"those with {COMMIT_READS} reads and {COMMIT_WRITES} writes the machine commits at most "
        f"{commits['machine'] / 1e6:.1f} million a second, {each:.0f} ns each. So for N cores to "
        f"be kept busy an event, or a chunk of events, has to take N times that at least: "
        f"{16 * each / 1000:.0f} µs for 16 cores, {64 * each / 1000:.0f} µs for 64."
    )
